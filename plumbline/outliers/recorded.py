"""Classes from records: nodes from the figures of many, links from the matrix of one record of the pairs kernel."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from plumbline.errors import PlumbError
from plumbline.gate.validity import step_of
from plumbline.history.series import ENVIRONMENT
from plumbline.outliers.given import FEW
from plumbline.outliers.matrix import BETWEEN, Matrix
from plumbline.outliers.nodes import Nodes
from plumbline.records.rows import is_valid, of_record

#: parameters that say which link a measurement is of; all others are part of its class
OF_LINK = ("first", "second")


def nodes(records: Iterable[dict[str, Any]], test: str | None = None, figure: str | None = None) -> list[Nodes]:
    """Classes of the single-node ``records`` that count, sorted by name: site, partition, stack, variant and figure.

    A node's values are the samples of its launches; those of one campaign were measured together. ``test`` keeps the
    tests whose names begin so, ``figure`` the figures of that name.
    """
    found: dict[str, Nodes] = {}
    circumstances: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if (
            len(record["nodes"]) != 1
            or not is_valid(of_record(record))
            or not record["variant"]["test"].startswith(test or "")
        ):
            continue
        for one in record["figures"]:
            if figure in (None, one["name"]) and all(0 < sample < math.inf for sample in one["samples"]):
                name = _name(record, one["name"])
                made = found.setdefault(name, Nodes(name, one["better"]))
                for sample in one["samples"]:
                    made.add(record["nodes"][0], sample, record["campaign"])
                circumstances[name].append(record)
    for name, made in found.items():
        made.step = _step([value for values in made.values.values() for _, value in values])
        made.remarks = _remarks(circumstances[name])
    return [found[name] for name in sorted(found)]


def matrices(record: dict[str, Any]) -> list[Matrix]:
    """The classes of links in the launches of one record; raises :class:`PlumbError` where there is no matrix."""
    where = f"record {record['id']}"
    if not is_valid(of_record(record)):
        reason = (record["reasons"] or [f"it is {record['state']}"])[0]
        raise PlumbError(f"the record does not count: {reason}", where, "measure again")
    found: dict[str, Matrix] = {}
    for number, launch in enumerate(record["launches"]):
        for row in launch["measurements"]:
            params = row["params"]
            if not all(name in params for name in OF_LINK):
                continue
            _check(row, where)
            made = found.setdefault(_class(record, row), Matrix(_class(record, row), row["better"]))
            made.ends = "core" if isinstance(params["first"], int) else "node"
            made.add(str(params["first"]), str(params["second"]), row["value"], number)
    if not found:
        raise PlumbError("no pair was measured", where, "give a record of the pairs kernel")
    for made in found.values():
        made.step = _step([value for launches in made.values.values() for one in launches for value in one])
    return [found[name] for name in sorted(found)]


def _check(row: dict[str, Any], where: str) -> None:
    first, second = (str(row["params"][name]) for name in OF_LINK)
    if first == second or BETWEEN in first or BETWEEN in second:
        raise PlumbError(f"a pair of '{first}' and '{second}'", where, "measure again")
    if not 0 < row["value"] < math.inf:
        raise PlumbError(f"{row['metric']} of {first} and {second} is {row['value']}", where, "measure again")


def _class(record: dict[str, Any], row: dict[str, Any]) -> str:
    rest = {name: value for name, value in row["params"].items() if name not in OF_LINK}
    first = [str(rest.pop("class"))] if "class" in rest else []
    others = [f"{name}={value}" for name, value in sorted(rest.items())]
    return " ".join([row["metric"], *first, *others, record["stack"]["name"]])


def _name(record: dict[str, Any], figure: str) -> str:
    parts = (record["site"], record["partition"], record["stack"]["name"], record["variant"]["name"], figure)
    return " ".join(parts)


def _remarks(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Per node what may explain it: launches that were disturbed, and circumstances that most others do not have."""
    found: dict[str, list[str]] = defaultdict(list)
    launches: Counter[str] = Counter()
    disturbed: Counter[str] = Counter()
    for record in records:
        launches[record["nodes"][0]] += len(record["launches"])
        disturbed[record["nodes"][0]] += sum(one["disturbed"] for one in record["launches"])
    for node, count in disturbed.items():
        if count:
            found[node].append(f"{count} of {launches[node]} launches disturbed")
    for name in ENVIRONMENT:
        counts = Counter(json.dumps(record["host"].get(name)) for record in records)
        usual, often = counts.most_common(1)[0]
        for record in records:
            own = json.dumps(record["host"].get(name))
            text = f"{name} {_plain(own)}, most have {_plain(usual)}"
            if own != usual and 2 * often > len(records) and text not in found[record["nodes"][0]]:
                found[record["nodes"][0]].append(text)
    return found


def _plain(text: str) -> str:
    value = json.loads(text)
    return "unknown" if value is None else str(value)


def _step(values: list[float]) -> float:
    texts = {repr(value) for value in values}
    return step_of(sorted(texts)) if len(texts) <= FEW else 0.0
