"""From the launches of a record to its figures, its validity and its verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from msgspec.structs import replace

from plumbline.base import digits, group, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.base.units import is_measured
from plumbline.host import ceilings, limits
from plumbline.host.binder import Plan
from plumbline.host.ceilings import LARGER, Measured
from plumbline.host.machine import Machine
from plumbline.judge.references import References, judge
from plumbline.parsers.measurement import Measurement, step_of
from plumbline.records.figure import Ceiling, Figure
from plumbline.records.model import Benchmark, Idle, Record, Verdict
from plumbline.records.variant import WantedFigure


def settle(record: Record, facts: Facts, host: Machine, expected: References, measured: Measured | None = None) -> None:
    """Work out ``figures``, ``verified``, ``reasons`` and ``verdict`` of ``record`` from its launches, in place.

    A figure is the median over the launches, without those whose pair the gate measured again. Only a record whose
    launches are all verified has figures. A record is invalid, with the reason, if a figure is not finite or above its
    physical limit, if a figure is missing (unless it is optional and no launch has it), and if all launches printed the
    same. The verdict is the worst of its figures against their references in ``expected``. A figure without a limit is
    compared with its ceiling in ``measured``, which makes nothing invalid; ``measured`` has the idle power too.
    """
    reasons = [f"launch {launch.order}: {reason}" for launch in record.launches for reason in launch.reasons]
    if not record.launches:
        reasons = ["no launch finished"]
    elif not record.counting():
        reasons = reasons or ["every launch was disturbed and measured again"]
    verdict: Verdict = "unreferenced"
    record.verified, record.figures, record.idle = not reasons, [], idle_of(measured)
    if not reasons and not record.is_profiled:
        wanted, launches = record.variant.figures, record.counting()
        reported = [each for each in wanted if not each.optional or any(launch.find(each) for launch in launches)]
        try:
            record.figures = [_figure(each, record, facts, host, measured) for each in reported]
            reasons = [*_faults(record.figures), *_repetition(record)]
            verdict = _judge(record.figures, record, expected)
        except PlumbError as error:
            reasons = [str(error)]
    record.reasons, record.verdict = reasons, "invalid" if reasons else verdict


def idle_of(measured: Measured | None) -> Idle | None:
    """The idle power in ``measured``; None if it was not measured."""
    if measured is None or measured.idle_W is None:
        return None
    return Idle(power_w=measured.idle_W, host=measured.host, measured=measured.measured)


def _figure(wanted: WantedFigure, record: Record, facts: Facts, host: Machine, measured: Measured | None) -> Figure:
    chosen = [launch.measurement(wanted) for launch in record.counting()]
    figure = Figure.of(wanted.name, chosen)
    variant, program, params = record.variant, record.benchmark, chosen[0].params
    if variant.application and "work" not in params:
        return figure  # its name says nothing: a user's "triad" may be anything, in any unit
    mix = ceilings.mix(variant.benchmark, program.suite, program.built, wanted.metric, params)
    directions = variant.context.get("directions", 1)
    about = limits.Quantity(wanted.metric, figure.unit, params, directions, limits.crosses_nodes(params), mix)
    used = limits.resources(record.plan, host, packages_used(record.plan, host), record.placement.nodes)
    limit = None if variant.application else limits.of(about, facts, used)
    model = _model(figure, chosen)
    if limit is not None:
        figure.limit = replace(limit, percent=round(100 * figure.value / limit.value, 2))
    elif figure.unit == units.GFLOP_S and model is not None:  # the peak at the clock of the same launches
        figure.ceiling = model
    elif measured is not None:
        occupied = ceilings.use_of(record.plan, host, record.placement.nodes)
        figure.ceiling = _ceiling(figure, ceilings.of(about, occupied, measured), measured.measured)
    if limit is None and figure.ceiling is None:
        figure.ceiling = model
    return figure


def _model(figure: Figure, chosen: list[Measurement]) -> Ceiling | None:
    """The median of the benchmark's own model in the launches; None where one of them has none.

    The percentage is the median of the launches', as that of an efficiency is which the benchmark prints.
    """
    models = [item.model for item in chosen if isinstance(item.model, (int, float)) and 0 < item.model < math.inf]
    if len(models) < len(chosen) or not all(0 < item.value < math.inf for item in chosen):
        return None
    ratios = [item.value / model for item, model in zip(chosen, models, strict=True)]
    part = statistics.median(ratios if figure.better == "higher" else [1 / ratio for ratio in ratios])
    value = statistics.median(models)
    return Ceiling(
        value=value,
        unit=figure.unit,
        method="the benchmark's model",
        spread_percent=100 * (max(models) - min(models)) / value,
        percent=round(100 * part, 2),
        measured=None,
    )


def _ceiling(figure: Figure, bound: ceilings.Bound | None, measured: str) -> Ceiling | None:
    """``bound`` as the figure has it; None for a figure that is not positive and finite, which has no percentage."""
    if bound is None or not 0 < figure.value < math.inf:
        return None
    part = figure.value / bound.value if figure.better == "higher" else bound.value / figure.value
    return Ceiling(
        value=bound.value,
        unit=bound.unit,
        method=bound.method,
        spread_percent=bound.spread_percent,
        percent=round(100 * part, 2),
        measured=measured,
    )


def _judge(figures: list[Figure], record: Record, expected: References) -> Verdict:
    """The worst verdict of the figures; each of them is given its reference."""
    verdicts = set()
    for figure in figures:
        match = expected.resolve(record, figure.name)
        figure.reference = match.of_record() if match else None
        verdicts.add(judge(figure, match.entry if match else None))
    worst: tuple[Verdict, ...] = ("below", "above", "within")
    return next((verdict for verdict in worst if verdict in verdicts), "unreferenced")


def _faults(figures: list[Figure]) -> Iterator[str]:
    for figure in figures:
        limit, most = figure.limit, max(figure.samples)
        if not all(math.isfinite(sample) and sample >= 0 for sample in figure.samples):
            yield f"{figure.name} is not a finite number"
        if limit and most > limit.value * limits.TOLERANCE:
            physical = f"the physical limit {limit.value:.0f} {limit.unit} ({limit.method})"
            yield f"{figure.name} {most:.0f} {figure.unit} is above {physical}"


def _repetition(record: Record) -> list[str]:
    """The reason if launches printed the same figures, in more digits than a measurement repeats."""
    tables = [launch.measurements for launch in record.counting()]
    if len({len(table) for table in tables}) != 1:
        return []
    every = [(items, [item.value for item in items]) for items in zip(*tables, strict=True)]
    counted = () if record.variant.application else (units.PERCENT,)  # a kernel's share of repeated work, for one
    series = [
        (items[0], values, step_of(items))
        for items, values in every
        if items[0].unit not in counted and is_measured(items[0].unit, values)
    ]
    if not (places := digits.repeated([(values, step) for _, values, step in series])):
        return []
    item, values, _ = series[places[0]]
    if len(places) == len(series) and len(set(values)) == 1:
        return [f"all {len(tables)} launches printed the same figures, digit by digit: nothing was measured"]
    value = statistics.mode(values)
    often = f"{values.count(value)} of {len(values)} launches"
    return [f"{item.metric}: {often} printed the same {value!r} {item.unit}, digit by digit: it was not measured"]


def packages_used(plan: Plan, host: Machine) -> float | None:
    """How many packages' memory channels the plan's pages can lie on.

    A NUMA node counts as its share of its package. None if a page may lie on memory that is not on a package's channels
    (a memory-only node, high-bandwidth memory): the channels are not a limit there.
    """
    if not (wanted := plan.memory_nodes):  # no policy: pages lie wherever a thread touched them
        return float(len(host.packages))
    homes = [
        {node.index for cpu in package.cpus if (node := host.home_node(cpu)) in host.with_memory}
        for package in host.packages
    ]
    share = group((index, 1 / len(nodes)) for nodes in homes for index in nodes)
    return sum(sum(share[index]) for index in wanted) if share.keys() >= set(wanted) else None


def check_stream_rule(benchmark: Benchmark, host: Machine) -> None:
    """Check STREAM's rule: each array is at least four times the sum of the last-level caches of the node.

    Source: https://www.cs.virginia.edu/stream/ref.html. Raises :class:`PlumbError` for smaller arrays, and for arrays
    whose size is not recorded.
    """
    if (elements := benchmark.facts.get("array_elements")) is None:
        raise PlumbError("STREAM's array size is not recorded", "stack manifest", "install the stack again")
    if elements * 8 < LARGER * host.last_level_cache_bytes:
        raise PlumbError(
            f"STREAM's arrays of {elements * 8} B are smaller than {LARGER} x {host.last_level_cache_bytes} B of cache",
            "this node",
            "build STREAM on this node, or with a larger array",
        )
