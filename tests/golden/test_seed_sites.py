"""The machines of the past: their topologies, the plans of the experiments published on them, and their job scripts.

Nobody has these machines. What can be tested is what Plumbline would do on them. A wanted change is written with
``PLUMB_GOLDEN=write pytest tests/golden/test_seed_sites.py`` and then read as a diff.
"""

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from archived_sites import SEEDS, dry_run, reframe, topology, variants
from folded import fold
from plans import resolve
from test_plans import describe

from plumbline import mpi, site
from plumbline.base import paths
from plumbline.host import binder, machine
from plumbline.judge.references import match
from plumbline.judge.references.faults import faults

GOLDEN = Path(__file__).parent
#: (packages, cores, hardware threads, NUMA nodes): as the sources have them, but for the additions in docs/sites.md
SHAPES = {
    "comet:compute": (2, 24, 24, 2),
    "comet:gpu-k80": (2, 24, 24, 2),
    "comet:gpu-p100": (2, 28, 28, 2),
    "gpc:default": (2, 8, 8, 2),
    "ranger:normal": (4, 16, 16, 4),
    "rrze-nehalem:ep": (2, 8, 16, 2),
    "rrze-nehalem:i7-920": (1, 4, 8, 1),
    "rrze-westmere:ep": (2, 12, 12, 2),
    "rrze-woodcrest:e5420": (2, 8, 8, 1),
    "rrze-woodcrest:q9550": (1, 4, 4, 1),
    "rrze-woodcrest:woodcrest": (2, 4, 4, 1),
    "ulysses:default": (2, 20, 20, 2),
}
#: launcher kind -> its program, and the MPI library that is started with it
LAUNCHERS = {
    "prrte": ("mpirun", "openmpi"),
    "orte": ("mpirun", "openmpi"),
    "hydra": ("mpiexec", "mpich"),
    "intel-hydra": ("mpiexec", "intelmpi"),
    "srun": ("srun", "intelmpi"),
}


def golden(name: str, found: str) -> None:
    """``found`` is what is in the golden file ``name``."""
    file = GOLDEN / name
    if os.environ.get("PLUMB_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert file.is_file(), "no golden file: write it with PLUMB_GOLDEN=write and read it"
    assert found == file.read_text(encoding="utf-8")


def test_every_partition_has_a_shape() -> None:
    found = {f"{name}:{part.name}": part.topology for name in SEEDS for part in site.load(name).partitions}
    assert found == {key: f"topology/{key.partition(':')[2]}.xml" for key in SHAPES}


@pytest.mark.parametrize("key", SHAPES)
def test_topologies_are_those_of_their_descriptions(key: str) -> None:
    name, _, part = key.partition(":")
    path = topology(name, part)
    text = path.read_text(encoding="utf-8")
    (described,) = re.findall(r'name="SyntheticDescription" value="([^"]*)"', text)
    assert without_versions(binder.ask(["--export-topology", "-", "--topology", described])) == without_versions(text)
    node = machine.load(path)
    assert (len(node.packages), len(node.cores), len(node.cpus), len(node.numa_nodes)) == SHAPES[key]


def without_versions(xml: str) -> str:
    """Objects only: another release of hwloc describes itself differently. PCI objects are put in by hand."""
    kept = re.sub(r'(?ms)^      <object type="Bridge".*?^      </object>\n', "", xml)
    return "\n".join(line for line in kept.splitlines() if "<object" in line or "</object" in line)


def test_hardware_threads_are_numbered_as_likwid_topology_printed_them() -> None:
    node = machine.load(topology("rrze-nehalem", "ep"))
    assert [core.cpus for core in node.cores] == [(cpu, cpu + 1) for cpu in range(0, 16, 2)]
    assert [cache.cpus for cache in node.l3s] == [tuple(range(8)), tuple(range(8, 16))]
    assert [cache.size for cache in node.l3s] == [8 << 20, 8 << 20]


@pytest.mark.parametrize(("part", "cores"), [("gpu-k80", 24), ("gpu-p100", 28)])
def test_comets_gpu_nodes_have_even_cpus_on_the_first_socket(part: str, cores: int) -> None:
    first, second = machine.load(topology("comet", part)).packages
    assert (set(first.cpus), set(second.cpus)) == (set(range(0, cores, 2)), set(range(1, cores, 2)))


@pytest.mark.parametrize("name", SEEDS)
def test_no_host_is_in_them_and_their_references_are_sound(name: str) -> None:
    assert site.load(name).hostnames == ["(?!)"]
    assert faults(name, site.expected()) == []


@pytest.mark.parametrize("name", [name for name in SEEDS if match.files(name)])
def test_published_references_are_of_variants_and_figures_that_there_are(name: str) -> None:
    """A reference with a slip in a parameter would never be held against anything."""
    entries = [entry for file in match.files(name) for entry in match.read(file).references]
    checks = variants(name, *sorted({entry.test for entry in entries}))
    for entry in entries:
        found = [
            check
            for check in checks
            if check["@class"] == entry.test
            and {f"{key}={value}" for key, value in entry.params.items()} == set(check["name"].split(" %")[1:])
        ]
        assert len(found) == 1, str(entry)
        assert entry.figure in [figure[0] for figure in found[0]["figures"]], str(entry)


@pytest.mark.parametrize("name", ["rrze-nehalem", "rrze-woodcrest"])
def test_cycles_are_published_as_cycles(name: str) -> None:
    """R7: the source says of no machine which clock they are of."""
    entries = [entry for file in match.files(name) for entry in match.read(file).references]
    assert {entry.unit for entry in entries if entry.test.startswith("barrier")} == {"cycles"}


def test_the_ring_has_32_ranks_on_4_nodes() -> None:
    """S4, by default; on the other counts of nodes ranks fill them."""
    checks = [check for check in variants("gpc") if check["@class"] == "rank_ring"]
    assert {check["node_count"]: check["ranks_per_node"] for check in checks} == {1: 0, 2: 0, 4: 8}


def test_a_kernel_over_nodes_may_take_minutes() -> None:
    """The slower one of two maps is the lesson: a limit for fast networks would cut it off."""
    kernels = [check for check in variants("gpc") if check.get("parser") == "kernel" and check.get("node_count", 1) > 1]
    limits = {check["@class"]: check["launch_time_limit"] for check in kernels}
    assert limits.keys() >= {"rank_ring", "rank_map"}
    assert {name for name, limit in limits.items() if limit < 300} == set()


def test_modes_of_the_stencil_scale_on_the_same_cores_and_points() -> None:
    """R8: "apples to apples"; and R9 has figures for each looseness at each depth."""
    checks = variants("gpc")
    scaling = [check for check in checks if check["@class"] == "jacobi_scaling" and check["cores"] > 1]
    assert {check["operation"] for check in scaling} == {"pure", "vector", "task-split"}
    for check in scaling:
        threads = 1 if check["operation"] == "pure" else 2
        points = "480" if check["scaling"] == "strong" else {1: "200", 2: "252"}[threads]  # 252^3 = 2 x 200^3
        assert (check["ranks_per_node"] * threads, check["arguments"][3]) == (check["cores"], points), check["name"]
    for check in (check for check in checks if check["@class"] == "jacobi_depth"):
        wanted = {"mode": "pipelined", "depth": check["depth"], "sync": "relaxed", "lower": 1, "upper": 4}
        assert ["rate_pipelined_1_4", "rate", wanted] in check["figures"]
        assert "rate_wavefront_caches" in check["optional_figures"]


# --- plans


def tacc_affinity(ways: int, rank: int) -> set[int]:
    """The sockets of Ranger's tacc_affinity script, line by line."""
    if ways == 1:
        return {0, 1, 2, 3}
    if ways == 2:
        return {2 * rank, 2 * rank + 1}
    if ways < 4:
        return {rank + 1}
    if ways < 13 or ways == 16:
        return {rank // (ways // 4)}
    return {(rank + 1) // 4}


@pytest.mark.parametrize("ways", range(1, 17))
def test_wayness_on_ranger_is_that_of_tacc_affinity(ways: int) -> None:
    """T4."""
    plan = resolve(f"ways:{ways}", topology=topology("ranger", "normal"))
    assert len(plan["ranks"]) == ways
    compared = 0
    for rank in plan["ranks"]:
        wanted = tacc_affinity(ways, rank["local_rank"])
        if wanted <= {0, 1, 2, 3}:  # with 5, 9, ... ways the script names sockets that do not exist
            assert {cpu // 4 for cpu in rank["cpus"]} == wanted
            assert set(rank["mem"]["nodes"]) == wanted
            compared += 1
    assert compared >= min(ways, 4)


def test_wayness_table_of_ranger() -> None:
    table = {f"ways:{ways}": plan_of("ranger", "normal", f"ways:{ways}") for ways in range(1, 17)}
    golden("seeds/ranger-wayness.json", as_json(table))


def cpus_of(placement: str, threads: int) -> list[list[int]]:
    """The CPUs of four ranks on Ranger."""
    plan = resolve(placement, topology=topology("ranger", "normal"), ranks=4, threads=threads)
    return [rank["cpus"] for rank in plan["ranks"]]


def test_four_ranks_on_ranger() -> None:
    """T3: of 4x1 the default had all ranks on the first socket, tacc_affinity one on each; 4x4 fills the node."""
    assert cpus_of("compact", 1) == [[0], [1], [2], [3]]
    assert cpus_of("ways:4", 1) == cpus_of("scatter", 1) == cpus_of("spread", 1) == [[0], [4], [8], [12]]
    assert cpus_of("ways:4", 4) == cpus_of("compact", 4) == [list(range(4 * n, 4 * n + 4)) for n in range(4)]


def test_four_threads_on_four_sockets() -> None:
    """T2: ``ithread = OMP_GET_THREAD_NUM() * 4``."""
    plan = resolve("spread", topology=topology("ranger", "normal"), ranks=1, threads=4)
    assert [rank["places"] for rank in plan["ranks"]] == [[[0], [4], [8], [12]]]


def test_the_forty_commands_on_ulysses() -> None:
    """U1: ``numactl --cpunodebind=C --membind=M`` with 1 to 10 threads, for both sockets and both memories."""
    table = {}
    for cpu, memory, threads in itertools.product((0, 1), (0, 1), range(1, 11)):
        options = {"memory": f"node:{memory}", "threads": threads}
        plan = resolve(f"numa:{cpu}", topology=topology("ulysses", "default"), **options)
        (rank,) = plan["ranks"]
        assert {cpu_number // 10 for cpu_number in rank["cpus"]} == {cpu}
        assert (len(rank["places"]), rank["mem"]) == (threads, {"policy": "bind", "nodes": [memory]})
        table[f"OMP_NUM_THREADS={threads} numactl --cpunodebind={cpu} --membind={memory}"] = describe(plan)
    assert len(table) == 40
    golden("seeds/ulysses-stream.json", as_json(table))


def test_hybrid_layouts_on_gpc() -> None:
    """S7: 8 ranks of 4 threads on 4 nodes; every launcher starts two a node and leaves the binding to plumb-bind."""
    layout = mpi.Layout(4, 2, ("n1", "n2", "n3", "n4"))
    table = {
        "1 rank x 8 threads": plan_of("gpc", "default", "node"),
        "2 ranks x 4 threads": plan_of("gpc", "default", "socket"),
        "2 ranks x 4 threads, compact": plan_of("gpc", "default", "compact", threads=4, ranks=2),
        "4 ranks x 2 threads": plan_of("gpc", "default", "compact", threads=2, ranks=4),
        "8 ranks x 1 thread": plan_of("gpc", "default", "core"),
        **{f"{family}, 8 ranks on 4 nodes": commands(family, layout) for family in LAUNCHERS},
    }
    assert table["2 ranks x 4 threads"][1:] == table["2 ranks x 4 threads, compact"][1:]
    golden("seeds/gpc-hybrid.json", as_json(table))


def test_two_nodes_with_one_rank_of_sixteen_threads() -> None:
    """T5: what ``-pe 1way 32`` and OMP_NUM_THREADS=16 asked for."""
    layout = mpi.Layout(2, 1, ("i104-408", "i104-409"))
    table = {"1 rank x 16 threads": plan_of("ranger", "normal", "node", threads=16)}
    table |= {f"{family}, 2 nodes": commands(family, layout) for family in LAUNCHERS}
    golden("seeds/ranger-hybrid.json", as_json(table))


def plan_of(name: str, partition: str, placement: str, **options: Any) -> list[str]:
    return describe(resolve(placement, topology=topology(name, partition), **options))


def launcher(kind: str, plugin: str | None = None) -> mpi.Launcher:
    program, family = LAUNCHERS[kind]
    return mpi.Launcher(mpi.TABLE[family], kind, program, plugin)


def commands(family: str, layout: mpi.Layout) -> list[str]:
    """The launcher's command, and the variables that switch its own binding off."""
    command = launcher(family).command(layout, bound=True, environment={})
    variables = [f"{key}={value}" for key, value in sorted(command.environment.items()) if not key.startswith("OMPI_")]
    return [" ".join([*variables, *command.arguments])]


def as_json(table: dict[str, Any]) -> str:
    return fold(table) + "\n"


# --- job scripts

#: one test per site: what to select, on which partition and stack its script is shown
SCRIPTS = {
    "comet": ("osu_pair.*operation=latency.*placement=pair:node", "gpu-k80", "mvapich2-gdr"),
    "gpc": ("imb_collective.*operation=Allreduce.*placement=core", "default", "intelmpi"),
    "ranger": ("osu_pair.*operation=latency.*placement=pair:node", "normal", "mvapich"),
    "rrze-nehalem": ("imb_pair.*operation=PingPong.*placement=pair:l3", "ep", "intelmpi"),
    "rrze-westmere": ("stream_threads.*placement=none.*threads=12", "ep", "intelmpi"),
    "rrze-woodcrest": ("imb_pair.*operation=PingPong.*placement=pair:l2", "woodcrest", "intelmpi"),
    "ulysses": ("stream_numa", "default", "intelmpi"),
}


def test_nothing_runs_for_real_on_an_archived_site(tmp_path: Path) -> None:
    """Here it would measure this host and hold it against Ulysses."""
    output = reframe("ulysses", "-r", "-n", "stream_numa.*threads=1$", prefix=tmp_path)
    skips = re.findall(r"SKIP \].*\[(.*)\]$", output, re.MULTILINE)
    assert skips == ["site ulysses is archived: --dry-run makes its job scripts"] * 4


def test_variants_with_one_plan_are_one_job(tmp_path: Path) -> None:
    """One thread is at the same place under both names, two are not."""
    output = reframe("ulysses", "--dry-run", "-n", "stream_threads.*threads=[12]$", prefix=tmp_path)
    found = dict(re.findall(r"SKIP \].*stream_threads (%.*?) /.*\[(.*)\]$", output, re.MULTILINE))
    assert found == {"%placement=spread %threads=1": "equal to placement=compact here"}


def threads_of(tmp_path: Path, asked: int) -> list[tuple[str, int | None]]:
    """Test and threads of the variants that a dry run with ``-S threads`` prepares."""
    selection = "^stream_threads.*placement=compact|^daxpy_touch.*placement=node|^daxpy_numa.*local"
    options = ("--dry-run", "--keep-stage-files", "-n", selection, "-S", f"threads={asked}")
    assert "were not set" not in reframe("ulysses", *options, prefix=tmp_path)
    found = [json.loads(file.read_text(encoding="utf-8")) for file in (tmp_path / "stage").rglob("variant.json")]
    return sorted((variant["test"], variant["threads"]) for variant in found)


def test_every_test_takes_the_number_of_threads_that_is_asked_for(tmp_path: Path) -> None:
    """As a parameter, as an attribute of the class, and where there is neither."""
    assert threads_of(tmp_path, 4) == [("daxpy_numa", 4), ("daxpy_numa", 4), ("daxpy_touch", 4), ("stream_threads", 4)]


def test_a_number_of_threads_that_a_test_does_not_have_is_an_error(tmp_path: Path) -> None:
    words = r"Reason: reframe error: stream_threads has no variant of 7 threads \(-S threads\): one of 1, 2"
    with pytest.raises(AssertionError, match=words) as error:
        threads_of(tmp_path, 7)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize("name", SEEDS)
def test_job_scripts(name: str, tmp_path: Path) -> None:
    selection, partition, stack = SCRIPTS[name]
    folders = dry_run(name, selection, stack, tmp_path)
    found = {folder: json.loads((folder / "variant.json").read_text(encoding="utf-8")) for folder in folders}
    if name == "ulysses":  # U1 as ReFrame runs it
        params = [tuple(variant["params"][key] for key in sorted(variant["params"])) for variant in found.values()]
        assert sorted(params) == sorted(itertools.product((0, 1), (0, 1), range(1, 11)))
    wanted = {"cpu_node": 0, "memory_node": 1, "threads": 10} if name == "ulysses" else {}
    of_part = {folder: variant for folder, variant in found.items() if variant["partition"] == partition}
    (chosen,) = [folder for folder, variant in of_part.items() if wanted.items() <= variant["params"].items()]
    text = (chosen / "rfm_job.sh").read_text(encoding="utf-8")
    text = text.replace(str(chosen), "STAGE").replace(str(paths.root()), "ROOT")
    text = text.replace(str(tmp_path / "sites"), "SITES").replace(str(tmp_path / "stacks"), "STACKS")
    text = re.sub(r"(rfm_\w+)_[0-9a-f]{8}\b", r"\1_HASH", text)
    golden(f"jobscripts/{name}.sh", text)
    golden(f"jobscripts/{name}.json", as_json(found[chosen]))
