"""``plumb import``: figures of other programs, beside the records."""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.base.units import counted
from plumbline.commands.options import command, option
from plumbline.extras.exchange import imported


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
    records = [record for log in logs for record in log.records]
    new, without = imported.keep(records), sum(log.without for log in logs)
    known = len(records) - new
    print(f"{counted(new, 'record')} imported, {known} known before, {counted(without, 'run')} without a value")
    print("imported figures are listed and compared; they are never verified, and no verdict is made of them")
    return 0
