"""The best hybrid code against the best pure MPI code on the same nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from plumbline.base import units
from plumbline.judge.hybrid import FEW, HYBRID, MPI, NONE, Verdict, how, notes, verdicts
from plumbline.records.model import AnyRecord, Record
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, absent, block, link

NOTHING = (
    "the records have hybrid codes but no pure MPI code: reframe -c reframe-tests -r -S profile=full -n jacobi_modes"
)


def text(compared: Sequence[Verdict]) -> str:
    """The table with its notes and a closing line."""
    if not compared:
        return NOTHING
    counted = Counter(verdict.state for verdict in compared)
    closing = ", ".join(f"{counted[word]} {word}" for word in (HYBRID, MPI, NONE, FEW) if counted[word])
    return "\n".join([_table().text(compared), *notes(compared), "", closing])


def _table(numbers: Mapping[str, int] = MappingProxyType({})) -> Table[Verdict]:
    """A line for each verdict; a code opens its record, whose entry is among ``numbers``."""

    def code(record: AnyRecord) -> Piece:
        return [link(how(record), entry=numbers.get(record.id)), block("small", " ".join(record.figures[0].shown))]

    return Table(
        "Best against best",
        [
            Column("test", lambda verdict: verdict.subject),
            Column("stack", lambda verdict: verdict.pure.stack.name),
            Column("best hybrid", lambda verdict: code(verdict.hybrid)),
            Column("best pure MPI", lambda verdict: code(verdict.pure)),
            Column("hybrid / pure", lambda verdict: units.ratio(verdict.ratio), "number"),
            Column("95 % interval", lambda verdict: units.interval(verdict.interval), "number"),
            Column("verdict", lambda verdict: verdict.explanation),
        ],
    )


def section(usable: Sequence[tuple[Record, int]]) -> Block:
    """The verdicts of the valid records ``usable``, each with the number of its entry."""
    numbers = {record.id: entry for record, entry in usable}
    compared = verdicts([record for record, _ in usable])
    return blocks.section(
        "hybrids",
        "Hybrid or pure MPI",
        "The best hybrid code against the best pure MPI code, of one problem on the same nodes.",
        compared and block("bullets", *notes(compared)),
        compared and _table(numbers).block(compared),
        otherwise=absent("reframe -c reframe-tests -r -S profile=full -n jacobi_modes"),
    )
