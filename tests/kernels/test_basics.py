"""The runtime that every kernel shares, seen through ``pi``, and ``heat1d``."""

import re

import pytest
from kernel_stack import json_of
from processes import succeeded

from plumbline.parsers import parse
from plumbline.parsers.measurement import ParseError
from plumbline.records import model
from plumbline.show import record as show


def test_help_names_every_option_the_method_and_the_figure(one_stack):
    done = succeeded(one_stack.mpirun(2, "pi", "--help"))
    assert done.stdout.count("usage: mpirun") == 1  # one rank speaks
    for word in ("--intervals", "--repetitions", "--json", "default 5", "time: ", "Exit status"):
        assert word in done.stdout
    assert "per second" not in done.stdout  # pi prints no rate


def test_a_size_needs_no_unit(one_stack):
    document = one_stack.json(1, "pi", "--intervals", "200000001", "--repetitions", "1")
    assert document["arguments"]["intervals"] == "200000001"


def test_threads_that_wait_for_each_other_are_there_although_openmp_may_give_fewer(one_stack):
    environment = {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "true"}
    one_stack.json(2, "handover", "--repetitions", "2", env=environment)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_pi_is_right_and_reports_itself(kernel_stack, ranks):
    done = kernel_stack.mpirun(ranks, "pi", "--intervals", "1M", "--json", threads=2)
    document = json_of(done)
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
def test_a_record_shows_pi(one_stack, tmp_path, monkeypatch):
    record = one_stack.record(tmp_path, monkeypatch, "pi", arguments=["--intervals", "100M", "--json"])
    assert "\npi = 3.141592653590\n" in show.text(model.convert(record))


def test_table_is_for_people(one_stack):
    lines = one_stack.mpirun(1, "pi", "--intervals", "1K").stdout.splitlines()
    assert re.fullmatch(r"1 rank x 1 thread on \S+; timer \S+, resolution [\d.]+ ns", lines[1])
    assert any(re.fullmatch(r"intervals  +time us", line) for line in lines)
    assert "pi = 3.141592733063" in lines  # 1/(12 n^2) too much
    assert re.fullmatch(r"check: pi: right \(error \S+, tolerance \S+\)", lines[-1])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_heat_has_its_published_values_on_any_number_of_ranks(kernel_stack, ranks):
    document = kernel_stack.json(ranks, "heat1d", "--repetitions", "3")
    values = [float(note.split("=")[1]) for note in document["notes"]]
    published = [0.307205621017285, 0.584339815421976, 0.804274757358271, 0.945481682332598, 0.994138272681972]
    assert values == pytest.approx(published, abs=1e-15)


def test_the_abi_build_is_one_file_for_every_library_that_has_the_abi(each_stack):
    if each_stack.manifest.mpi.family == "openmpi":
        assert "pi-abi" not in each_stack.manifest.benchmarks
        return
    program = each_stack.manifest.benchmarks["pi-abi"].file
    done = succeeded(each_stack.mpirun(2, program, "--intervals", "1K", "--json"))
    family = {"mpich": "MPICH", "intelmpi": "Intel(R) MPI"}[each_stack.manifest.mpi.family]
    assert f'"library":"{family}' in done.stdout
