"""``plumb compare``: the figures of several sides in one table, and which is better where."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from plumbline.base import files, paths, units
from plumbline.base.errors import PlumbError
from plumbline.compare.page import closing, document, legend, members, ratio, unlike
from plumbline.judge import compare, sides
from plumbline.judge.compare import Comparison, Line
from plumbline.pages import page
from plumbline.records import query
from plumbline.views import table

#: characters of a circumstance that are shown
WIDTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb compare``."""
    parser.add_argument(
        "sides",
        nargs="+",
        metavar="SIDE",
        help="a stack, site, SITE:PARTITION, node, campaign, commit, or period FROM..TO (2026-10..2026-11); "
        "KIND=VALUE[,KIND=VALUE] says which is meant, tag=NAME a tag of git; "
        "the others are compared with the first",
    )
    parser.add_argument("--test", help="only tests whose name begins so")
    parser.add_argument("--all-figures", action="store_true", help="not only the first figure of each test")
    parser.add_argument("--format", choices=list(FORMATS), default="text")
    parser.add_argument("--output", type=files.Output, metavar="FILE", help="default, but for html: standard output")


def run(args: argparse.Namespace) -> int:
    """Print the comparison; 1 if some records are damaged."""
    if len(args.sides) < 2:
        raise PlumbError("one side is nothing to compare", "plumb compare", "give two, such as the names of two stacks")
    if args.format == "html" and args.output is None:
        raise PlumbError("html needs a file", "plumb compare", "name it by --output")
    found, damages = query.records(query.Selection(test=args.test, comparable=True))
    if not found:
        raise PlumbError("no valid record to compare", str(paths.results()), "plumb list shows what there is")
    chosen = [sides.parse(text, found) for text in args.sides]
    comparison = compare.compare(found, chosen, args.all_figures)
    if not comparison.lines:
        cure = unlike(comparison) or "plumb list shows what there is"
        what = "the sides have no figure in common" + (" that is alike" if comparison.unlike else "")
        raise PlumbError(what, "plumb compare", cure)
    made = FORMATS[args.format](comparison)
    if args.output is None:
        print(made)
    else:
        files.write("the comparison", args.output, f"{made}\n")
        print(f"compared: {args.output}, {closing(comparison)}")
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    return 1 if damages else 0


def text(comparison: Comparison) -> str:
    """Circumstances that differ, the table, what its marks mean, and the closing line."""
    blocks = []
    if comparison.circumstances:
        cells = [(name, *(value[:WIDTH] for value in values)) for name, values in comparison.circumstances]
        blocks.append(table.table(("differs too", *comparison.sides), cells))
    header, body = _cells(comparison)
    blocks.append(table.table(header, body, right=comparison.sides))
    blocks.append("\n".join(legend(comparison)))
    blocks.append(closing(comparison))
    return "\n\n".join(block for block in blocks if block)


def markdown(comparison: Comparison) -> str:
    """The table and the closing line for a page or a merge request."""
    header, body = _cells(comparison)
    lines = [f"{line}  " for line in legend(comparison)]
    return "\n".join([table.markdown(header, body, comparison.sides), "", *lines, "", f"**{closing(comparison)}**"])


def as_csv(comparison: Comparison) -> str:
    """A row for each figure and side; ratios are to the first side that has the figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("test", "placement", "figure", "site", "partition", "stack", "unit", "better", "side", "value", "sessions")
    writer.writerow((*names, "ratio", "low", "high", "basis", "claimed", "best"))
    for line in comparison.lines:
        key = line.key
        start = (key.variant, key.placement, key.figure, key.site, key.partition, key.stack, line.unit, line.better)
        for number, (side, cell) in enumerate(zip(comparison.sides, line.cells, strict=True)):
            if cell is None:
                continue
            known = line.differences[number]
            difference = (known.ratio, known.low, known.high, known.basis) if known else ("", "", "", "")
            marks = ("yes" if line.claimed[number] else "no", "yes" if number in line.best else "no")
            writer.writerow((*start, side, cell.value, len(cell.sessions), *difference, *marks))
    return out.getvalue().rstrip("\n")


def as_json(comparison: Comparison) -> str:
    """The whole comparison."""
    return json.dumps(asdict(comparison), indent=1)


def html(comparison: Comparison) -> str:
    """The comparison as a page of its own."""
    return page.render(document(comparison))


def _cells(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows."""
    kept = members(comparison)
    header = ("test", "placement", *kept, "figure", "unit", *comparison.sides, "best")
    return header, [_row(line, kept, comparison.sides) for line in comparison.lines]


def _row(line: Line, kept: list[str], names: tuple[str, ...]) -> tuple[str, ...]:
    factor, unit = units.scale(max(cell.value for cell in line.cells if cell), line.unit)
    values = [
        f"{units.digits(cell.value / factor)}  {ratio(line, number, '{:.3g}'.format)}".rstrip() if cell else "–"
        for number, cell in enumerate(line.cells)
    ]
    key = line.key
    best = " ".join(names[number] for number in line.best) or "–"
    return (key.variant, key.placement, *(getattr(key, name) for name in kept), key.figure, unit, *values, best)


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "text": text,
    "csv": as_csv,
    "json": as_json,
    "markdown": markdown,
    "html": html,
}
