"""Faults of the references of a site: each must be one that a record can be compared with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from plumbline import site
from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts, Partition, Site
from plumbline.host import binder, limits, machine
from plumbline.host.machine import Machine
from plumbline.judge.references import match
from plumbline.judge.references.match import Entry

#: which direction is better for the figures of a unit; percentages are shares of a peak or of hidden communication;
#: ratios are not listed, because either may be better
BETTER = {
    **dict.fromkeys((units.US, units.NS, units.CYCLES, units.BYTES), "lower"),
    **dict.fromkeys((units.MB_S, units.MSG_S, units.GFLOP_S, units.MLUP_S, units.PERCENT), "higher"),
}
#: families whose bandwidths are those of messages
MESSAGES = ("imb", "osu", "pairs")
#: a wider bound was probably written in percent, not as a fraction
WIDEST = 1.0


def is_own(entry: Entry, family: str, tests: Collection[str], programs: Collection[str] = ()) -> bool:
    """Whether an entry is of an application: of one of its ``programs``, or in a file of no ``family`` of ``tests``."""
    return entry.test in programs or family not in set(map(site.family, tests))


def faults(site_name: str, tests: Collection[str], programs: Collection[str] = ()) -> list[str]:
    """Everything that is wrong with the references of a site, one line each, with the file.

    ``tests`` are the suite's, ``programs`` those of the application that is known here, as tests.
    """
    try:
        description = site.load(site_name)
    except PlumbError as error:
        return [str(error)]
    nodes = functools.cache(lambda part: machine.load(site.folder(site_name) / part))
    sentences: list[str] = []
    seen: dict[str, list[tuple[Entry, str]]] = {}
    families: dict[str, Path] = {}
    for file in match.files(site_name):
        try:
            document = match.read(file)
        except PlumbError as error:
            sentences.append(str(error))
            continue
        first = families.setdefault(document.test, file)
        if first != file:
            sentences.append(f"{file}: {first.name} is for test '{document.test}' too: keep them in one file")
        for number, entry in enumerate(document.references, start=1):
            where = f"{file}: reference {number} ({entry})"
            of_application = is_own(entry, document.test, tests, programs)
            wrong = _entry_faults(entry, document.test, description, None if of_application else tests, nodes)
            sentences += [f"{where}: {fault}" for fault in wrong]
            alike = seen.setdefault(entry.key, [])
            sentences += [
                f"{where}: {twin} matches the same records: remove one"
                for earlier, twin in alike
                if earlier.overlaps(entry)
            ]
            alike.append((entry, where))
    return sentences


def _entry_faults(
    entry: Entry, family: str, description: Site, tests: Collection[str] | None, nodes: Callable[[str], Machine]
) -> Iterator[str]:
    """The faults of one entry that obeys the schema. ``nodes`` gives the machine of a topology file.

    ``tests``: those that it may be of, in the suite's units; None: it is an application's.
    """
    if tests is not None and entry.test not in tests:
        yield f"no test is called '{entry.test}'"
    if site.family(entry.test) != family:
        yield f"the file is for the tests of '{family}'"
    if tests is not None:
        yield from _unit_faults(entry)
    worse, side = (entry.lower, "lower") if entry.better == "higher" else (entry.upper, "upper")
    if worse is None:
        yield f"no bound on the worse side ({side}): nothing could ever be below it"
    for name in ("lower", "upper"):
        bound = getattr(entry, name)
        if bound is not None and abs(bound) > WIDEST:
            yield f"{name} {bound:g} is relative: 0.05 is 5 %"
    if worse == 0:
        yield f"{side} 0 calls every second record worse"
    part = next((part for part in description.partitions if part.name == entry.partition), None)
    if part is None:
        yield f"the site has no partition '{entry.partition}'"
    else:
        yield from _limit_faults(entry, part, nodes)


def _unit_faults(entry: Entry) -> Iterator[str]:
    if entry.unit not in units.UNITS:
        yield f"unit '{entry.unit}' is none of {', '.join(units.UNITS)}"
    elif BETTER.get(entry.unit, entry.better) != entry.better:
        yield f"figures in {entry.unit} are better when {BETTER[entry.unit]}"
    name = entry.figure
    is_stream = site.family(entry.test) == "stream" and name in limits.STREAM_METRICS
    is_rate = is_stream or limits.is_of(name, ("bandwidth",)) or name.endswith("bandwidth")
    if is_rate and entry.unit != units.MB_S:
        yield f"{name} is measured in {units.MB_S}, not in {entry.unit}"


def _limit_faults(entry: Entry, part: Partition, nodes: Callable[[str], Machine]) -> Iterator[str]:
    """A value above what all of the test's nodes (with both directions of their links) can give."""
    if part.facts == Facts() and entry.unit != units.PERCENT:  # no limit without facts: do not read the topology
        return
    node = nodes(part.topology)
    placement = binder.placement(str(entry.params.get("placement", "")))
    is_inside = placement is not None and placement.pair and placement.nodes == 1
    count = int(entry.placement.nodes or (1 if is_inside else part.nodes or 1))  # all of them where it does not say
    used = limits.Resources(
        count, float(count * len(node.packages)), count * len(node.cores), count * node.last_level_cache_bytes
    )
    figure = limits.Quantity(entry.figure, entry.unit, entry.params, 2, site.family(entry.test) in MESSAGES)
    limit = limits.of(figure, part.facts, used)
    if limit is not None and limit.unit == entry.unit and entry.value > limit.value * limits.TOLERANCE:
        message = f"{entry.value:g} {entry.unit} is above the physical limit {limit.value:g} {limit.unit}"
        yield f"{message} ({limit.method})"
