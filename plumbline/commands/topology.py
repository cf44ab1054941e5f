"""``plumb topology [FILE]``: the machine as text, with a plan in its place."""

from __future__ import annotations

import argparse
import json

from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.host import devices
from plumbline.host.draw import draw
from plumbline.host.topology.plan import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", nargs="?", help="hwloc XML file or synthetic description; left out: this host")
    options.add_placement(parser, "draw the ranks of this placement, such as numa or ways:4")
    options.add_json(parser, "print its devices, their links and ways as JSON")
    parser.add_argument("--caches", action="store_true", help="show which CPUs share which cache, of every level")
    parser.add_argument("--allowed", metavar="LIST", help="use these CPUs only, such as 0-6,8")


def run(args: argparse.Namespace) -> int:
    """Print the drawing, or the devices as JSON; returns the exit status."""
    if args.json:
        if args.placement:
            raise PlumbError("--json shows no placement", None, "plumb-bind --print writes a plan as JSON")
        print(json.dumps(devices.document(args.file), indent=1))
        return 0
    plan = None
    if args.placement:
        plan = resolve(
            args.placement,
            threads=args.threads,
            memory=args.memory,
            ranks=args.ranks,
            topology=args.file,
            allowed=args.allowed,
        )
    elif any(value is not None for value in (args.threads, args.memory, args.ranks, args.allowed)):
        raise PlumbError("--threads, --memory, --ranks and --allowed describe a placement", None, "add --placement P")
    print(draw(args.file, plan, caches=args.caches), end="")
    return 0
