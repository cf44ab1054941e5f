"""``plumb topology``: the drawing, and the machine as data behind it."""

import argparse
from dataclasses import replace
from itertools import pairwise

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import sites as command
from plumbline.host import binder
from plumbline.host import machine as machines
from plumbline.host.binder import resolve
from plumbline.host.draw import draw

FOLDER = paths.root() / "tests/data/topologies"
TOPOLOGIES = sorted(FOLDER.glob("*.xml"))
MIB = 1 << 20


def cells(drawing: str) -> list[str]:
    """CPU numbers and labels of all rows, in order."""
    rows = [
        line[22 - 4 :].split()
        for line in drawing.splitlines()
        if line.startswith(("    ", " " * 18)) and line[18:22] in ("cpu ", "rank")
    ]
    return [word for row in rows for word in row[1:]]


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_every_cpu_once_within_100_columns(path):
    text = draw(path)
    assert max(map(len, text.splitlines())) <= 100
    assert sorted(map(int, cells(text))) == sorted(machines.load(path).cpus)


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
@pytest.mark.parametrize("placement", ["none", "scatter", "smt", "node"])
def test_every_label_below_its_cpu(path, placement):
    plan = resolve(placement, topology=path, memory="interleave")
    text = draw(path, plan)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    wanted = {place[0]: f"{r.local_rank}.{t}" for r in plan.ranks for t, place in enumerate(r.places)}
    if placement == "none":
        wanted = dict.fromkeys(plan.ranks[0].cpus, "*")
    found = {}
    for above, below in pairwise(lines):
        if below.startswith(" " * 18 + "rank"):
            found |= {int(cpu): label for cpu, label in zip(above[22:].split(), below[22:].split(), strict=True)}
    assert {cpu: label for cpu, label in found.items() if label != "."} == wanted
    assert lines[-1].startswith(("memory interleave:", "  "))


def test_a_small_machine_in_full():
    plan = resolve("ways:4", topology=FOLDER / "rrze-nehalem.xml")
    lines = draw(FOLDER / "rrze-nehalem.xml", plan).splitlines()
    assert lines[lines.index("") + 1 :] == [
        "socket 0, 4 cores, 8 hardware threads " + "=" * 62,
        "  NUMA node 0  12 GiB",
        "    L3 8 MiB      cpu    0   1   2   3",
        "                  rank 0.0 0.1 1.0 1.1",
        "                  cpu    8   9  10  11",
        "",
        "socket 1, 4 cores, 8 hardware threads " + "=" * 62,
        "  NUMA node 1  12 GiB",
        "    L3 8 MiB      cpu    4   5   6   7",
        "                  rank 2.0 2.1 3.0 3.1",
        "                  cpu   12  13  14  15",
        "",
        "placement ways:4: 4 ranks of 2 threads; R.T = rank.thread, . = idle beside a used CPU",
        "memory local: node 0 (ranks 0,1), node 1 (ranks 2,3)",
    ]


def test_cpus_that_share_a_cache_are_in_groups():
    lines = draw(FOLDER / "gpc-2x4.xml", caches=True).splitlines()
    assert lines[lines.index("caches ".ljust(100, "=")) + 1 :] == [
        "    L1 32 KiB     (0 8) (2 10) (4 12) (6 14) (1 9) (3 11) (5 13) (7 15)",
        "    L2 256 KiB    (0 8) (2 10) (4 12) (6 14) (1 9) (3 11) (5 13) (7 15)",
        "    L3 8 MiB      (0 8 2 10 4 12 6 14) (1 9 3 11 5 13 7 15)",
    ]


def test_the_largest_machine_fits_on_a_page():
    assert len(draw(FOLDER / "epyc-2x64-smt2.xml").splitlines()) < 60


def test_memory_that_belongs_to_no_cpu_is_drawn():
    text = draw(FOLDER / "memory-only-node.xml")
    assert "no socket ===" in text
    assert "  NUMA node 2  256 GiB, no CPU of its own" in text
    assert "NUMA node 0  512 GiB; NUMA node 2  64 GiB" in draw(FOLDER / "xeon-max-2x56-hbm.xml")
    assert "NUMA node 1  no memory" in draw(FOLDER / "numa-without-memory.xml")
    assert "the same for sockets 0, 1" in draw(FOLDER / "rrze-woodcrest.xml")


def test_ranks_that_share_a_node_are_summed_up():
    path = FOLDER / "xeon-max-2x56-hbm.xml"
    text = draw(path, resolve("scatter", topology=path, memory="remote", threads=4))
    assert text.splitlines()[-1] == "memory remote: node 3 (ranks 0-26 by 2), node 2 (ranks 1-27 by 2)"


@pytest.mark.parametrize(
    ("placement", "first", "last"), [("core", "0-3", "4-7"), ("roundrobin", "0-6 by 2", "1-7 by 2")]
)
def test_the_ranks_of_each_node_of_a_job_follow(placement, first, last):
    machine = "package:2 core:2 pu:1"
    lines = draw(machine, resolve(placement, threads=1, topology=machine), nodes=2).splitlines()
    assert lines[-2:] == [f"ranks of node 0: {first}", f"ranks of node 1: {last}"]


def test_this_host_and_synthetic_descriptions_are_drawn():
    assert draw(None).startswith("this host: ")
    assert "socket 1, 2 cores ===" in draw("package:2 core:2 pu:1")


@pytest.mark.parametrize(("name", "packages", "nodes", "l3s", "cores", "cpus", "cache_mib"), [
    ("one-socket-2", 1, 1, 1, 2, 2, 32),
    ("epyc-2x64-smt2", 2, 8, 16, 128, 256, 512),
    ("xeon-max-2x56-hbm", 2, 4, 2, 112, 112, 220),
    ("a64fx-4x12", 4, 4, 0, 48, 48, 32),
    ("rrze-woodcrest", 2, 1, 0, 4, 4, 8),
    ("skylake-2x20-snc2", 2, 4, 2, 40, 40, 54),
    ("memory-only-node", 2, 3, 2, 16, 16, 32),
    ("sparse-os-indices", 2, 2, 2, 15, 27, 40),
    ("asymmetric-cgroup", 2, 2, 2, 10, 10, 50),
])  # fmt: skip
def test_the_machine_as_data(name, packages, nodes, l3s, cores, cpus, cache_mib):
    machine = machines.load(FOLDER / f"{name}.xml")
    assert len(machine.packages) == packages
    assert len(machine.numa_nodes) == nodes
    assert len(machine.l3s) == l3s
    assert len(machine.cores) == cores
    assert len(machine.cpus) == cpus
    assert machine.last_level_cache_bytes == cache_mib * MIB


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_hwlocs_own_export_reads_the_same(path, tmp_path):
    """Stored topologies are written by hand: what hwloc makes of them must be the same machine."""
    copy = tmp_path / "copy.xml"
    binder.ask(["--topology", str(path), "--export-topology", str(copy)])
    assert replace(machines.load(copy), name="") == replace(machines.load(path), name="")


def test_distances_are_read():
    machine = machines.load(FOLDER / "memory-only-node.xml")
    assert machine.distances[0, 1] == 21
    assert machine.distances[1, 2] == 28
    assert machines.load("package:2 [numa] core:1 pu:1").distances == {}


@pytest.mark.parametrize("text", ["", "no xml", "<topology/>", '<topology><object type="Machine"/></topology>'])
def test_a_file_that_is_no_topology_is_named(tmp_path, text):
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises(PlumbError, match=r"not an hwloc XML file.*bad\.xml.*--export-topology"):
        draw(file)


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.run_topology.add_to(parser)
    args = parser.parse_args(words)
    return int(args.run(args))


def test_the_command_prints_the_drawing(capsys):
    path = str(FOLDER / "ranger-4x4.xml")
    assert run(path, "--placement", "numa", "--threads", "2", "--memory", "node:3", "--ranks", "2") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-2].startswith("placement numa: 2 ranks of 2 threads;")
    assert out.splitlines()[-1] == "memory node:3: node 3 (ranks 0,1)"


def test_the_command_refuses_what_has_no_placement():
    with pytest.raises(PlumbError, match="add --placement"):
        run("--threads", "2")
