"""The best hybrid code against the best pure MPI code on the same nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plumbline.base.table import table
from plumbline.judge.hybrid import FEW, HYBRID, MPI, NONE, Verdict, how, notes, verdicts
from plumbline.records.model import AnyRecord, Record
from plumbline.show.pages import blocks

HEADER = ("test", "stack", "best hybrid", "", "best pure MPI", "", "ratio", "95 % interval", "verdict")
NOTHING = (
    "the records have hybrid codes but no pure MPI code: reframe -c reframe-tests -r -S profile=full -n jacobi_modes"
)


def text(compared: Sequence[Verdict]) -> str:
    """The table with its notes and a closing line."""
    if not compared:
        return NOTHING
    rows = [
        (
            verdict.subject,
            verdict.pure.stack.name,
            *_cells(verdict.hybrid),
            *_cells(verdict.pure),
            *(f"{verdict.ratio:.3f}", verdict.bounds, verdict.explanation),
        )
        for verdict in compared
    ]
    counted = Counter(verdict.state for verdict in compared)
    closing = ", ".join(f"{counted[word]} {word}" for word in (HYBRID, MPI, NONE, FEW) if counted[word])
    return "\n".join([table(HEADER, rows, right=("ratio",)), *notes(compared), "", closing])


def _cells(record: AnyRecord) -> tuple[str, str]:
    figure = record.figures[0]
    return how(record), " ".join(figure.shown)


def section(usable: Sequence[tuple[Record, int]]) -> blocks.Block:
    """The verdicts of the valid records ``usable``, each with the number of its entry."""
    numbers = {record.id: entry for record, entry in usable}
    compared = verdicts([record for record, _ in usable])
    return blocks.section(
        "hybrids",
        "Hybrid or pure MPI",
        "The best hybrid code against the best pure MPI code, of one problem on the same nodes.",
        compared and blocks.block("bullets", *notes(compared)),
        compared
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
                    verdict.subject,
                    verdict.pure.stack.name,
                    *(blocks.link(how(code), entry=numbers[code.id]) for code in (verdict.hybrid, verdict.pure)),
                    f"{verdict.ratio:.3f}",
                    verdict.bounds,
                    verdict.explanation,
                ]
                for verdict in compared
            ],
        ),
        otherwise=blocks.absent("reframe -c reframe-tests -r -S profile=full -n jacobi_modes"),
    )
