"""``plumb bisect``: which commit makes a figure slower."""

from __future__ import annotations

import argparse
import json
import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.base.schemas.site import Partition
from plumbline.base.table import escaped
from plumbline.base.terminal import say
from plumbline.base.units import counted, percent, some
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, needs, option
from plumbline.extras.search.bisect.bench import BISECTION, BisectionBench, BisectionRequest, BisectionState, TimeUp
from plumbline.extras.search.bisect.commits import Commits, require_range
from plumbline.extras.search.bisect.search import (
    ATTEMPTS,
    MUST_DETECT,
    SCREENED,
    TOLERANCE,
    BisectionFindings,
    Comparison,
    Step,
)
from plumbline.gate.rules import of_options
from plumbline.judge.statement import nonempty
from plumbline.measure import jobs, session
from plumbline.measure.application import model
from plumbline.measure.reframe.campaign import first_stack
from plumbline.records import naming, store
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks, render
from plumbline.show.pages.blocks import Block, block, section
from plumbline.stacks import source
from plumbline.statistics.paired import CAP, LOOKS

#: options of a new bisection, as argparse calls them; --resume takes the others
BEGINNING = (
    "good bad application stack test figure site partition tolerance must_detect first_parent measure_equal order seed "
    "work dry_run"
)


@command(
    option("good", "a commit before the figure became slower", nargs="?", metavar="GOOD"),
    option("bad", "a later commit, at which it is slower", nargs="?", metavar="BAD"),
    option(
        "--application",
        "plumb.yaml in the repository to bisect (default: the one here; without one, this suite is bisected)",
    ),
    option(
        "--stack",
        "stack for building the commits (default: the first of the site); source:NAME: bisect the library itself",
    ),
    option("--test", "tests whose names match this regular expression from the start; the slowest series is followed"),
    option("--figure", "follow only this figure"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site with the tests)"),
    option("--tolerance", f"tolerated slowdown (default: {TOLERANCE:g}, {TOLERANCE:.1%})".replace("%", " %%")),
    option(
        "--must-detect",
        f"smallest slowdown that must be detected (default: {MUST_DETECT:g}, {MUST_DETECT:.0%})".replace("%", " %%"),
    ),
    flag("--first-parent", "follow only the first parent of merges, so that the answer may be a merge"),
    flag("--measure-equal", "measure commits with the same program too"),
    options.order(),
    option("--minutes", "start no pair of launches after M minutes; --resume continues"),
    option("--seed", "seed of the pair order (default: random, recorded)"),
    option("--work", "folder of a new bisection (default: build/bisect/SESSION)"),
    option("--resume", "continue the bisection of this folder"),
    flag("--dry-run", "print the numbers of commits, gates and launches without measuring"),
    options.as_json("print the results as JSON, progress on standard error"),
    options.output("write the results to a file", ".json", ".md", ".html"),
    description="Compare BAD with GOOD and find the commit between them that makes a figure slower: git bisect "
    "chooses the "
    "commits, a gate judges each.",
    rules=[
        goes_without(
            BEGINNING,
            "resume",
            "--resume continues a bisection that was started",
            "leave out all but --minutes, --json and --output",
        ),
        needs("good bad", "two commits are needed", "plumb bisect GOOD BAD, or --resume DIR", unless="resume"),
    ],
)
def run_bisect(args: argparse.Namespace) -> int:
    """Search; returns 0 if every change is found, 1 if BAD is not slower, 2 if something is open, 3 for an error."""
    if args.dry_run:
        request = _request(args)
        with session.passing_folder("bisect") as folder:
            commits = request.commits(folder / "commits.git")
            require_range(commits, request.good, request.bad, request.named)
            print(plan(len(commits.between(request.good, request.bad))))
        return 0
    return options.in_session(args, BISECTION, _begun, _place, _measured, ("minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    BISECTION.peek(folder)  # the lock would make a folder that is not there
    with BISECTION.locked(folder):
        return BisectionBench(folder, BISECTION.peek(folder), say).place()


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print the results and write them to files, also where the time ends before the search."""
    progress, why = BisectionFindings(), None
    with BISECTION.locked(folder):
        bench = BisectionBench(folder, BISECTION.load(folder), say, args.minutes)
        say(f"folder {folder}: plumb bisect --resume {folder} continues after an interruption")
        try:
            bench.search(progress)
        except TimeUp:
            why = "time is up"
        except (Interrupted, KeyboardInterrupt):
            say(f"interrupted: plumb bisect --resume {folder} goes on")
            raise
        report = Report(folder, bench.state, progress, bench.request.commits(folder / "commits.git"), why)
        say(f"\n{report.text()}")
        forms = {".json": report.document, ".md": report.markdown, ".html": lambda: render(page(report))}
        options.write("what the bisection found", args.output, forms)
    return report.status, report.document()


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the bisection, which is begun unless it is resumed."""
    if args.resume:
        return Path(args.resume.resolve())
    request = _request(args)
    with session.passing_folder("bisect") as place:
        require_range(request.commits(place / "commits.git"), request.good, request.bad, request.named)
    folder = (args.work or paths.build() / "bisect" / store.new_session()).resolve()
    bisection = BisectionState(request)
    with BISECTION.new(folder):
        BISECTION.save(folder, bisection)
        if jobs.needed(BisectionBench(folder, bisection, say).place()[0]):
            bisection.request = structs.replace(request, circumstances=session.before_a_job(request.circumstances))
            BISECTION.save(folder, bisection)
    return Path(folder)


def _request(args: argparse.Namespace) -> BisectionRequest:
    rule = of_options(args, tolerance=TOLERANCE, must_detect=MUST_DETECT)
    application_file = model.named_or_here(args.application)
    stack = args.stack or first_stack(application_file, say)
    library = source.library(stack)
    repository = model.code_folder(application_file) if application_file else None
    repository = source.repository(library) if library else repository
    good, bad = (_commit(name, repository) for name in (args.good, args.bad))
    return BisectionRequest(
        good=good,
        bad=bad,
        named=(args.good, args.bad),
        stack=stack,
        tolerance=rule.tolerance,
        must_detect=rule.must_detect,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        circumstances=session.circumstances([] if library else [stack]),
        application=str(application_file) if application_file else None,
        test=args.test,
        figure=args.figure,
        system=options.system(args),
        first_parent=args.first_parent,
        measure_equal=args.measure_equal,
        order=args.order or "turns",
    )


def _commit(name: str, repository: Path | None) -> str:
    """The commit that ``name`` stands for; ``repository`` None: of this suite."""
    commit = git.commit(name, repository)
    if commit is None and repository is None and not git.is_checkout():
        raise PlumbError(
            f"'{name}': commits of the suite need a checkout of it",
            "plumb bisect",
            "run it in a repository with a plumb.yaml, or in a checkout",
        )
    if commit is None:
        raise PlumbError(f"'{name}' is not a commit", str(repository or paths.root()), "git log has them")
    return commit


#: characters of a commit's subject in a table
WIDTH = 32
#: exit statuses
FOUND, NOTHING, OPEN, INVALID = 0, 1, 2, 3


@dataclass(frozen=True)
class Row:
    """A comparison, and the conclusion from it."""

    comparison: Comparison
    therefore: str


@dataclass(frozen=True)
class Report:
    """The results of the bisection of ``folder``, and ``why`` it ended before it was complete, if it did."""

    folder: Path
    state: BisectionState
    findings: BisectionFindings
    commits: Commits
    why: str | None = None

    @property
    def status(self) -> int:
        """The exit status."""
        ends = self.findings.ends
        if self.why or ends is None:
            return OPEN
        if ends.state != "FAIL":
            return INVALID if ends.state == "INVALID" else NOTHING
        return FOUND if self.findings.is_complete else OPEN

    @property
    def lines(self) -> list[str]:
        """The answer: one line for each change, then the certain and the open statements about the rest."""
        findings, request = self.findings, self.state.request
        series = ": ".join(self.state.series or ())
        ends = findings.ends
        lines = [line for culprit in findings.culprits for line in (culprit.line, *culprit.notes)]
        if ends and ends.state != "FAIL":
            good, bad = request.named
            why = ends.reason or f"slowdowns of {percent(ends.detectable or 0.0)} and more are ruled out"
            lines.append(f"{bad} is not slower than {good} for certain: {series}: {ends.state}: {why}")
        if ends and len(findings.culprits) > 1:
            lines.append(f"together {request.named[1]} is {ends.by} than {request.named[0]}")
        if findings.culprits and not (self.why or findings.unknown):
            nothing = f"nothing else in the range changes it by {percent(request.must_detect)} or more"
            lines += findings.little or [nothing]
        lines += findings.unknown
        if self.why:
            lines.append(f"{self.why}: plumb bisect --resume {self.folder} goes on")
        return lines

    @property
    def gates(self) -> int:
        """How many comparisons were measured."""
        return sum(comparison.launches > 0 for comparison in self.state.comparisons)

    @property
    def launches(self) -> int:
        """How many launches all comparisons made, and those that showed which programs are the same."""
        return sum(comparison.launches for comparison in self.state.comparisons) + len(self.state.programs)

    @property
    def notes(self) -> list[str]:
        """Series that are not followed, cost, and the commands that replay the search."""
        others = self.state.others
        unfollowed = [f"slower too, and not followed (--test, --figure): {some(others)}"] if others else []
        replay = [
            f"git bisect replay {self.folder / f'bisect-{number}.log'}"
            for number in range(1, len(self.findings.logs) + 1)
        ]
        cost = f"{counted(self.gates, 'gate')}, {counted(self.launches, 'launch')}; folder {self.folder}"
        return [*unfollowed, cost, *replay]

    def rows(self) -> list[Row]:
        """All comparisons, range by range, each once."""
        first: dict[Comparison, Row] = {}
        for row in self._rows():
            first.setdefault(row.comparison, row)
        return list(first.values())

    def _rows(self) -> Iterator[Row]:
        findings = self.findings
        if findings.ends:
            yield Row(findings.ends, "slower" if findings.ends.state == "FAIL" else "nothing to search")
        for culprit in findings.culprits:
            yield from self._steps([step for step in findings.steps if step.part == culprit.part])
            yield Row(culprit.comparison, "confirmed" if culprit.is_confirmed else "not confirmed")
        complete = [culprit.part for culprit in findings.culprits]
        yield from self._steps([step for step in findings.steps if step.part not in complete])
        therefore = {"PASS": "nothing more", "FAIL": "searched", "GAIN": "searched"}
        yield from (Row(comparison, therefore.get(comparison.state, "unknown")) for comparison in findings.rest)

    def _steps(self, steps: Sequence[Step]) -> Iterator[Row]:
        for step in steps:
            *before, last = step.comparisons
            yield from (Row(comparison, "") for comparison in before)
            yield Row(last, step.term)

    @property
    def table(self) -> Table[Row]:
        """The table of gates."""
        subject = self.commits.subject
        return Table(
            "Gates",
            [
                Column("commit", lambda row: row.comparison.candidate[:12]),
                Column("date", lambda row: subject(row.comparison.candidate)[1], spare=1),
                Column("subject", lambda row: naming.shorten(subject(row.comparison.candidate)[0], WIDTH), spare=3),
                Column("against", lambda row: row.comparison.baseline[:12]),
                Column("verdict", lambda row: block("badge", row.comparison.state, verdict=row.comparison.state)),
                Column("ratio", lambda row: row.comparison.ratio and f"{row.comparison.ratio:.4f}", "number"),
                Column("interval", _interval, "number"),
                Column("pairs", lambda row: row.comparison.pairs, "number"),
                Column("launches", lambda row: row.comparison.launches, "number", spare=2),
                Column("therefore", lambda row: row.therefore),
            ],
        )

    def text(self) -> str:
        """For people: the table, the answer, notes."""
        rows = self.rows()
        shown = [self.table.text(rows), ""] if rows else []
        return "\n".join([*shown, *self.notes, "", *(f"bisect: {line}" for line in self.lines)])

    def markdown(self) -> str:
        """The answer, the table, the notes."""
        first, *rest = self.lines
        bullets = [f"- {escaped(line)}" for line in (*rest, *self.notes)]
        return "\n".join([f"**{escaped(first)}**", "", self.table.markdown(self.rows()), "", *bullets]) + "\n"

    def document(self) -> str:
        """All of it as JSON."""
        findings, request = self.findings, self.state.request
        steps = [
            {
                "commit": step.commit,
                "said": step.term,
                **nonempty(reason=step.why),
                "gates": list(map(_plain, step.comparisons)),
            }
            for step in findings.steps
        ]
        whole = {
            "answer": self.lines[0],
            "line": f"bisect: {self.lines[0]}",
            "status": self.status,
            "gates": self.gates,
            "launches": self.launches,
            "series": ": ".join(self.state.series or ()),
            "good": request.good,
            "bad": request.bad,
            "rule": {"tolerance": request.tolerance, "must_detect": request.must_detect},
            "ends": _plain(findings.ends) if findings.ends else None,
            "culprits": [culprit.to_dict() for culprit in findings.culprits],
            "steps": steps,
            "rest": list(map(_plain, findings.rest)),
            **nonempty(unknown=findings.unknown, others=self.state.others, ended=self.why),
            "facts": [{"name": "folder", "text": str(self.folder)}, {"name": "stack", "text": request.stack}],
        }
        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def facts(self) -> list[tuple[str, str]]:
        """The request, by names."""
        request = self.state.request
        both = zip(("good", "bad"), request.named, (request.good, request.bad), strict=True)
        named = [(name, f"{label} ({self.commits.label(commit)})") for name, label, commit in both]
        margins = f"{percent(request.tolerance)} tolerated, {percent(request.must_detect)} must be seen"
        return [*named, ("figure", ": ".join(self.state.series or ())), ("stack", request.stack), ("margins", margins)]


def _interval(row: Row) -> str | None:
    return row.comparison.interval and "{:.4f} to {:.4f}".format(*row.comparison.interval)


def _plain(comparison: Comparison) -> dict[str, Any]:
    """The JSON object of it: numbers to six digits, without what is as it usually is."""
    return {
        **msgspec.to_builtins(comparison),
        **{name: value for name, value in comparison.numbers.items() if value is not None},
    }


def plan(commits: int) -> str:
    """The cost of a search among so many commits."""
    steps = math.ceil(math.log2(commits))
    gates = steps + 4 if steps else 1
    step, least, most = 2 * SCREENED, 2 * LOOKS[0], 2 * CAP
    return (
        f"{counted(commits, 'commit')}: {counted(steps, 'step')}, for one change about {counted(gates, 'gate')} (the "
        "ends, the steps, the commit against its parent, what is left on both sides)\n"
        f"{step} launches a step and {least} a gate where the change is much larger than the noise, {most} at most: "
        f"{step * steps + least * (gates - steps)} to {most * gates} in all\n"
        f"a gate that noise leaves open is measured again where that may decide: {ATTEMPTS} times at most\n"
        "another change in the range takes as many again, a commit that does not build one more step"
    )


def page(report: Report) -> dict[str, Any]:
    """The page: the answer, every step, and the commits of the range by their ratio to the good one."""
    first, *rest = report.lines
    return {
        "title": "Bisection",
        "heading": ["Bisection"],
        "head": [
            block("paragraph", first, id="closing"),
            bool(rest) and block("bullets", *rest),
            blocks.facts("What was asked", report.facts()),
        ],
        "sections": [
            section(
                "range", "Range", "What was measured against the good commit, by place in history.", _chart(report)
            ),
            section(
                "steps",
                "Gates",
                "Every gate, range by range. Ratio: commit / what it stands against; each end of an interval is right "
                "with 99 %.",
                report.table.block(report.rows()),
            ),
            section("notes", "Notes", "", block("bullets", *report.notes)),
        ],
    }


def _chart(report: Report) -> Block | bool:
    """Each commit that was compared with the good end, at its place in the range, with its interval."""
    request = report.state.request
    places = {commit: place for place, commit in enumerate(report.commits.between(request.good, request.bad), 1)}
    known = [
        (places[row.comparison.candidate], row)
        for row in report.rows()
        if row.comparison.baseline == request.good and row.comparison.ratio and row.comparison.candidate in places
    ]
    if not known:
        return False
    known.sort(key=lambda item: item[0])
    ratios = [(place, row, row.comparison.ratio, row.comparison.interval or (0.0, 0.0)) for place, row in known]
    ends = [end for *_, interval in ratios for end in interval]
    room = 0.1 * (max(*ends, 1.0) - min(*ends, 1.0)) or 0.01
    margin = 1 + request.must_detect
    return blocks.chart(
        "Ratio to the good commit",
        f"{request.named[0]} is 1. Lines: intervals of 99 %; dashed: {percent(request.must_detect)}.",
        ["place", blocks.column("commit", "code"), blocks.number("ratio"), blocks.number("interval"), "therefore"],
        [
            (
                place,
                report.commits.label(row.comparison.candidate),
                f"{ratio:.4f}",
                f"{low:.4f} to {high:.4f}",
                row.therefore,
            )
            for place, row, ratio, (low, high) in ratios
        ],
        id="ratios",
        height=300,
        series=[
            blocks.series(
                "ratio",
                None,
                [(number, place, ratio) for number, (place, _, ratio, _) in enumerate(ratios)],
                ranges=[(place, *interval) for place, _, _, interval in ratios],
            )
        ],
        x={"name": "commit of the range", "min": 0, "max": len(places) + 1},
        y={"name": "commit / good", "type": "value", "min": min(*ends, 1.0) - room, "max": max(*ends, 1.0) + room},
        marks=[
            {"yAxis": 1, "tone": "line-strong", "dash": "solid"},
            {"yAxis": margin, "tone": "bad", "dash": "dashed", "label": "must be seen", "place": "insideEndTop"},
        ],
    )
