"""``saturation``: who sends, what arrives, and what is counted, under every stack."""

from typing import Any

import pytest

SMALL = ("--bytes", "8,4K", "--windows", "2", "--repetitions", "2")


def rows(document: dict[str, Any], metric: str) -> dict[tuple[Any, ...], float]:
    """Figures of one kind by size and number of active ones, if the row has one."""
    found = [item for item in document["measurements"] if item["metric"] == metric]
    return {(item["params"]["bytes"], item["params"].get("active")): item["value"] for item in found}


def test_ranks_of_two_nodes_join_one_after_the_other(kernel_stack):
    document = kernel_stack.json(8, "saturation", "--ranks-per-node", "4", *SMALL)
    bandwidths = rows(document, "bandwidth")
    assert list(bandwidths) == [(size, active) for size in (8, 4096) for active in (1, 2, 4)]
    for size in (8, 4096):
        of_size = [value for (bytes_, _), value in bandwidths.items() if bytes_ == size]
        assert rows(document, "one")[size, None] == of_size[0]
        assert rows(document, "best")[size, None] == max(of_size)
        enough = [
            active for (bytes_, active), value in bandwidths.items() if bytes_ == size and value >= 0.95 * max(of_size)
        ]
        assert rows(document, "needed")[size, None] == enough[0]
        assert 0 <= rows(document, "overlap")[size, None] <= 100
        assert rows(document, "both")[size, None] > 0


@pytest.mark.parametrize(("ranks", "nodes", "seats"), [
    *((4, 1, 2), (2, 2, 1), (3, 1, 1)),
    *(pytest.param(*three, marks=pytest.mark.long) for three in ((2, 1, 1), (8, 4, 2), (6, 3, 2))),
])  # fmt: skip
def test_both_ways_between_halves_of_a_node_and_pairs_of_nodes(one_stack, ranks, nodes, seats):
    document = one_stack.json(ranks, "saturation", "--ranks-per-node", str(ranks // nodes), "--both-ways", *SMALL)
    assert max(active for _, active in rows(document, "bandwidth")) == seats
    assert bool(rows(document, "overlap")) == (nodes > 1 and seats % 2 == 0)
    assert any("no overlap" in note for note in document["notes"]) != bool(rows(document, "overlap"))


def test_threads_send_at_the_same_time(kernel_stack):
    document = kernel_stack.json(2, "saturation", "--by", "threads", *SMALL, threads=3)
    assert list(rows(document, "bandwidth")) == [(size, active) for size in (8, 4096) for active in (1, 2, 3)]
    assert {item["params"]["by"] for item in document["measurements"]} == {"threads"}


@pytest.mark.parametrize(
    ("seconds", "samples", "cut"), [("0", {2}, "5 of 5 figures"), ("1e6", {3}, "")], ids=["slow", "fast"]
)
def test_a_network_without_time_for_all_windows_is_measured_by_fewer(one_stack, seconds, samples, cut):
    options = ["--ranks-per-node", "2", "--bytes", "64", "--windows", "5", "--repetitions", "3", "--seconds", seconds]
    document = one_stack.json(4, "saturation", *options)
    assert {item["samples"] for item in document["measurements"]} == samples
    assert [remark[: len(cut)] for remark in document["remarks"]] == ([cut] if cut else [])
