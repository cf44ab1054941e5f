"""Commands of labs whose output shows the lesson: a plan, a profile, a screen of settings."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass

from plumbline.base import paths
from plumbline.labs.evidence import HOLDS, OPPOSITE, Finding
from plumbline.labs.model import Printed


@dataclass(frozen=True)
class Output:
    """What a command printed, and what each of its expected lines says."""

    command: str
    text: str
    findings: list[Finding]


def run(printed: Printed) -> Output:
    """The output of a command in the suite's folder; its own last line is the reason where it fails."""
    program = paths.program("plumb")
    done = subprocess.run(
        [program, *printed.command[1:]], cwd=paths.suite(), capture_output=True, text=True, check=False
    )
    failure = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else None
    findings = [_found(pattern, says, done.stdout, failure) for pattern, says in printed.lines.items()]
    return Output(shlex.join(printed.command), done.stdout.rstrip("\n"), findings)


def _found(pattern: str, says: str, text: str, failure: str | None) -> Finding:
    found = re.search(pattern, text, re.MULTILINE)
    if found:
        return Finding(subject=says, state=HOLDS, count=1, reason=" ".join(found[0].split()))
    return Finding(subject=says, state=OPPOSITE, count=1, reason=failure or "the output has no such line")
