"""``plumb calibrate``: references from the records."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from plumbline import site
from plumbline.base import units
from plumbline.records import query
from plumbline.views.table import table

if TYPE_CHECKING:
    from plumbline.references.calibrate import Change

HEADER = ("reference", "old", "new", "unit", "change", "within", "sessions", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb calibrate``."""
    parser.add_argument("--test", metavar="PREFIX", help="only tests whose name begins so")
    parser.add_argument("--site", help="default: the one that this host is of")
    parser.add_argument("--min-sessions", type=int, default=3, metavar="N", help="sessions needed (default: 3)")
    parser.add_argument("--dry-run", action="store_true", help="show what would change and write nothing")


def run(args: argparse.Namespace) -> int:
    """Calibrate; 0 if there is a reference to show, 1 if the records gave none."""
    from plumbline.references import calibrate  # not above: scipy takes longer to load than most commands to run

    name = args.site or site.here()
    site.load(name)
    records, damages = query.records(query.Selection(site=name, test=args.test))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    outcome = calibrate.propose(records, name, args.min_sessions, args.test)
    changes = [change for family in sorted(outcome.changes) for change in outcome.changes[family]]
    if changes:
        print(table(HEADER, [_row(change) for change in changes], right=("old", "new", "change", "within", "sessions")))
        print()
    for reason, count in sorted(outcome.refused.items()):
        print(f"refused: {count} {reason}")
    changed = sum(change.kept is None and change.old != change.new for change in changes)
    if not args.dry_run:
        for file in calibrate.write(name, outcome):
            print(f"written: {file}")
    print(
        f"site {name}: {changed} references {'would change' if args.dry_run else 'changed'}, "
        f"{len(changes) - changed} stay as they are"
    )
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
