"""How ``plumb`` ends: an exit status that is not a verdict where there was none, one line, on any terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.judge import decide

PAIRS = "series,baseline,candidate\n" + "".join(
    f"≤ 64 KiB,{10 + place % 7 / 100},{10 + (place + 3) % 7 / 100}\n" for place in range(90)
)


@pytest.fixture
def pairs(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS, encoding="utf-8")
    return ["gate", "--pairs", str(file), "--better", "lower"]


@pytest.mark.parametrize(("words", "status"), [
    (["gate", "--bogus"], 3),
    (["--bogus", "gate"], 3),
    (["gate", "--minutes", "abc"], 3),
    (["gate", "--resume"], 3),
    (["gate", "a.jsonl", "b.jsonl"], 3),
    (["outliers", "--must-detect", "x"], 3),
    (["history", "--bogus"], 3),
    (["list", "--bogus"], 2),
    (["stack", "install", "--bogus"], 2),
    (["nosuch"], 2),
])  # fmt: skip
def test_bad_options_of_a_command_of_verdicts_are_invalid(words, status, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == status
    assert capsys.readouterr().err.startswith("usage: plumb")


@pytest.mark.parametrize(("words", "cure"), [
    (["stack", "lst"], "invalid choice: 'lst': did you mean 'list'?"),
    (["export", "--format", "csx"], "invalid choice: 'csx': did you mean 'csv'?"),
    (["campaign", "-n", "stream"], "arguments: -n; example: plumb campaign --profile full --test stream"),
    (["--bogus", "list"], "unrecognized arguments: --bogus; example: plumb list --test stream --ranked"),
    (["list", "--tset", "x"], "unrecognized arguments: --tset x (did you mean '--test'?); example: plumb list"),
])  # fmt: skip
def test_a_mistyped_word_is_answered_by_what_is_like_it(words, cure, capsys):
    with pytest.raises(SystemExit):
        cli.main(words)
    assert cure in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("words", [["show", "last"], ["diff", "last", "last"], ["publish", "public"]])
def test_what_needs_records_says_that_there_are_none(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["--results", "nowhere", *words]) == 2
    assert capsys.readouterr().err == f"plumb: no records yet ({tmp_path}/nowhere): make campaign measures some\n"


def test_the_results_are_a_folder(tmp_path, capsys):
    file = tmp_path / "s.jsonl"
    file.write_text("")
    assert cli.main(["--results", str(file), "list"]) == 2
    assert capsys.readouterr().err == f"plumb: the results are not a folder ({file}): name the folder of the records\n"


def test_an_unexpected_exception_is_invalid_and_one_line(pairs, monkeypatch, capsys):
    def crash(*_):
        raise TypeError("no\nsuch thing")

    monkeypatch.setattr(decide, "decide", crash)
    assert cli.main(pairs) == 3
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("plumb: TypeError: no such thing (")
    assert err.count("\n") == 1
    assert "test_cli.py" in err


def test_an_unexpected_exception_elsewhere_is_bad_input(monkeypatch, refused):
    monkeypatch.setattr("plumbline.commands.records.run_list.run", lambda arguments: 1 // 0)
    assert refused(2, "list").startswith("plumb: ZeroDivisionError")


def plumb(*words, stdout=subprocess.PIPE, **variables):
    return subprocess.run(
        [sys.executable, "-c", "import sys; from plumbline.commands.cli import main; sys.exit(main())", *words],
        env={**os.environ, **variables}, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False,
    )  # fmt: skip


def test_a_character_that_the_terminal_lacks_is_replaced(pairs):
    ended = plumb(*pairs, PYTHONIOENCODING="latin-1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"\n<= 64 KiB  PASS" in ended.stdout
    assert b"\ngate: PASS:" in ended.stdout


@pytest.mark.parametrize("words", ["--version", "help", "help list", "list"])
def test_output_that_a_full_disk_refuses_is_no_success(words, tmp_path):
    with Path("/dev/full").open("wb") as full:
        ended = plumb(*words.split(), stdout=full, PLUMB_RESULTS=str(tmp_path), PYTHONUNBUFFERED="")
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"plumb: cannot continue: No space left on device")
    assert ended.stderr.count(b"\n") == 1


def test_closed_output_is_no_error():
    command = ["sh", "-c", 'exec "$0" -m plumbline.commands.cli --version >&-', sys.executable]
    ended = subprocess.run(command, stderr=subprocess.PIPE, check=False, cwd=paths.root())
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_verdict_that_nobody_could_read_is_no_pass(pairs, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("plumbline.commands.options.write", closed)
    assert cli.main(pairs) == 3


def test_folders_that_options_name_are_those_of_one_command(tmp_path, refused):
    before = paths.stacks()
    assert str(tmp_path) in refused(2, "--stacks", str(tmp_path), "stack", "check", "none")
    assert paths.stacks() == before


@pytest.mark.parametrize(("words", "what"), [
    (["history", "--series", "x.csv", "--better", "lower", "--site", "a"], "--site goes with the records"),
    (["history", "--series", "x.csv", "--better", "lower", "--json"], "--json goes with the records"),
    (["outliers", "--members", "x.csv", "--better", "lower", "--figure", "a"], "--figure chooses among all records"),
    (["outliers", "last", "--site", "a"], "--site chooses among all records"),
])  # fmt: skip
def test_an_option_that_would_have_no_effect_is_refused(words, what, refused):
    assert what in refused(3, *words)
