"""Nodes with GPUs: the ways between their devices, and the placements that follow devices.

The topologies are made by hand (tests/data/topologies/make.py). A wanted change is written with
``PLUMB_GOLDEN=write pytest tests/golden/test_devices.py`` and then read as a diff.
"""

import functools
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from archived_sites import dry_run, reframe, topology
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import resolve
from stack_manifest import LEAST
from test_plans import describe, title
from test_seed_sites import as_json, golden

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import devices

FILES = {path.stem: path for path in sorted((paths.root() / "tests/data/topologies/devices").glob("*.xml"))}
NODES = {**FILES, **{f"comet-{part}": topology("comet", part) for part in ("gpu-k80", "gpu-p100")}}
#: a pair's word for each way
WAYS = {"self": "X", "pix": "PIX", "pxb": "PXB", "phb": "PHB", "node": "NODE", "sys": "SYS"}
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gpu", {}),
    ("gpu", {"ranks": 2}),
    ("gpu", {"threads": 1}),
    ("gpu:far", {}),
    ("gpu:2", {}),
    ("gpu:far:2", {}),
    ("gpu:0", {"ranks": 2}),
    ("pair:gpu:2,3", {}),
    ("pair:gpu:1,2", {}),
    ("pair:nic:0,9", {}),
    ("nic", {}),
    ("nic", {"ranks": 4, "threads": 1}),
    *((f"pair:{kind}:{way}", {}) for kind in ("gpu", "nic") for way in WAYS),
)
#: CPUs, and `nvidia-smi topo -m` as comet's document prints it: its SOC is called SYS now
SEEDS = {
    "gpu-k80": (24, """
        GPU0   X   PIX SOC SOC SOC
        GPU1   PIX X   SOC SOC SOC
        GPU2   SOC SOC X   PIX PHB
        GPU3   SOC SOC PIX X   PHB
        mlx4_0 SOC SOC PHB PHB X"""),
    "gpu-p100": (28, """
        GPU0   X   PIX SOC SOC PHB
        GPU1   PIX X   SOC SOC PHB
        GPU2   SOC SOC X   PIX SOC
        GPU3   SOC SOC PIX X   SOC
        mlx4_0 PHB PHB SOC SOC X"""),
}  # fmt: skip


@pytest.mark.parametrize("part", SEEDS)
def test_comets_matrices_are_those_of_its_document(part: str) -> None:
    """D8."""
    cpus, matrix = SEEDS[part]
    found = devices.load(topology("comet", part))
    names = [device.names[-1] if device.label.startswith("NIC") else device.label for device in found.devices]
    seen = [
        [name, *" ".join(words).replace("SYS", "SOC").split()] for name, words in zip(names, found.ways, strict=True)
    ]
    assert seen == [row.split() for row in matrix.strip().splitlines()]
    affinity = [sorted(device.cpus) for device in found.devices if device.label.startswith("GPU")]
    assert affinity == [list(range(first, cpus, 2)) for first in (0, 0, 1, 1)]


def plan_lines(path: Path, placement: str, options: dict[str, Any]) -> list[str]:
    try:
        plan = resolve(placement, topology=path, machine="it", **options)
    except PlumbError as error:
        return [f"error: {error.message}"]
    head, *ranks = describe(plan)
    for rank, planned in enumerate(plan["ranks"]):
        variables = " ".join(f"{name}={value}" for name, value in planned.get("environment", {}).items())
        ranks[rank] += f" | {planned['devices'][0]} {variables}".rstrip()
    return [head, *ranks]


@pytest.mark.parametrize("name", NODES)
def test_ways_and_plans_are_as_written_down(name: str) -> None:
    found = devices.load(NODES[name])
    table = {
        device.label: f"{device.address} near {list(device.nodes)}: {' '.join(words)}"
        for device, words in zip(found.devices, found.ways, strict=True)
    }
    plans = {title(case, options): plan_lines(NODES[name], case, options) for case, options in CASES}
    golden(f"devices/{name}.json", as_json({"ways": table, "plans": plans}))


class Pci(NamedTuple):
    vendor: str
    cpus: set[int]
    socket: set[int]


@functools.cache
def load(path: Path) -> devices.Devices:
    return devices.load(path)


@functools.cache
def in_file(path: Path) -> dict[str, Pci]:
    """PCI address -> what the file itself says: vendor, local CPUs, CPUs of the package around it."""
    found: dict[str, Pci] = {}

    def walk(item: ElementTree.Element, cpus: set[int], socket: set[int]) -> None:
        for child in item.findall("object"):
            own = cpus
            if "cpuset" in child.attrib and child.attrib["type"] != "NUMANode":
                words = child.attrib["cpuset"].split(",")
                mask = sum(int(word, 16) << 32 * place for place, word in enumerate(reversed(words)))
                own = {bit for bit in range(mask.bit_length()) if mask >> bit & 1}
            if child.attrib["type"] == "PCIDev":
                vendor = child.attrib["pci_type"].partition("[")[2][:4]
                found[child.attrib["pci_busid"]] = Pci(vendor, own, socket)
            walk(child, own, own if child.attrib["type"] == "Package" else socket)

    walk(ElementTree.parse(path).getroot(), set(), set())  # noqa: S314 - a file of this repository
    return found


def check(plan: dict[str, Any], path: Path, allowed: set[int] | None = None) -> None:
    """Each rank has its own cores, where the placement says, and its device alone, by the number among its maker's."""
    known, used = in_file(path), set()
    gpus = [address for address, pci in sorted(known.items()) if pci.vendor in ("10de", "1002")]
    for rank in plan["ranks"]:
        (address,) = rank["devices"]
        cpus = set(rank["cpus"])
        assert len(cpus) == plan["threads"]
        assert not cpus & used
        assert allowed is None or cpus <= allowed
        used |= cpus
        pci = known[address]
        assert not cpus & pci.socket if plan["placement"].startswith("gpu:far") else cpus <= pci.cpus
        if "nic" in plan["placement"]:
            assert "environment" not in rank
            continue
        number = str([gpu for gpu in gpus if known[gpu].vendor == pci.vendor].index(address))
        wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": number}
        assert rank["environment"] == (wanted if pci.vendor == "10de" else {"ROCR_VISIBLE_DEVICES": number})
    chosen = [rank["devices"][0] for rank in plan["ranks"]]
    if plan["placement"].startswith("pair:"):
        check_pair(plan["placement"], chosen, path)
    elif plan["placement"] != "nic":
        number = plan["placement"].rpartition(":")[2]
        assert chosen == ([gpus[int(number)]] if number.isdigit() else gpus[: len(chosen)])


def check_pair(placement: str, chosen: list[str], path: Path) -> None:
    """They are those named, or the way between them is the one asked for, and no pair of one maker before has it."""
    _, kind, way = placement.split(":")
    known = load(path)
    of_kind = [place for place, device in enumerate(known.devices) if device.label.lower().startswith(kind)]
    named = [device.address for device in known.devices]
    if "," in way:
        assert chosen == [named[of_kind[int(number)]] for number in way.split(",")]
        return
    fit = [
        [named[a], named[b]]
        for a in of_kind
        for b in of_kind
        if a <= b
        and known.ways[a][b] == WAYS[way]
        and (kind == "nic" or known.devices[a].ids[:4] == known.devices[b].ids[:4])
    ]
    assert chosen in fit
    if kind == "gpu":
        assert chosen == fit[0]


@pytest.mark.parametrize("name", NODES)
def test_every_plan_keeps_the_rules(name: str) -> None:
    plans = [try_resolve(case, NODES[name], **options) for case, options in CASES]
    assert plans[0] is not None
    for plan in plans:
        if plan is not None:
            check(plan, NODES[name])


def try_resolve(placement: str, path: Path, **options: Any) -> dict[str, Any] | None:
    try:
        return resolve(placement, topology=path, **options)
    except PlumbError as error:
        if not error.message.startswith(f"placement {placement}: "):
            raise
        return None


@settings(max_examples=80)
@given(data=st.data())
def test_any_part_of_a_node_keeps_the_rules(data: st.DataObject) -> None:
    """A cgroup may leave any CPUs of a node to a job; GPUs whose CPUs it takes are an error that names one."""
    path = NODES[data.draw(st.sampled_from(sorted(NODES)))]
    every = set().union(*(pci.cpus for pci in in_file(path).values()))
    allowed = data.draw(st.sets(st.sampled_from(sorted(every)), min_size=4))
    options = {
        "threads": data.draw(st.sampled_from((None, 1, 2))),
        "ranks": data.draw(st.sampled_from((None, 1, 2, 3))),
    }
    placement = data.draw(st.sampled_from(sorted({name for name, _ in CASES})))
    plan = try_resolve(placement, path, allowed=sorted(allowed), **options)
    if plan:
        check(plan, path, allowed)


def test_the_way_between_gpus_is_that_of_the_node_whatever_a_job_may_use() -> None:
    """On CPUs of one NUMA node too, two GPUs of which one is near all nodes are not on one."""
    path = NODES["gpu2-no-local-cores"]
    for allowed in (range(16), range(4)):
        assert try_resolve("pair:gpu:node", path, allowed=list(allowed)) is None
        assert try_resolve("pair:gpu:sys", path, allowed=list(allowed)) is not None


def test_the_rules_can_fail() -> None:
    path = NODES["gpu2-two-makers"]
    for spoil in (
        lambda plan: plan["ranks"][0].update(cpus=[8, 9, 10, 11, 12, 13, 14, 15]),
        lambda plan: plan["ranks"][1]["environment"].update(CUDA_VISIBLE_DEVICES="1"),
        lambda plan: plan["ranks"].reverse(),
        lambda plan: plan["ranks"][0].update(devices=["0000:02:00.0"]),
    ):
        plan = resolve("gpu", topology=path)
        check(plan, path)
        spoil(plan)
        with pytest.raises((AssertionError, ValueError)):
            check(plan, path)


def test_the_rules_of_pairs_can_fail() -> None:
    near, same, other = ["0000:03:00.0", "0000:04:00.0"], ["0000:03:00.0"] * 2, ["0000:83:00.0", "0000:84:00.0"]
    path = NODES["comet-gpu-k80"]
    check_pair("pair:gpu:pix", near, path)
    for name, chosen in (("pix", same), ("pix", other), ("sys", near), ("self", near)):
        with pytest.raises(AssertionError):
            check_pair(f"pair:gpu:{name}", chosen, path)


@pytest.mark.parametrize(("placement", "options", "said"), [
    ("pair:gpu:far", {}, "'far' is none of self, pix, pxb, phb, node, sys"),
    ("pair:gpu:", {}, "'' is none of self, pix, pxb, phb, node, sys"),
    ("pair:gpu:pix", {"ranks": 3}, "3 ranks asked, a pair has two"),
    ("pair:gpu:pix", {"ranks": 1}, "1 rank asked, a pair has two"),
    ("pair:gpu:pxb", {}, "no two GPUs of one maker have the way PXB between them"),
])  # fmt: skip
def test_a_pair_that_is_none_is_an_error(placement: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlumbError, match=re.escape(f"placement {placement}: {said}")):
        resolve(placement, topology=NODES["comet-gpu-k80"], **options)


def test_words_that_nobody_explains_do_not_occur() -> None:
    seen = {word for path in NODES.values() for row in devices.load(path).ways for word in row}
    assert seen | {"XGMI", "NV#"} == set(devices.WORDS)  # no file of hwloc tells those


def test_ways_are_the_same_in_both_directions() -> None:
    for path in NODES.values():
        ways = devices.load(path).ways
        assert ways == tuple(zip(*ways, strict=True))


@pytest.mark.parametrize("name", NODES)
def test_devices_as_json_are_those_of_the_drawing(name: str, output_of: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output_of(0, "topology", str(NODES[name]), "--json"))
    drawn = output_of(0, "topology", str(NODES[name]))
    assert max(map(len, drawn.splitlines())) <= 100
    for device in found["devices"]:
        (line,) = [line for line in drawn.splitlines() if device["address"] in line]
        assert line.split()[:3] == [device["label"], device["address"], device["ids"]]


def comet_stack(prefix: Path, suite: str = "osu", ident: str = "osu_bw", **more: str) -> None:
    """Comet's stack of the document of D7, as this checkout would have it, with one program."""
    program = {"suite": suite, "version": "7.4", "command": ["/program"], "file": "/program", "sha256": "0" * 64}
    folder = prefix / "stacks/mvapich2-gdr"
    folder.mkdir(parents=True)
    made = {"name": folder.name, "provider": "module", "mpi": {"family": "mvapich", "version": "2.3.7", "abi": "mpich"}}
    made["benchmarks"] = {ident: {**program, "built": "by the site"}}
    (folder / "manifest.json").write_text(json.dumps(LEAST | made | more), encoding="utf-8")


def test_messages_between_gpus_are_asked_of_osu_in_its_own_words(tmp_path: Path) -> None:
    """D7."""
    comet_stack(tmp_path, accelerator="cuda")
    selection = "osu_device.*operation=bw%placement=pair:gpu:pix%buffers=D"
    stages = dry_run("comet", selection, "mvapich2-gdr", tmp_path)
    found = [json.loads((stage / "variant.json").read_text(encoding="utf-8")) for stage in stages]
    assert {(item["partition"], item["placement"], item["ranks_per_node"], *item["arguments"]) for item in found} == {
        (part, "pair:gpu:pix", 2, "-d", "cuda", "D", receiver) for part in ("gpu-k80", "gpu-p100") for receiver in "DH"
    }
    assert {item["context"]["buffers"] for item in found} == {"D D", "D H"}


def test_a_stack_that_is_not_here_is_planned_for_the_gpus_of_its_machine(tmp_path: Path) -> None:
    """D7, between nodes."""
    selection = "osu_device_nodes.*operation=latency%placement=gpu.*:2%buffers=DD"
    stages = dry_run("comet", selection, "mvapich2-gdr", tmp_path)
    found = [json.loads((stage / "variant.json").read_text(encoding="utf-8")) for stage in stages]
    assert sorted((item["partition"], item["placement"], item["nodes"], *item["arguments"]) for item in found) == [
        (part, placement, 2, "-d", "cuda", "D", "D")
        for part in ("gpu-k80", "gpu-p100")
        for placement in ("gpu:2", "gpu:far:2")
    ]


def test_imb_is_told_whose_memory_its_buffers_are(tmp_path: Path) -> None:
    """D7."""
    comet_stack(tmp_path, "imb", "imb-mpi1-gpu")
    selection = "imb_device.*operation=PingPong%placement=pair:gpu:pix%buffers="
    found = [
        json.loads((stage / "variant.json").read_text(encoding="utf-8"))
        for stage in dry_run("comet", selection, "mvapich2-gdr", tmp_path)
    ]
    assert {(item["partition"], item["arguments"][-1]) for item in found} == {
        (part, buffers) for part in ("gpu-k80", "gpu-p100") for buffers in ("device", "host")
    }
    for item in found:
        assert (item["placement"], item["ranks_per_node"]) == ("pair:gpu:pix", 2)
        assert item["arguments"][-2] == "-mem_alloc_type"
        assert item["environment"] == {"I_MPI_OFFLOAD": "1"}


def test_a_stack_that_does_not_say_that_it_takes_gpu_memory_is_skipped(tmp_path: Path) -> None:
    comet_stack(tmp_path)
    selection = "osu_device.*bw%placement=pair:gpu:pix%buffers=DD"
    output = reframe("comet", "--dry-run", "-n", selection, "-p", "^mvapich2-gdr$", prefix=tmp_path)
    assert "[stack mvapich2-gdr has no accelerator: its MPI library is not known to take GPU memory]" in output


@pytest.mark.parametrize(
    ("name", "found"), [("comet-gpu-k80", "cuda"), ("gpu8-amd-nodes", "rocm"), ("gpu8-switches", "cuda")]
)
def test_programs_for_gpus_are_built_with_what_their_maker_has(name: str, found: str) -> None:
    assert devices.built_with(NODES[name]) == found
    assert devices.built_with(topology("comet", "compute")) is None
