"""Commands whose output shows a lesson: what is found in it, and why something is not."""

import pytest

from plumbline.base import paths
from plumbline.extras.labs import evidence
from plumbline.extras.labs.evidence import HOLDS, MISSING, OPPOSITE
from plumbline.extras.labs.model import Printed


def output(monkeypatch, folder, script, shows=None, **lines):
    """Of a command that is this shell script; each line's text is what it says."""
    program = folder / "plumb"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(paths, "program", lambda name: str(program))
    wanted = {pattern: says for says, pattern in lines.items()}
    return evidence.run_printed(Printed(command=["plumb", "x"], shows=shows, lines=wanted))


def test_a_line_of_the_output_proves_what_is_said_of_it(monkeypatch, tmp_path):
    one = output(monkeypatch, tmp_path, "echo 'sent   12'; echo news >&2", twelve="^sent +12$", thirteen="^sent +13$")
    assert one.text == "sent   12"
    found = [(each.state, each.reason) for each in one.findings]
    assert found == [(HOLDS, "sent 12"), (OPPOSITE, "the output has no such line")]


def test_errors_are_shown_of_a_command_that_fails(monkeypatch, tmp_path):
    """A program that hangs is ended, and what says so are errors."""
    one = output(
        monkeypatch, tmp_path, "echo table; echo 'ended: rank 0' >&2; echo last >&2; exit 1",
        where="rank 0", nowhere="rank 7",
    )  # fmt: skip
    assert one.text == "table\nended: rank 0\nlast"
    assert [(found.state, found.reason) for found in one.findings] == [(HOLDS, "rank 0"), (MISSING, "last")]


@pytest.mark.parametrize(
    ("shows", "text"), [("^[bd]$", "b\n…\nd"), ("^[bc]$", "b\nc"), ("^x$", "a\nb\nc\nd"), (None, "a\nb\nc\nd")]
)
def test_parts_of_a_long_output_are_shown(monkeypatch, tmp_path, shows, text):
    """Facts are looked for in the whole."""
    one = output(monkeypatch, tmp_path, "printf 'a\\nb\\nc\\nd\\n'", shows, third="^c$")
    assert (one.text, [found.state for found in one.findings]) == (text, [HOLDS])


def test_the_newest_record_of_the_lab_takes_its_place(monkeypatch, tmp_path):
    """What was measured is not a fact of any machine."""
    (tmp_path / "plumb").write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    (tmp_path / "plumb").chmod(0o755)
    monkeypatch.setattr(paths, "program", lambda name: str(tmp_path / "plumb"))
    printed = Printed(command=["plumb", "show", "RECORD"], lines={"^show 4f89ff$": "there"})
    shown = evidence.run_printed(printed, "4f89ff")
    assert (shown.command, shown.text) == ("plumb show 4f89ff", "show 4f89ff")
    assert [(one.state, one.planned) for one in shown.findings] == [(HOLDS, False)]


def test_the_documents_own_output_stands_below_and_is_no_evidence(monkeypatch, tmp_path):
    (tmp_path / "plumb").write_text("#!/bin/sh\necho 12\n", encoding="utf-8")
    (tmp_path / "plumb").chmod(0o755)
    monkeypatch.setattr(paths, "program", lambda name: str(tmp_path / "plumb"))
    printed = Printed(command=["plumb", "x"], lines={"^13$": "thirteen"}, published="13\n")
    run, not_run = evidence.run_printed(printed), evidence.not_run(printed)
    assert (run.text, [finding.state for finding in run.findings]) == ("12\n\npublished:\n13", [OPPOSITE])
    assert (not_run.text, [finding.state for finding in not_run.findings]) == ("published:\n13", [MISSING])
