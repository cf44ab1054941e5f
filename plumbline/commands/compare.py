"""``plumb compare``: the figures of several sides in one table, and which is better where."""

from __future__ import annotations

import argparse

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.judge import agreement, compare, sides
from plumbline.show.compare import forms
from plumbline.show.compare.page import closing, unlike


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
    options.add_records(parser)
    parser.add_argument("--all-figures", action="store_true", help="not only the first figure of each test")
    options.add_json(parser, "print the whole comparison as JSON")
    options.add_output(parser, "write the comparison to a file", *forms.FORMS)


def run(args: argparse.Namespace) -> int:
    """Print the comparison; 1 if some records are damaged."""
    if len(args.sides) < 2:
        raise PlumbError("one side is nothing to compare", "plumb compare", "give two, such as the names of two stacks")
    rows, damages = options.rows(args, comparable=True)
    if not rows:
        raise PlumbError("no valid record to compare", str(paths.results()), "plumb list shows what there is")
    named = [sides.parse(text, rows) for text in args.sides]
    doubtful = agreement.doubtful_of([row for row in rows if any(side.has(row) for side in named)])
    comparison = compare.compare(rows, named, args.all_figures, doubtful)
    if not comparison.lines:
        cure = unlike(comparison) or "plumb list shows what there is"
        message = "the sides have no figure in common" + (" that is alike" if comparison.unlike else "")
        raise PlumbError(message, "plumb compare", cure)
    options.write("the comparison", args.output, forms.of(comparison))
    if args.json or not args.output:
        print((forms.as_json if args.json else forms.text)(comparison))
    else:
        print("\n".join(f"compared: {file}, {closing(comparison)}" for file in args.output))
    return int(options.report_damage(damages))
