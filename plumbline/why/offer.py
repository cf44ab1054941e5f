"""The command that looks for the cause of a difference, for people or run at once."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from plumbline.base import paths
from plumbline.gate.sides import KERNELS
from plumbline.launch import process
from plumbline.measure.session import Say
from plumbline.records.model import Record
from plumbline.why import factors


def command(first: Record, second: Record) -> str | None:
    """``plumb why FIRST SECOND``, or ``plumb bisect`` where the commit alone differs.

    None where something else alone differs: that is the cause.
    """
    rebuilt = first.benchmark.sha256 != second.benchmark.sha256
    runs = [(one.stack.name.partition("@")[0], _code(one, rebuilt), _build(one)) for one in (first, second)]
    differ = [one != other for one, other in zip(*runs, strict=True)]
    number = sum(differ) + len(factors.of_variants(first.variant, second.variant))
    if number > 1:
        return f"plumb why {first.id} {second.id}"
    if not differ[1] or not all(code for _, code, _ in runs):
        return None
    (stack, good, _), (_, bad, _) = runs
    test = f"{re.escape(first.variant.test)}(%|$)"
    return shlex.join(["plumb", "bisect", good, bad, "--stack", stack, "--test", test])


def _code(record: Record, rebuilt: bool) -> str:
    """The commit that what ran was built from, empty where that is not known.

    Kernels are built with their stack: the commit of the suite is theirs only where they were ``rebuilt``.
    """
    if state := record.variant.application:
        return state.commit or ""
    is_ours = rebuilt and record.benchmark.suite == KERNELS
    return record.stack.name.partition("@")[2] or (is_ours and record.suite.commit) or ""


def _build(record: Record) -> dict[str, str]:
    return record.variant.application.build if record.variant.application else {}


def search(command: str, minutes: float, folder: Path, more: Sequence[str], say: Say) -> str:
    """The answer of ``command`` with the options ``more``, in one line; all of it is in ``cause.json`` of ``folder``.

    The search is a process of its own: whatever becomes of it, the verdict stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work, target = folder / "cause", folder / "cause.json"
    words = [*shlex.split(command)[1:], *more, "--work", str(work)]
    if work.exists():  # a gate that is resumed
        words = [words[0], "--resume", str(work)]
    say(f"\nthe cause: {command} --minutes {minutes:g}")
    started = [sys.executable, "-m", "plumbline.commands.cli", *paths.options(), *words]
    started += ["--minutes", f"{minutes:g}", "--output", str(target)]
    # what it prints is progress, and a document may be on standard output; an interruption reaches it, too
    with subprocess.Popen(started, stdout=sys.__stderr__, preexec_fn=process.die_with_parent) as child:
        status = child.wait()
    if not target.exists():
        return f"{command} ended with status {status} and without an answer"
    return str(json.loads(target.read_text(encoding="utf-8"))["line"])
