"""``plumb compare`` and ``report``: many records side by side, and one campaign with its history as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.judge import agreement, compare, from_tools, hybrid
from plumbline.records import notes, outcome, query, sources
from plumbline.show import compare as forms
from plumbline.show import pages, summary
from plumbline.show.compare import closing, hybrids_text, unlike
from plumbline.show.report import data


@command(
    option(
        "sides",
        "a stack, site, SITE:PARTITION, node, campaign, commit, or period FROM..TO (2026-10..2026-11); "
        "KIND=VALUE[,KIND=VALUE] names the kind, also placement=NAME and tag=NAME (a git tag); "
        "with a / or .json: files of another benchmark tool, or a folder of them; "
        "all are compared with the first; with --hybrid: PROGRAMs of plumb.yaml",
        nargs="*",
        metavar="SIDE",
    ),
    flag("--hybrid", "compare the best hybrid code with the best pure MPI code, in the newest campaign with both"),
    option("--application", "with --hybrid: plumb.yaml of the programs (default: the one here or in a folder above)"),
    options.records(),
    options.EXPERIMENTS,
    flag("--all-figures", "compare all figures of each test (default: the first)"),
    options.as_json("print the whole comparison as JSON"),
    options.output("write the comparison to a file", *forms.FORMS),
    rules=[
        options.only_with("application", "hybrid", "{} goes with --hybrid", "add --hybrid"),
        options.goes_without(
            "hybrid",
            "json output all_figures",
            "{} does not take --json, --output or --all-figures",
            "leave the others out",
        ),
    ],
)
def run_compare(args: argparse.Namespace) -> int:
    """Print the comparison; 1 if some records are damaged."""
    if args.hybrid:
        return _hybrid(args)
    if len(args.sides) < 2:
        raise PlumbError("one side is nothing to compare", "plumb compare", "give two, such as the names of two stacks")
    if all(name.endswith(".json") or "/" in name for name in args.sides):
        return _show(args, from_tools.compare([*map(Path, args.sides)]))
    rows, damages = options.rows(args, comparable=True)
    if not rows:
        raise PlumbError("no valid record to compare", str(paths.results()), "plumb list shows what there is")
    named = [compare.side_of(text, rows) for text in args.sides]
    if len({frozenset(side.conditions) for side in named}) < len(named):
        raise PlumbError("a side is named twice", "plumb compare", "give sides that differ")
    doubtful = agreement.doubtful_of([row for row in rows if any(side.has(row) for side in named)])
    comparison = compare.compare(rows, named, args.all_figures, doubtful)
    if not comparison.lines:
        cure = unlike(comparison) or "plumb list shows what there is"
        raise PlumbError(
            "the sides have no figure in common" + (" that is alike" if comparison.unlike else ""),
            "plumb compare",
            cure,
        )
    return _show(args, comparison) or int(options.report_damage(damages))


def _show(args: argparse.Namespace, comparison: compare.Comparison) -> int:
    options.write("the comparison", args.output, forms.of(comparison))
    if args.json or not args.output:
        print((forms.as_json if args.json else forms.text)(comparison))
    else:
        print("\n".join(f"compared: {file}, {closing(comparison)}" for file in args.output))
    return 0


def _hybrid(args: argparse.Namespace) -> int:
    if args.sides:
        from plumbline.measure.application import model

        file = model.here(args.application)
        args.test = model.load(file).tests(args.sides, file)
    records, damages = options.rows(args, valid=True)
    if args.campaign and not records:
        raise PlumbError(
            f"no valid record of campaign '{args.campaign}'",
            str(paths.results()),
            "plumb show ID prints the campaign of a record",
        )
    newest_first = sorted(
        group((record.campaign, record) for record in records).values(),
        key=lambda members: members[-1].time,
        reverse=True,
    )
    verdicts = next(filter(None, map(hybrid.verdicts, newest_first)), [])
    if args.sides and not verdicts:
        cure = f"{args.sides[0]}: threads: [1, 2] in plumb.yaml, then plumb run"
        print(f"no campaign has valid records with one thread a rank and with several: {cure}")
    else:
        print(hybrids_text(verdicts))
    return int(options.report_damage(damages))


@command(
    option("--output", "HTML file to write (default: results/SITE/report.html)"),
    options.profile("report the newest complete campaign of this profile (default: of either)", default=None),
    options.EXPERIMENTS,
    options.records(
        *("site", "campaign", "since", "until"),
        site="site (default: the only site with records)",
        campaign="id of the campaign to report, or a prefix of it (default: the newest complete one)",
        since="history from this time on, in UTC, such as 2026-11 or 2026-11-21T10:30",
    ),
)
def run_report(args: argparse.Namespace) -> int:
    """Write the report; returns 1 if some records could not be read, else 0, whatever the verdicts are."""
    site = args.site or sources.only_site("plumb report")
    stored, damages = query.records(query.Selection(site=site, until=args.until))
    rows = [row for row in stored if not row.is_imported]
    campaign, chosen = data.choose(rows, args.campaign or "last", site, args.profile)
    history = query.Selection(since=args.since, plain=not args.experiments)
    past = [row for row in rows if history.admits(row)]
    shown = {row.id for row in chosen}
    others = [row for row in rows if row.id not in shown]
    noted, spoilt = notes.read(site)
    ended, unread = outcome.read(site, campaign), [*damages, *spoilt]
    composed = data.compose(site, campaign, chosen, ended, past, unread, noted, others)
    target = args.output or paths.results() / site / "report.html"
    text = pages.render(composed.document)
    files.write("the report", target, text)
    options.report_damage(composed.damages)
    if composed.left_out:
        print(f"the {composed.left_out} oldest records of the campaign are left out: a page holds {data.MAX_RECORDS}")
    print(f"campaign {campaign or 'none'}: {summary.closing(composed.records)}")
    newer = [row.campaign for row in others if row.campaign and row.time > chosen[-1].time]
    if newer and not args.campaign:
        print(f"newer: {outcome.standing(site, newer[-1])}: plumb report --campaign {newer[-1]}")
    print(f"history: {composed.document['history']} series from {len(past)} records")
    print(f"report: {target} ({len(text.encode()) / 1e6:.1f} MB)")
    return 1 if composed.damages else 0
