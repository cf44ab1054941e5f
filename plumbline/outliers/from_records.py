"""Classes from records: nodes from the figures of many, links from the matrix of one record of the pairs kernel."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from plumbline.errors import PlumbError
from plumbline.host.provenance import SETTINGS
from plumbline.outliers.matrix import BETWEEN, Matrix
from plumbline.outliers.nodes import Nodes
from plumbline.records.model import AnyRecord, Measurement, Record
from plumbline.statistics.resolution import limiting_step

#: the ranks at the ends of a link
RANKS = ("first", "second")
#: parameters that say which link a measurement is of; all others are part of its class
OF_LINK = {*RANKS, "first_host", "second_host", "first_cpu", "second_cpu"}


def nodes(records: Iterable[AnyRecord], test: str | None = None, figure: str | None = None) -> list[Nodes]:
    """Classes of the single-node ``records`` (rows or whole ones) that count, sorted by name.

    A class is of one site, partition, stack, variant and figure. A node's values are the samples of its launches; those
    of one campaign were measured together. ``test`` keeps the tests whose names begin with it, ``figure`` the figures
    of that name.
    """
    found: dict[str, Nodes] = {}
    circumstances: dict[str, list[AnyRecord]] = defaultdict(list)
    for row in records:
        if len(row.nodes) != 1 or not row.is_valid or not row.variant.test.startswith(test or ""):
            continue
        for one in row.figures:
            if figure in (None, one.name) and all(0 < sample < math.inf for sample in one.samples):
                name = " ".join((row.site, row.partition, row.stack.name, row.variant.name, one.name))
                made = found.setdefault(name, Nodes(name, one.better))
                for sample in one.samples:
                    made.add(row.nodes[0], sample, row.campaign)
                circumstances[name].append(row)
    for name, made in found.items():
        made.step = limiting_step(repr(value) for values in made.values.values() for _, value in values)
        made.remarks = _remarks(circumstances[name])
    return [found[name] for name in sorted(found)]


def matrices(record: Record) -> list[Matrix]:
    """The classes of links in the launches of one record; raises :class:`PlumbError` where there is no matrix."""
    where = f"record {record.id}"
    if not record.is_valid:
        reason = (record.faults or ["it is not verified"])[0]
        raise PlumbError(f"the record does not count: {reason}", where, "measure again")
    found: dict[str, Matrix] = {}
    for number, launch in enumerate(record.counting()):
        for row in launch.measurements:
            params = row.params
            if not all(name in params for name in RANKS):
                continue
            kind, first, second = _ends(params, several=len(record.nodes) > 1)
            _check(row, first, second, where)
            made = found.setdefault(_class(record, row), Matrix(_class(record, row), row.better))
            made.ends = kind
            made.add(first, second, row.value, number)
    if not found:
        raise PlumbError("no pair was measured", where, "give a record of the pairs kernel")
    for made in found.values():
        made.step = limiting_step(repr(value) for launches in made.values.values() for one in launches for value in one)
    return [found[name] for name in sorted(found)]


def _ends(params: dict[str, Any], several: bool) -> tuple[str, str, str]:
    """What the ends of a link are, and their names: nodes, or CPUs of a node (with its name if there are ``several``).

    A rank stands for its CPU where it was not bound to one.
    """
    hosts = [params.get(f"{end}_host") for end in RANKS]
    if None not in hosts and hosts[0] != hosts[1]:
        return "node", str(hosts[0]), str(hosts[1])
    cores = [str(params.get(f"{end}_cpu", params[end])) for end in RANKS]
    if several and None not in hosts:
        cores = [f"{host}:{core}" for host, core in zip(hosts, cores, strict=True)]
    return "core", cores[0], cores[1]


def _check(row: Measurement, first: str, second: str, where: str) -> None:
    if first == second or BETWEEN in first or BETWEEN in second:
        raise PlumbError(f"a pair of '{first}' and '{second}'", where, "measure again")
    if not 0 < row.value < math.inf:
        raise PlumbError(f"{row.metric} of {first} and {second} is {row.value}", where, "measure again")


def _class(record: Record, row: Measurement) -> str:
    rest = {name: value for name, value in row.params.items() if name not in OF_LINK}
    first = [str(rest.pop("class"))] if "class" in rest else []
    others = [f"{name}={value}" for name, value in sorted(rest.items())]
    return " ".join([row.metric, *first, *others, record.stack.name])


def _remarks(found_in: list[AnyRecord]) -> dict[str, list[str]]:
    """Per node what may explain it: launches that were disturbed, and circumstances that most others do not have."""
    found: dict[str, list[str]] = defaultdict(list)
    launches: Counter[str] = Counter()
    disturbed: Counter[str] = Counter()
    for row in found_in:
        launches[row.nodes[0]] += row.launch_count
        disturbed[row.nodes[0]] += row.disturbed_count
    for node, count in disturbed.items():
        if count:
            found[node].append(f"{count} of {launches[node]} launches disturbed")
    for name in SETTINGS:
        counts = Counter(json.dumps(row.host.get(name)) for row in found_in)
        usual, often = counts.most_common(1)[0]
        for row in found_in:
            own = json.dumps(row.host.get(name))
            text = f"{name} {_plain(own)}, most have {_plain(usual)}"
            if own != usual and 2 * often > len(found_in) and text not in found[row.nodes[0]]:
                found[row.nodes[0]].append(text)
    return found


def _plain(text: str) -> str:
    value = json.loads(text)
    return "unknown" if value is None else str(value)
