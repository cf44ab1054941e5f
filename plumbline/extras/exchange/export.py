"""``plumb export``: the figures of records, in forms that other programs read."""

from __future__ import annotations

import argparse
import sys

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.extras.exchange import openmetrics, reframe, rows

#: the form of every figure; the others hold the valid ones, because their readers do not ask
EVERY = "csv"
#: forms of text, which may go to standard output, and that of a database
TEXTS = {"csv": rows.as_csv, "openmetrics": openmetrics.text}
DATABASE = "reframe"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb export``."""
    parser.add_argument("--format", choices=[*TEXTS, DATABASE], required=True, help="what is made of the figures")
    options.add(parser, "--output", "a file (default for csv and openmetrics: standard output)")
    options.add_records(parser)


def run(args: argparse.Namespace) -> int:
    """Write the figures; 1 if some records are damaged."""
    stored, damages = options.rows(args)
    every = rows.figures(stored)
    figures = every if args.format == EVERY else [figure for figure in every if figure.valid]
    if args.format == "openmetrics":
        figures = openmetrics.shown(figures)
    if not every:
        raise PlumbError("no figure to export", "plumb export", "plumb list shows what there is")
    if not figures:
        message = f"no valid figure to export among {counted(len(every), 'figure')}"
        raise PlumbError(message, f"plumb export --format {args.format}", f"{EVERY} holds every figure")
    if args.format in TEXTS:
        text = TEXTS[args.format](figures)
        if args.output is None:
            print(text, end="")
        else:
            files.write("the figures", args.output, text)
    elif args.output is None:
        raise PlumbError(f"{args.format} needs a place", "plumb export", "name a file by --output")
    else:
        reframe.write(figures, args.output)
    damaged = options.report_damage(damages)
    records = counted(len({figure.id for figure in figures}), "record")
    left = f", {len(every) - len(figures)} left out" if len(figures) < len(every) else ""
    place = f"{args.output}, " if args.output else ""
    closing = f"exported: {place}{counted(len(figures), 'figure')} of {records}{left}"
    print(closing, file=sys.stdout if args.output else sys.stderr)
    return int(damaged)
