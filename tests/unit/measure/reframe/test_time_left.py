"""The time left of a campaign, by replays of durations in the order that a dry run of the quick campaign showed."""

import json
import random

import pytest

from plumbline.measure.reframe import campaign
from plumbline.measure.reframe.cases import Case
from plumbline.records import outcome

#: test, cases that run, cases that are skipped: two cores, three stacks
ORDER = [
    ("dgemm_node", 1, 2), ("barrier_pair", 1, 11), ("sharing_pair", 1, 11), ("suite_integrity", 1, 2),
    ("osu_pair", 9, 36), ("osu_collective", 9, 0), ("osu_barrier", 3, 0), ("stream_threads", 4, 2),
    ("stream_numa", 1, 2), ("stream_ranks", 2, 4), ("daxpy_touch", 1, 2), ("membw_triad", 1, 2), ("imb_pair", 4, 26),
    ("imb_window", 2, 13), ("imb_collective", 6, 3), ("imb_barrier", 2, 1), ("pairs_cores", 5, 1),
    ("deadlock_fixed", 3, 0), ("pi_sum", 5, 1), ("heat1d_steps", 3, 0), ("pingpong_threads", 3, 0),
    ("overlap_fraction", 3, 12), ("jacobi_modes", 3, 0),
]  # fmt: skip

#: seconds of each case that ran, of a campaign on a fresh machine (bare Debian 12, two cores, 2026-11-29)
SECONDS = {
    "dgemm_node": [4.5], "barrier_pair": [3.2], "sharing_pair": [3.2], "suite_integrity": [4.8],
    "osu_pair": [2.8, 3.0, 3.4, 4.5, 4.4, 4.9, 4.8, 4.7, 7.6],
    "osu_collective": [1.7, 1.7, 2.3, 1.9, 2.0, 2.5, 1.4, 1.3, 2.1], "osu_barrier": [1.1, 1.0, 1.8],
    "stream_threads": [18.2, 9.8, 10.1, 10.0], "stream_numa": [17.0], "stream_ranks": [10.0, 17.9],
    "daxpy_touch": [9.4], "membw_triad": [15.5], "imb_pair": [2.0, 2.8, 2.1, 3.4], "imb_window": [2.9, 3.7],
    "imb_collective": [1.6, 2.3, 3.3, 2.5, 1.9, 2.6], "imb_barrier": [0.9, 1.8],
    "pairs_cores": [1.4, 1.2, 2.1, 1.2, 2.0], "deadlock_fixed": [1.2, 1.1, 1.9], "pi_sum": [1.3, 1.2, 2.0, 1.1, 2.0],
    "heat1d_steps": [1.2, 1.1, 1.9], "pingpong_threads": [3.1, 3.2, 4.1], "overlap_fraction": [4.8, 4.6, 5.0],
    "jacobi_modes": [18.2, 16.6, 16.2],
}  # fmt: skip


def cases(seed: int, pace: float, first: str) -> list[Case]:
    """A campaign ``pace`` times as slow as the real one, whose cases scatter more.

    ``first``: skipped cases come "mixed" with the others, or all "before" them, where jobs run beside one another.
    """
    draw = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    usual = {name: draw.uniform(0.85, 1.15) for name, *_ in ORDER}
    made = []
    for name, ran, skipped in ORDER:
        states = ["OK"] * ran + ["SKIP"] * skipped
        draw.shuffle(states)
        seconds = iter(SECONDS[name])
        for state in states:
            took = pace * usual[name] * draw.uniform(0.9, 1.1) * next(seconds) if state == "OK" else 0.01
            made.append(Case(state, f"{name} /1 @s:p+e", seconds=took))
    return sorted(made, key=lambda case: case.state == "OK") if first == "before" else made


def factor(run: list[Case], earlier: list[list[tuple[str, float]]], is_quick: bool = True) -> float:
    """How far the worst estimate after the first tenth is from the time that was left, above five seconds."""
    total = sum(case.seconds for case in run)
    worst, passed = 1.0, 0.0
    for number, case in enumerate(run, 1):
        passed += case.seconds
        rest = total - passed
        if case.state == "OK" and passed > total / 10 and rest > max(5.0, total / 50):
            known = campaign.left(run[:number], len(run), earlier, is_quick)
            worst = max(worst, known / rest, rest / known)
    return worst


@pytest.mark.parametrize("first", ["mixed", "before"])
@pytest.mark.parametrize("pace", [0.5, 1.0, 14.0])
def test_the_first_campaign_is_within_a_factor_of_one_and_a_half(pace, first):
    for seed in range(20):
        assert factor(cases(seed, pace, first), []) <= 1.5, seed


@pytest.mark.parametrize("first", ["mixed", "before"])
def test_a_later_campaign_has_the_medians_of_the_earlier_ones(tmp_path, monkeypatch, first):
    """With large caches, where STREAM takes ten times as long as the table has it; and three times as slow as then."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    (tmp_path / "local").mkdir()

    def slow(run: list[Case]) -> list[Case]:
        return [
            Case(case.state, case.label, seconds=case.seconds * (10 if case.test.startswith("stream") else 1))
            for case in run
        ]

    for seed in range(4):
        run = slow(cases(seed, 1.0, first))
        kept = ((case.state, case.label, case.reason, case.seconds) for case in run)
        outcome.write("local", f"2026010{seed}T000000Z-aaaaaa", "quick", kept)
    earlier = outcome.earlier("local", "quick", 204, "dgemm_node")
    assert len(earlier) == outcome.EARLIER
    for seed in range(10, 20):
        assert factor(slow(cases(seed, 3.0, first)), earlier, is_quick=False) <= 1.5


def test_the_first_line_of_a_campaign():
    """It said 40 min 12 s, which is 12 s times the other 203 cases, and later 3 min, for 5 min 32 s."""
    done = Case("OK", "dgemm_node /1 @s:p+e", seconds=4.5)
    assert campaign.left([done], 204, [], True) == pytest.approx(329 - 4.5, rel=0.15)


@pytest.mark.parametrize("pace", [0.7, 1.0, 1.5])
def test_the_first_run_of_a_lab_is_within_one_and_a_half(pace):
    """Five rounds of cases that take 1 to 40 s, the longest last, on machines unlike that of the declared minutes."""
    seconds = [1, 2, 4, 8, 20, 40]
    lab = campaign.Tests([], "lab", [], rounds=5, expected_s=5 * sum(seconds))
    run = [Case("OK", f"case{place} /1", seconds=pace * second) for place, second in enumerate(seconds)] * 5
    for number in range(3, len(run)):
        known = campaign.left_in_rounds(run[:number], len(run), lab)
        assert known == pytest.approx(sum(case.seconds for case in run[number:]), rel=0.5), number


def test_a_case_that_failed_says_nothing_of_the_others():
    """It waited for its time limit, or ended at once."""
    first, second = (Case("FAIL", "dgemm_node /1 @s:p+e", seconds=seconds) for seconds in (180.0, 0.2))
    assert campaign.left([first], 204, [], True) == campaign.left([second], 204, [], True)


def test_without_any_table_skips_cost_nothing():
    run = cases(1, 1.0, "before")
    alone = [case for case in run if case.state == "OK"]
    skipped = len(run) - len(alone)
    for number in range(1, len(alone)):
        known = campaign.left(run[: skipped + number], len(run), [], False)
        assert known == pytest.approx(campaign.left(alone[:number], len(alone), [], False))


def test_outcomes_of_others_and_damaged_ones_are_no_table(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    (tmp_path / "local").mkdir()
    assert outcome.earlier("local", "quick", 1, "a") == []
    for name, cases_kept, profile in [
        ("1", [{"state": "OK", "case": "a /1", "reason": None}], "quick"),  # an earlier version's
        ("2", [{"state": "OK", "case": "a /1", "reason": None, "seconds": -1}], "quick"),
        ("3", [{"state": "OK", "case": 7, "reason": None, "seconds": 1}], "quick"),
        ("4", [{"state": "OK", "case": "a /1", "reason": None, "seconds": 1}], "full"),
        ("5", [{"state": "OK", "case": "b /1", "reason": None, "seconds": 1}], "quick"),
    ]:
        text = json.dumps({"campaign": name, "profile": profile, "cases": cases_kept})
        outcome.file("local", name).write_text(text, encoding="utf-8")
    outcome.file("local", "6").write_text("{", encoding="utf-8")
    assert outcome.earlier("local", "quick", 1, "a") == []
    assert outcome.earlier("local", "full", 1, "a") == [[("a", 1.0)]]
    assert outcome.earlier("", "quick", 1, "a") == []


def test_the_table_is_that_of_a_whole_quick_campaign():
    assert {name: ran for name, ran, _ in ORDER} == {name: number for name, (number, _) in campaign.QUICK.items()}
    assert {name: len(seconds) for name, seconds in SECONDS.items()} == {name: ran for name, ran, _ in ORDER}
    assert sum(ran + skipped for _, ran, skipped in ORDER) == campaign.QUICK_CASES
