"""Confirmation of an alarm of the history: is the software after a change slower than the software before it?

Where both can be run here, a live gate of that one variant decides. Where the software did not change, or is not
installed any more, fresh sessions are needed, and the text of the answer says which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import structs

from plumbline import site
from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.base.verdicts import EXIT
from plumbline.gate import live, run, setup, sides
from plumbline.gate.sides import KERNELS, Side
from plumbline.judge.decide import Verdict
from plumbline.judge.history import Followed
from plumbline.launch import prepare
from plumbline.measure import jobs
from plumbline.measure.application import model as applications
from plumbline.measure.session import Say, circumstances
from plumbline.records import query, store
from plumbline.records.model import Benchmark, Mpi, Record
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests
from plumbline.statistics.changes import Settings
from plumbline.statistics.paired import PairedRule

#: the cure for a record that names the code to run
AGAIN = "plumb reproduce ID --trust, if you know who wrote it"
AlarmState = Literal["confirmed", "refuted", "open", "invalid"]
UNCHANGED = "the software did not change: node, firmware or operating system did"
#: nodes on which fresh sessions are asked for: one node alone cannot show whether it or the whole site changed
NODES = 3
STATES: dict[str, AlarmState] = {
    "GAIN": "refuted",
    "FAIL": "confirmed",
    "PASS": "refuted",
    "INCONCLUSIVE": "open",
    "INVALID": "invalid",
}
#: exit status of each, worst last as for verdicts
STATUS: dict[AlarmState, int] = {STATES[name]: status for name, status in EXIT.items()}


@dataclass(frozen=True)
class Answer:
    """The answer to an alarm. ``search``: the command that looks for the cause of a confirmed one."""

    state: AlarmState
    text: str
    search: str | None = None


#: measures a couple of variants, one for each side; the tests put another one in its place
Measure = Callable[[tuple[Side, Side], list[Variant], PairedRule], run.GateOutcome]


#: the command that looks for the cause by which the second record differs from the first, with the plumb.yaml named
Offer = Callable[[Record, Record, Path | None], str | None]


@dataclass
class Confirmer:
    """Answers alarms; the figures of one variant are measured together, once. ``offer``: a cause is searched by it.

    ``application`` is the plumb.yaml of records of an application; None: the one here.
    """

    rule: PairedRule
    measure: Measure
    offer: Offer
    application: Path | None = None
    seen: dict[tuple[str, str, str], list[Verdict]] = field(default_factory=dict)

    def answer(self, good: Record, bad: Record, figure: str) -> Answer:
        """Whether the software of ``bad`` is slower than that of ``good``, the last record before the alarm.

        It is measured, or the answer names the commands to run elsewhere and the reason.
        """
        if bad.is_imported:
            return Answer("open", "its figures are imported: the program that measured them must measure again")
        try:
            both = choose(good, bad, self.application)
            if isinstance(both, str):
                return Answer("open", f"{both}; {fresh_sessions(bad)}")
            verdicts = self._measured(bad, both)
        except PlumbError as error:
            return Answer("open", f"it could not be measured: {error}; {fresh_sessions(bad)}")
        verdict = next((item for item in verdicts if item.subject == f"{bad.variant.name}: {figure}"), None)
        if verdict is None:
            return Answer("open", f"a gate does not judge this figure, which is optional; {fresh_sessions(bad)}")
        text = f"{both[1].measured} against {both[0].measured}, {verdict.count} pairs: "
        text += verdict.reason or "no slowdown that matters"
        state = STATES[verdict.state]
        return Answer(state, text, self.offer(good, bad, self.application) if state == "confirmed" else None)

    def _measured(self, bad: Record, both: tuple[Side, Side]) -> list[Verdict]:
        variant = prepare.variant_again(bad, both[0].code is not None, AGAIN)
        key = (both[0].measured, both[1].measured, variant.name)
        if key not in self.seen:
            couple = [structs.replace(variant, stack=side.measured) for side in both]
            self.seen[key] = self.measure(both, couple, self.rule).verdicts
        return self.seen[key]


def answers(
    followed: Sequence[Followed], settings: Settings, say: Say, offer: Offer, application: Path | None
) -> dict[int, Answer]:
    """The answer to each series whose newest change is for the worse, by the place of the series."""
    confirmer = Confirmer(
        PairedRule(settings.min_effect / 5, settings.min_effect), measure_here(say, application), offer, application
    )
    by_place = {}
    for place, item in enumerate(followed):
        if item.alarms and item.alarms[-1]["direction"] == "worse":
            good, bad = (query.find(item.series.index[index]) for index in (item.last - 1, item.last))
            say(f"confirming: {item.subject}, slower since {bad.id}")
            by_place[place] = confirmer.answer(good, bad, item.series.key["figure"])
    return by_place


def status(all_answers: Collection[Answer]) -> int:
    """The exit status of all answers: that of the worst."""
    return STATUS[max((answer.state for answer in all_answers), key=list(STATUS).index, default="refuted")]


def fresh_sessions(bad: Record) -> str:
    """The commands to run where no pairs can be measured."""
    return (
        f"measure fresh sessions on at least {NODES} nodes of partition {bad.partition}, one that was not in "
        f"doubt among them: plumb reproduce {bad.id} on each"
    )


def choose(good: Record, bad: Record, application: Path | None = None) -> tuple[Side, Side] | str:
    """The two sides that stand for the software of ``good`` and of ``bad``, or why there are none here.

    ``application`` is the plumb.yaml of records of an application; None: the one here.
    """
    for record in (good, bad):
        prepare.refuse_build(record, AGAIN)
    here = site.here()
    if here != bad.site:
        return f"the records are of site {bad.site}, this host belongs to {here}"
    if bad.variant.application:
        return _of_application(good, bad, bad.variant.application.name, applications.named_or_here(application))
    if identity(good) == identity(bad):
        return UNCHANGED
    stacks = [installed(record) for record in (good, bad)]
    if stacks[0] and stacks[1]:
        return Side("baseline", stacks[0]), Side("candidate", stacks[1])
    commits = [record.suite.commit for record in (good, bad)]
    base = installed(bad, kernels=False)
    if bad.benchmark.suite == KERNELS and base and base == installed(good, kernels=False):
        if all(commit and git.commit(commit) for commit in commits):
            return Side("baseline", base, commits[0]), Side("candidate", base, commits[1])
        return "the commits of the kernels are not in this checkout"
    gone = "last good" if not stacks[0] else "newer"
    name = (good if not stacks[0] else bad).stack.name
    return f"the {gone} stack {name} is not installed here any more"


def _of_application(good: Record, bad: Record, name: str, file: Path | None) -> tuple[Side, Side] | str:
    """The two sides of records of the application ``name``: its commits, built against the stacks."""
    if file is None or applications.load(file).application != name:
        return f"this is not the repository of {name}"
    both = []
    for role, record in zip(run.SIDES, (good, bad), strict=True):
        stack, state = installed(record, kernels=False), record.variant.application
        commit = git.commit(state.commit, applications.code_folder(file)) if state and state.commit else None
        if stack is None:
            return f"the stack {record.stack.name} of record {record.id} is not installed here any more"
        if commit is None:
            return f"the code of record {record.id} is not a commit of this repository"
        code = applications.code_of_commit(file, commit, state.variables if state else ())
        both.append(Side(role, stack, spelling=commit[:12], code=code))
    same = both[0].stack == both[1].stack and both[0].code == both[1].code
    return UNCHANGED if same else (both[0], both[1])


def identity(record: Record) -> tuple[Any, ...]:
    """The software of a record, whatever the name and the folder of its stack."""
    return *_of_stack(record.stack.mpi, record.stack.compiler, record.stack.sources), *_of_program(record.benchmark)


def _of_stack(mpi: Mpi, compiler: dict[str, Any], sources: list[Any]) -> tuple[Any, ...]:
    return mpi, [compiler.get(name) for name in ("name", "version")], sources


def _of_program(benchmark: Benchmark) -> tuple[Any, ...]:
    return benchmark.sha256, {name: value for name, value in benchmark.facts.items() if name.endswith("sha256")}


def installed(record: Record, kernels: bool = True) -> str | None:
    """The installed stack with the software of ``record``, None if there is none; that of the same name is tried first.

    Without ``kernels`` the benchmark program may be another one.
    """
    stack = record.stack
    for name in sorted(manifests.names(), key=lambda name: name != stack.name):
        manifest = manifests.document(manifests.load(name))
        software = _of_stack(msgspec.convert(manifest["mpi"], Mpi), manifest["compiler"], manifest["sources"])
        program = manifest["benchmarks"].get(record.variant.benchmark)
        if not kernels:
            if "@" not in name and software == _of_stack(stack.mpi, stack.compiler, stack.sources):
                return name
        elif program and (*software, *_of_program(msgspec.convert(program, Benchmark))) == identity(record):
            return name
    return None


def measure_here(say: Say, application: Path | None) -> Measure:
    """The real :data:`Measure`: a live gate in this process, shown by ``say``; ``application`` as above."""

    def in_pairs(both: tuple[Side, Side], couple: list[Variant], rule: PairedRule) -> run.GateOutcome:
        jobs.refuse(site.partition(site.load(couple[0].site), couple[0].partition), "plumb history --confirm")
        if both[0].code:
            terms, file = setup.Terms(rule, purpose="history"), applications.here(application)
            request = setup.GateRequest(both, terms, application=file, variant=couple[0].name, imposed=True)
            return run.resume(setup.prepare(request, say), live.Stop(), say)
        for side in both:
            sides.install_side(side)
        old, new = (side.measured for side in both)
        repeat = ("plumb", "gate", "--baseline", old, "--candidate", new, "--test", couple[0].test)
        terms = setup.Terms(rule, command=repeat, purpose="history")
        name = store.new_session()
        folder = paths.build() / "gate" / name
        setup.begun_for(folder, name, (old, new), [couple], terms, circumstances(sorted({old, new})))
        return run.resume(folder, live.Stop(), say)

    return in_pairs
