"""The launches of the tuner, in stages: each is measured once, then read from its records.

The folder of a tuning has ``tune.json`` (the request, and the session file of every stage that finished), the
records of all stages below ``records``, and the files that configurations need below ``settings``. All that follows a
stage is worked out from its records and the recorded seed. A tuning that was interrupted therefore begins again:
finished stages are read, the others measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from plumbline import mpi
from plumbline.extras.tune import curves, process, race
from plumbline.extras.tune.curves import Contest, TuningPlace
from plumbline.measure import driver
from plumbline.measure.session import Kind, Say
from plumbline.mpi.settings import Configuration
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.records.variant import Variant

#: the cure for a damaged record of a tuning
AGAIN = "start a new tuning"
#: of each session of pairs, at most; one whose rows are decided ends before
MINUTES = 90.0


class TuningRequest(msgspec.Struct, frozen=True):
    """The request that a tuning began with.

    ``placements``: every configuration is launched under each of them; ``knobs``: those that are raced, empty: all.
    ``counts``: operation, size and how often a program makes it; empty: all rows count alike. ``program``: the variants
    of the program that it is for, whose profile and figures then count. ``rank_counts``: ranks on each node, with each
    of which every configuration is launched; empty: as many as the placement has room for. ``first``: the
    result of another tuning, which is confirmed before anything is raced. ``circumstances`` that are None are those of
    the job that measures.
    """

    site: str
    partition: str
    stack: str
    family: str
    placements: tuple[str, ...]
    sizes: tuple[int, ...]
    seed: int
    circumstances: dict[str, Any]
    every: bool = False
    knobs: tuple[str, ...] = ()
    minutes: float = MINUTES
    counts: tuple[tuple[str, int, int], ...] = ()
    nodes: int = 1
    program: tuple[Variant, ...] = ()
    rank_counts: tuple[int, ...] = ()
    first: Configuration = Configuration()


class TuningState(msgspec.Struct):
    """The state of a tuning: ``stages`` has the session file of each that finished."""

    request: TuningRequest = msgspec.field(name="asked")
    stages: dict[str, str] = {}

    @property
    def circumstances(self) -> dict[str, Any]:
        """The circumstances when the tuning began."""
        return self.request.circumstances


TUNING = Kind("tuning", "tune", "tune.json", TuningState)


class TuningBench:
    """The launches of the tuning of ``folder``, which was begun or loaded by :data:`TUNING`.

    ``minutes``: another limit of the sessions of pairs than the one that it was begun with.
    """

    def __init__(self, folder: Path, state: TuningState, say: Say, minutes: float | None = None) -> None:
        if minutes is not None:
            state.request = msgspec.structs.replace(state.request, minutes=minutes)
        self.folder, self.say, self._state = folder, say, state
        self.request = state.request
        self._configured: dict[Configuration, dict[str, str]] = {}

    def settings(self, configuration: Configuration) -> dict[str, str]:
        """The library's settings for ``configuration``; their files are kept in the folder.

        Raises :class:`PlumbError` for a rule that the library cannot be given.
        """
        if configuration not in self._configured:
            folder = self.folder / "settings" / str(len(self._configured))
            folder.mkdir(parents=True, exist_ok=True)
            self._configured[configuration] = {
                setting.name: setting.value
                for setting in mpi.TABLE[self.request.family].settings_of(configuration, folder)
            }
        return self._configured[configuration]

    def places(self) -> list[TuningPlace]:
        """Where each configuration is measured: under each placement, the largest number of ranks first."""
        request = self.request
        ranks = {variant.placement: variant.ranks_per_node for variant in request.program}
        place = (request.site, request.partition, request.stack)
        return [
            TuningPlace(*place, name, request.nodes, count or ranks.get(name))
            for name in request.placements
            for count in sorted(request.rank_counts, reverse=True) or (None,)
        ]

    def kept(self, stage: str) -> Path | None:
        """The session file of a stage that finished, None for any other."""
        name = self._state.stages.get(stage)
        return None if name is None else Path(name)

    def keep(self, stage: str, file: Path) -> None:
        """Store that ``stage`` finished, with its records in ``file``."""
        self._state.stages[stage] = str(file)
        TUNING.save(self.folder, self._state)

    def cost(self, sessions: Iterable[str]) -> tuple[int, float]:
        """Launches of all stages that finished and of the gate's ``sessions``, and how many seconds they took."""
        files = {store.session_file(self.request.site, session) for session in sessions}
        files |= set(map(Path, self._state.stages.values()))
        records = [record for file in files if file.exists() for record in store.whole(file, AGAIN)]
        times = [launch.wall_s for record in records for launch in record.launches]
        return len(times), sum(times)

    def stage(self, name: str, candidates: Sequence[Configuration], rounds: int) -> list[list[Record]]:
        """The records of each of ``candidates``, one for each place, measured unless they were before."""
        program = curves.sweep(self.request.sizes)
        variants = [
            curves.variant(place, race.label(each), rounds, self.settings(each), program)
            for each in candidates
            for place in self.places()
        ]
        return self._stage(name, variants, rounds)

    def programs(self, name: str, candidates: Sequence[Configuration], rounds: int) -> list[list[Record]]:
        """The records of the program under each of ``candidates``, which are settings of the process."""
        variants = [
            process.applied(
                msgspec.structs.replace(variant, name=f"{variant.name} {race.label(each)}", launches=rounds),
                process.settings(each),
            )
            for each in candidates
            for variant in self.request.program
        ]
        return self._stage(name, variants, rounds, len(self.request.program))

    def profiles(self) -> list[Record]:
        """The records of the program that the tuning is for, each of its variants launched once under the profile."""
        variants = [msgspec.structs.replace(variant, profiled=True, launches=1) for variant in self.request.program]
        return self._stage("profile", variants, 1, len(variants), brief=False)[0]

    def contests(self, name: str, contests: Sequence[Contest], under: Configuration, rounds: int) -> list[list[Record]]:
        """The records of each of ``contests`` under a configuration, one for each place."""
        settings, sizes = self.settings(under), self.request.sizes
        variants = [
            curves.variant(place, contest.setting, rounds, settings, contest.program(sizes))
            for contest in contests
            for place in self.places()
        ]
        return self._stage(name, variants, rounds)

    def _stage(
        self, name: str, variants: Sequence[Variant], rounds: int, step: int = 0, brief: bool = True
    ) -> list[list[Record]]:
        """The records of ``variants``, ``step`` at a time: by default those of all places."""
        file = self.kept(name)
        if file is None:
            work = self.folder / "work"
            work.mkdir(exist_ok=True)
            self.say(f"{name}: {len(variants) * rounds} launches")
            file, records = driver.run(
                variants, work, self.request.seed, self.say, into=self.folder / "records", brief=brief
            )
            self.keep(name, file)
        else:
            records = store.whole(file, AGAIN)
        step = step or len(self.places())
        return [records[place : place + step] for place in range(0, len(records), step)]
