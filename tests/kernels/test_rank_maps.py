"""``rank_ring`` and ``rank_map``: their counts against a count by brute force, their messages under every stack."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest


def neighbours(position: tuple[int, ...], extent: tuple[int, ...], periodic: bool) -> Iterator[tuple[int, ...]]:
    for axis, step in itertools.product(range(len(extent)), (-1, 1)):
        moved = list(position)
        moved[axis] += step
        if periodic or 0 <= moved[axis] < extent[axis]:
            moved[axis] %= extent[axis]
            yield tuple(moved)


def row_major_bytes(extent: tuple[int, ...], per_node: int, face: int, periodic: bool) -> tuple[int, int]:
    """Bytes between nodes and of the busiest node when positions are dealt in row-major order."""
    positions = list(itertools.product(*map(range, extent)))
    node = {position: rank // per_node for rank, position in enumerate(positions)}
    sent = dict.fromkeys(node.values(), 0)
    for position in positions:
        for other in neighbours(position, extent, periodic):
            sent[node[position]] += face * (node[other] != node[position])
    return sum(sent.values()), max(sent.values())


def dims(document: dict[str, Any]) -> tuple[int, ...]:
    """The grid that the kernel's note tells."""
    words = document["notes"][0].split("grid of ")[1].split(" ranks")[0]
    return tuple(int(word) for word in words.split(" x "))


def of(document: dict[str, Any], metric: str, name: str) -> float:
    (value,) = [
        item["value"] for item in document["measurements"] if item["metric"] == metric and item["params"]["map"] == name
    ]
    return value


@pytest.mark.parametrize(
    ("ranks", "per_node", "dimensions", "periodic"),
    [(64, 8, 3, False), (64, 4, 3, False), (64, 8, 3, True), (512, 8, 3, False), (512, 4, 3, False), (60, 7, 2, True),
     (13, 4, 3, False), (36, 12, 2, False), (2, 1, 3, True), (1000, 48, 3, False)],
)  # fmt: skip
def test_bytes_between_nodes_are_those_of_a_brute_force_count(one_stack, ranks, per_node, dimensions, periodic):
    options = ["--periodic"] if periodic else []
    options += ["--plan", str(ranks), "--ranks-per-node", str(per_node), "--dimensions", str(dimensions)]
    document = one_stack.json(1, "rank_map", "--cells", "10", *options)
    extent = dims(document)[:dimensions]
    assert math.prod(extent) == ranks
    total, busiest = row_major_bytes(extent, per_node, 8 * 10 ** (dimensions - 1), periodic)
    assert of(document, "between_nodes", "row-major") == total
    assert of(document, "busiest_node", "row-major") == busiest
    assert of(document, "between_nodes", "node-aware") <= total


def test_as_many_nodes_as_an_option_takes(one_stack):
    """One step for each node and rank, 10^12, would take an hour."""
    options = ["--plan", "1000000", "--ranks-per-node", "1", "--cells", "10"]
    document = one_stack.json(1, "rank_map", *options)
    assert dims(document) == (100, 100, 100)
    # Every face goes to another node: 99 planes in each of 3 dimensions are crossed, 10^4 faces each, both ways.
    assert of(document, "between_nodes", "row-major") == 3 * 99 * 10_000 * 2 * 800


def test_nested_blocks_are_the_best_that_8_ranks_a_node_can_do(one_stack):
    options = ["--plan", "512", "--ranks-per-node", "8", "--cells", "10"]
    document = one_stack.json(1, "rank_map", *options)
    # An 8x8x8 grid in 2x2x2 blocks: 3 planes in each of 3 dimensions are crossed, 64 faces each, both ways.
    assert of(document, "between_nodes", "node-aware") == 3 * 3 * 64 * 2 * 800
    assert "nested blocks" in document["notes"][0]


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_every_map_delivers_every_face(kernel_stack, ranks):
    options = ["--cells", "4", "--repetitions", "2", "--ranks-per-node", "2", "--periodic"]
    document = kernel_stack.json(ranks, "rank_map", *options)
    assert {item["params"]["map"] for item in document["measurements"]} == {"row-major", "cart", "node-aware"}


@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_the_ring_is_on_one_node_where_it_can_be(kernel_stack, ranks):
    options = ["--bytes", "1K", "--repetitions", "2", "--iterations", "2"]
    document = kernel_stack.json(ranks, "rank_ring", "--ranks-per-node", str(ranks // 2 or 1), *options)
    assert of(document, "between_nodes", "node-aware") <= of(document, "between_nodes", "given")
    for name in ("given", "node-aware"):
        least, mean, most = (of(document, f"in_mpi{part}", name) for part in ("_least", "", "_most"))
        assert 0 < least <= mean <= most <= 100
        (said,) = (text for text in document["remarks"] if text.startswith(f"map {name}: percent of the time in MPI"))
        by_rank = [float(word) for word in said.rpartition(":")[2].split()]
        assert (len(by_rank), min(by_rank)) == (ranks, pytest.approx(least, abs=0.06))
        assert max(by_rank) == pytest.approx(most, abs=0.06)


def test_the_ring_counts_the_grid_of_the_seed_document(one_stack):
    """8 ranks as 4 x 2 on 2 nodes: given, every message crosses; node-aware, none does."""
    options = ["--bytes", "1K", "--repetitions", "1", "--iterations", "1", "--ranks-per-node", "4"]
    document = one_stack.json(8, "rank_ring", *options)
    assert of(document, "between_nodes", "given") == 8 * 1024
    assert of(document, "between_nodes", "node-aware") == 0
