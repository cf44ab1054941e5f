"""``plumb export``: figures for other programs; ``plumb import``: figures of other programs, beside the records."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.commands.options import command, option
from plumbline.extras.exchange import imported, reframe, rows
from plumbline.records import query
from plumbline.records.model import Row

#: the form of every figure; the others hold the valid ones, because their readers do not ask
EVERY = "csv"
#: forms of text, which may go to standard output, and that of a database
TEXTS: dict[str, Callable[[Iterable[rows.Exported]], Iterable[str]]] = {
    EVERY: rows.as_csv,
    "openmetrics": lambda figures: [rows.as_openmetrics(figures)],
}
DATABASE = "reframe"


@command(
    option("--format", "output format", choices=[*TEXTS, DATABASE], required=True),
    option("--output", "file to write (default for csv and openmetrics: standard output)"),
    options.records(),
    options.EXPERIMENTS,
)
def run_export(args: argparse.Namespace) -> int:
    """Write the figures; 1 if some records are damaged."""
    options.rows(args, 1)
    stored, damages = query.each(options.selection(args))
    counts = Counter[str]()

    def counting() -> Iterator[Row]:
        for row in stored:
            counts.update(records=int(bool(row.figures)), figures=len(row.figures))
            yield row

    every = rows.figures(counting())
    first = next(every, None)
    if first is None:
        raise PlumbError("no figure to export", "plumb export", "plumb list shows what there is")
    figures: Iterable[rows.Exported] = itertools.chain([first], every)
    if args.format != EVERY:  # not a stream: of several figures one may count
        figures = [figure for figure in figures if figure.row.is_valid]
        figures = rows.in_openmetrics(figures) if args.format == "openmetrics" else figures
        if not figures:
            raise PlumbError(
                f"no valid figure to export among {counted(counts['figures'], 'figure')}",
                f"plumb export --format {args.format}",
                f"{EVERY} holds every figure",
            )
        records = len({figure.row.id for figure in figures})
        counts = Counter(records=records, figures=len(figures), left=counts["figures"] - len(figures))
    if args.format in TEXTS:
        text = TEXTS[args.format](figures)
        if args.output is None:
            for part in text:
                print(part, end="")
        else:
            files.write("the figures", args.output, text)
    elif args.output is None:
        raise PlumbError(f"{args.format} needs a place", "plumb export", "name a file by --output")
    else:
        reframe.write([*figures], args.output)
    left = f", {counts['left']} left out" if counts["left"] else ""
    place = f"{args.output}, " if args.output else ""
    closing = f"exported: {place}{counted(counts['figures'], 'figure')} of {counted(counts['records'], 'record')}{left}"
    damaged = options.report_damage(damages)
    print(closing, file=sys.stdout if args.output else sys.stderr)
    return int(damaged)


@command(
    option(
        "logs",
        "ReFrame performance log with a header, results database or run report",
        nargs="+",
        type=Path,
        metavar="FILE",
    ),
    option("--site", "site of the figures (default: the system in the log)"),
    option(
        "--lower",
        "figure whose lower values are better (times are recognized)",
        action="append",
        default=[],
        metavar="FIGURE",
    ),
)
def run_import(args: argparse.Namespace) -> int:
    """Import all logs, or nothing if a line of one is wrong; 0."""
    logs = [imported.read(file, args.site, args.lower) for file in args.logs]
    records = [record for log, _ in logs for record in log]
    new, without = imported.keep(records), sum(count for _, count in logs)
    known = len(records) - new
    print(f"{counted(new, 'record')} imported, {known} known before, {counted(without, 'run')} without a value")
    print("imported figures are listed and compared; they are never verified, and no verdict is made of them")
    return 0
