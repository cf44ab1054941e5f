"""The best hybrid code against the best pure MPI code on the same nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plumbline.base import units
from plumbline.judge.hybrid import FEW, HYBRID, MPI, NONE, Verdict, how, notes, verdicts
from plumbline.pages import blocks
from plumbline.records.model import AnyRecord, Record
from plumbline.views.table import table

HEADER = ("test", "stack", "best hybrid", "", "best pure MPI", "", "ratio", "95 % interval", "verdict")
NOTHING = (
    "the records have hybrid codes but no pure MPI code: reframe -c reframe-tests -r -S profile=full -n jacobi_modes"
)


def text(found: Sequence[Verdict]) -> str:
    """The table with its notes and a closing line."""
    if not found:
        return NOTHING
    rows = [
        (
            one.subject,
            one.pure.stack.name,
            *_cells(one.hybrid),
            *_cells(one.pure),
            *(f"{one.ratio:.3f}", one.bounds, one.said),
        )
        for one in found
    ]
    counted = Counter(one.state for one in found)
    closing = ", ".join(f"{counted[word]} {word}" for word in (HYBRID, MPI, NONE, FEW) if counted[word])
    return "\n".join([table(HEADER, rows, right=("ratio",)), *notes(found), "", closing])


def _cells(record: AnyRecord) -> tuple[str, str]:
    figure = record.figures[0]
    return how(record), " ".join(units.human(figure.value, figure.unit))


def section(usable: Sequence[tuple[Record, int]]) -> blocks.Block:
    """The verdicts of the valid records ``usable``, each with the number of its entry."""
    numbers = {record.id: entry for record, entry in usable}
    found = verdicts([record for record, _ in usable])
    return blocks.section(
        "hybrids",
        "Hybrid or pure MPI",
        "The best hybrid code against the best pure MPI code, of one problem on the same nodes.",
        found and blocks.block("bullets", *notes(found)),
        found
        and blocks.table(
            "Best against best",
            (
                "test",
                "stack",
                "best hybrid",
                "best pure MPI",
                blocks.number("hybrid / pure"),
                blocks.number("95 % interval"),
                "verdict",
            ),
            [
                [
                    one.subject,
                    one.pure.stack.name,
                    *(blocks.link(how(code), entry=numbers[code.id]) for code in (one.hybrid, one.pure)),
                    f"{one.ratio:.3f}",
                    one.bounds,
                    one.said,
                ]
                for one in found
            ],
        ),
        otherwise=blocks.absent("reframe -c reframe-tests -r -S profile=full -n jacobi_modes"),
    )
