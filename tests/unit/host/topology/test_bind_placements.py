"""``plumb-bind --list``, and what a plan says besides CPUs; topologies where packages lack what others have."""

import ast
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from plans import resolve

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import binder

TOPOLOGIES = paths.root() / "tests" / "data" / "topologies"
RANGER = TOPOLOGIES / "ranger-4x4.xml"
#: one placement of each name, on two nodes where one is not enough
WORDS = {"N": "1", "I,J": "0,4", "WAY|I,J": "self", "": ""}
#: those that Ranger's nodes, without hardware threads, NUMA nodes inside of a package or shared caches, cannot hold
ABSENT = {"pair:smt", "pair:l2", "pair:numa", "pair:socket"}
#: nor are there any devices in them
BESIDE_DEVICES = {"gpu", "gpu:far", "gpu:1", "gpu:far:1", "nic", "pair:gpu:self", "pair:nic:self"}
WITH_DEVICES = TOPOLOGIES / "devices" / "gpu4-uneven.xml"


@pytest.mark.parametrize("placement", binder.placements(), ids=lambda placement: placement.name + placement.argument)
def test_a_plan_says_what_the_list_says(placement):
    name = placement.name + WORDS[placement.argument]
    if name in ABSENT:
        with pytest.raises(PlumbError, match=f"placement {name}: "):
            resolve(name, topology=RANGER)
        return
    plan = resolve(name, topology=WITH_DEVICES if name in BESIDE_DEVICES else RANGER)
    said = {key: plan[key] for key in ("bound", "map", "nodes", "memory")}
    assert said == {key: getattr(placement, key) for key in said}
    assert plan["bound"] == all(rank["places"] for rank in plan["ranks"])
    assert binder.placement(name) == placement


def test_the_control_is_not_bound_and_roundrobin_alone_deals_ranks_over_nodes():
    assert [item.name for item in binder.placements() if not item.bound] == ["none"]
    assert [item.name for item in binder.placements() if item.map == "cyclic"] == ["roundrobin"]
    assert [item.name for item in binder.placements() if item.nodes > 1] == ["pair:node"]


def test_pairs_are_listed_from_near_to_far():
    pairs = [item.name + item.argument for item in binder.placements() if item.pair]
    names = ["smt", "l2", "l3", "numa", "socket", "xsocket", "node", "gpu:WAY|I,J", "nic:WAY|I,J", "I,J"]
    assert pairs == [f"pair:{name}" for name in names]


@pytest.mark.parametrize(("site", "partition", "pairs"), [
    ("rrze-woodcrest", "e5420", {"l2": [0, 1], "socket": [0, 2], "xsocket": [0, 4]}),  # an L2 for every two cores
    ("rrze-woodcrest", "q9550", {"l2": [0, 1], "numa": [0, 2]}),
    ("rrze-woodcrest", "woodcrest", {"l2": [0, 1], "xsocket": [0, 2]}),  # one shared L2 a package
    ("rrze-nehalem", "ep", {"smt": [0, 1], "l3": [0, 2], "xsocket": [0, 8]}),
    ("ranger", "normal", {"numa": [0, 1], "xsocket": [0, 4]}),  # no cache is shared
])  # fmt: skip
def test_classes_of_pairs_on_machines_of_the_past(site, partition, pairs):
    file = paths.sites() / site / "topology" / f"{partition}.xml"
    found = {}
    for kind in ("smt", "l2", "l3", "numa", "socket", "xsocket"):
        try:
            plan = resolve(f"pair:{kind}", topology=file)
        except PlumbError:
            continue
        found[kind] = [rank["cpus"][0] for rank in plan["ranks"]]
    assert found == pairs


@pytest.mark.parametrize("name", ["", "pair", "numa_", "nothing"])
def test_what_is_no_placement_is_not_found(name):
    assert binder.placement(name) is None


def test_help_names_the_placements_of_the_list():
    (line,) = re.findall("^Placements: (.*)$", binder.ask(["--help"]), re.MULTILINE)
    assert line.split() == [item.name + item.argument for item in binder.placements()]


def test_no_python_and_no_javascript_asks_for_the_name_of_a_placement():
    """Names that are words of other things too (``none``, ``core``, the collective ``scatter``) are not looked for."""
    plain = {item.name for item in binder.placements() if not item.argument}
    names = plain - {"none", "core", "node", "numa", "socket", "smt", "l3", "compact", "scatter", "spread"}
    assert len(names) == len(plain) - 10
    package = paths.root() / "plumbline"
    found = []
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"startswith\(.pair:", text), file
        for part in ast.walk(ast.parse(text)):
            if isinstance(part, ast.Constant) and part.value in names:
                found.append(f"{file}:{part.lineno}: {part.value}")
    for file in package.rglob("*.js"):
        if "vendor" not in file.parts:
            found += [
                f"{file}: {word}" for word in re.findall("['\"`]([^'\"`\\s]+)['\"`]", file.read_text()) if word in names
            ]
    assert found == []


def test_list_takes_no_other_option():
    with pytest.raises(PlumbError, match="--list goes alone"):
        binder.ask(["--list", "--placement", "core"])


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """Two packages of two NUMA nodes each, where a control group left the memory of the first node only."""
    text = (TOPOLOGIES / "skylake-2x20-snc2.xml").read_text(encoding="utf-8")
    file = tmp_path / "half.xml"
    file.write_text(re.sub('allowed_nodeset="[^"]*"', 'allowed_nodeset="0x00000001"', text), encoding="utf-8")
    return file


def test_scatter_finds_the_room_of_compact_where_packages_lack_usable_numa_nodes(half):
    compact, scatter = (resolve(name, topology=half, memory="firsttouch")["ranks"] for name in ("compact", "scatter"))
    assert len(scatter) == len(compact) == 40
    assert sorted(rank["cpus"] for rank in scatter) == sorted(rank["cpus"] for rank in compact)
    assert scatter[1]["cpus"] == [20], "the second rank is on the other package"


#: 2 packages of 2 NUMA nodes of 4 cores, the same with an L3 for every 2, and with 2 hardware threads a core
NODES = "package:2 numa:2 core:4 pu:1"
CACHES = "package:2 numa:2 l3:2 core:2 pu:1"
SMT = "package:2 numa:2 core:4 pu:2"


@pytest.mark.parametrize(("topology", "ranks", "threads", "places"), [
    (NODES, 1, 4, [[0, 8, 4, 12]]),
    (NODES, 1, 8, [[0, 8, 4, 12, 1, 9, 5, 13]]),
    (NODES, 2, 4, [[0, 4, 1, 5], [8, 12, 9, 13]]),
    (NODES, 4, 2, [[0, 1], [8, 9], [4, 5], [12, 13]]),
    (NODES, 3, 4, [[0, 1, 2, 3], [8, 9, 10, 11], [4, 5, 6, 7]]),  # shares of a package have room for two
    (NODES, 2, None, [[0, 4, 1, 5, 2, 6, 3, 7], [8, 12, 9, 13, 10, 14, 11, 15]]),
    (CACHES, 1, 8, [[0, 8, 4, 12, 2, 10, 6, 14]]),
    (CACHES, 2, 4, [[0, 4, 2, 6], [8, 12, 10, 14]]),
    (CACHES, 4, 2, [[0, 2], [8, 10], [4, 6], [12, 14]]),
    (SMT, 1, 4, [[0, 16, 8, 24]]),
])  # fmt: skip
def test_spread_deals_the_threads_of_each_rank_over_its_share(topology, ranks, threads, places):
    plan = resolve("spread", topology=topology, ranks=ranks, threads=threads)
    assert [[cpu for place in rank["places"] for cpu in place] for rank in plan["ranks"]] == places


@pytest.mark.parametrize(("allowed", "ranks", "first", "second"), [
    ("0-11", 11, 5, 6),  # full but for one core: the first package keeps it, as with tacc_affinity
    ("0-11", 12, 6, 6),
    ("0-9", 9, 5, 4),  # the second package has four cores only
])  # fmt: skip
def test_ways_leaves_a_core_of_the_first_of_equal_packages(allowed, ranks, first, second):
    plan = resolve(f"ways:{ranks}", topology="package:2 core:6 pu:1", allowed=allowed)
    on_first = sum(rank["cpus"][0] < 6 for rank in plan["ranks"])
    assert (on_first, len(plan["ranks"]) - on_first) == (first, second)


def test_spread_with_one_thread_a_rank_is_scatter():
    for topology in (NODES, CACHES, SMT, RANGER):
        spread, scatter = (resolve(name, topology=topology)["ranks"] for name in ("spread", "scatter"))
        assert spread == scatter


@pytest.mark.parametrize("memory", ["local", None])
def test_local_names_the_policy_that_works_without_a_numa_node(half, memory):
    with pytest.raises(PlumbError) as caught:
        resolve("compact", topology=half, memory=memory)
    assert caught.value.message.startswith("memory local: CPU ")
    assert caught.value.message.endswith(f" has no usable NUMA node on {half}: --memory firsttouch needs none")


def test_hwlocs_banner_does_not_precede_the_error(tmp_path):
    """hwloc 2 warns in ten lines about packages out of order, as earlier versions stored them."""
    tree = ElementTree.parse(TOPOLOGIES / "ulysses-2x10.xml")  # noqa: S314 - a file of this repository
    machine = tree.getroot()[0]
    first, second = (item for item in machine if item.get("type") == "Package")
    machine.remove(second)
    machine.insert(list(machine).index(first), second)
    file = tmp_path / "swapped.xml"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    file.write_text(head + ElementTree.tostring(tree.getroot(), encoding="unicode"), encoding="utf-8")
    with pytest.raises(PlumbError) as caught:
        resolve("core", topology=file, ranks=21)
    assert caught.value.message == f"placement core: 21 ranks of 1 thread asked, 20 cores on {file}"
