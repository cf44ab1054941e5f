"""What is disturbed on one side, or in most pairs, gets neither PASS nor FAIL."""

import json
import sys

import numpy as np
import pytest
import samples
from gate_pairs import records_of

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.judge import disturbed
from plumbline.judge.decide import MARKED, closing, decide
from plumbline.judge.pairs import pairs_of_records
from plumbline.records import model, store
from plumbline.statistics.paired import PairedRule

sys.path.insert(0, str(paths.root() / "tests/rates"))
import caution
import disturbed_alike


def both(flags, ratio=1.0, noise=0.002, beside=()):
    """Two records with a pair for each of ``flags``: whether baseline and candidate were disturbed."""

    def values(side):
        level = 1e4 / (ratio if side else 1)
        return [level * (1 + noise * (index * (7 + 4 * side) % 11 - 5) / 5) for index in range(len(flags))]

    def disturbed(side, index):
        flagged = flags[index][side]
        causes = ["other processes used 9.0 % of CPU 0"] if flagged else []
        seen = {"disturbed": flagged, "causes": causes, "figures": {}, "beside": list(beside)}
        return {"disturbed": flagged, "disturbance": seen}

    return records_of(values(0), values(1), each=disturbed)


def verdict(flags, ratio=1.0, by_itself=False, gain=False):
    pairs = pairs_of_records(*map(model.convert, both(flags, ratio)), by_itself=by_itself)
    return decide(pairs, PairedRule(gain=gain))[0]


FIGURES = [{"name": name, "metric": "triad", "where": {}} for name in ("one", "two")]
QUIET, BASELINE, CANDIDATE, BOTH = (False, False), (True, False), (False, True), (True, True)


@pytest.mark.parametrize("ratio", [1.0, 1.3])
@pytest.mark.parametrize("side", [BASELINE, CANDIDATE])
def test_one_side_disturbed_is_neither_pass_nor_fail(ratio, side):
    assert verdict([QUIET] * 30, ratio).state == ("FAIL" if ratio > 1 else "PASS")
    found = verdict([QUIET] * 22 + [side] * 8, ratio)
    assert found.state == "INCONCLUSIVE"
    assert "no chance (p = 0.008)" in found.reason
    assert (disturbed.OPTION in found.reason) == (side == CANDIDATE)
    assert found.to_dict()["disturbed"] == {"baseline": 8 * side[0], "candidate": 8 * side[1]}


@pytest.mark.parametrize("flags", [[BOTH] * 22, [BOTH] * 12 + [QUIET] * 11, [BASELINE, CANDIDATE] * 11])
@pytest.mark.parametrize("ratio", [1.0, 1.15])
def test_mostly_disturbed_is_neither_pass_nor_fail(flags, ratio):
    found = verdict(flags, ratio)
    assert found.state == "INCONCLUSIVE"
    assert "measure on a quiet host" in found.reason


@pytest.mark.parametrize("flags", [[BOTH] * 22, [BOTH] * 12 + [QUIET] * 11])
def test_a_far_difference_beside_what_disturbs_both_sides_alike_is_a_verdict(flags):
    found = verdict(flags, 1.3)
    assert found.state == "FAIL"
    assert found.notes[0].startswith(f"{MARKED}: {flags.count(BOTH)} of the {len(flags)} pairs")
    assert closing([found]).endswith(found.notes[0])
    assert verdict(flags, 0.7, gain=True).state == "GAIN"
    assert verdict(flags, 0.7).state == "INCONCLUSIVE"  # disturbance may hide a slowdown


@pytest.mark.parametrize("cell", [disturbed_alike.ALIKE[1], disturbed_alike.ALIKE[-1], disturbed_alike.SENSITIVE[0]])
def test_equal_sides_beside_bursts_get_no_such_verdict(cell):
    counts = disturbed_alike.states(cell, 40, 1)
    assert counts["FAIL"] + counts["GAIN"] == 0
    assert counts["INCONCLUSIVE"] >= 20


def test_a_slowdown_far_beyond_the_bursts_gets_it():
    assert disturbed_alike.states((1.0, 0.1, 1.0, 0.9), 40, 1)["marked"] >= 36


@pytest.mark.parametrize(("cell", "near"), [(caution.WHY[1], 0), (caution.WHY[-1], 20)])
def test_only_a_machine_that_is_always_disturbed_ends_a_search(cell, near):
    random = np.random.default_rng(1)
    assert sum(caution.ends(cell, 1.05, random) for _ in range(20)) == near
    assert not any(caution.ends(cell, 3.0, random) for _ in range(20))


def test_a_far_difference_of_sides_that_were_disturbed_unlike_is_none():
    flags = [BOTH] * 12 + [CANDIDATE] * 5 + [QUIET] * 5
    assert verdict(flags, 1.3).state == "INCONCLUSIVE"
    assert verdict([BASELINE, CANDIDATE] * 11, 1.3).state == "INCONCLUSIVE"


def test_who_ran_during_most_disturbed_launches_is_named():
    cure = "measure on a quiet host; plumb doctor says what disturbs"
    reason = f"30 of the 30 pairs that count were disturbed{{}}: {cure}".format
    for beside, said in (
        ((), ""),
        (["daemon 12 ms", "[kworker/0:1] 3 ms"], " (daemon ran during 60 of the 60 disturbed launches)"),
        (["python 12 ms", "python 9 ms", "cc1 3 ms"], " (python ran during 60 of the 60 disturbed launches)"),
        (["the hypervisor 2.0 % (steal)"], " (the hypervisor ran during 60 of the 60 disturbed launches)"),
    ):
        pairs = pairs_of_records(*map(model.convert, both([BOTH] * 30, beside=beside)))
        assert decide(pairs, PairedRule())[0].reason == reason(said)


@pytest.mark.parametrize("flags", [[QUIET] * 23 + [CANDIDATE] * 7, [QUIET] * 15 + [BASELINE, CANDIDATE, BOTH] * 5])
def test_as_much_as_chance_gives_changes_nothing(flags):
    assert verdict(flags).state == "PASS"
    assert verdict(flags, 1.3).state == "FAIL"


@pytest.mark.parametrize(("counting", "restless", "alone", "stops"), [
    *((13, 13, (0, 0), True), (13, 12, (0, 0), False), (19, 17, (0, 0), True), (90, 46, (0, 0), False)),
    *((13, 0, (0, 11), True), (13, 0, (11, 0), True), (13, 0, (0, 10), False)),
])  # fmt: skip
def test_the_gate_stops_where_more_pairs_would_hardly_remove_the_doubt(counting, restless, alone, stops):
    found = disturbed.Disturbed(counting, alone, alone, counting, restless)
    assert (found.lasting() is not None) is stops
    assert not stops or found.lasting() == found.doubt()
    if alone[1]:
        assert disturbed.Disturbed(counting, alone, alone, counting, restless, by_itself=True).lasting() is None


def test_a_candidate_that_disturbs_itself_is_judged_where_that_is_claimed():
    assert verdict([CANDIDATE] * 30, 1.3).state == "INCONCLUSIVE"
    assert verdict([CANDIDATE] * 30, 1.3, by_itself=True).state == "FAIL"
    assert verdict([CANDIDATE] * 30, by_itself=True).state == "PASS"
    assert verdict([BASELINE] * 30, 1.3, by_itself=True).state == "INCONCLUSIVE"
    assert verdict([BOTH] * 30, 1.15, by_itself=True).state == "INCONCLUSIVE"


def series_of(*variants):
    """Two figures of each variant, one after the other, as the gate judges them together."""
    found = []
    for number, flags in enumerate(variants):
        records = both(flags)
        for record in records:
            record["variant"] = samples.variant(name=f"v{number}", figures=FIGURES)
        found += pairs_of_records(*map(model.convert, records))
    return [(item.state, item.reason) for item in decide(found, PairedRule())]


def test_what_is_too_few_in_each_variant_counts_over_the_whole_gate():
    few = [QUIET] * 27 + [CANDIDATE] * 3
    assert {state for state, _ in series_of(few, few)} == {"PASS"}  # 6 against 0, whatever the number of figures
    *three, (state, _) = series_of(few, few, few, [QUIET] * 30)[:-1]
    assert {state for state, _ in three} == {"INCONCLUSIVE"}
    assert "of the launches of all variants 9 times the candidate alone was disturbed" in three[0][1]
    assert state == "PASS"  # nothing of it was disturbed


def test_one_variant_in_doubt_does_not_make_the_others_so():
    assert [state for state, _ in series_of([CANDIDATE] * 30, [QUIET] * 29 + [CANDIDATE])][2:] == ["PASS", "PASS"]


def test_invalid_stays_invalid():
    first, second = both([CANDIDATE] * 30)
    second["verified"] = False
    (found,) = decide(pairs_of_records(*map(model.convert, (first, second))), PairedRule())
    assert found.state == "INVALID"


def test_files_and_the_option(tmp_path, capsys):
    session = tmp_path / "s.jsonl"
    store.write(session, both([CANDIDATE] * 30, 1.3))
    names = ("o.json", "o.xml", "o.md", "o.html")
    options = [word for name in names for word in ("--output", str(tmp_path / name))]
    assert cli.main(["gate", str(session), "--json", *options]) == 2
    for name in names:
        assert "30 times the candidate alone was disturbed, 0 times the baseline" in (tmp_path / name).read_text()
    assert json.loads(capsys.readouterr().out)["series"][0]["disturbed"] == {"baseline": 0, "candidate": 30}
    assert cli.main(["gate", str(session), disturbed.OPTION]) == 1
    capsys.readouterr()
    assert cli.main(["gate", "--pairs", str(session), "--better", "lower", disturbed.OPTION]) == 3
    assert capsys.readouterr().err.startswith(f"plumb: {disturbed.OPTION} goes with launches")
