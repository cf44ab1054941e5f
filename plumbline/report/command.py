"""``plumb report``: one campaign, and the history that led to it, as a single HTML file."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from plumbline import files, paths
from plumbline.errors import PlumbError
from plumbline.pages import page
from plumbline.records import outcome, query
from plumbline.report import choose
from plumbline.views import summary

#: records of a campaign that a page holds in full, the newest; older ones are counted and stay in the history
MAX_RECORDS = 1000
_DAY = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?)?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb report``."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: results/SITE/report.html")
    parser.add_argument("--site", help="default: the only one that has records")
    parser.add_argument("--campaign", default="last", metavar="ID", help="the one shown in full (default: last)")
    parser.add_argument("--since", metavar="DATE", help="history from then on, such as 2026-11 or 2026-11-21")


def run(args: argparse.Namespace) -> int:
    """Write the report; 0 if it was written, whatever it says. 1 if some records could not be read."""
    from plumbline.report import data  # not above: scipy takes longer to load than most commands to run

    if args.since and not _DAY.fullmatch(args.since):
        raise PlumbError(f"'{args.since}' is no date", "--since", "such as 2026-11 or 2026-11-21")
    site = args.site or choose.only_site()
    rows, damages = query.records(query.Selection(site=site))
    campaign, chosen = choose.campaign(rows, args.campaign, site)
    left_out, kept = chosen[:-MAX_RECORDS], chosen[-MAX_RECORDS:]
    records, more = choose.in_full(site, kept)
    damages = list(dict.fromkeys([*damages, *more]))
    past = [row for row in rows if args.since is None or row.time >= args.since]
    scope = data.Scope(
        site,
        campaign,
        outcome.read(site, campaign),
        damages=[_damage(item) for item in damages],
        left_out=len(left_out),
        left_out_invalid=sum(not row.is_valid for row in left_out),
    )
    document = data.document(scope, records, past)
    target = args.output or paths.results() / site / "report.html"
    text = page.render("report", document)
    files.write("the report", target, text)
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    if left_out:
        print(f"the {len(left_out)} oldest records of the campaign are left out: a page holds {MAX_RECORDS}")
    print(f"campaign {campaign or 'none'}: {summary.closing(records)}")
    print(f"history: {len(document['history']['series'])} series from {len(past)} records")
    print(f"report: {target} ({len(text.encode()) / 1e6:.1f} MB)")
    return 1 if damages else 0


def _damage(damage: Any) -> str:
    """A damaged line without the path of this machine before the results folder."""
    return f"{damage.file.name}:{damage.line}: {damage.reason}"
