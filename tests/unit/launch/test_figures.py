"""From launches to figures, limits and validity."""

import math

import msgspec
import pytest
from msgspec import structs
from plans import typed
from samples import launch, plan, record

from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Facts
from plumbline.host import machine
from plumbline.judge.references import Match, References
from plumbline.judge.references.match import Entry
from plumbline.launch import figures
from plumbline.records.model import convert, document

TOPOLOGIES = __file__.rpartition("/unit/")[0] + "/data/topologies"
#: 2 packages x 2 channels x 3200 MT/s x 8 B = 102400 MB/s
FACTS = {"memory_channels_per_package": 2, "memory_mts": 3200}


@pytest.fixture(scope="module")
def host():
    return machine.load(f"{TOPOLOGIES}/ulysses-2x10.xml")


def fresh(wanted=None, **changes):
    """A record whose launches ended, of which nothing is said yet; ``wanted``: the figures of its variant."""
    item = record(**{"figures": [], "verified": False, "reasons": [], "verdict": "invalid", **changes})
    item["variant"]["figures"] = wanted or item["variant"]["figures"]
    return item


def settled(item, facts, host, references=()):
    """What becomes of ``item``, as a document."""
    made = convert(item)
    figures.settle(made, Facts(**facts), host, References(list(references)))
    return document(made)


def test_a_figure_is_the_median_of_its_launches(host):
    item = settled(fresh(), {}, host)
    assert (item["verified"], item["verdict"], item["reasons"]) == (True, "unreferenced", [])
    figure = item["figures"][0]
    assert (figure["value"], figure["launches"], figure["samples"]) == (10100.0, 3, [10000.0, 10200.0, 10100.0])
    assert figure["limit"] is None


def test_percent_of_the_limit_of_the_packages_whose_memory_is_used(host):
    limit = settled(fresh(), FACTS, host)["figures"][0]["limit"]
    assert (limit["value"], limit["percent"]) == (51200.0, pytest.approx(19.73))


def test_one_unverified_launch_makes_the_record_invalid(host):
    bad = launch(1, 9000.0, verified=False, reasons=["rank 0 on node1 left no witness"])
    item = settled(fresh(launches=[launch(0, 9000.0), bad]), {}, host)
    assert (item["verified"], item["verdict"], item["figures"]) == (False, "invalid", [])
    assert item["reasons"] == ["launch 1: rank 0 on node1 left no witness"]


LATENCY = [{"name": "time_8B", "metric": "latency", "where": {"bytes": 8}}]


@pytest.mark.parametrize(("item", "facts", "reason"), [
    (fresh(launches=[]), {}, "no launch finished"),
    (fresh(LATENCY), {}, "time_8B is absent: no latency at bytes=8"),
    (fresh(launches=[launch(0, math.inf)]), {}, ""),
    (fresh(launches=[launch(0, -1.0)]), {}, ""),
    (fresh(launches=[launch(0, math.nan)]), {}, ""),
    (
        fresh(launches=[launch(0, 60000.0)]),
        FACTS,
        "above the physical limit 51200 MB/s (1 packages x 2 channels x 3200 MT/s x 8 B)",
    ),
])  # fmt: skip
def test_without_a_launch_a_metric_or_a_possible_rate_a_record_is_invalid(host, item, facts, reason):
    item = settled(item, facts, host)
    assert item["verdict"] == "invalid"
    assert reason in item["reasons"][0]


OPTIONAL = [
    {"name": "triad", "metric": "triad", "where": {}},
    {"name": "cycles", "metric": "cycles", "where": {}, "optional": True},
]


def with_cycles(order, **changes):
    one = launch(order, 9000.0, **changes)
    one["measurements"].append({"metric": "cycles", "value": 270.0, "unit": "cycles", "better": "lower", "params": {}})
    return one


def test_an_optional_figure_is_one_where_every_launch_that_counts_reports_it_and_absent_from_some_it_is_a_fault(host):
    absent = settled(fresh(OPTIONAL), {}, host)
    assert (absent["verdict"], absent["reasons"]) == ("unreferenced", [])
    assert [figure["name"] for figure in absent["figures"]] == ["triad"]
    every = settled(fresh(OPTIONAL, launches=[with_cycles(0), with_cycles(1)]), {}, host)
    assert [figure["name"] for figure in every["figures"]] == ["triad", "cycles"]
    assert every["figures"][1]["samples"] == [270.0, 270.0]
    some = settled(fresh(OPTIONAL, launches=[with_cycles(0), launch(1, 9000.0)]), {}, host)
    assert some["verdict"] == "invalid"
    assert some["reasons"] == ["figure cycles is absent: no cycles at any size (launch 1)"]
    superseded = fresh(OPTIONAL, launches=[with_cycles(0, superseded=True), launch(1, 9000.0)])
    assert settled(superseded, {}, host)["reasons"] == []


def table(order, *values):
    (row,) = launch(order, 1.0)["measurements"]
    names = ("triad", "copy", "scale", "add")
    rows = [{**row, "metric": name, "value": value} for name, value in zip(names, values, strict=False)]
    return launch(order, 1.0, measurements=rows)


def test_launches_that_print_the_same_are_invalid(host):
    text = (20000.0, 20123.4, 24567.8, 24999.9)
    item = settled(fresh(launches=[table(order, *text) for order in range(3)]), {}, host)
    assert item["verdict"] == "invalid"
    assert item["reasons"] == ["all 3 launches printed the same figures, digit by digit: nothing was measured"]
    assert item["verified"] is True, "it ran where it should"


def test_launches_that_agree_in_one_figure_are_no_fault(host):
    tables = [table(order, 20000.0, 20123.4, 24567.8, 24999.9 + order) for order in range(3)]
    assert settled(fresh(launches=tables), {}, host)["reasons"] == []
    two = [table(order, 20000.0, 20123.4, 24567.8, 24999.9) for order in range(2)]
    assert settled(fresh(launches=two), {}, host)["reasons"] == [], "two may agree"


def of_unit(unit, *values, **more):
    """A record whose launches print one ``value`` each."""
    launches = [table(order, value) for order, value in enumerate(values)]
    for one in launches:
        one["measurements"][0] |= {"unit": unit, **more}
    return fresh(launches=launches)


UNITS = ("s", "ms", "us", "GB/s", "MB/s", "timesteps/s", "GFlop/s", "ns/day", "us/z/c", "MLUPS", "h", "widgets")


@pytest.mark.parametrize("unit", UNITS)
def test_a_figure_of_any_unit_but_those_of_counts_that_repeats_is_invalid(host, unit):
    said = "all 5 launches printed the same figures, digit by digit: nothing was measured"
    assert settled(of_unit(unit, *[1234.56789] * 5), {}, host)["reasons"] == [said]
    varying = settled(of_unit(unit, *(1234.56789 + order for order in range(5))), {}, host)
    assert varying["reasons"] == []


def test_a_percentage_that_repeats_is_counted_by_a_kernel_and_measured_by_an_application(host):
    item = of_unit("%", *[12.3456789] * 5)
    assert settled(item, {}, host)["reasons"] == [], "how much of its work heat3d repeats"
    item["variant"]["application"] = {"name": "code", "program": "code"}
    assert "printed the same figures" in settled(item, {}, host)["reasons"][0]


def test_a_kept_figure_is_invalid_although_a_first_launch_or_another_figure_varies(host):
    item = of_unit("s", 5.1234, *[1234.56789] * 4)
    said = "triad: 4 of 5 launches printed the same 1234.56789 s, digit by digit: it was not measured"
    assert settled(item, {}, host)["reasons"] == [said]
    tables = [table(order, 1234.56789, 20123.4 + 10 * order) for order in range(5)]
    said = "triad: 5 of 5 launches printed the same 1234.56789 MB/s, digit by digit: it was not measured"
    assert settled(fresh(launches=tables), {}, host)["reasons"] == [said]


@pytest.mark.parametrize(("unit", "value", "step"), [
    ("us", 0.21, None),
    ("s", 1.4, None),
    ("s", 12, None),
    ("timesteps/s", 812.0, None),
    ("bytes", 123456.789, None),
    ("MiB", 123.456789, None),
    ("1", 0.123456789, None),
    ("iterations", 123456789, None),
    ("GFlop/s", 714.2857142857143, 51.0),  # declared work in a time of 1.4 s
])  # fmt: skip
def test_values_of_few_digits_and_counts_may_repeat(host, unit, value, step):
    more = {"step": step} if step else {}
    assert settled(of_unit(unit, *[value] * 50, **more), {}, host)["reasons"] == []


def test_the_best_of_a_curve_follows_the_direction(host):
    row = {"metric": "latency", "unit": "us", "better": "lower", "iterations": 1}
    rows = [{**row, "value": value, "params": {"bytes": size}} for size, value in ((1, 2.0), (2, 1.0), (4, 3.0))]
    best = [{"name": "best", "metric": "latency", "where": {}}]
    item = fresh(best, launches=[launch(0, 1.0, measurements=rows)])
    assert settled(item, {}, host)["figures"][0]["value"] == 1.0


@pytest.mark.parametrize(("topology", "nodes", "expected"), [
    ("ulysses-2x10", [0], 1.0),
    ("ulysses-2x10", [0, 1], 2.0),
    ("ulysses-2x10", [], 2.0),
    ("epyc-2x64-smt2", [0], 0.25),
    ("rrze-woodcrest", [0], 2.0),
    ("numa-without-memory", [0, 2], 1.0),
    ("numa-without-memory", [0], 0.5),
    ("memory-only-node", [2], None),
])  # fmt: skip
def test_packages_used(topology, nodes, expected):
    document = plan()
    document["ranks"][0]["mem"]["nodes"] = nodes
    assert figures.packages_used(typed(document), machine.load(f"{TOPOLOGIES}/{topology}.xml")) == expected


def benchmark(**facts):
    return structs.replace(convert(record()).benchmark, facts=facts)


def test_streams_rule(host):
    enough = host.last_level_cache_bytes * 4 // 8
    figures.check_stream_rule(benchmark(array_elements=enough), host)
    with pytest.raises(PlumbError, match="smaller than 4 x"):
        figures.check_stream_rule(benchmark(array_elements=enough - 1), host)
    with pytest.raises(PlumbError, match="not recorded"):
        figures.check_stream_rule(benchmark(), host)


@pytest.mark.parametrize(("value", "verdict"), [(10100.0, "within"), (20000.0, "below"), (5000.0, "above")])
def test_the_verdict_is_that_of_the_reference(host, value, verdict):
    described = {
        "test": "stream_threads",
        "figure": "triad",
        "stack": "openmpi",
        "partition": "default",
        "params": {"placement": "compact", "threads": 2},
        "value": value,
        "unit": "MB/s",
        "better": "higher",
        "lower": -0.05,
        "upper": 0.05,
        "method": "declared",
        "source": {"document": "a test"},
    }
    entry = msgspec.convert(described, Entry)
    item = settled(fresh(), {}, host, [Match(entry, "local/references/stream.yaml")])
    assert item["verdict"] == verdict
    assert item["figures"][0]["reference"]["value"] == value
