"""``plumb gate``: PASS (or GAIN), FAIL, INCONCLUSIVE or INVALID for a candidate compared with its baseline."""

from __future__ import annotations

import argparse
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.base.verdicts import EXIT, FOR_GIT, GIT_ENDS
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, needs, one_of, only_with, option
from plumbline.gate import cause_command, cause_search, page
from plumbline.gate.rules import MARGINS, of_options
from plumbline.judge import decide, from_csv, from_tools, statement
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import OPTION
from plumbline.judge.pairs import Pairs, pairs_of_records, read_couples
from plumbline.measure import jobs
from plumbline.measure.application import model
from plumbline.records import notes
from plumbline.show import verdicts as shown
from plumbline.show.pages import render
from plumbline.statistics.paired import PairedRule

#: options that a job of a gate gets, and those that measure the same again
OF_A_JOB = ("minutes", "first_fail", "for_git_bisect", "cause_minutes", "application", "output")
REPEAT = (
    "baseline", "candidate", "stack", "test", "site", "partition", "rules", "tolerance", "must_detect", "minutes",
    "application", "common", "first_fail", "disturbed_by_itself", "gain", "measure_equal", "figure", "better", "unit",
    "order",
)  # fmt: skip
#: most commands shown that search for a cause
MOST_WHYS = 3
#: options that only a live gate has, and all that say what a new gate does, as argparse calls them
LIVE = (
    "application candidate stack test site partition rules common seed work minutes first_fail cause_minutes figure "
    "measure_equal order resume"
)
BEGINNING = (
    f"baseline {' '.join(MARGINS)} disturbed_by_itself measure_equal gain candidate stack test site partition rules "
    "common seed work figure better order"
)
#: options that mean nothing for two commands
OF_SUITE = ("application", "stack", "test", "site", "partition", "rules", "common", "cause_minutes")


@command(
    option("records", "judge the records of a session", nargs="?", type=Path, metavar="SESSION.jsonl"),
    option(
        "--pairs",
        "judge a CSV file with the columns series,baseline,candidate, or two folders of JSON files that another tool "
        "wrote for each run, old and new by turns",
        type=Path,
        nargs="+",
        metavar="FILE",
    ),
    options.better("--pairs or --figure"),
    option(
        "--baseline",
        "command:'PROGRAM ARG …', stack, commit, placement:P,… (docs/gate.md); with SESSION.jsonl the id of a record "
        "(default: the first)",
        metavar="SIDE",
    ),
    option("--candidate", "candidate, named like the baseline", metavar="SIDE"),
    option("--figure", "of commands: the number that this regular expression has in ( ) (default: time)"),
    option("--unit", "unit of --figure (default: none)", metavar="UNIT"),
    option("--application", "plumb.yaml of the programs to measure (default: the one here)"),
    option("--stack", "stack for building the kernels of a commit"),
    option(
        "--test", "tests whose names match this regular expression from the start (default: the tests tagged quick)"
    ),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site with the tests)"),
    flag("--common", "compare only the tests that both sides can run, even if the candidate lacks some"),
    option("--rules", "YAML file of margins by test and figure (default: that of the site)", type=Path, metavar="FILE"),
    option("--tolerance", "tolerated slowdown (default: 0.01, 1 %%)"),
    option("--must-detect", "smallest slowdown that must be detected (default: 0.05, 5 %%)"),
    flag(OPTION, "judge a candidate even if its own extra threads disturb it"),
    flag("--measure-equal", "measure the same program on both sides too (A/A)"),
    options.order(),
    flag("--gain", "report GAIN where the candidate is proven faster"),
    option("--minutes", "start no pair of launches after M minutes"),
    flag("--first-fail", "stop at the first certain FAIL, even with other figures undecided"),
    option("--cause-minutes", f"after a FAIL, {options.CAUSE}"),
    flag("--for-git-bisect", "exit with the statuses of git bisect run: 0 good, 1 bad, 125 skip (docs/bisect.md)"),
    option("--seed", "seed of the pair order (default: random, recorded)"),
    option("--work", "folder of a new gate (default: build/gate/SESSION)"),
    option("--resume", "continue the gate of this folder"),
    options.as_json("print all verdicts as one JSON document, progress on standard error"),
    options.output("write the verdicts to a file", ".json", ".xml", ".md", ".html"),
    description="Measure --candidate and --baseline in pairs and judge the difference, or judge a session's records or "
    "the numbers of a CSV file.",
    rules=[
        *one_of(
            "records",
            "pairs",
            LIVE,
            none="nothing to judge",
            several="two ways at once",
            cure="give SESSION.jsonl, or --pairs FILE, or --baseline and --candidate, or --resume DIR",
        ),
        only_with("better", "pairs figure", "--better goes with --pairs or --figure", "records know their direction"),
        only_with("unit", "figure", "--unit goes with --figure", "leave it out"),
        only_with("figure", "better", "--figure without a direction", "add --better lower or --better higher"),
        goes_without(
            "baseline", "pairs", "--baseline goes with records or stacks", "--pairs has a column of that name"
        ),
        goes_without(
            "disturbed_by_itself", "pairs", f"{OPTION} goes with launches", "numbers do not say what was disturbed"
        ),
        goes_without(
            BEGINNING,
            "resume",
            "--resume continues a gate that was started",
            "leave out all but --minutes, --first-fail, --cause-minutes, --application and files",
        ),
        needs(
            "baseline candidate",
            "{} needs both sides",
            "add --baseline SIDE --candidate SIDE",
            having=LIVE,
            unless="resume",
        ),
    ],
)
def run_gate(args: argparse.Namespace) -> int:
    """Judge given numbers, or measure; returns 0 for PASS and GAIN, 1 FAIL, 2 INCONCLUSIVE, 3 INVALID.

    With ``--for-git-bisect`` 125 stands for both last, and for a candidate that cannot be measured. Prints the table
    and the closing line, before them the progress of what is measured.
    """
    return _offline(args) if args.records or args.pairs else _live(args)


def _offline(args: argparse.Namespace) -> int:
    rule = of_options(args, gain=args.gain)
    pairs, facts, noted = (_supplied(args), [], []) if args.pairs else _recorded(args)
    verdicts = decide.decide(pairs, rule)
    forms = as_forms(verdicts, rule, [*facts, *(("note", note) for note in noted)])
    options.write("the verdicts", args.output, forms)
    with options.progress(args.json):
        print(shown.text([shown.Row(item.subject, item) for item in verdicts]), end="\n\n")
        print(*noted, decide.closing(verdicts), sep="\n", flush=True)
    if args.json:
        print(forms[".json"](), end="", flush=True)
    return _status(args, statement.overall(verdicts))


def _supplied(args: argparse.Namespace) -> list[Pairs]:
    """The pairs of the files that were named."""
    first, *others = args.pairs
    if len(others) == 1:
        if args.better == "higher":
            raise PlumbError("--better higher with files of other tools", "plumb gate", "leave it out: they have times")
        return from_tools.pairs(first, others[0])
    if others or first.is_dir() or first.suffix == ".json":
        raise PlumbError(
            "--pairs takes a CSV file, or two folders of results by turns: one file of a tool shows no pairs",
            str(first),
            "--pairs OLD NEW",
        )
    if not args.better:
        raise PlumbError("--pairs without a direction", "plumb gate", "add --better lower or --better higher")
    return from_csv.pairs(first, args.better)


def _status(args: argparse.Namespace, state: str, faulty: Sequence[str] = ()) -> int:
    """The exit status of the verdict ``state``; where the baseline alone is ``faulty``, git has nothing to skip."""
    if args.for_git_bisect:
        return GIT_ENDS if state == "INVALID" and list(faulty) == ["baseline"] else FOR_GIT[state]
    return EXIT[state]


def _recorded(args: argparse.Namespace) -> tuple[list[Pairs], list[tuple[str, str]], list[str]]:
    """The pairs of a session, its sides, place and time, and the notes on its site for the time before its end."""
    if args.records.is_dir():
        raise PlumbError(
            "a folder is no session file",
            str(args.records),
            f"plumb gate --resume {args.records} continues the gate of that folder",
        )
    couples = read_couples(args.records, args.baseline)
    pairs = [item for both in couples for item in pairs_of_records(*both, by_itself=args.disturbed_by_itself)]
    newest = max((record for couple in couples for record in couple), key=lambda record: record.time)
    old, new = (record.stack.name if record.site else shlex.join(record.command) for record in couples[0])
    where = ("site", newest.site) if newest.site else ("host", newest.nodes[0])
    facts = [("baseline", old), ("candidate", new), where, ("measured", units.second(newest.time))]
    return pairs, facts, notes.before(newest.site, newest.time)


def _live(args: argparse.Namespace) -> int:
    from plumbline.gate.setup import GATE  # not above, as below: judging numbers needs no launch driver
    from plumbline.gate.sides import Unusable

    try:
        return options.in_session(args, GATE, _begin, _place, _measured, OF_A_JOB)
    except Unusable as error:
        if not args.for_git_bisect or error.side.role != "candidate":
            raise
        print(f"plumb: {error}", file=sys.stderr)
        return FOR_GIT["INVALID"]


def _begin(args: argparse.Namespace) -> Path:
    """The folder of the gate, which is begun unless it is resumed."""
    from plumbline.gate import commands, setup, sides

    if args.resume:
        if setup.GATE.peek(args.resume).terms.purpose == "neighbours":
            raise PlumbError(
                "its candidates have neighbours", str(args.resume), f"plumb neighbours --resume {args.resume}"
            )
        return Path(args.resume)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    terms = setup.Terms(
        of_options(args, gain=args.gain), seed, ("plumb", "gate", *jobs.options(args, *REPEAT)),
        args.disturbed_by_itself, args.measure_equal, order=args.order or "turns",
    )  # fmt: skip
    spelled = (args.baseline, args.candidate)
    if args.figure is not None or any(commands.KIND in sides.parsed(side, "plumb gate") for side in spelled):
        if useless := next((name for name in OF_SUITE if getattr(args, name)), None):
            raise PlumbError(
                f"--{useless.replace('_', '-')} means nothing for two commands", "plumb gate", "leave it out"
            )
        return commands.begin(spelled, terms, args.work, commands.figure_rule(args, "plumb gate"))
    application_file = model.named_or_here(args.application)
    stack = sides.base_stack(spelled, args.stack, application_file, say)
    both = (
        sides.resolve("baseline", args.baseline, stack, application_file),
        sides.resolve("candidate", args.candidate, stack, application_file),
    )
    where = (args.test, options.system(args), args.rules, args.common)
    return setup.prepare(setup.GateRequest(both, terms, *where, folder=args.work, application=application_file), say)


def _place(folder: Path) -> tuple[Partition, int]:
    from plumbline.gate import setup

    begun = setup.GATE.peek(folder)
    return setup.partition_of(begun), max(couple[0].nodes for couple in begun.couples)


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print the verdicts and write them to files, with the cause of a FAIL where it is to be looked for."""
    from plumbline.gate import run
    from plumbline.gate.live import Stop

    outcome = run.resume(folder, Stop(args.minutes, args.first_fail), say)
    offered = (cause_command(*both, args.application) for both in outcome.failed[:MOST_WHYS])
    why = [("why", command) for command in offered if command]
    facts = [*outcome.facts, *why]
    if outcome.open:
        print(f"to go on: plumb gate --resume {shlex.quote(str(folder))}")
    if why and args.cause_minutes:
        # first without the cause: the verdicts are kept whatever happens to the search
        options.write("the verdicts", args.output, as_forms(outcome.verdicts, outcome.rule, facts))
        why.append(("cause", cause_search(why[0][1], args.cause_minutes, folder.resolve(), say, trusted=True)))
        facts.append(why[-1])
    forms = as_forms(outcome.verdicts, outcome.rule, facts)
    options.write("the verdicts", args.output, forms)
    print("\n".join(f"{name + ':':<8} {text}" for name, text in why), end="\n" if why else "")
    print(f"\n{decide.closing(outcome.verdicts)}", flush=True)
    return _status(args, statement.overall(outcome.verdicts), outcome.faulty), forms[".json"]()


def as_forms(
    verdicts: Sequence[Verdict], rule: PairedRule, facts: Sequence[tuple[str, str]]
) -> dict[str, Callable[[], str]]:
    """The verdicts, with ``facts`` on the gate, as the text of a file by its ending."""
    margins = {name: value for name, value in asdict(rule).items() if name != "gain" or value}
    return {
        ".json": lambda: shown.document(verdicts, margins, facts),
        ".xml": lambda: shown.junit(verdicts, "gate", str(rule)),
        ".md": lambda: shown.markdown(verdicts, str(rule), facts),
        ".html": lambda: render(page.document(verdicts, rule, facts)),
    }
