"""``collective``: every operation right on every rank, windows counted, one clock or a synchronised one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import broken_kernel
import pytest
from kernel_stack import JsonOf, KernelStack, of_the_program

#: a window is valid however late a rank starts: what is looked at does not depend on what else the machine does
PATIENT = ("--late", "1e9")
TINY = ("--repetitions", "6", *PATIENT)
OPERATIONS = (
    "bcast", "reduce", "allreduce", "scan", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "reduce_scatter", "reduce_scatter_block", "pingpong", "exchange", "barrier",
)  # fmt: skip
PROTOCOLS = ("start", "barrier", "loop", "changing", "work", "gaps")
#: operations whose blocks may lie apart
DISPLACED = ("gatherv", "scatterv", "allgatherv", "alltoallv")
#: seconds that the clock of every rank but the first is ahead
AHEAD_S = 100_000


def rows(document: dict[str, Any]) -> dict[tuple[Any, ...], dict[str, float]]:
    """(operation, bytes, in place) to metric to value."""
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for item in document["measurements"]:
        key = tuple(item["params"].get(name) for name in ("operation", "bytes", "in_place"))
        found.setdefault(key, {})[item["metric"]] = item["value"]
    return found


@pytest.mark.parametrize(("ranks", "sizes"), [(2, [4, 65536]), (3, [20])])
def test_every_operation_is_right_on_every_rank(
    kernel_stack: KernelStack, json_of: JsonOf, ranks: int, sizes: list[int]
) -> None:
    options = ["--bytes", ",".join(map(str, sizes)), "--in-place", "both", *TINY, "--json"]
    document = json_of(kernel_stack.mpirun(ranks, "collective", *options))
    assert document["passed"], document["checks"]
    sized = [(name, size, place) for name in OPERATIONS[:-1] for size in sizes for place in ("no", "yes")]
    expected = {row for row in sized if row[0] not in ("bcast", "pingpong", "exchange") or row[2] == "no"} | {
        ("barrier", None, None)
    }
    found = rows(document)
    assert found.keys() == expected
    for figures in found.values():
        assert figures.keys() == {"time", "time_low", "time_high", "invalid", "clock_error"}
        assert 0 < figures["time_low"] <= figures["time"] <= figures["time_high"]
        assert figures["invalid"] == 0
        assert figures["clock_error"] > 0
    assert "all ranks read one clock" in document["notes"][0]


def test_every_operation_is_right_by_every_protocol(one_stack: KernelStack, json_of: JsonOf) -> None:
    options = ["--bytes", "20", "--in-place", "both", "--protocol", "all", *TINY, "--json"]
    document = json_of(one_stack.mpirun(2, "collective", *options))
    assert document["passed"], document["checks"]
    times = [item for item in document["measurements"] if item["metric"] == "time"]
    seen = {tuple(item["params"].get(name) for name in ("operation", "in_place", "protocol")) for item in times}
    in_place = set(OPERATIONS) - {"bcast", "pingpong", "exchange", "barrier"}
    assert seen == {
        (name, place, protocol)
        for name in OPERATIONS
        for place in ([None] if name == "barrier" else ["no", "yes"] if name in in_place else ["no"])
        for protocol in PROTOCOLS
        if protocol != "gaps" or name in DISPLACED
    }
    assert all(item["value"] > 0 for item in times)


def one_time(stack: KernelStack, json_of: JsonOf, program: Path, protocol: str, *more: str) -> float:
    """The time of an allreduce of 8 bytes, us."""
    options = ["--operation", "allreduce", "--bytes", "8", "--protocol", protocol, *TINY, "--json", *more]
    document = json_of(stack.mpirun(2, str(program), *options))
    return next(float(item["value"]) for item in document["measurements"] if item["metric"] == "time")


def broken(stack: KernelStack, folder: Path, old: str, new: str) -> Path:
    """The kernel with ``old`` in its protocols replaced, which may ask for ranks."""
    file, options = "collective_protocol.c", ("-include", "program.h")
    return broken_kernel.build(folder, stack, "collective", file=file, old=old, new=new, options=options)


def test_a_loop_is_divided_by_its_calls_and_its_slowest_rank_counts(
    one_stack: KernelStack, json_of: JsonOf, tmp_path: Path
) -> None:
    """Rank 1 takes 1 s longer for each call by its clock."""
    late = "*end += program_rank() * 1e9 * made; return faults(calls, pairs, made, round);"
    program = broken(one_stack, tmp_path, "return faults(calls, pairs, made, round);", late)
    for protocol in ("loop", "changing", "work"):
        assert 1e6 <= one_time(one_stack, json_of, program, protocol) < 2e6
    assert 1e6 <= one_time(one_stack, json_of, program, "barrier") < 2e6


def test_short_calls_are_more_of_a_sample(one_stack: KernelStack, json_of: JsonOf, tmp_path: Path) -> None:
    """Where 8 calls take 1 ns, a sample has 128, and rank 1 is 128 s late in such samples alone."""
    late = "calls_of_a_sample(1.0); if (made == 128) *end += 128e9 * program_rank();"
    program = broken(one_stack, tmp_path, "calls_of_a_sample(*end - *begin);", late)
    assert 1e6 <= one_time(one_stack, json_of, program, "loop") < 2e6


@pytest.mark.long
def test_work_between_calls_does_not_count(one_stack: KernelStack, json_of: JsonOf, tmp_path: Path) -> None:
    """Work of 0.1 s after each call: the calls still take less, also where ranks wait for a CPU now and then."""
    program = broken(one_stack, tmp_path, "work(agreed->work);", "work(1e8);")
    assert one_time(one_stack, json_of, program, "work", "--seconds", "0") < 1e5


@pytest.mark.parametrize(
    "protocol", ["loop", *(pytest.param(name, marks=pytest.mark.long) for name in ("changing", "work"))]
)
def test_wrong_elements_of_a_loop_fail_the_check(one_stack: KernelStack, tmp_path: Path, protocol: str) -> None:
    program = broken_kernel.build(
        tmp_path, one_stack, "collective", file="collective_call.c", old=ALLREDUCE, new=ALLREDUCE.replace("SUM", "MAX")
    )
    for place in ("no", "yes"):
        options = ["--operation", "allreduce", "--in-place", place, "--protocol", protocol, "--bytes", "8", *TINY]
        done = one_stack.mpirun(2, str(program), *options)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "the answer is wrong: elements that are not the operation's" in done.stderr


def test_sizes_without_time_for_all_calls_have_fewer(one_stack: KernelStack, json_of: JsonOf) -> None:
    options = ["--operation", "bcast", "--bytes", "8,64", *PATIENT, "--json"]
    document = json_of(one_stack.mpirun(2, "collective", *options, "--seconds", "0"))
    assert document["passed"], document["checks"]
    assert {item["samples"] for item in document["measurements"] if item["metric"] != "clock_error"} == {6}
    assert of_the_program(document) == [
        "2 of 2 rows have fewer calls than 200, the least 6: 0 s of a size were over (--seconds)"
    ]
    whole = json_of(one_stack.mpirun(2, "collective", *options, "--seconds", "1e6", "--repetitions", "7"))
    assert {item["samples"] for item in whole["measurements"] if item["metric"] == "time"} == {7}
    assert of_the_program(whole) == []


ALLREDUCE = "MPI_Allreduce(give, get, count, type, MPI_SUM, all);"
ALLTOALLV = "MPI_Alltoallv(give, counts, at, type, get, counts, at, type, all);"
#: a call that also writes the element with this number
WRITES = ALLTOALLV + " call->receive[{}] = 0;"
KEY = 'readlink("/proc/self/ns/time", names, sizeof names - 1)'


@pytest.mark.parametrize(
    ("old", "new", "options", "elements"),
    [
        (ALLREDUCE, ALLREDUCE.replace("SUM", "MAX"), ("allreduce",), ""),
        (ALLTOALLV, WRITES.format("2 * call->elements"), ("alltoallv",), ": error 32"),
        (ALLTOALLV, WRITES.format("call->elements"), ("alltoallv", "--protocol", "gaps"), ": error 14"),
    ],
    ids=["sum", "behind", "between"],
)
def test_wrong_elements_fail_the_check(
    one_stack: KernelStack, tmp_path: Path, old: str, new: str, options: tuple[str, ...], elements: str
) -> None:
    """Another operation; a write behind the last block in each of 16 calls on both ranks, or in a gap in 7 samples."""
    program = broken_kernel.build(tmp_path, one_stack, "collective", file="collective_call.c", old=old, new=new)
    done = one_stack.mpirun(2, str(program), "--operation", *options, "--bytes", "8", *TINY)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"the answer is wrong: elements that are not the operation's{elements}" in done.stderr


def test_windows_that_missed_the_start_give_no_time(one_stack: KernelStack, json_of: JsonOf, tmp_path: Path) -> None:
    """Rank 1 always starts 100 us late: every window is invalid, and there is nothing to take a median of."""
    late = "for (double from = now; program_rank() && now < from + 1e5;) now = clock_now();"
    program = broken_kernel.build(
        tmp_path,
        one_stack,
        "collective",
        file="collective_protocol.c",
        old="return now;",
        new=f"{late} return now;",
        options=("-include", "program.h"),
    )
    options = ["--operation", "bcast", "--bytes", "8", "--repetitions", "6", "--late", "10", "--json"]
    done = one_stack.mpirun(2, str(program), *options)
    assert "the answer is wrong: windows that missed the common start" in done.stderr
    assert "the answer is wrong: rows with too few valid windows for a median: error 1" in done.stderr
    figures = rows(json_of(done))["bcast", 8, "no"]
    assert figures.keys() == {"invalid", "clock_error"}
    assert figures["invalid"] == 100


def two_clocks(folder: Path, program: Path) -> Path:
    """A script that starts ``program`` with the clock of every rank but the first ahead."""
    if shutil.which("unshare") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a time namespace needs root and unshare")
    shift = ["unshare", "--time", "--fork", "--monotonic", str(AHEAD_S)]
    if (tried := subprocess.run([*shift, "true"], capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"no time namespaces here: {tried.stderr.strip()}")
    script = folder / "ahead"
    rank = '"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"'
    script.write_text(f'#!/bin/sh\n[ {rank} = 0 ] && exec {program} "$@"\nexec {" ".join(shift)} {program} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("ranks", [2, 3])
def test_clocks_a_day_apart_are_synchronised(
    kernel_stack: KernelStack, json_of: JsonOf, tmp_path: Path, ranks: int
) -> None:
    """Ranks in a time namespace of their own read another clock, as on another host; three ranks are three clocks."""
    program = two_clocks(tmp_path, kernel_stack.programs / "collective")
    options = ["--operation", "allreduce", "--bytes", "8,64K", "--repetitions", "20", *PATIENT]
    document = json_of(kernel_stack.mpirun(ranks, str(program), *options, "--json"))
    assert document["passed"], document["checks"]
    assert f"{ranks} clocks, synchronised" in document["notes"][0]
    for figures in rows(document).values():
        assert figures["clock_error"] < 1e6  # 100,000 s were between them
        assert -figures["clock_error"] < figures["time"] < 1e6


def test_ranks_that_seem_to_share_a_clock_and_do_not_are_found(one_stack: KernelStack, tmp_path: Path) -> None:
    broken = broken_kernel.build(tmp_path, one_stack, "collective", file="common_clock.c", old=KEY, new="0")
    done = one_stack.mpirun(2, str(two_clocks(tmp_path, broken)), "--operation", "barrier", "--repetitions", "6")
    assert done.returncode == 2, done.stdout + done.stderr
    line = "collective: rank 1 and the first rank of its host read clocks that are at least 1e+14 ns apart"
    assert line in done.stderr


def test_only_an_operation_with_a_block_for_each_rank_has_to_count_them_all(
    one_stack: KernelStack, tmp_path: Path
) -> None:
    """Where MPI counted to 1000 instead of 2^31 - 1: 600 elements in one block, and in two."""
    lower = {"file": "collective_call.c", "old": "call.stride > INT_MAX", "new": "call.stride > 1000"}
    program = str(broken_kernel.build(tmp_path, one_stack, "collective", **lower))
    options = ["--bytes", "2400", *TINY]
    done = one_stack.mpirun(2, program, "--operation", "bcast", *options)
    assert done.returncode == 0, done.stderr
    done = one_stack.mpirun(2, program, "--operation", "allgather", *options)
    assert done.returncode == 2
    assert "--bytes: blocks of 2400 B for 2 ranks are more than MPI counts: choose a smaller size" in done.stderr


#: the setting of allgather's algorithm, a value that three ranks cannot have, and what makes that an error
RACED = {
    "openmpi": ("coll_tuned_allgather_algorithm", 6, {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}),
    "mpich": ("MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", 4, {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error"}),
}


def race(stack: KernelStack, ranks: int, value: int, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    name = RACED[stack.name][0]
    options = ["--operation", "allgather", "--bytes", "8,64", "--race", f"{name}=1,{value}", *TINY, "--json"]
    return stack.mpirun(ranks, "collective", *options, env=env)


@pytest.fixture
def racing(each_stack: KernelStack) -> KernelStack:
    """A stack whose library takes algorithms while it runs."""
    if each_stack.name not in RACED:
        pytest.skip(f"{each_stack.name} has no algorithm that a test sees: its values have no effect while it runs")
    return each_stack


def test_values_of_a_setting_take_turns_in_one_process(racing: KernelStack, json_of: JsonOf) -> None:
    name, value, env = RACED[racing.name]
    document = json_of(race(racing, 2, value, env))
    assert document["passed"], document["checks"]
    found: dict[tuple[int, int], dict[str, float]] = {}
    for item in document["measurements"]:
        key = (item["params"]["bytes"], item["params"][name])
        found.setdefault(key, {})[item["metric"]] = item["value"]
    assert set(found) == {(size, one) for size in (8, 64) for one in (0, 1, value)}
    assert {figures["ratio"] for (_, one), figures in found.items() if one == 0} == {1.0}
    for figures in found.values():
        assert 0 < figures["ratio_low"] <= figures["ratio"] <= figures["ratio_high"]


def test_a_value_is_in_effect_when_it_is_its_turn(racing: KernelStack) -> None:
    """An algorithm for two ranks, or for powers of two, ends a program with three ranks."""
    _, value, env = RACED[racing.name]
    assert race(racing, 3, 1, env).returncode == 0
    done = race(racing, 3, value, env)
    assert done.returncode != 0
    assert "MPI_ERR_UNSUPPORTED_OPERATION" in done.stderr or "algorithm is not usable" in done.stderr
