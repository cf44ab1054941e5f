"""The pairs of one figure, and what makes them INVALID before any statistics: with a fault there is no PASS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from plumbline.base.units import Better
from plumbline.judge.disturbed import Disturbed
from plumbline.statistics import Floats, Ints, resolution
from plumbline.statistics.paired import CAP, LOOKS, SCALE, PairedRule

#: a candidate faster by more than this factor was measured in another unit, or measured something else
IMPLAUSIBLE = 100.0
#: pairs that differ by so much (log ratio), all by about as much and in both directions, have their sides mixed up
MIXED = 0.02
#: this many different values, each equal in both columns, are one measurement listed twice
COPIED = 10


@dataclass(frozen=True)
class Column:
    """The values of one side, in the order measured.

    ``step`` is the finest step that the values are given in, in their unit (0.01 for 1.23), 0 if unknown.
    ``superseded`` are the values that were measured again, each after how many of those that count.
    """

    values: Sequence[float]
    step: float = 0.0
    superseded: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Pairs:
    """The pairs of one figure; any unit, the same on both sides.

    ``faults`` are the reasons, known where the numbers came from, why they cannot be judged (with file and line).
    ``rule`` is the figure's own; None: the rule of the call counts. ``fixed``: the number of pairs was fixed before
    measuring, and all count; otherwise they were measured until they were decided, 90 at most. ``disturbed``: how many
    of them were, if that is known.
    """

    name: str
    baseline: Column
    candidate: Column
    better: Better
    faults: list[str] = field(default_factory=list)
    rule: PairedRule | None = None
    fixed: bool = False
    disturbed: Disturbed | None = None

    @property
    def counting(self) -> tuple[Floats, Floats]:
        """The values of both sides that count, at most; a faulty series may have fewer."""
        most = None if self.fixed else CAP
        baseline, candidate = (np.asarray(side.values[:most], np.float64) for side in (self.baseline, self.candidate))
        return baseline, candidate

    def judged_by(self, default: PairedRule) -> PairedRule:
        """Its own margins with the ``gain`` of ``default``; without own margins ``default``."""
        return replace(self.rule, gain=default.gain) if self.rule else default


def faults(pairs: Pairs) -> list[str]:
    """Why ``pairs`` cannot be judged, most telling first; empty if they can."""
    if pairs.faults:
        return list(pairs.faults)
    if pairs.better not in ("higher", "lower"):
        return [f"better is '{pairs.better}', neither higher nor lower"]
    baseline, candidate = _array(pairs.baseline.values), _array(pairs.candidate.values)
    if baseline is None or candidate is None:
        return ["a value is missing or no number"]
    reasons = []
    if baseline.size != candidate.size:
        reasons.append(f"{baseline.size} values of the baseline, {candidate.size} of the candidate")
    for side, values in (("baseline", baseline), ("candidate", candidate)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if bad.size:
            reasons.append(f"pair {bad[0] + 1}: the {side} is {values[bad[0]]:g}, not a positive number")
    if not reasons and baseline.size < LOOKS[0]:
        reasons.append(f"{baseline.size} pairs: {LOOKS[0]} are needed")
    if not reasons:
        reasons += _not_measured(baseline, candidate, pairs.better)
    return reasons


def _array(values: Sequence[float]) -> Floats | None:
    try:
        return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _not_measured(baseline: Floats, candidate: Floats, better: Better) -> list[str]:
    if np.array_equal(baseline, candidate) and np.unique(baseline).size >= COPIED:
        return ["every value of the candidate is the baseline's: one measurement, listed twice"]
    logs = log_ratios(baseline, candidate, better) / SCALE
    distance = np.abs(logs)
    usual = float(np.median(distance))
    if usual > MIXED and distance.min() > 0.75 * usual and 3 <= (logs > 0).sum() <= logs.size - 3:
        change = f"about {100 * math.expm1(usual):.0f} %, some up and some down"
        return [f"every pair differs by {change}: sides mixed up, or the order inside a pair decides"]
    factor = math.exp(-float(np.median(logs)))
    if factor > IMPLAUSIBLE:
        return [f"the candidate is {factor:.0f} times better: another unit, or another measurement"]
    return []


def log_ratios(baseline: Floats, candidate: Floats, better: Better) -> Ints:
    """Log ratios in 1e-9, positive where the candidate is worse; values must be positive and finite."""
    logs = np.log(candidate) - np.log(baseline)
    return np.rint((logs if better == "lower" else -logs) * SCALE).astype(np.int64)


def blur(pairs: Pairs) -> int:
    """The log ratio in 1e-9 that rounding may hide (:func:`plumbline.statistics.resolution.hidden`)."""
    steps = (pairs.baseline.step, pairs.candidate.step)
    return round(resolution.hidden(*pairs.counting, steps) * SCALE) if any(steps) else 0
