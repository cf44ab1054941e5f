"""``plumb why``: the difference that makes one side slower than the other, by measurements."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, only_with, option
from plumbline.extras.search.why import ends as found_ends
from plumbline.extras.search.why import run as searches
from plumbline.extras.search.why.answer import STATUS, Answer, page
from plumbline.extras.search.why.model import WHY, Ends
from plumbline.gate import setup, sides
from plumbline.gate.rules import MARGINS
from plumbline.measure.application import model as applications
from plumbline.records import store
from plumbline.records.naming import shorten
from plumbline.show.columns import Column, Table
from plumbline.show.pages.page import render
from plumbline.statistics.paired import PairedRule


@command(
    option("first", "faster side: id of a record, stack, commit, placement:P,… (docs/why.md)", nargs="?", metavar="A"),
    option("second", "slower side, named like A", nargs="?", metavar="B"),
    option("--test", "test of two sides whose name matches this regular expression from the start"),
    option("--figure", "figure of the test (default: the one that differs most)"),
    option("--stack", "stack of sides that do not name one"),
    option("--application", "plumb.yaml of the programs to measure (default: the one here)"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: the partition of the site with the test)"),
    option("--tolerance", "ignore effects below this (default: 0.01, 1 %%)"),
    option("--must-detect", "smallest effect that must be detected (default: 0.05, 5 %%)"),
    flag("--root", "also vary host settings that need root (huge pages, governor, …), and restore them"),
    options.trust(),
    option("--minutes", "start no round of launches after M minutes; --resume continues"),
    option("--seed", "seed of the launch order (default: random, recorded)"),
    option("--work", "folder of a new search (default: build/why/SESSION)"),
    option("--resume", "continue the search of this folder"),
    flag("--dry-run", "print the differences and the numbers of launches and minutes without running anything"),
    options.as_json("print the answer as JSON, progress on standard error"),
    options.output("write the answer to a file", ".json", ".md", ".html"),
    description="Measure the effect of each difference between A and B: add it alone to A, and remove it alone from B. "
    "Default: both sides of the newest gate that ended with FAIL.",
    rules=[
        goes_without(
            "first test figure root dry_run",
            "resume",
            "--resume continues a search that was begun",
            "leave out all but --minutes and files",
        ),
        only_with("first", "second", "one side alone", "name A and B, or neither: the newest gate that failed"),
    ],
)
def run_why(args: argparse.Namespace) -> int:
    """Search; returns 0 where a cause is named, 1 if no setting is the cause, 2 if undecided, 3 for errors."""
    if args.dry_run:
        with options.progress(args.json):
            ends, _ = _ends(args)
            print(f"{_differences(ends)}\n\n{searches.plan(ends, _rule(args))}")
        return 0
    return options.in_session(args, WHY, _begun, _place, _measured, ("minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    ends = WHY.peek(folder).ends
    return searches.partition_of(ends), ends.first.nodes


def _rule(args: argparse.Namespace) -> PairedRule:
    return PairedRule(**{name: getattr(args, name) for name in MARGINS if getattr(args, name) is not None}, gain=True)


def _ends(args: argparse.Namespace) -> tuple[Ends, str | None]:
    """The ends, and the figure that is followed."""
    application_file = applications.named_or_here(args.application)
    if args.first is None:
        first, second, figure = found_ends.newest_fail(args.site)
        say(f"the newest gate that failed: {second.variant.name}: {figure}")
        return found_ends.of_records(first, second, args.root, say, application_file, args.trust), args.figure or figure
    if both := found_ends.records_of(args.first, args.second, application_file):
        return found_ends.of_records(
            *both, args.root, say, application_file, args.trust
        ), args.figure or found_ends.figure_of(*both)
    if args.root:
        cure = "leave it out, or name two records: what their hosts differ in is known"
        raise PlumbError("sides do not say how the host is set", "plumb why --root", cure)
    stack = sides.base_stack((args.first, args.second), args.stack, application_file, say)
    both_sides = [
        sides.resolve(role, name, stack, application_file)
        for role, name in (("baseline", args.first), ("candidate", args.second))
    ]
    request = setup.GateRequest(
        (both_sides[0], both_sides[1]),
        test=args.test,
        system=options.system(args),
        common=True,
        application=application_file,
    )
    return found_ends.of_sides(request, say), args.figure


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the search, which is begun unless it is resumed."""
    if args.resume:
        return Path(args.resume)
    ends, figure = _ends(args)
    folder = (args.work or paths.build() / "why" / store.new_session()).resolve()
    seed = secrets.randbits(32) if args.seed is None else args.seed
    searches.begin(folder, ends, _rule(args), seed, figure)
    say(f"{_differences(ends)}\n\n{searches.plan(ends, _rule(args))}")
    say(f"folder {folder}: plumb why --resume {folder} continues after an interruption\n")
    return Path(folder)


DIFFERENCES = Table[tuple[str, str, str, str]](
    "Differences",
    [
        Column("difference", lambda row: shorten(row[0], 40)),
        Column("A", lambda row: shorten(row[1], 40)),
        Column("B", lambda row: shorten(row[2], 40)),
        Column("can be set", lambda row: shorten(row[3], 40)),
    ],
    whole=True,
)


def _differences(ends: Ends) -> str:
    """The table of differences."""
    rows = [
        (difference.label, _value(difference.before), _value(difference.after), "here") for difference in ends.factors
    ]
    rows += [(difference.key, difference.before, difference.after, difference.why) for difference in ends.fixed]
    return DIFFERENCES.text(rows)


def _value(text: str | None) -> str:
    return "not set" if text is None else text


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print and write the answer."""
    answer = Answer(searches.resume(folder, args.minutes, say))
    forms = {
        ".json": answer.json,
        ".md": answer.markdown,
        ".html": lambda: render(page(answer)),
    }
    options.write("the answer", args.output, forms)
    say(f"\n{answer.text()}")
    say(f"\n{answer.closing()}")
    return STATUS[answer.kind], answer.json()
