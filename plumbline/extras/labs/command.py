"""``plumb lab``: an experiment of a document, this machine's figures beside it, and whether the lesson holds.

A lab is shown as a text, as a page, and as a hand-out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import shlex
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from plumbline import site
from plumbline.base import files, group, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.labs import evidence, model
from plumbline.extras.labs.evidence import Filled, LessonFinding, Output, finding_line
from plumbline.extras.labs.model import RECORD, Lab
from plumbline.judge import pivot as pivots
from plumbline.judge.pivot import Pivot, Shown, Values
from plumbline.records import outcome, query, sources
from plumbline.records.model import AnyRecord, Row
from plumbline.records.outcome import LAB
from plumbline.records.store import Damage
from plumbline.show import pages
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, Piece, block, section
from plumbline.stacks import manifest as manifests

#: rounds over all variants, each a session of its own, so that what changes meanwhile meets all of them: so many show
#: differences of 5 % beside 1 % of noise with the error of :data:`evidence.FIRM`
ROUNDS = 5


@command(
    option("labs", "labs to run, such as R7, or all (default: list the labs)", nargs="*", metavar="LAB"),
    flag("--recorded", "use existing records without measuring"),
    option("--minutes", "start no lab whose estimated end is after M minutes"),
    options.output("write the lab to a file", ".html", ".json", ".md", ".txt"),
    option(
        "--handout",
        "write a handout for a class: question, commands, empty table, and the solution on a separate page",
        type=files.Output,
        metavar="FILE",
    ),
    options.records("site", "stack", "campaign", "since", "until"),
)
def run_lab(args: argparse.Namespace) -> int:
    """List the labs, or measure and show some; 1 if a case failed or records are damaged."""
    lacks = _lacking()
    if not args.labs:
        if args.output or args.handout:
            raise PlumbError("no lab is named", str((*args.output, args.handout)[0]), "plumb lab R7 --output FILE")
        terminal.page(listing(lacks))
        return 0
    labs = list(model.every(_damaged).values()) if args.labs == ["all"] else list(map(model.named, args.labs))
    chosen = _chosen(args)
    if args.minutes is not None:  # first those whose lesson can show here
        labs.sort(key=lambda lab: bool(lacks(lab)))
    single = [file for file in args.output if file.suffix != ".md"]
    if len(labs) > 1 and (single or args.handout):
        raise PlumbError("this file shows one lab", str((*single, args.handout)[0]), "name one lab, or write .md")
    status, begin, shown = 0, time.monotonic(), []
    for lab in labs:
        left = math.inf if args.minutes is None else args.minutes - (time.monotonic() - begin) / 60
        if lab.minutes > left and not args.recorded:
            print(f"{lab.name} left out: it takes {lab.minutes:g} min, {max(left, 0):.0f} min are left")
            continue
        if not args.recorded:
            status = max(status, _measure(lab, chosen))
        done, damages = _done(lab, lacks(lab), args)
        status = max(status, int(options.report_damage(damages)))
        shown.append(done)
        terminal.page(text(done) + ("\n" if len(labs) > 1 else ""))
    if len(labs) > 1:
        print("\n" + SUMMARY.text(shown))
    if shown:
        _write(shown, args)
    return status


def _damaged(error: PlumbError) -> None:
    print(f"plumb: {error}", file=sys.stderr)


def _chosen(args: argparse.Namespace) -> list[str]:
    """ReFrame's options for what is to be measured, of the options that choose records."""
    if args.stack and not (args.recorded and query.count(query.Selection(stack=args.stack))):
        manifests.load(args.stack)  # raises where there is no such stack
    if args.recorded:
        if args.site:
            sources.require_site(args.site)
        return []
    if past := next((name for name in ("campaign", "since", "until") if getattr(args, name)), None):
        raise PlumbError(f"--{past} chooses records that there are", "plumb lab", "add --recorded")
    if args.site and args.site != site.here():
        raise PlumbError(f"this host is of the site {site.here()}", f"--site {args.site}", "add --recorded")
    return ["-p", f"^{re.escape(args.stack)}$"] if args.stack else []


def listing(lacks: Callable[[Lab], str]) -> str:
    """The labs by document: minutes, and the needs that this host lacks."""
    shown = Table[Lab](
        "Labs",
        [
            Column("lab", lambda lab: lab.name),
            Column("experiment", lambda lab: lab.title),
            Column("min", lambda lab: f"{lab.minutes:g}", "number"),
            Column("needs", lambda lab: model.words(lab.needs)),
            Column("here", lambda lab: f"no: {lacks(lab)}" if lacks(lab) else "yes"),
        ],
        whole=True,
    )
    labs = group((lab.document, lab) for lab in model.every(_damaged).values())
    parts = [f"{document or 'Labs of your own'}\n{shown.text(mine)}" for document, mine in labs.items()]
    count = units.counted(sum(map(len, labs.values())), "lab")
    return "\n\n".join([*parts, f"{count}; plumb lab R7 measures one, plumb lab R7 --recorded uses the records"])


def _lacking() -> Callable[[Lab], str]:
    """A function that names the means a lab needs and the site of this host lacks."""
    here = site.claiming(site.load_all())
    if here is None:
        return lambda lab: "no site is configured for this host: plumb site init"
    offers = model.offered(here)
    return lambda lab: model.lacking(lab.needs, offers)


def _measure(lab: Lab, chosen_options: Sequence[str]) -> int:
    """Run the tests of a lab as a campaign, in rounds; returns its exit status."""
    if not lab.tests:
        return 0
    from plumbline.measure.reframe import campaign, cases  # here: a list of labs needs no ReFrame

    rounds = 1 if all(table.counted for table in lab.tables) else ROUNDS
    launches = [] if any(option.startswith("launches=") for option in lab.options) else ["-S", "launches=1"]
    chosen = [*campaign.named(lab.pattern), *chosen_options, *lab.options, *launches]
    print(f"{lab.name}: {lab.question}", flush=True)
    tests = campaign.Tests(
        cases.files(lab.pattern), LAB, chosen, part=outcome.CHOSEN, experiment=LAB, rounds=rounds,
        expected_s=60 * lab.minutes,
    )  # fmt: skip
    status = campaign.measure(tests)
    if status == campaign.INTERRUPTED:  # the next lab is not begun
        raise KeyboardInterrupt
    return status


def _done(lab: Lab, lacks: str, args: argparse.Namespace) -> tuple[Done, list[Damage]]:
    """A lab with the records that the options choose, by default those of this host's site; and the damages."""
    where = options.selection(args, test=f"(?:{lab.pattern})" if lab.tests else "(?!)")
    rows, damages = query.records(where if where.site else replace(where, site=site.here()))
    rows = [row for row in rows if row.experiment in (None, outcome.LAB)]
    if not rows:
        query.require(replace(where, test=None))
    newest = rows[-1].id if rows else ""
    outputs = [
        evidence.not_run(entry, UNRECORDED)
        if args.recorded and entry.measures
        else evidence.not_run(entry)
        if RECORD in entry.command and not newest
        else evidence.run_printed(entry, newest)
        for entry in lab.prints
    ]
    findings = [*evidence.findings(lab, rows), *(finding for output in outputs for finding in output.findings)]
    return Done(lab, evidence.filled(lab, rows), outputs, findings, evidence.closing(lab, findings, lacks)), damages


def _write(shown: Sequence[Done], args: argparse.Namespace) -> None:
    """The files that the options name."""
    done = shown[0]
    options.write("the lab", args.output, {
        ".html": lambda: pages.render(document(done)),
        ".json": lambda: as_json(done),
        ".md": lambda: f"{SUMMARY.markdown(shown)}\n",
        ".txt": lambda: f"{text(done)}\n",
    })  # fmt: skip
    if args.handout:
        files.write("the hand-out", args.handout, pages.render(handout(done)))


#: why a command of a lab has no output
UNRECORDED = "records do not keep its output; without --recorded it is measured"
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
    parts = [
        f"{lab.name}  {lab.title}\n{lab.document}",
        _wrapped(lab.question),
        *(f"$ {output.command}\n{output.text}" for output in done.outputs if output.text),
    ]
    for filled in done.tables:
        shown, rows = cells(filled)
        unit = _unit(filled)
        of = f", {unit}" if unit and unit != units.RATIO else ""
        parts.append("\n".join(filter(None, (f"{filled.table.title}{of}", shown.text(rows), ranking(filled)))))
    parts += [
        _wrapped(lab.lesson),
        _wrapped(lab.elsewhere),
        *(["\n".join(map(finding_line, done.findings))] if len(done.findings) > 1 else []),
    ]
    return "\n\n".join(filter(None, [*parts, done.last]))


def _wrapped(sentences: str) -> str:
    return textwrap.fill(sentences, min(terminal.width() or WIDTH, WIDTH))


def as_json(done: Done) -> str:
    """Name, findings and closing line, and the tables as they are printed."""
    tables = [
        {
            "title": filled.table.title,
            "unit": _unit(filled),
            "header": [column.title for column in shown.columns],
            "rows": rows,
        }
        for filled in done.tables
        for shown, rows in [cells(filled)]
    ]
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
    if empty and not keys:
        keys = set(itertools.product(*(values or [""] for values in filled.table.rows.values())))
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


def ranking(filled: Filled, empty: bool = False) -> str:
    """The values that the document lets its reader rank, by their medians here; to be filled by hand if ``empty``."""
    ranked, measured = filled.table.ranked, filled.measured
    by_value = group(
        (value, shown)
        for (row, column), shown in measured.cells.items()
        for name, value in zip((*measured.by_row, *measured.by_column), (*row, *column), strict=True)
        if value in ranked.get(name, ())
    )
    places = [name for names in ranked.values() for name in names]
    if empty:
        return "   ".join(f"{number}.) ________" for number in range(1, len(places) + 1))
    if len(by_value) < max(len(places), 1):
        return ""
    sign = 1 if by_value[places[0]][0].better == "lower" else -1
    places.sort(key=lambda value: sign * statistics.median(shown.value for shown in by_value[value]))
    labels = filled.table.labels
    return "from best to poorest: " + ", ".join(labels.get(value, value) for value in places)


def _lines(filled: Filled, row: Values, columns: Sequence[Values], empty: bool) -> Iterator[tuple[str, list[str]]]:
    """The values of each source in a row, and the ratio to each publication with a value for a column."""
    unit, labels, nearest = _unit(filled), filled.table.labels, filled.table.nearest
    by_row = [
        [line for place, pivot in filled.published.items() for line in _sources(place, pivot, alike, columns, labels)]
        for alike in _alike(row, nearest)
    ]
    there, near = by_row[0], next(filter(None, by_row), [])
    here = list(_sources(HERE, filled.measured, row, columns, labels))
    for source, shown in there:
        yield source, [pivots.formatted(value, unit) for value in shown]
    if empty:
        yield HERE, [""] * len(columns)
        return
    for source, shown in here:
        yield source, [pivots.formatted(value, unit) for value in shown]
        for place, published in near:
            by_column = dict(zip(columns, published, strict=True))
            ratios = [
                _ratio(value, next(filter(None, map(by_column.get, _alike(column, nearest))), None))
                for column, value in zip(columns, shown, strict=True)
            ]
            if any(ratio != pivots.DASH for ratio in ratios):
                yield (RATIO if len(near) == 1 else f"{source} / {place}"), ratios


def _alike(column: Values, nearest: Mapping[str, Sequence[str]]) -> list[Values]:
    """The rows or columns that mean the same by their last attribute, itself first."""
    return [column, *((*column[:-1], value) for value in nearest.get(column[-1], ()))]


def _sources(
    place: str, pivot: Pivot, row: Values, columns: Sequence[Values], labels: Mapping[str, str]
) -> Iterator[tuple[str, list[Shown | None]]]:
    """The lines of one source: one, or one for each stack or further parameter."""
    for source_row in pivot.rows:
        if source_row[pivot.added :] == row:
            names = [labels.get(value, value) for value in source_row[: pivot.added]]
            yield " ".join((place, *names)), [pivot.cells.get((source_row, column)) for column in columns]


def _columns(filled: Filled) -> list[Values]:
    axes = (values or [f"{name} …"] for name, values in filled.table.columns.items())
    columns = {column for pivot in _pivots(filled) for column in pivot.columns} or set(itertools.product(*axes))
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
            *(section(f"output-{number}", f"Output of {' '.join(output.command.split()[:2])}", "",
                      block("paragraph", block("code", output.command)), block("output", output.text))
              for number, output in enumerate(done.outputs) if output.text),
            *(_figure(number, filled) for number, filled in enumerate(done.tables)),
            section("lesson", "Lesson", "", block("paragraph", lab.lesson),
                    lab.elsewhere and block("paragraph", lab.elsewhere),
                    bool(done.findings) and block("bullets", *map(finding_line, done.findings))),
        ],
    }  # fmt: skip


def _figure(number: int, filled: Filled) -> Block:
    unit = _unit(filled)
    about = "Ratios." if unit == units.RATIO else f"In {unit}." if unit else "Each value with its unit."
    table, rows = cells(filled)
    ranked = ranking(filled)
    return section(
        f"table-{number}", filled.table.title, about,
        _curve(filled, filled.table.curve) if filled.table.curve else "", table.block(rows),
        ranked and block("paragraph", ranked),
    )  # fmt: skip


def _curve(filled: Filled, axis: str) -> Piece:
    """A line for each row of each source that has two values or more, over the numbers of the columns."""
    unit, places = _unit(filled) or "", _columns(filled)
    lines = [
        (place, pivot, row)
        for place, pivot in (*filled.published.items(), (HERE, filled.measured))
        for row in pivot.rows
        if sum((row, column) in pivot.cells for column in places) > 1
    ]
    if not lines:
        return ""
    labels = filled.table.labels
    names = [
        " ".join(labels.get(word, word) for word in (*row, place if filled.published else "") if word)
        for place, _, row in lines
    ]
    numbers = [float(column[0]) for column in places]
    doubled = len(numbers) > 2 and all(0 < 2 * number <= following for number, following in itertools.pairwise(numbers))
    columns = [[pivot.cells.get((row, column)) for column in places] for _, pivot, row in lines]
    values = [shown.value for column in columns for shown in column if shown]
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
        x={"name": axis, "min": "dataMin", "max": "dataMax",
           **({"type": "log", "logBase": 2} if doubled else {"type": "value"})},
        y={"name": unit, "type": "log" if 0 < 20 * min(values) < max(values) else "value", "scale": False,
           "boundaryGap": 0},
    )  # fmt: skip


def of_campaign(usable: Sequence[AnyRecord], site_rows: Sequence[Row] = ()) -> Block:
    """The section of a report: the labs that valid records fill, those of labs too, and whether their lessons hold."""
    known = {row.id: row for row in (*(row for row in site_rows if row.experiment == LAB and row.is_valid), *usable)}
    rows = [
        (lab, evidence.closing(lab, evidence.findings(lab, records), ""))
        for lab in model.every().values()
        if lab.tests and (records := [row for row in known.values() if query.begins(row.variant, f"(?:{lab.pattern})")])
    ]
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
        section(f"empty-{number}", filled.table.title, "To be filled.", table.block(rows),
                bool(filled.table.ranked) and block("paragraph", ranking(filled, empty=True)))
        for number, filled in enumerate(done.filled)
        for table, rows in [cells(filled, empty=True)]
    ]  # fmt: skip
    return {
        **whole,
        "head": [block("paragraph", done.lab.document)],
        "sections": [question, *empty, section("solution", "Solution", done.last, look="sheet"), *solution],
    }
