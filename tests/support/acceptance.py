"""``python tests/support/acceptance.py`` writes tests/data/acceptance: a contract, and records of eight made-up nodes.

The figures are drawn. ``n3`` has about the bandwidth that was promised, ``n7`` was not measured, one launch of ``n5``
was disturbed, the links are good, and the broadcast is slow.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import samples
import yaml

from plumbline.extras.accept.model import Clause
from plumbline.records import model
from plumbline.records.model import Record

FOLDER = Path(__file__).parents[1] / "data" / "acceptance"
BANDWIDTH = {
    "name": "memory bandwidth", "test": "stream_threads", "params": {"placement": "compact", "threads": 2},
    "stack": "openmpi", "figure": "triad", "over": "each node", "at_least": 180, "unit": "GB/s", "launches": 8,
}  # fmt: skip
LINKS = {
    "name": "links", "test": "pairs_nodes", "params": {"operation": "tournament"}, "stack": "openmpi",
    "figure": "bandwidth", "over": "each link", "at_least": 20, "unit": "GB/s", "share": 0.9, "launches": 6,
}  # fmt: skip
BROADCAST = {
    "name": "broadcast", "test": "osu_nodes", "params": {"operation": "bcast", "placement": "core"}, "stack": "openmpi",
    "figure": "latency", "where": {"bytes": 8}, "over": "whole machine", "at_most": 30, "unit": "us", "launches": 6,
}  # fmt: skip


def contract(*clauses: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document of a contract over eight nodes."""
    made = {"schema": 1, "machine": "Example-1", "vendor": "Example Ltd", "offer": "Offer 2026-17", "nodes": "n[0-7]"}
    return {**made, "clauses": list(clauses) or [BANDWIDTH, LINKS, BROADCAST], **changes}


def clause(document: dict[str, Any]) -> Clause:
    """A clause of a contract."""
    return msgspec.convert(document, Clause)


def record(
    number: int, clause: dict[str, Any], nodes: Sequence[str], launches: Iterable[dict[str, Any]], **changes: Any
) -> Record:
    """A record of the variant of ``clause`` on ``nodes``."""
    params = {**clause["params"], **({"node_count": len(nodes)} if len(nodes) > 1 else {})}
    name = " ".join([clause["test"], *(f"%{key}={value}" for key, value in params.items())])
    metric, where = clause["figure"], clause.get("where", {})
    figures = [{"name": "figure" if where else metric, "metric": metric, "where": where}]
    count = len(nodes)
    made = samples.record(
        id=f"a{number:011x}", session=f"20260201T000000Z-{nodes[0]}-{number:06x}", campaign="night", site="cluster",
        time=f"2026-02-01T00:{number % 60:02}:00.000Z", nodes=list(nodes), launches=list(launches),
        variant=samples.variant(test=clause["test"], name=name, params=params, site="cluster", figures=figures,
                                nodes=count),
        placement={"name": "compact", "memory": "local", "threads": 2, "ranks_per_node": 1, "nodes": count}, **changes,
    )  # fmt: skip
    (sealed,) = model.encode([model.convert(made)]).splitlines()
    return model.decode(sealed.encode())


def launch(order: int, *measurements: tuple[str, float, str, str, dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A verified launch with measurements: metric, value, unit, which values are better, parameters."""
    names = ("metric", "value", "unit", "better", "params")
    return samples.launch(
        order, 1.0, measurements=[dict(zip(names, one, strict=True)) for one in measurements], **changes
    )


def triad(order: int, value: float, **changes: Any) -> dict[str, Any]:
    """A launch of STREAM, ``value`` in MB/s."""
    return launch(order, ("triad", value, "MB/s", "higher", {}), **changes)


def links(order: int, values: dict[tuple[str, str], float], **changes: Any) -> dict[str, Any]:
    """A launch of the pairs kernel: bandwidths in MB/s by link, both directions."""
    rows = [
        ("bandwidth", value, "MB/s", "higher", {"first": 0, "second": 1, "first_host": one, "second_host": other})
        for (first, second), value in values.items()
        for one, other in ((first, second), (second, first))
    ]
    return launch(order, *rows, **changes)


def made() -> list[Record]:
    """The records of the page."""
    dice = random.Random(31)  # noqa: S311
    nodes = [f"n{number}" for number in range(7)]
    found = []
    for number, node in enumerate(nodes):
        rate = 180_200 if node == "n3" else 186_000
        launches = [triad(order, round(rate * dice.gauss(1, 0.006), 1)) for order in range(8)]
        if node == "n5":
            cause = {"disturbed": True, "causes": ["a thread of rank 0 waited 9.1 % of the time"], "figures": {}}
            launches[2] |= {"disturbed": True, "disturbance": cause}
        found.append(record(number, BANDWIDTH, [node], launches))
    pairs = list(itertools.combinations([*nodes, "n7"], 2))
    matrices = [links(order, {pair: round(dice.gauss(22_000, 200), 1) for pair in pairs}) for order in range(6)]
    found.append(record(20, LINKS, [*nodes, "n7"], matrices))
    times = [
        launch(order, ("latency", round(dice.gauss(41, 0.5), 3), "us", "lower", {"bytes": 8})) for order in range(6)
    ]
    found.append(record(21, BROADCAST, [*nodes, "n7"], times))
    return found


def write(folder: Path) -> None:
    """Write the contract and the records below ``folder``."""
    (folder / "results" / "cluster").mkdir(parents=True, exist_ok=True)
    (folder / "contract.yaml").write_text(yaml.safe_dump(contract(), sort_keys=False, width=120), encoding="utf-8")
    (folder / "results" / "cluster" / "night.jsonl").write_text(model.encode(made()), encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
