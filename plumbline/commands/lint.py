"""``plumb lint``: checks that every reference of every site is one that a record can be compared with."""

from __future__ import annotations

import argparse
import contextlib

from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.references import match
from plumbline.references.faults import faults
from plumbline.site import tests as suite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb lint``."""
    parser.add_argument("sites", nargs="*", metavar="SITE", help="default: all")
    options.add_json(parser, "print JSON: a line for each fault")


def run(args: argparse.Namespace) -> int:
    """Print a line per fault; 1 if there is one."""
    names, tests = options.sites_of(args), suite.expected()
    found = {name: faults(name, tests) for name in names}
    if args.json:
        options.print_lines({"site": name, "fault": fault} for name in names for fault in found[name])
    else:
        count = sum(map(_count, names))
        total = sum(map(len, found.values()))
        print("".join(f"FAULT {fault}\n" for name in names for fault in found[name]), end="")
        print(f"{len(names)} sites, {count} references, {total} faults")
    return 1 if any(found.values()) else 0


def _count(name: str) -> int:
    """How many references a site has in the files that can be read."""
    count = 0
    for file in match.files(name):
        with contextlib.suppress(PlumbError):
            count += len(match.read(file).references)
    return count
