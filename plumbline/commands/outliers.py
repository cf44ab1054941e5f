"""``plumb outliers``: nodes and links that differ from their class."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent
from plumbline.base.verdicts import EXIT
from plumbline.judge import statement
from plumbline.records import query
from plumbline.views.table import table

if TYPE_CHECKING:
    from plumbline.judge.members import Matrix, Nodes
    from plumbline.judge.outliers import Verdict

HEADER = ("class", "members", "launches", "noise", "detectable", "verdict", "what")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb outliers``."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("id", nargs="?", help="judge the links of this record of the pairs kernel (last: the newest)")
    source.add_argument(
        "--nodes", type=Path, metavar="F.csv", help="columns node,class,value or node,series,index,value"
    )
    source.add_argument("--matrix", type=Path, metavar="F.csv", help="columns first,second,class,value (and launch)")
    parser.add_argument("--better", choices=("lower", "higher"), help="direction of the values of a file")
    parser.add_argument(
        "--min-effect", type=float, default=0.02, metavar="X", help="smallest difference (default 0.02)"
    )
    parser.add_argument(
        "--must-detect",
        type=float,
        default=0.10,
        metavar="X",
        help="INCONCLUSIVE if this is hidden (default 0.1: 10 %%)",
    )
    parser.add_argument("--site", help="only records of this site")
    parser.add_argument("--test", help="only tests whose name begins so")
    parser.add_argument("--figure", help="only figures of this name, such as triad")
    parser.add_argument("--json", action="store_true", help="a JSON line per class of the records too")


def run(args: argparse.Namespace) -> int:
    """Judge every class; returns the gate's exit status: 0 PASS, 1 FAIL (something is slower), 2 INCONCLUSIVE."""
    from plumbline.judge.outliers import (
        Margins,
        closing,
        decide,  # not above: scipy takes longer to load than most commands run
    )

    margins = Margins(args.min_effect, args.must_detect)
    verdicts = decide(_classes(args), margins)
    if args.json or args.nodes or args.matrix:
        print(statement.lines(verdicts), flush=True)
        print(closing(verdicts), file=sys.stderr)
    else:
        print(f"{table(HEADER, [_row(item) for item in verdicts], right=HEADER[2:5])}\n\n{closing(verdicts)}")
    return EXIT[statement.overall(verdicts)]


def _classes(args: argparse.Namespace) -> list[Nodes | Matrix]:
    from plumbline.judge import from_csv, samples

    file = args.nodes or args.matrix
    for name in ("site", "test", "figure") if file or args.id else ():
        if getattr(args, name):
            raise PlumbError(f"--{name} chooses among all records", "plumb outliers", "leave it out")
    if file and not args.better:
        raise PlumbError("the direction is missing", "plumb outliers", "say --better lower or --better higher")
    if args.better and not file:
        raise PlumbError("--better goes with a file", "plumb outliers", "records know their direction")
    if args.nodes:
        return list(from_csv.nodes(args.nodes, args.better))
    if args.matrix:
        return list(from_csv.matrices(args.matrix, args.better))
    if args.id:
        return list(samples.matrices(query.find(args.id)))
    rows, damages = query.records(query.Selection(site=args.site, test=args.test, valid=True))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    found = list(samples.nodes(rows, args.test, args.figure))
    if not found:
        raise PlumbError("no verified record of a single node", "plumb outliers", "measure several nodes first")
    return [*found]


def _row(item: Verdict) -> tuple[str, ...]:
    members = ", ".join(counted(count, kind) for kind, count in item.members.items())
    seen = ", ".join("none" if value is None else percent(value) for value in item.seen.values()) or "none"
    notes = [note for finding in item.findings for note in finding.notes][:2]
    return (
        item.subject,
        members,
        str(item.count),
        percent(item.noise),
        seen,
        item.state,
        f"{item.said} ({'; '.join(notes)})" if notes else item.said,
    )
