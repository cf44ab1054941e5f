"""git, in this checkout or in the repository of an application. https://git-scm.com/docs/git"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import plumbline
from plumbline.base import paths
from plumbline.base.errors import PlumbError

#: seconds that git may take
PATIENCE_S = 60.0
#: and that of submodules, which may be fetched over a network
SUBMODULES_S = 1800.0


def is_checkout() -> bool:
    """Whether the suite lies in a git checkout, and not in an unpacked archive of its files."""
    return (paths.root() / ".git").exists()


def run(
    *arguments: str,
    at: Path | None = None,
    accepted: Collection[int] = (0,),
    variables: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> str:
    """The output of git in the folder ``at`` (default: this checkout) with ``variables``, without the blanks around it.

    Raises :class:`PlumbError` if it refuses (its exit status is not ``accepted``), does not answer or is not there.
    """
    where = at or paths.root()
    plain = {**os.environ, **(variables or {}), "LC_ALL": "C"}  # its messages are compared
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments], capture_output=True, text=True, timeout=patience_s, env=plain
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PlumbError(f"git does not answer: {error}", f"git {arguments[0]}", "is git installed?") from error
    if done.returncode in accepted:
        return done.stdout.strip()
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    message = next((line for line in lines if line.startswith("fatal: ")), lines[0]).removeprefix("fatal: ")
    owner = "dubious ownership" in message or "unsafe repository" in message
    cure = f"git config --global --add safe.directory {where}" if owner else f"git -C {where} status"
    raise PlumbError(f"git refuses: {message}", f"git {arguments[0]}", cure)


def top(folder: Path) -> Path | None:
    """The repository's uppermost folder that ``folder`` is in; None if it is in none.

    Raises :class:`PlumbError` if git refuses, as it does in a checkout of another owner.
    """
    try:
        return Path(run("rev-parse", "--show-toplevel", at=folder))
    except PlumbError as error:
        if "not a git repository" in error.message:
            return None
        raise


def commit(name: str = "HEAD", at: Path | None = None) -> str | None:
    """The commit that ``name`` (a branch, a tag, its first digits) stands for in ``at`` (default: this checkout).

    None if there is none of that name, or this is not a checkout. Raises :class:`PlumbError` if git refuses, as it does
    in a checkout of another owner.
    """
    if at is None and not is_checkout():
        return None
    verify = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return run(*verify, at=at, accepted=(0, 1)) or None  # an unknown name is 1, without a word; a refusal is 128


def check_out(repository: Path, commit: str, target: Path) -> None:
    """Make a clean copy of ``commit`` in ``target``, which is not there yet: what is committed, submodules too.

    Raises :class:`PlumbError` if git refuses.
    """
    run("clone", "--quiet", "--shared", "--no-checkout", "--", str(repository), str(target), at=target.parent)
    run("checkout", "--quiet", "--detach", commit, at=target)
    if (target / ".gitmodules").exists():
        # submodules with relative URLs are beside the origin, which of a copy is the repository here
        if origin := run("config", "--get", "remote.origin.url", at=repository, accepted=(0, 1)):
            run("config", "remote.origin.url", origin, at=target)
        run("submodule", "--quiet", "update", "--init", "--recursive", at=target, patience_s=SUBMODULES_S)


def suite_state() -> dict[str, Any]:
    """The state of the suite for a record: version, git commit and whether tracked files were changed.

    Commit and dirty are None outside a git checkout. Where git does not answer for the checkout they are None too, and
    ``unknown`` says why, with the cure.
    """
    state: dict[str, Any] = {"version": plumbline.__version__, "commit": None, "dirty": None}
    if not is_checkout():
        return state
    try:
        state["commit"] = commit()
        state["dirty"] = bool(run("status", "--porcelain", "--untracked-files=no"))
    except PlumbError as error:
        state["unknown"] = str(error)
    return state
