"""git in this checkout: the only place that runs it there. https://git-scm.com/docs/git"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import plumbline
from plumbline.base import paths
from plumbline.base.errors import PlumbError

#: seconds that git may take
PATIENCE_S = 60.0


def is_checkout() -> bool:
    """Whether the suite lies in a git checkout, and not in an unpacked archive of its files."""
    return (paths.root() / ".git").exists()


def part(name: str) -> Path:
    """The folder ``name`` of the checkout; raises :class:`PlumbError` where pip installed the package without it."""
    if paths.is_installed():
        cure = "clone the repository of Plumbline, run make setup there, and use its .venv/bin/plumb"
        raise PlumbError(f"this needs {name}/, which only a checkout has", str(paths.root()), cure)
    return paths.root() / name


def run(*arguments: str) -> str:
    """What git prints, without the blanks around it.

    Raises :class:`PlumbError` if it refuses, does not answer or is not there.
    """
    done = _run(arguments)
    if done.returncode != 0:
        raise _refusal(arguments, done)
    return done.stdout.strip()


def commit(name: str = "HEAD") -> str | None:
    """The commit that ``name`` (a branch, a tag, its first digits) stands for.

    None if that name or the checkout does not exist. Raises :class:`PlumbError` if git refuses, as it does in
    a checkout of another owner.
    """
    if not is_checkout():
        return None
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    done = _run(arguments)
    if done.returncode == 1:  # an unknown name; a refusal is 128
        return None
    if done.returncode != 0:
        raise _refusal(arguments, done)
    return done.stdout.strip()


def _run(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(paths.root()), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise PlumbError(f"git does not answer: {error}", f"git {arguments[0]}", "is git installed?") from error


def _refusal(arguments: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> PlumbError:
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0].removeprefix("fatal: ")
    owner = "dubious ownership" in said or "unsafe repository" in said
    cure = f"git config --global --add safe.directory {paths.root()}" if owner else f"git -C {paths.root()} status"
    return PlumbError(f"git refuses: {said}", f"git {arguments[0]}", cure)


def suite_state() -> dict[str, Any]:
    """Which state of the suite makes a record: version, git commit and whether tracked files were changed.

    Commit and dirty are None outside a git checkout. Where git does not answer for the checkout they are None too, and
    ``unknown`` says why, with the cure.
    """
    found: dict[str, Any] = {"version": plumbline.__version__, "commit": None, "dirty": None}
    if not is_checkout():
        return found
    try:
        found["commit"] = commit()
        found["dirty"] = bool(run("status", "--porcelain", "--untracked-files=no"))
    except PlumbError as error:
        found["unknown"] = str(error)
    return found
