"""Joules beside work, work beside counts, and the devices of nodes: in ``plumb show`` and in the report's data."""

import re
from typing import Any

import msgspec
import pieces
from samples import launch, record

from plumbline.base import paths
from plumbline.host import devices
from plumbline.records.model import Record, convert
from plumbline.show import efficiency as spent
from plumbline.show import record as show
from plumbline.show.report import data

IDLE = {"power_w": 55.0, "host": "node1", "measured": "2026-01-01T00:00:00.000Z"}
COUNTED = {"instructions": 6e9, "cycles": 3e9, "cache_misses": 1e8, "line_bytes": 64}
WHY = "the host shows no hardware counters"


def measured(*joules: float | None, work: dict[str, Any] | None = None, **changes: Any) -> Record:
    """A record whose launches took 1 s each and used so many joules, a quarter of them in memory."""
    launches = []
    for order, amount in enumerate(joules):
        energy = {} if amount is None else {"energy_j": {"package-0": 0.75 * amount, "dram": 0.25 * amount}}
        launches.append(launch(order, 10000.0 + order, **energy, **({"work": work} if work else {})))
    return convert(record(launches=launches, **changes))


def page(*records: Record) -> dict[str, Any]:
    return data.document("local", records)


def test_joules_are_divided_by_the_work_of_the_same_launch():
    item = measured(100.0, 300.0, 200.0, work={"flop": 4e9, "bytes": 5e10}, idle=IDLE)
    assert spent.of(item).medians == {
        "joules": 200.0,
        "watts": 200.0,
        "per_gflop": 50.0,
        "per_gbyte": 4.0,
        "gflop": 4.0,
        "gbytes": 50.0,
    }
    header, _, line, idle = spent.text(item).splitlines()
    assert re.split("  +", header.strip())[:4] == ["energy J", "power W", "per GFlop J", "per GB J"]
    assert line.split()[:4] == ["200.0", "200.0", "50.00", "4.000"]
    assert idle == "idle power of node1: 55 W (2026-01-01)"
    assert spent.text(item) in show.text(item)
    work = pieces.section(page(item), "work")
    assert "idle power of node1: 55 W (2026-01-01)" in pieces.blocks(work, "bullets")[0]["pieces"]
    column = [one["title"] for one in pieces.blocks(work, "table")[0]["columns"]].index("per GFlop")
    assert [row[column] for row in pieces.rows(work)] == ["50.00"]


def test_a_model_without_flops_gives_no_joules_per_flop():
    medians = spent.of(measured(100.0, work={"flop": 0, "bytes": 5e10})).medians
    assert medians == {"joules": 100.0, "watts": 100.0, "gbytes": 50.0, "per_gbyte": 2.0}


def test_superseded_launches_and_those_without_joules_do_not_count():
    item = measured(100.0, None, 900.0, work={"flop": 1e9, "bytes": 0})
    item.launches[2].superseded = True
    assert spent.of(item).medians["joules"] == 100.0


def test_counts_stand_beside_the_model():
    item = measured(None, work={"flop": 4e9, "bytes": 5e9, "counted": COUNTED})
    medians = spent.of(item).medians
    assert [medians[name] for name in ("instructions", "per_cycle", "missed_gbytes")] == [6.0, 2.0, 6.4]
    header, _, line = spent.text(item).splitlines()
    names = ["model GFlop", "instructions 10⁹", "a cycle", "model GB", "not in the last cache GB"]
    assert re.split("  +", header.strip()) == names
    assert line.split() == ["4.000", "6.000", "2.000", "5.000", "6.400"]
    unknown = measured(None, work={"flop": 4e9, "bytes": 0, "counted": {**COUNTED, "line_bytes": 0}})
    assert "missed_gbytes" not in spent.of(unknown).medians


def test_what_is_absent_is_said_once():
    host = {**record()["host"], "energy": "not read: only root may read it"}
    work = {"flop": 4e9, "bytes": 0, "missing": WHY}
    items = [measured(None, work=work, host=host, id=f"{number:012x}") for number in range(3)]
    (said,) = pieces.blocks(pieces.section(page(*items), "work"), "bullets")
    assert list(said["pieces"]) == ["joules not read: only root may read it", f"not counted: {WHY}"]
    assert f"not counted: {WHY}" in show.text(items[0]).splitlines()


def test_a_record_of_an_earlier_version_has_neither():
    item = convert(record())
    assert spent.text(item) == ""
    found = page(item)
    assert pieces.text(pieces.section(found, "work")) == "No test of this campaign knows its work or its energy."
    assert pieces.text(pieces.section(found, "devices")) == "The records know no GPU, network card or NVMe drive."


def test_devices_are_those_of_the_node_each_set_once():
    known = devices.load(paths.root() / "site-configs/comet/topology/gpu-k80.xml")
    gpu, *_ = [device.address for device in known.devices if device.label == "GPU0"]
    facts = {"devices": msgspec.to_builtins(known), "pci_links": {gpu: "PCIe 8 GT/s x8 of 8 GT/s x16"}}
    hosts = [{**record()["host"], "hostname": name, **facts} for name in ("node2", "node1")]
    items = [convert(record(id=f"{number:012x}", host=host)) for number, host in enumerate(hosts)]
    found = pieces.section(page(*items), "devices")
    assert [one["pieces"] for one in pieces.blocks(found, "heading")] == [["node1, node2"]]
    rows, ways = pieces.rows(found), pieces.rows(found, 1)
    assert [row[0] for row in rows] == [row[0] for row in ways] == ["GPU0", "GPU1", "GPU2", "GPU3", "NIC0"]
    assert [row[1:] for row in ways] == [list(row) for row in known.ways]
    assert rows[0][5] == "PCIe 8 GT/s x8 of 8 GT/s x16"
    (said,) = pieces.blocks(found, "bullets")
    assert {text.partition(":")[0] for text in said["pieces"]} == {"X", "PIX", "PHB", "SYS"}
    lines = show.text(items[0]).splitlines()
    assert any(line.split() == ["GPU0", "X", "PIX", "SYS", "SYS", "SYS"] for line in lines)
    assert any("PCIe 8 GT/s x8 of" in line for line in lines)
    assert not any(name == "devices" for facts in page(*items)["shared"] for name, *_ in facts)
