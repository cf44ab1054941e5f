"""The launches of a search: what is measured is kept in its folder, and read again when the search continues.

``records/N.jsonl`` has the record of configuration N, written whole after each launch; the index of a launch is the
number of its round. A search that is repeated takes the same way, and starts only what is missing.
"""

from __future__ import annotations

import time
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.extras.search.why.model import WhyRequest
from plumbline.extras.search.why.rounds import Seen
from plumbline.host.change import Host
from plumbline.judge import disturbed
from plumbline.launch.signals import held_back
from plumbline.measure import driver
from plumbline.measure.session import Say
from plumbline.records import store
from plumbline.records.launch import Launch
from plumbline.records.model import Record

AGAIN = "start a new search"


class ConfigurationBench:
    """The configurations of the search of ``folder``; ``figure`` is the name of the figure that is followed.

    ``minutes``: no round begins after so many, None for no limit. ``host`` is where settings of the host are changed.
    """

    def __init__(
        self, folder: Path, request: WhyRequest, figure: str, say: Say, host: Host, minutes: float | None = None
    ) -> None:
        self.folder, self.request, self.say, self.host = folder, request, say, host
        self.reasons: dict[int, str] = {}
        self._figure = next(wanted for wanted in request.ends.first.figures if wanted.name == figure)
        self._launches: dict[int, driver.Launches] = {}
        self._ends = None if minutes is None else time.monotonic() + 60 * minutes
        self._order = sum(len(record.launches) for file in self._files() for record in store.whole(file, AGAIN))

    def _files(self) -> list[Path]:
        return sorted((self.folder / "records").glob("*.jsonl"))

    def _file(self, configuration: int) -> Path:
        return self.folder / "records" / f"{configuration}.jsonl"

    def stop(self) -> str | None:
        """Why no further round may begin, or None."""
        return "time is up" if self._ends is not None and time.monotonic() > self._ends else None

    def records(self) -> list[Record]:
        """The records of all configurations."""
        return [record for file in self._files() for record in store.whole(file, AGAIN)]

    def launch(self, configuration: int, number: int) -> Seen | None:
        """The figure of the launch of ``configuration`` in round ``number``, started unless it was before.

        A launch that was disturbed is started again, within the limits of the gate. None: it failed, and
        :attr:`reasons` says why. Raises :class:`PlumbError` where A or B cannot be measured.
        """
        try:
            launches = self._prepared(configuration)
        except PlumbError as error:
            self._fail(configuration, error)
            return None
        launch = self._kept(launches, number) or self._started(configuration, launches, number)
        if not launch.verified or launch.status != "ok":
            self._fail(configuration, PlumbError((launch.reasons or ["it failed"])[0], f"launch {launch.order}"))
            return None
        try:
            measurement = launch.measurement(self._figure)
            return Seen(measurement.value, launch.disturbed, measurement.step)
        except PlumbError as error:
            self._fail(configuration, error)
            return None

    def _fail(self, configuration: int, error: PlumbError) -> None:
        name = self.request.ends.mixture(configuration)
        if configuration in (0, (1 << len(self.request.ends.factors)) - 1):
            raise PlumbError(f"{name} cannot be measured: {error.message}", error.where, error.cure) from error
        self.reasons[configuration] = error.message
        self.say(f"left out: {name}: {error.message}")

    def _prepared(self, configuration: int) -> driver.Launches:
        """The configuration, with the launches that it had before."""
        if configuration not in self._launches:
            self.host.set(self.request.ends.host(configuration))
            kept = f"what was measured before is kept: plumb why --resume {self.folder}"
            variant = self.request.ends.variant(configuration)
            launches = driver.Launches([variant], self.request.session, self.folder, self.request.seed, kept)
            if (file := self._file(configuration)).exists():
                [old] = store.whole(file, AGAIN)
                job = launches.jobs[0]
                for name in ("plan", "command", "benchmark"):
                    if getattr(old, name) != getattr(job.record, name):
                        fault = f"the {name} of {old.variant.name} is another one now"
                        raise PlumbError(fault, str(self.folder), AGAIN)
                job.record = old
            self._launches[configuration] = launches
        return self._launches[configuration]

    @staticmethod
    def _kept(launches: driver.Launches, number: int) -> Launch | None:
        [record] = launches.all_records
        return next((launch for launch in record.launches if launch.index == number and not launch.superseded), None)

    def _started(self, configuration: int, launches: driver.Launches, number: int) -> Launch:
        self.host.set(self.request.ends.host(configuration))
        [record] = launches.all_records
        while True:
            launch = launches.launch(0, number, self._order)
            self._order += 1
            kept = len(record.counting())
            again = disturbed.is_due(launch.verified, launch.disturbed, kept, len(record.launches) - kept)
            launch.superseded = again
            with held_back():
                record.launches.append(launch)
                launches.settle(0)
                store.write(self._file(configuration), [record])
            if not again:
                return launch
