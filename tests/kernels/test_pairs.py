"""``pairs``: every pair exactly once, its class as plumb-bind names it, and payloads (experiments U2, U3, R6)."""

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from kernel_stack import KernelStack, json_of, of_the_program
from plans import resolve
from processes import succeeded

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.stacks import kernels

TINY = ("--bandwidth-bytes", "4K", "--latency-trips", "2", "--bandwidth-trips", "1", "--batches", "2")
TOPOLOGIES = sorted((paths.root() / "tests" / "data" / "topologies").glob("*.xml"))
CLASSES = ("pair:smt", "pair:l2", "pair:l3", "pair:numa", "pair:socket", "pair:xsocket")


def planned(stack: KernelStack, ranks: int) -> tuple[dict[str, float], list[tuple[int, int, int]]]:
    """The summary of ``--plan`` and its meetings as (round, first, second)."""
    document = stack.json(1, "pairs", "--plan", str(ranks))
    summary = {item["metric"]: item["value"] for item in document["measurements"] if "ranks" in item["params"]}
    meetings = [
        (int(item["value"]), item["params"]["first"], item["params"]["second"])
        for item in document["measurements"] if item["metric"] == "round"
    ]  # fmt: skip
    return summary, meetings


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 64])
def test_a_tournament_has_every_pair_once_and_each_rank_once_a_round(one_stack, ranks):
    summary, meetings = planned(one_stack, ranks)
    assert sorted((first, second) for _, first, second in meetings) == list(itertools.combinations(range(ranks), 2))
    rounds = ranks - 1 if ranks % 2 == 0 else ranks
    assert summary["rounds"] == rounds
    assert summary["byes"] == (ranks if ranks % 2 else 0)
    busy: dict[int, list[int]] = {}
    for number, first, second in meetings:
        busy.setdefault(number, []).extend((first, second))
    assert sorted(busy) == list(range(rounds))
    assert all(len(names) == len(set(names)) == ranks - ranks % 2 for names in busy.values())


def test_ten_thousand_nodes_are_planned_by_constant_work_a_meeting(one_stack):
    summary, _ = planned(one_stack, 10_000)
    assert summary["meetings"] == 10_000 * 9_999 / 2
    assert summary["operations"] == 10_000 * 9_999  # one look-up for each rank and round, nothing searched


@pytest.mark.parametrize("mode", ["serial", "tournament"])
def test_every_pair_is_measured_and_checked(kernel_stack, mode):
    ranks = 5 if kernel_stack.name == "mpich" else 3
    document = kernel_stack.json(ranks, "pairs", "--mode", mode, *TINY)
    for metric in ("latency", "bandwidth"):
        found = [item for item in document["measurements"] if item["metric"] == metric]
        met = sorted((item["params"]["first"], item["params"]["second"]) for item in found)
        assert met == list(itertools.combinations(range(ranks), 2))
        assert all(item["value"] > 0 for item in found)
        assert {item["params"]["first_host"] for item in found} == {os.uname().nodename}


def bound(folder: Path, stack: KernelStack) -> Path:
    """A script that starts the kernel with rank r on CPU r alone."""
    script = folder / "bound"
    rank = '"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"'
    script.write_text(f'#!/bin/sh\nexec taskset -c {rank} {stack.programs}/pairs "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda path: path.stem)
def test_classes_are_those_of_the_binder(one_stack, tmp_path, topology):
    """CPUs 0 and 1 of this host, told that the machine is another one."""
    expected = [kind for kind in CLASSES if first_pair(kind, topology) == [0, 1]]
    if not expected or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("CPUs 0 and 1 are not the first pair of a class there, or not both allowed here")
    environment = {"HWLOC_XMLFILE": str(topology), "HWLOC_THISSYSTEM": "1"}
    program = str(bound(tmp_path, one_stack))
    document = one_stack.json(2, program, *TINY, env=environment)
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


def test_the_test_of_classes_meets_most_of_them():
    met = {kind for kind in CLASSES for topology in TOPOLOGIES if first_pair(kind, topology) == [0, 1]}
    assert met >= {"pair:l2", "pair:l3", "pair:numa", "pair:xsocket"}, met


def test_ranks_that_may_move_have_no_class(one_stack):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: every rank is bound")
    document = one_stack.json(2, "pairs", *TINY)
    assert {i["params"]["class"] for i in document["measurements"] if "class" in i["params"]} == {"unbound", "all"}


def test_people_get_a_map_of_the_matrix(one_stack):
    done = succeeded(one_stack.mpirun(4, "pairs", *TINY))
    lines = [line for line in done.stdout.splitlines() if line.endswith("|")]
    assert len(lines) == 2 * 4
    assert all(line.count("\\") == 1 for line in lines)


def test_a_library_that_starts_slowly_is_waited_for(one_stack, tmp_path):
    """As Intel MPI: the first 100 sends of a rank touch new pages. All of them are in the older half of a warm-up."""
    source, library = Path(__file__).parents[1] / "support" / "slow_start.c", tmp_path / "slow.so"
    wrapper = kernels.wrapper(one_stack.manifest)
    subprocess.run([str(wrapper), "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    asked = ("--bandwidth-bytes", "8", "--bandwidth-trips", "1", "--latency-trips", "1", "--warm-up", "30")
    done = one_stack.mpirun(2, "pairs", *asked, "--json", env={"LD_PRELOAD": str(library)})
    assert of_the_program(json_of(done)) == []
    sends = [int(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith("sends: ")]
    assert len(sends) == 2
    assert min(sends) > 200
