"""``plumb report``: one campaign, and the history that led to it, as a single HTML file."""

from __future__ import annotations

import argparse
import re
import sys

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.pages import page
from plumbline.records import notes, outcome, query, sources
from plumbline.report import selection as choose
from plumbline.views import summary

_DAY = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?)?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb report``."""
    parser.add_argument("--output", type=files.Output, metavar="FILE", help="default: results/SITE/report.html")
    parser.add_argument("--site", help="default: the only one that has records")
    parser.add_argument("--campaign", default="last", metavar="ID", help="the one shown in full (default: last)")
    parser.add_argument("--since", metavar="DATE", help="history from then on, such as 2026-11 or 2026-11-21")


def run(args: argparse.Namespace) -> int:
    """Write the report; returns 1 if some records could not be read, else 0, whatever the verdicts are."""
    from plumbline.report.compose import (  # not above: scipy takes longer to load than most commands
        MAX_RECORDS,
        compose,
    )

    if args.since and not _DAY.fullmatch(args.since):
        raise PlumbError(f"'{args.since}' is not a date", "--since", "such as 2026-11 or 2026-11-21")
    site = args.site or sources.only_site("plumb report")
    found, damages = query.records(query.Selection(site=site))
    rows = [row for row in found if not row.is_imported]
    campaign, chosen = choose.campaign(rows, args.campaign, site)
    past = [row for row in rows if args.since is None or row.time >= args.since]
    noted, spoilt = notes.read(site)
    made = compose(site, campaign, chosen, outcome.read(site, campaign), past, [*damages, *spoilt], noted)
    target = args.output or paths.results() / site / "report.html"
    text = page.render(made.document)
    files.write("the report", target, text)
    for damage in made.damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    if made.left_out:
        print(f"the {made.left_out} oldest records of the campaign are left out: a page holds {MAX_RECORDS}")
    print(f"campaign {campaign or 'none'}: {summary.closing(made.records)}")
    print(f"history: {made.document['history']} series from {len(past)} records")
    print(f"report: {target} ({len(text.encode()) / 1e6:.1f} MB)")
    return 1 if made.damages else 0
