"""A scaling in a folder that can be resumed: what is measured, and the launches that were."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from plumbline import parsers, proof, site
from plumbline.base import digits, files, group, paths, schemas, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.extras.scale import bends, curve
from plumbline.extras.scale.curve import Curve
from plumbline.gate.setup import HERE
from plumbline.host import binder, ceilings, counters, machine
from plumbline.host.ceilings import Bound
from plumbline.host.collector import Reader
from plumbline.host.counters import Counts
from plumbline.launch import conclusions, hosts, neighbour, output, process
from plumbline.launch.observed import LARGE
from plumbline.measure import driver
from plumbline.measure.session import Kind
from plumbline.parsers.application import FigureRule, Rules
from plumbline.parsers.measurement import Work, step_of
from plumbline.records.launch import RankSeen, ThreadSeen
from plumbline.records.variant import Variant

#: the program's launches in the folder
FILE = "launches.json"
#: what processors count of an account; some launches may lack it
COUNTED = {"instructions", "cycles", "ghz"}
#: a point is not measured again after so many launches without a value
TRIES = 2
#: seconds between two looks at the clocks
EVERY_S = 0.25


class Scaling(Struct, frozen=True, kw_only=True):
    """The constants of a scaling: a command for each of ``counts`` of ``kind`` (threads, ranks or nodes).

    ``placement`` is that of one process with so many threads; empty where the command starts its ranks itself.
    ``rule`` reads the figure that is compared, or the time. ``minutes`` and ``rounds`` end it. With ``cores`` the
    points are numbers of ranks that share them. ``variants``: of programs and tests, in place of commands; then the
    rule has unit and direction only, as launches tell them. ``partition``: SITE:PARTITION where it is measured; empty:
    here. ``fill`` is the kind of the neighbour on the cores that a point leaves idle; empty: they stay idle.
    """

    name: str
    kind: str
    counts: Annotated[list[binder.Count], Meta(min_length=1)]
    commands: list[list[str]]
    placement: str
    weak: bool
    rule: FigureRule
    minutes: float
    rounds: int
    seed: int
    circumstances: dict[str, Any]
    cores: int = 0
    variants: list[Variant] = []
    partition: str = ""
    fill: str = ""

    @property
    def where(self) -> tuple[Partition, int]:
        """The partition, and how many nodes the largest point needs."""
        site_name, _, name = self.partition.partition(":")
        part = site.partition(site.load(site_name), name) if name else HERE
        return part, max(self.counts) if self.kind == "nodes" else max(
            (each.nodes for each in self.variants), default=1
        )

    def label(self, place: int) -> str:
        """A point for people: ``4 threads``, ``2 ranks x 4 threads``."""
        count = self.counts[place]
        threads = f" x {units.counted(self.cores // count, 'thread')}" if self.cores else ""
        return units.counted(count, self.kind.removesuffix("s")) + threads

    def command(self, place: int) -> list[str]:
        """The command of a point as it is started."""
        if not self.placement:
            return self.commands[place]
        placed = ["--placement", self.placement, "--threads", str(self.counts[place])]
        return [str(paths.binder()), *placed, "--", *self.commands[place]]


class Measured(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A launch of a point: its ``value``, or the ``reason`` why it has none; CPU time and how it was spent.

    ``beside`` are the program's other figures. ``step``: how finely the value was printed, 0: in all digits. ``ghz`` is
    the clock of its CPUs, 0 where it is not known; ``took_s`` is with all before and after the command.
    """

    place: Annotated[int, Meta(ge=0)]
    round: Annotated[int, Meta(ge=0)]
    value: Annotated[float, Meta(gt=0)] | None = None
    reason: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    waited_s: float = 0.0
    took_s: float = 0.0
    spent: dict[str, float] = {}
    beside: dict[str, float] = {}
    ghz: float = 0.0
    step: float = 0.0


SCALING = Kind("scaling", "scale", "scaling.json", Scaling)


def kept(folder: Path, scaling: Scaling) -> list[Measured]:
    """The launches in ``folder``; none where nothing was measured. Raises :class:`PlumbError` for others."""
    file = folder / FILE
    if not file.exists():
        return []
    try:
        launches = msgspec.convert(schemas.parse_json(file.read_text(encoding="utf-8")), list[Measured])
        if any(each.place >= len(scaling.counts) or each.round >= len(launches) for each in launches):
            raise ValueError("a point or a round that was not measured")
        if len({frozenset(each.spent) - COUNTED for each in launches if each.spent}) > 1:
            raise ValueError("launches with unlike accounts")
        return launches
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise PlumbError(f"not the launches of a scaling: {error}", str(file), "begin a new one") from error


def proven(scaling: Scaling, launches: Sequence[Measured]) -> list[Measured]:
    """The ``launches``, without the values that repeat digit by digit at a point: they were not measured."""
    by_place = group((launch.place, launch) for launch in launches if launch.value is not None)
    series = [([launch.value or 0.0 for launch in mine], mine[0].step) for mine in by_place.values()]
    if not units.is_measured(scaling.rule.unit, [value for values, _ in series for value in values]):
        return [*launches]
    places = {[*by_place][number] for number in digits.repeated(series)}
    reason = "its launches printed the same figure, digit by digit: it was not measured"
    return [replace(each, value=None, reason=reason) if each.place in places else each for each in launches]


def curve_of(scaling: Scaling, launches: Sequence[Measured]) -> Curve:
    """The curve of what was measured."""
    values = np.full((len(scaling.counts), max((launch.round for launch in launches), default=0) + 1), np.nan)
    for launch in launches:
        if launch.value is not None:
            values[launch.place, launch.round] = launch.value
    counts = tuple(scaling.cores or count for count in scaling.counts)
    steps = [0.0] * len(counts)
    for launch in launches:
        steps[launch.place] = max(steps[launch.place], launch.step)
    return Curve(counts, values, scaling.weak, scaling.rule.better == "higher", tuple(steps))


def accounts(launches: Sequence[Measured]) -> dict[int, bends.Account]:
    """What the launches of each point spent, medians."""
    by_place = group((launch.place, launch) for launch in launches if launch.value is not None and launch.spent)
    return {
        place: bends.Account(
            float(np.median([launch.cpu_s for launch in mine])),
            float(np.median([launch.wall_s for launch in mine])),
            float(np.median([launch.waited_s for launch in mine])),
            {
                name: float(np.median([launch.spent[name] for launch in mine]))
                for name in set.intersection(*(set(launch.spent) for launch in mine))
            },
            float(np.median([launch.ghz for launch in mine])),
        )
        for place, mine in sorted(by_place.items())
    }


def beside(launches: Sequence[Measured], place: int) -> dict[str, float]:
    """The medians of the program's other figures at a point."""
    mine = (item for launch in launches if launch.place == place for item in launch.beside.items())
    return {name: float(np.median(several)) for name, several in group(mine).items()}


def faults(scaling: Scaling, launches: Sequence[Measured]) -> dict[int, str]:
    """The points without a value, each with its last reason."""
    reasons = {launch.place: launch.reason for launch in launches if launch.reason}
    with_value = {launch.place for launch in launches if launch.value is not None}
    return {place: reason for place, reason in sorted(reasons.items()) if place not in with_value}


def measure(folder: Path, scaling: Scaling, say: Callable[[str], None]) -> tuple[str, Scaling, list[Measured]]:
    """Measure rounds until every efficiency is known well enough; returns why it ended, and all launches."""
    launches = kept(folder, scaling)
    terms = (scaling.variants, scaling.name, folder, scaling.seed, "launches that had finished are kept")
    bench = functools.cache(lambda: driver.Launches(*terms))  # of commands there are none
    used = functools.cache(lambda place: _used(scaling, bench, place, folder / "launch"))
    begin = time.monotonic() - sum(launch.took_s for launch in launches)
    checked = functools.cache(SCALING.load)  # once: raises where the circumstances are others now
    with SCALING.locked(folder), terminal.bar():
        while True:
            done = {(launch.round, launch.place) for launch in launches}
            number = max((launch.round for launch in launches), default=0)
            out = {
                place for place in faults(scaling, launches) if sum(each.place == place for each in launches) >= TRIES
            }
            left = [place for place in _order(scaling, number) if (number, place) not in done and place not in out]
            if not left:
                if len(out) >= len(scaling.counts) - 1:
                    return "too few points have a value", scaling, launches
                if number + 1 >= curve.ROUNDS and (known := curve_of(scaling, launches)).is_enough:
                    few = "" if known.is_known else ", but for values of few digits"
                    return f"each efficiency is known within 2 %{few}", scaling, launches
                if number + 1 >= scaling.rounds:
                    return f"{scaling.rounds} rounds are done", scaling, launches
                number, left = number + 1, [place for place in _order(scaling, number + 1) if place not in out]
            if number >= curve.ROUNDS and time.monotonic() - begin >= 60 * scaling.minutes:
                return "time is up", scaling, launches
            checked(folder)
            for place in left:
                started = time.monotonic()
                idle = _idle(used(place)) if scaling.fill else []
                if scaling.variants:
                    launch, rule = _launch_variant(bench(), scaling, place, number, idle)
                    if scaling.rule != rule:
                        scaling = replace(scaling, rule=rule)
                        SCALING.save(folder, scaling)
                else:
                    launch = _launch(scaling, place, number, idle, folder / "launch")
                launches.append(replace(launch, took_s=time.monotonic() - started))
                files.replace(folder / FILE, msgspec.json.encode(launches).decode())
                text = launch.reason or shown(scaling, launch.value or 0.0, launch.step)
                say(f"round {number + 1}  {scaling.label(place)}: {text}")
                rest = units.human_seconds(max(60 * scaling.minutes - (time.monotonic() - begin), 0))
                terminal.progress(number + 1, scaling.rounds, f"rounds, at most {rest} left")


def _order(scaling: Scaling, number: int) -> list[int]:
    """The points in the order of a round, drawn from the seed."""
    places = range(len(scaling.counts))
    draw = random.Random(f"{scaling.seed}/{number}")  # noqa: S311 - an experimental design, not a secret
    return draw.sample(places, len(places))


def shown(scaling: Scaling, value: float, step: float) -> str:
    """A ``value`` with its unit, if it has one."""
    return " ".join(units.human(value, scaling.rule.unit, step)).removesuffix(" 1")


@contextlib.contextmanager
def clocks(root: Path = Path("/"), cpus: Collection[int] = ()) -> Iterator[list[dict[int, int]]]:
    """Looks at the clocks in kHz of ``cpus`` (default: those of this process) within this block; ``root`` has /sys.

    There are none where no CPU tells its clock. Efficiency is lost where more busy cores have a lower clock.
    """
    read, looks, is_over = Reader(root), list[dict[int, int]](), threading.Event()

    def watch() -> None:
        while not is_over.wait(EVERY_S) and (look := read.clocks(cpus or os.sched_getaffinity(0))):
            looks.append(look)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield looks
    finally:
        is_over.set()
        watching.join()


def clock_of(ranks: Iterable[RankSeen], looks: Iterable[Mapping[int, int]]) -> float:
    """The clock in GHz of the CPUs of those of ``ranks`` that ran here, over all ``looks``; 0 where it is not known."""
    cpus = _here(ranks)
    known = [[look[cpu] for cpu in cpus & look.keys()] for look in looks]
    return float(np.median([float(np.mean(each)) for each in known if each] or [0.0])) / 1e6


def _here(ranks: Iterable[RankSeen]) -> set[int]:
    """The CPUs of those of ``ranks`` that ran here."""
    here = os.uname().nodename
    return {cpu for rank in ranks if rank.host == here for thread in rank.threads for cpu in thread.affinity}


def _used(scaling: Scaling, bench: Callable[[], driver.Launches], place: int, folder: Path) -> set[int]:
    """The CPUs of a point by its plan, or those that its launcher gives the ranks of a launch that does not count."""
    if scaling.variants:
        return {*bench().jobs[place].plan.cpus}
    if scaling.placement:
        with contextlib.suppress(binder.Refusal):  # which the launch meets too
            return {*binder.resolve(scaling.placement, threads=scaling.counts[place], ranks=1).cpus}
    files.make_anew(folder)
    with hosts.turn():
        return _here(proof.run(scaling.command(place), output=folder, loose=True).ranks)


def _idle(used: Collection[int]) -> list[int]:
    """A hardware thread of each core that a point leaves idle."""
    allowed = os.sched_getaffinity(0)
    cores = (allowed.intersection(core.cpus) for core in machine.load().cores if not {*core.cpus} & {*used})
    return [min(each) for each in cores if each]


def _filled(fill: str, cpus: Sequence[int], folder: Path) -> AbstractContextManager[list[str]]:
    """The neighbour on ``cpus``, if there are any; after it, why it did not work all the time."""
    return neighbour.neighbour(fill, machine.load(), cpus, folder) if cpus else contextlib.nullcontext([])


def _launch(scaling: Scaling, place: int, number: int, idle: Sequence[int], folder: Path) -> Measured:
    """Start the command of a point, and a neighbour on the CPUs ``idle``, and read its value."""
    files.make_anew(folder)
    threads = scaling.counts[place] if scaling.placement else None
    with hosts.turn(), _filled(scaling.fill, idle, folder) as fault, clocks() as looks, counters.counting() as counts:
        seen = proof.run(scaling.command(place), scaling.placement or None, threads=threads, output=folder, loose=True)
    if seen.status:
        texts = (process.printed(folder / name) for name in ("stdout", "stderr"))
        limited = (Path(scaling.commands[place][0]).name, seen.status) == ("timeout", 124)
        reason = "its time limit is over" if limited else output.cause_of(
            process.Ended("failed", seen.status, seen.wall_s), texts, who="it"
        )  # fmt: skip
        return Measured(place=place, round=number, reason=reason)
    if scaling.placement and len(seen.ranks) > 1:
        reason = f"it started {len(seen.ranks)} ranks: over threads it is one process, {{ranks}} in it scales ranks"
        return Measured(place=place, round=number, reason=reason)
    if scaling.fill and (_here(seen.ranks) & {*idle} or any(rank.host != os.uname().nodename for rank in seen.ranks)):
        fault.append("its ranks ran on cores of the neighbour, or on other nodes: let their launcher bind them on one")
    if not seen.verified or fault:
        return Measured(place=place, round=number, reason=[*seen.reasons, *fault, seen.verdict][0])
    try:
        value, step = _value(scaling, seen.wall_s, folder)
    except PlumbError as error:
        return Measured(place=place, round=number, reason=error.message)
    shutil.rmtree(folder)
    work = conclusions.work_seen(counts, seen.ranks)
    known = _accounted(place, number, value, seen.ranks, seen.waited_s, looks, work, _ceiling(seen, counts))
    return replace(known, step=step)


def _ceiling(seen: proof.Proof, counts: Counts) -> Bound | None:
    """What memory reached on the cores of a command, if that can be compared and was measured on this host."""
    if not seen.plan or not counts.values or not (known := site.claiming(site.load_all())):
        return None
    here, part = machine.load(), known.partitions[0].name
    return ceilings.of_memory(seen.plan, here, 1, ceilings.ceilings_of(known.name, part, ceilings.words(here)))


def _launch_variant(
    bench: driver.Launches, scaling: Scaling, place: int, number: int, idle: Sequence[int]
) -> tuple[Measured, FigureRule]:
    """As :func:`_launch` for a variant; with unit and direction of its figure, as before where it has none."""
    job, turn = bench.jobs[place], hosts.turn() if idle else contextlib.nullcontext()
    job.part = hosts.Part((*os.sched_getaffinity(0),), frozenset(idle)) if idle else None
    with turn, _filled(scaling.fill, idle, bench.folder) as fault, clocks() as looks, counters.counting() as counts:
        seen = bench.launch(place, number, number * len(bench.jobs) + place)
    figure = seen.find(job.variant.figures[0])
    if not seen.verified or fault or figure is None or figure.value <= 0:
        reason = [*seen.reasons, *fault, f"its figure is {figure.value if figure else 'absent'}"][0]
        return Measured(place=place, round=number, reason=reason), scaling.rule
    waited_s = seen.disturbance.figures.get("delay_fraction", 0.0) * max(rank.usage["wall_s"] for rank in seen.ranks)
    launch = _accounted(
        place, number, figure.value, seen.ranks, waited_s, looks,
        conclusions.work_seen(counts, seen.ranks, job.variant),
        ceilings.of_memory(job.plan, job.host, job.ranks.layout.nodes, job.ceilings),
    )  # fmt: skip
    job.record.launches = [seen]
    bench.settle(place)
    known = [each.ceiling for each in job.record.figures if each.ceiling and each.ceiling.method.startswith("memory")]
    launch.spent["memory"] = max([launch.spent["memory"], *(each.percent / 100 for each in known)])
    beside = {each.name: item.value for each in job.variant.figures[1:] if (item := seen.find(each))}
    return replace(launch, beside=beside, step=step_of([figure])), FigureRule(unit=figure.unit, better=figure.better)


def _accounted(
    place: int, number: int, value: float, ranks: Sequence[RankSeen], waited_s: float,
    looks: Sequence[Mapping[int, int]], work: Work, ceiling: Bound | None,
) -> Measured:  # fmt: skip
    """A launch with the account and the ``work`` of its ``ranks``; ``ceiling`` is that of the memory of their cores."""
    listed = sum(thread.cpu_s or 0.0 for rank in ranks for thread in rank.threads)
    cpu_s = sum(rank.usage["user_s"] + rank.usage["system_s"] for rank in ranks)
    cpu_s += sum(other.cpu_s for rank in ranks for other in rank.others)
    spent = {**conclusions.spent(ranks, work, ceiling), **_first(ranks[0].threads)}
    spent |= {
        "listed": listed / (cpu_s + 1e-9), "workers": len(ranks) * spent["threads"],
        "mpi": float(any(rank.mpi for rank in ranks)),
        "on_one_node": max(map(functools.partial(_on_one_node, machine.load()), ranks)),
    }  # fmt: skip
    return Measured(
        place=place, round=number, value=value, cpu_s=cpu_s, waited_s=waited_s, spent=spent,
        wall_s=max(rank.usage["wall_s"] for rank in ranks), ghz=spent.get("ghz") or clock_of(ranks, looks),
    )  # fmt: skip


def _on_one_node(here: machine.Machine, rank: RankSeen) -> float:
    """The largest part of the memory on a NUMA node, of a rank with much memory and threads on several; else 0."""
    pages = Counter(rank.memory["nodes"]) + Counter(rank.memory["freed_nodes"])
    homes = {here.home_node(cpu) for thread in rank.threads for cpu in thread.affinity}
    is_much = len(homes) > 1 and pages.total() * rank.memory["page_bytes"] >= LARGE
    return max(pages.values()) / pages.total() if is_much else 0.0


def _first(threads: Sequence[ThreadSeen]) -> dict[str, float]:
    """By how much the first thread of a process worked more than each other one, and the load of those."""
    first, *others = (thread.cpu_s or 0.0 for thread in threads)
    return {
        "first": first / max(*others, 1e-9) if others else 1.0,
        "others_load": max(others) * len(others) / max(sum(others), 1e-9) if others else 1.0,
    }


def _value(scaling: Scaling, wall_s: float, folder: Path) -> tuple[float, float]:
    """The value of a command, and how finely it was printed."""
    if scaling.rule.wall:
        return wall_s, 0.0
    context = {"rules": msgspec.to_builtins(Rules(figures={"figure": scaling.rule})), "folder": str(folder)}
    text = process.printed(folder / "stdout")
    (measurement,) = parsers.parse("application", text, {**context, "wall_s": wall_s, "launch_s": wall_s, "workers": 1})
    if measurement.value <= 0:
        raise PlumbError(f"its figure is {measurement.value:g}, and a speed-up needs one above 0")
    return measurement.value, step_of([measurement])
