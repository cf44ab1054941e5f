"""From series of pairs to verdicts, each with its ratio, interval and reason, and to the verdict of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.judge import disturbed, slowing, statement
from plumbline.judge.pairs import Pairs, blur, faults, log_ratios
from plumbline.judge.statement import Statement, nonempty, rounded
from plumbline.statistics import Ints, paired
from plumbline.statistics.basic import holm
from plumbline.statistics.paired import CAP, FAIL_SPENDING, LOOKS, PairedRule

#: probability of any wrong FAIL among all series of a campaign
CAMPAIGN_ERROR = 0.01
#: so many times the log of what must be detected is a difference that disturbance does not make which is alike on both
#: sides (tests/rates/disturbed_alike.py): 21.6 % by the default margins
FAR = 4.0
#: the mark of a verdict that was given all the same
MARKED = "from a disturbed machine"
#: the reason of a PASS without pairs
SAME = "the same program on both sides, so nothing was measured"
#: why an interval that lies wholly beyond the tolerance may not be a FAIL yet
FAIL_NEEDS = f"a FAIL needs {100 * (1 - FAIL_SPENDING.error):g} %"


@dataclass(frozen=True, kw_only=True)
class Verdict(Statement):
    """The result of the gate for one series.

    ``ratio`` is candidate / baseline (above 1 is slower for times, faster for rates), ``count`` the pairs used; an
    INVALID series has neither ratio nor ``detectable``. ``pairs`` is what it was decided from.
    """

    pairs: Pairs

    @property
    def slower(self) -> float | None:
        """How many times as long the candidate takes; None where there is no ratio."""
        return 1 / self.ratio if self.ratio and self.pairs.better == "higher" else self.ratio

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``plumb gate`` prints, numbers to six digits; margins only if the series has its own."""
        numbers = {"ratio": self.ratio, "interval": self.interval, "detectable": self.detectable}
        rule, disturbed = self.pairs.rule, self.pairs.disturbed
        flagged = disturbed.launches if disturbed and any(disturbed.launches) else ()
        return {
            "series": self.subject,
            "verdict": self.state,
            "pairs": self.count,
            **rounded(numbers, 6),
            **nonempty(reason=self.reason, notes=list(self.notes)),
            **nonempty(disturbed=dict(zip(("baseline", "candidate"), flagged, strict=False))),
            **({"tolerance": rule.tolerance, "must_detect": rule.must_detect} if rule else {}),
        }


def closing(verdicts: Sequence[Verdict]) -> str:
    """The line for people at the end, with the notes on verdicts."""
    same = [item.pairs.same for item in verdicts]
    fine = f"slowdowns of {{}} and more are ruled out in every series{' that was measured' * any(same)}"
    line = statement.closing(verdicts, "gate: {}: ", SAME if all(same) else fine)
    slower = (
        f"{item.subject}: {item.reason}" for item in verdicts if item.state == "PASS" and item.ratio and item.reason
    )
    notes = dict.fromkeys([*slower, *(note for item in verdicts for note in item.notes)])
    return "; ".join([line, *(note for note in notes if note not in line)])


def decide(series: Sequence[Pairs], rule: PairedRule) -> list[Verdict]:
    """The verdict of each of ``series``, decided as one campaign; raises :class:`PlumbError` if there is none.

    A FAIL has to survive Holm's procedure at :data:`CAMPAIGN_ERROR` over all series that could be judged; pairs that
    were measured after the deciding look count there too. A FAIL that does not survive is INCONCLUSIVE. A GAIN has to
    survive likewise; one that does not is a PASS if its pairs rule out what must be detected.
    """
    if not series:
        raise PlumbError(
            "0 series to judge",
            "plumb gate",
            "an empty comparison is not a PASS: find the reason for the missing series",
        )
    names = Counter(item.name for item in series)
    reasons = [
        [SAME] if item.same else ["more than one series has this name"] * (names[item.name] > 1) + faults(item)
        for item in series
    ]
    judged = iter(_decide([item for item, why in zip(series, reasons, strict=True) if not why], rule))
    return [
        Verdict(
            item.name,
            "PASS" if item.same else "INVALID",
            min(len(item.baseline.values), len(item.candidate.values)),
            reason="; ".join(why),
            pairs=item,
        )
        if why
        else next(judged)
        for item, why in zip(series, reasons, strict=True)
    ]


@dataclass(frozen=True)
class Standing:
    """How the series ``item`` stands by its own rule, or else that of the call.

    ``logs``: log ratios in 1e-9 of all pairs that count; ``blur``: :func:`plumbline.judge.pairs.blur`; ``state`` was
    decided after ``pairs`` pairs, as in :class:`paired.Decisions`; ``p``: evidence of a FAIL or a GAIN, 1 for anything
    else; ``doubt``: why no verdict may be given, with more pairs neither, or None; ``against``: as ``place`` of
    :func:`_changed`.
    """

    item: Pairs
    rule: PairedRule
    logs: Ints
    blur: int
    state: int
    pairs: int
    p: float
    against: int
    doubt: str | None = None

    @property
    def errors(self) -> paired.Errors:
        """The error probabilities of the look that decided."""
        return paired.FIXED if self.item.fixed else paired.errors_at(self.pairs)

    @cached_property
    def estimates(self) -> paired.Estimates:
        """The estimate of the log ratio by the pairs that decided."""
        return paired.estimate(self.logs[None, : self.pairs], self.errors)

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether more pairs would hardly decide it, by those of the last look."""
        used = max((look for look in LOOKS if look <= self.logs.size), default=CAP)
        if self.state != paired.GO_ON or self.item.fixed or used == CAP:
            return False
        beside = self.item.slowing  # more rounds bring its bounds nearer to one another
        return paired.is_hopeless(self.logs[:used].tobytes(), self.rule, self.blur - beside.high + beside.low)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the log ratio in 1e-9, with what the digits of the values hide."""
        return float(self.estimates.low[0]) - self.blur, float(self.estimates.high[0]) + self.blur

    @property
    def is_far(self) -> bool:
        """Whether the sides differ by :data:`FAR`, with the whole interval; undecided ones by their estimate."""
        far, centre = FAR * self.rule.detected, float(self.estimates.centre[0])
        low, high = (centre, centre) if self.state == paired.GO_ON else self.bounds
        return high < -far if self.state == paired.GAIN else low > far

    @property
    def ratio(self) -> float:
        """The ratio candidate / baseline."""
        return self._ratio(float(self.estimates.centre[0]))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the ratio."""
        low, high = sorted(map(self._ratio, self.bounds))
        return low, high

    def _ratio(self, log: float) -> float:
        with np.errstate(over="ignore"):
            value = float(np.exp((1 if self.item.better == "lower" else -1) * log / paired.SCALE))
        return min(value, float(np.finfo(np.float64).max))  # JSON has no infinity


def standing(series: Sequence[Pairs], rule: PairedRule) -> list[Standing]:
    """The decisions on ``series`` so far, each by its own rule, or else by ``rule``.

    The only fault that one of them may have is too few pairs.
    """
    rules = [item.judged_by(rule) for item in series]
    logs = [log_ratios(*item.counting, item.better) for item in series]
    pairs = np.array([item.size for item in logs], dtype=np.int64)
    hidden = np.array([blur(item, its) for item, its in zip(series, rules, strict=True)], dtype=np.int64)
    state, against = np.zeros(len(series), dtype=np.int64), np.zeros(len(series), dtype=np.int64)
    p = np.ones(len(series))
    alike = group(((rules[row], item.fixed, logs[row].size), row) for row, item in enumerate(series))
    for (series_rule, is_fixed, _), members in alike.items():
        rows, part, extra = np.array(members), np.stack([logs[row] for row in members]), hidden[members]
        if is_fixed:
            state[rows] = paired.look(part, series_rule, extra, paired.FIXED)
        else:
            decisions = paired.decisions(part, pairs[rows], series_rule, extra)
            state[rows], pairs[rows] = decisions.state, decisions.pairs
        against[rows] = paired.contradicting(part, state[rows], series_rule, extra)
        for claim, sign in ((paired.FAIL, 1), (paired.GAIN, -1)):
            claimed = np.flatnonzero(state[rows] == claim)
            p[rows[claimed]] = paired.evidence(sign * part[claimed], series_rule, extra[claimed], is_fixed)
    together = disturbed.together(item.disturbed for item in series)
    numbers = zip(*(values.tolist() for values in (hidden, state, pairs, p, against)), strict=True)
    every = [
        Standing(item, rules[row], logs[row], *values)
        for row, (item, values) in enumerate(zip(series, numbers, strict=True))
    ]
    return [
        replace(each, doubt=_disturbed(each, together) or _changed(each.logs, each.against) or _uneven(each))
        for each in every
    ]


def _disturbed(each: Standing, together: tuple[int, int]) -> str | None:
    """Why disturbance leaves neither PASS nor FAIL for what was decided, or makes more pairs of a series useless."""
    item = each.item
    if item.disturbed is None:
        return None
    if each.state != paired.GO_ON:
        return item.disturbed.doubt(together, each.state != paired.PASS and each.is_far)
    return item.disturbed.lasting(each.is_far) if item.fixed or item.counting[0].size in LOOKS else None


def _decide(series: list[Pairs], rule: PairedRule) -> list[Verdict]:
    standings = standing(series, rule)
    survives = np.ones(len(series), dtype=bool)
    for claim in (paired.FAIL, paired.GAIN):
        claimed = [row for row, each in enumerate(standings) if each.state == claim]
        survives[claimed] = holm(np.array([standings[row].p for row in claimed]), len(series), CAMPAIGN_ERROR)
    return [_verdict(each, bool(survives[row]), len(series)) for row, each in enumerate(standings)]


def _verdict(each: Standing, survives: bool, total: int) -> Verdict:
    claim, centre, (low, high) = each.state, float(each.estimates.centre[0]), each.bounds
    bound = float(paired.detectable(each.estimates, each.blur)[0])
    claims = {
        paired.FAIL: f"slower by {_percent(centre)} ({_percent(low)} to {_percent(high)}); "
        f"{percent(each.rule.tolerance)} is tolerated",
        paired.GAIN: f"faster by {_speedup(centre)} ({_speedup(high)} to {_speedup(low)})",
    }
    state, reason = "INCONCLUSIVE", None
    if each.doubt:
        reason = each.doubt
    elif claim == paired.PASS or (claim == paired.GAIN and not survives and bound <= each.rule.detected):
        state = "PASS"
        if low > 0:
            within = f"less than the {percent(each.rule.must_detect)} that must be seen"
            reason = f"slower for certain, by {_percent(centre)} ({_percent(low)} to {_percent(high)}): {within}"
    elif claim in claims and survives:
        state, reason = "FAIL" if claim == paired.FAIL else "GAIN", claims[claim]
    elif claim in claims:
        more = "measure more pairs" if each.item.fixed else f"measure up to {CAP} pairs"
        reason = (
            f"{claims[claim]}, but p = {each.p:.1e} with {each.logs.size} pairs is too much "
            f"for a campaign of {total} series (Holm, 1 %): {more}"
        )
    else:
        reason = _undecided(each)
    if state not in ("GAIN", "PASS"):
        bound = high - centre
    detectable = float(paired.fraction(bound))
    mostly = each.item.disturbed.mostly if each.item.disturbed and state in ("FAIL", "GAIN") else ""
    notes = (*each.item.notes, *([f"{MARKED}: {mostly}"] if mostly else []))
    return Verdict(
        each.item.name, state, each.pairs, each.ratio, each.interval, detectable, reason, notes, pairs=each.item
    )


def _changed(logs: Ints, place: int) -> str | None:
    """The slowdown of all ``logs``, and that of the part that contradicts it (:func:`paired.contradicting`)."""
    if not place:
        return None
    part = f"the first {place}" if place > 0 else f"the last {-place}"
    inside = logs[:place] if place > 0 else logs[place:]
    whole, its = (_percent(paired.estimate(values[None], paired.FIXED).centre[0]) for values in (logs, inside))
    return f"slower by {whole} over all {logs.size} pairs, but by {its} over {part}: something changed meanwhile"


def _uneven(each: Standing) -> str | None:
    """Why a duet cannot tell: its sides were hardly ever alone, or another half does not change both alike."""
    beside, uneven = each.item.slowing, each.item.slowing.uneven
    if beside.high == slowing.UNKNOWN and beside.rounds >= slowing.ENOUGH_ROUNDS:
        return f"{slowing.TOO_FEW}: {slowing.IN_TURN}, or on a quieter host"
    words = f"the halves are no twins: one side is slower by {_percent(uneven)} more than the other in one of them"
    return f"{words}: {slowing.IN_TURN}" if uneven > each.rule.detected else None


def _undecided(each: Standing) -> str:
    """Why a series is neither PASS nor FAIL."""
    used, rule, pairs = each.logs[None, : each.pairs], each.rule, each.pairs
    if each.is_hopeless and each.item.step > rule.must_detect:
        return coarse(each.item, rule)
    exact = paired.look(used, rule, np.zeros(1, dtype=np.int64), each.errors)[0]
    beside, hidden = each.item.slowing, each.item.slowing.hidden(rule)
    if 2 * hidden > each.blur and (exact != paired.GO_ON or beside.high > rule.detected):
        bounds = f"{_percent(beside.low)} to {_percent(beside.high)}"
        reason = f"side by side they may slow one another by {bounds}, which may hide a slowdown"
        if 2 * beside.high < hidden:
            reason = f"waits for a CPU, longer side by side than alone, may hide a slowdown: {_percent(hidden)} of it"
        return f"{slowing.TOO_FEW if beside.high == slowing.UNKNOWN else reason}: {slowing.IN_TURN}"
    if each.blur and exact != paired.GO_ON:
        return (
            f"the values have few digits, in steps of {percent(each.item.step)}, or hardly leave one: that may hide "
            f"{_percent(each.blur)}; without it this would be decided: print more digits"
        )
    seen = f"pair noise {_percent(paired.noise(used)[0])}"
    after = None if each.item.fixed or each.is_hopeless else next_look(pairs)
    ended = f"with {pairs} pairs{', and more would decide it in fewer than 1 of 100 cases' * each.is_hopeless}"
    low, high = each.bounds
    if low > rule.tolerated:
        lies = f"{_percent(low)} to {_percent(high)}, {seen}"
        slower = f"slower than {percent(rule.tolerance)} with 99 % certainty ({lies}), but {FAIL_NEEDS}"
        return f"{slower}: " + (f"the next look is at {after} pairs" if after else f"{pairs} pairs are too few for it")
    if after:
        return f"undecided after {pairs} pairs, {seen}: the next look is at {after}"
    visible = float(paired.fraction(paired.visible(each.estimates, rule, each.errors, each.blur)[0]))
    if visible > rule.must_detect:
        return f"{seen}: a slowdown below {percent(visible)} cannot be seen {ended}"
    return (
        f"the slowdown lies between {_percent(low)} and {_percent(high)}, {seen}: neither "
        f"above {percent(rule.tolerance)} nor below {percent(rule.must_detect)} for certain {ended}"
    )


def coarse(pairs: Pairs, rule: PairedRule, finer: Sequence[str] = ()) -> str:
    """That the steps of a figure are too coarse to see what must be seen; ``finer`` figures are not."""
    cure = f"take {' or '.join(finer)} instead" if finer else "print more digits, or take another figure"
    return f"printed in steps of {percent(pairs.step)}: no gate of {percent(rule.must_detect)}; {cure}"


def too_coarse(series: Sequence[Pairs], rule: PairedRule) -> list[str]:
    """A line for each of ``series``, of one variant, whose steps hide more than must be seen."""
    steps = [(item, item.judged_by(rule)) for item in series if not item.faults]
    finer = [item.name.rpartition(": ")[2] for item, its in steps if 2 * item.step < its.must_detect]
    return [f"{item.name}: {coarse(item, its, finer)}" for item, its in steps if item.step > its.must_detect]


def next_look(pairs: int) -> int | None:
    """At how many pairs a series is looked at that is undecided after ``pairs``; None after the last look."""
    return next((look for look in LOOKS if look > pairs), None)


def _percent(log: float) -> str:
    """A log ratio in 1e-9 for people."""
    return percent(float(paired.fraction(log)))


def _speedup(log: float) -> str:
    """A log ratio in 1e-9, negative where the candidate is faster, as the part of the time that is saved."""
    return percent(-float(paired.fraction(log)))
