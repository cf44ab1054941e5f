"""Commands of labs whose output shows the lesson: a plan, a profile, a screen of settings."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass, replace

from plumbline.base import paths
from plumbline.extras.labs.evidence import HOLDS, MISSING, OPPOSITE, LessonFinding
from plumbline.extras.labs.model import RECORD, Printed


@dataclass(frozen=True)
class Output:
    """The output of a command, and the finding of each of its expected lines."""

    command: str
    text: str
    findings: list[LessonFinding]


def run(printed: Printed, record: str = "") -> Output:
    """The output of a command in the suite's folder; ``record`` is the id of the lab's newest one.

    Where it fails, its errors are part of the text, such as of a program that was ended, and their last line is
    the reason why an expected line is missing.
    """
    program = paths.program("plumb")
    words = [record if word == RECORD else _here(word) for word in printed.command[1:]]
    done = subprocess.run([program, *words], cwd=paths.suite(), capture_output=True, text=True, check=False)
    text, failure = done.stdout.rstrip("\n"), None
    if done.returncode:
        errors = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        text, failure = "\n".join([*filter(None, [text]), *errors]), errors[-1]
    planned = not (printed.measures or record in words)
    findings = [replace(_finding(*line, text, failure), planned=planned) for line in printed.lines.items()]
    return Output(shlex.join([printed.command[0], *words]), _parts(printed.shows, text), findings)


def missing(printed: Printed) -> list[LessonFinding]:
    """The findings of a command that was not run."""
    return [LessonFinding(subject=says, state=MISSING, count=0) for says in printed.lines.values()]


def _here(word: str) -> str:
    """A word of a command, with the folder of stacks that is in use."""
    return str(paths.stacks() / word.removeprefix("stacks/")) if word.startswith("stacks/") else word


def _parts(pattern: str | None, text: str) -> str:
    """The matches of ``pattern``, with dots for lines between; the whole if there are none."""
    if pattern is None:
        return text
    shown, end = "", 0
    for match in re.finditer(pattern, text, re.MULTILINE):
        between = "\n…\n" if text[end : match.start()].strip("\n") else "\n"
        shown += (between if shown else "") + match[0].strip("\n")
        end = match.end()
    return shown or text


def _finding(pattern: str, says: str, text: str, failure: str | None) -> LessonFinding:
    match = re.search(pattern, text, re.MULTILINE)
    if match:
        return LessonFinding(subject=says, state=HOLDS, count=1, reason=" ".join(match[0].split()))
    if failure:
        return LessonFinding(subject=says, state=MISSING, count=0, reason=failure)
    return LessonFinding(subject=says, state=OPPOSITE, count=1, reason="the output has no such line")
