"""What records say of clauses: which launches count, what is missing by name, and what is decided."""

import itertools
import json

import acceptance
import msgspec
import pytest
from acceptance import BANDWIDTH, BROADCAST, LINKS

from plumbline.base.errors import PlumbError
from plumbline.extras.accept import verdict
from plumbline.extras.accept.model import Contract

GOOD, BAD = 186_000.0, 170_000.0
NODES = [f"n{number}" for number in range(8)]


def contract(clause, **changes):
    return msgspec.convert(acceptance.contract(clause, **changes), Contract)


def node(name, values, number=0, **changes):
    """A record of STREAM on a node, a launch for each value; ``changes`` are of all launches."""
    launches = [acceptance.triad(order, value, **changes) for order, value in enumerate(values)]
    return acceptance.record(number or 100 + int(name[1:]), BANDWIDTH, [name], launches)


def every(value=GOOD, nodes=NODES):
    return [node(name, [value] * 8) for name in nodes]


def judged(records, clause=BANDWIDTH, **changes):
    (one,) = verdict.judge(contract(clause, **changes), records)
    return one


def test_a_machine_on_which_every_node_meets_the_limit_passes():
    one = judged(every())
    assert (one.word, one.reason, one.count) == ("pass", "8 of 8 shown, 8 needed", 64)
    assert (one.bound, one.usual) == (185.99995, 186.0)  # printed with four decimals
    assert verdict.closing([one]) == "accept: pass: 1 clause: 1 pass"


def test_a_node_that_misses_it_is_named():
    one = judged([*every(nodes=NODES[1:]), node("n0", [BAD] * 8)])
    assert (one.word, one.of("missed")) == ("fail", ["n0"])
    assert one.reason == "7 of 8 shown; n0: 0 of 8 launches meet the limit"


def test_one_launch_that_misses_is_no_node_that_does():
    assert judged([*every(nodes=NODES[1:]), node("n0", [BAD, *[GOOD] * 7])]).word == "pass"
    one = judged([*every(nodes=NODES[1:]), node("n0", [BAD, BAD, *[GOOD] * 6])])
    assert one.word == "unknown"
    assert "n0: 6 of 8 launches meet the limit, which decides nothing" in str(one.reason)


@pytest.mark.parametrize(("limit", "word"), [(0.24, "unknown"), (0.25, "pass"), (0.23, "fail")])
def test_a_limit_within_half_a_printed_step_is_undecided(limit, word):
    """0.24 may be 0.2449."""
    clause = {**BANDWIDTH, "figure": "time_8B", "unit": "us", "at_most": limit}
    del clause["at_least"]
    records = []
    for place, name in enumerate(NODES):
        values = [0.24] * 7 + [0.25 if limit < 0.25 else 0.24]
        launches = [acceptance.launch(n, ("time_8B", value, "us", "lower", {})) for n, value in enumerate(values)]
        records.append(acceptance.record(100 + place, clause, [name], launches))
    one = judged(records, clause)
    assert one.word == word
    if word == "unknown":
        assert "printed to within 0.005 us of the limit: print more digits" in str(one.reason)


def test_a_node_that_was_not_measured_is_named_and_not_passed():
    one = judged(every(nodes=NODES[:6]))
    assert one.word == "unknown"
    assert one.reason == ("6 of 8 shown; 2 not measured: n6, n7: plumb accept CONTRACT measures what is missing")
    assert "2 not measured, which the contract does not name" in str(judged(every(nodes=NODES[:6]), nodes=8).reason)
    assert judged(every(nodes=NODES[:6]), {**BANDWIDTH, "share": 0.75}).word == "pass"


def test_too_few_launches_decide_nothing():
    one = judged([*every(nodes=NODES[1:]), node("n0", [GOOD] * 3)])
    assert one.word == "unknown"
    assert "n0: 3 of 3 launches meet the limit, 5 to be measured" in str(one.reason)


def test_disturbed_launches_that_miss_count_for_nothing():
    one = judged([*every(nodes=NODES[1:]), node("n0", [BAD] * 8, disturbed=True)])
    assert one.word == "unknown"
    assert "1 not measured: n0 (8 launches disturbed)" in str(one.reason)
    both = [node("n0", [BAD] * 8, 1, disturbed=True), node("n0", [GOOD] * 8)]
    assert judged([*every(nodes=NODES[1:]), *both]).word == "pass"


def test_disturbed_launches_above_a_floor_show_the_floor():
    one = judged([*every(nodes=NODES[1:]), node("n0", [GOOD] * 8, disturbed=True)])
    assert (one.word, one.count, one.unmeasured) == ("pass", 64, 0)
    assert one.notes == ("shown by disturbed launches, which are slower, never faster: n0",)


def test_a_look_at_disturbed_launches_is_a_chance_that_costs():
    """Seven of eight show a node; where disturbed ones are judged too, eight of eight, then and later."""
    rest = every(nodes=NODES[1:])
    of_disturbed = node("n0", [BAD, *[GOOD] * 7], 1, disturbed=True)
    assert judged([*rest, of_disturbed]).word == "unknown"
    assert judged([*rest, of_disturbed, node("n0", [BAD, *[GOOD] * 7])]).word == "unknown"
    assert judged([*rest, node("n0", [GOOD] * 4, 1, disturbed=True), node("n0", [BAD, *[GOOD] * 7])]).word == "pass"


def test_a_share_may_be_larger_where_it_was_disturbed():
    """Such as of communication that overlaps: only times and rates are worse."""
    clause = {**BANDWIDTH, "unit": "%", "figure": "overlap", "at_least": 50}
    launches = [acceptance.launch(n, ("overlap", 90.0, "%", "higher", {}), disturbed=True) for n in range(8)]
    records = [acceptance.record(100 + place, clause, [name], launches) for place, name in enumerate(NODES)]
    assert judged(records, clause).word == "unknown"


@pytest.mark.parametrize("changes", [{"verified": False}, {"state": "interrupted"}, {"verdict": "invalid"}])
def test_a_record_that_is_not_valid_counts_for_nothing(changes):
    launches = [acceptance.triad(order, GOOD) for order in range(8)]
    bad = acceptance.record(1, BANDWIDTH, ["n0"], launches, reasons=["rank 0 left no witness"], **changes)
    one = judged([*every(nodes=NODES[1:]), bad])
    assert one.word == "unknown"
    assert "1 not measured: n0 (8 launches not verified)" in str(one.reason)


def test_the_first_launches_count_and_no_later_ones():
    """Nobody measures until it passes: without a retest in the contract, the ninth launch is of no test."""
    records = [*every(nodes=NODES[1:]), node("n0", [BAD] * 8, 1), node("n0", [GOOD] * 8, 50)]
    assert judged(records).word == "fail"


def test_a_retest_is_what_the_contract_fixed():
    clause = {**BANDWIDTH, "launches": 10, "retests": {"share": 0.125}}
    first = [node(name, [GOOD] * 10, 10 + place) for place, name in enumerate(NODES[1:])]
    bad = node("n0", [BAD] * 10, 30)
    one = judged([*first, bad], clause)
    assert (one.word, one.again) == ("unknown", ["n0"])
    assert "n0 may be tested again: plumb accept CONTRACT --retest" in str(one.reason)
    again = judged([*first, bad, node("n0", [GOOD] * 10, 50)], clause)
    assert (again.word, again.notes) == ("pass", ("shown in a retest: n0",))
    assert judged([*first, bad, node("n0", [BAD] * 10, 50)], clause).word == "fail"
    third = judged([*first, bad, node("n0", [BAD] * 10, 50), node("n0", [GOOD] * 10, 55)], clause)
    assert third.word == "fail"


def test_no_retest_where_more_failed_than_the_contract_allows():
    clause = {**BANDWIDTH, "launches": 10, "retests": {"share": 0.125}}
    first = [node(name, [GOOD] * 10, 10 + place) for place, name in enumerate(NODES[2:])]
    bad = [node("n0", [BAD] * 10, 30), node("n1", [BAD] * 10, 31)]
    one = judged([*first, *bad, node("n0", [GOOD] * 10, 50), node("n1", [GOOD] * 10, 51)], clause)
    assert (one.word, one.again) == ("fail", [])


def test_nodes_of_others_count_for_nothing():
    one = judged([*every(), node("n8", [BAD] * 8)])
    assert (one.word, one.notes) == ("pass", ("not of the contract: n8",))
    one = judged([*every(), node("n8", [BAD] * 8)], nodes=8)
    assert (one.state, one.reason) == ("INVALID", "9 members were measured, the contract has 8: name its nodes there")


def test_several_variants_or_systems_are_refused():
    other = {**BANDWIDTH, "params": {"placement": "compact", "threads": 4}}
    records = [*every(), acceptance.record(1, other, ["n0"], [acceptance.triad(0, GOOD)])]
    with pytest.raises(
        PlumbError, match=r"records of several variants .*choose: stream_threads %placement=compact %th"
    ):
        judged(records, {**BANDWIDTH, "params": {"placement": "compact"}})
    moved = node("n0", [GOOD] * 8, 1)
    moved.partition = "other"
    with pytest.raises(PlumbError, match="records of several systems"):
        judged([*every(), moved])
    assert judged([*every(), moved], partition="default").word == "pass"


@pytest.mark.parametrize(("changes", "said"), [
    ({"unit": "us"}, "triad is in MB/s"),
    ({"at_least": None, "at_most": 9}, "higher is better"),
    ({"figure": "trial"}, "stream_threads has no figure trial"),
])  # fmt: skip
def test_a_clause_that_contradicts_its_records_is_refused(changes, said):
    with pytest.raises(PlumbError, match=said):
        judged(every(), {**BANDWIDTH, **changes})


def matrix(slow, launches=6, **changes):
    """All links of the eight nodes, those that are ``slow`` at half of the bandwidth."""
    values = {pair: 10_000.0 if pair in slow else 22_000.0 for pair in itertools.combinations(NODES, 2)}
    return acceptance.record(1, LINKS, NODES, [acceptance.links(order, values, **changes) for order in range(launches)])


def test_links_are_judged_one_by_one():
    assert judged([matrix([("n1", "n2"), ("n1", "n3")])], LINKS).word == "pass"
    one = judged([matrix(list(itertools.combinations(NODES[:5], 2)))], LINKS)
    assert (one.word, len(one.of("missed"))) == ("fail", 10)
    assert str(one.reason).startswith("18 of 28 shown; 10 miss the limit: n0 – n1, n0 – n2")
    assert judged([matrix([], disturbed=True)], LINKS).word == "unknown"


def test_the_worse_direction_of_a_link_counts():
    record = matrix([])
    for launch in record.launches:
        item = launch.measurements[0]
        launch.measurements[0] = msgspec.structs.replace(item, value=1.0)
    record.seal = None
    one = judged([record], {**LINKS, "share": 1.0})
    assert one.of("missed") == ["n0 – n1"]


def test_links_that_no_launch_had_are_named():
    values = {pair: 22_000.0 for pair in itertools.combinations(NODES[:7], 2)}
    record = acceptance.record(1, LINKS, NODES[:7], [acceptance.links(order, values) for order in range(6)])
    one = judged([record], LINKS)
    assert (one.word, one.unmeasured) == ("unknown", 7)
    assert "7 not measured: n0 – n7, n1 – n7" in str(one.reason)


def broadcast(value, nodes=NODES, launches=6):
    row = ("latency", value, "us", "lower", {"bytes": 8})
    return acceptance.record(1, BROADCAST, nodes, [acceptance.launch(order, row) for order in range(launches)])


def test_the_whole_machine_is_one():
    assert judged([broadcast(29.0)], BROADCAST).word == "pass"
    assert judged([broadcast(31.0)], BROADCAST).word == "fail"
    assert judged([broadcast(29.0, NODES[:4])], BROADCAST).word == "unknown"
    assert judged([broadcast(29.0)], {**BROADCAST, "of_launches": 0.9, "launches": 29}).word == "unknown"
    assert judged([broadcast(0.029)], {**BROADCAST, "unit": "ns", "at_most": 30}).word == "pass"


def test_the_worst_clause_is_the_verdict():
    found = [judged(every()), judged([broadcast(31.0)], BROADCAST), judged([], LINKS)]
    line = verdict.closing(found)
    assert line.startswith("accept: fail: 3 clauses: 1 pass, 1 unknown, 1 fail; broadcast: 0 of 1 shown; the machine:")
    json.dumps([one.to_dict() for one in found], allow_nan=False)


def test_only_records_of_the_clauses_are_wanted():
    mine = contract(BANDWIDTH)
    assert verdict.wanted(mine, every()[0])
    assert not verdict.wanted(mine, matrix([]))
    profiled = node("n0", [GOOD])
    profiled.variant = msgspec.structs.replace(profiled.variant, profiled=True)
    assert not verdict.wanted(mine, profiled)
