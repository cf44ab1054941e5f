"""``plumb gate``: PASS (or GAIN), FAIL, INCONCLUSIVE or INVALID for a candidate compared with its baseline."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.base.verdicts import EXIT, FOR_GIT, GIT_ENDS
from plumbline.commands import options
from plumbline.gate import cause, page
from plumbline.gate.rules import MARGINS
from plumbline.judge import decide, from_csv, from_records, statement
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import OPTION
from plumbline.judge.pairs import Pairs
from plumbline.measure import jobs
from plumbline.measure.application import model
from plumbline.records import notes
from plumbline.show.pages.page import render
from plumbline.statistics.paired import PairedRule

#: options that a job of a gate gets, and those that measure the same again
OF_A_JOB = ("minutes", "first_fail", "for_git_bisect", "cause_minutes", "application", "output")
REPEAT = (
    "baseline", "candidate", "stack", "test", "site", "partition", "rules", "tolerance", "must_detect", "minutes",
    "application", "common", "first_fail", "disturbed_by_itself", "gain",
)  # fmt: skip
#: most commands shown that search for a cause
MOST_WHYS = 3
#: options that only a live gate has, as argparse calls them
LIVE = (
    "application", "candidate", "stack", "test", "site", "partition", "rules", "common", "seed", "work", "minutes",
    "first_fail", "cause_minutes", "resume",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb gate``."""
    parser.description = (
        "Measures --candidate against --baseline in pairs, here and now; or judges a session's records, or numbers."
    )
    parser.add_argument("records", nargs="?", type=Path, metavar="SESSION.jsonl", help="judge what was recorded")
    parser.add_argument(
        "--pairs", type=Path, metavar="FILE", help="judge the columns series,baseline,candidate of a CSV"
    )
    options.add_better(parser, "--pairs")
    parser.add_argument(
        "--baseline",
        metavar="SIDE",
        help="stack, commit, placement:P,… (docs/gate.md); with SESSION.jsonl the id of a record (default: the first)",
    )
    parser.add_argument("--candidate", metavar="SIDE", help="what is compared with the baseline")
    options.add(parser, "--application", "its programs are measured (default: the plumb.yaml here)")
    options.add(parser, "--stack", "stack that the kernels of a commit are built against")
    text = "tests whose name begins with what this regular expression matches (default: those tagged quick)"
    options.add(parser, "--test", text)
    options.add(parser, "--site", "where (default: the site that claims this host)")
    options.add(parser, "--partition", "default: the partitions of the site that have the tests")
    text = "compare only what both can run, even if the candidate lost some"
    parser.add_argument("--common", action="store_true", help=text)
    parser.add_argument("--rules", type=Path, metavar="FILE", help="margins by test and figure (default: the site's)")
    options.add(parser, "--tolerance", "slowdown that may pass (default: 0.01, 1 %%)")
    options.add(parser, "--must-detect", "slowdown that must not (default: 0.05, 5 %%)")
    parser.add_argument(
        OPTION, action="store_true", help="the candidate's own threads disturb it: judge it nevertheless"
    )
    parser.add_argument("--gain", action="store_true", help="say GAIN where the candidate is certainly faster")
    options.add(parser, "--minutes", "start no pair after M minutes")
    text = "stop when a FAIL is certain, even if other figures are undecided"
    parser.add_argument("--first-fail", action="store_true", help=text)
    options.add(parser, "--cause-minutes", f"after a FAIL {options.CAUSE}")
    text = "exit statuses for git bisect run: 0 good, 1 bad, 125 to skip (docs/bisect.md)"
    parser.add_argument("--for-git-bisect", action="store_true", help=text)
    options.add(parser, "--seed", "of the order of pairs (default: random, recorded)")
    options.add(parser, "--work", "folder of a new gate (default: build/gate/SESSION)")
    options.add(parser, "--resume", "continue the gate of this folder")
    options.add_json(parser, "print all verdicts as one JSON document, and the rest on standard error")
    options.add_output(parser, "write the verdicts to a file", ".json", ".xml", ".md", ".html")


def run(args: argparse.Namespace) -> int:
    """Judge given numbers, or measure; returns 0 for PASS and GAIN, 1 FAIL, 2 INCONCLUSIVE, 3 INVALID.

    With ``--for-git-bisect`` 125 stands for both last, and for a candidate that cannot be measured. Given numbers: a
    JSON line per series, the closing line on stderr. Measured: progress, table, closing line.
    """
    _check(args)
    rule = PairedRule(
        **{name: getattr(args, name) for name in MARGINS if getattr(args, name) is not None}, gain=args.gain
    )
    return _offline(args, rule) if args.records or args.pairs else _live(args, rule)


def _check(args: argparse.Namespace) -> None:
    """Exactly one of the ways to use it, and no option of another."""
    live = [f"--{name.replace('_', '-')}" for name in LIVE if getattr(args, name) not in (None, False)]
    ways = [bool(args.records), bool(args.pairs), bool(live)]
    cure = "give SESSION.jsonl, or --pairs FILE.csv, or --baseline and --candidate, or --resume DIR"
    if sum(ways) != 1:
        raise PlumbError("nothing to judge" if not any(ways) else "two ways at once", "plumb gate", cure)
    if args.better and not args.pairs:
        raise PlumbError("--better goes with --pairs", "plumb gate", "records know their direction")
    if args.pairs and not args.better:
        raise PlumbError("--pairs without a direction", "plumb gate", "add --better lower or --better higher")
    if args.pairs and args.baseline:
        raise PlumbError("--baseline goes with records or stacks", "plumb gate", "--pairs has a column of that name")
    if args.pairs and args.disturbed_by_itself:
        raise PlumbError(f"{OPTION} goes with launches", "plumb gate", "numbers do not say what was disturbed")
    begun = [name for name in ("baseline", *MARGINS) if getattr(args, name) is not None]
    begun += [name for name in ("disturbed_by_itself", "gain") if getattr(args, name)]
    goes_on = {"--resume", "--minutes", "--first-fail", "--cause-minutes", "--application"}
    if args.resume and (begun or set(live) - goes_on):
        cure = "leave out all but --minutes, --first-fail, --cause-minutes, --application and files"
        raise PlumbError("--resume continues a gate that was started", "plumb gate", cure)
    if live and not args.resume and not (args.baseline and args.candidate):
        raise PlumbError(f"{live[0]} needs both sides", "plumb gate", "add --baseline SIDE --candidate SIDE")


def _offline(args: argparse.Namespace, rule: PairedRule) -> int:
    pairs, noted = (from_csv.pairs(args.pairs, args.better), []) if args.pairs else _recorded(args)
    verdicts = decide.decide(pairs, rule)
    _write_all(args, verdicts, rule, [("note", note) for note in noted])
    if not args.json:
        print(statement.lines(verdicts), flush=True)
    for line in (*noted, decide.closing(verdicts)):
        print(line, file=sys.stderr)
    return _status(args, statement.overall(verdicts))


def _status(args: argparse.Namespace, state: str, faulty: Sequence[str] = ()) -> int:
    """The exit status of the verdict ``state``; where the baseline alone is ``faulty``, git has nothing to skip."""
    if args.for_git_bisect:
        return GIT_ENDS if state == "INVALID" and list(faulty) == ["baseline"] else FOR_GIT[state]
    return EXIT[state]


def _recorded(args: argparse.Namespace) -> tuple[list[Pairs], list[str]]:
    """The pairs of a session, and the notes on its site for the time before its end."""
    couples = from_records.couples(args.records, args.baseline)
    by_itself = args.disturbed_by_itself
    pairs = [item for couple in couples for item in from_records.pairs_of(*couple, by_itself=by_itself)]
    newest = max((record for couple in couples for record in couple), key=lambda record: record.time)
    return pairs, notes.before(newest.site, newest.time)


def _live(args: argparse.Namespace, rule: PairedRule) -> int:
    from plumbline.gate import run, setup  # not above: judging numbers needs no launch driver
    from plumbline.gate.live import Stop
    from plumbline.gate.setup import GATE
    from plumbline.gate.sides import Unusable

    with options.progress(args.json):
        try:
            folder = args.resume or _begin(args, rule)
        except Unusable as error:
            if not args.for_git_bisect or error.side.role != "candidate":
                raise
            print(f"plumb: {error}", file=sys.stderr)
            return FOR_GIT["INVALID"]
        begun = GATE.peek(folder)
        part = setup.partition_of(begun)
        outcome = None if jobs.needed(part) else run.resume(folder, Stop(args.minutes, args.first_fail), say)
    if outcome is None:
        nodes = max(couple[0].nodes for couple in begun.couples)
        return options.in_job(args, OF_A_JOB, GATE, folder, part, nodes)
    offered = (cause.command(*both, args.application) for both in outcome.failed[:MOST_WHYS])
    why = [("why", command) for command in offered if command]
    if why and args.cause_minutes:
        # first without the cause: the verdicts are kept whatever happens to the search
        options.write("the verdicts", args.output, _forms(outcome.verdicts, outcome.rule, [*outcome.facts, *why]))
        with options.progress(args.json):
            answer = cause.search(why[0][1], args.cause_minutes, folder.resolve(), say, trusted=True)
        why.append(("cause", answer))
    _write_all(args, outcome.verdicts, outcome.rule, [*outcome.facts, *why])
    with options.progress(args.json):
        print("\n".join(f"{name + ':':<8} {text}" for name, text in why), end="\n" if why else "")
        print(f"\n{decide.closing(outcome.verdicts)}", flush=True)
    return _status(args, statement.overall(outcome.verdicts), outcome.faulty)


def _begin(args: argparse.Namespace, rule: PairedRule) -> Path:
    """The folder of a new gate."""
    from plumbline.gate import run, setup, sides

    application_file = model.named_or_here(args.application)
    stack = sides.base_stack((args.baseline, args.candidate), args.stack, application_file, say)
    both = tuple(sides.resolve(role, getattr(args, role), stack, application_file) for role in run.SIDES)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    terms = setup.Terms(rule, seed, ("plumb", "gate", *jobs.options(args, *REPEAT)), args.disturbed_by_itself)
    where = (args.test, options.system(args), args.rules, args.common)
    return setup.prepare(
        setup.GateRequest((both[0], both[1]), terms, *where, folder=args.work, application=application_file), say
    )


def _forms(
    verdicts: Sequence[Verdict], rule: PairedRule, facts: Sequence[tuple[str, str]]
) -> dict[str, Callable[[], str]]:
    margins = {name: value for name, value in asdict(rule).items() if name != "gain" or value}
    return {
        ".json": lambda: statement.document(verdicts, margins, facts),
        ".xml": lambda: statement.junit(verdicts, "gate", str(rule)),
        ".md": lambda: statement.markdown(verdicts, str(rule), facts),
        ".html": lambda: render(page.document(verdicts, rule, facts)),
    }


def _write_all(
    args: argparse.Namespace, verdicts: Sequence[Verdict], rule: PairedRule, facts: Sequence[tuple[str, str]]
) -> None:
    forms = _forms(verdicts, rule, facts)
    options.write("the verdicts", args.output, forms)
    if args.json:
        print(forms[".json"](), end="")
