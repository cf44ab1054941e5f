"""``plumb calibrate``: references from the records, and classes of nodes for ``plumb check``."""

from __future__ import annotations

import argparse

import msgspec

from plumbline import site
from plumbline.base import units
from plumbline.base.extensions import Extension
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.judge.references import calibrate
from plumbline.judge.references.calibrate import Change
from plumbline.records import query

#: classes of nodes: options, and what they ask for; None where it was not asked for
OPTIONS: Extension[[argparse.ArgumentParser], None] = Extension("calibrate.options")
RUN: Extension[[argparse.Namespace], int | None] = Extension("calibrate.run")
HEADER = ("reference", "old", "new", "unit", "change", "within", "sessions", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb calibrate``."""
    options.add_records(parser, site="the site (default: the one that claims this host)")
    parser.add_argument("--min-sessions", type=int, default=3, metavar="N", help="sessions needed (default: 3)")
    parser.add_argument("--dry-run", action="store_true", help="show what would change and write nothing")
    options.add_json(parser)
    OPTIONS(parser)


def run(args: argparse.Namespace) -> int:
    """Calibrate; 0 if there is a reference to show, 1 if the records gave none."""
    for status in RUN(args):
        if status is not None:
            return status
    name = args.site or site.here()
    site.load(name)
    args.site = name
    where = options.selection(args)
    records, damages = query.records(where)
    if not records:
        query.require(where)
    options.report_damage(damages)
    outcome = calibrate.propose(records, name, args.min_sessions)
    changes = [change for family in sorted(outcome.changes) for change in outcome.changes[family]]
    changed = sum(change.kept is None and change.old != change.new for change in changes)
    with options.progress(args.json):
        if changes and not args.json:
            cells = [_row(change) for change in changes]
            print(table(HEADER, cells, right=("old", "new", "change", "within", "sessions")) + "\n")
        for reason, count in sorted(outcome.refused.items()):
            print(f"refused: {count} {reason}")
        for file in [] if args.dry_run else calibrate.write(name, outcome):
            print(f"written: {file}")
        done = "would change" if args.dry_run else "changed"
        print(f"site {name}: {changed} references {done}, {len(changes) - changed} stay as they are")
    if args.json:
        options.print_lines(map(msgspec.to_builtins, changes))
    return 0 if changes else 1


def _row(change: Change) -> tuple[str, ...]:
    new, old = change.new, change.old
    value, unit = units.human(new.value, new.unit)
    before, moved = "–", "new"
    if old is not None:
        number, old_unit = units.human(old.value, old.unit)
        before = number if old_unit == unit else f"{number} {old_unit}"
        moved = f"{new.value / old.value - 1:+.1%}" if old.unit == new.unit else "unit"
    within = f"±{new.upper:.1%}"
    return str(new), before, value, unit, moved, within, str(new.source.sessions), change.kept or ""
