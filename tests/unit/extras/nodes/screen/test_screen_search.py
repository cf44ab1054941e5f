"""The search for what makes groups of links slow, on simulated machines: rounds are counted, and names are checked."""

import math
import sys

import pytest

from plumbline.base import paths
from plumbline.extras.nodes.links import SearchReport, search
from plumbline.judge.outliers import SIDE

sys.path.insert(0, str(paths.root() / "tests/rates"))
import screening
from promises import Promises
from screening import Machine, groups, names, searched


class TestOneBadNode:
    """It is found, whichever it is, in log2 rounds and one more with another partner."""

    @pytest.mark.parametrize(("count", "size"), [(16, 2), (64, 2), (64, 8), (128, 16), (256, 32), (60, 6), (50, 5)])
    def test_rounds(self, count, size):
        for bad in names(count)[:: max(1, count // 8)]:
            found = searched(Machine(size, {bad: 0.3}, 1), count)
            assert (found.nodes, found.together, found.open) == ([bad], [], [])
            assert found.rounds == math.log2(size) + 1 if size & (size - 1) == 0 else found.rounds <= 4

    @pytest.mark.parametrize("size", [2, 16])
    def test_a_round_measures_two_groups_of_a_slow_one(self, size):
        machine = Machine(size, {"n003": 0.3}, 2)
        searched(machine, 8 * size)
        assert [len(own) for own in machine.rounds[1:]] == [*[2] * int(math.log2(size)), 1]
        partners = [{*group.nodes} - {"n003"} for own in machine.rounds[-2:] for group in own if "n003" in group.nodes]
        assert partners[0] != partners[1]

    def test_each_node_is_in_one_group_of_a_round(self):
        machine = Machine(8, {"n003": 0.3, "n004": 0.3, "n020": 0.3}, 3)
        searched(machine, 64)
        for own in machine.rounds:
            nodes = [node for group in own for node in group.nodes]
            assert len(nodes) == len(set(nodes))


class TestMore:
    """Two bad nodes, a link, and what cannot be said."""

    @pytest.mark.parametrize("bad", [("n000", "n001"), ("n000", "n002"), ("n000", "n007"), ("n003", "n020")])
    @pytest.mark.parametrize("size", [2, 8])
    def test_two_bad_nodes(self, bad, size):
        found = searched(Machine(size, dict.fromkeys(bad, 0.3), 4), 16 * size)
        assert (sorted(found.nodes), found.together, found.open) == (sorted(bad), [], [])
        assert found.rounds == math.log2(size) + 1

    def test_a_link(self):
        """Both ends are fine with others; the pair is measured again before it is named."""
        found = searched(Machine(2, {frozenset({"n000", "n001"}): 0.3}, 5), 32)
        assert (found.nodes, found.together, found.rounds) == ([], [("n000", "n001")], 2)

    def test_a_pair_that_was_slow_once(self):
        answers = [["slow", "fine", "fine"], ["fine", "fine"], ["fine"]]
        found = search(groups(6, 2), lambda asked: answers.pop(0))
        assert (found.nodes, found.together, found.passing) == ([], [], [("n000", "n001")])

    def test_without_a_fine_node_nothing_is_named(self):
        found = search(groups(4, 2), lambda asked: ["slow"] * len(asked))
        assert (found.nodes, found.open) == ([], groups(4, 2))

    def test_what_could_not_be_measured_is_open(self):
        answers = [["slow", None, "fine"], [None, "slow"], ["slow"]]
        found = search(groups(6, 2), lambda asked: answers.pop(0))
        assert (found.nodes, found.open) == (["n001"], [("n002", "n003"), ("n000",)])

    def test_two_bad_nodes_among_few_groups_are_open_rather_than_guessed(self):
        found = searched(Machine(2, {"n003": 0.3, "n016": 0.3}, 4), 20)
        assert set(found.nodes) < {"n003", "n016"}
        assert found.open

    def test_few_groups_say_nothing(self):
        found = searched(Machine(2, {"n000": 0.3}, 6), 8)
        assert (found.nodes, found.open) == ([], groups(8, 2))

    def test_noise_that_hides_a_slowdown_is_not_fine(self):
        found = searched(Machine(2, {}, 7, noise=0.3), 32)
        assert found.nodes == []
        assert len(found.open) >= 15


class TestRates:
    """What simulated searches name; `make rates` measures how often it is wrong."""

    @pytest.mark.parametrize("noise", [0.005, 0.02])
    @pytest.mark.parametrize("bad", [[], ["n005"], ["n005", "n016"]])
    def test_bad_nodes_are_named_and_no_good_one_is(self, bad, noise):
        every = [searched(Machine(2, dict.fromkeys(bad, 0.2), seed, noise), 32) for seed in range(8)]
        assert [(sorted(search.nodes), search.open) for search in every] == [(bad, [])] * 8

    def test_a_group_that_is_disturbed_as_a_whole_now_and_then_hardly_has_a_bad_node(self):
        """In 5 % of all measurements: with one partner, 6 of these searches named a good node."""
        every = [searched(Machine(2, {}, seed, disturbed=0.05), 32) for seed in range(40)]
        assert sum(bool(search.nodes) for search in every) == 1

    @pytest.mark.parametrize(
        ("bad", "certain"), [([], "+-+---++"), (["n005"], "+-+-+-++"), (["n005", "n016"], "+-+-+-++")]
    )
    def test_where_launches_vary_more_some_searches_name_nothing(self, bad, certain):
        every = [searched(Machine(2, dict.fromkeys(bad, 0.2), seed, 0.025), 32) for seed in range(8)]
        assert "".join("-" if search.open else "+" for search in every) == certain
        assert all(sorted(search.nodes) == ([] if search.open else bad) for search in every)

    def test_a_good_node_is_named_no_more_often_than_declared(self):
        assert 2 * SIDE == screening.WRONG

    def test_what_the_rates_promise(self, monkeypatch):
        """A guard broken on purpose: a search that always names the same node."""
        monkeypatch.setattr(screening, "SHAPES", ((16, 2),))
        promises = Promises()
        list(screening.rows(3, promises))
        assert promises.broken == []
        monkeypatch.setattr(screening, "searched", lambda machine, count: SearchReport(nodes=["n001"], rounds=1))
        list(screening.rows(3, promises))
        assert len([line for line in promises.broken if line.startswith("a good node is named: ")]) == 9
        assert len([line for line in promises.broken if " bad nodes named: " in line]) == 6
