"""From series of pairs to verdicts, each with its ratio, interval and reason, and to the verdict of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    ``detectable`` is a slowdown as a fraction. Those three are None for INVALID. ``pairs`` are those used; ``rule`` is
    the series' own, if it has one.
    """

    series: str
    verdict: State
    pairs: int
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    detectable: float | None = None
    reason: str | None = None
    rule: Rule | None = None

    def to_dict(self) -> dict[str, Any]:
        """As printed, numbers to six digits; ``reason`` and margins only where there are any of its own."""
        found: dict[str, Any] = {
            "series": self.series,
            "verdict": self.verdict,
            "pairs": self.pairs,
            "ratio": _short(self.ratio),
            "interval": None if self.interval is None else [_short(end) for end in self.interval],
            "detectable": _short(self.detectable),
        }
        return found | ({"reason": self.reason} if self.reason else {}) | (asdict(self.rule) if self.rule else {})


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
        position: Verdict(
            item.name,
            "INVALID",
            min(len(item.baseline), len(item.candidate)),
            reason="; ".join(found),
            rule=item.rule,
        )
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


def standing(series: Sequence[Series], rule: Rule) -> Standing:
    """How ``series``, none of which has a fault but too few pairs, stand; each by its own rule if it has one."""
    rules = [item.rule or rule for item in series]
    counts = np.array([min(len(item.baseline), CAP) for item in series], dtype=np.int64)
    logs = np.zeros((len(series), CAP), dtype=np.int64)
    for row, item in enumerate(series):
        baseline = np.asarray(item.baseline[:CAP], dtype=np.float64)
        candidate = np.asarray(item.candidate[:CAP], dtype=np.float64)
        logs[row, : counts[row]] = validity.log_ratios(baseline, candidate, item.better)
    blur = np.array([validity.blur(item) for item in series], dtype=np.int64)
    state, pairs = np.zeros(len(series), dtype=np.int64), np.zeros(len(series), dtype=np.int64)
    p = np.ones(len(series))
    for one in dict.fromkeys(rules):
        rows = np.array([row for row, its in enumerate(rules) if its == one])
        found = sequential.decide(logs[rows], counts[rows], one, blur[rows])
        state[rows], pairs[rows] = found.state, found.pairs
        failed = rows[found.state == sequential.FAIL]
        p[failed] = sequential.evidence(logs[failed], counts[failed], one, blur[failed])
    return Standing(rules, logs, counts, blur, state, pairs, p)


def _judge(series: list[Series], rule: Rule) -> list[Verdict]:
    found = standing(series, rule)
    failed = np.flatnonzero(found.state == sequential.FAIL)
    survives = np.ones(len(series), dtype=bool)
    survives[failed] = sequential.holm(found.p[failed], len(series))
    groups: dict[tuple[Rule, int], list[int]] = {}
    for row in range(len(series)):
        groups.setdefault((found.rules[row], int(found.pairs[row])), []).append(row)
    verdicts: dict[int, Verdict] = {}
    for (its, pairs), rows in groups.items():
        columns = _columns(found, rows, its, pairs)
        for place, row in enumerate(rows):
            verdicts[row] = _verdict(series[row], found, row, columns, place, bool(survives[row]))
    return [verdicts[row] for row in range(len(series))]


def _verdict(item: Series, found: Standing, row: int, columns: _Columns, place: int, survives: bool) -> Verdict:
    rule, count, state = found.rules[row], int(found.counts[row]), int(found.state[row])
    verdict: State = "INCONCLUSIVE"
    if state == sequential.PASS:
        verdict, reason = "PASS", None
    elif state == sequential.FAIL and survives:
        verdict, reason = "FAIL", _slower(columns, place, rule)
    elif state == sequential.FAIL:
        reason = (
            f"{_slower(columns, place, rule)}, but p = {found.p[row]:.1e} with {count} pairs is too much "
            f"for a campaign of {len(found.rules)} series (Holm, 1 %): measure up to {CAP} pairs"
        )
    else:
        reason = _undecided(columns, place, rule, count, int(found.blur[row]))
    ends = ratios(item, columns.low[place], columns.high[place])
    return Verdict(
        item.name,
        verdict,
        int(found.pairs[row]),
        ratios(item, columns.centre[place])[0],
        (min(ends), max(ends)),
        float(sequential.fraction(columns.bound[place]) if verdict == "PASS" else columns.width[place]),
        reason,
        item.rule,
    )


def _columns(found: Standing, rows: list[int], rule: Rule, pairs: int) -> _Columns:
    """The numbers of ``rows``, which have the same rule and number of pairs used."""
    used, blur = found.logs[rows, :pairs], found.blur[rows]
    estimates = sequential.estimate(used)
    return _Columns(
        estimates.centre,
        estimates.low,
        estimates.high,
        sequential.detectable(estimates, blur),
        sequential.fraction(estimates.high - estimates.centre + blur),
        sequential.fraction(sequential.visible(estimates, rule, pairs, blur)),
        sequential.fraction(sequential.noise(used)),
    )


@dataclass(frozen=True)
class Standing:
    """One element (or row) per series: what sequential looks at and what it decided.

    ``logs``: log ratios in 1e-9, filled up to ``counts``; ``state`` and ``pairs``: of :class:`sequential.Decisions`;
    ``p``: evidence of a FAIL, 1 for anything else.
    """

    rules: list[Rule]
    logs: Ints
    counts: Ints
    blur: Ints
    state: Ints
    pairs: Ints
    p: Floats


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


def ratios(item: Series, *logs: float | Floats | Ints) -> tuple[float, ...]:
    """Candidate over baseline of log ratios in 1e-9 of ``item``."""
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
