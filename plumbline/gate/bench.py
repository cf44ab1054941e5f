"""What starts the launches of a gate, one at a time: the launch driver in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from plumbline.errors import PlumbError
from plumbline.launch import figures, pipeline
from plumbline.launch.prepare import prepare
from plumbline.records.model import Launch, Record
from plumbline.references import References


class Bench(Protocol):
    """Starts launches. Sides are 0 (baseline) and 1 (candidate), variants are known by their position."""

    def records(self, position: int, found: list[Record] | None) -> list[Record]:
        """Both sides' records, new ones or those ``found`` from before an interruption."""

    def launch(self, position: int, side: int, index: int, order: int) -> Launch:
        """One launch; the record does not hold it yet."""

    def settle(self, position: int) -> None:
        """Bring what follows from the launches of both records up to date."""


class DriverBench:
    """The launch driver, in this process: inside a job or on the local node."""

    def __init__(self, couples: list[list[dict[str, Any]]], name: str, seed: int, site: str, folder: Path) -> None:
        self.folder = folder
        self.expected = References.load(site)
        self.jobs = [[prepare(variant, name) for variant in couple] for couple in couples]
        for couple in self.jobs:
            for job in couple:
                job.record.seed = seed

    def records(self, position: int, found: list[Record] | None) -> list[Record]:
        """Both sides' records, new ones or those ``found``; a plan or command that changed since is an error."""
        for job, old in zip(self.jobs[position], found or [], strict=False):
            for name in ("plan", "command", "benchmark"):
                if getattr(old, name) != getattr(job.record, name):
                    what = f"the {name} of {old.variant.name} on {old.stack.name} is another one now"
                    raise PlumbError(what, str(self.folder), "start a new gate")
            job.record = old
        return [job.record for job in self.jobs[position]]

    def launch(self, position: int, side: int, index: int, order: int) -> Launch:
        """Start one launch; raises :class:`PlumbError` for a program that cannot be started, or on other nodes."""
        job = self.jobs[position][side]
        record, before = job.record, job.record.nodes
        folder = self.folder / f"launch-{order}"
        try:
            found = pipeline.launch(job, index, order, folder)
        except OSError as error:
            cure = f"the pairs before it are kept: plumb gate --resume {self.folder}"
            raise PlumbError(f"a launch could not be started: {error}", str(folder), cure) from error
        if record.launches and record.nodes != before:
            what = f"ran on {', '.join(record.nodes)}, before on {', '.join(before)}"
            record.nodes = before
            raise PlumbError(what, record.variant.name, "a gate stays on its nodes: start a new one")
        return found

    def settle(self, position: int) -> None:
        """Figures, reasons and verdict of both records, from their launches."""
        for job in self.jobs[position]:
            figures.settle(job.record, job.facts, job.host, self.expected, job.ceilings)
