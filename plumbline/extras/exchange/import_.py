"""``plumb import``: figures of other programs, beside the records."""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.extras.exchange import imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb import``."""
    parser.add_argument(
        "logs",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="performance logs of ReFrame, with headers, its results databases and run reports",
    )
    options.add(parser, "--site", "the site that they are of (default: the system that the log names)")
    text = "less is better in it (times are known)"
    parser.add_argument("--lower", action="append", default=[], metavar="FIGURE", help=text)


def run(args: argparse.Namespace) -> int:
    """Import all logs, or nothing if a line of one is wrong; 0."""
    logs = [imported.read(file, args.site, args.lower) for file in args.logs]
    records = [record for log in logs for record in log.records]
    new, without = imported.keep(records), sum(log.without for log in logs)
    known = len(records) - new
    print(f"{counted(new, 'record')} imported, {known} known before, {counted(without, 'run')} without a value")
    print("imported figures are listed and compared; they are never verified, and no verdict is made of them")
    return 0
