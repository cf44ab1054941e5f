"""Pairs from the records of one session: two for each variant, its baseline and its candidate.

``plumb launch BASELINE.json CANDIDATE.json`` and the live gate write them. A pair is the launch of each record with the
same index: they were started one after the other, in random order. What is not verified, not of one session or not
alternated becomes a reason why the series is INVALID. Pairs that the live gate measured again are left out, after a
check that they are exactly those of its rule (:mod:`plumbline.judge.disturbed`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.judge import disturbed
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records import store
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import WantedFigure
from plumbline.statistics.paired import PairedRule


def read(file: Path, baseline: str | None = None, by_itself: bool = False) -> list[Pairs]:
    """The series of the :func:`couples` of ``file``. ``by_itself`` claims that the candidate disturbs itself."""
    return [pairs for couple in couples(file, baseline) for pairs in pairs_of(*couple, by_itself=by_itself)]


def couples(file: Path, baseline: str | None = None) -> list[tuple[Record, Record]]:
    """The records of ``file`` in couples, the baseline first.

    Of a single couple, ``baseline`` (the beginning of an id) may say which record is the baseline. Raises
    :class:`PlumbError` for a damaged file and for records that do not form couples.
    """
    records: list[Record] = []
    for item in store.read(file):
        if isinstance(item, store.Damage):
            where = f"{item.file}:{item.line}" if item.line else str(item.file)
            raise PlumbError(f"damaged record: {item.reason}", where, "give a whole session file")
        records.append(item)
    if not records or len(records) % 2:
        cure = "give a session of plumb gate or of plumb launch BASELINE.json CANDIDATE.json"
        raise PlumbError(f"{len(records)} records, a gate needs two of each variant", str(file), cure)
    if baseline is not None and _named(baseline, records, file) == 1:
        records.reverse()
    matched = list(zip(records[::2], records[1::2], strict=True))
    for first, second in matched:
        names = [record.variant.name for record in (first, second)]
        if len(matched) > 1 and names[0] != names[1]:
            cure = "give a session of plumb gate, or one of two variants"
            raise PlumbError(f"'{names[0]}' and '{names[1]}' are not the two sides of one variant", str(file), cure)
        if baseline is None and (first.side == "candidate" or second.side == "baseline"):
            cure = "give the session as the gate wrote it, or say with --baseline which record is the baseline"
            raise PlumbError(f"the candidate of '{names[0]}' comes before its baseline", str(file), cure)
    return matched


def _named(baseline: str, records: list[Record], file: Path) -> int:
    """Which of two records has an id that begins with ``baseline``."""
    chosen = [position for position, record in enumerate(records) if record.id.startswith(baseline)]
    if len(chosen) != 1 or len(records) != 2:
        ids = ", ".join(record.id for record in records)
        cure = "give an id" if len(records) == 2 else "in a session of plumb gate the baselines are known"
        raise PlumbError(f"'{baseline}' names {len(chosen)} of the records {ids}", str(file), cure)
    return chosen[0]


def pairs_of(baseline: Record, candidate: Record, state: str = "complete", by_itself: bool = False) -> list[Pairs]:
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
    test = candidate.variant.name
    seen = None if common else disturbed.of(list(zip(baseline.launches, candidate.launches, strict=True)), by_itself)
    sides = [(record, [_Values(launch) for launch in record.launches]) for record in (baseline, candidate)]
    return [_pairs(f"{test}: {name}", wanted[name], sides, common, seen) for name in wanted]


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
    sides = (("baseline", baseline), ("candidate", candidate))
    faults = []
    for side, record in sides:
        reason = (record.reasons or ["no reason recorded"])[0]
        if not record.verified:
            faults.append(f"the {side} is not verified: {reason}")
        elif record.reasons or record.verdict == "invalid":
            faults.append(f"the {side} is invalid: {reason}")
        if record.is_profiled:
            faults.append(f"the {side} was profiled: no measurement")
        if record.state != state:
            faults.append(f"the {side} is {record.state}")
    if baseline.id == candidate.id:
        faults.append("baseline and candidate are the same record")
    if baseline.session != candidate.session:
        faults.append("the records are not of one session: between sessions more than the software differs")
    if baseline.nodes != candidate.nodes:
        faults.append("the records are not of the same nodes")
    return faults or _order(baseline.launches, candidate.launches)


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
                faults.append(f"launch {launch.order} is not verified")
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
    return Pairs(name, baseline, candidate, better, faults[:3], _rule(wanted), is_fixed, seen)


def _rule(wanted: WantedFigure) -> PairedRule | None:
    """The margins stored with the figure, if any: a record is judged later by the margins it was measured with."""
    margins = {"tolerance": wanted.tolerance, "must_detect": wanted.must_detect}
    overrides: dict[str, Any] = {name: margin for name, margin in margins.items() if margin is not None}
    return PairedRule(**overrides) if overrides else None
