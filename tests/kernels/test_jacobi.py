"""``jacobi``: its decomposition against brute force, the same bits in all modes, faults that its checks find (R8)."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jacobi_split import HIGH, LOW, Split, Triple, hybrid, outcome

MODES = ["pure", "vector", "task-split", "task-tasks", "task-dynamic", "task-nested"]
EXACT, BITS = "distance from the exact solution", "solutions that differ in a bit"
SMALL = ("--size", "13,17,11", "--sweeps", "3", "--repetitions", "1")


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return Split(tmp_path_factory.mktemp("split"))


def surface(points: Triple, parts: Triple) -> int:
    """Points that the largest part sends, counted one by one over its faces."""
    size = [math.ceil(n / p) for n, p in zip(points, parts, strict=True)]
    faces = [size[1] * size[2], size[0] * size[2], size[0] * size[1]]
    return sum(2 * face for face, p in zip(faces, parts, strict=True) if p > 1)


def candidates(points: Triple, ranks: int, least: int) -> list[Triple]:
    """All ways to deal the ranks that leave every part its points."""
    return [
        (x, y, z)
        for x, y, z in itertools.product(range(1, ranks + 1), repeat=3)
        if x * y * z == ranks and all(n // p >= (least if p > 1 else 1) for n, p in zip(points, (x, y, z), strict=True))
    ]


@settings(max_examples=150)
@given(
    points=st.tuples(*[st.integers(1, 40)] * 3),
    ranks=st.one_of(st.integers(1, 24), st.sampled_from([29, 31])),
    least=st.integers(1, 8),
)
def test_parts_have_the_smallest_surface_of_all(split, points, ranks, least):
    found = split.ranks(points, ranks, least)
    possible = candidates(points, ranks, least)
    if not possible:
        assert found is None
        return
    assert found in possible
    best = min(surface(points, parts) for parts in possible)
    ties = [parts for parts in possible if surface(points, parts) == best]
    assert found == max(ties, key=lambda parts: (parts[2], parts[1]))


@settings(max_examples=100)
@given(points=st.integers(1, 200), parts=st.integers(1, 40))
def test_ranges_are_even_and_cover_everything_once(split, points, parts):
    ranges = [split.part(points, parts, part) for part in range(parts)]
    assert [point for item in ranges for point in item] == list(range(points))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@settings(max_examples=60)
@given(parts=st.tuples(*[st.integers(1, 4)] * 3), periodic=st.booleans())
def test_neighbours_know_each_other(split, parts, periodic):
    places = {split.place(parts, rank): rank for rank in range(math.prod(parts))}
    assert set(places) == set(itertools.product(*map(range, parts)))
    for (place, rank), d in itertools.product(places.items(), range(3)):
        moved = list(place)
        moved[d] += 1
        inside = moved[d] < parts[d]
        moved[d] %= parts[d]
        expected = places[moved[0], moved[1], moved[2]] if inside or periodic else -1
        assert split.neighbour(parts, place, d, HIGH, periodic) == expected
        if expected >= 0:
            assert split.neighbour(parts, split.place(parts, expected), d, LOW, periodic) == rank


@pytest.mark.parametrize(("boundary", "cases"), [
    ("periodic", [(1, 3), (2, 2), (4, 1)]),
    pytest.param("fixed", [(1, 1), (3, 3), (5, 1)], marks=pytest.mark.long),
])  # fmt: skip
def test_all_modes_ranks_and_threads_have_the_same_bits(one_stack, boundary, cases):
    outcomes = set()
    for ranks, threads in cases:
        options = ["--boundary", boundary, "--halos", "both"]
        document = one_stack.json(ranks, "jacobi", *SMALL, *options, env=hybrid(threads))
        assert [check["what"] for check in document["checks"]][-1] == "same bits as the serial solver"
        params = [item["params"] for item in document["measurements"]]
        rows = {(one["mode"], one["halos"], one["threads"]) for one in params}
        assert rows == {
            (mode, halos, 1 if mode == "pure" else threads) for mode in MODES for halos in ("blocking", "nonblocking")
        }
        outcomes.add(outcome(document))
    assert len(outcomes) == 1


def test_every_stack_computes_the_same(kernel_stack, one_stack):
    here = kernel_stack.json(3, "jacobi", *SMALL, env=hybrid(2))
    there = one_stack.json(1, "jacobi", *SMALL, "--mode", "pure")
    assert outcome(here) == outcome(there)


@pytest.mark.parametrize(("ranks", "options"), [
    (4, ["--size", "19,23,29", "--stores", "regular", "--block", "3"]),
    (4, ["--size", "70,9,2"]),  # x is split: rows begin and end inside cache lines
    (2, ["--size", "1,1,7", "--boundary", "fixed"]),
    (2, ["--size", "2,1,1"]),
    (3, ["--size-per-rank", "6,5,4"]),
])  # fmt: skip
def test_odd_shapes(one_stack, ranks, options):
    arguments = [*options, "--sweeps", "2", "--repetitions", "1"]
    document = one_stack.json(ranks, "jacobi", *arguments, env=hybrid(2))
    if "--size-per-rank" in options:
        assert document["measurements"][0]["params"]["size"] == "6x5x12"


def test_a_run_below_the_model_says_what_memory_and_the_cores_allow(one_stack):
    document = one_stack.json(1, "jacobi", *SMALL, env=hybrid(2))
    figures = [(item["value"], item["limit"]) for item in document["measurements"] if item["metric"] == "rate"]
    cached = [item["value"] for item in document["measurements"] if item["metric"] == "cached"]
    expected = []
    for mode, (rate, model), cores in zip(MODES, figures, cached, strict=True):
        in_turn = 1 / (1 / model + 1 / cores)
        few = rate >= 0.95 * in_turn and cores >= rate
        cause = "too few cores to hide their own work behind memory" if few else "halos, waiting threads or a disturbed"
        if rate < 0.9 * model:
            expected.append((f"{mode}: {100 * rate / model:.0f} % of the model;", f"other {in_turn:.0f}: {cause}"))
    assert expected, "13 x 17 x 11 points take longer to hand out than to copy"
    found = [remark for remark in document["remarks"] if " of the model; " in remark]
    for remark, (begin, end) in zip(found, expected, strict=True):
        assert remark.startswith(begin)
        assert end in remark


def test_the_model_is_the_bandwidth_over_the_bytes_of_an_update(one_stack):
    for stores, size in (("streaming", 16), ("regular", 24)):
        options = ["--size", "32", "--mode", "pure", "--stores", stores]
        found = {item["metric"]: item for item in one_stack.json(1, "jacobi", *options)["measurements"]}
        assert found["rate"]["limit"] == pytest.approx(found["bandwidth"]["value"] / size, rel=1e-6)
