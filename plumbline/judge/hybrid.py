"""The best hybrid code against the best pure MPI code on the same nodes.

"You have to compare apples to apples, i.e. the best hybrid code to the best pure MPI code" (RRZE 2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.base import group, units
from plumbline.judge.statement import Statement
from plumbline.records import naming
from plumbline.records.model import AnyRecord
from plumbline.statistics import unpaired

#: the parameter that names the mode of a code, and its value without threads
MODE, PURE = "operation", "pure"
#: parameters in which the codes that are compared may differ: how they fill the nodes
FREE = (MODE, "placement", "memory", "threads")
HYBRID, MPI, NONE, FEW = "hybrid wins", "pure MPI wins", "no difference seen", "too few launches"
MEANING = "ratio of speeds: above 1 the hybrid code is faster; the interval allows for the choice of both"
APART = (
    "the interval knows nothing of how sessions differ: of codes measured in sessions of their own, a winner is named "
    f"where the ratio exceeds {unpaired.ALLOWED:.2f} too"
)


@dataclass(frozen=True, kw_only=True)
class Verdict(Statement):
    """The best code of each kind, and which wins; ``ratio`` is that of their speeds, hybrid to pure.

    The ``subject`` is the problem that both solve; ``records`` are all that the two were chosen from.
    """

    hybrid: AnyRecord
    pure: AnyRecord
    records: Sequence[AnyRecord]


def verdicts(records: Sequence[AnyRecord]) -> list[Verdict]:
    """A verdict for each test, partition, stack, number of nodes and problem with valid ``records`` of both kinds.

    Those of applications count, too: with one thread a rank they are pure MPI codes, with more hybrid ones.
    """
    usable = [row for row in records if row.is_valid and row.figures and (_mode(row) or row.variant.application)]
    oldest_first = sorted(usable, key=lambda row: row.time)
    compared = []
    for _, rows in sorted(group((_problem_on_a_machine(row), row) for row in oldest_first).items()):
        newest = {row.variant.name: row for row in rows}.values()
        # of a pure MPI code no rank has two threads at work
        kinds = group((_mode(row) == PURE or row.placement.threads == 1, row) for row in newest)
        pure, hybrid = kinds.get(True, []), kinds.get(False, [])
        if hybrid and any(_mode(row) in (PURE, None) for row in pure):
            compared.append(_verdict(hybrid, pure))
    return compared


def notes(compared: Sequence[Verdict]) -> list[str]:
    """Notes on the verdicts for their reader."""
    records = [record for verdict in compared for record in verdict.records]
    disturbed = sum(record.disturbed_count for record in records)
    launches = units.counted(sum(record.launch_count for record in records), "launch")
    return [
        MEANING,
        *([APART] if any(map(_apart, (verdict.records for verdict in compared))) else []),
        *([f"{disturbed} of {launches} were disturbed, which makes the interval wider"] if disturbed else []),
    ]


def _apart(records: Sequence[AnyRecord]) -> bool:
    """Whether the records are of several sessions."""
    return len({record.session for record in records}) > 1


def _mode(record: AnyRecord) -> str | None:
    """How a code is made; of an application nothing is known but its threads."""
    return record.variant.params.get(MODE)


def _problem_on_a_machine(record: AnyRecord) -> str:
    fixed = {key: value for key, value in record.variant.params.items() if key not in FREE}
    machine = (record.site, record.partition, record.placement.nodes)
    code = record.variant.application
    state = (code.commit or code.digest, record.variant.arguments) if code else None
    return repr((record.variant.test, machine, fixed, record.figures[0].name, record.stack.name, state))


def _verdict(hybrid: Sequence[AnyRecord], pure: Sequence[AnyRecord]) -> Verdict:
    """Which wins, as far as the interval says it."""
    best_hybrid, best_pure = (max(rows, key=lambda row: _speeds(row)[0]) for rows in (hybrid, pure))
    values, others = ([_speeds(row)[1:] for row in rows] for rows in (hybrid, pure))
    ratio = _speeds(best_hybrid)[0] / _speeds(best_pure)[0]
    low, high = unpaired.best_ratio(values, others)
    launches = unpaired.values_needed(len(hybrid), len(pure))  # of each variant, for an interval with both bounds
    records = [*hybrid, *pure]
    enough = not _apart(records) or unpaired.exceeds_sessions(ratio)
    state = NONE if low > 0 and high < math.inf else FEW
    if enough and (low > 1 < ratio or high < 1 > ratio):
        state = HYBRID if ratio > 1 else MPI
    shared = [f"{key}={value}" for key, value in best_pure.variant.params.items() if key not in FREE]
    return Verdict(
        " ".join([best_pure.variant.test, *shared]),
        state,
        sum(record.launch_count for record in records),
        ratio,
        (low, high),
        reason=f"{FEW}: -S launches={launches}" if state == FEW else state,
        hybrid=best_hybrid,
        pure=best_pure,
        records=records,
    )


def _speeds(record: AnyRecord) -> list[float]:
    """Of the median of the first figure, and of its launches."""
    figure = record.figures[0]
    values = [figure.value, *figure.samples]
    return values if figure.better == "higher" else [1 / value for value in values]


def how(record: AnyRecord) -> str:
    """Mode, if there is one, and placement."""
    return f"{_mode(record) or ''} {naming.placement(record.placement)}".lstrip()
