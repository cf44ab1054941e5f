"""Tables that are declared once: a list of columns, shown as text, Markdown, CSV, JSON or on a page.

A column gives a piece of a page for each row (:mod:`plumbline.show.pages.blocks`); the other forms show its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from plumbline.base import csv_output
from plumbline.base.table import markdown, table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece

Row = TypeVar("Row")
#: stands for what is not known
UNKNOWN = "–"
#: pieces of these kinds are listed; others stand one after the other
_LISTED = "bullets"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column with its ``title``; ``get`` returns the piece of a row: None for what is not known, ``""`` for nothing.

    ``kind`` is the class of its cells on a page; those whose first word is ``number`` are aligned to the right
    everywhere. ``unit`` stands behind the title. ``raw`` is what programs get, in CSV and JSON; without it, the words.
    ``forms`` names the forms that have the column: ``text``, ``md``, ``csv``, ``json``, ``page``. A narrow terminal
    leaves out the columns with a ``spare``, the least first.
    """

    title: str
    get: Callable[[Row], Piece]
    kind: str = ""
    unit: str = ""
    raw: Callable[[Row], Any] | None = None
    forms: str = "text md csv json page"
    spare: int = 0

    @property
    def heading(self) -> str:
        """Title and unit for people."""
        return f"{self.title} {self.unit}".rstrip()

    @property
    def is_number(self) -> bool:
        """Whether its cells are aligned to the right."""
        return self.kind.startswith("number")

    def value(self, row: Row) -> Any:
        """The cell of ``row`` for programs."""
        return words(self.get(row)) if self.raw is None else self.raw(row)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns below a caption, which pages show."""

    caption: str
    columns: Sequence[Column[Row]]

    def text(self, rows: Iterable[Row], ruled: bool = True) -> str:
        """Aligned for a terminal; a column in which no row has anything is left out."""
        columns, cells = self._cells("text", rows)
        kept = [place for place in range(len(columns)) if not cells or any(row[place] for row in cells)]
        spare = sorted((column for column in columns if column.spare), key=lambda column: column.spare)
        return table(
            [columns[place].heading for place in kept],
            [[row[place] for place in kept] for row in cells],
            right=[column.heading for column in columns if column.is_number],
            spare=[column.heading for column in spare if column in [columns[place] for place in kept]],
            ruled=ruled,
        )

    def markdown(self, rows: Iterable[Row]) -> str:
        """For a merge request."""
        columns, cells = self._cells("md", rows)
        right = [column.heading for column in columns if column.is_number]
        return markdown([column.heading for column in columns], cells, right)

    def csv(self, rows: Iterable[Row]) -> str:
        """For notebooks and spreadsheets, with a header."""
        columns = self._of("csv")
        return csv_output.table(
            [column.title for column in columns], ([column.value(row) for column in columns] for row in rows)
        )

    def objects(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """For JSON: an object for each row, by the titles."""
        return [{column.title: column.value(row) for column in self._of("json")} for row in rows]

    def block(self, rows: Iterable[Row], **parts: Any) -> Block:
        """For a page; ``parts`` are those of :func:`plumbline.show.pages.blocks.table`."""
        columns = self._of("page")
        heads = [blocks.column(column.title, column.kind or column.title, column.unit or None) for column in columns]
        return blocks.table(self.caption, heads, [[column.get(row) for column in columns] for row in rows], **parts)

    def _of(self, form: str) -> list[Column[Row]]:
        return [column for column in self.columns if form in column.forms.split()]

    def _cells(self, form: str, rows: Iterable[Row]) -> tuple[list[Column[Row]], list[list[str]]]:
        columns = self._of(form)
        return columns, [[words(column.get(row)) for column in columns] for row in rows]


def words(piece: Piece) -> str:
    """The text of a piece without its looks.

    >>> words([blocks.block("badge", "PASS"), blocks.block("small", "3 sessions")]), words(None), words(0)
    ('PASS 3 sessions', '–', '0')
    """
    if piece is None:
        return UNKNOWN
    if isinstance(piece, bool) or piece == "":
        return ""
    if isinstance(piece, dict):
        inner = [words(part) for part in piece.get("pieces", ()) if part not in (None, False, "")]
        return ("; " if piece["is"] == _LISTED else " ").join(inner)
    if isinstance(piece, list | tuple):
        return " ".join(text for part in piece if (text := words(part)))
    return str(piece)
