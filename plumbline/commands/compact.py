"""``plumb compact``: many session files into few Parquet files."""

from __future__ import annotations

import argparse
import re
import sys

from plumbline.base import paths
from plumbline.base.errors import PlumbError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb compact``."""
    parser.add_argument("--site", help="default: all sites that have records")
    parser.add_argument("--before", metavar="DATE", help="only sessions older than this (UTC, YYYY-MM-DD)")
    parser.add_argument(
        "--remove", action="store_true", help="remove session files whose records are compacted, bit for bit"
    )


def run(args: argparse.Namespace) -> int:
    """Compact the records; returns 1 if some are damaged, else 0."""
    from plumbline.records import compact  # not above: the engine takes longer to load than most commands to run

    if args.before and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", args.before):
        raise PlumbError(f"'{args.before}' is no date", "plumb compact --before", "give YYYY-MM-DD")
    damages = []
    sites = [args.site] if args.site else _sites()
    if not sites:
        print("nothing to compact")
    for site in sites:
        found = compact.compact(site, args.before, args.remove, say=lambda line: print(f"written: {line}", flush=True))
        damages += found.damages
        left = "".join(f", {count} left alone: {why}" for why, count in sorted(found.left.items()))
        print(f"site {site}: {found.compacted} sessions compacted, {found.removed} of their files removed{left}")
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    return 1 if damages else 0


def _sites() -> list[str]:
    folders = sorted(paths.results().glob("*/"))
    return [folder.name for folder in folders if any(folder.rglob("*.jsonl"))]
