"""``plumb show``: one record."""

from __future__ import annotations

import argparse
import json

from plumbline.commands import options
from plumbline.records import model, query
from plumbline.show import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb show``."""
    parser.add_argument("id", nargs="?", default="last", help="beginning of a record's id (default: the newest record)")
    options.add_json(parser, "print the whole record as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the record and return 0; raises :class:`PlumbError` if it is not found."""
    record = query.find(args.id)
    print(json.dumps(model.document(record), indent=1) if args.json else show.text(record))
    return 0
