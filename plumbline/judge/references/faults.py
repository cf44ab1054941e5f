"""Faults of the references of a site: each must be one that a record can be compared with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from pathlib import Path

from plumbline import site
from plumbline.base import units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts, Partition, Site
from plumbline.host import limits
from plumbline.host.topology import binder, machine
from plumbline.host.topology.machine import Machine
from plumbline.judge.references import match
from plumbline.judge.references.model import Entry
from plumbline.site import tests as suite

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
    return entry.test in programs or family not in set(map(suite.family, tests))


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
            wrong = entry_faults(entry, document.test, description, None if of_application else tests, nodes)
            sentences += [f"{where}: {fault}" for fault in wrong]
            alike = seen.setdefault(entry.key, [])
            twins = [twin for earlier, twin in alike if earlier.overlaps(entry)]
            sentences += [f"{where}: {twin} matches the same records: remove one" for twin in twins]
            alike.append((entry, where))
    return sentences


def entry_faults(
    entry: Entry, family: str, description: Site, tests: Collection[str] | None, nodes: Callable[[str], Machine]
) -> list[str]:
    """The faults of one entry that obeys the schema. ``nodes`` gives the machine of a topology file.

    ``tests``: those that it may be of, in the suite's units; None: it is an application's.
    """
    sentences = []
    if tests is not None and entry.test not in tests:
        sentences.append(f"no test is called '{entry.test}'")
    if suite.family(entry.test) != family:
        sentences.append(f"the file is for the tests of '{family}'")
    sentences += _unit_faults(entry) if tests is not None else []
    sentences += _bound_faults(entry)
    part = next((part for part in description.partitions if part.name == entry.partition), None)
    if part is None:
        sentences.append(f"the site has no partition '{entry.partition}'")
    else:
        sentences += _limit_faults(entry, part, nodes)
    return sentences


def _unit_faults(entry: Entry) -> list[str]:
    """The faults of the unit of an entry of the suite."""
    sentences = []
    if entry.unit not in units.UNITS:
        sentences.append(f"unit '{entry.unit}' is none of {', '.join(units.UNITS)}")
    elif BETTER.get(entry.unit, entry.better) != entry.better:
        sentences.append(f"figures in {entry.unit} are better when {BETTER[entry.unit]}")
    if _is_rate(entry) and entry.unit != units.MB_S:
        sentences.append(f"{entry.figure} is measured in {units.MB_S}, not in {entry.unit}")
    return sentences


def _is_rate(entry: Entry) -> bool:
    """Whether a figure's name says that it is a bandwidth: STREAM's kernels, and what is called so."""
    name = entry.figure
    stream = suite.family(entry.test) == "stream" and name in limits.STREAM_METRICS
    return stream or limits.is_of(name, ("bandwidth",)) or name.endswith("bandwidth")


def _bound_faults(entry: Entry) -> list[str]:
    sentences = []
    worse, side = (entry.lower, "lower") if entry.better == "higher" else (entry.upper, "upper")
    if worse is None:
        sentences.append(f"no bound on the worse side ({side}): nothing could ever be below it")
    for name in ("lower", "upper"):
        bound = getattr(entry, name)
        if bound is not None and abs(bound) > WIDEST:
            sentences.append(f"{name} {bound:g} is relative: 0.05 is 5 %")
    if worse == 0:
        sentences.append(f"{side} 0 calls every second record worse")
    return sentences


def _limit_faults(entry: Entry, part: Partition, nodes: Callable[[str], Machine]) -> list[str]:
    """A value above what all of the test's nodes (with both directions of their links) can give."""
    if part.facts == Facts() and entry.unit != units.PERCENT:  # no limit without facts: do not read the topology
        return []
    node = nodes(part.topology)
    limit = limits.of(
        entry.figure,
        part.facts,
        float(len(node.packages)),
        _nodes(entry, part),
        directions=2,
        unit=entry.unit,
        cores=len(node.cores),
        cache_bytes=node.last_level_cache_bytes,
        working_set=entry.params.get(limits.WORKING_SET),
        message=suite.family(entry.test) in MESSAGES,
    )
    if limit is None or limit.unit != entry.unit or entry.value <= limit.value * limits.TOLERANCE:
        return []
    message = f"{entry.value:g} {entry.unit} is above the physical limit {limit.value:g} {limit.unit}"
    return [f"{message} ({limit.method})"]


def _nodes(entry: Entry, part: Partition) -> int:
    """Nodes of the job that an entry is about; all of the partition's where it does not say."""
    placement = binder.placement(str(entry.params.get("placement", "")))
    inside = placement is not None and placement.pair and placement.nodes == 1
    return int(entry.placement.nodes or (1 if inside else part.nodes or 1))
