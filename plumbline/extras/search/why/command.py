"""``plumb why``: the difference that makes one side slower than the other; and which search a verdict offers."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, only_with, option
from plumbline.extras.search.why import ends as found_ends
from plumbline.extras.search.why import model
from plumbline.extras.search.why import run as searches
from plumbline.extras.search.why.answer import STATUS, Answer, page
from plumbline.extras.search.why.model import WHY, Ends
from plumbline.gate import setup, sides
from plumbline.gate.rules import of_options
from plumbline.gate.sides import KERNELS
from plumbline.measure.application import model as applications
from plumbline.measure.session import Say
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.records.naming import shorten
from plumbline.show.columns import Column, Table
from plumbline.show.pages import render
from plumbline.stacks import manifest as manifests
from plumbline.stacks import source
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
    options.TRUST,
    options.order("of the ends, factors are measured in turn; "),
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
            "first test figure root order dry_run",
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
            print(_plan(ends, of_options(args, gain=True)))
        return 0
    return options.in_session(args, WHY, _begun, _place, _measured, ("minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    ends = WHY.peek(folder).ends
    return searches.partition_of(ends), ends.first.nodes


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
        raise PlumbError(
            "sides do not say how the host is set",
            "plumb why --root",
            "leave it out, or name two records: what their hosts differ in is known",
        )
    stack = sides.base_stack((args.first, args.second), args.stack, application_file, say)
    both_sides = [
        sides.resolve(role, name, stack, application_file, f"plumb why {letter}")
        for role, letter, name in (("baseline", "A", args.first), ("candidate", "B", args.second))
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
    rule = of_options(args, gain=True)
    searches.begin(folder, ends, rule, seed, figure, args.order or "turns")
    say(_plan(ends, rule))
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


def _plan(ends: Ends, rule: PairedRule) -> str:
    """The table of differences, and what it takes to tell which of them count."""
    rows = [
        *((factor.label, _value(factor.before), _value(factor.after), "here") for factor in ends.factors),
        *((difference.key, difference.before, difference.after, difference.why) for difference in ends.fixed),
    ]
    return f"{DIFFERENCES.text(rows)}\n\n{searches.plan(ends, rule)}"


def _value(text: str | None) -> str:
    return "not set" if text is None else text


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print and write the answer."""
    answer = Answer(searches.resume(folder, args.minutes, say), args.application)
    forms = {
        ".json": answer.json,
        ".md": answer.markdown,
        ".html": lambda: render(page(answer)),
    }
    options.write("the answer", args.output, forms)
    say(f"\n{answer.text()}\n\n{answer.closing()}")
    return STATUS[answer.kind], answer.json()


class _BuildInputs(NamedTuple):
    """The inputs of a program's build; an unknown commit is empty. ``library``: the commit of the MPI library."""

    stack: str
    library: str
    code: str
    build: Mapping[str, str]

    @classmethod
    def of(cls, record: Record, rebuilt: bool) -> _BuildInputs:
        """The inputs of the program of ``record``.

        Kernels are built with their stack: the commit of the suite is theirs only where they were ``rebuilt``.
        """
        name, *commits = record.stack.name.split("@")
        library = commits.pop(0) if record.stack.provider == source.PROVIDER else ""
        if state := record.variant.application:
            return cls(name, library, state.commit or "", state.build)
        is_ours = rebuilt and record.benchmark.suite == KERNELS and not library
        return cls(name, library, commits[0] if commits else record.suite.commit or "" if is_ours else "", {})


def cause_command(first: Record, second: Record, application: Path | None = None) -> str | None:
    """``plumb why FIRST SECOND``, or ``plumb bisect`` where the commit alone differs, of the code or the MPI library.

    None where something else alone differs: that is the cause. Of two stacks with libraries or settings that can be
    varied it is not known which one. ``application`` is the plumb.yaml that was named.
    """
    named = ["--application", str(application)] if application and first.variant.application else []
    rebuilt = first.benchmark.sha256 != second.benchmark.sha256
    good, bad = _BuildInputs.of(first, rebuilt), _BuildInputs.of(second, rebuilt)
    number = sum(before != after for before, after in zip(good, bad, strict=True))
    why = shlex.join(["plumb", "why", first.id, second.id, *named])
    if number + len(model.of_variants(first.variant, second.variant)) > 1:
        return why
    if good.library != bad.library:
        words = [good.library, bad.library, "--stack", f"{source.PREFIX}{good.stack}"]
    elif good.code != bad.code and good.code and bad.code:
        words = [good.code, bad.code, "--stack", "@".join(filter(None, good[:2]))]
    else:
        return why if _has_parts(good.stack, bad.stack) else None
    return shlex.join(["plumb", "bisect", *words, "--test", f"{re.escape(first.variant.test)}(%|$)", *named])


def _has_parts(first: str, second: str) -> bool:
    """Whether two stacks differ in what ``plumb why`` varies: libraries of both, or the settings of a tuned one."""
    if first == second or not {first, second} <= set(manifests.names()):
        return False
    both = [manifests.load(name) for name in (first, second)]
    return any(stack.tuned for stack in both) or bool(model.of_libraries(*both))


def cause_search(command: str, minutes: float, folder: Path, say: Say, trusted: bool = False) -> str:
    """The answer of ``command`` in one line; all of it is in ``cause.json`` of ``folder``.

    ``trusted``: the records that it names were made just now. Whatever becomes of the search, the verdict stands.
    """
    from plumbline.extras.search.bisect.command import run_bisect

    work, target = folder / "cause", folder / "cause.json"
    folder.mkdir(parents=True, exist_ok=True)
    say(f"\nthe cause: {command} --minutes {minutes:g}")
    _, name, *words = shlex.split(command)
    if any(work.glob("*.json")):  # a gate that is resumed; without a state the search was killed before it began
        words = ["--resume", str(work)]
    else:
        words += ["--work", str(work), *(["--trust"] if trusted and name == "why" else [])]
    parser = argparse.ArgumentParser(f"plumb {name}")
    {"why": run_why, "bisect": run_bisect}[name].add_to(parser)
    args = parser.parse_args([*words, "--minutes", f"{minutes:g}", "--output", str(target)])
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a document of the gate may be on standard output
            args.run(args)
        return str(json.loads(target.read_text(encoding="utf-8"))["line"])
    except Interrupted:
        raise
    except Exception as error:
        return f"{command} ended without an answer: {error}"
