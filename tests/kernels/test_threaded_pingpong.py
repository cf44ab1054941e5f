"""``threaded_pingpong``: where the calls may be made, what the table holds, and what is refused (experiment T5)."""

import os
import subprocess

import pytest
from processes import succeeded
from witness_helper import PROGRAMS, compile_c

from plumbline.stacks import kernels, manifest

SMALL = ("--bytes", "2K", "--repetitions", "3", "--messages", "4", "--json")
#: mode -> the thread level that it needs
NEEDS = {"serial": "funneled", "one": "funneled", "ordered": "serialized", "concurrent": "multiple"}


def rows(document: dict, operation: str) -> list[dict]:
    return [item["params"] for item in document["measurements"] if item["params"]["operation"] == operation]


def test_all_modes_run_and_every_message_arrives(kernel_stack):
    document = kernel_stack.json(2, "threaded_pingpong", *SMALL, threads=2)
    partitioned = int(document["mpi"]["standard"].split(".")[0]) >= 4
    expected = {*NEEDS, *(["partitioned"] if partitioned else [])}
    assert {row["mode"] for row in rows(document, "pingpong")} == expected
    assert any("partitioned left out" in note for note in document["notes"]) is not partitioned
    assert {(row["mode"], row["threads"]) for row in rows(document, "broadcast")} == {
        ("serial", 1), ("one", 1), ("one", 2)
    }  # fmt: skip
    times = rows(document, "message")  # two figures for each message
    assert len(times) == 2 * 4 * (1 + 2 + 2 + 2)
    assert {row["message"] for row in times} == {0, 1, 2, 3}


def test_the_first_exchange_is_that_of_the_mode_and_on_all_threads(one_stack):
    options = (*SMALL, "--mode", "ordered", "--first")
    document = one_stack.json(2, "threaded_pingpong", *options, threads=2)
    assert {(row["mode"], row["threads"]) for row in rows(document, "pingpong")} == {("ordered", 2)}
    assert {item["metric"] for item in document["measurements"]}.isdisjoint({"efficiency"})
    assert [row["message"] for row in rows(document, "message")] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("options", "words"), [((), 256), (("--first",), 64)])
def test_without_first_a_large_message_comes_before(one_stack, tmp_path, options, words):
    library = tmp_path / "first.so"
    compiler = str(kernels.wrapper(one_stack.manifest))
    environment = {**os.environ, **manifest.environment(one_stack.manifest, os.environ)}
    build = [compiler, "-shared", "-fPIC", "-o", str(library), str(PROGRAMS / "first_message.c")]
    subprocess.run(build, check=True, env=environment)
    asked = (*SMALL, "--mode", "ordered", *options)
    done = succeeded(one_stack.mpirun(2, "threaded_pingpong", *asked, env={"LD_PRELOAD": str(library)}))
    assert f"first: {words} words" in done.stderr


def test_open_mpi_3_1_refuses_partitioned_in_one_line(each_stack):
    done = each_stack.mpirun(2, "threaded_pingpong", *SMALL, "--mode", "partitioned")
    if each_stack.manifest.mpi.family == "openmpi":
        assert done.returncode == 2
        said = [line for line in done.stderr.splitlines() if line.startswith("threaded_pingpong: ")]
        assert said == [
            "threaded_pingpong: --mode partitioned: this MPI library has no partitioned communication (MPI 4.0)"
        ]
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("level", ["funneled", "serialized"])
def test_a_level_leaves_out_the_modes_that_need_more(one_stack, level):
    document = one_stack.json(2, "threaded_pingpong", *SMALL, "--level", level)
    assert document["mpi"]["thread_level"] in (level, "serialized", "multiple")  # a library may give more
    allowed = {"funneled": {"serial", "one"}, "serialized": {"serial", "one", "ordered"}}[level]
    assert {row["mode"] for row in rows(document, "pingpong")} == allowed
    assert any(f"concurrent left out: it needs thread level {NEEDS['concurrent']}" in n for n in document["notes"])


def test_a_library_that_gives_a_lower_level_is_refused(one_stack, tmp_path):
    library = compile_c(tmp_path, "lower_thread_level.c", "-shared", "-fPIC")
    done = one_stack.mpirun(2, "threaded_pingpong", *SMALL, env={"LD_PRELOAD": str(library)})
    said = [line for line in done.stderr.splitlines() if line.startswith("threaded_pingpong: ")]
    assert done.returncode == 2, done.stderr
    assert len(said) == 1
    assert "the MPI library gives thread level 'funneled', 'multiple' is needed" in said[0]
