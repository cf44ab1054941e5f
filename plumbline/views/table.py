"""Aligned tables and sparklines."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

_BARS = "▁▂▃▄▅▆▇█"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """Aligned columns, those named in ``right`` to the right, as numbers are. Cells are printed as they are."""
    align = ["right" if name in right else "left" for name in header]
    return tabulate(
        rows, headers=list(header), tablefmt="simple", colalign=align if rows else None, disable_numparse=True
    )


def sparkline(values: Sequence[float]) -> str:
    """One bar per value between the smallest and the largest; equal values give bars of middle height."""
    low, high = min(values), max(values)
    if high <= low:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)
