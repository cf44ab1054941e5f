"""The content of a page, as data: sections of texts, facts, tables and charts. ``js/blocks.js`` draws any of them.

A piece is a text, a number, None for what is not known (a dash), True, False or empty for nothing, a list of pieces one
after the other, or a block. Pieces are what sections and the cells of tables hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from plumbline.base import units

Block: TypeAlias = dict[str, Any]
Piece: TypeAlias = object
#: colours of the page's style for stacks: Okabe and Ito's palette
COLOURS = 8
#: marks and dashes of placements, in the chart library's words; the style has a picture of each mark
MARKS = ("circle", "triangle", "rect", "diamond", "pin", "arrow", "emptyCircle", "emptyRect")
DASHES = ("solid", [6, 4], [2, 3], [10, 3, 2, 3], [1, 4], [12, 4], [4, 2], [8, 2, 2, 2, 2, 2])


def block(kind: str, *pieces: Piece, **parts: Any) -> Block:
    """A block of a ``kind`` that ``js/blocks.js`` knows: ``heading``, ``paragraph``, ``bullets``, ``badge``, …"""
    return {"is": kind, "pieces": pieces, **parts}


def section(name: str, title: str, about: str, *pieces: Piece, otherwise: Piece = "", look: str = "") -> Block:
    """A section of a page; ``about`` is one line that says what it shows, ``name`` its place in links.

    Where all pieces are empty it is marked so, and ``otherwise`` is said. The ``look`` ``sheet``: printed, it begins on
    a new sheet.
    """
    marks = {"look": look} if look else {}
    if any(pieces):
        return block("section", *pieces, id=name, title=title, about=about, **marks)
    return block("section", block("paragraph", otherwise), id=name, title=title, about=about, empty=True, **marks)


def absent(command: str) -> Piece:
    """The text of a section without data: the command that gives some."""
    return ["Not measured in this campaign. This gives it: ", block("code", command)]


def cell(*pieces: Piece, **parts: Any) -> Block:
    """A cell of a table that is more than its pieces.

    ``look`` is its class, ``value`` what its text stands for, ``share`` where on the scale of colours it is, from 0 to
    1, ``hint`` what is said of it under the pointer.
    """
    return block("cell", *pieces, **parts)


def link(text: Piece, href: str | None = None, entry: int | None = None) -> Piece:
    """A link to a page, or what opens the record of an entry of this page; only ``text`` without either."""
    if href is None and entry is None:
        return text
    return block("link", text, **({"href": href} if entry is None else {"entry": entry}))


def number(title: str, unit: str | None = None) -> Block:
    """A column of numbers."""
    return column(title, "number", unit)


def column(title: str, kind: str, unit: str | None = None) -> Block:
    """A column whose cells are of a class: ``notes`` are long texts, ``whole`` is not wrapped, ``code`` has names."""
    return {"title": title, "kind": kind, **({"unit": unit} if unit else {})}


def table(caption: str, columns: Iterable[object], rows: Iterable[Sequence[Piece]], **parts: Any) -> Block:
    """A table; its first column names the rows.

    Only the ``first`` rows (a number) are shown before a button asks for all; ``empty`` is said where there is none.
    """
    named = [{"title": heading} if isinstance(heading, str) else heading for heading in columns]
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
    points: Iterable[Sequence[object]] = (),
    **parts: Any,
) -> Block:
    """A picture of the ``rows`` of a table, which stands below it: a point is the number of its row, x and y.

    ``x`` and ``y`` are axes: ``name``, and ``labels`` or ``type``, ``min``, ``max`` and ``ticks`` (value and name).
    ``heat`` makes a point a cell in the colour of its fourth number, with its fifth as text. ``targets`` are what a
    click on the points of each row opens: an entry, a page, or None, and then ``lost`` is said of its record. ``marks``
    are straight lines across, ``levels`` lines from point to point. The height is ``height``, or follows the width of
    ``square`` cells. ``wide`` is the room for names on the left. A table that is on the page anyway stands ``beside``.

    Under the pointer is the row. ``series`` (:func:`series`) have points of their own, with texts behind x and y: those
    that ``each`` names (empty: the series) are there with the cells of kind ``named`` and the place on axes that are
    ``told``; or points at the same x are shown ``together``, with their text.
    """
    return {
        **table(title, columns, rows),
        "is": "chart",
        "title": title,
        "about": about,
        **({} if "series" in parts else {"points": list(points)}),
        **parts,
    }


def series(name: str, colour: str | None, points: Iterable[Sequence[object]], **parts: Any) -> Block:
    """Points of a chart in one ``colour``.

    ``look`` says how they are drawn, in the chart library's words; ``hollow`` are the places of points that are not
    filled, ``ranges`` are x and the ends of a line upwards,
    ``bars`` y and the ends of a thick line to the right; ``target`` is what a click opens, ``keys`` are those
    of the buttons that hide it (a block ``toggled``: ``groups`` of a label, and keys with what is before each).
    """
    look = {"name": name, **parts.pop("look", {})}
    return {"points": list(points), "colour": colour, "look": look, **parts}


def lanes(labels: Sequence[str]) -> Block:
    """The axis of a chart that has a lane for each of ``labels``, the first at the bottom."""
    return {"min": -0.5, "max": len(labels) - 0.5, "interval": 1, "ticks": list(enumerate(labels))}


def scale(values: Sequence[float], unit: str, low: float | None = None) -> Block:
    """The ends of the scale of colours of ``values``: from the least one, or from ``low``."""
    ends = [min(values) if low is None else low, max(values)]
    return {"ends": ends, "text": [f"{units.digits(ends[1])} {unit}", units.digits(ends[0]) if ends[0] else "0"]}


def colour(number: int) -> str:
    """The name of a colour of the style."""
    return f"stack-{number % COLOURS}"


def palette(names: Iterable[str]) -> dict[str, str]:
    """The colour of each stack, in the order of their names."""
    return {name: colour(number) for number, name in enumerate(sorted(set(names)))}


def line(number: int, **parts: Any) -> dict[str, Any]:
    """The look of a line with mark and dash of that number."""
    shown = {
        "symbol": MARKS[number % len(MARKS)],
        "lineStyle": {"type": DASHES[number % len(DASHES)], "width": 1.6},
        "emphasis": {"focus": "series"},
    }
    return {"type": "line", **shown, **parts}
