"""What is said of maps of ranks to nodes."""

import pytest
from samples import launch, record, variant

from plumbline.records.model import Record, convert
from plumbline.show import record as show
from plumbline.show.record import map_remarks
from plumbline.show.report.findings import Campaign, maps_of_ranks


def counted(nodes: int = 2, **sent: int) -> Record:
    """A record of a test that counted the bytes between nodes of each map."""
    figures = [{"name": name, "metric": "between_nodes", "where": {"map": name}} for name in sent]
    rows = [
        {"metric": "between_nodes", "value": value, "unit": "bytes", "better": "lower", "params": {"map": name},
         "iterations": 1}
        for name, value in sent.items()
    ]  # fmt: skip
    document = record(variant=variant(test="rank_ring", figures=figures), launches=[launch(0, 1.0, measurements=rows)])
    document["placement"] |= {"nodes": nodes}
    return convert(document)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"given": 400, "aware": 100}, ["map given sends 4.000 times the bytes of the best map (aware) between nodes"]),
        ({"given": 2048, "aware": 0}, ["map given sends 2 KiB between nodes, the best map (aware) nothing"]),
        ({"given": 0, "aware": 0}, ["map given is the best map: 0 B between nodes"]),
        ({"given": 100, "cart": 150},
         ["map given is the best map: 100 B between nodes",
          "map cart sends 1.500 times the bytes of the best map (given) between nodes"]),
    ],
)  # fmt: skip
def test_each_map_is_held_against_the_best(sent, expected):
    one = counted(**sent)
    assert map_remarks(one) == expected
    assert set(expected) <= set(show.text(one).splitlines())


def test_on_one_node_no_map_has_a_cost():
    assert map_remarks(counted(nodes=1, given=400, aware=100)) == []


def test_the_report_says_what_a_map_costs_once():
    records = [counted(given=400, aware=100), counted(given=400, aware=100), counted(given=1, aware=1)]
    found = list(maps_of_ranks(Campaign([(one, number) for number, one in enumerate(records)])))
    cost = "map given sends 4.000 times the bytes of the best map (aware) between nodes"
    expected = f"rank_ring (compact 2 nodes 1x2 local): {cost}"
    assert [(one.text, one.entry) for one in found] == [(expected, 0)]
