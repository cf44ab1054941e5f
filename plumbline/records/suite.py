"""Which state of the suite made a record."""

from __future__ import annotations

import subprocess
from typing import Any

import plumbline
from plumbline import paths
from plumbline.errors import PlumbError


def describe() -> dict[str, Any]:
    """Version, git commit and whether tracked files were changed; commit and dirty are None outside a git checkout.

    Where git does not answer for the checkout they are None too, and ``unknown`` says why, with the cure.
    """
    found: dict[str, Any] = {"version": plumbline.__version__, "commit": None, "dirty": None}
    if not (paths.root() / ".git").exists():
        return found
    try:
        found["commit"] = _git("rev-parse", "HEAD")
        found["dirty"] = bool(_git("status", "--porcelain", "--untracked-files=no"))
    except PlumbError as error:
        found["unknown"] = str(error)
    return found


def _git(*arguments: str) -> str:
    root, where = str(paths.root()), f"git {arguments[0]}"
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise PlumbError(f"git does not tell the commit: {error}", where, "is git installed?") from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0].removeprefix("fatal: ")
        owner = "dubious ownership" in said or "unsafe repository" in said
        cure = f"git config --global --add safe.directory {root}" if owner else f"git -C {root} status"
        raise PlumbError(f"git does not tell the commit: {said}", where, cure)
    return done.stdout.strip()
