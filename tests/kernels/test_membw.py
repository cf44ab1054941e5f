"""``membw``: its rows, what it counts, and the checks of STREAM's rule (items U1, STREAM)."""

import broken_kernel
import pytest

TINY = ("--size", "64K", "--repetitions", "3")
#: bytes per element that STREAM counts, and those that a regular store moves more
COUNTED = {
    "copy": (16, 8), "scale": (16, 8), "add": (24, 8), "triad": (24, 8), "daxpy": (24, 0), "triad5": (40, 8),
    "store": (8, 8), "load": (8, 0), "sum": (8, 0),
}  # fmt: skip


def rows(document: dict) -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for item in document["measurements"]:
        place = item["params"]["kernel"], item["params"]["mode"]
        found.setdefault(place, {})[item["metric"]] = item["value"]
    return found


def test_every_kernel_with_every_store(kernel_stack):
    document = kernel_stack.json(2, "membw", *TINY, threads=2)
    found = rows(document)
    modes = {mode for _, mode in found} - {"loads"}
    assert modes in ({"regular"}, {"regular", "streaming"})
    writing = [kernel for kernel in COUNTED if kernel not in ("load", "sum")]
    assert set(found) == {(k, m) for k in writing for m in modes} | {("load", "loads"), ("sum", "loads")}
    for (kernel, mode), row in found.items():
        counted, more = COUNTED[kernel]
        moved = counted + (more if mode == "regular" else 0)
        assert row["traffic"] == pytest.approx(row["bandwidth"] * moved / counted)
        assert row["bandwidth"] >= row["bandwidth_mean"] > 0
    fastest = max(row["bandwidth"] for row in found.values())
    limits = {item["limit"] for item in document["measurements"] if item["metric"] == "bandwidth"}
    assert limits == {fastest}


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (1, 3), (3, 2), (5, 1)])
def test_any_division_of_odd_sizes_is_right(one_stack, ranks, threads):
    options = ("--size", "12345", "--repetitions", "2")
    document = one_stack.json(ranks, "membw", *options, threads=threads)
    sweeps = {item["params"]["kernel"]: item["params"]["working_set"] for item in document["measurements"]}
    elements = 25 * 512 * ranks  # whole pages
    assert sweeps["triad"] == 24 * elements
    assert sweeps["daxpy"] == 16 * elements


def test_one_kernel_alone_takes_three_arrays(one_stack):
    document = one_stack.json(1, "membw", *TINY, "--kernels", "triad", "--stores", "regular")
    assert list(rows(document)) == [("triad", "regular")]
    assert len(document["checks"]) == 3
    assert all(item["limit"] is None for item in document["measurements"])


def test_small_arrays_are_not_called_memory(one_stack):
    document = one_stack.json(1, "membw", *TINY)
    assert any("smaller than 4 x the last-level caches" in note for note in document["notes"])


def test_the_arrays_of_each_node_are_compared_with_its_caches(one_stack, tmp_path):
    """Two nodes of one rank, whose parts of an array together exceed four times the caches of one node."""
    if one_stack.manifest.mpi.family != "mpich":
        pytest.skip("of these libraries only MPICH counts ranks of one host as different nodes")
    caches = {"old": "(double)all_last_caches_bytes()", "new": "200000.0"}  # an array of a rank has 524288 bytes
    program = str(broken_kernel.build(tmp_path, one_stack, "membw", file="membw.c", **caches))
    for apart, noted in (("1", True), ("0", False)):
        document = one_stack.json(2, program, *TINY, env={"MPIR_CVAR_NOLOCAL": apart})
        assert any("smaller than 4 x the last-level caches" in note for note in document["notes"]) is noted


def test_bounds_are_the_fastest_kernels_of_one_launch(one_stack):
    document = one_stack.json(1, "membw", *TINY, "--kernels", "bounds")
    assert {kernel for kernel, _ in rows(document)} == {"copy", "triad", "load"}


def test_one_thread_alone_gives_the_saturation(one_stack):
    """Of two ranks too, the answers being checked as ever; not of a kernel that changes what it reads."""
    document = one_stack.json(2, "membw", *TINY, "--kernels", "stream", "--alone", threads=2)
    assert all(0.0 < row["saturation"] < 100.0 for row in rows(document).values())
    (one,) = rows(one_stack.json(1, "membw", *TINY, "--kernels", "sum", "--alone", threads=1)).values()
    assert 0.05 < one["saturation"] < 20.0
    plain = rows(one_stack.json(1, "membw", *TINY, "--kernels", "sum"))
    assert "saturation" not in plain["sum", "loads"]
