"""What the tuner launches, and what it keeps: stages of launches, each measured once and then read again.

The folder of a tuning has ``tune.json`` (what was asked, and the session file of every stage that finished), the
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
from plumbline.measure import driver
from plumbline.measure.session import Kind, Say
from plumbline.mpi.settings import Configuration
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.records.variant import Variant
from plumbline.tune import curves, race
from plumbline.tune.curves import Contest, Place

#: what helps when a record of a tuning is damaged
AGAIN = "start a new tuning"
#: of each session of pairs, at most; one whose rows are decided ends before
MINUTES = 90.0


class Asked(msgspec.Struct, frozen=True):
    """What a tuning was begun with.

    ``placements``: every configuration is launched under each of them; ``knobs``: those that are raced, empty: all.
    ``counts``: operation, size and how often a program makes it; empty: all rows count alike. ``program``: the variants
    of the program that it is for, whose profile and figures then count. ``rank_counts``: ranks on each node, with each
    of which every configuration is launched; empty: as many as the placement has room for. ``first``: what another
    tuning found, which is confirmed before anything is raced. ``circumstances`` that are None are those of the job that
    measures.
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


class State(msgspec.Struct):
    """What a tuning keeps: ``stages`` has the session file of each that finished."""

    asked: Asked
    stages: dict[str, str] = {}

    @property
    def circumstances(self) -> dict[str, Any]:
        """Those that it was begun under."""
        return self.asked.circumstances


TUNING = Kind("tuning", "tune", "tune.json", State)


class Bench:
    """The launches of the tuning of ``folder``, which was begun or loaded by :data:`TUNING`.

    ``minutes``: another limit of the sessions of pairs than the one that it was begun with.
    """

    def __init__(self, folder: Path, state: State, say: Say, minutes: float | None = None) -> None:
        if minutes is not None:
            state.asked = msgspec.structs.replace(state.asked, minutes=minutes)
        self.folder, self.say, self._state = folder, say, state
        self.asked = state.asked
        self._configured: dict[Configuration, dict[str, str]] = {}

    def settings(self, configuration: Configuration) -> dict[str, str]:
        """What the library is asked for to have ``configuration``; its files are kept in the folder.

        Raises :class:`PlumbError` for a rule that the library cannot be given.
        """
        if configuration not in self._configured:
            folder = self.folder / "settings" / str(len(self._configured))
            folder.mkdir(parents=True, exist_ok=True)
            found = mpi.TABLE[self.asked.family].settings_of(configuration, folder)
            self._configured[configuration] = {one.name: one.value for one in found}
        return self._configured[configuration]

    def variants(self, configuration: Configuration, label: str, launches: int) -> list[Variant]:
        """The variants of ``configuration``, one for each place."""
        settings = self.settings(configuration)
        return [curves.variant(place, label, launches, settings, self.asked.sizes) for place in self.places()]

    def places(self) -> list[Place]:
        """Where each configuration is measured: under each placement, the largest number of ranks first."""
        asked = self.asked
        ranks = {one.placement: one.ranks_per_node for one in asked.program}
        place = (asked.site, asked.partition, asked.stack)
        return [
            Place(*place, name, asked.nodes, count or ranks.get(name))
            for name in asked.placements
            for count in sorted(asked.rank_counts, reverse=True) or (None,)
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
        files = {
            *map(Path, self._state.stages.values()),
            *(store.session_file(self.asked.site, one) for one in sessions),
        }
        launches = [
            launch
            for file in files
            if file.exists()
            for record in store.whole(file, AGAIN)
            for launch in record.launches
        ]
        return len(launches), sum(launch.wall_s for launch in launches)

    def stage(self, name: str, candidates: Sequence[Configuration], rounds: int) -> list[list[Record]]:
        """The records of each of ``candidates``, one for each place, measured unless they were before."""
        variants = [one for each in candidates for one in self.variants(each, race.label(each), rounds)]
        return self._stage(name, variants, rounds)

    def profiles(self) -> list[Record]:
        """The records of the program that the tuning is for, each of its variants launched once under the profile."""
        variants = [msgspec.structs.replace(one, profiled=True, launches=1) for one in self.asked.program]
        return [record for found in self._stage("profile", variants, 1) for record in found]

    def contests(self, name: str, contests: Sequence[Contest], under: Configuration, rounds: int) -> list[list[Record]]:
        """The records of each of ``contests`` under a configuration, one for each place."""
        settings, sizes = self.settings(under), self.asked.sizes
        variants = [
            curves.contest_variant(place, contest, rounds, settings, sizes)
            for contest in contests
            for place in self.places()
        ]
        return self._stage(name, variants, rounds)

    def _stage(self, name: str, variants: Sequence[Variant], rounds: int) -> list[list[Record]]:
        file = self.kept(name)
        if file is None:
            work = self.folder / "work"
            work.mkdir(exist_ok=True)
            self.say(f"{name}: {len(variants) * rounds} launches")
            show = _shortened(self.say)
            file, found = driver.run(variants, work, self.asked.seed, show, into=self.folder / "records")
            self.keep(name, file)
        else:
            found = store.whole(file, AGAIN)
        step = len(self.places())
        return [found[place : place + step] for place in range(0, len(found), step)]


def _shortened(say: Say) -> Say:
    """A line of progress of a launch without what is the same in all of them."""
    return lambda line: say(line.replace("  tune ", "  ").partition(" (disturbed")[0])
