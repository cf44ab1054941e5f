"""The best hybrid code against the best pure MPI code, for a page."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline import units
from plumbline.pages.blocks import Block, absent, block, link, number, section, table
from plumbline.records.model import Record
from plumbline.views import hybrid


def hybrids(usable: Sequence[tuple[Record, int]]) -> Block:
    """The verdicts of the valid records ``usable``, each with the number of its entry."""
    numbers = {record.id: entry for record, entry in usable}
    found = hybrid.verdicts([record for record, _ in usable])
    return section(
        "hybrids",
        "Hybrid or pure MPI",
        "The best hybrid code against the best pure MPI code, of one problem on the same nodes.",
        found and block("bullets", *hybrid.notes(found)),
        found
        and table(
            "Best against best",
            (
                "test",
                "stack",
                "best hybrid",
                "best pure MPI",
                number("hybrid / pure"),
                number("95 % interval"),
                "verdict",
            ),
            [
                [
                    hybrid.problem(one.pure),
                    one.pure.stack.name,
                    *(link(hybrid.how(code), entry=numbers[code.id]) for code in (one.hybrid, one.pure)),
                    units.digits(one.ratio),
                    one.bounds,
                    one.said,
                ]
                for one in found
            ],
        ),
        otherwise=absent("reframe -c reframe-tests -r -S profile=full -n jacobi_modes"),
    )
