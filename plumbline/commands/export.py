"""``plumb export``: the figures of records, in forms that other programs read."""

from __future__ import annotations

import argparse
import sys

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.exchange import jube, openmetrics, reframe, rows

#: forms of every figure; the others hold what is valid, because their readers do not ask
EVERY = ("csv", "parquet")
#: forms of text, which may go to standard output, and those of files or (jube) folders
TEXTS = {"csv": rows.as_csv, "openmetrics": openmetrics.text}
FILES = {"parquet": rows.write_parquet, "reframe": reframe.write, "jube": jube.write}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb export``."""
    parser.add_argument("--format", choices=[*TEXTS, *FILES], required=True, help="what is made of the figures")
    text = "a file, for jube a folder (default for csv and openmetrics: standard output)"
    options.add(parser, "--output", text)
    options.add_records(parser)


def run(args: argparse.Namespace) -> int:
    """Write the figures; 1 if some records are damaged."""
    found, damages = options.rows(args)
    every = rows.figures(found)
    figures = every if args.format in EVERY else [figure for figure in every if figure.valid]
    if args.format == "openmetrics":
        figures = openmetrics.shown(figures)
    if not every:
        raise PlumbError("no figure to export", "plumb export", "plumb list shows what there is")
    if not figures:
        what = f"no valid figure to export among {counted(len(every), 'figure')}"
        raise PlumbError(what, f"plumb export --format {args.format}", f"{' and '.join(EVERY)} hold every figure")
    if args.format in TEXTS:
        text = TEXTS[args.format](figures)
        if args.output is None:
            print(text, end="")
        else:
            files.write("the figures", args.output, text)
    elif args.output is None:
        raise PlumbError(f"{args.format} needs a place", "plumb export", "name a file by --output, for jube a folder")
    else:
        FILES[args.format](figures, args.output)
    damaged = options.report_damage(damages)
    records = counted(len({figure.id for figure in figures}), "record")
    left = f", {len(every) - len(figures)} left out" if len(figures) < len(every) else ""
    place = f"{args.output}, " if args.output else ""
    told = f"exported: {place}{counted(len(figures), 'figure')} of {records}{left}"
    print(told, file=sys.stdout if args.output else sys.stderr)
    return int(damaged)
