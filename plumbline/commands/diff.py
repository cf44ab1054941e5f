"""``plumb diff``: what differs between two records, and between their profiles where they have some."""

from __future__ import annotations

import argparse

from plumbline import profiles
from plumbline.profiles import difference
from plumbline.records import query
from plumbline.views import diff


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb diff``."""
    parser.add_argument("first")
    parser.add_argument("second")


def run(args: argparse.Namespace) -> int:
    """Print the differences; always 0."""
    both = query.find(args.first), query.find(args.second)
    blocks = [diff.text(*both)]
    if all(record.is_profiled for record in both):
        blocks.append(difference.text(*(profiles.read.load(profiles.read.file_of(one.site, one.id)) for one in both)))
    print("\n\n".join(blocks))
    return 0
