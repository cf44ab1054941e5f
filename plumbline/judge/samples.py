"""Figures and measurements of records in groups: what is alike in one group, and each group is judged by itself.

Classes of nodes are from the figures of many records, classes of links from the matrix of one record of the pairs
kernel, curves and matrices of a page from the launches of one record.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from plumbline.base import group
from plumbline.base.digits import limiting_step
from plumbline.base.errors import PlumbError
from plumbline.host import provenance
from plumbline.judge.members import BETWEEN, Matrix, Nodes
from plumbline.parsers import measurement
from plumbline.parsers.measurement import Measurement
from plumbline.records.figure import Figure
from plumbline.records.model import AnyRecord, Record

#: a figure and its record
Measured: TypeAlias = tuple[AnyRecord, Figure]
Key = TypeVar("Key")
#: the ranks at the ends of a link
RANKS = ("first", "second")
#: parameters that say which link a measurement is of; all others are part of its class
OF_LINK = {*RANKS, "first_host", "second_host", "first_cpu", "second_cpu"}


@dataclass(frozen=True)
class Samples:
    """One quantity in the launches of a record that count; ``first`` has its unit and direction.

    ``by_launch`` has the value of each launch, None where a launch has none; ``step`` is how finely they are known.
    """

    first: Measurement
    values: list[float]
    by_launch: list[float | None]
    step: float


def of_launches(record: Record, key: Callable[[Measurement], Key | None]) -> dict[Key, Samples]:
    """The measurements of a record by what ``key`` says of each; where that is None, they are left out."""
    launches = record.counting()
    by_name = group(
        (name, (number, item))
        for number, launch in enumerate(launches)
        if launch.verified
        for item in launch.measurements
        if (name := key(item)) is not None
    )
    return {
        name: Samples(
            measurements[0][1],
            [item.value for _, item in measurements],
            list(map({number: item.value for number, item in measurements}.get, range(len(launches)))),
            measurement.step_of([item for _, item in measurements]),
        )
        for name, measurements in by_name.items()
    }


def measured(records: Iterable[AnyRecord], figure: str | None = None) -> Iterator[Measured]:
    """The figures of valid and of imported ``records``, of the name ``figure``."""
    comparable = (row for row in records if row.is_comparable)
    return ((row, wanted) for row in comparable for wanted in row.figures if figure in (None, wanted.name))


def nodes(records: Iterable[AnyRecord], figure: str | None = None) -> list[Nodes]:
    """Classes of the single-node ``records`` (rows or whole ones) that count, sorted by name.

    A class is of one site, partition, stack, variant with its own circumstances, and figure. A node's values are the
    samples of its launches; those of one campaign were measured together. ``figure`` keeps the figures of that name.
    """
    usable = group(
        (
            (
                " ".join((row.site, row.partition, row.stack.name, row.variant.name, wanted.name)),
                " ".join(chain.from_iterable(row.variant.circumstances.values())),
            ),
            (row, wanted),
        )
        for row, wanted in measured(records, figure)
        if len(row.nodes) == 1 and row.is_valid and all(0 < sample < math.inf for sample in wanted.samples)
    )
    names = Counter(name for name, _ in usable)
    return [
        Nodes(
            f"{name} {circumstances}".rstrip() if names[name] > 1 else name,
            entries[0][1].better,
            group((row.nodes[0], (row.campaign, sample)) for row, wanted in entries for sample in wanted.samples),
            max((float(wanted.step) for _, wanted in entries if wanted.step is not None), default=0.0)
            or limiting_step(repr(sample) for _, wanted in entries for sample in wanted.samples),
            _remarks([row for row, _ in entries]),
        )
        for (name, circumstances), entries in sorted(usable.items())
    ]


def matrices(record: Record) -> list[Matrix]:
    """The classes of links in the launches of one record; raises :class:`PlumbError` where there is no matrix."""
    where = f"record {record.id}"
    if not record.is_valid:
        reason = (record.faults or ["it is not verified"])[0]
        raise PlumbError(f"the record does not count: {reason}", where, "measure again")
    classes: dict[str, Matrix] = {}
    for number, launch in enumerate(record.counting()):
        for row in (row for row in launch.measurements if all(name in row.params for name in RANKS)):
            kind, first, second = _ends(row.params, several=len(record.nodes) > 1)
            if first == second or BETWEEN in first or BETWEEN in second:
                raise PlumbError(f"a pair of '{first}' and '{second}'", where, "measure again")
            if not 0 < row.value < math.inf:
                raise PlumbError(f"{row.metric} of {first} and {second} is {row.value}", where, "measure again")
            rest = {name: value for name, value in row.params.items() if name not in OF_LINK}
            kinds = [str(rest.pop("class"))] if "class" in rest else []
            others = [f"{name}={value}" for name, value in sorted(rest.items())]
            name = " ".join([row.metric, *kinds, *others, record.stack.name])
            matrix = classes.setdefault(name, Matrix(name, row.better))
            matrix.ends = kind
            matrix.add(first, second, row.value, number)
    if not classes:
        raise PlumbError("no pair was measured", where, "give a record of the pairs kernel")
    for matrix in classes.values():
        matrix.step = limiting_step(map(repr, matrix.every()))
    return [classes[name] for name in sorted(classes)]


def _ends(params: dict[str, Any], several: bool) -> tuple[str, str, str]:
    """The kind of a link's ends, and their names: nodes, or CPUs of a node (with its name if there are ``several``).

    A rank stands for its CPU where it was not bound to one.
    """
    hosts = [params.get(f"{end}_host") for end in RANKS]
    if None not in hosts and hosts[0] != hosts[1]:
        return "node", str(hosts[0]), str(hosts[1])
    cores = [str(params.get(f"{end}_cpu", params[end])) for end in RANKS]
    if several and None not in hosts:
        cores = [f"{host}:{core}" for host, core in zip(hosts, cores, strict=True)]
    return "core", cores[0], cores[1]


def node_link(item: Measurement) -> str | None:
    """The link between two nodes that a measurement is of, whatever its direction; None where it is of none."""
    if not all(name in item.params for name in RANKS):
        return None
    kind, *ends = _ends(item.params, several=True)
    return BETWEEN.join(sorted(ends)) if kind == "node" else None


def _remarks(rows: Sequence[AnyRecord]) -> dict[str, list[str]]:
    """Per node what may explain it: launches that were disturbed, and circumstances that most others do not have."""
    remarks: dict[str, list[str]] = defaultdict(list)
    for node, node_rows in group((row.nodes[0], row) for row in rows).items():
        if disturbed := sum(row.disturbed_count for row in node_rows):
            remarks[node].append(f"{disturbed} of {sum(row.launch_count for row in node_rows)} launches disturbed")
    for name in provenance.SETTINGS:
        known = [row.host.get(name) for row in rows]
        settings = ["unknown" if setting is None else str(setting) for setting in known]
        usual, often = Counter(settings).most_common(1)[0]
        for row, setting in zip(rows, settings, strict=True):
            text = f"{name} {setting}, most have {usual}"
            if setting != usual and 2 * often > len(rows) and text not in remarks[row.nodes[0]]:
                remarks[row.nodes[0]].append(text)
    return remarks
