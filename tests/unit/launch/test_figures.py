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


def fresh(**changes):
    return record(**{"figures": [], "verified": False, "reasons": [], "verdict": "invalid", **changes})


def settled(item, facts, host, references=()):
    """What becomes of ``item``, as a document."""
    made = convert(item)
    figures.settle(made, Facts(**facts), host, References(list(references)))
    return document(made)


def test_a_figure_is_the_median_of_its_launches(host):
    item = fresh()
    item = settled(item, {}, host)
    assert (item["verified"], item["verdict"], item["reasons"]) == (True, "unreferenced", [])
    figure = item["figures"][0]
    assert (figure["value"], figure["launches"], figure["samples"]) == (10100.0, 3, [10000.0, 10200.0, 10100.0])
    assert figure["limit"] is None


def test_percent_of_the_limit_of_the_packages_whose_memory_is_used(host):
    item = fresh()
    item = settled(item, FACTS, host)
    assert item["figures"][0]["limit"]["value"] == 51200.0
    assert item["figures"][0]["limit"]["percent"] == pytest.approx(19.73)


def test_one_unverified_launch_makes_the_record_invalid(host):
    bad = launch(1, 9000.0, verified=False, reasons=["rank 0 on node1 left no witness"])
    item = fresh(launches=[launch(0, 9000.0), bad])
    item = settled(item, {}, host)
    assert (item["verified"], item["verdict"], item["figures"]) == (False, "invalid", [])
    assert item["reasons"] == ["launch 1: rank 0 on node1 left no witness"]


def test_no_launch_is_invalid(host):
    item = fresh(launches=[])
    item = settled(item, {}, host)
    assert (item["verdict"], item["reasons"]) == ("invalid", ["no launch finished"])


def test_an_absent_metric_is_invalid(host):
    item = fresh()
    item["variant"]["figures"] = [{"name": "time_8B", "metric": "latency", "where": {"bytes": 8}}]
    item = settled(item, {}, host)
    assert item["verdict"] == "invalid"
    assert "time_8B is absent: no latency at bytes=8" in item["reasons"][0]


OPTIONAL = [
    {"name": "triad", "metric": "triad", "where": {}},
    {"name": "cycles", "metric": "cycles", "where": {}, "optional": True},
]


def with_cycles(order, **changes):
    one = launch(order, 9000.0, **changes)
    one["measurements"].append({"metric": "cycles", "value": 270.0, "unit": "cycles", "better": "lower", "params": {}})
    return one


def test_an_optional_figure_that_no_launch_has_is_no_fault(host):
    item = fresh()
    item["variant"]["figures"] = OPTIONAL
    item = settled(item, {}, host)
    assert (item["verdict"], item["reasons"]) == ("unreferenced", [])
    assert [figure["name"] for figure in item["figures"]] == ["triad"]


def test_an_optional_figure_is_a_figure_where_it_is_reported(host):
    item = fresh(launches=[with_cycles(0), with_cycles(1)])
    item["variant"]["figures"] = OPTIONAL
    item = settled(item, {}, host)
    assert [figure["name"] for figure in item["figures"]] == ["triad", "cycles"]
    assert item["figures"][1]["samples"] == [270.0, 270.0]


def test_an_optional_figure_that_some_launches_lack_is_invalid(host):
    item = fresh(launches=[with_cycles(0), launch(1, 9000.0)])
    item["variant"]["figures"] = OPTIONAL
    item = settled(item, {}, host)
    assert item["verdict"] == "invalid"
    assert item["reasons"] == ["figure cycles is absent: no cycles at any size (launch 1)"]
    item = fresh(launches=[with_cycles(0, superseded=True), launch(1, 9000.0)])
    item["variant"]["figures"] = OPTIONAL
    item = settled(item, {}, host)
    assert item["reasons"] == []


@pytest.mark.parametrize("value", [math.inf, -1.0, math.nan])
def test_what_is_no_rate_is_invalid(host, value):
    item = fresh(launches=[launch(0, value)])
    item = settled(item, {}, host)
    assert item["verdict"] == "invalid"


def table(order, *values):
    names = ("triad", "copy", "scale", "add")
    rows = [
        {"metric": name, "value": value, "unit": "MB/s", "better": "higher", "params": {}, "iterations": 10}
        for name, value in zip(names, values, strict=False)
    ]
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


@pytest.mark.parametrize(
    ("unit", "value", "step"),
    [
        ("us", 0.21, None),
        ("s", 1.4, None),
        ("s", 12, None),
        ("timesteps/s", 812.0, None),
        ("bytes", 123456.789, None),
        ("MiB", 123.456789, None),
        ("1", 0.123456789, None),
        ("iterations", 123456789, None),
        ("GFlop/s", 714.2857142857143, 51.0),  # declared work in a time of 1.4 s
    ],
)
def test_values_of_few_digits_and_counts_may_repeat(host, unit, value, step):
    more = {"step": step} if step else {}
    assert settled(of_unit(unit, *[value] * 50, **more), {}, host)["reasons"] == []


def test_above_the_physical_limit_is_invalid(host):
    item = fresh(launches=[launch(0, 60000.0)])
    item = settled(item, FACTS, host)
    assert item["verdict"] == "invalid"
    assert "above the physical limit 51200 MB/s (1 packages x 2 channels x 3200 MT/s x 8 B)" in item["reasons"][0]


def test_the_best_of_a_curve_follows_the_direction(host):
    rows = [
        {"metric": "latency", "value": v, "unit": "us", "better": "lower", "params": {"bytes": b}, "iterations": 1}
        for b, v in ((1, 2.0), (2, 1.0), (4, 3.0))
    ]
    item = fresh(launches=[launch(0, 1.0, measurements=rows)])
    item["variant"]["figures"] = [{"name": "best", "metric": "latency", "where": {}}]
    item = settled(item, {}, host)
    assert item["figures"][0]["value"] == 1.0


@pytest.mark.parametrize(
    ("topology", "nodes", "expected"),
    [
        ("ulysses-2x10", [0], 1.0),
        ("ulysses-2x10", [0, 1], 2.0),
        ("ulysses-2x10", [], 2.0),
        ("epyc-2x64-smt2", [0], 0.25),
        ("rrze-woodcrest", [0], 2.0),
        ("numa-without-memory", [0, 2], 1.0),
        ("numa-without-memory", [0], 0.5),
        ("memory-only-node", [2], None),
    ],
)
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
