"""``--cause-minutes``: the search that a verdict offers, as a process of its own."""

from plumbline.extras.search.why import offer

SEARCH = """#!/bin/sh
echo "$@" >{folder}/words
while [ "$1" != --output ]; do shift; done
[ -e {folder}/broken ] || echo '{{"line": "bisect: 123 makes it slower"}}' >"$2"
exit 1
"""
COMMAND = "plumb bisect 1 2 --test 'a b(%|$)'"


def test_the_answer_is_the_line_of_the_search(tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.write_text(SEARCH.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setattr(offer.sys, "executable", str(program))
    said = []
    assert offer.search(COMMAND, 20.0, tmp_path / "work", said.append) == "bisect: 123 makes it slower"
    assert said == [f"\nthe cause: {COMMAND} --minutes 20"]
    words = (tmp_path / "words").read_text()
    assert words.startswith("-I -m plumbline.commands.cli --results ")
    assert f" bisect 1 2 --test a b(%|$) --work {tmp_path}/work/cause --minutes 20 --output " in words
    (tmp_path / "work" / "cause").mkdir()
    assert offer.search(COMMAND, 20.0, tmp_path / "work", print).startswith("bisect: 123")
    assert "--resume" not in (tmp_path / "words").read_text()
    (tmp_path / "work" / "cause" / "bisect.json").touch()
    assert offer.search(COMMAND, 20.0, tmp_path / "work", print).startswith("bisect: 123")
    assert f" bisect --resume {tmp_path}/work/cause --minutes 20 --output " in (tmp_path / "words").read_text()
    (tmp_path / "broken").touch()
    answer = offer.search(COMMAND, 20.0, tmp_path / "other", print)
    assert answer == f"{COMMAND} ended with status 1 and without an answer"
