"""Physical limits: each peak from its facts, no limit without them, and what each metric is held against."""

import pytest
from plans import typed
from samples import plan

from plumbline.base.schemas.site import Facts
from plumbline.host import limits, machine

TOPOLOGIES = __file__.rpartition("/unit/")[0] + "/data/topologies"
#: 2 packages: 102400 MB/s; 20 cores: 3200 GFlop/s, 2560000 MB/s from first-level caches
FACTS = {
    "memory_channels_per_package": 2,
    "memory_mts": 3200,
    "core_ghz": 2.0,
    "fma_units": 2,
    "simd_bits": 512,
    "cache_bytes_per_cycle": 64,
    "link_gbit": 100,
}
CACHE = 50_000_000


def limit(metric, facts=FACTS, packages=2.0, nodes=1, directions=1, *, unit="MB/s", working_set=None, message=True):
    params = {} if working_set is None else {"working_set": working_set}
    used = limits.Resources(nodes, packages and packages * nodes, 20 * nodes, CACHE * nodes)
    found = limits.of(limits.Quantity(metric, unit, params, directions, message), Facts(**facts), used)
    return found and (found.value, found.unit)


@pytest.mark.parametrize(("metric", "unit", "expected"), [
    ("triad", "MB/s", (102400.0, "MB/s")),
    ("rate", "GFlop/s", (1280.0, "GFlop/s")),
    ("overlap", "%", (100.0, "%")),
    ("efficiency", "%", (100.0, "%")),
    ("percent_peak", "%", (100.0, "%")),
    ("efficiency", "1", None),  # a ratio may be better than one
    ("overlapping", "%", None),
    ("rate", "MLUP/s", None),  # how many bytes an update takes, only its kernel knows
    ("bandwidth", "MB/s", None),  # of a message inside a node: through caches nobody knows
    ("latency", "us", None),  # a shortest time is no limit
])  # fmt: skip
def test_what_a_metric_is_held_against(metric, unit, expected):
    assert limit(metric, unit=unit) == expected


def test_flops_of_the_facts_that_there_are():
    def peak(cores, **facts):
        return limits.of(limits.Quantity("rate", "GFlop/s", {}), Facts(**facts), limits.Resources(1, 2.0, cores, CACHE))

    assert peak(20, core_ghz=2.8, flops_per_cycle=8).value == pytest.approx(448)  # Ulysses
    assert peak(1, **FACTS, flops_per_cycle=8).value == 16.0
    assert peak(20, **FACTS).method == "20 cores x 2 FMA units x 8 x 2 flop/cycle x 2 GHz"


@pytest.mark.parametrize(
    ("unit", "needed"),
    [("MB/s", ("memory_channels_per_package", "memory_mts")), ("GFlop/s", ("core_ghz", "fma_units", "simd_bits"))],
)
def test_without_one_of_its_facts_there_is_no_limit(unit, needed):
    for name in needed:
        assert limit("triad" if unit == "MB/s" else "rate", without(name), unit=unit) is None


def without(name):
    return {key: value for key, value in FACTS.items() if key != name}


def test_without_facts_only_shares_have_a_limit():
    assert limit("triad", {}) is limit("rate", {}, unit="GFlop/s") is limit("bandwidth", {}, nodes=2) is None
    assert limit("bandwidth_triad", {}, working_set=10 * CACHE) is None
    assert limit("overlap", {}, unit="%") == (100.0, "%")


def test_memory_outside_the_packages_is_not_bounded_by_their_channels():
    assert limit("triad", packages=None) is None


def test_a_link_bounds_what_crosses_nodes():
    assert limit("bandwidth", nodes=2) == limit("class_bandwidth", nodes=2) == (12500.0, "MB/s")
    assert limit("bandwidth", nodes=2, directions=2) == (25000.0, "MB/s")


def test_a_link_does_not_bound_memory_on_several_nodes():
    assert limit("bandwidth", nodes=2, message=False) is None
    value, _ = limit("bandwidth", nodes=2, message=False, working_set=10_000 * CACHE)
    assert value == pytest.approx(204800, rel=1e-3)


@pytest.mark.parametrize(("params", "expected"), [
    ({"bytes": 8}, True),  # IMB, OSU
    ({"class": "pair:node"}, True),  # pairs
    ({"class": "pair:l3", "bytes": 8}, False),
    ({"kernel": "triad", "working_set": 7}, False),  # membw
    ({}, False),
])  # fmt: skip
def test_parameters_tell_whether_a_message_crosses_nodes(params, expected):
    assert limits.crosses_nodes(params) is expected


def test_more_nodes_have_more_memory_and_cores():
    assert limit("triad", nodes=2) == (204800.0, "MB/s")
    assert limit("rate", nodes=2, unit="GFlop/s") == (2560.0, "GFlop/s")


@pytest.mark.parametrize(("working_set", "expected"), [
    (CACHE // 2, 2_560_000.0),  # fits: the cores' own caches are all that bounds it
    (CACHE, 2_560_000.0),
    (2 * CACHE, 2 * 102400.0),  # half of each sweep may come from cache
    (11 * CACHE, 1.1 * 102400.0),
    (10_000 * CACHE, 102400.0 * 10_000 / 9_999),
])  # fmt: skip
def test_memory_bounds_a_sweep_by_how_much_of_it_the_caches_cannot_hold(working_set, expected):
    value, unit = limit("bandwidth_triad", working_set=working_set)
    assert (value, unit) == (pytest.approx(expected), "MB/s")


def test_the_caches_of_all_nodes_hold_a_sweep():
    """``working_set`` is that of all ranks of the job."""
    on_one = limit("bandwidth_triad", working_set=4 * CACHE)[0]
    assert limit("bandwidth_triad", nodes=2, working_set=8 * CACHE)[0] == 2 * on_one


def test_what_fits_the_caches_has_no_limit_where_their_rate_is_not_known():
    known = without("cache_bytes_per_cycle")
    assert limit("bandwidth", known, working_set=CACHE) is None
    assert limit("bandwidth", known, working_set=2 * CACHE) == (204800.0, "MB/s")


def test_resources_are_cores_and_the_caches_around_them():
    host = machine.load(f"{TOPOLOGIES}/rrze-nehalem.xml")  # 2 x 4 cores, hardware threads n and n + 8, 8 MiB of L3
    document = plan()
    document["ranks"][0]["cpus"] = [0, 8, 1]
    assert limits.resources(typed(document), host, 1.5, 2) == (2, 3.0, 4, 16 << 20)
    document["ranks"][0]["cpus"] = [0, 4]
    assert limits.resources(typed(document), host, None, 1) == (1, None, 2, 16 << 20)
