"""Tables whose column line says what each number is: what the parsers of IMB and OSU share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plumbline.parsers.measurement import Better, Measurement, ParseError, Unit, measured
from plumbline.parsers.text import at, integer, quote, real

#: metric, unit and direction of a column
Meaning = tuple[str, Unit, Better]
#: columns of whole numbers to the parameters of their row
PARAMETERS = {"#bytes": "bytes", "Size": "bytes", "TransmitSize": "transmit_bytes"}
#: columns that say how often a row was measured
ITERATIONS = ("#repetitions", "Iterations")


def several_runs(suite: str, number: int) -> ParseError:
    """The error for an output in which line index ``number`` begins a second run."""
    cure = "start the program with the launcher of the MPI that it runs on"
    return ParseError(f"{suite}: the outputs of several independent runs in one text", at(number), cure)


def check_columns(columns: Sequence[str], meanings: Mapping[str, Meaning], title: str, number: int) -> None:
    """Raise unless every column is known and appears once, and one of them holds values.

    ``number`` is the index of the column line.
    """
    for name in columns:
        if name not in meanings and name not in PARAMETERS and name not in ITERATIONS:
            raise ParseError(f"{title}: column '{name}' is not known", at(number))
    if len(set(columns)) != len(columns) or not set(columns) & set(meanings):
        raise ParseError(f"{title}: a column appears twice, or there is none with values", at(number))


def cells(line: str, columns: Sequence[str], title: str, number: int) -> dict[str, str]:
    """The row of line index ``number``, by column."""
    words = line.split()
    if line.startswith("#") or len(words) != len(columns):
        raise ParseError(f"{title}: {quote(line)} is not a row of the table: garbled output", at(number))
    return dict(zip(columns, words, strict=True))


def measurements(
    row: Mapping[str, str], meanings: Mapping[str, Meaning], common: Mapping[str, int | str], number: int
) -> list[Measurement]:
    """The values of a row; ``common``: the parameters of all rows."""
    parameters = {param: integer(row[name], name, number) for name, param in PARAMETERS.items() if name in row}
    iterations = next((integer(row[name], name, number) for name in ITERATIONS if name in row), None)
    values = []
    for name in filter(meanings.__contains__, row):
        metric, unit, better = meanings[name]
        values.append(
            measured(metric, real(row[name], name, number), unit, better, {**common, **parameters}, iterations)
        )
    return values


def one_row(rows: Collection[object], title: str, number: int) -> None:
    """Raise unless the table that begins at line index ``number`` has one row."""
    if len(rows) != 1:
        raise ParseError(f"{title}: {len(rows)} rows where one was expected", at(number))
