"""The best hybrid code against the best pure MPI code, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.records.model import Record
from plumbline.views import hybrid


def hybrids(usable: Sequence[tuple[Record, int]]) -> dict[str, Any] | None:
    """The verdicts of the valid records ``usable``, each with the number of its entry; None without both kinds.

    ``notes`` say what is compared; a row has its ``problem`` and ``stack``, the entries of the best ``hybrid`` and
    ``pure`` code with how they fill the nodes, their ``ratio`` with its ``bounds``, and the ``verdict``.
    """
    numbers = {record.id: number for record, number in usable}
    found = hybrid.verdicts([record for record, _ in usable])
    rows = [
        {
            "problem": hybrid.problem(one.pure),
            "stack": one.pure.stack.name,
            "hybrid": {"entry": numbers[one.hybrid.id], "how": hybrid.how(one.hybrid)},
            "pure": {"entry": numbers[one.pure.id], "how": hybrid.how(one.pure)},
            "ratio": one.ratio,
            "bounds": one.bounds,
            "verdict": one.said,
        }
        for one in found
    ]
    return {"notes": hybrid.notes(found), "rows": rows} if rows else None
