"""What must hold for every plan, checked against the topology file itself and not against the binder's view of it."""

import functools
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import resolve

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import machine as machines
from plumbline.host.machine import Machine

TOPOLOGIES = sorted((paths.root() / "tests/data/topologies").glob("*.xml"))
PLACEMENTS = ("compact", "scatter", "spread", "core", "l3", "numa", "socket", "node", "smt", "roundrobin")
PAIRS = ("pair:smt", "pair:l2", "pair:l3", "pair:numa", "pair:socket", "pair:xsocket")
WAYS = tuple(f"ways:{n}" for n in (1, 2, 3, 4, 5, 7, 8, 12))

Plan = dict[str, Any]


def try_resolve(placement: str, **options: Any) -> Plan | None:
    """The plan, or None if the machine cannot hold it."""
    try:
        return resolve(placement, **options)
    except PlumbError as error:
        if not error.message.startswith((f"placement {placement}: ", "memory ")):
            raise
        return None


def level_objects(machine: Machine, level: str) -> list[set[int]]:
    """The CPU sets of the objects that hold one rank each."""
    objects = {"core": machine.cores, "l3": machine.l3s, "numa": machine.numa_nodes, "socket": machine.packages}
    return [set(item.cpus) for item in objects.get(level, [machine])]


def check(plan: Plan, machine: Machine, allowed: set[int]) -> None:
    placement = plan["placement"]
    seen: set[int] = set()
    for number, rank in enumerate(plan["ranks"]):
        cpus = set(rank["cpus"])
        assert rank["local_rank"] == number
        assert rank["cpus"] == sorted(cpus)
        assert cpus <= allowed
        assert not cpus & seen, "two ranks share a CPU"
        seen |= cpus
        assert len(rank["places"]) == plan["threads"]
        assert [len(place) for place in rank["places"]] == [1] * plan["threads"]
        assert {cpu for place in rank["places"] for cpu in place} == cpus
    sizes = [len(rank["cpus"]) for rank in plan["ranks"]]
    assert max(sizes) - min(sizes) <= 1
    if placement not in ("smt", "pair:smt"):
        for core in machine.cores:
            assert len(seen & set(core.cpus)) <= 1, "hardware threads of one core are used together"
            assert not seen & set(core.cpus) or min(seen & set(core.cpus)) == first(core.cpus, allowed)
    check_level(plan, machine)
    check_memory(plan, machine)


def first(cpus: tuple[int, ...], allowed: set[int]) -> int:
    return next(cpu for cpu in cpus if cpu in allowed)


def check_level(plan: Plan, machine: Machine) -> None:
    placement = plan["placement"]
    if placement not in ("core", "l3", "numa", "socket", "node"):
        return
    objects = level_objects(machine, placement)
    used = [[i for i, cpus in enumerate(objects) if set(rank["cpus"]) <= cpus] for rank in plan["ranks"]]
    assert all(used), "a rank is not inside one object"
    assert len({tuple(found) for found in used}) == len(used), "two ranks in one object"


def local_to(machine: Machine, cpu: int) -> set[int]:
    """The node of a CPU; where that has no memory, or there is none, the nearest with memory."""
    home, having = machine.home_node(cpu), {node.index for node in machine.numa_nodes if node.size}
    if home is None:
        return having
    if home.index in having or not having:
        return {home.index}
    far = {node: machine.distances.get((home.index, node), 0) for node in having}
    return {node for node, distance in far.items() if distance == min(far.values())}


def check_memory(plan: Plan, machine: Machine) -> None:
    for rank in plan["ranks"]:
        homes = set().union(*(local_to(machine, cpu) for cpu in rank["cpus"]))
        mem = rank["mem"]
        if plan["memory"] == "local":
            assert mem == {"policy": "bind", "nodes": sorted(homes)}
        elif plan["memory"] == "interleave":
            assert mem == {"policy": "interleave", "nodes": [n.index for n in machine.numa_nodes if n.size]}
        elif plan["memory"] == "firsttouch":
            assert mem == {"policy": "none", "nodes": []}
        elif plan["memory"] == "remote":
            (node,) = mem["nodes"]
            far = {n.index for n in machine.numa_nodes if n.size and n.index not in homes}
            total = {n: sum(machine.distances[home, n] for home in homes) for n in far}
            assert node in far
            assert total[node] == max(total.values())


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for placement in (*PLACEMENTS, *WAYS):
        for threads in (None, 1, 2, 3, 5, 8):
            yield placement, {"threads": threads, "memory": "firsttouch"}
        for ranks in (1, 2, 3):
            yield placement, {"ranks": ranks}
    for pair in PAIRS:
        yield pair, {"memory": "interleave"}
    yield "socket", {"memory": "remote"}


@functools.cache
def load(path: Path) -> Machine:
    return machines.load(path)


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_every_placement_keeps_the_rules(path: Path) -> None:
    machine = load(path)
    plans = [plan for placement, options in requests() if (plan := try_resolve(placement, topology=path, **options))]
    assert len(plans) > 20
    for plan in plans:
        check(plan, machine, set(machine.cpus))


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_compact_fills_every_core(path: Path) -> None:
    plan = resolve("compact", topology=path, memory="firsttouch")
    assert [rank["cpus"] for rank in plan["ranks"]] == [[core.cpus[0]] for core in load(path).cores]


def l2_caches(path: Path) -> list[set[int]]:
    """The CPU sets of the L2 caches of a file; hwloc writes a mask in words of 32 bits."""
    objects = ElementTree.parse(path).iterfind(".//object[@type='L2Cache']")  # noqa: S314 - a file of this repository
    masks = [[int(word, 16) for word in item.attrib["cpuset"].split(",")] for item in objects]
    words = [list(enumerate(reversed(mask))) for mask in masks]
    return [{32 * place + bit for place, word in mask for bit in range(32) if word >> bit & 1} for mask in words]


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_pair_classes_are_strict(path: Path) -> None:
    """The two CPUs share an object of the class, and no object that is really smaller."""
    machine = load(path)
    for pair in PAIRS:
        plan = try_resolve(pair, topology=path, memory="firsttouch")
        if plan is None:
            continue
        both = {rank["cpus"][0] for rank in plan["ranks"]}
        objects = {"core": level_objects(machine, "core"), "l2": l2_caches(path)}
        objects |= {level: level_objects(machine, level) for level in ("l3", "numa", "socket")}
        common = {
            level: min((len(cpus) for cpus in found if both <= cpus), default=None) for level, found in objects.items()
        }
        level = pair.partition(":")[2].replace("smt", "core")
        if level == "xsocket":
            assert common["socket"] is None
            continue
        assert common[level] is not None, pair
        order = list(common)
        for other in order:
            if common[other] is not None and order.index(other) < order.index(level):
                assert common[other] > common[level], f"{pair} also shares a smaller {other}"


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_a_pair_is_the_same_for_two_ranks_and_two_threads(path: Path) -> None:
    for pair in PAIRS:
        ranks, threads = (try_resolve(pair, topology=path, threads=count) for count in (1, 2))
        assert (ranks is None) == (threads is None)
        if ranks is None or threads is None:
            continue
        (only,) = threads["ranks"]
        assert only["places"] == [rank["places"][0] for rank in ranks["ranks"]]
        assert only["cpus"] == sorted(cpu for rank in ranks["ranks"] for cpu in rank["cpus"])


@settings(max_examples=150)
@given(data=st.data())
def test_any_part_of_a_machine_keeps_the_rules(data: st.DataObject) -> None:
    """A cgroup may leave any CPUs of a node to a job."""
    path = data.draw(st.sampled_from(TOPOLOGIES))
    machine = load(path)
    allowed = data.draw(st.sets(st.sampled_from(sorted(machine.cpus)), min_size=1, max_size=40))
    placement = data.draw(st.sampled_from((*PLACEMENTS, *WAYS, *PAIRS)))
    threads = data.draw(st.sampled_from((None, 1, 2, 3)))
    plan = try_resolve(placement, topology=path, threads=threads, allowed=sorted(allowed), memory="firsttouch")
    if plan:
        check(plan, machine, allowed)


@settings(max_examples=60)
@given(
    packages=st.integers(1, 4),
    nodes=st.integers(1, 3),
    caches=st.integers(1, 3),
    cores=st.integers(1, 5),
    smt=st.integers(1, 3),
    placement=st.sampled_from((*PLACEMENTS, *WAYS, *PAIRS)),
    threads=st.sampled_from((None, 1, 2, 4)),
)
def test_any_regular_machine_keeps_the_rules(
    packages: int, nodes: int, caches: int, cores: int, smt: int, placement: str, threads: int | None
) -> None:
    topology = f"package:{packages} group:{nodes} [numa] l3:{caches} core:{cores} pu:{smt}"
    machine = machines.load(topology)
    assert len(machine.cores) == packages * nodes * caches * cores
    plan = try_resolve(placement, topology=topology, threads=threads)
    if plan:
        check(plan, machine, set(machine.cpus))
    if placement in ("core", "l3", "numa", "socket", "node") and not threads:
        assert plan is not None
        objects = {"core": len(machine.cores), "l3": packages * nodes * caches, "numa": packages * nodes}
        assert len(plan["ranks"]) == (objects | {"socket": packages, "node": 1})[placement]


def test_the_rules_can_fail() -> None:
    """The guard of the guards: a plan with a fault is found out."""
    path = next(path for path in TOPOLOGIES if path.stem == "rrze-nehalem")
    machine = load(path)
    for spoil in (
        lambda plan: plan["ranks"][1].update(plan["ranks"][0] | {"local_rank": 1}),
        lambda plan: plan["ranks"][0].update(cpus=[0, 8], places=[[0], [8]]),
        lambda plan: plan["ranks"][0].update(cpus=[8], places=[[8]]),
        lambda plan: plan["ranks"][0]["mem"].update(nodes=[1]),
        lambda plan: plan["ranks"][0]["places"].append([3]),
    ):
        plan = resolve("core", topology=path)
        check(plan, machine, set(machine.cpus))
        spoil(plan)
        with pytest.raises(AssertionError):
            check(plan, machine, set(machine.cpus))
