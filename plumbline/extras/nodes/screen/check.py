"""Checking nodes by the scheduler, some in each job. A result is in the history as soon as its job has ended.

A node leaves its result in the build folder; the next call takes the results that a killed one left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from plumbline.base import paths
from plumbline.base.terminal import say
from plumbline.extras.nodes.health import collect, model
from plumbline.extras.nodes.health.collect import CheckRequest
from plumbline.extras.nodes.health.model import Result
from plumbline.extras.nodes.screen.choose import short
from plumbline.schedulers import names
from plumbline.schedulers.base import HEALTH

#: nodes of one job: all of them wait for the last that becomes free
TOGETHER = 16


def folder(request: CheckRequest) -> Path:
    """Where nodes leave their results."""
    return paths.build() / "health" / request.site.name / f"{request.part.name}.screen"


def check(request: CheckRequest, jobs_on: Callable[[str], str]) -> dict[str, str]:
    """Check the nodes of ``request`` and keep their results; returns why some nodes have none."""
    place = folder(request).resolve()
    place.mkdir(parents=True, exist_ok=True)
    left_out: dict[str, str] = {}
    for number, first in enumerate(range(0, len(request.nodes), TOGETHER)):
        wanted = [names.host(name, "--node") for name in request.nodes[first : first + TOGETHER]]
        busy = {name: f"busy: {jobs}" for name in wanted if number and (jobs := jobs_on(name))}
        left_out |= busy
        batch = [name for name in wanted if name not in busy]
        if not batch:
            continue
        done = collect.on_nodes(replace(request, nodes=batch), place, lambda host: _command(request, place, host))
        answered = {short(result.node) for result in absorb(request)}
        why = f"it did not answer: {done.last()}" if done.status != 0 else "it did not answer"
        left_out |= {name: why for name in batch if short(name) not in answered}
        say(f"{len(batch) - sum(name in left_out for name in batch)} of {len(batch)} checked: {names.fold(batch)}")
    return left_out


def absorb(request: CheckRequest) -> list[Result]:
    """Move the results that nodes left into the history, each once; files of another form are reported and removed."""
    kept = {(result.node, result.time) for result in model.history(request.history)}
    left = sorted(folder(request).glob("*.json"))
    results = []
    for file in left:
        try:
            result = msgspec.json.decode(file.read_bytes(), type=Result)
        except (msgspec.DecodeError, ValueError) as error:
            say(f"{file.stem}: not a result of plumb-check: {error}")
            continue
        results.append(msgspec.structs.replace(result, facts={}))  # differing facts are in ``bad``
    if new := [result for result in results if (result.node, result.time) not in kept]:
        model.append(request.history, new)
    for file in left:
        file.unlink(missing_ok=True)
    return results


def _command(request: CheckRequest, place: Path, host: str | None) -> list[str]:
    """plumb-check in a job that has the node for itself, so that it need not ask for jobs."""
    words = ["/bin/sh", str(HEALTH / "screen.sh"), str(place), host or "-", str(paths.checker().resolve())]
    words += ["--class", str(request.file.resolve()), "--seconds", f"{request.seconds:g}"]
    return [*words, "--form", "json", "--beside-jobs"]
