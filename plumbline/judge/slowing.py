"""How much the two sides of a duet slow one another: launches beside the other side against launches alone.

Where T is a time alone and s the slowdown beside the other side, the ratio of a duet is that of the times alone times
s(candidate) / s(baseline). Beside another program nothing is faster, so both are at least 1, and the ratio is off by at
most the larger one, whatever the programs share. Its upper bound counts against PASS and against FAIL. Time that a
thread waited for a CPU is taken off: the other side has CPUs of its own.

Waits hide something too. Where they are shorter as soon as one side has ended (a quota of CPU time for both, other work
that moves to the free half), the rest of the slower side is shortened by them: of a slowdown, that part is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from plumbline.base.errors import PlumbError
from plumbline.records.launch import Launch, kind
from plumbline.records.variant import WantedFigure
from plumbline.statistics import Floats, paired
from plumbline.statistics.paired import LOOKS, SCALE, PairedRule

#: the cure for what a duet cannot decide
IN_TURN = "measure in turn: --order turns"
#: why it is not known how much the sides slow one another
TOO_FEW = "other work ran beside most launches that were to be alone"
#: that part of must-detect is a bound with which no more launches alone are made
ENOUGH = 3
#: rounds after which it must be known
ENOUGH_ROUNDS = LOOKS[2]
#: causes that take time of whoever runs, in proportion to the time that it runs: they divide out of the ratio
DIVIDED_OUT = ("the hypervisor took CPU time", "other processes on the planned CPUs", "waits for a CPU")
#: the part of a launch that may count as waiting
MOST_WAITED = 0.9
#: rounds with launches alone before the first bound
FEWEST = 7
#: the bound while it is not known: a factor of e
UNKNOWN = round(SCALE)


@dataclass(frozen=True)
class Slowing:
    """Bounds of the larger slowdown of both sides by one another, as logs in 1e-9; all 0 where nothing was a duet.

    ``uneven``: by how much more, at least, another half changes one side than the other. ``rounds``: those that count.
    ``waited``: the part of the time that a side waits for a CPU only beside the other, in 1e-9. ``swayed``: by how much
    more, at least, waits slow one side than the other.
    """

    low: int = 0
    high: int = 0
    uneven: int = 0
    rounds: int = 0
    waited: int = 0
    swayed: int = 0

    def hidden(self, rule: PairedRule) -> int:
        """The log ratio in 1e-9 that a slowdown of must-detect may be larger than it looks."""
        return self.high + max(self.swayed, round(rule.detected * self.waited / SCALE))


def divides_out(part: Launch) -> bool:
    """Whether all that disturbed a launch takes time in proportion to the time that a program runs."""
    return all(kind(cause) in DIVIDED_OUT for cause in part.disturbance.causes)


def by_half(launch: Launch) -> list[Launch]:
    """The two parts of a round that ran beside the other side, in the order of their halves."""
    return sorted(launch.parts[:2], key=lambda part: part.half.cpus if part.half else [])


def waits(part: Launch) -> float:
    """The log of the slowdown by waits for a CPU."""
    return -math.log1p(-min(part.disturbance.figures.get("delay_fraction", 0.0), MOST_WAITED))


def own_time(part: Launch, wanted: WantedFigure) -> float:
    """The log of the time, or of the inverse of the rate, without the waits for a CPU."""
    item = part.measurement(wanted)
    return (1 if item.better == "lower" else -1) * math.log(item.value) - waits(part)


def slowed(launch: Launch, cost: Callable[[Launch], float]) -> float:
    """By how much more a part beside the other side ``cost`` than the launch alone, in a round that has one."""
    first, second, alone = map(cost, launch.parts)
    return (first + second) / 2 - alone


def slowing(sides: Sequence[Sequence[Launch]], wanted: WantedFigure) -> Slowing:
    """How much both ``sides`` slow one another in a figure; :data:`UNKNOWN` without enough launches that were alone."""
    rounds = [[each for each in launches if each.parts and not each.superseded] for launches in sides]
    alone = [[each for each in launches if len(each.parts) > 2 and divides_out(each.parts[2])] for launches in rounds]
    used = _look(min(map(len, alone)))
    if not used:
        return Slowing(high=UNKNOWN if any(rounds) else 0, rounds=len(rounds[0]))
    cost = partial(own_time, wanted=wanted)
    try:
        logs = np.array([[slowed(each, cost) for each in side[:used]] for side in alone])
        halves = [[list(map(cost, by_half(each))) for each in launches] for launches in rounds]
    except (PlumbError, ValueError):  # a figure that is absent, or no positive number, is a fault of the series
        return Slowing(high=UNKNOWN)
    low, high = bounds(logs)
    more = np.subtract(*(np.diff(side)[:, 0] for side in halves))[: _look(len(halves[0]))]
    waited = (np.array([sum(map(waits, each.parts[:2])) / 2 for each in side]) for side in rounds)
    longer = np.subtract(*waited)[: more.size]
    uneven, _ = bounds(np.stack([more, -more, longer, -longer]))
    beside = max(float(np.median([slowed(each, waits) for each in side])) for side in alone)
    return Slowing(
        max(0, round(low.max())), max(1, round(high.max())), max(0, round(uneven[:2].max())), len(rounds[0]),
        round(-SCALE * math.expm1(-max(0.0, beside))), max(0, round(uneven[2:].max())),
    )  # fmt: skip


def _look(rounds: int) -> int:
    return max((look for look in (FEWEST, *LOOKS) if look <= rounds), default=0)


def bounds(logs: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bound, in 1e-9, of the centre of each row of logs, of :data:`FEWEST` or as many as at a look.

    All looks beyond the first together err by as much as those of FAIL and PASS, the first by 1 in 128.
    """
    errors = paired.Errors(0.5**FEWEST, 0.5**FEWEST) if logs.shape[1] == FEWEST else None
    known = paired.estimate(np.rint(logs * SCALE).astype(np.int64), errors)
    return known.certain_low, known.high
