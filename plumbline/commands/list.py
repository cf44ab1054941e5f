"""``plumb list``: a line for each record."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from plumbline.base import terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.commands import options
from plumbline.judge import pivot
from plumbline.records import model
from plumbline.records.model import AnyRecord
from plumbline.show import summary

#: keys of ``--table``
PARTS = ("rows", "columns", "figures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb list``."""
    options.add_records(parser)
    parser.add_argument("--ranked", action="store_true", help="of each test and stack the best first figure first")
    text = (
        "print a table of all figures: rows=A,B columns=C by parameters of tests, placement, memory, threads, nodes, "
        "stack, test or figure; figures=PATTERN chooses some by name, and its groups (?P<NAME>…) are more of these"
    )
    parser.add_argument("--table", nargs="+", metavar="WHAT=NAMES", help=text)
    parser.add_argument("--plot", action="store_true", help="draw each row of the table, too")
    options.add_json(parser, "print JSON: a line for each record, without its launches")


def run(args: argparse.Namespace) -> int:
    """Print the records; 1 if some are damaged."""
    if args.plot and not args.table:
        raise PlumbError("--plot draws the rows of a table", "plumb list", "add --table rows=… columns=…")
    records, damages = options.rows(args)
    if args.table:
        terminal.page(pivot.text(_pivot(args.table, records), args.plot))
    elif args.json:
        options.print_lines(map(model.document, summary.ordered(records, args.ranked)))
    elif not records and options.supplied(args):
        print(f"no record is chosen by {' '.join(options.supplied(args))}")
    else:
        terminal.page(summary.listing(records, args.ranked))
    return int(options.report_damage(damages))


def _pivot(words: Sequence[str], records: Sequence[AnyRecord]) -> pivot.Pivot:
    """The table that ``rows=…``, ``columns=…`` and ``figures=…`` ask for."""
    parts = dict(word.partition("=")[::2] for word in words)
    wrong = next((word for word in words if word.partition("=")[0] not in PARTS or not word.partition("=")[2]), None)
    if wrong or "rows" not in parts or "columns" not in parts:
        message = f"'{wrong}' is not part of a table" if wrong else "a table has rows and columns"
        raise PlumbError(message, "plumb list --table", "rows=placement columns=figure")
    try:
        items = pivot.measured(records, parts.get("figures", ".*"))
    except re.error as error:
        raise PlumbError(
            f"'{parts['figures']}' is not a regular expression: {error}", "plumb list --table figures="
        ) from None
    known = {name for item in items for name in (*item.parameters, *item.others)}
    rows, columns = (dict.fromkeys(options.names_of(parts[part]), ()) for part in ("rows", "columns"))
    missing = next((name for name in (*rows, *columns) if name not in known), None)
    if items and missing:
        raise PlumbError(f"no figure has '{missing}'", "plumb list --table", suggest(missing, sorted(known)))
    return pivot.table(items, rows, columns)
