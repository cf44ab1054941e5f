"""``plumb list``: a line for each record."""

from __future__ import annotations

import argparse

from plumbline.base import terminal
from plumbline.commands import options
from plumbline.records import model
from plumbline.views import summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb list``."""
    options.add_records(parser)
    parser.add_argument("--ranked", action="store_true", help="of each test and stack the best first figure first")
    options.add_json(parser, "print JSON: a line for each record, without its launches")


def run(args: argparse.Namespace) -> int:
    """Print the records; 1 if some are damaged."""
    records, damages = options.rows(args)
    if args.json:
        options.print_lines(map(model.document, summary.ordered(records, args.ranked)))
    elif not records and options.given(args):
        print(f"no record is chosen by {' '.join(options.given(args))}")
    else:
        terminal.page(summary.listing(records, args.ranked))
    return int(options.report_damage(damages))
