"""From series of pairs to verdicts, each with its ratio, interval and reason, and to the verdict of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.judge import disturbed, statement
from plumbline.judge.pairs import Pairs, blur, faults, log_ratios
from plumbline.judge.statement import Statement, nonempty, rounded
from plumbline.statistics import Floats, Ints, paired
from plumbline.statistics.basic import holm
from plumbline.statistics.paired import CAP, FAIL_SPENDING, LOOKS, PairedRule

#: probability of any wrong FAIL among all series of a campaign
CAMPAIGN_ERROR = 0.01
#: why an interval that lies wholly beyond the tolerance may not be a FAIL yet
FAIL_NEEDS = f"a FAIL needs {100 * (1 - FAIL_SPENDING.error):g} %"


@dataclass(frozen=True, kw_only=True)
class Verdict(Statement):
    """The result of the gate for one series.

    ``ratio`` is candidate / baseline (above 1 is slower for times, faster for rates), ``count`` the pairs used; an
    INVALID series has neither ratio nor ``detectable``. ``pairs`` is what it was decided from.
    """

    pairs: Pairs

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
            **nonempty(reason=self.reason, disturbed=dict(zip(("baseline", "candidate"), flagged, strict=False))),
            **({"tolerance": rule.tolerance, "must_detect": rule.must_detect} if rule else {}),
        }


def closing(verdicts: Sequence[Verdict]) -> str:
    """The line for people at the end."""
    return statement.closing(verdicts, "gate: {}: ", "slowdowns of {} and more are ruled out in every series")


def decide(series: Sequence[Pairs], rule: PairedRule) -> list[Verdict]:
    """The verdict of each of ``series``, decided as one campaign; raises :class:`PlumbError` if there is none.

    A FAIL has to survive Holm's procedure at :data:`CAMPAIGN_ERROR` over all series that could be judged; pairs that
    were measured after the deciding look count there too. A FAIL that does not survive is INCONCLUSIVE. A GAIN has to
    survive likewise; one that does not is a PASS if its pairs rule out what must be detected.
    """
    if not series:
        raise PlumbError("0 series to judge", "plumb gate", "nothing measured is not a PASS: see why nothing was")
    names = Counter(item.name for item in series)
    reasons = [["more than one series has this name"] * (names[item.name] > 1) + faults(item) for item in series]
    judged = iter(_decide([item for item, why in zip(series, reasons, strict=True) if not why], rule))
    return [
        Verdict(
            item.name,
            "INVALID",
            min(len(item.baseline.values), len(item.candidate.values)),
            reason="; ".join(why),
            pairs=item,
        )
        if why
        else next(judged)
        for item, why in zip(series, reasons, strict=True)
    ]


def standing(series: Sequence[Pairs], rule: PairedRule) -> Standing:
    """The decisions on ``series`` so far, each by its own rule, or else by ``rule``.

    The only fault that one of them may have is too few pairs.
    """
    rules = [item.judged_by(rule) for item in series]
    logs = [log_ratios(*item.counting, item.better) for item in series]
    pairs = np.array([item.size for item in logs], dtype=np.int64)
    hidden = np.array([blur(item) for item in series], dtype=np.int64)
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
    doubts = [
        _disturbed(item, together, int(state[row])) or _changed(logs[row], int(against[row]))
        for row, item in enumerate(series)
    ]
    return Standing(rules, logs, hidden, state, pairs, p, doubts)


def _disturbed(item: Pairs, together: tuple[int, int], state: int) -> str | None:
    """Why disturbance leaves neither PASS nor FAIL for what was decided, or makes more pairs of ``item`` useless."""
    if item.disturbed is None:
        return None
    if state != paired.GO_ON:
        return item.disturbed.doubt(together)
    return item.disturbed.lasting() if item.fixed or item.counting[0].size in LOOKS else None


def errors_of(item: Pairs, pairs: int) -> paired.Errors:
    """The error probabilities of the look that decided ``item`` after ``pairs`` pairs."""
    return paired.FIXED if item.fixed else paired.errors_at(pairs)


def _decide(series: list[Pairs], rule: PairedRule) -> list[Verdict]:
    if not series:
        return []
    decided = standing(series, rule)
    survives = np.ones(len(series), dtype=bool)
    for claim in (paired.FAIL, paired.GAIN):
        claimed = np.flatnonzero(decided.state == claim)
        survives[claimed] = holm(decided.p[claimed], len(series), CAMPAIGN_ERROR)
    return [_verdict(item, decided, row, bool(survives[row])) for row, item in enumerate(series)]


def _verdict(item: Pairs, decided: Standing, row: int, survives: bool) -> Verdict:
    rule, claim, pairs, hidden = (
        decided.rules[row],
        int(decided.state[row]),
        int(decided.pairs[row]),
        int(decided.blur[row]),
    )
    used = decided.logs[row][None, :pairs]
    estimates = paired.estimate(used, errors_of(item, pairs))
    centre, (low, high) = float(estimates.centre[0]), bounds(estimates, hidden)
    bound = float(paired.detectable(estimates, hidden)[0])
    claims = {
        paired.FAIL: f"slower by {_percent(centre)} ({_percent(low)} to {_percent(high)}); "
        f"{percent(rule.tolerance)} is tolerated",
        paired.GAIN: f"faster by {_speedup(centre)} ({_speedup(high)} to {_speedup(low)})",
    }
    state, reason = "INCONCLUSIVE", None
    if decided.doubts[row]:
        reason = decided.doubts[row]
    elif claim == paired.PASS or (claim == paired.GAIN and not survives and bound <= rule.detected):
        state = "PASS"
    elif claim in claims and survives:
        state, reason = "FAIL" if claim == paired.FAIL else "GAIN", claims[claim]
    elif claim in claims:
        more = "measure more pairs" if item.fixed else f"measure up to {CAP} pairs"
        reason = (
            f"{claims[claim]}, but p = {decided.p[row]:.1e} with {decided.logs[row].size} pairs is too much "
            f"for a campaign of {len(decided.rules)} series (Holm, 1 %): {more}"
        )
    else:
        reason = _undecided(item, estimates, used, rule, hidden)
    if state not in ("GAIN", "PASS"):
        bound = high - centre
    ends = ratios(item, low, high)
    return Verdict(
        item.name,
        state,
        pairs,
        ratios(item, centre)[0],
        (min(ends), max(ends)),
        float(paired.fraction(bound)),
        reason,
        pairs=item,
    )


def _changed(logs: Ints, place: int) -> str | None:
    """The slowdown of all ``logs``, and that of the part that contradicts it (:func:`paired.contradicting`)."""
    if not place:
        return None
    part = f"the first {place}" if place > 0 else f"the last {-place}"
    inside = logs[:place] if place > 0 else logs[place:]
    whole, its = (_percent(paired.estimate(values[None], paired.FIXED).centre[0]) for values in (logs, inside))
    return f"slower by {whole} over all {logs.size} pairs, but by {its} over {part}: something changed meanwhile"


@dataclass(frozen=True)
class Standing:
    """One element per series: what was looked at and what was decided.

    ``logs``: log ratios in 1e-9 of all pairs that count; ``blur``: :func:`plumbline.judge.pairs.blur` of each;
    ``state`` and ``pairs``: as in :class:`paired.Decisions`; ``p``: evidence of a FAIL or a GAIN, 1 for anything
    else; ``doubts``: why no verdict may be given, with more pairs neither, or None.
    """

    rules: list[PairedRule]
    logs: list[Ints]
    blur: Ints
    state: Ints
    pairs: Ints
    p: Floats
    doubts: list[str | None]


def bounds(estimates: paired.Estimates, hidden: int) -> tuple[float, float]:
    """The interval of one series' log ratio in 1e-9, with what the digits of its values hide."""
    return float(estimates.low[0]) - hidden, float(estimates.high[0]) + hidden


def ratios(item: Pairs, *logs: float | Floats | Ints) -> tuple[float, ...]:
    """The ratios candidate / baseline that log ratios of ``item`` in 1e-9 stand for."""
    sign = 1 if item.better == "lower" else -1
    with np.errstate(over="ignore"):
        values = [float(np.exp(sign * float(value) / paired.SCALE)) for value in logs]
    largest = float(np.finfo(np.float64).max)  # JSON has no infinity
    return tuple(min(value, largest) for value in values)


def _undecided(item: Pairs, estimates: paired.Estimates, used: Ints, rule: PairedRule, hidden: int) -> str:
    """Why ``item`` is neither PASS nor FAIL, by its ``estimates`` and the log ratios ``used`` for them."""
    pairs = used.shape[1]
    exact = paired.look(used, rule, np.zeros(1, dtype=np.int64), errors_of(item, pairs))[0]
    if hidden and exact != paired.GO_ON:
        return (
            f"the values have few digits, or hardly leave one step of their timer: that may hide {_percent(hidden)}; "
            "without it this would be decided: print more digits"
        )
    seen = f"pair noise {_percent(paired.noise(used)[0])}"
    after = None if item.fixed else next_look(pairs)
    low, high = bounds(estimates, hidden)
    if low > rule.tolerated:
        lies = f"{_percent(low)} to {_percent(high)}, {seen}"
        slower = f"slower than {percent(rule.tolerance)} with 99 % certainty ({lies}), but {FAIL_NEEDS}"
        return f"{slower}: " + (f"the next look is at {after} pairs" if after else f"{pairs} pairs are too few for it")
    if after:
        return f"undecided after {pairs} pairs, {seen}: the next look is at {after}"
    visible = float(paired.fraction(paired.visible(estimates, rule, errors_of(item, pairs), hidden)[0]))
    if visible > rule.must_detect:
        return f"{seen}: a slowdown below {percent(visible)} cannot be seen with {pairs} pairs"
    return (
        f"the slowdown lies between {_percent(low)} and {_percent(high)}, {seen}: neither "
        f"above {percent(rule.tolerance)} nor below {percent(rule.must_detect)} for certain with {pairs} pairs"
    )


def next_look(pairs: int) -> int | None:
    """At how many pairs a series is looked at that is undecided after ``pairs``; None after the last look."""
    return next((look for look in LOOKS if look > pairs), None)


def _percent(log: float) -> str:
    """A log ratio in 1e-9 for people."""
    return percent(float(paired.fraction(log)))


def _speedup(log: float) -> str:
    """A log ratio in 1e-9, negative where the candidate is faster, as the part of the time that is saved."""
    return percent(-float(paired.fraction(log)))
