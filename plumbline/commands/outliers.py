"""``plumb outliers``: nodes and links that differ from their class."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.base.units import counted, percent
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.judge import from_csv, samples, statement
from plumbline.judge.members import Matrix, Nodes
from plumbline.judge.outliers import Margins, Verdict, closing, decide
from plumbline.records import query

#: above this number of INCONCLUSIVE rows with one reason, one line stands for all of these
MOST_ALIKE = 5
HEADER = ("class", "members", "launches", "noise", "detectable", "verdict", "what")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb outliers``."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("id", nargs="?", help="judge the links of this record of the pairs kernel (last: the newest)")
    source.add_argument(
        "--members", type=Path, metavar="FILE", help="CSV with the columns node,class,value or node,series,index,value"
    )
    text = "CSV with the columns first,second,class,value (and launch)"
    source.add_argument("--matrix", type=Path, metavar="FILE", help=text)
    options.add_better(parser, "a file")
    options.add(parser, "--tolerance", "smallest difference that counts (default: 0.02, 2 %%)", default=0.02)
    options.add(parser, "--must-detect", "INCONCLUSIVE if this is hidden (default: 0.1, 10 %%)", default=0.10)
    options.add_records(parser)
    options.add(parser, "--figure", "only figures of this name, such as triad")
    options.add_json(parser, "print JSON of records too: a line for each class")


def run(args: argparse.Namespace) -> int:
    """Judge every class; returns the gate's exit status: 0 PASS, 1 FAIL (something is slower), 2 INCONCLUSIVE."""
    margins = Margins(args.tolerance, args.must_detect)
    verdicts = decide(_classes(args), margins)
    if args.json or args.members or args.matrix:
        print(statement.lines(verdicts), flush=True)
        print(closing(verdicts), file=sys.stderr)
    else:
        show(verdicts)
    return EXIT[statement.overall(verdicts)]


def show(verdicts: Sequence[Verdict]) -> None:
    """Print the table, in which classes that are undecided for one reason are a line."""
    counts = Counter(item.explanation for item in verdicts if item.state == "INCONCLUSIVE")
    alike = {reason: count for reason, count in counts.items() if count > MOST_ALIKE}
    if rows := [_row(item) for item in verdicts if item.explanation not in alike]:
        print(f"{table(HEADER, rows, right=HEADER[2:5])}\n")
    for reason, count in alike.items():
        print(f"{count} classes are INCONCLUSIVE: {reason}\n")
    print(closing(verdicts))


def _classes(args: argparse.Namespace) -> list[Nodes | Matrix]:
    file = args.members or args.matrix
    for option in options.supplied(args, *options.RECORDS, "figure") if file or args.id else ():
        raise PlumbError(f"{option} chooses among all records", "plumb outliers", "leave it out")
    if file and not args.better:
        raise PlumbError("the direction is missing", "plumb outliers", "say --better lower or --better higher")
    if args.better and not file:
        raise PlumbError("--better goes with a file", "plumb outliers", "records know their direction")
    if args.members:
        return list(from_csv.nodes(args.members, args.better))
    if args.matrix:
        return list(from_csv.matrices(args.matrix, args.better))
    if args.id:
        return list(samples.matrices(query.find(args.id)))
    rows, damages = options.rows(args, valid=True)
    options.report_damage(damages)
    classes = list(samples.nodes(rows, args.figure))
    if not classes:
        raise PlumbError("no verified record of a single node", "plumb outliers", "measure several nodes first")
    return [*classes]


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
        f"{item.explanation} ({'; '.join(notes)})" if notes else item.explanation,
    )
