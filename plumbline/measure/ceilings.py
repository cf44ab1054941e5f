"""Measuring the ceilings of a partition's machine: verified launches of our own kernels, here or in a job."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from plumbline import schedulers, site
from plumbline.base import paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.host import binder, energy, machine
from plumbline.host.ceilings import LARGER, MEMORY, Ceiling, Measured, cache_bytes, ceilings_of, save, words
from plumbline.host.machine import Machine, cores_in
from plumbline.measure import driver, jobs
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.records.variant import Variant, WantedFigure
from plumbline.stacks import manifest as manifests

#: launches of each experiment, so that their median passes over one that is disturbed unseen
LAUNCHES = 3
#: mixes of loads and stores of membw over memory; a build without streaming stores has only some
MIXES = (("load", "loads"), *((kernel, mode) for kernel in ("copy", "triad") for mode in ("regular", "streaming")))
#: bytes that a repetition goes over in a cache, and its repetitions
CACHE_BYTES = 64 << 20
CACHE_REPETITIONS = 10
#: sweeps over memory, the first of which is not counted
MEMORY_REPETITIONS = 2
#: seconds after which a launch is ended; arrays of several times the caches have to be touched first
TIME_LIMIT_S = 300
#: elements of a page: the kernel rounds the size of an array up to a multiple
PAGE_ELEMENTS = 512
#: seconds over which idle power is measured
IDLE_S = 10


MEMORY_LIST = "memory_bandwidth_MB_per_s"
CACHE_LIST = "cache_bandwidth_MB_per_s"
COPY_LIST = "copy_bandwidth_MB_per_s"


@dataclass(frozen=True)
class ExperimentPlace:
    """Where an experiment runs; ``members`` of its ceilings say it: cores, NUMA node, or the pair of two cores."""

    placement: str
    members: Mapping[str, int | str]
    ranks: int | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Gives:
    """A ceiling: a figure of an experiment, and the list with it; its ``kernel`` and ``mode`` are those of membw.

    It is ``part`` times the figure: 0.5 for a copy, which counts bytes read and bytes written; a message counts once.
    """

    list: str
    metric: str
    kernel: str | None = None
    mode: str | None = None
    level: int | None = None
    part: float = 1.0

    @property
    def mix(self) -> str | None:
        """The kernel and its mode, of a ceiling of memory."""
        return f"{self.kernel} {self.mode}" if self.list == MEMORY_LIST else None

    @property
    def figure(self) -> WantedFigure:
        """What its variant is asked for."""
        where = {name: word for name, word in (("kernel", self.kernel), ("mode", self.mode)) if word}
        name = " ".join([self.list, *where.values()])
        return WantedFigure(name=name, metric=self.metric, where=where, optional=bool(where))


@dataclass(frozen=True)
class Experiment:
    """One variant, and the ceilings that it gives."""

    program: str
    arguments: Sequence[str]
    place: ExperimentPlace
    gives: Sequence[Gives]
    environment: dict[str, str] = field(default_factory=dict)

    def where(self, target: Gives) -> dict[str, Any]:
        """The members by which a ceiling differs from others of its list."""
        members = {**self.place.members, "level": target.level, "kernel": target.mix}
        return {name: value for name, value in members.items() if value is not None}

    def describe(self) -> str:
        """One line that names the experiment and its ceilings."""
        lists = ", ".join(dict.fromkeys(target.list for target in self.gives))
        return f"{lists} ({' '.join([self.program, *self.arguments])}, placement {self.place.placement})"


def measure(name: str, part: Partition, stack: str | None, say: Callable[[str], None]) -> int:
    """Measure the ceilings of partition ``part`` of site ``name``, in a job if needed.

    Returns 0 if every ceiling was measured, 1 if some were left out, which the file and a line say. ``stack``: whose
    kernels; None: those of the first of the partition's that are installed.
    """
    work = paths.build() / "ceilings" / name
    if jobs.needed(part):
        words = ["site", "measure", "--site", name, "--partition", part.name, *(["--stack", stack] if stack else [])]
        return jobs.run_plumb(words, part, 1, (work / f"job-{part.name}").resolve(), say)
    return _here(name, part, stack or manifests.first(part.stacks, "membw"), work, say)


def measure_all(
    name: str,
    parts: Iterable[Partition],
    stack: str | None,
    say: Callable[[str], None],
    *,
    if_needed: bool = False,
) -> int:
    """Measure the ceilings of ``parts`` of site ``name``; the worst status of :func:`measure` is returned."""
    worst = 0
    for part in parts:
        if if_needed and is_current(name, part):
            say(f"site {name}: the ceilings of partition {part.name} are up to date")
        else:
            worst = max(worst, measure(name, part, stack, say))
    return worst


def is_current(name: str, part: Partition) -> bool:
    """Whether the ceilings of ``part`` are of its present machine: this host, or its stored topology if it has jobs."""
    host = machine.load(site.folder(name) / part.topology if schedulers.named(part.scheduler).has_jobs else None)
    return ceilings_of(name, part.name, words(host)) is not None


def _here(name: str, part: Partition, stack: str, work: Path, say: Callable[[str], None]) -> int:
    host = machine.load()
    benchmarks = manifests.load(stack).benchmarks
    wanted = list(experiments(host))
    left_out = [
        f"{each.describe()}: stack {stack} has no {each.program}" for each in wanted if each.program not in benchmarks
    ]
    if not (chosen := [experiment for experiment in wanted if experiment.program in benchmarks]):
        raise PlumbError("the stack has none of the kernels that measure", stack, "name another one with --stack")
    begin = time.monotonic()
    watts, unknown = _idle()
    descriptions = [description(experiment, name, part.name, stack) for experiment in chosen]
    _, records = driver.run(descriptions, work / f"work-{part.name}", say=say, into=work)
    measured = Measured(
        **collect(chosen, records, left_out),
        partition=part.name,
        machine=words(host),
        host=schedulers.host_name(),
        measured=records[0].time,
        suite=f"plumbline {records[0].suite.version}, commit {(records[0].suite.commit or 'unknown')[:12]}",
        stack=stack,
        session=records[0].session,
        seconds=round(time.monotonic() - begin, 1),
        idle_W=watts,
        no_idle_W=unknown,
        left_out=left_out,
    )
    say(f"ceilings: {save(name, measured)}, in {measured.seconds:.0f} s")
    say(f"idle power: {f'not known: {measured.no_idle_W}' if measured.idle_W is None else f'{measured.idle_W:g} W'}")
    if disturbed := sum(record.disturbed_count for record in records):
        total = units.counted(sum(record.launch_count for record in records), "launch")
        say(f"{disturbed} of {total} were disturbed: measure again when the machine is idle")
    for line in left_out:
        say(f"left out: {line}")
    return 1 if left_out else 0


def _idle() -> tuple[float | None, str | None]:
    """The idle power of this host in W, or why it is not known."""
    meter = energy.find()
    if (watts := energy.idle(meter, IDLE_S) if meter.counters else None) is None:
        return None, meter.missing or f"the counters of {meter} could not be read"
    return units.significant(watts, 4), None


def experiments(host: Machine) -> Iterator[Experiment]:
    """The experiments on ``host``."""
    alone, cores = ExperimentPlace("compact", {"cores": 1}, ranks=1, threads=1), len(host.cores)
    places = [alone, *([ExperimentPlace("node", {"cores": cores})] if cores > 1 else [])]
    yield from _memory(host, places)
    yield from _caches(host, places)
    # OpenBLAS would otherwise start its own threads, which sleep
    quiet = {"OPENBLAS_NUM_THREADS": "1"}
    options, gives = ("--size", "512", "--repetitions", "20"), [Gives("peak_GFlop_per_s", "peak")]
    yield from (Experiment("dgemm", options, place, gives, quiet) for place in places)
    for pair in binder.placements():
        if pair.pair and not pair.argument and pair.nodes == 1 and _exists(pair.name):
            place = ExperimentPlace(pair.name, {"pair": pair.name}, ranks=1, threads=2)
            yield Experiment("handover", (), place, [Gives("handover_latency_ns", "time")])


def _exists(placement: str) -> bool:
    """Whether this host has such a pair of cores."""
    with contextlib.suppress(PlumbError):
        binder.resolve(placement, threads=2)
        return True
    return False


def _memory(host: Machine, places: Sequence[ExperimentPlace]) -> Iterator[Experiment]:
    """Each mix of loads and stores, of arrays that the others have driven out of the caches before."""
    data = LARGER * host.last_level_cache_bytes
    options = ("--kernels", "bounds", "--repetitions", str(MEMORY_REPETITIONS), "--size", str(_elements(data, 3)))
    nodes = sorted({(home.index, home.cpus) for cpu in host.cpus if (home := host.home_node(cpu))})
    by_node = [
        ExperimentPlace(f"numa:{index}", {"cores": cores_in(host, cpus), "numa_node": index}) for index, cpus in nodes
    ]
    for place in [*places, *(by_node if len(nodes) > 1 else [])]:
        gives = [Gives(MEMORY_LIST, "bandwidth", *mix) for mix in MIXES]
        if place is places[0]:
            gives += [Gives(COPY_LIST, "bandwidth", *mix, level=MEMORY, part=0.5) for mix in MIXES if mix[0] == "copy"]
        yield Experiment("membw", options, place, gives)


def _caches(host: Machine, places: Sequence[ExperimentPlace]) -> Iterator[Experiment]:
    """Read and copy of one core in each level; read of all cores where some share a cache."""
    alone, *whole = places
    around = cache_bytes(host, host.cores[0].cpus[:1])
    for level in around:
        bandwidth, copy = (
            Gives(CACHE_LIST, "bandwidth", level=level),
            Gives(COPY_LIST, "bandwidth", level=level, part=0.5),
        )
        yield Experiment("membw", _sweeps("load", around, level, 1), alone, [bandwidth])
        yield Experiment("membw", _sweeps("copy", around, level, 1), alone, [bandwidth, copy])
    everywhere, cores = cache_bytes(host, host.cpus), len(host.cores)
    for level in everywhere if whole else ():
        if sum(cache.level == level for cache in host.caches) < cores:
            gives = [Gives(CACHE_LIST, "bandwidth", level=level)]
            yield Experiment("membw", _sweeps("load", everywhere, level, cores), whole[0], gives)


def _elements(data: int, arrays: int, least: int = 1) -> int:
    """Elements of each of ``arrays`` of ``data`` bytes together, in whole pages and ``least`` pages at least."""
    return max(least, data // arrays // 8 // PAGE_ELEMENTS) * PAGE_ELEMENTS


def _sweeps(kernel: str, caches: dict[int, int], level: int, cores: int) -> tuple[str, ...]:
    """Options for many sweeps over half of the cache ``level``, or over :data:`LARGER` x the level below if less."""
    arrays = 2 if kernel == "copy" else 1
    data = min([caches[level] // 2, *(LARGER * size for below, size in caches.items() if below == level - 1)])
    elements = _elements(data, arrays, least=cores)
    sweeps = max(1, cores * CACHE_BYTES // (elements * arrays * 8))
    options = ("--kernels", kernel, "--stores", "regular", "--size", str(elements))
    return (*options, "--sweeps", str(sweeps), "--repetitions", str(CACHE_REPETITIONS))


def description(experiment: Experiment, name: str, partition: str, stack: str) -> Variant:
    """The variant of an experiment, as ``plumb launch`` takes it."""
    place = experiment.place
    return Variant.create(
        test="ceiling", name=f"ceiling {experiment.describe()}", site=name, partition=partition, stack=stack,
        benchmark=experiment.program, arguments=[*experiment.arguments, "--json"], placement=place.placement,
        threads=place.threads, ranks_per_node=place.ranks, figures=[target.figure for target in experiment.gives],
        launches=LAUNCHES, time_limit_s=TIME_LIMIT_S, environment=experiment.environment,
    )  # fmt: skip


def collect(chosen: Sequence[Experiment], records: Sequence[Record], left_out: list[str]) -> dict[str, list[Ceiling]]:
    """The ceilings by list; the better one where several experiments give the same.

    A launch that is not verified and a record that is not valid give none: the reason is added to ``left_out``.
    """
    ceilings: dict[str, dict[str, Ceiling]] = {}
    for experiment, record in zip(chosen, records, strict=True):
        if not record.is_valid:
            left_out.append(f"{experiment.describe()}: {(record.faults or ['it is invalid'])[0]}")
            continue
        measured = {figure.name: figure for figure in record.figures}
        for target in experiment.gives:
            if figure := measured.get(target.figure.name):
                better: Callable[..., Ceiling] = max if figure.better == "higher" else min
                ceiling = _ceiling(experiment, target, record, figure)
                same, where = ceilings.setdefault(target.list, {}), repr(experiment.where(target))
                same[where] = better(same.get(where, ceiling), ceiling, key=attrgetter("median"))
    return {name: list(same.values()) for name, same in ceilings.items()}


def _ceiling(experiment: Experiment, target: Gives, record: Record, figure: Figure) -> Ceiling:
    samples, median = figure.undisturbed(record.counting()), statistics.median
    return Ceiling(
        median=units.significant(target.part * median(samples), 5),
        spread_percent=round(100 * (max(samples) - min(samples)) / median(samples), 2),
        launches=figure.launches,
        disturbed_launches=record.disturbed_count,
        method="; ".join(
            [" ".join([experiment.program, *experiment.arguments]), f"placement {experiment.place.placement}"]
        ),
        record=record.id,
        **experiment.where(target),
    )
