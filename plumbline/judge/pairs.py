"""The pairs of one figure, from the records of one session, and what makes them INVALID before any statistics.

``plumb launch BASELINE.json CANDIDATE.json`` and the live gate write two records for each variant, its baseline and its
candidate. A pair is the launch of each record with the same index: they were started one after the other, in random
order. What is not verified, not of one session or not alternated becomes a reason why the series is INVALID: with a
fault there is no PASS. Pairs that the live gate measured again are left out, after a check that they are exactly those
of its rule (:mod:`plumbline.judge.disturbed`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better, counted, percent
from plumbline.judge import disturbed, slowing
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.slowing import Slowing
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records import store
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import WantedFigure
from plumbline.statistics import Floats, Ints, basic
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
    of them were, if that is known. ``notes`` go with any verdict on them. ``same``: both sides are the same program,
    and nothing was measured. ``slowing``: how much the sides of a duet slow one another.
    """

    name: str
    baseline: Column
    candidate: Column
    better: Better
    faults: list[str] = field(default_factory=list)
    rule: PairedRule | None = None
    fixed: bool = False
    disturbed: Disturbed | None = None
    notes: tuple[str, ...] = ()
    same: bool = False
    slowing: Slowing = field(default_factory=Slowing)

    @property
    def counting(self) -> tuple[Floats, Floats]:
        """The values of both sides that count, at most; a faulty series may have fewer."""
        most = None if self.fixed else CAP
        baseline, candidate = (np.asarray(side.values[:most], np.float64) for side in (self.baseline, self.candidate))
        return baseline, candidate

    @property
    def step(self) -> float:
        """The coarser step of both sides, as a part of their values."""
        sides = (self.baseline, self.candidate)
        return max((side.step / abs(float(np.median(side.values))) for side in sides if side.step), default=0.0)

    def judged_by(self, default: PairedRule) -> PairedRule:
        """Its own margins with the ``gain`` of ``default``; without own margins ``default``."""
        return replace(self.rule, gain=default.gain) if self.rule else default


def faults(pairs: Pairs) -> list[str]:
    """Why ``pairs`` cannot be judged, most telling first; empty if they can."""
    if pairs.faults:
        return list(pairs.faults)
    baseline, candidate = (np.asarray(side.values, np.float64) for side in (pairs.baseline, pairs.candidate))
    reasons = []
    if baseline.size != candidate.size:
        reasons.append(f"{baseline.size} values of the baseline, {candidate.size} of the candidate")
    for side, values in (("baseline", baseline), ("candidate", candidate)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if bad.size:
            reasons.append(f"pair {bad[0] + 1}: the {side} is {values[bad[0]]:g}, not a positive number")
    if not reasons and baseline.size < LOOKS[0]:
        reasons.append(f"{counted(baseline.size, 'pair')}: {LOOKS[0]} are needed")
    if not reasons:
        reasons += _not_measured(baseline, candidate, pairs.better)
    return reasons


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


def blur(pairs: Pairs, rule: PairedRule) -> int:
    """The log ratio in 1e-9 that rounding (:func:`plumbline.statistics.basic.hidden`) and a duet may hide."""
    steps = (pairs.baseline.step, pairs.candidate.step)
    return pairs.slowing.hidden(rule) + (round(basic.hidden(*pairs.counting, steps) * SCALE) if any(steps) else 0)


def read_pairs(file: Path, baseline: str | None = None, by_itself: bool = False) -> list[Pairs]:
    """The series of the :func:`read_couples` of ``file``. ``by_itself`` claims that the candidate disturbs itself."""
    return [
        pairs for couple in read_couples(file, baseline) for pairs in pairs_of_records(*couple, by_itself=by_itself)
    ]


def read_couples(file: Path, baseline: str | None = None) -> list[tuple[Record, Record]]:
    """The records of ``file`` in couples, the baseline first.

    Of a single couple, ``baseline`` (the beginning of an id) may say which record is the baseline. Raises
    :class:`PlumbError` for a damaged file and for records that do not form couples.
    """
    records = store.whole(file, "give a whole session file")
    if not records or len(records) % 2:
        raise PlumbError(
            f"{len(records)} records, a gate needs two of each variant",
            str(file),
            "give a session of plumb gate or of plumb launch BASELINE.json CANDIDATE.json",
        )
    if baseline is not None and _named(baseline, records, file) == 1:
        records.reverse()
    matched = list(zip(records[::2], records[1::2], strict=True))
    for first, second in matched:
        names = [record.variant.name for record in (first, second)]
        if len(matched) > 1 and names[0] != names[1]:
            raise PlumbError(
                f"'{names[0]}' and '{names[1]}' are not the two sides of one variant",
                str(file),
                "give a session of plumb gate, or one of two variants",
            )
        if baseline is None and (first.side == "candidate" or second.side == "baseline"):
            raise PlumbError(
                f"the candidate of '{names[0]}' comes before its baseline",
                str(file),
                "give the session as the gate wrote it, or say with --baseline which record is the baseline",
            )
    return matched


def _named(baseline: str, records: list[Record], file: Path) -> int:
    """Which of two records has an id that begins with ``baseline``."""
    chosen = [position for position, record in enumerate(records) if record.id.startswith(baseline)]
    if len(chosen) != 1 or len(records) != 2:
        ids = ", ".join(record.id for record in records)
        raise PlumbError(
            f"'{baseline}' names {len(chosen)} of the records {ids}",
            str(file),
            "give an id" if len(records) == 2 else "in a session of plumb gate the baselines are known",
        )
    return chosen[0]


def pairs_of_records(
    baseline: Record, candidate: Record, state: str = "complete", by_itself: bool = False
) -> list[Pairs]:
    """A series of pairs for each figure that either variant names, except optional ones.

    ``state`` is the state that both records must have: the live gate judges records that are still ``running``.
    ``by_itself`` claims that the candidate disturbs itself.
    """
    common = _faults(baseline, candidate, state)
    wanted = {
        figure.name: figure
        for record in (candidate, baseline)
        for figure in record.variant.figures
        if not figure.optional
    }  # the baseline's own definition wins
    seen = None if common else disturbed.of(list(zip(baseline.launches, candidate.launches, strict=True)), by_itself)
    sides = [(record, [_Values(launch) for launch in record.launches]) for record in (baseline, candidate)]
    return [_pairs(f"{candidate.variant.name}: {name}", wanted[name], sides, common, seen) for name in wanted]


def efficiency(name: str, pairs: Pairs, base: Pairs, grown: float) -> Pairs:
    """The series of the efficiencies of a point of a curve over its ``base``, whose number is ``grown`` times smaller.

    The k-th value is of the k-th pairs that count at both points.
    """
    number = min(len(pairs.baseline.values), len(base.baseline.values))

    def column(mine: Column, first: Column) -> Column:
        old, new = (np.asarray(side.values[:number], np.float64) for side in (first, mine))
        ratio = new / old if pairs.better == "higher" else old / new
        steps = sum(side.step / abs(float(np.median(side.values))) for side in (mine, first) if side.step)
        return Column((ratio / grown).tolist(), steps * float(np.median(ratio)) / grown if number else 0.0)

    faults = list(dict.fromkeys([*pairs.faults, *base.faults]))
    both = ((pairs.baseline, base.baseline), (pairs.candidate, base.candidate))
    baseline, candidate = (Column([]) if faults else column(*each) for each in both)
    seen = max(filter(None, (pairs.disturbed, base.disturbed)), key=lambda each: each.restless, default=None)
    return Pairs(name, baseline, candidate, "higher", faults, pairs.rule, pairs.fixed, seen, pairs.notes)


def measured(record: Record) -> list[Pairs]:
    """The figures of one record as if both sides had measured them, to see their digits."""
    series = []
    for wanted in record.variant.figures:
        with contextlib.suppress(PlumbError):
            items = [launch.measurement(wanted) for launch in record.launches if launch.verified]
            column = Column([item.value for item in items], step_of(items))
            series.append(
                Pairs(f"{record.variant.test}: {wanted.name}", column, column, "lower", rule=_rule_of(wanted))
            )
    return series


def _rule_of(wanted: WantedFigure) -> PairedRule | None:
    """A record is judged later by the margins that it was measured with."""
    margins = {"tolerance": wanted.tolerance, "must_detect": wanted.must_detect}
    overrides: dict[str, Any] = {name: margin for name, margin in margins.items() if margin is not None}
    return PairedRule(**overrides) if overrides else None


class _Values:
    """The measurements of a launch by all their parameters: a launch may have thousands, and as many figures."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._known = group(((item.metric, _words(item.params)), item) for item in launch.measurements)
        self._names = {(item.metric, frozenset(item.params)) for item in launch.measurements}

    def of(self, wanted: WantedFigure) -> Measurement:
        """As :meth:`Launch.measurement`."""
        names = frozenset(wanted.where)
        others = any(metric == wanted.metric and names < more for metric, more in self._names)
        exact = self._known.get((wanted.metric, _words(wanted.where)), [])
        return exact[0] if len(exact) == 1 and not others else self._launch.measurement(wanted)


def _words(params: dict[str, Any]) -> str:
    return repr(sorted(params.items()))


def _faults(baseline: Record, candidate: Record, state: str) -> list[str]:
    checks = []
    for side, record in (("baseline", baseline), ("candidate", candidate)):
        reason = (record.reasons or ["no reason recorded"])[0]
        checks += [
            (not record.verified, f"the {side} {'is not verified' if record.site else 'failed'}: {reason}"),
            (record.verified and (record.reasons or record.verdict == "invalid"), f"the {side} is invalid: {reason}"),
            (record.is_profiled, f"the {side} was profiled: no measurement"),
            (record.state != state, f"the {side} is {record.state}"),
        ]
    other_session = baseline.session != candidate.session
    checks += [
        (baseline.id == candidate.id, "baseline and candidate are the same record"),
        (other_session, "the records are not of one session: between sessions more than the software differs"),
        (baseline.nodes != candidate.nodes, "the records are not of the same nodes"),
    ]
    return [fault for holds, fault in checks if holds] or _order(baseline.launches, candidate.launches)


def _order(baseline: list[Launch], candidate: list[Launch]) -> list[str]:
    if len(baseline) != len(candidate):
        return [f"{len(baseline)} launches of the baseline, {len(candidate)} of the candidate"]
    for launches in (baseline, candidate):
        if [item.index for item in launches] != list(range(len(launches))):
            return ["launches are missing or out of order"]
    last = -1
    pairs = list(zip(baseline, candidate, strict=True))
    for first, second in pairs:
        low, high = sorted((first.order, second.order))
        if low % 2 or high != low + 1 or low <= last:
            return [f"launches {first.order} and {second.order} are not a pair: the variants were not alternated"]
        last = low
    return disturbed.faults_of_repeats(pairs)


def _pairs(
    name: str,
    wanted: WantedFigure,
    sides: list[tuple[Record, list[_Values]]],
    common: list[str],
    seen: Disturbed | None,
) -> Pairs:
    faults = list(common)
    measured: list[tuple[list[Measurement], list[tuple[int, float]]]] = []
    kinds: set[tuple[str, Better]] = set()
    for record, known in sides:
        kept: list[Measurement] = []
        again: list[tuple[int, float]] = []
        measured.append((kept, again))
        for launch, values in zip(record.launches, known, strict=True):
            if not launch.verified or launch.status != "ok":
                faults += [f"launch {launch.order} is not verified"] if record.verified else []
                continue
            try:
                item = values.of(wanted)
            except PlumbError as error:
                faults.append(str(error))
                continue
            if launch.superseded:
                again.append((len(kept), item.value))
            else:
                kept.append(item)
            kinds.add((item.unit, item.better))
    if len(kinds) > 1:
        faults.append(f"units or directions differ: {', '.join(' '.join(kind) for kind in sorted(kinds))}")
    baseline, candidate = (
        Column([item.value for item in kept], *(() if faults else (step_of(kept), again))) for kept, again in measured
    )
    better: Better = next(iter(kinds))[1] if kinds else "lower"
    is_fixed = all(record.side is None for record, _ in sides)
    unproven = [launch.unproven for record, _ in sides for launch in record.launches if launch.unproven][:1]
    beside = slowing.slowing([record.launches for record, _ in sides], wanted)
    notes = [f"side by side they slow one another by at most {percent(math.expm1(beside.high / SCALE))}"]
    notes = unproven + notes * (0 < beside.high < slowing.UNKNOWN)
    return Pairs(
        name, baseline, candidate, better, faults[:3], _rule_of(wanted), is_fixed, seen, tuple(notes), slowing=beside
    )
