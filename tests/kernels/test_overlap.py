"""``overlap``: the methods, the bounds of the figure, and the checks of message and work (experiment R5)."""

import math

SMALL = ("--bytes", "8,64K", "--work", "50,100", "--repetitions", "3")
TINY = ("--bytes", "8K", "--repetitions", "1")
METHODS = {"none", "test", "thread", "task"}


def overlaps(document: dict) -> list[dict]:
    return [item for item in document["measurements"] if item["metric"] == "overlap"]


def test_all_methods_in_both_directions(kernel_stack):
    document = kernel_stack.json(2, "overlap", *TINY, threads=2)
    assert document["mpi"]["thread_level"] == "multiple"
    found = overlaps(document)
    assert {(item["params"]["mode"], item["params"]["direction"]) for item in found} == {
        (mode, direction) for mode in METHODS for direction in ("isend", "irecv")
    }
    assert all(0 <= item["value"] <= item["limit"] == 100 for item in found)


def test_the_figure_is_what_its_definition_makes_of_the_times(one_stack):
    document = one_stack.json(2, "overlap", *SMALL, "--mode", "test")
    assert {(item["params"]["bytes"], item["params"]["work"]) for item in overlaps(document)} == {
        (size, work) for size in (8, 65536) for work in (50, 100)
    }
    times: dict[str, dict[str, float]] = {}
    for item in document["measurements"]:
        times.setdefault(str(item["params"]), {})[item["metric"]] = item["value"]
    for row in times.values():
        hidden = row["communication"] + row["computation"] - row["total"]
        expected = 100 * hidden / min(row["communication"], row["computation"])
        assert math.isclose(row["overlap"], min(100.0, max(0.0, expected)), abs_tol=1e-6)


def test_one_thread_leaves_out_what_needs_two(one_stack):
    document = one_stack.json(2, "overlap", *TINY)
    assert {item["params"]["mode"] for item in overlaps(document)} == {"none", "test"}
    assert any("thread and task left out" in note for note in document["notes"])
