"""A lab as a text, as a page, and as a hand-out."""

from __future__ import annotations

import itertools
import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from plumbline.base import terminal, units
from plumbline.extras.labs import evidence, model
from plumbline.extras.labs.evidence import Filled, LessonFinding, Output, finding_line
from plumbline.extras.labs.model import Lab
from plumbline.judge import pivot as pivots
from plumbline.judge.pivot import Pivot, Shown, Values
from plumbline.records import query
from plumbline.records.model import AnyRecord, Row
from plumbline.records.outcome import LAB
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block, section

#: labels of the lines of a row that are not of a publication
HERE, RATIO = "here", "here / published"
#: characters of a line of sentences
WIDTH = 110


@dataclass(frozen=True)
class Done:
    """A lab with all that is shown of it; ``last`` is its closing line."""

    lab: Lab
    filled: Sequence[Filled]
    outputs: Sequence[Output]
    findings: Sequence[LessonFinding]
    last: str

    @property
    def tables(self) -> list[Filled]:
        """The tables with a figure, published or measured."""
        return [filled for filled in self.filled if filled.measured.cells or filled.published]


SUMMARY = Table[Done](
    "Labs",
    [
        Column("lab", lambda done: done.lab.name),
        Column("experiment", lambda done: done.lab.title),
        Column("here", lambda done: done.last),
    ],
)
#: labs of a campaign, each with its closing line
OF_CAMPAIGN = Table[tuple[Lab, str]](
    "Experiments of the documents",
    [
        Column("lab", lambda row: f"{row[0].name}  {row[0].title}"),
        Column("the lesson", lambda row: row[1], "notes"),
        Column("as a table", lambda row: block("code", f"plumb lab {row[0].name} --recorded"), "whole"),
    ],
)


def text(done: Done) -> str:
    """Question, tables, lesson, the finding of each comparison, and the closing line."""
    lab = done.lab
    parts = [f"{lab.name}  {lab.title}\n{lab.document}", _wrapped(lab.question)]
    parts += [f"$ {output.command}\n{output.text}" for output in done.outputs]
    for filled in done.tables:
        shown, rows = cells(filled)
        unit = _unit(filled)
        of = f", {unit}" if unit and unit != units.RATIO else ""
        parts.append(f"{filled.table.title}{of}\n" + shown.text(rows))
    parts += [_wrapped(lab.lesson), _wrapped(lab.elsewhere)]
    parts += ["\n".join(map(finding_line, done.findings))] if len(done.findings) > 1 else []
    return "\n\n".join(filter(None, [*parts, done.last]))


def _wrapped(sentences: str) -> str:
    return textwrap.fill(sentences, min(terminal.width() or WIDTH, WIDTH))


def as_json(done: Done) -> str:
    """Name, findings and closing line, and the tables as they are printed."""
    tables = []
    for filled in done.tables:
        shown, rows = cells(filled)
        header = [column.title for column in shown.columns]
        tables.append({"title": filled.table.title, "unit": _unit(filled), "header": header, "rows": rows})
    known = {"lab": done.lab.name, "findings": [finding.to_dict() for finding in done.findings], "closing": done.last}
    return json.dumps({**known, "tables": tables}, indent=1, ensure_ascii=False) + "\n"


def commands(lab: Lab) -> list[str]:
    """The commands of a lab, as one would type them."""
    tests = [
        f"plumb lab {lab.name}",
        f"reframe -c reframe-tests -r -n {shlex.quote(lab.pattern)} {shlex.join(lab.options)}".rstrip(),
    ]
    return tests[: 2 if lab.tests else 1] + [shlex.join(printed.command) for printed in lab.prints]


def _unit(filled: Filled) -> str | None:
    kinds = {pivot.unit for pivot in _pivots(filled)}
    return kinds.pop() if len(kinds) == 1 else None


def _pivots(filled: Filled) -> list[Pivot]:
    return [pivot for pivot in (*filled.published.values(), filled.measured) if pivot.cells]


def cells(filled: Filled, empty: bool = False) -> tuple[Table[tuple[str, ...]], list[tuple[str, ...]]]:
    """The table and its rows: each row as published, as measured here, and the ratio of both.

    ``empty``: to be filled by hand, so that nothing measured is in it.
    """
    labels, columns = filled.table.labels, _columns(filled)
    names = [" ".join(labels.get(value, value) for value in column) or "value" for column in columns]
    # a row has several lines where something is published, or where figures are of several stacks or more parameters
    has_sources = bool(filled.published) or filled.measured.added > 0
    keys = {row[pivot.added :] for pivot in _pivots(filled) for row in pivot.rows}
    rows = []
    for row in pivots.ordered(keys, tuple(filled.table.rows), filled.table.rows):
        start = tuple(labels.get(value, value) for value in row)
        for source, values in _lines(filled, row, columns, empty):
            rows.append((*start, *([source] if has_sources else []), *values))
            start = ("",) * len(start)
    heads = [*filled.table.rows, *([""] if has_sources else [])]
    kinds = ["test", *["notes"] * (len(heads) - 1), *["number"] * len(names)]
    shown: list[Column[tuple[str, ...]]] = [
        Column(title, itemgetter(place), kind)
        for place, (title, kind) in enumerate(zip([*heads, *names], kinds, strict=True))
    ]
    return Table(filled.table.title, shown, whole=True), rows


def _lines(filled: Filled, row: Values, columns: Sequence[Values], empty: bool) -> Iterator[tuple[str, list[str]]]:
    """The values of each source in a row, and the ratio to the first publication with a value for a column."""
    unit, labels = _unit(filled), filled.table.labels
    there = [line for place, pivot in filled.published.items() for line in _sources(place, pivot, row, columns, labels)]
    here = list(_sources(HERE, filled.measured, row, columns, labels))
    for source, shown in there:
        yield source, [pivots.formatted(value, unit) for value in shown]
    if empty:
        yield HERE, [""] * len(columns)
        return
    for source, shown in here:
        yield source, [pivots.formatted(value, unit) for value in shown]
        for place, published in there:
            ratios = [_ratio(*pair) for pair in zip(shown, published, strict=True)]
            if any(ratio != pivots.DASH for ratio in ratios):
                yield (RATIO if len(there) == 1 else f"{source} / {place}"), ratios
                break


def _sources(
    place: str, pivot: Pivot, row: Values, columns: Sequence[Values], labels: Mapping[str, str]
) -> Iterator[tuple[str, list[Shown | None]]]:
    """The lines of one source: one, or one for each stack or further parameter."""
    for source_row in pivot.rows:
        if source_row[pivot.added :] == row:
            names = [labels.get(value, value) for value in source_row[: pivot.added]]
            yield " ".join((place, *names)), [pivot.cells.get((source_row, column)) for column in columns]


def _columns(filled: Filled) -> list[Values]:
    columns = {column for pivot in _pivots(filled) for column in pivot.columns}
    return list(pivots.ordered(columns, tuple(filled.table.columns), filled.table.columns))


def _ratio(here: Shown | None, there: Shown | None) -> str:
    if here is None or there is None or not there.value:
        return pivots.DASH
    (unit, factor), (other, of_other) = units.multiple(here.unit), units.multiple(there.unit)
    return units.digits(here.value * factor / (there.value * of_other)) if unit == other else pivots.DASH


def document(done: Done) -> Block:
    """The page of a lab."""
    lab = done.lab
    return {
        "title": f"{lab.name}  {lab.title}",
        "head": [block("paragraph", block("strong", done.last), id="closing"), block("paragraph", lab.document)],
        "sections": [
            section("question", "Question", "", block("paragraph", lab.question),
                    block("bullets", *(block("code", command) for command in commands(lab)))),
            *(section(f"output-{number}", output.command, "What it prints.", block("output", output.text))
              for number, output in enumerate(done.outputs)),
            *(_figure(number, filled) for number, filled in enumerate(done.tables)),
            section("lesson", "Lesson", "", block("paragraph", lab.lesson),
                    lab.elsewhere and block("paragraph", lab.elsewhere),
                    bool(done.findings) and block("bullets", *map(finding_line, done.findings))),
        ],
    }  # fmt: skip


def _figure(number: int, filled: Filled) -> Block:
    unit = _unit(filled)
    about = "Ratios." if unit == units.RATIO else f"In {unit}." if unit else "Each value with its unit."
    pieces: list[Piece] = [_curve(filled)] if filled.table.curve else []
    return section(f"table-{number}", filled.table.title, about, *pieces, _as_block(filled))


def _as_block(filled: Filled, empty: bool = False) -> Block:
    shown, rows = cells(filled, empty)
    return shown.block(rows)


def _curve(filled: Filled) -> Block:
    """A line for each row of each source, over the numbers of the columns."""
    unit, axis = _unit(filled) or "", filled.table.curve or ""
    lines = [
        (place, pivot, row)
        for place, pivot in (*filled.published.items(), (HERE, filled.measured))
        for row in pivot.rows
    ]
    labels = filled.table.labels
    names = [
        " ".join(labels.get(word, word) for word in (*row, place if filled.published else "") if word)
        for place, _, row in lines
    ]
    places = _columns(filled)
    numbers = [float(column[0]) for column in places]
    columns = [[pivot.cells.get((row, column)) for column in places] for _, pivot, row in lines]
    return blocks.chart(
        filled.table.title,
        f"Over {axis}{'; dashed: published' if filled.published else ''}.",
        [blocks.number(axis), *(blocks.number(name, unit) for name in names)],
        [
            (units.digits(number), *(shown and units.digits(shown.value, shown.step) for shown in row))
            for number, row in zip(numbers, zip(*columns, strict=True), strict=True)
        ],
        series=[
            blocks.series(
                name,
                blocks.colour(place),
                [(row, numbers[row], shown.value, " ".join(units.human(shown.value, shown.unit, shown.step)))
                 for row, shown in enumerate(column) if shown],
                look=blocks.line(0 if source == HERE else 1, symbolSize=6),
            )
            for place, ((source, *_), name, column) in enumerate(zip(lines, names, columns, strict=True))
        ],
        together=True,
        beside=True,
        height=330,
        legend=True,
        x={"name": axis, "min": "dataMin", "max": "dataMax", **_spacing(numbers)},
        y={"name": unit, **_scale([shown.value for column in columns for shown in column if shown])},
    )  # fmt: skip


def _spacing(numbers: Sequence[float]) -> Block:
    """The kind of axis for the numbers of the columns: logarithmic where each is at least twice the one before."""
    doubled = all(0 < 2 * number <= following for number, following in itertools.pairwise(numbers))
    return {"type": "log", "logBase": 2} if doubled and len(numbers) > 2 else {"type": "value"}


def _scale(values: Sequence[float]) -> Block:
    """The kind of axis: logarithmic where the largest value is more than twenty times the least, else from 0."""
    if values and 0 < 20 * min(values) < max(values):
        return {"type": "log", "scale": False, "boundaryGap": 0}
    return {"type": "value", "scale": False, "boundaryGap": 0}


def of_campaign(usable: Sequence[AnyRecord], site_rows: Sequence[Row] = ()) -> Block:
    """The section of a report: the labs that valid records fill, those of labs too, and whether their lessons hold."""
    known = {row.id: row for row in (*(row for row in site_rows if row.experiment == LAB and row.is_valid), *usable)}
    rows = []
    for lab in model.every().values():
        records = [row for row in known.values() if lab.tests and query.begins(row.variant, f"(?:{lab.pattern})")]
        if records:
            last = evidence.closing(lab, evidence.findings(lab, records), "")
            rows.append((lab, last))
    return section(
        "labs",
        "Experiments of the documents",
        "Published experiments that this campaign repeats, or that labs measured, and whether their lesson holds.",
        bool(rows) and OF_CAMPAIGN.block(rows),
        otherwise=blocks.absent("plumb lab"),
    )


def handout(done: Done) -> Block:
    """A page for a class: question, commands and tables to be filled; the solution begins on a sheet of its own."""
    whole = document(done)
    question, *solution = whole["sections"]
    empty = [
        section(f"empty-{number}", filled.table.title, "To be filled.", _as_block(filled, empty=True))
        for number, filled in enumerate(done.tables)
    ]
    first = section("solution", "Solution", done.last, look="sheet")
    return {**whole, "head": [block("paragraph", done.lab.document)], "sections": [question, *empty, first, *solution]}
