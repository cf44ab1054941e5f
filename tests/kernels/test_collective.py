"""``collective``: every operation right on every rank, windows counted, one clock or a synchronised one."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import broken_kernel
import pytest
from kernel_stack import KernelStack, json_of, of_the_program
from processes import ended, succeeded

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
def test_every_operation_is_right_on_every_rank(kernel_stack, ranks, sizes):
    options = ["--bytes", ",".join(map(str, sizes)), "--in-place", "both", *TINY]
    document = kernel_stack.json(ranks, "collective", *options)
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


def test_every_operation_is_right_by_every_protocol(one_stack):
    options = ["--bytes", "20", "--in-place", "both", "--protocol", "all", *TINY]
    document = one_stack.json(2, "collective", *options)
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


def one_time(stack: KernelStack, program: Path, protocol: str, *more: str) -> float:
    """The time of an allreduce of 8 bytes, us."""
    options = ["--operation", "allreduce", "--bytes", "8", "--protocol", protocol, *TINY, *more]
    document = stack.json(2, str(program), *options)
    return next(float(item["value"]) for item in document["measurements"] if item["metric"] == "time")


def broken(stack: KernelStack, folder: Path, old: str, new: str) -> Path:
    """The kernel with ``old`` in its protocols replaced, which may ask for ranks."""
    file, options = "collective_protocol.c", ("-include", "program.h")
    return broken_kernel.build(folder, stack, "collective", file=file, old=old, new=new, options=options)


def test_a_loop_is_divided_by_its_calls_and_its_slowest_rank_counts(one_stack, tmp_path):
    """Rank 1 takes 1 s longer for each call by its clock."""
    late = "*end += program_rank() * 1e9 * made; return faults(calls, pairs, made, round);"
    program = broken(one_stack, tmp_path, "return faults(calls, pairs, made, round);", late)
    for protocol in ("loop", "changing", "work"):
        assert 1e6 <= one_time(one_stack, program, protocol) < 2e6
    assert 1e6 <= one_time(one_stack, program, "barrier") < 2e6


def test_short_calls_are_more_of_a_sample(one_stack, tmp_path):
    """Where 8 calls take 1 ns, a sample has 128, and rank 1 is 128 s late in such samples alone."""
    late = "calls_of_a_sample(1.0); if (made == 128) *end += 128e9 * program_rank();"
    program = broken(one_stack, tmp_path, "calls_of_a_sample(*end - *begin);", late)
    assert 1e6 <= one_time(one_stack, program, "loop") < 2e6


@pytest.mark.long
def test_work_between_calls_does_not_count(one_stack, tmp_path):
    """Work of 0.1 s after each call: the calls still take less, also where ranks wait for a CPU now and then."""
    program = broken(one_stack, tmp_path, "work(agreed->work);", "work(1e8);")
    assert one_time(one_stack, program, "work", "--seconds", "0") < 1e5


def test_sizes_without_time_for_all_calls_have_fewer(one_stack):
    options = ["--operation", "bcast", "--bytes", "8,64", *PATIENT]
    document = one_stack.json(2, "collective", *options, "--seconds", "0")
    assert {item["samples"] for item in document["measurements"] if item["metric"] != "clock_error"} == {6}
    assert of_the_program(document) == [
        "2 of 2 rows have fewer calls than 200, the least 6: 0 s of a size were over (--seconds)"
    ]
    whole = one_stack.json(2, "collective", *options, "--seconds", "1e6", "--repetitions", "7")
    assert {item["samples"] for item in whole["measurements"] if item["metric"] == "time"} == {7}
    assert of_the_program(whole) == []


KEY = 'readlink("/proc/self/ns/time", names, sizeof names - 1)'


def test_windows_that_missed_the_start_give_no_time(one_stack, tmp_path):
    """Rank 1 always starts 100 us late: every window is invalid, and there is nothing to take a median of."""
    late = "for (double from = now; program_rank() && now < from + 1e5;) now = clock_now();"
    program = broken(one_stack, tmp_path, "return now;", f"{late} return now;")
    options = ["--operation", "bcast", "--bytes", "8", "--repetitions", "6", "--late", "10", "--json"]
    done = one_stack.mpirun(2, str(program), *options)
    assert "the launch was disturbed: windows that missed the common start" in done.stderr
    assert "the launch was disturbed: rows with too few valid windows for a median: 1, at most 0" in done.stderr
    assert "the answer is wrong" not in done.stderr
    figures = rows(json_of(done, passes=False))["bcast", 8, "no"]
    assert figures.keys() == {"invalid", "clock_error"}
    assert figures["invalid"] == 100


def two_clocks(folder: Path, program: Path) -> Path:
    """A script that starts ``program`` with the clock of every rank but the first ahead."""
    if shutil.which("unshare") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a time namespace needs root and unshare")
    shift = ["unshare", "--time", "--fork", "--monotonic", str(AHEAD_S)]
    if (tried := ended([*shift, "true"])).returncode:
        pytest.skip(f"no time namespaces here: {tried.stderr.strip()}")
    script = folder / "ahead"
    rank = '"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"'
    script.write_text(f'#!/bin/sh\n[ {rank} = 0 ] && exec {program} "$@"\nexec {" ".join(shift)} {program} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("ranks", [2, 3])
def test_clocks_a_day_apart_are_synchronised(kernel_stack, tmp_path, ranks):
    """Ranks in a time namespace of their own read another clock, as on another host; three ranks are three clocks."""
    program = two_clocks(tmp_path, kernel_stack.programs / "collective")
    options = ["--operation", "allreduce", "--bytes", "8,64K", "--repetitions", "20", *PATIENT]
    document = kernel_stack.json(ranks, str(program), *options)
    assert f"{ranks} clocks, synchronised" in document["notes"][0]
    for figures in rows(document).values():
        assert figures["clock_error"] < 1e6  # 100,000 s were between them
        assert -figures["clock_error"] < figures["time"] < 1e6


def test_ranks_that_seem_to_share_a_clock_and_do_not_are_found(one_stack, tmp_path):
    broken = broken_kernel.build(tmp_path, one_stack, "collective", file="common_clock.c", old=KEY, new="0")
    done = one_stack.mpirun(2, str(two_clocks(tmp_path, broken)), "--operation", "barrier", "--repetitions", "6")
    assert done.returncode == 2, done.stdout + done.stderr
    line = "collective: rank 1 and the first rank of its host read clocks that are at least 1e+14 ns apart"
    assert line in done.stderr


def test_only_an_operation_with_a_block_for_each_rank_has_to_count_them_all(one_stack, tmp_path):
    """Where MPI counted to 1000 instead of 2^31 - 1: 600 elements in one block, and in two."""
    lower = {"file": "collective_call.c", "old": "call.stride > INT_MAX", "new": "call.stride > 1000"}
    program = str(broken_kernel.build(tmp_path, one_stack, "collective", **lower))
    options = ["--bytes", "2400", *TINY]
    done = succeeded(one_stack.mpirun(2, program, "--operation", "bcast", *options))
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


def test_values_of_a_setting_take_turns_in_one_process(racing):
    name, value, env = RACED[racing.name]
    document = json_of(race(racing, 2, value, env))
    found: dict[tuple[int, int], dict[str, float]] = {}
    for item in document["measurements"]:
        key = (item["params"]["bytes"], item["params"][name])
        found.setdefault(key, {})[item["metric"]] = item["value"]
    assert set(found) == {(size, one) for size in (8, 64) for one in (0, 1, value)}
    assert {figures["ratio"] for (_, one), figures in found.items() if one == 0} == {1.0}
    for figures in found.values():
        assert 0 < figures["ratio_low"] <= figures["ratio"] <= figures["ratio_high"]


def test_a_value_is_in_effect_when_it_is_its_turn(racing):
    """An algorithm for two ranks, or for powers of two, ends a program with three ranks."""
    _, value, env = RACED[racing.name]
    assert race(racing, 3, 1, env).returncode == 0
    done = race(racing, 3, value, env)
    assert done.returncode != 0
    assert "MPI_ERR_UNSUPPORTED_OPERATION" in done.stderr or "algorithm is not usable" in done.stderr
