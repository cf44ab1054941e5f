"""Tables, aligned for a terminal, in Markdown or as CSV, and sparklines."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from plumbline.base import terminal

_BARS = "▁▂▃▄▅▆▇█"
#: columns of blanks between two columns of a table
_GAP = 2
#: a word longer than this may be broken
_WORD = 24
#: first characters of a text that a spreadsheet takes for a formula
_FORMULA = ("=", "+", "-", "@", "\t")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
    ruled: bool = True,
) -> str:
    """A table as text; columns named in ``right`` are aligned to the right, the others to the left.

    ``ruled``: there is a rule below the header.

    On a terminal that is too narrow, text in left-aligned columns is wrapped; where that is not enough, the columns
    named in ``spare`` are left out, in that order, and a line below says so; where that is not enough either, further
    columns are in tables below, each with the first column again. Cells are not reformatted.
    """
    align = ["right" if name in right else "left" for name in header]
    form, colalign = "simple" if ruled else "plain", align if rows else None
    shown = tabulate(rows, headers=list(header), tablefmt=form, colalign=colalign, disable_numparse=True)
    room = terminal.width()
    if room is None or max(map(len, shown.splitlines())) <= room:
        return shown
    return _narrow(header, rows, align, spare, room, ruled)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A table for a page or a merge request, whose cells stay texts; columns named in ``right`` are aligned to it."""
    rule = "|".join("--:" if name in right else "---" for name in header)
    body = (f"| {' | '.join(map(escaped, row))} |" for row in (header, *rows))
    return "\n".join([next(body), f"|{rule}|", *body])


def escaped(text: str) -> str:
    """``text`` on one line of Markdown, with special and invisible characters escaped or removed."""
    text = re.sub(r"([\\`*_\[\]|])", r"\\\1", terminal.on_a_line(text))
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


def _narrow(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: Sequence[str],
    spare: Sequence[str],
    room: int,
    ruled: bool,
) -> str:
    cells = [[name, *(row[at] for row in rows)] for at, name in enumerate(header)]
    widths = [max(map(len, column)) for column in cells]
    least = [
        width
        if side == "right"
        else max(len(column[0]), min(_WORD, max(map(len, " ".join(column).split()), default=0)))
        for width, side, column in zip(widths, align, cells, strict=True)
    ]
    columns = list(range(len(header)))
    missing = []
    for name in spare:
        if _total([least[at] for at in columns]) <= room:
            break
        columns.remove(header.index(name))
        missing.append(name)
    fitting = [_shrunk(part, widths, least, room) for part in _folded(columns, least, room)]
    shown = "\n\n".join(_fitted(header, rows, align, part, ruled) for part in fitting)
    return f"{shown}\nleft out, the terminal is too narrow: {', '.join(missing)}" if missing else shown


def _folded(columns: Sequence[int], least: Sequence[int], room: int) -> list[list[int]]:
    """The ``columns`` of each table: as many as there is room for, and the first in all of them."""
    first, *others = columns
    parts = [[first]]
    for column in others:
        if len(parts[-1]) > 1 and _total([least[at] for at in (*parts[-1], column)]) > room:
            parts.append([first])
        parts[-1].append(column)
    return parts


def _shrunk(columns: Sequence[int], widths: Sequence[int], least: Sequence[int], room: int) -> dict[int, int]:
    """The width of each of ``columns``: the widest give way, words are broken last."""
    shares = {at: widths[at] for at in columns}
    while _total(list(shares.values())) > room:
        able = [at for at in columns if shares[at] > least[at]] or [at for at in columns if shares[at] > 1]
        if not able:
            break
        shares[max(able, key=lambda at: shares[at])] -= 1
    return shares


def _fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: Sequence[str],
    widths: Mapping[int, int],
    ruled: bool,
) -> str:
    """A table of the columns that have ``widths``."""
    # heading and rule are rows here: tabulate would make every column two wider than its heading
    rules = [["-" * widths.get(at, 0) for at in range(len(header))]] if ruled else []
    return tabulate(
        [[row[at] for at in widths] for row in (header, *rules, *rows)],
        tablefmt="plain",
        colalign=[align[at] for at in widths],
        maxcolwidths=list(widths.values()),
        disable_numparse=True,
    )


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def sparkline(values: Sequence[float]) -> str:
    """One bar per value between the smallest and the largest; equal values give bars of middle height."""
    low, high = min(values), max(values)
    if high <= low:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def as_csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table for notebooks and spreadsheets; booleans are ``yes`` and ``no``, an absent value is empty.

    A text that a spreadsheet would take for a formula begins with ``'``.
    """
    return "".join(csv_lines(header, rows))


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The lines of :func:`as_csv`, each made when it is wanted."""
    for row in itertools.chain([header], (map(_csv_cell, row) for row in rows)):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(row)
        yield out.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
