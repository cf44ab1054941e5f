"""From series of pairs to verdicts, each with its ratio, interval and reason, and to the verdict of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from plumbline.errors import PlumbError
from plumbline.gate import sequential, validity
from plumbline.gate.sequential import CAP, LOOKS, Floats, Ints, Rule
from plumbline.gate.validity import Series

State = Literal["PASS", "FAIL", "INCONCLUSIVE", "INVALID"]

#: exit status of each verdict, the verdicts from best to worst. INVALID is worse than FAIL: where one series shows
#: that the measurement is broken, the others of the same session blame nobody
EXIT: dict[State, int] = {"PASS": 0, "INCONCLUSIVE": 2, "FAIL": 1, "INVALID": 3}
_RANK: dict[State, int] = {state: rank for rank, state in enumerate(EXIT)}


@dataclass(frozen=True)
class Verdict:
    """What the gate says of one series.

    ``ratio`` is candidate / baseline as measured (above 1 is slower for times, faster for rates) with its ``interval``;
    ``detectable`` is a slowdown as a fraction. Those three are None for INVALID. ``pairs`` are those used.
    """

    series: str
    verdict: State
    pairs: int
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    detectable: float | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As printed, numbers to six digits; ``reason`` only where there is one."""
        found: dict[str, Any] = {
            "series": self.series,
            "verdict": self.verdict,
            "pairs": self.pairs,
            "ratio": _short(self.ratio),
            "interval": None if self.interval is None else [_short(end) for end in self.interval],
            "detectable": _short(self.detectable),
        }
        return found | ({"reason": self.reason} if self.reason else {})


def judge(series: Sequence[Series], rule: Rule) -> list[Verdict]:
    """The verdict of each of ``series``, judged as one campaign; raises :class:`PlumbError` if there is none.

    A FAIL has to survive Holm's procedure at 1 % over all series that could be judged. What the series has beyond the
    pairs that decided it counts there; a FAIL that does not survive is INCONCLUSIVE.
    """
    if not series:
        raise PlumbError("0 series to judge", "plumb gate", "nothing measured is not a PASS: see why there are none")
    twice = validity.names_used_twice(series)
    reasons = [["more than one series has this name"] * (item.name in twice) + validity.faults(item) for item in series]
    good = [position for position, found in enumerate(reasons) if not found]
    verdicts = {
        position: Verdict(item.name, "INVALID", min(len(item.baseline), len(item.candidate)), reason="; ".join(found))
        for position, (item, found) in enumerate(zip(series, reasons, strict=True))
        if found
    }
    if good:
        found = _judge([series[position] for position in good], rule)
        verdicts |= dict(zip(good, found, strict=True))
    return [verdicts[position] for position in range(len(series))]


def severity(verdict: Verdict) -> int:
    """0 for PASS, then INCONCLUSIVE, FAIL, INVALID."""
    return _RANK[verdict.verdict]


def worst(verdicts: Sequence[Verdict]) -> State:
    """The campaign's verdict, INVALID before FAIL before INCONCLUSIVE before PASS; INVALID for none at all."""
    return max(verdicts, key=severity).verdict if verdicts else "INVALID"


def _judge(series: list[Series], rule: Rule) -> list[Verdict]:
    counts = np.array([min(len(item.baseline), CAP) for item in series], dtype=np.int64)
    logs = np.zeros((len(series), CAP), dtype=np.int64)
    for row, item in enumerate(series):
        baseline = np.asarray(item.baseline[:CAP], dtype=np.float64)
        candidate = np.asarray(item.candidate[:CAP], dtype=np.float64)
        logs[row, : counts[row]] = validity.log_ratios(baseline, candidate, item.better)
    blur = np.array([validity.blur(item) for item in series], dtype=np.int64)
    decisions = sequential.decide(logs, counts, rule, blur)
    failed = np.flatnonzero(decisions.state == sequential.FAIL)
    p = sequential.evidence(logs[failed], counts[failed], rule, blur[failed])
    survives = dict(zip(failed.tolist(), sequential.holm(p, len(series)).tolist(), strict=True))
    p_of = dict(zip(failed.tolist(), p.tolist(), strict=True))
    verdicts: dict[int, Verdict] = {}
    for pairs in np.unique(decisions.pairs):
        rows = np.flatnonzero(decisions.pairs == pairs)
        used = logs[rows, :pairs]
        estimates = sequential.estimate(used)
        columns = _Columns(
            estimates.centre,
            estimates.low,
            estimates.high,
            sequential.detectable(estimates, blur[rows]),
            sequential.fraction(estimates.high - estimates.centre + blur[rows]),
            sequential.fraction(sequential.visible(estimates, rule, blur[rows])),
            sequential.fraction(sequential.noise(used)),
        )
        for place, row in enumerate(rows.tolist()):
            item, state = series[row], int(decisions.state[row])
            lasting = survives.get(row, True)
            verdict: State = "PASS" if state == sequential.PASS else "FAIL" if state and lasting else "INCONCLUSIVE"
            if verdict == "PASS":
                reason = None
            elif verdict == "FAIL":
                reason = _slower(columns, place, rule)
            elif not lasting:
                reason = (
                    f"{_slower(columns, place, rule)}, but p = {p_of[row]:.1e} with {counts[row]} pairs is too much "
                    f"for a campaign of {len(series)} series (Holm, 1 %): measure up to {CAP} pairs"
                )
            else:
                reason = _undecided(columns, place, rule, int(counts[row]), int(blur[row]))
            ends = _ratios(item, columns.low[place], columns.high[place])
            verdicts[row] = Verdict(
                item.name,
                verdict,
                int(pairs),
                _ratios(item, columns.centre[place], columns.centre[place])[0],
                (min(ends), max(ends)),
                float(sequential.fraction(columns.bound[place]) if verdict == "PASS" else columns.width[place]),
                reason,
            )
    return [verdicts[row] for row in range(len(series))]


@dataclass(frozen=True)
class _Columns:
    """Per row: log ratios in 1e-9 (centre, low, high, bound) and fractions (width, visible, noise)."""

    centre: Floats
    low: Floats
    high: Floats
    bound: Floats
    width: Floats
    visible: Floats
    noise: Floats


def _ratios(item: Series, *logs: float | Floats | Ints) -> tuple[float, ...]:
    sign = 1 if item.better == "lower" else -1
    with np.errstate(over="ignore"):
        values = [float(np.exp(sign * float(value) / sequential.SCALE)) for value in logs]
    largest = float(np.finfo(np.float64).max)  # JSON has no infinity
    return tuple(min(value, largest) for value in values)


def _slower(columns: _Columns, place: int, rule: Rule) -> str:
    low, centre, high = (
        float(sequential.fraction(values[place])) for values in (columns.low, columns.centre, columns.high)
    )
    return f"slower by {percent(centre)} ({percent(low)} to {percent(high)}); {percent(rule.tolerance)} is tolerated"


def _undecided(columns: _Columns, place: int, rule: Rule, count: int, blur: int) -> str:
    seen = f"pair noise {percent(columns.noise[place])}"
    used = min(count, CAP)
    if blur:
        step = percent(float(sequential.fraction(float(blur))))
        return f"the values hardly leave one step of their timer or printout, which is {step} of them"
    low, high = (float(sequential.fraction(values[place])) for values in (columns.low, columns.high))
    if count < CAP:
        after = next(look for look in LOOKS if look > count)
        return f"undecided after {count} pairs, {seen}: the next look is at {after}"
    if columns.visible[place] > rule.must_detect:
        return f"{seen}: a slowdown below {percent(columns.visible[place])} cannot be seen with {used} pairs"
    return (
        f"the slowdown lies between {percent(low)} and {percent(high)}, {seen}: neither above "
        f"{percent(rule.tolerance)} nor below {percent(rule.must_detect)} for certain with {used} pairs"
    )


def percent(value: float | Floats) -> str:
    """A fraction with two significant digits from 0.1 % on: ``5.1 %``, ``12 %``."""
    number = 100 * float(value)
    return f"{number:.0f} %" if abs(number) >= 9.95 else f"{number:.1f} %"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
