"""``--cause-minutes``: the search that a verdict offers."""

import json
import sys
from argparse import Namespace

import pytest

from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.commands.options import Command
from plumbline.extras.search.bisect import command as bisect
from plumbline.extras.search.why.command import cause_search

COMMAND = "plumb bisect 1 2 --test 'a b(%|$)'"


@pytest.fixture
def searched(monkeypatch):
    """The arguments of each search, which writes an answer; ``fails``: what it raises instead."""
    searched = Namespace(args=[], fails=None)

    def run(args):
        searched.args.append(args)
        print("progress")
        if searched.fails:
            raise searched.fails
        args.output[0].write_text(json.dumps({"line": "bisect: 123 makes it slower"}))
        return 1

    monkeypatch.setattr(bisect, "run_bisect", Command(run, bisect.run_bisect.arguments))
    return searched


def test_the_answer_is_the_line_of_the_search(tmp_path, searched, capsys):
    shown = []
    assert cause_search(COMMAND, 20.0, tmp_path / "work", shown.append) == "bisect: 123 makes it slower"
    assert shown == [f"\nthe cause: {COMMAND} --minutes 20"]
    [args] = searched.args
    assert (args.good, args.bad, args.test, args.minutes) == ("1", "2", "a b(%|$)", 20.0)
    assert (args.work, args.resume) == (tmp_path / "work" / "cause", None)
    assert capsys.readouterr() == ("", "progress\n"), "a document of the gate may be on standard output"
    (tmp_path / "work" / "cause").mkdir()
    cause_search(COMMAND, 20.0, tmp_path / "work", print)
    assert searched.args[-1].resume is None, "killed before it began"
    (tmp_path / "work" / "cause" / "bisect.json").touch()
    cause_search(COMMAND, 20.0, tmp_path / "work", print)
    assert (searched.args[-1].resume, searched.args[-1].good) == (tmp_path / "work" / "cause", None)


@pytest.mark.parametrize("error", [PlumbError("no commit", "git", "name one"), RuntimeError("no commit")])
def test_the_verdict_stands_whatever_becomes_of_the_search(tmp_path, searched, error):
    searched.fails = error
    answer = cause_search(COMMAND, 20.0, tmp_path, lambda line: None)
    assert answer.startswith(f"{COMMAND} ended without an answer: no commit")
    assert sys.stdout is not sys.stderr
    searched.fails = Interrupted(15)
    with pytest.raises(Interrupted):
        cause_search(COMMAND, 20.0, tmp_path, lambda line: None)
