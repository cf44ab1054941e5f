"""``threaded_pingpong``: where the calls may be made, what the table holds, and what is refused (experiment T5)."""

import os
import subprocess

import pytest
from processes import succeeded

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


#: says how long the first message of rank 0 is
FIRST = """
#include <mpi.h>
#include <stdio.h>
int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    static int sent;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && sent++ == 0)
        fprintf(stderr, "first: %d words\\n", count);
    return PMPI_Send(data, count, type, to, tag, comm);
}
"""


@pytest.mark.parametrize(("options", "words"), [((), 256), (("--first",), 64)])
def test_without_first_a_large_message_comes_before(one_stack, tmp_path, options, words):
    (tmp_path / "first.c").write_text(FIRST)
    library = tmp_path / "first.so"
    compiler = str(kernels.wrapper(one_stack.manifest))
    environment = {**os.environ, **manifest.environment(one_stack.manifest, os.environ)}
    build = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "first.c")]
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


#: An MPI library that gives no more than FUNNELED, made of one that gives more.
LESS = """
int PMPI_Init_thread(int *, char ***, int, int *);
int MPI_Init_thread(int *count, char ***words, int wanted, int *given) {
    int status = PMPI_Init_thread(count, words, wanted, given);
    *given = 1;
    return status;
}
"""


def test_a_library_that_gives_a_lower_level_is_refused(one_stack, tmp_path):
    (tmp_path / "less.c").write_text(LESS)
    library = tmp_path / "less.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "less.c"], check=True)
    done = one_stack.mpirun(2, "threaded_pingpong", *SMALL, env={"LD_PRELOAD": str(library)})
    said = [line for line in done.stderr.splitlines() if line.startswith("threaded_pingpong: ")]
    assert done.returncode == 2, done.stderr
    assert len(said) == 1
    assert "the MPI library gives thread level 'funneled', 'multiple' is needed" in said[0]
