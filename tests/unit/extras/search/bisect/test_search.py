"""Which commit is named: git chooses among the commits of real repositories, gates that are always right judge them."""

import re
import subprocess

import pytest
from git_history import Judge, linear, stepped

from plumbline.base.errors import PlumbError
from plumbline.extras.search.bisect.commits import Commits, require_range


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Commits 0 to 16."""
    return linear(tmp_path_factory.mktemp("history") / "code", 16)


def named(history, found):
    """Of each change the subjects of its candidates, and what it is."""
    known = history.subjects
    return [(sorted(known[one] for one in culprit.candidates), culprit.state) for culprit in found.culprits]


@pytest.mark.parametrize("place", [1, 7, 8, 16])
def test_a_step_is_found_with_few_gates(history, place):
    judge = Judge(history, stepped(16, {place: 1.1}))
    found = judge.search("0", "16")
    assert named(history, found) == [([str(place)], "FAIL")]
    assert found.is_complete
    (culprit,) = found.culprits
    assert culprit.comparison.ratio == pytest.approx(1.1)
    line = rf"[0-9a-f]{{12}} \({place}, 20..-..-..\) makes heat: time slower by 10 % \(9.9 % to 10 %\)"
    assert re.fullmatch(line, culprit.line)
    assert len(judge.asked) <= 1 + 4 + 1 + 2
    assert (str(place - 1), str(place)) in judge.asked


def test_a_commit_that_makes_it_a_hundred_times_slower_is_found(history):
    found = Judge(history, stepped(16, {7: 100.0})).search("0", "16")
    assert named(history, found) == [(["7"], "FAIL")]


def test_what_is_left_beside_the_culprit_is_told_where_it_is_little(history):
    found = Judge(history, stepped(16, {5: 1.1, 12: 1.005})).search("0", "16")
    assert named(history, found) == [(["5"], "FAIL")]
    (little,) = found.little
    assert little.endswith("is slower by 0.5 % (0.3 % to 0.7 %): too little to search on")
    assert found.rest == []


@pytest.mark.parametrize("steps", [{3: 1.1, 11: 0.95}, {3: 0.95, 11: 1.1}, {4: 1.1, 5: 0.95}, {1: 0.95, 16: 1.1}])
def test_a_gain_that_hides_a_part_of_a_loss_is_found(history, steps):
    found = Judge(history, stepped(16, steps)).search("0", "16")
    wanted = [([str(place)], "FAIL" if factor > 1 else "GAIN") for place, factor in steps.items()]
    assert sorted(named(history, found)) == sorted(wanted)
    gain = next(culprit for culprit in found.culprits if culprit.state == "GAIN")
    assert gain.line.endswith("makes heat: time faster by 5.0 % (4.9 % to 5.1 %)")
    assert gain.comparison.ratio == pytest.approx(0.95)
    assert len(found.logs) == 2


def test_several_steps_are_found_one_after_the_other(history):
    steps = {2: 1.05, 6: 1.1, 7: 1.04, 15: 1.06}
    found = Judge(history, stepped(16, steps)).search("0", "16")
    assert sorted(named(history, found)) == sorted(([str(place)], "FAIL") for place in steps)
    assert found.is_complete


def test_what_does_not_build_is_skipped(history):
    broken = ("8", "9", "12")
    judge = Judge(history, stepped(16, {5: 1.1}), broken)
    found = judge.search("0", "16")
    assert named(history, found) == [(["5"], "FAIL")]
    assert {step.term for step in found.steps if history.subjects[step.commit] in broken} == {"skip"}
    assert len([pair for pair in judge.asked if "8" in pair]) == 1  # it is not compared with the other end too


def test_if_only_skipped_commits_remain_all_are_named(history):
    found = Judge(history, stepped(16, {8: 1.1}), ("6", "7", "8")).search("0", "16")
    assert named(history, found) == [(["6", "7", "8", "9"], "FAIL")]
    assert not found.is_complete
    (culprit,) = found.culprits
    assert "one of 4 commits makes heat: time slower by 10 %" in culprit.line
    assert len(culprit.notes) == 3
    assert "only skipped commits left to test" in found.logs[0]


def test_an_undecided_commit_is_compared_with_the_other_end_too(history):
    judge = Judge(history, stepped(16, {5: 1.1}), open_=[("0", "8"), ("0", "4")])
    found = judge.search("0", "16")
    assert named(history, found) == [(["5"], "FAIL")]
    assert {("8", "16"), ("4", "16")} <= set(judge.asked)


def test_noise_that_hides_all_ends_the_search_of_a_range(history):
    every = [(str(one), str(other)) for one in range(17) for other in range(17)]
    open_ = [pair for pair in every if pair != ("0", "16")]
    judge = Judge(history, stepped(16, {5: 1.1}), open_=open_)
    found = judge.search("0", "16")
    assert [len(culprit.candidates) for culprit in found.culprits] == [16]
    assert len(judge.asked) <= 8
    assert not found.is_complete


def test_a_step_that_its_own_gate_does_not_confirm_is_not_claimed(history):
    found = Judge(history, stepped(16, {5: 1.1}), open_=[("4", "5")]).search("0", "16")
    assert named(history, found) == [(["5"], "INCONCLUSIVE")]
    assert "not confirmed: inconclusive because of a test" in found.culprits[0].line
    assert not found.is_complete


@pytest.mark.parametrize(("missed", "state"), [(1, "FAIL"), (2, "INCONCLUSIVE")])
def test_a_gate_that_contradicts_the_search_is_made_once_more(history, missed, state):
    judge = Judge(history, stepped(16, {5: 1.1}), missed={("4", "5"): missed})
    found = judge.search("0", "16")
    assert named(history, found) == [(["5"], state)]
    assert judge.asked.count(("4", "5")) == 2


def test_a_range_is_searched_again_after_a_misjudged_step(history):
    judge = Judge(history, stepped(16, {5: 1.1}), missed={("0", "8"): 1})
    found = judge.search("0", "16")
    assert judge.asked.count(("8", "9")) == 2, "the commit that seemed to be it is compared with its parent twice"
    assert named(history, found) == [(["5"], "FAIL")]
    assert found.is_complete
    assert len(found.logs) == 2


def test_what_is_left_may_stay_unknown(history):
    found = Judge(history, stepped(16, {5: 1.1, 12: 1.02}), open_=[("5", "16")]).search("0", "16")
    assert named(history, found) == [(["5"], "FAIL")]
    (line,) = found.unknown
    assert line.endswith(" is certain: INCONCLUSIVE: inconclusive because of a test")
    assert not found.is_complete


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """0, 1, 2 with a branch of three commits from 1, merged behind 2; then 3."""
    made = linear(tmp_path_factory.mktemp("history") / "merged", 1)
    made.git("switch", "-qc", "side")
    for name in ("a", "b", "c"):
        made.commit(name)
    made.git("switch", "-q", "main")
    made.commit("2")
    made.commit("merge", "merge", "--no-ff", "side")
    made.commit("3")
    return made


@pytest.mark.parametrize(("slow", "culprit", "followed"), [
    (("b", "c", "merge", "3"), "b", "merge"),
    (("2", "merge", "3"), "2", "2"),
    (("merge", "3"), "merge", "merge"),
    (("3",), "3", "3"),
])  # fmt: skip
def test_merges(merged, slow, culprit, followed):
    judge = Judge(merged, {name: 1.1 if name in slow else 1.0 for name in merged.names})
    assert named(merged, judge.search("0", "3")) == [([culprit], "FAIL")]
    assert named(merged, judge.search("0", "3", first_parent=True)) == [([followed], "FAIL")]


def test_git_replays_the_log(history, tmp_path):
    judge = Judge(history, stepped(16, {5: 1.1}), ("8",))
    found = judge.search("0", "16")
    copy, log = tmp_path / "copy", tmp_path / "bisect.log"
    subprocess.run(["git", "clone", "-q", str(history.folder), str(copy)], check=True)
    log.write_text(found.logs[0])
    done = subprocess.run(["git", "-C", str(copy), "bisect", "replay", str(log)], capture_output=True, text=True)
    assert f"{history.names['5']} is the first bad commit" in done.stdout
    assert history.git("status", "--porcelain") == ""
    assert "BISECT" not in history.git("for-each-ref")


def test_ends_that_are_no_range_are_one_line(merged, tmp_path):
    only = Commits(merged.folder, tmp_path / "only", ["kernels"])
    names = merged.names
    for known, good, bad, said in [
        (merged.commits(), "1", "1", "are the same commit"),
        (merged.commits(), "3", "0", "0 is older than 3 (plumb bisect): plumb bisect 0 3"),
        (merged.commits(), "a", "2", f"their common history ends at {names['1'][:12]}"),
        (only, "0", "3", "no commit between 0 and 3 changes kernels"),
    ]:
        with pytest.raises(PlumbError, match=re.escape(said)):
            require_range(known, names[good], names[bad], (good, bad))
    require_range(merged.commits(), names["0"], names["3"], ("0", "3"))
