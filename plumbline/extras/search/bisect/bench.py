"""The live gates of a bisection, and its state: each comparison of two commits is measured once, then read again.

The folder of a bisection has ``bisect.json`` (the request, and every comparison that finished), the folders of all
gates below ``gates``, and ``bisect-N.log`` for ``git bisect replay``. All else is worked out from these. A bisection
that was interrupted therefore begins again: comparisons that finished are read, the gate in flight is resumed.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from plumbline.base import files, git, paths
from plumbline.base.schemas.site import Partition
from plumbline.base.verdicts import severity
from plumbline.extras.search.bisect.commits import Commits
from plumbline.extras.search.bisect.search import SCREENED, BisectionFindings, Comparison, Search, decided, screened
from plumbline.gate import live, run, setup, sides
from plumbline.gate.same import Unseen
from plumbline.gate.setup import GATE, GateRequest, Order, Terms
from plumbline.gate.sides import Side, Unusable
from plumbline.judge.decide import Verdict, standing
from plumbline.measure.application import model
from plumbline.measure.session import Kind, Say
from plumbline.stacks import kernels, source
from plumbline.statistics.paired import PairedRule


class BisectionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options that a bisection was begun with.

    ``good`` and ``bad`` are commits of the MPI library that ``stack`` is built from (``source:NAME``), else of the
    repository of ``application``, a plumb.yaml, else of this suite; ``named`` is how people named them. ``system`` is
    ``SITE`` or ``SITE:PARTITION``. ``circumstances`` that are None are those of the job that measures.
    """

    good: str
    bad: str
    named: tuple[str, str] = msgspec.field(name="given")
    stack: str
    tolerance: float
    must_detect: float
    seed: int
    circumstances: dict[str, Any]
    application: str | None = None
    test: str | None = None
    figure: str | None = None
    system: str | None = None
    first_parent: bool = False
    measure_equal: bool = False
    order: Order = "turns"

    @property
    def rule(self) -> PairedRule:
        """The margins of the whole."""
        return PairedRule(self.tolerance, self.must_detect)

    @property
    def file(self) -> Path | None:
        """The plumb.yaml, if there is one."""
        return Path(self.application) if self.application else None

    @property
    def library(self) -> str | None:
        """The MPI library whose commits these are, if they are."""
        return source.library(self.stack)

    def commits(self, place: Path) -> Commits:
        """The commits, in a clone in ``place``; of the suite only those that change the kernels."""
        if self.library:
            return Commits(source.repository(self.library), place, (), self.first_parent)
        if self.file:
            folder = model.code_folder(self.file)
            return Commits(git.top(folder) or folder, place, (), self.first_parent)
        return Commits(paths.root(), place, (kernels.FOLDER,), self.first_parent)


class BisectionState(msgspec.Struct):
    """The state of a bisection: ``series`` is the one that it follows (variant and figure), ``others`` those that FAIL.

    ``comparisons`` are those that finished, in the order measured; the first is that of the ends. ``programs``: by
    commit a hash of its program and all that it reads, empty where that is not known.
    """

    request: BisectionRequest = msgspec.field(name="asked")
    comparisons: list[Comparison] = []
    series: tuple[str, str] | None = None
    others: list[str] = []
    programs: dict[str, str] = {}

    @property
    def circumstances(self) -> dict[str, Any]:
        """Those that it was begun under."""
        return self.request.circumstances


BISECTION = Kind("bisection", "bisect", "bisect.json", BisectionState)


class TimeUp(Exception):
    """The time limit of the command has passed; finished measurements are kept."""


class BisectionBench:
    """The gates of the bisection of ``folder``, which was begun or loaded by :data:`BISECTION`.

    After ``minutes`` no pair is started: :class:`TimeUp`.
    """

    def __init__(self, folder: Path, state: BisectionState, say: Say, minutes: float | None = None) -> None:
        self.folder, self.state, self.say, self.request = folder, state, say, state.request
        self.until = None if minutes is None else time.monotonic() + 60 * minutes
        self._known: dict[tuple[str, str, PairedRule, bool], Comparison] = {}
        for comparison in state.comparisons:
            first = comparison.baseline, comparison.candidate, comparison.rule, False
            self._known[(*first[:3], True) if first in self._known else first] = comparison

    def place(self) -> tuple[Partition, int]:
        """Partition and number of nodes that it is measured on; begins the gate of the ends, and measures nothing."""
        ends = GATE.peek(self._begun(0, self.request.good, self.request.bad, self.request.rule))
        return setup.partition_of(ends), max(couple[0].nodes for couple in ends.couples)

    def _series(self) -> str:
        """The series that is followed, as gates call it."""
        return ": ".join(self.state.series or ("the figures",))

    def search(self, findings: BisectionFindings) -> None:
        """Measure and search until all is found; however it ends, ``findings`` and the logs have all results."""
        request, commits = self.request, self.request.commits(self.folder / "commits.git")
        search = Search(commits, self.compare, request.rule, self.say, self._series, self.program)
        try:
            search.run(findings, request.good, request.bad)
        finally:
            for number, log in enumerate(findings.logs, 1):
                files.write("the log", self.folder / f"bisect-{number}.log", log)

    def program(self, commit: str) -> str:
        """The first commit that has the same program as ``commit``, which is launched once to see what it reads."""
        known = self.state.programs
        if commit not in known and not self.request.measure_equal:
            known[commit] = ""
            try:
                folder = self._begun(0, commit, commit, self.request.rule, of="programs")
                known[commit] = live.GateBench(GATE.load(folder), folder).program(0)
            except (Unseen, Unusable) as error:
                self.say(f"bisect: {commit[:12]} counts as a program of its own: {error}")
            BISECTION.save(self.folder, self.state)
        same = (earlier for earlier, program in known.items() if program and program == known.get(commit))
        return next(same, commit)

    def compare(
        self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        """A gate of two commits, measured unless it was before; ``again``: a second one of the same two.

        ``screen``: its first pairs may decide.

        Raises :class:`TimeUp`, and PlumbError where the fault is not that of a commit.
        """
        key = baseline, candidate, rule, again
        if key not in self._known:
            number = len(self.state.comparisons)
            gate = partial(self._gate, number, baseline, candidate, rule, screen)
            self._known[key] = decided(gate, not number)
            self.state.comparisons.append(self._known[key])
            BISECTION.save(self.folder, self.state)
        return self._known[key]

    def _gate(
        self, number: int, baseline: str, candidate: str, rule: PairedRule, screen: bool, attempt: int
    ) -> Comparison:
        both = {"baseline": baseline, "candidate": candidate}
        comparison = Comparison(
            baseline=baseline,
            candidate=candidate,
            tolerance=rule.tolerance,
            must_detect=rule.must_detect,
            state="INVALID",
        )
        try:
            folder = self._begun(number, baseline, candidate, rule, attempt)
        except Unusable as error:
            if not number:
                raise  # an end: there is nothing to search
            return structs.replace(comparison, reason=str(error.fault), unusable=(both[error.side.role],))
        faulty = list[str]()
        if not (verdict := self._first(folder, rule) if screen else None):
            outcome = self._resumed(folder)
            if outcome.open:  # more pairs could decide it
                raise TimeUp
            verdict = outcome.verdicts[0] if number else self._followed(outcome.verdicts)
            faulty = [both[side] for side in outcome.faulty] if verdict.state == "INVALID" else []
        couples = [live.kept_records(folder, place) or [] for place in range(len(GATE.peek(folder).couples))]
        disturbed = verdict.pairs.disturbed
        return structs.replace(
            comparison,
            state=verdict.state,
            pairs=verdict.count,
            launches=sum(len(record.launches) for couple in couples for record in couple),
            ratio=verdict.ratio,
            interval=verdict.interval,
            detectable=verdict.detectable,
            better=verdict.pairs.better,
            reason=verdict.reason,
            unusable=tuple(faulty) if len(faulty) == 1 else (),
            folder=str(folder.relative_to(self.folder)),
            in_doubt=verdict.state == "INCONCLUSIVE" and disturbed is not None and disturbed.doubt() is not None,
        )

    def _resumed(self, folder: Path, first: int = 0) -> run.GateOutcome:
        left = None if self.until is None else (self.until - time.monotonic()) / 60
        if left is not None and left <= 0:
            raise TimeUp
        command = f"plumb bisect --resume {self.folder}"
        if not first:
            return run.resume(folder, live.Stop(left), self.say, command=command)
        stop = live.Stop(left, least=first, first=first)
        return run.resume(folder, stop, lambda line: None, command=command, pair=lambda _, line: self.say(line))

    def _first(self, folder: Path, rule: PairedRule) -> Verdict | None:
        """The verdict of the first pairs of a step, if they decide and nothing disturbed them."""
        verdict = self._resumed(folder, SCREENED).verdicts[0]
        pairs = verdict.pairs
        if pairs.faults or len(pairs.baseline.values) < SCREENED or (pairs.disturbed and any(pairs.disturbed.launches)):
            return None
        [now] = standing([pairs], rule)
        if not (state := screened(now.logs, rule, now.blur)):
            return None
        now = replace(now, pairs=SCREENED)
        return replace(
            verdict, state=live.STATES[state][0], count=SCREENED, ratio=now.ratio, interval=now.interval, reason=None
        )

    def _followed(self, verdicts: Sequence[Verdict]) -> Verdict:
        """The verdict of the ends on the series to follow: the certain one that differs most, or else the worst."""
        failed = [item for item in verdicts if item.state == "FAIL"]
        worst = max(failed or verdicts, key=lambda item: (severity(item.state), item.slower or 0.0))
        variant, _, figure = worst.subject.rpartition(": ")
        self.state.series = variant, figure
        self.state.others = [item.subject for item in failed if item is not worst]
        return worst

    def _begun(
        self, number: int, baseline: str, candidate: str, rule: PairedRule, attempt: int = 0, of: str = "gates"
    ) -> Path:
        """The folder of a gate, which is begun unless that was done before."""
        again = f"-{attempt + 1}" if attempt else ""
        folder = self.folder / of / f"{number:03}-{baseline[:8]}-{candidate[:8]}{again}"
        if (folder / GATE.file).exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted beginning
        folder.parent.mkdir(parents=True, exist_ok=True)
        request, series = self.request, self.state.series
        both = (self._side("baseline", baseline), self._side("candidate", candidate))
        seed = random.Random(f"{request.seed}/{number}/{attempt}").getrandbits(32)  # noqa: S311 - a design, not a secret
        words = [
            *("--baseline", both[0].spelling, "--candidate", both[1].spelling),
            *([] if request.library else ["--stack", request.stack]),
            *("--tolerance", f"{100 * rule.tolerance:g}%", "--must-detect", f"{100 * rule.must_detect:g}%"),
            *(["--application", request.application] if request.application else []),
            *(["--test", request.test] if request.test else []),
            *(["--order", request.order] if request.order != "turns" else []),
        ]
        variant, figure = series if series and (number or baseline == candidate) else (None, request.figure)
        gate_request = GateRequest(
            both,
            Terms(
                rule,
                seed,
                ("plumb", "gate", *words),
                measure_equal=number > 0,
                purpose="bisect",
                order=request.order,
            ),
            request.test,
            request.system,
            folder=folder,
            application=request.file,
            variant=variant,
            figure=figure,
            imposed=True,
        )
        return setup.prepare(gate_request, self.say)

    def _side(self, role: str, commit: str) -> Side:
        stack, is_library = self.request.stack, self.request.library
        name = f"stack:{stack}@{commit}" if is_library else f"commit:{commit}"
        return sides.resolve(role, name, None if is_library else stack, self.request.file)
