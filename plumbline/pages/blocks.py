"""What a page shows, as data: sections of texts, facts, tables and charts. ``js/blocks.js`` draws any of them.

A piece is a text, a number, None for what is not known (a dash), False or empty for nothing, a list of pieces one after
the other, or a block. Pieces are what sections and the cells of tables hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Block: TypeAlias = dict[str, Any]
Piece: TypeAlias = object


def block(kind: str, *pieces: Piece, **parts: Any) -> Block:
    """A block of a ``kind`` that ``js/blocks.js`` knows: ``heading``, ``paragraph``, ``bullets``, ``badge``, …"""
    return {"is": kind, "pieces": pieces, **parts}


def section(name: str, title: str, about: str, *pieces: Piece, otherwise: Piece = "") -> Block:
    """A section of a page; ``about`` is one line that says what it shows, ``name`` its place in links.

    Where all pieces are empty, ``otherwise`` is said.
    """
    shown = pieces if any(pieces) else [block("paragraph", otherwise)]
    return block("section", *shown, id=name, title=title, about=about)


def absent(command: str) -> Piece:
    """What is said of a section without data: which command gives some."""
    return ["No data in this campaign. This gives it: ", block("code", command)]


def link(text: Piece, href: str | None = None, entry: int | None = None) -> Piece:
    """A link to a page, or what opens the record of an entry of this page; only ``text`` without either."""
    return text if href is None and entry is None else block("link", text, href=href, entry=entry)


def number(title: str, unit: str | None = None) -> Block:
    """A column of numbers."""
    return column(title, "number", unit)


def column(title: str, kind: str, unit: str | None = None) -> Block:
    """A column that is not plain text: ``notes`` are long texts, ``whole`` is not wrapped, ``code`` has names."""
    return {"title": title, "unit": unit, "kind": kind}


def table(caption: str, columns: Iterable[object], rows: Iterable[Sequence[Piece]], **parts: Any) -> Block:
    """A table; its first column names the rows.

    Only the ``first`` rows (a number) are shown before a button asks for all; ``empty`` is said where there is none.
    """
    named = [{"title": one} if isinstance(one, str) else one for one in columns]
    return {"is": "table", "caption": caption, "columns": named, "rows": list(rows), **parts}


def facts(caption: str, rows: Iterable[Sequence[Piece]]) -> Block:
    """Names and what is known by them."""
    return {"is": "facts", "caption": caption, "rows": list(rows)}


def choice(label: str, options: Iterable[tuple[str, Sequence[Piece]]], look: str = "") -> Block:
    """Pieces of which those of one option are shown: the first, until another is chosen."""
    return {"is": "choice", "label": label, "options": list(options), "look": look}


def chart(
    title: str,
    about: str,
    columns: Iterable[object],
    rows: Iterable[Sequence[Piece]],
    points: Iterable[Sequence[float]],
    **parts: Any,
) -> Block:
    """A picture of the ``rows`` of a table, which stands below it: a point is the number of its row, x and y.

    ``x`` and ``y`` are axes: ``name``, and ``labels`` or ``type``, ``min`` and ``max``. ``heat`` makes a point a cell
    in the colour of its fourth number. ``targets`` are what a click on the points of each row opens: an entry, a page,
    or None, and then ``lost`` is said of its record. ``hollow`` are rows whose points are not filled. ``marks`` are
    straight lines across, ``levels`` lines from point to point. The height is ``height``, or follows the width of
    ``square`` cells.
    """
    return {
        **table(title, columns, rows),
        "is": "chart",
        "title": title,
        "about": about,
        "points": list(points),
        **parts,
    }
