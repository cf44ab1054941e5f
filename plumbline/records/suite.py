"""Which state of the suite made a record."""

from __future__ import annotations

import subprocess
from typing import Any

import plumbline
from plumbline import paths


def describe() -> dict[str, Any]:
    """Version, git commit and whether tracked files were changed; commit and dirty are None outside a git checkout."""
    commit = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "version": plumbline.__version__,
        "commit": commit or None,
        "dirty": None if status is None else bool(status),
    }


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(paths.root()), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
