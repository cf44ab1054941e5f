"""Placement for real: a virtual machine with two sockets, four NUMA nodes and eight L3 caches, and one with SMT.

Two boots: STREAM under pairs of CPU and memory node, all other placements and the faults; and a machine with SMT
and a node without CPUs. The plan printed inside, what the witness saw, and what is expected by hand from the machine's
description must agree.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import schema_files
from plans import typed
from processes import ended, succeeded
from witnesses import of_documents, read

from plumbline.base import paths
from plumbline.launch.witness.compare import compare
from plumbline.launch.witness.processes import BECAME

pytestmark = pytest.mark.vm

HERE = Path(__file__).parent
VM = HERE / "numa-vm"
HOST = "numa-vm"

# CPUs of the first machine: 16 in 2 sockets of 2 nodes of 2 L3 caches of 2 cores
MACHINE = ("--sockets", "2", "--nodes", "4", "--cpus", "16", "--l3-per-node", "2")
NODE_CPUS = {node: set(range(4 * node, 4 * node + 4)) for node in range(4)}
# and of the second: 8 in 2 sockets of one node of 2 cores with 2 hardware threads, and node 2 without CPUs
SMT_MACHINE = ("--sockets", "2", "--nodes", "2", "--cpus", "8", "--threads-per-core", "2", "--memory-only-node")


@dataclass(frozen=True)
class Case:
    """One start of some ranks, and the places expected by hand (None: not compared)."""

    name: str
    ranks: int
    kind: str
    options: str
    places: list[list[int]] | None = None
    nodes: list[set[int]] | None = None  # memory nodes of each rank; None: those of its CPUs

    def line(self) -> str:
        """As the script inside reads it."""
        return "\t".join([self.name, str(self.ranks), self.kind, *self.options.split()])


def each(cpus: Iterable[int]) -> list[list[int]]:
    """One rank with one thread on each CPU."""
    return [[cpu] for cpu in cpus]


def groups(size: int, count: int) -> list[list[int]]:
    """``count`` ranks on consecutive groups of ``size`` CPUs."""
    return [list(range(size * n, size * n + size)) for n in range(count)]


MATRIX = [
    Case(f"cpu{i}-memory{j}", 1, "stream", f"--placement numa:{i} --memory node:{j} --threads 1", each([4 * i]), [{j}])
    for i in range(4)
    for j in range(4)
]
PLACEMENTS = [
    Case("compact-4", 4, "hold", "--placement compact --threads 1", each(range(4))),
    Case("compact-4x2", 4, "hold", "--placement compact --threads 2", groups(2, 4)),
    Case("roundrobin-4", 4, "hold", "--placement roundrobin --threads 1", each(range(4))),
    Case("scatter-8", 8, "hold", "--placement scatter --threads 1", each([0, 8, 4, 12, 2, 10, 6, 14])),
    Case("spread-1x8", 1, "hold", "--placement spread --threads 8", [[0, 8, 4, 12, 2, 10, 6, 14]]),
    Case("spread-2x4", 2, "hold", "--placement spread --threads 4", [[0, 4, 2, 6], [8, 12, 10, 14]]),
    Case("core-8", 8, "hold", "--placement core", each(range(8))),
    Case("l3-8", 8, "hold", "--placement l3", groups(2, 8)),
    Case("numa-4", 4, "hold", "--placement numa", groups(4, 4)),
    Case("numa-4x2", 4, "hold", "--placement numa --threads 2", [[0, 1], [4, 5], [8, 9], [12, 13]]),
    Case("socket-2", 2, "hold", "--placement socket", groups(8, 2)),
    Case("node-1", 1, "hold", "--placement node", groups(16, 1)),
    Case("numa:2", 1, "hold", "--placement numa:2", [[8, 9, 10, 11]]),
    Case("socket:1", 1, "hold", "--placement socket:1", [list(range(8, 16))]),
    Case("ways:2", 2, "hold", "--placement ways:2 --threads 1", each([0, 8])),
    Case("ways:4", 4, "hold", "--placement ways:4 --threads 1"),
    Case("pair:l3", 2, "hold", "--placement pair:l3", each([0, 1])),
    Case("pair:numa", 2, "hold", "--placement pair:numa", each([0, 2])),
    Case("pair:socket", 2, "hold", "--placement pair:socket", each([0, 4])),
    Case("pair:xsocket", 2, "hold", "--placement pair:xsocket", each([0, 8])),
    Case("pair:3,9", 2, "hold", "--placement pair:3,9", each([3, 9])),
    Case("none-2", 2, "hold", "--placement none"),
    Case("remote-4", 4, "hold", "--placement numa --threads 1 --memory remote", each([0, 4, 8, 12]), []),
    Case("interleave-4", 4, "hold", "--placement numa --memory interleave", groups(4, 4), [set(range(4))] * 4),
    Case("interleave-1", 1, "hold", "--placement numa:1 --threads 1 --memory interleave", each([4]), [set(range(4))]),
    Case("node:1", 4, "hold", "--placement numa --threads 1 --memory node:1", each([0, 4, 8, 12]), [{1}] * 4),
    Case("firsttouch-4", 4, "hold", "--placement numa --memory firsttouch", groups(4, 4), []),
]
#: those that other tests look at too, and one of each kind; each takes seconds, and `make long` runs all of them
FEW = (
    *("spread-2x4", "pair:xsocket", "ways:4", "none-2"),
    *("remote-4", "interleave-1", "node:1", "firsttouch-4"),
)
#: what the reasons say, of an undisturbed control nothing
FAULTS = {
    Case("control", 1, "go", "--placement numa:0 --threads 2"): [],
    Case("control-2", 2, "go", "--placement numa --threads 2"): [],
    Case("migrate", 1, "migrate", "--placement numa:0 --threads 2"): ["pages", "on memory node 3, planned: node 0"],
    Case("taskset", 1, "taskset", "--placement numa:0 --threads 2"): ["CPU 5, outside the rank's CPUs 0-1"],
    Case("thread", 1, "thread", "--placement numa:0 --threads 2"): [
        "thread place 1 of rank 0", "should be on CPU 1, but no thread is bound there",
    ],
    Case("exec", 1, "exec", "--placement numa:0 --threads 1"): ["CPU 5, outside the rank's CPU 0"],
    Case("kill", 2, "kill", "--placement numa --threads 1"): [
        "local rank 0 on numa-vm left no witness: it was killed or crashed",
    ],
    Case("twins", 2, "twins", "--placement numa --threads 1"): [
        "local rank 0 on numa-vm left 2 witnesses", "local rank 1 on numa-vm left no witness",
    ],
}  # fmt: skip
#: what the error of plumb-bind says
SHORTAGES = {
    Case("no-smt", 2, "hold", "--placement pair:smt"): ["pair:smt"],
    Case("five-nodes", 5, "hold", "--placement numa"): ["numa", "5"],
    Case("seventeen-cores", 17, "hold", "--placement core"): ["core", "17", "16"],
    Case("no-node", 1, "hold", "--placement numa:7"): ["numa:7"],
    Case("no-memory-node", 1, "hold", "--placement compact --memory node:9"): ["9"],
}
SMT = [
    Case("smt-4", 4, "hold", "--placement smt", groups(2, 4)),
    Case("pair:smt", 2, "hold", "--placement pair:smt", each([0, 1])),
    Case("pair:l3", 2, "hold", "--placement pair:l3", each([0, 2])),
    Case("core-4", 4, "hold", "--placement core", each([0, 2, 4, 6])),
    Case("socket-2", 2, "hold", "--placement socket", [[0, 2], [4, 6]]),
    Case("node:2", 2, "hold", "--placement numa --memory node:2", [[0, 2], [4, 6]], [{2}] * 2),
    Case("interleave", 2, "hold", "--placement numa --memory interleave", [[0, 2], [4, 6]], [{0, 1, 2}] * 2),
    Case("no-pair:numa", 2, "hold", "--placement pair:numa"),
]


@pytest.fixture(scope="session")
def machine() -> None:
    """Skip, with the reason that numa-vm gives, where no virtual machine can be had; anything else is a failure."""
    made = ended([VM, "--prepare"], timeout=600)
    if made.returncode == 3:
        pytest.skip(f"no virtual machine here: {made.stderr.strip().splitlines()[-1]}")
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where binder and witness are: those that set-up made, else built here."""
    if paths.binder().exists() and paths.library("witness").exists():
        return {"binder": str(paths.binder()), "library": str(paths.library("witness"))}
    if shutil.which("cmake") is None:
        pytest.skip("plumb-bind is not built, and there is no cmake to build it: run the set-up first")
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("tools")
    for command in (
        ["cmake", "-S", paths.root() / "custom-kernels", "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}"],
        ["cmake", "--build", build, "--target", "install"],
    ):
        subprocess.run(command, check=True, capture_output=True, text=True)
    return {"binder": str(prefix / "bin" / "plumb-bind"), "library": str(prefix / "lib" / "libplumbwitness.so")}


@pytest.fixture(scope="session")
def compiler() -> str:
    """A C compiler."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler: the programs to be placed cannot be compiled")
    return found


@pytest.fixture(scope="session")
def hold(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that touches memory and can wait."""
    program = tmp_path_factory.mktemp("hold") / "hold"
    subprocess.run([compiler, "-O1", "-fopenmp", HERE / "hold.c", "-o", program], check=True)
    return program


@pytest.fixture(scope="session")
def stream(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """McCalpin's STREAM from the source that an installed stack keeps, with arrays that an emulation can manage."""
    sources = sorted(paths.stacks().glob("*/share/stream/stream.c"))
    if not sources:
        return None
    program = tmp_path_factory.mktemp("stream") / "stream"
    sizes = ["-DSTREAM_ARRAY_SIZE=500000", "-DNTIMES=2"]
    subprocess.run([compiler, "-O2", "-fopenmp", *sizes, sources[0], "-o", program], check=True)
    return program


class Results:
    """What one boot left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, case: Case, name: str) -> str:
        """A file of a case."""
        return (self.folder / case.name / name).read_text()

    def plan(self, case: Case) -> dict[str, Any]:
        """The plan printed inside, checked against its schema."""
        assert self.text(case, "plan.status") == "0\n", self.text(case, "plan.error")
        plan: dict[str, Any] = json.loads(self.text(case, "plan.json"))
        schema_files.check("plan", plan)
        return plan

    def witnesses(self, case: Case) -> list[dict[str, Any]]:
        """The witnesses of a case."""
        found, damaged = read(self.folder / case.name / "witness")
        assert damaged == []
        return found

    def reasons(self, case: Case) -> list[str]:
        """Why the case is not verified, without CPU time before the program: the emulated clock goes on while the
        emulator itself waits for a CPU, so that an idle rank seems to use seconds beside other work."""
        reasons = of_documents(compare)(typed(self.plan(case)), self.witnesses(case), {HOST: case.ranks})
        return [reason for reason in reasons if BECAME not in reason]

    def topology(self) -> list[tuple[int, int, int, int]]:
        """CPU, core, socket and node of every CPU, as Linux saw them inside."""
        lines = (self.folder / "lscpu").read_text().splitlines()
        return [tuple(int(part) for part in line.split(",")) for line in lines if not line.startswith("#")]  # type: ignore[misc]


def boot(
    folder: Path, options: tuple[str, ...], cases: list[Case], tools: dict[str, str], stream: Path, hold: Path
) -> Results:
    """Run the cases in one virtual machine."""
    (folder / "cases").write_text("".join(case.line() + "\n" for case in cases))
    inside = [HERE / "inside", tools["binder"], folder, stream, hold]
    command = [VM, *options, "--share", folder, "--env", "PLUMB_WITNESS_LIB", "--timeout", "600", "--", *inside]
    environment = {**os.environ, "PLUMB_WITNESS_LIB": tools["library"]}
    succeeded(ended(command, timeout=900, env=environment))
    return Results(folder)


@pytest.fixture(scope="session")
def numa(request, machine, tools, stream, hold, tmp_path_factory) -> Results:
    """The machine with four nodes: STREAM on the pairs of nodes that are asked for, all placements, the faults."""
    own = [item.name for item in request.session.items if item.path == Path(__file__)]
    chosen = {*FEW, *(name.partition("[")[2].rstrip("]") for name in own)}
    pairs = [case for case in MATRIX if case.name in chosen]
    places = [case for case in PLACEMENTS if case.name in chosen]
    cases = [*(pairs if stream else []), *places, *FAULTS, *SHORTAGES]
    return boot(tmp_path_factory.mktemp("numa"), MACHINE, cases, tools, stream or hold, hold)


@pytest.fixture(scope="session")
def smt(machine: None, tools: dict[str, str], hold: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Placements on the machine with SMT and a node without CPUs."""
    return boot(tmp_path_factory.mktemp("smt"), SMT_MACHINE, SMT, tools, hold, hold)


def named(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """One test per case."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def assert_placed(results: Results, case: Case, node_cpus: dict[int, set[int]]) -> None:
    """The launch is verified, and plan and witnesses are what the machine's description says."""
    plan, witnesses = results.plan(case), results.witnesses(case)
    for rank in range(case.ranks):
        assert results.text(case, f"status.{rank}") == "0\n", results.text(case, f"out.{rank}")
    assert results.reasons(case) == []
    assert len(plan["ranks"]) == len(witnesses) == case.ranks
    if case.places is not None:
        assert [[cpu for place in rank["places"] for cpu in place] for rank in plan["ranks"]] == case.places
        for cpus, witness in zip(case.places, sorted(witnesses, key=lambda one: one["local_rank"]), strict=True):
            affinities = sorted(tuple(thread["affinity"]) for thread in witness["threads"])
            assert affinities == sorted((cpu,) for cpu in cpus)
            assert {thread["last_cpu"] for thread in witness["threads"]} == set(cpus)
    for number, witness in enumerate(sorted(witnesses, key=lambda one: one["local_rank"])):
        seen = pages(witness)
        assert sum(seen.values()) > 1000
        if case.nodes is None and case.places is not None:
            own = {node for node, cpus in node_cpus.items() if cpus & set(case.places[number])}
            assert set(seen) <= own
        elif case.nodes:
            assert set(seen) == case.nodes[number]


def pages(witness: dict[str, Any]) -> dict[int, int]:
    """Pages per node of large mappings, freed ones included."""
    memory = witness["memory"]
    seen: dict[int, int] = {}
    for part in ("nodes", "freed_nodes"):
        for node, count in memory[part].items():
            if count:
                seen[int(node)] = seen.get(int(node), 0) + count
    return seen


# ---- the machine ----------------------------------------------------------------------------------------------------


def test_topology_seen_inside(numa):
    seen = numa.topology()
    assert len(seen) == 16
    assert len({socket for _, _, socket, _ in seen}) == 2
    for node, cpus in NODE_CPUS.items():
        assert {cpu for cpu, _, _, at in seen if at == node} == cpus
        assert {socket for _, _, socket, at in seen if at == node} == {node // 2}
    distances = [line.split() for line in (numa.folder / "numactl").read_text().splitlines()[-4:]]
    assert distances[0] == ["0:", "10", "12", "32", "32"]


@pytest.mark.long
def test_topology_with_smt_and_a_node_without_cpus(smt):
    seen = smt.topology()
    assert len(seen) == 8
    assert len({core for _, core, _, _ in seen}) == 4
    assert {node for *_, node in seen} == {0, 1}
    assert "node 2 cpus:\n" in (smt.folder / "numactl").read_text()


# ---- placements -----------------------------------------------------------------------------------------------------


def is_long(case: Case) -> bool:
    """A case takes seconds: ``make test`` has memory of the node itself and of one in the other socket."""
    return case.name not in (*FEW, "cpu0-memory0", "cpu1-memory2")


def in_parts(cases: list[Case]) -> pytest.MarkDecorator:
    """One test per case, the long ones marked so."""
    marked = [pytest.param(case, id=case.name, marks=pytest.mark.long if is_long(case) else ()) for case in cases]
    return pytest.mark.parametrize("case", marked)


@in_parts(MATRIX)
def test_stream_on_pairs_of_nodes(numa, stream, case):
    if stream is None:
        pytest.skip(f"no stack with STREAM's source under {paths.stacks()}: install one first")
    assert_placed(numa, case, NODE_CPUS)
    output = numa.text(case, "out.0")
    assert "Number of Threads counted = 1\n" in output
    assert "Solution Validates" in output
    assert sum(pages(numa.witnesses(case)[0]).values()) >= 3 * 500_000 * 8 // 4096 - 3


@in_parts(PLACEMENTS)
def test_placement(numa, case):
    assert_placed(numa, case, NODE_CPUS)


def of(name: str) -> Case:
    return next(case for case in PLACEMENTS if case.name == name)


def test_remote_memory_lies_in_the_other_socket(numa):
    case = of("remote-4")
    for witness in numa.witnesses(case):
        cpu = witness["threads"][0]["affinity"][0]
        assert {node // 2 for node in pages(witness)} == {1 - cpu // 8}


@pytest.mark.parametrize("name", [pytest.param("interleave-4", marks=pytest.mark.long), "interleave-1"])
def test_interleaved_memory_is_even(numa, name):
    case = of(name)
    for witness in numa.witnesses(case):
        counts = pages(witness)
        share = sum(counts.values()) / 4
        assert all(0.7 * share < count < 1.3 * share for count in counts.values()), counts


def test_ways_deals_to_both_sockets(numa):
    case = of("ways:4")
    sockets = [rank["cpus"][0] // 8 for rank in numa.plan(case)["ranks"]]
    assert sockets == [0, 0, 1, 1]


def test_none_sets_nothing(numa):
    case = of("none-2")
    for witness in numa.witnesses(case):
        assert witness["start"]["affinity"] == list(range(16))


@pytest.mark.long
@named([case for case in SMT if not case.name.startswith("no-")])
def test_placement_with_smt(smt, case):
    assert_placed(smt, case, {0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}})


@named(SHORTAGES)
def test_shortage_is_named(numa, case):
    assert_refused(numa, case, SHORTAGES[case])


@pytest.mark.long
def test_shortage_where_nodes_have_one_cache(smt):
    assert_refused(smt, next(case for case in SMT if case.name == "no-pair:numa"), ["pair:numa"])


def assert_refused(results: Results, case: Case, words: list[str]) -> None:
    """plumb-bind refused it in one line that has these words."""
    error = results.text(case, "plan.error")
    assert results.text(case, "plan.status") == "2\n", error
    assert error.startswith("plumb-bind: ")
    assert error.count("\n") == 1
    assert all(word in error for word in words), error
    assert results.text(case, "plan.json") == ""


# ---- faults ---------------------------------------------------------------------------------------------------------


@named(FAULTS)
def test_a_fault_is_seen_and_a_control_is_verified(numa, case):
    reasons = " | ".join(numa.reasons(case))
    assert all(word in reasons for word in FAULTS[case]), reasons
    assert bool(reasons) == bool(FAULTS[case]), reasons


def test_the_ranks_beside_a_killed_one_are_not_blamed(numa):
    (case,) = (case for case in FAULTS if case.name == "kill")
    assert numa.text(case, "status.0") == "137\n"
    assert len(numa.reasons(case)) == 1


# ---- labs -----------------------------------------------------------------------------------------------------------

#: labs that need more cores, sockets or nodes of memory than a small machine has, and no STREAM: its arrays follow the
#: caches, and placements of it are above
LABS = ("T1", "T2", "T3", "T5", "U2", "S2", "D5")
#: makes the machine a site, which is lost with it, and runs their tests
OF_LABS = """
set -e
mount --bind "$1" stacks
.venv/bin/plumb site init --site numa
export PLUMB_TEST_LABS=whole
exec .venv/bin/python -m pytest -n0 --timeout 3500 -p no:cacheprovider tests/e2e/test_labs_tiny.py -k "$2"
"""


@pytest.fixture(scope="session")
def emulated_stacks(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stacks of labs, compiled for the processor of the emulation."""
    folder = tmp_path_factory.mktemp("stacks")
    around = {**os.environ, "PLUMB_STACKS": str(folder), "PLUMB_CPU": "x86-64-v3"}
    command = [paths.program("plumb"), "stack", "install", "openmpi", "intelmpi"]
    succeeded(ended(command, env=around, timeout=1500))
    return folder


@pytest.mark.long
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("name", LABS)
def test_a_lab_that_most_machines_cannot_show_fills_its_tables(emulated_stacks, name):
    """Its tests launch, each launch is proven, and each table has figures, which mean nothing in an emulation."""
    inside = ["--timeout", "3600", "--", "bash", "-c", OF_LABS, "labs", str(emulated_stacks), f"[{name}]"]
    done = succeeded(ended([VM, *MACHINE, *inside], cwd=paths.root(), timeout=3900))
    assert "1 passed" in done.stdout, done.stdout


# ---- numa-vm itself -------------------------------------------------------------------------------------------------


def run_vm(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run numa-vm; it has limits of its own, three boots and the command, which end first."""
    return ended([VM, *arguments], timeout=720, **more)


@pytest.mark.parametrize(("arguments", "reason"), [
    ((), "no command"),
    (("--sokets", "2", "--", "true"), "unknown option '--sokets'"),
    (("--cpus", "x", "--", "true"), "--cpus needs a positive number, not 'x'"),
    (("--cpus",), "--cpus needs a positive number, not ''"),
    (("--cpus", "6", "--", "true"), "cannot be spread over 4 nodes"),
    (("--nodes", "3", "--cpus", "6", "--", "true"), "3 nodes cannot be spread over 2 sockets"),
    (("--l3-per-node", "4", "--", "true"), "cannot be spread over 4 L3 caches"),
    (("--memory", "3", "--", "true"), "--memory is written like"),
    (("--memory", "100M", "--", "true"), "less than 256 MB for a node"),
    (("--distances", "5,6", "--", "true"), "--distances is written like"),
    (("--share", "/no/such", "--", "true"), "--share /no/such: no such folder"),
    (("--share", "/", "--", "true"), "can be shared"),
    (("--env", "A B", "--", "true"), "--env needs the name of a variable"),
])  # fmt: skip
def test_wrong_usage(arguments, reason):
    done = run_vm(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr


@pytest.mark.long
def test_status_streams_and_folder_of_the_command(machine, tmp_path):
    script = 'echo out; echo err >&2; pwd; echo "$KEPT-${LOST-unset}"; touch kept "$1"; exit 7'
    lost = HERE / "must-not-appear"
    environment = {**os.environ, "KEPT": "a b", "LOST": "1"}
    words = ("--env", "KEPT", "--share", str(tmp_path), "--", "bash", "-c", script, "bash", str(lost))
    done = run_vm(*words, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (7, f"out\n{tmp_path}\na b-unset\n", "err\n")
    assert (tmp_path / "kept").exists()
    assert not lost.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "failure", [pytest.param("kill -SEGV $$", id="crash"), pytest.param("exec sleep 60", id="hang")]
)
def test_a_boot_that_fails_is_repeated_and_said_with_verbose_only(machine, tmp_path, failure):
    qemu = tmp_path / "qemu-system-x86_64"
    real = shutil.which(qemu.name)
    qemu.write_text(
        f'#!/bin/bash\ncd "$(dirname "$0")"\n[ -e once ] || {{ touch once; {failure}; }}\nexec {real} "$@"\n'
    )
    qemu.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    # a boot that is only slow may reach the limit, too: the next has more time
    done = run_vm("--boot-timeout", "30", "--", "echo", "out", env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")
    assert (tmp_path / "once").exists()


def test_a_machine_that_never_boots_is_reported(machine, tmp_path):
    qemu = tmp_path / "qemu-system-x86_64"
    qemu.write_text('#!/bin/bash\necho x >> "$(dirname "$0")/boots"\necho no such machine\nexit 1\n')
    qemu.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = run_vm("--", "true", env=environment)
    assert done.returncode == 125
    assert "the virtual machine failed (qemu's status 1); its last words:\nno such machine" in done.stderr
    assert (tmp_path / "boots").read_text() == "x\n" * 3


@pytest.mark.long
def test_both_sides_of_a_duet_have_a_socket_each_and_their_threads_are_in_it(machine, compiler, tmp_path):
    source = "#include <omp.h>\nint main(void) { double end = omp_get_wtime() + 1;\n"
    source += "#pragma omp parallel\n while (omp_get_wtime() < end) ;\n return 0; }\n"
    command = [compiler, "-O1", "-fopenmp", "-x", "c", "-", "-o", tmp_path / "omp"]
    subprocess.run(command, input=source, text=True, check=True)
    side = f"command:{tmp_path}/omp,placement:node,threads:2"
    words = ["--order", "duet", "--measure-equal", "--minutes", "0.01", "--work", str(tmp_path / "work")]
    run_vm(
        *("--sockets", "2", "--nodes", "2", "--cpus", "4", "--share", str(tmp_path), "--timeout", "600", "--"),
        *(str(Path(sys.executable).parent / "plumb"), "gate", *words, "--baseline", side, "--candidate", side),
    )
    records = [json.loads(line) for line in (tmp_path / "work" / "records.jsonl").read_text().splitlines()]
    assert len(records) == 2
    for record in records:
        parts = record["launches"][0]["parts"]
        assert sorted(part["half"]["cpus"] for part in parts[:2]) == [[0, 1], [2, 3]]
        for part in parts:
            threads = [thread["affinity"] for rank in part["ranks"] for thread in rank["threads"]]
            assert (part["verified"], threads) == (True, [[cpu] for cpu in part["half"]["cpus"]])
        assert all(part["half"]["overlap"] > 0 for part in parts[:2])


def cache() -> Path:
    """As numa-vm finds it."""
    other = Path(os.environ.get("XDG_CACHE_HOME") or "/var/tmp") / "plumbline-numa-vm"
    return Path(os.environ.get("NUMA_VM_CACHE") or other).resolve()


def leftovers(of: int) -> list[str]:
    """Processes and control folder of the numa-vm with this process id."""
    control = str(cache() / "run" / str(of))
    found = [control] if Path(control).exists() else []
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = command_line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if control in text:
            found.append(text)
    return found


def test_time_limit(machine):
    with subprocess.Popen([VM, "--timeout", "2", "--", "sleep", "60"], stderr=subprocess.PIPE, text=True) as vm:
        assert vm.stderr is not None
        error = vm.stderr.read()
    assert vm.returncode == 124
    assert "time limit of 2 s" in error
    assert leftovers(vm.pid) == []


def left_in_the_end(pid: int, word: str = "") -> list[str]:
    """What is left of a run after the time that its helpers need to see that it was killed."""
    deadline = time.monotonic() + 120
    while (left := [one for one in leftovers(pid) if word in one]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_nothing_stays_when_it_is_ended(machine, number, status):
    with subprocess.Popen([VM, "--", "sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as vm:
        deadline = time.monotonic() + 120
        while not any("qemu" in one for one in leftovers(vm.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        vm.send_signal(number)
        assert vm.wait(timeout=120) == status
    assert left_in_the_end(vm.pid, "qemu") == []
    if number == signal.SIGKILL:  # the folder is removed by the next run
        assert run_vm("--timeout", "1", "--", "true").returncode == 124
    assert left_in_the_end(vm.pid) == []


def test_without_root_the_reason_is_given(machine):
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's folders, which are root's alone
        Path(folder).chmod(0o755)
        script = shutil.copy(VM, folder)
        done = ended(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash", script, "--prepare"], cwd="/"
        )
    assert done.returncode == 3, done.stderr
    assert "needs root" in done.stderr
