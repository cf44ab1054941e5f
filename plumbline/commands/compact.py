"""``plumb compact``: many session files into few compressed ones."""

from __future__ import annotations

import argparse

from plumbline.base import paths
from plumbline.commands import options
from plumbline.records import compact, sources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb compact``."""
    options.add_records(
        parser, "site", "until", site="only this site (default: all)", until="only sessions that ended before this time"
    )
    text = "remove session files whose records are compacted, bit for bit"
    parser.add_argument("--remove-sessions", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Compact the records; returns 1 if some are damaged, else 0."""
    damages = []
    sites = [args.site] if args.site else _sites()
    if not sites:
        print("nothing to compact")
    for site in sites:
        outcome = compact.compact(
            site, args.until, args.remove_sessions, lambda line: print(f"written: {line}", flush=True)
        )
        damages += outcome.damages
        left = "".join(f", {count} left alone: {why}" for why, count in sorted(outcome.left.items()))
        print(f"site {site}: {outcome.compacted} sessions compacted, {outcome.removed} of their files removed{left}")
    return int(options.report_damage(damages))


def _sites() -> list[str]:
    folders = sorted(paths.results().glob("*/"))
    return [folder.name for folder in folders if any(folder.rglob("*.jsonl")) or any(folder.glob(sources.PARQUET))]
