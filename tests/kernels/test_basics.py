"""The runtime that every kernel shares, seen through ``pi``, and ``heat1d``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kernel_stack import JsonOf, KernelStack

from plumbline.parsers import parse
from plumbline.parsers.measurement import ParseError
from plumbline.records import model
from plumbline.show import record as show


def test_help_names_every_option_the_method_and_the_figure(one_stack: KernelStack) -> None:
    done = one_stack.mpirun(2, "pi", "--help")
    assert done.returncode == 0
    assert done.stdout.count("usage: mpirun") == 1  # one rank speaks
    for word in ("--intervals", "--repetitions", "--json", "default 5", "time: ", "Exit status"):
        assert word in done.stdout
    assert "per second" not in done.stdout  # pi prints no rate


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--intervals", "0"], "pi: --intervals: '0' is not a size such as 4096 or 64M, from 1 to 1e+12"),
        (["--intervals", "-5"], "pi: --intervals: '-5' is not a size"),
        (["--intervals", "12X"], "pi: --intervals: '12X' is not a size"),
        (["--intervals", "99999999999999999999999"], "is not a size"),
        (["--intervals", "18446744073709551617"], "is not a size"),  # 2^64 + 1: not 1
        (["--intervals", "17179869185G"], "is not a size"),  # (2^34 + 1) GiB: not 1 GiB
        (["--repetitions", "2.5"], "pi: --repetitions: '2.5' is not a whole number from 1 to 1000000"),
        (["--repetitions"], "pi: --repetitions: '' is not a whole number"),
        (["--speed"], "pi: unknown option '--speed': see --help"),
    ],
)
def test_bad_options_end_all_ranks_with_one_line(kernel_stack: KernelStack, arguments: list[str], line: str) -> None:
    done = kernel_stack.mpirun(2, "pi", *arguments)
    assert done.returncode == 2
    said = [text for text in done.stderr.splitlines() if text.startswith("pi: ")]
    assert len(said) == 1
    assert line in said[0]
    assert "passed" not in done.stdout


def test_a_size_needs_no_unit(one_stack: KernelStack, json_of: JsonOf) -> None:
    document = json_of(one_stack.mpirun(1, "pi", "--intervals", "200000001", "--repetitions", "1", "--json"))
    assert document["arguments"]["intervals"] == "200000001"


@pytest.mark.parametrize(
    ("ranks", "command"),
    [
        (1, "false_sharing"),
        (1, "handover"),
        (1, "jacobi_temporal --size 16 --depth 2"),
        (1, "loop_schedule"),
        (2, "overlap --mode task --bytes 8"),
        (2, "saturation --by threads --bytes 8"),
        (2, "threaded_pingpong --bytes 1K"),
    ],
)
def test_threads_that_the_openmp_library_does_not_give_are_one_line(
    one_stack: KernelStack, ranks: int, command: str
) -> None:
    program, *options = command.split()
    done = one_stack.mpirun(ranks, program, *options, env={"OMP_NUM_THREADS": "2", "OMP_THREAD_LIMIT": "1"})
    assert done.returncode == 2, done
    assert done.stderr.count(f"{program}: 2 threads asked, the OpenMP library gives 1: see OMP_THREAD_LIMIT") == 1


def test_threads_that_wait_for_each_other_are_there_although_openmp_may_give_fewer(
    one_stack: KernelStack, json_of: JsonOf
) -> None:
    environment = {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "true"}
    assert json_of(one_stack.mpirun(2, "handover", "--repetitions", "2", "--json", env=environment))["passed"]


def test_zero_threads_are_refused(one_stack: KernelStack) -> None:
    done = one_stack.mpirun(2, "pi", "--intervals", "100", env={"OMP_NUM_THREADS": "0"})
    assert done.returncode == 2
    assert "OMP_NUM_THREADS: '0' is not a whole number of at least 1" in done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_pi_is_right_and_reports_itself(kernel_stack: KernelStack, json_of: JsonOf, ranks: int) -> None:
    done = kernel_stack.mpirun(ranks, "pi", "--intervals", "1M", "--json", env={"OMP_NUM_THREADS": "2"})
    document = json_of(done)
    assert document["passed"]
    assert document["ranks"] == ranks == len(document["binding"])
    assert all(len(item["cpus"].split()) == 2 for item in document["binding"])
    assert document["arguments"]["intervals"] == "1M"
    assert document["remarks"] == ["pi = 3.141592653590"]
    assert 0 < document["timer"]["resolution_ns"] < 1e5
    (found,) = parse("kernel", done.stdout, {"kernel": "pi", "ranks": ranks, "threads": 2})
    assert found.unit == "us"
    with pytest.raises(ParseError, match=f"ran with ranks = {ranks}"):
        parse("kernel", done.stdout, {"ranks": ranks + 1})


@pytest.mark.e2e
def test_a_record_shows_pi(one_stack: KernelStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = one_stack.record(
        tmp_path, monkeypatch, "pi", arguments=["--intervals", "100M", "--json"], ranks_per_node=1,
        figures=[{"name": "time", "metric": "time", "where": {}}],
    )  # fmt: skip
    assert "\npi = 3.141592653590\n" in show.text(model.convert(record))


def test_table_is_for_people(one_stack: KernelStack) -> None:
    lines = one_stack.mpirun(1, "pi", "--intervals", "1K").stdout.splitlines()
    assert re.fullmatch(r"1 rank x 1 thread on \S+; timer \S+, resolution [\d.]+ ns", lines[1])
    assert any(re.fullmatch(r"intervals  +time us", line) for line in lines)
    assert "pi = 3.141592733063" in lines  # 1/(12 n^2) too much
    assert re.fullmatch(r"check: pi: right \(error \S+, tolerance \S+\)", lines[-1])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_heat_has_its_published_values_on_any_number_of_ranks(
    kernel_stack: KernelStack, json_of: JsonOf, ranks: int
) -> None:
    document = json_of(kernel_stack.mpirun(ranks, "heat1d", "--repetitions", "3", "--json"))
    assert document["passed"]
    values = [float(note.split("=")[1]) for note in document["notes"]]
    published = [0.307205621017285, 0.584339815421976, 0.804274757358271, 0.945481682332598, 0.994138272681972]
    assert values == pytest.approx(published, abs=1e-15)


def test_the_abi_build_is_one_file_for_every_library_that_has_the_abi(each_stack: KernelStack) -> None:
    if each_stack.manifest.mpi.family == "openmpi":
        assert "pi-abi" not in each_stack.manifest.benchmarks
        return
    program = each_stack.manifest.benchmarks["pi-abi"].file
    done = each_stack.mpirun(2, program, "--intervals", "1K", "--json")
    assert done.returncode == 0
    family = {"mpich": "MPICH", "intelmpi": "Intel(R) MPI"}[each_stack.manifest.mpi.family]
    assert f'"library":"{family}' in done.stdout
