"""``pairs``: every pair exactly once, its class as plumb-bind names it, and payloads (experiments U2, U3, R6)."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack, of_the_program
from plans import resolve

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import kernels

TINY = ("--bandwidth-bytes", "4K", "--latency-trips", "2", "--bandwidth-trips", "1", "--batches", "2")
TOPOLOGIES = sorted((paths.root() / "tests" / "data" / "topologies").glob("*.xml"))
CLASSES = ("pair:smt", "pair:l2", "pair:l3", "pair:numa", "pair:socket", "pair:xsocket")


def planned(stack: KernelStack, json_of: JsonOf, ranks: int) -> tuple[dict[str, float], list[tuple[int, int, int]]]:
    """The summary of ``--plan`` and its meetings as (round, first, second)."""
    document = json_of(stack.mpirun(1, "pairs", "--plan", str(ranks), "--json"))
    assert document["passed"], document["checks"]
    summary = {item["metric"]: item["value"] for item in document["measurements"] if "ranks" in item["params"]}
    meetings = [
        (int(item["value"]), item["params"]["first"], item["params"]["second"])
        for item in document["measurements"]
        if item["metric"] == "round"
    ]
    return summary, meetings


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 64])
def test_a_tournament_has_every_pair_once_and_each_rank_once_a_round(
    one_stack: KernelStack, json_of: JsonOf, ranks: int
) -> None:
    summary, meetings = planned(one_stack, json_of, ranks)
    assert sorted((first, second) for _, first, second in meetings) == list(itertools.combinations(range(ranks), 2))
    rounds = ranks - 1 if ranks % 2 == 0 else ranks
    assert summary["rounds"] == rounds
    assert summary["byes"] == (ranks if ranks % 2 else 0)
    busy: dict[int, list[int]] = {}
    for number, first, second in meetings:
        busy.setdefault(number, []).extend((first, second))
    assert sorted(busy) == list(range(rounds))
    assert all(len(names) == len(set(names)) == ranks - ranks % 2 for names in busy.values())


def test_ten_thousand_nodes_are_planned_by_constant_work_a_meeting(one_stack: KernelStack, json_of: JsonOf) -> None:
    summary, _ = planned(one_stack, json_of, 10_000)
    assert summary["meetings"] == 10_000 * 9_999 / 2
    assert summary["operations"] == 10_000 * 9_999  # one look-up for each rank and round, nothing searched


@pytest.mark.parametrize("mode", ["serial", "tournament"])
def test_every_pair_is_measured_and_checked(kernel_stack: KernelStack, json_of: JsonOf, mode: str) -> None:
    ranks = 5 if kernel_stack.name == "mpich" else 3
    document = json_of(kernel_stack.mpirun(ranks, "pairs", "--mode", mode, *TINY, "--json"))
    assert document["passed"], document["checks"]
    for metric in ("latency", "bandwidth"):
        found = [item for item in document["measurements"] if item["metric"] == metric]
        assert sorted((i["params"]["first"], i["params"]["second"]) for i in found) == list(
            itertools.combinations(range(ranks), 2)
        )
        assert all(item["value"] > 0 for item in found)
        assert {item["params"]["first_host"] for item in found} == {os.uname().nodename}


def bound(folder: Path, stack: KernelStack) -> Path:
    """A script that starts the kernel with rank r on CPU r alone."""
    script = folder / "bound"
    script.write_text(
        f'#!/bin/sh\nexec taskset -c "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" {stack.programs}/pairs "$@"\n'
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda path: path.stem)
def test_classes_are_those_of_the_binder(
    one_stack: KernelStack, json_of: JsonOf, tmp_path: Path, topology: Path
) -> None:
    """CPUs 0 and 1 of this host, told that the machine is another one."""
    expected = [kind for kind in CLASSES if first_pair(kind, topology) == [0, 1]]
    if not expected or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("CPUs 0 and 1 are not the first pair of a class there, or not both allowed here")
    environment = {"HWLOC_XMLFILE": str(topology), "HWLOC_THISSYSTEM": "1"}
    program = str(bound(tmp_path, one_stack))
    document = json_of(one_stack.mpirun(2, program, *TINY, "--json", env=environment))
    (row,) = [item["params"] for item in document["measurements"] if item["metric"] == "latency"]
    assert [row["class"]] == expected
    assert (row["first_cpu"], row["second_cpu"]) == (0, 1)


def first_pair(kind: str, topology: Path) -> list[int] | None:
    """The CPUs of plumb-bind's pair of this class; None if the machine has none."""
    try:
        plan = resolve(kind, topology=topology)
    except PlumbError:
        return None
    return sorted(cpu for rank in plan["ranks"] for cpu in rank["cpus"])


def test_the_test_of_classes_meets_most_of_them() -> None:
    met = {kind for kind in CLASSES for topology in TOPOLOGIES if first_pair(kind, topology) == [0, 1]}
    assert met >= {"pair:l2", "pair:l3", "pair:numa", "pair:xsocket"}, met


def test_ranks_that_may_move_have_no_class(one_stack: KernelStack, json_of: JsonOf) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: every rank is bound")
    document = json_of(one_stack.mpirun(2, "pairs", *TINY, "--json"))
    assert {i["params"]["class"] for i in document["measurements"] if "class" in i["params"]} == {"unbound", "all"}


def test_people_get_a_map_of_the_matrix(one_stack: KernelStack) -> None:
    done = one_stack.mpirun(4, "pairs", *TINY)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.endswith("|")]
    assert len(lines) == 2 * 4
    assert all(line.count("\\") == 1 for line in lines)


SEND = "MPI_Send(exchange->outgoing, {}, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);\n        MPI_Recv"


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("pairs_exchange.c", SEND.format("bytes"), SEND.format("bytes - 1"), "ping-pongs whose message did not arrive"),
        ("pairs.c", "first < program_ranks(); first++)", "first < 1; first++)", "pairs without a time"),
    ],
    ids=["payload", "plan"],
)
def test_faults_fail_the_checks(
    one_stack: KernelStack, tmp_path: Path, file: str, old: str, new: str, line: str
) -> None:
    program = broken_kernel.build(tmp_path, one_stack, "pairs", file=file, old=old, new=new)
    done = one_stack.mpirun(3, str(program), *TINY, "--mode", "serial")
    assert done.returncode == 1, done.stderr
    assert f"the answer is wrong: {line}" in done.stderr


SLOW_START = """
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
enum { SLOW = 100, PAGES = 64, BYTES = 4096 };
static volatile char *pages;
static long sends;
int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    if (!pages) {
        pages = mmap(NULL, PAGES * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise((void *)pages, PAGES * BYTES, MADV_NOHUGEPAGE);
    }
    if (sends++ < SLOW) {
        madvise((void *)pages, PAGES * BYTES, MADV_DONTNEED);
        for (int page = 0; page < PAGES; page++)
            pages[page * BYTES] = 1;
    }
    return PMPI_Send(data, count, type, to, tag, comm);
}
int MPI_Finalize(void) {
    fprintf(stderr, "sends: %ld\\n", sends);
    return PMPI_Finalize();
}
"""


def test_a_library_that_starts_slowly_is_waited_for(one_stack: KernelStack, json_of: JsonOf, tmp_path: Path) -> None:
    """As Intel MPI: the first 100 sends of a rank touch new pages. All of them are in the older half of a warm-up."""
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW_START)
    wrapper = kernels.wrapper(one_stack.manifest)
    subprocess.run([str(wrapper), "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    asked = ("--bandwidth-bytes", "8", "--bandwidth-trips", "1", "--latency-trips", "1", "--warm-up", "30")
    done = one_stack.mpirun(2, "pairs", *asked, "--json", env={"LD_PRELOAD": str(library)})
    assert of_the_program(json_of(done)) == []
    sends = [int(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith("sends: ")]
    assert len(sends) == 2
    assert min(sends) > 200


def test_a_plan_with_a_fault_is_found(one_stack: KernelStack, tmp_path: Path) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "pairs", file="pairs_plan.c",
        old="partner = partner == rank ? last : partner;", new="partner = partner == rank ? 0 : partner;",
    )  # fmt: skip
    done = one_stack.mpirun(1, str(program), "--plan", "8")
    assert done.returncode == 1
    assert "the answer is wrong: pairs that do not meet exactly once" in done.stderr
