"""A repository that is not ours, with its plumb.yaml, and what ``plumb`` says and records there."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import stored
import yaml

from plumbline.base import paths

TOOLS = Path(__file__).resolve().parents[2] / "build" / "tools"


def git(folder: Path, *words: str) -> str:
    """What git prints in ``folder``, without blanks at its ends."""
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, document: Mapping[str, Any], name: str = "first") -> None:
    """Write plumb.yaml, and commit all files under a tag; the first time in a new repository."""
    (folder / "plumb.yaml").write_text(yaml.safe_dump(dict(document), sort_keys=False))
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    git(folder, "tag", name)


def variables(folder: Path) -> dict[str, str]:
    """The variables of commands whose results and build are in ``folder``."""
    around = {**os.environ, "PLUMB_RESULTS": str(folder / "results"), "PLUMB_BUILD": str(folder / "build")}
    around.setdefault("PLUMB_TOOLS", str(TOOLS))
    return around


def plumb(folder: Path, around: Mapping[str, str], *words: str) -> tuple[int, str]:
    """The exit status of a plumb command in ``folder``, and all that it prints."""
    return run(folder, around, "plumb", *words)


def succeeds(folder: Path, around: Mapping[str, str], *words: str) -> str:
    """All that a plumb command in ``folder`` prints, which must succeed."""
    status, output = plumb(folder, around, *words)
    assert status == 0, output
    return output


def run(folder: Path, around: Mapping[str, str], name: str, *words: str) -> tuple[int, str]:
    """The same of another program of this environment, but whether it waited for other tests that launch something."""
    command = [paths.program(name), *words]
    done = subprocess.run(command, env=around, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    errors = re.sub(r"^plumb: waiting for another launch .*\n", "", done.stderr, flags=re.MULTILINE)
    return done.returncode, done.stdout + errors


def records(around: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The records by the name of their program."""
    found = stored.sound(around["PLUMB_RESULTS"])
    return {record["variant"]["application"]["program"]: record for record in found}
