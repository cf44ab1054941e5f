"""``halo_layers``: its model against points that are counted one by one, and its bad input (experiment R9)."""

from itertools import product

import pytest

LATENCY_S, BANDWIDTH, RATE = 2e-6, 3e9, 1e9


def swept(edge: int, layers: int) -> int:
    """Updates of a pass: in each sweep the points whose neighbours are all still right are counted."""
    right = set(product(range(-layers, edge + layers), repeat=3))
    count = 0
    for _ in range(layers):
        right = {
            (x, y, z)
            for x, y, z in right
            if {(x - 1, y, z), (x + 1, y, z), (x, y - 1, z), (x, y + 1, z), (x, y, z - 1), (x, y, z + 1)} <= right
        }
        count += len(right)
    return count


def seconds(edge: int, layers: int, latency_s: float) -> float:
    """Of one exchange along x, y and z, and of the sweeps of a pass."""
    halo = len(set(product(range(-layers, edge + layers), repeat=3)) - set(product(range(edge), repeat=3)))
    return 3 * latency_s + 8 * halo / BANDWIDTH + swept(edge, layers) / RATE


@pytest.mark.parametrize(("edge", "layers"), [(8, 1), (8, 2), (8, 4), (16, 4)])
def test_gains_are_those_of_points_counted_one_by_one(one_stack, edge, layers):
    document = one_stack.json(1, "halo_layers", "--edges", str(edge))
    found = {row["metric"]: row["value"] for row in document["measurements"] if row["params"]["layers"] == layers}
    for name, latency_s in (("gain", LATENCY_S), ("gain_bandwidth", 0.0)):
        expected = layers * seconds(edge, 1, latency_s) / seconds(edge, layers, latency_s)
        assert found[name] == pytest.approx(expected, rel=1e-9)
    own = layers * edge**3
    assert found["repeated"] == pytest.approx(100 * (swept(edge, layers) - own) / own, rel=1e-9)


def test_latency_alone_makes_layers_gain(one_stack):
    slow = one_stack.json(1, "halo_layers", "--edges", "8", "--latency", "1e6")
    gains = [row["value"] for row in slow["measurements"] if row["metric"] == "gain"]
    assert gains == pytest.approx([1, 2, 4, 8], rel=1e-3)
