"""``plumb list``, ``show``, ``diff``, ``note`` and ``compact``: the records, and notes beside them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import msgspec

from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError, pattern_fault, suggest
from plumbline.base.extensions import Extension
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, only_with, option
from plumbline.judge import pivot
from plumbline.records import compact, model, notes, query, sources, store
from plumbline.records.model import AnyRecord
from plumbline.show import diff, summary
from plumbline.show import record as show

#: keys of ``--table``
PARTS = ("rows", "columns", "figures")
#: so many records are listed, unless more are wanted
NEWEST = 30


@command(
    options.records(),
    flag("--all", f"list all records (default: the newest {NEWEST}, of a campaign all)"),
    flag("--ranked", "sort by the first figure, best first, within each test and stack"),
    option(
        "--table",
        "print a pivot table of all figures: rows=A,B columns=C, each a test parameter, placement, memory, threads, "
        "nodes, stack, test or figure; figures=PATTERN selects figures by name, its groups (?P<NAME>…) are parameters",
        nargs="+",
        metavar="PART=NAMES",
    ),
    flag("--plot", "also plot each row of the table"),
    options.as_json("print JSON, one line per record, without its launches"),
    rules=[only_with("plot", "table", "--plot draws the rows of a table", "add --table rows=… columns=…")],
)
def run_list(args: argparse.Namespace) -> int:
    """Print the records; 1 if some are damaged."""
    if args.results_folder and not args.results_folder.exists():
        raise sources.none_yet()
    is_whole = args.all or args.campaign or args.ranked or args.table or args.json
    records, damages = options.rows(args, None if is_whole else NEWEST)
    if args.table:
        terminal.page(pivot.text(_pivot(args.table, records), args.plot))
    elif args.json:
        options.print_lines(map(model.document, summary.ordered(records, args.ranked)))
    elif not records and options.supplied(args):
        print(f"no record is chosen by {' '.join(options.supplied(args))}")
    else:
        total = len(records) if is_whole else query.count(options.selection(args))
        rest = f"\nthe newest {len(records)} of {total:,} records: --all lists all" if total > len(records) else ""
        terminal.page(summary.listing(records, args.ranked) + rest)
    return int(options.report_damage(damages))


def _pivot(words: Sequence[str], records: Sequence[AnyRecord]) -> pivot.Pivot:
    """The table that ``rows=…``, ``columns=…`` and ``figures=…`` ask for."""
    parts = dict(word.partition("=")[::2] for word in words)
    wrong = next((word for word in words if word.partition("=")[0] not in PARTS or not word.partition("=")[2]), None)
    if wrong or "rows" not in parts or "columns" not in parts:
        message = f"'{wrong}' is not part of a table" if wrong else "a table has rows and columns"
        raise PlumbError(message, "plumb list --table", "rows=placement columns=figure")
    figures = parts.get("figures", ".*")
    if fault := pattern_fault(figures):
        raise PlumbError(fault, "plumb list --table figures=")
    items = pivot.measured(records, figures)
    known = {name for item in items for name in (*item.parameters, *item.others)}
    rows, columns = (dict.fromkeys(options.names_of(parts[part]), ()) for part in ("rows", "columns"))
    missing = next((name for name in (*rows, *columns) if name not in known), None)
    if items and missing:
        raise PlumbError(f"no figure has '{missing}'", "plumb list --table", suggest(missing, sorted(known)))
    return pivot.table(items, rows, columns)


@command(
    option(
        "id", "id of a record, or a prefix of it (default: the newest outside experiments)", nargs="?", default="last"
    ),
    options.as_json("print the whole record as JSON"),
)
def run_show(args: argparse.Namespace) -> int:
    """Print the record and return 0; raises :class:`PlumbError` if it is not found."""
    record = query.find(args.id)
    print(json.dumps(model.document(record), indent=1) if args.json else show.text(record))
    return 0


#: further texts about two records; empty where there is nothing to say
SECTIONS: Extension[[AnyRecord, AnyRecord], str] = Extension("diff.sections")


@command(
    option("first", "id of the first record, a prefix of it, or last", metavar="ID"),
    option("second", "id of the second record, a prefix of it, or last", metavar="ID"),
    options.as_json("print the differing circumstances and all figures as JSON"),
)
def run_diff(args: argparse.Namespace) -> int:
    """Print the differences; always 0."""
    both = query.find(args.first), query.find(args.second)
    if args.json:
        print(json.dumps(diff.document(*both), indent=1))
        return 0
    print("\n\n".join([diff.text(*both), *filter(None, SECTIONS(*both))]))
    return 0


@command(
    option("text", "the event, in one line (default: list the notes)", nargs="?", metavar="TEXT"),
    option("--site", "site of the event (default: the only site with records)"),
    option("--time", "time of the event in UTC, such as 2026-11-22T10:30 (default: now)", metavar="TIME"),
    option("--remove", "remove the note with this id or id prefix", metavar="ID"),
    options.as_json("print JSON, one line per note"),
    rules=[
        goes_without("text", "remove", "a note and --remove", "do one after the other"),
        only_with("time", "text", "--time goes with a note", "say what happened"),
        goes_without("json", "text remove", "--json goes with the list of notes", "leave it out"),
    ],
)
def run_note(args: argparse.Namespace) -> int:
    """Write, remove or list; 1 if a line of the notes is damaged."""
    if not args.text and not args.remove:
        return _list_notes([args.site] if args.site else sources.sites(), args.json)
    site = args.site or sources.only_site("plumb note")
    if args.remove:
        print(f"removed: {summary.noted(notes.remove(site, args.remove))}")
        return 0
    text = " ".join(args.text.split())
    if not text or not text.isprintable():
        raise PlumbError("the text is empty, or has characters that cannot be shown", "plumb note", "say it in a line")
    if len(text) > notes.LONGEST:
        raise PlumbError(
            f"the text has {len(text)} characters", "plumb note", f"say it in {notes.LONGEST}, and where the rest is"
        )
    print(f"noted: {summary.noted(notes.add(site, text, notes.moment(args.time) if args.time else store.now()))}")
    return 0


def _list_notes(sites: list[str], as_json: bool) -> int:
    stored_notes, damages = notes.of_sites(sites)
    if as_json:
        options.print_lines(map(msgspec.to_builtins, stored_notes))
    elif stored_notes:
        print(f"{summary.NOTES.text(stored_notes)}\n\n{counted(len(stored_notes), 'note')}")
    else:
        print("no notes yet: plumb note TEXT writes one")
    return int(options.report_damage(damages, "note"))


@command(
    options.records(
        "site", "until", site="only this site (default: all)", until="only sessions that ended before this time"
    ),
    flag("--remove-sessions", "remove session files after comparing their records with the compacted ones bit for bit"),
)
def run_compact(args: argparse.Namespace) -> int:
    """Compact the records; returns 1 if some are damaged, else 0."""
    damages = []
    sites = [args.site] if args.site else _sites_with_records()
    if not sites:
        print("nothing to compact")
    for site in sites:
        outcome = compact.compact(
            site, args.until, args.remove_sessions, lambda line: print(f"written: {line}", flush=True)
        )
        damages += outcome.damages
        left = "".join(f", {count} left alone: {why}" for why, count in sorted(outcome.left.items()))
        removed = counted(outcome.removed, "file")
        print(f"site {site}: {counted(outcome.compacted, 'session')} compacted, {removed} removed{left}")
    return int(options.report_damage(damages))


def _sites_with_records() -> list[str]:
    return [
        folder.name
        for folder in sorted(paths.results().glob("*/"))
        if any(folder.rglob("*.jsonl")) or any(folder.glob(sources.PARQUET))
    ]
