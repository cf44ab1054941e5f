"""``plumb report``: one campaign, and the history that led to it, as a single HTML file."""

from __future__ import annotations

import argparse

from plumbline.base import files, paths
from plumbline.commands import options
from plumbline.records import notes, outcome, query, sources
from plumbline.show import summary
from plumbline.show.pages import page
from plumbline.show.report import compose
from plumbline.show.report import selection as choose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb report``."""
    options.add(parser, "--output", "the page (default: results/SITE/report.html)")
    options.add_records(
        parser,
        *("site", "campaign", "since", "until"),
        site="the site (default: the only one that has records)",
        campaign="the campaign that is shown in full, by the beginning of its id (default: the newest)",
        since="history from this time on, in UTC, such as 2026-11 or 2026-11-21T10:30",
    )


def run(args: argparse.Namespace) -> int:
    """Write the report; returns 1 if some records could not be read, else 0, whatever the verdicts are."""
    site = args.site or sources.only_site("plumb report")
    stored, damages = query.records(query.Selection(site=site, until=args.until))
    rows = [row for row in stored if not row.is_imported]
    campaign, chosen = choose.campaign(rows, args.campaign or "last", site)
    past = [row for row in rows if args.since is None or row.time >= args.since]
    noted, spoilt = notes.read(site)
    composed = compose.compose(site, campaign, chosen, outcome.read(site, campaign), past, [*damages, *spoilt], noted)
    target = args.output or paths.results() / site / "report.html"
    text = page.render(composed.document)
    files.write("the report", target, text)
    options.report_damage(composed.damages)
    if composed.left_out:
        print(
            f"the {composed.left_out} oldest records of the campaign are left out: a page holds {compose.MAX_RECORDS}"
        )
    print(f"campaign {campaign or 'none'}: {summary.closing(composed.records)}")
    print(f"history: {composed.document['history']} series from {len(past)} records")
    print(f"report: {target} ({len(text.encode()) / 1e6:.1f} MB)")
    return 1 if composed.damages else 0
