"""Tables that are declared once: a list of columns, shown as text, as Markdown or on a page.

A column gives a piece of a page for each row (:mod:`plumbline.show.pages.blocks`); the other forms show its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from plumbline.base import table, units
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece

Row = TypeVar("Row")
#: pieces of rows that have nothing
EMPTY = (None, "")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column with its ``title``; ``get`` returns the piece of a row: None for what is not known, ``""`` for nothing.

    ``kind`` is the class of its cells on a page; those whose first word is ``number`` are aligned to the right
    everywhere. ``unit`` stands behind the title. ``forms`` names the forms that have the column: ``text``, ``md``,
    ``page``. ``page`` returns what a page shows in place of the piece, where that is more. ``key`` returns what the
    rows of a page are sorted by (default: the words). ``head``: the column names the rows of a page, in place of the
    first. A narrow terminal leaves out the columns with a ``spare``, the least first.
    """

    title: str
    get: Callable[[Row], Piece]
    kind: str = ""
    unit: str = ""
    forms: str = "text md page"
    page: Callable[[Row], Piece] | None = None
    key: Callable[[Row], Any] | None = None
    head: bool = False
    spare: int = 0

    @property
    def heading(self) -> str:
        """Title and unit for people."""
        return f"{self.title} {self.unit}".rstrip()


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns below a caption, which pages show.

    A column in which no row has anything is left out of every form, unless the table is shown ``whole``.
    """

    caption: str
    columns: Sequence[Column[Row]]
    whole: bool = False

    def of(self, form: str, rows: Sequence[Row]) -> tuple[Table[Row], list[list[Piece]]]:
        """The table with the columns that it has in this form for these rows, and the pieces of each row."""
        columns = [column for column in self.columns if form in column.forms.split()]
        gets = [column.page if form == "page" and column.page else column.get for column in columns]
        pieces = [list(map(get, rows)) for get in gets]
        keeps = self.whole or not rows
        kept = [place for place, cells in enumerate(pieces) if keeps or any(cell not in EMPTY for cell in cells)]
        shown = replace(self, columns=[columns[place] for place in kept])
        return shown, list(map(list, zip(*(pieces[place] for place in kept), strict=True)))

    def text(self, rows: Sequence[Row], ruled: bool = True) -> str:
        """Aligned for a terminal."""
        shown, cells = self.of("text", rows)
        spare = sorted((column for column in shown.columns if column.spare), key=lambda column: column.spare)
        return table.table(*shown._plain(cells), spare=[column.heading for column in spare], ruled=ruled)

    def markdown(self, rows: Sequence[Row]) -> str:
        """For a merge request."""
        shown, cells = self.of("md", rows)
        return table.markdown(*shown._plain(cells))

    def block(self, rows: Sequence[Row], **parts: Any) -> Block:
        """For a page; ``parts`` are those of :func:`plumbline.show.pages.blocks.table`."""
        shown, cells = self.of("page", rows)
        return blocks.table(self.caption, shown.heads(), cells, **parts)

    def chart(self, title: str, about: str, rows: Sequence[Row], points: Sequence[Any] = (), **parts: Any) -> Block:
        """A picture of the rows; ``parts`` are those of :func:`plumbline.show.pages.blocks.chart`."""
        shown, cells = self.of("page", rows)
        return blocks.chart(title, about, shown.heads(), cells, points, **parts)

    def heads(self) -> list[Block]:
        """The columns as a page has them."""
        return [
            {
                "title": column.title,
                **({"kind": column.kind} if column.kind else {}),
                **({"unit": column.unit} if column.unit else {}),
                **({"head": True} if column.head else {}),
            }
            for column in self.columns
        ]

    def keys(self, row: Row) -> list[Any]:
        """What a page sorts a row by, for each column."""
        return [column.key(row) if column.key else words(column.get(row)) for column in self.columns]

    def _plain(self, cells: Sequence[Sequence[Piece]]) -> tuple[list[str], list[list[str]], list[str]]:
        """The headings, the words of the cells, and the headings of the columns that are aligned to the right."""
        right = [column.heading for column in self.columns if column.kind.startswith("number")]
        return [column.heading for column in self.columns], [list(map(words, row)) for row in cells], right


def words(piece: Piece) -> str:
    """The text of a piece without its looks.

    >>> words([blocks.block("badge", "PASS"), blocks.block("small", "3 sessions")]), words(None), words(0)
    ('PASS 3 sessions', '–', '0')
    """
    if isinstance(piece, str):  # most pieces
        return piece
    if isinstance(piece, dict):
        return words(list(piece.get("pieces", ())))
    if isinstance(piece, list):
        return " ".join(text.strip() for part in piece if part not in (None, False) and (text := words(part)))
    return units.dashed(piece)
