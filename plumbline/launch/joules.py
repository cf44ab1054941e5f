"""The energy of a launch in joules: on one node by its counters, on several by the scheduler's accounting."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from plumbline import schedulers
from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.host import energy

#: seconds to wait for a step's entry after its end, and between two looks
LATE_S = 10.0
PAUSE_S = 0.5
#: by how many seconds the scheduler's clock may be behind
CLOCKS_S = 5.0


@dataclass(frozen=True)
class Used:
    """Joules by counter, None where there is none; ``remarks`` say why the scheduler's are missing."""

    processors: dict[str, float] | None = None
    gpus: dict[str, float] | None = None
    remarks: tuple[str, ...] = ()


class Meter:
    """Made just before a launch on ``nodes`` nodes; :meth:`used` is asked just after it."""

    def __init__(self, nodes: int, environment: Mapping[str, str]) -> None:
        self._nodes, self._environment = nodes, environment
        self._scheduler = schedulers.current(environment)
        self._missing: str | None = None
        meters = (energy.find(), energy.gpus()) if nodes == 1 else ()
        self._first = [energy.Reading.now(meter) if meter else None for meter in meters]
        self._before = frozenset(self._steps()) if nodes > 1 else frozenset()
        self._begin = time.time()

    def used(self) -> Used:
        """The energy used since this object was made; on several nodes, this waits :data:`LATE_S` at most."""
        if self._nodes > 1:
            return self._by_steps()
        processors, gpus = (start.until(energy.Reading.now(start.meter)) if start else None for start in self._first)
        return Used(processors, gpus)

    def _by_steps(self) -> Used:
        source = self._scheduler.energy_source()
        if source is None:
            return Used()
        deadline = time.monotonic() + LATE_S
        while not (new := self._new()) and not self._missing and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        on_all = [step for step in new if step.nodes == self._nodes]
        if len(new) == len(on_all) == 1 and on_all[0].joules:
            return Used({source: on_all[0].joules})
        seen = [f"{step.joules or 'no'} J on {units.counted(step.nodes, 'node')}" for step in new]
        why = self._missing or f"{source} has {', '.join(seen) or 'no entry of it'}"
        return Used(remarks=(f"no joules: {why}",))

    def _new(self) -> list[schedulers.Step]:
        """The steps that began with this launch: the entry of an earlier launch's step may come as late as this."""
        steps = self._steps().items()
        return [step for name, step in steps if name not in self._before and step.start > self._begin - CLOCKS_S]

    def _steps(self) -> Mapping[str, schedulers.Step]:
        try:
            return self._scheduler.steps(self._environment)
        except PlumbError as error:
            self._missing = str(error)
            return {}
