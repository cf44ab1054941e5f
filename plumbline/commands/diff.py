"""``plumb diff``: differences between two records, and between their profiles where they have some."""

from __future__ import annotations

import argparse
import json

from plumbline.base.extensions import Extension
from plumbline.commands import options
from plumbline.records import query
from plumbline.records.model import AnyRecord
from plumbline.show import diff

#: further texts about two records; empty where there is nothing to say
SECTIONS: Extension[[AnyRecord, AnyRecord], str] = Extension("diff.sections")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb diff``."""
    for which in ("first", "second"):
        parser.add_argument(which, metavar="ID", help=f"beginning of the {which} record's id, or last")
    options.add_json(parser, "print circumstances that differ, and all figures, as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the differences; always 0."""
    both = query.find(args.first), query.find(args.second)
    if args.json:
        print(json.dumps(diff.document(*both), indent=1))
        return 0
    blocks = [diff.text(*both)]
    blocks += filter(None, SECTIONS(*both))
    print("\n\n".join(blocks))
    return 0
