"""Thread counts and pairs that a test's parameters are made from."""

import pytest

from plumbline import paths
from plumbline.topology import counts, machine


@pytest.mark.parametrize(
    ("site", "partition", "pairs"),
    [
        ("rrze-woodcrest", "e5420", ["pair:0,2"]),  # an L2 for every two cores, four cores a package
        ("rrze-woodcrest", "q9550", ["pair:0,2"]),
        ("rrze-woodcrest", "woodcrest", []),  # one shared L2 a package
        ("rrze-nehalem", "ep", []),  # an L3 a package: pair:l3 and pair:socket say it
        ("ranger", "normal", []),  # no cache is shared
    ],
)
def test_pairs_that_share_no_cache_where_their_neighbours_do(site, partition, pairs):
    node = machine.load(paths.sites() / site / "topology" / f"{partition}.xml")
    assert counts.unshared_pairs([node, node]) == pairs
