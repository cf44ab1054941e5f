"""The command that looks for the cause of a difference, for people or run at once."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from plumbline.base import paths
from plumbline.extras.search.why import factors
from plumbline.gate.sides import KERNELS
from plumbline.launch import process
from plumbline.measure.session import Say
from plumbline.records.model import Record
from plumbline.stacks import manifest as manifests
from plumbline.stacks import source


class _BuildInputs(NamedTuple):
    """The inputs of a program's build; an unknown commit is empty. ``library``: the commit of the MPI library."""

    stack: str
    library: str
    code: str
    build: Mapping[str, str]

    @classmethod
    def of(cls, record: Record, rebuilt: bool) -> _BuildInputs:
        """The inputs of the program of ``record``.

        Kernels are built with their stack: the commit of the suite is theirs only where they were ``rebuilt``.
        """
        name, *commits = record.stack.name.split("@")
        library = commits.pop(0) if record.stack.provider == source.PROVIDER else ""
        if state := record.variant.application:
            return cls(name, library, state.commit or "", state.build)
        is_ours = rebuilt and record.benchmark.suite == KERNELS and not library
        return cls(name, library, commits[0] if commits else record.suite.commit or "" if is_ours else "", {})


def command(first: Record, second: Record, application: Path | None = None) -> str | None:
    """``plumb why FIRST SECOND``, or ``plumb bisect`` where the commit alone differs, of the code or the MPI library.

    None where something else alone differs: that is the cause. Of two stacks with libraries or settings that can be
    varied it is not known which one. ``application`` is the plumb.yaml that was named.
    """
    named = ["--application", str(application)] if application and first.variant.application else []
    rebuilt = first.benchmark.sha256 != second.benchmark.sha256
    good, bad = _BuildInputs.of(first, rebuilt), _BuildInputs.of(second, rebuilt)
    number = sum(before != after for before, after in zip(good, bad, strict=True))
    if number + len(factors.of_variants(first.variant, second.variant)) > 1:
        return shlex.join(["plumb", "why", first.id, second.id, *named])
    if good.library != bad.library:
        words = [good.library, bad.library, "--stack", f"{source.PREFIX}{good.stack}"]
    elif good.code != bad.code and good.code and bad.code:
        words = [good.code, bad.code, "--stack", "@".join(filter(None, good[:2]))]
    elif _has_parts(good.stack, bad.stack):
        return shlex.join(["plumb", "why", first.id, second.id, *named])
    else:
        return None
    return shlex.join(["plumb", "bisect", *words, "--test", f"{re.escape(first.variant.test)}(%|$)", *named])


def _has_parts(first: str, second: str) -> bool:
    """Whether two stacks differ in what ``plumb why`` varies: libraries of both, or the settings of a tuned one."""
    if first == second or not {first, second} <= set(manifests.names()):
        return False
    both = [manifests.load(name) for name in (first, second)]
    return any(stack.tuned for stack in both) or bool(factors.of_libraries(*both))


def search(command: str, minutes: float, folder: Path, say: Say, trusted: bool = False) -> str:
    """The answer of ``command`` in one line; all of it is in ``cause.json`` of ``folder``.

    ``trusted``: the records that it names were made just now. The search is a process of its own: whatever becomes of
    it, the verdict stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work, target = folder / "cause", folder / "cause.json"
    words = [*shlex.split(command)[1:], "--work", str(work)]
    words += ["--trust"] if trusted and words[0] == "why" else []
    if any(work.glob("*.json")):  # a gate that is resumed; without a state the search was killed before it began
        words = [words[0], "--resume", str(work)]
    say(f"\nthe cause: {command} --minutes {minutes:g}")
    started = [*paths.python(), "-m", "plumbline.commands.cli", *paths.options(), *words]
    started += ["--minutes", f"{minutes:g}", "--output", str(target)]
    # what it prints is progress, and a document may be on standard output; an interruption reaches it, too
    with subprocess.Popen(started, stdout=sys.__stderr__, preexec_fn=process.die_with_parent) as child:
        status = child.wait()
    if not target.exists():
        return f"{command} ended with status {status} and without an answer"
    return str(json.loads(target.read_text(encoding="utf-8"))["line"])
