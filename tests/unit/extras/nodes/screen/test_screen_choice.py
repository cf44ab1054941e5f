"""Which nodes a screen checks, what its history keeps, and what it says of the whole."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.extras.nodes import model, screen, screening
from plumbline.extras.nodes.model import Figure, Result
from plumbline.extras.nodes.screening import DAY, NO_HOURS, Choice, Terms
from plumbline.schedulers import Node

NOW = 100 * DAY
TERMS = Terms(7, None, 25, NOW)
H = "node hours"
NODES = [f"r{rack}n{number}" for rack in (1, 2) for number in (1, 2, 3, 4)]


def result(node, days, state="ok", slow=0.0, seed=1, **changes):
    """A check of ``node``, so many days ago."""
    random = np.random.default_rng([seed, *node.encode(), int(1000 * abs(days))])
    rounds = [float(100 * math.exp(random.normal(-math.log1p(slow), 0.005))) for _ in range(13)]
    own = [Figure(name="memory", unit="GB/s", better="higher", rounds=list(rounds))]
    known = {"line": "as fast as its kind" if state == "ok" else f"it is {state}", "figures": own, **changes}
    return Result(
        schema=1, node=node, time=NOW - days * DAY, seconds=18, others=[0.0] * 13, facts={}, bad=[], doubts=[],
        state=state, of="c", budget=25, **known,
    )  # fmt: skip


def nodes(*names, down=()):
    return [Node(name, "drained" if name in down else "idle", name not in down) for name in names]


def free(name):
    return ""


class TestChoice:
    """What is due, idle and within the hours."""

    def test_the_order(self):
        """Never checked, then found bad once, then the oldest; what was checked lately is not due."""
        history = [result("a", 6), result("b", 5), result("c", 1), result("d", 0.5, "bad"), result("e", 9)]
        assert screening.due("abcdef", history, TERMS) == ["f", "d", "e", "a", "b"]

    def test_a_node_found_bad_twice_waits_like_others(self):
        history = [result("a", 2), result("a", 1, "bad"), result("a", 0.5, "bad")]
        assert screening.due("a", history, TERMS) == []
        assert screening.due("a", history[:2], TERMS) == ["a"]

    def test_a_check_of_a_wrong_clock_is_none(self):
        """Of a node that had the time of next year when it was checked; half a minute is a difference of clocks."""
        history = [result("a", -365), result("b", 6), result("b", -365), result("c", -30 / DAY)]
        assert screening.due("abc", history, TERMS) == ["a", "b"]
        assert [node.state for node in screening.assess(["a", "b"], history, TERMS, 0.05).nodes] == ["due", "ok"]

    def test_half_of_the_period_is_left_for_it_to_become_idle(self):
        assert screening.due("a", [result("a", 3.4)], TERMS) == []
        assert screening.due("a", [result("a", 3.6)], TERMS) == ["a"]

    def test_what_was_busy_was_not_checked(self):
        assert screening.due("a", [result("a", 0.1, "busy")], TERMS) == ["a"]

    def test_names_up_to_the_first_dot(self):
        assert screening.due(["a.cluster", "b.cluster"], [result("a", 0.1)], TERMS) == ["b.cluster"]

    def test_why_others_are_left_out(self):
        found = screening.choose(nodes("a", "b", "c", down="b"), [], TERMS, lambda name: "job 7" if name == "c" else "")
        assert found.nodes == ["a"]
        assert found.left_out == {"b": "cannot be used: drained", "c": "busy: job 7"}

    @pytest.mark.parametrize(("hours", "taken", "count"), [(1.0, 0, 4), (0.02, 0, 2), (0.03, 50, 2), (0.001, 0, 0)])
    def test_node_hours(self, hours, taken, count):
        """0.02 h are 72 s: two checks of 25 s; nobody is asked for jobs on a node that cannot be checked anyway."""
        asked = []
        found = screening.choose(nodes(*"abcd"), [], Terms(7, hours, 25, NOW), lambda n: asked.append(n) or "", taken)
        assert (len(found.nodes), len(asked)) == (count, count)
        assert set(found.left_out.values()) <= {NO_HOURS}

    def test_the_hours_are_those_of_the_period(self):
        terms = Terms(7, 0.02, 25, NOW)
        assert screening.choose(nodes("a", "b"), [result("x", 1), result("y", 2)], terms, free).nodes == []
        assert screening.choose(nodes("a", "b"), [result("x", 8), result("y", 9)], terms, free).nodes == ["a", "b"]

    def test_calls_in_turn_check_every_node_within_the_period(self):
        """Twice a day, a fifth of the nodes busy by chance, hours for no more than what is needed."""
        random = np.random.default_rng(5)
        names, history, late = [f"n{number:03}" for number in range(50)], list[Result](), 0
        for call in range(40):
            now = NOW + call * DAY / 2
            terms = Terms(7, 50 * 25 * 2 / 3600, 25, now)
            busy = set(random.choice(names, 10, replace=False))
            found = screening.choose(nodes(*names), history, terms, lambda name, busy=busy: "job" * (name in busy))
            history += [result(name, (NOW - now) / DAY) for name in found.nodes]
            assert screening.spent(history, terms) <= 3600 * terms.hours + 1e-6
            late += call >= 14 and any(it.state == "due" for it in screening.assess(names, history, terms, 0.05).nodes)
        assert late == 0


class TestHistory:
    """It only grows, and is valid whenever a call was killed."""

    def test_a_cut_line_is_no_line_and_is_written_again(self, tmp_path):
        file = tmp_path / "site" / "h.jsonl"
        first, second = result("a", 2), result("b", 1)
        model.append(file, [first])
        whole = file.read_bytes()
        model.append(file, [second])
        both = file.read_bytes()
        assert both.startswith(whole)
        for length in (len(whole), *range(len(whole) + 1, len(both), 40), len(both) - 1):
            file.write_bytes(both[:length])
            assert model.history(file) == [first]
            model.append(file, [second])
            assert file.read_bytes() == both
        assert model.history(file) == [first, second]

    def test_a_line_that_is_none_is_named(self, tmp_path):
        file = tmp_path / "h.jsonl"
        model.append(file, [result("a", 1)])
        file.write_bytes(b"{}\n" + file.read_bytes())
        with pytest.raises(PlumbError, match="line 1") as raised:
            model.history(file)
        assert raised.value.cure == "remove the line"

    def test_none_yet(self, tmp_path):
        assert model.history(tmp_path / "none") == []


class TestSaid:
    """States, who is slower, places, and when it is through."""

    def history(self, slow="", days=(3, 2, 1)):
        return [result(name, ago, slow=0.2 if name == slow else 0.0) for name in NODES for ago in days]

    def test_a_node_that_is_slower_than_the_others(self):
        """By the rule of plumb outliers; it is last by place."""
        found = {one.name: one for one in screening.assess(NODES, self.history("r1n2"), TERMS, 0.05).nodes}
        assert [name for name, one in found.items() if one.slower] == ["r1n2"]
        assert found["r1n2"].place == 0.0
        assert "memory is slower by" in found["r1n2"].line
        assert sorted(one.place for one in found.values()) == pytest.approx([number / 7 for number in range(8)])

    def test_nobody_among_equals(self):
        assert [one.slower for one in screening.assess(NODES, self.history(), TERMS, 0.05).nodes] == [None] * 8

    def test_few_nodes_are_not_compared(self):
        found = screening.assess(NODES[:4], [one for one in self.history() if one.node in NODES[:4]], TERMS, 0.05)
        assert found.notes == ["4 nodes: at least 5 are compared with one another"]

    def test_rounds_beside_other_work_are_not_compared(self):
        history = [replace(one, others=[0.5] * 13) for one in self.history()]
        found = screening.assess(NODES, history, TERMS, 0.05)
        wanted = "0 nodes with rounds that nothing disturbed: at least 5 are compared with one another"
        assert found.notes == [wanted]
        assert [one.slower for one in found.nodes] == [None] * 8

    def test_how_often_it_was_bad(self):
        own = [result("a", 3), result("a", 2, "bad"), result("a", 1, "bad")]
        lines = [screening.assess("a", given, TERMS, 0.05).bad[0].line for given in (own, own[:2])]
        assert lines == ["it is bad; in 2 checks in a row", "it is bad; found once: it is checked again first"]

    def test_the_closing_line(self):
        history = [*self.history(days=[1])[:5], result("r2n2", 1, "doubt"), result("r2n3", 1, "bad"), result("r2n4", 8)]
        found = screening.assess(NODES, history, TERMS, 0.05)
        assert found.closing() == "screen: 7 of 8 nodes within 7 days: 5 ok, 1 in doubt, 1 bad"

    @pytest.mark.parametrize(("days", "hours", "line"), [
        ([], None, "through: not known after one call, 8 nodes left"),
        ([2, 2, 1, 0], None, "through: about 1970-04-13 00:00, 4 nodes left at this pace"),
        ([1] * 8, 1.0, f"through: all nodes are; 0.056 of 1 {H} used"),
        ([1], 0.01, f"through: never, all nodes take 0.056 {H} and 0.01 are given; 0.0069 of 0.01 {H} used"),
    ])  # fmt: skip
    def test_when_it_is_through(self, days, hours, line):
        history = [result(name, ago) for name, ago in zip(NODES, days, strict=False)]
        found = screening.assess(NODES, history, Terms(7, hours, 25, NOW), 0.05)
        assert screening.outlook(found, history, Choice()) == [line]

    def test_what_was_left_out(self):
        found = screening.assess(NODES, [], TERMS, 0.05)
        lines = screening.outlook(found, [], Choice([], {"a": "busy: job 1", "b": "busy: job 2", "c": NO_HOURS}))
        assert lines[:2] == ["left out: 2 nodes, busy: a, b", "left out: 1 node, no node hours are left: c"]


class TestPage:
    """Racks by the pattern, each node once, and its course."""

    def document(self, racks=screen.RACKS):
        history = [result(name, ago, "bad" if name == "r1n2" else "ok") for name in NODES for ago in (2, 1)]
        return screen.document("Screen", screening.assess([*NODES, "r2n5"], history, TERMS, 0.05), racks, ["a line"])

    def tables(self, racks=screen.RACKS):
        return list(self.document(racks)["sections"][0]["pieces"][1]["pieces"])

    def test_racks(self):
        assert [one["caption"] for one in self.tables()] == ["r1", "r2"]
        assert [one["caption"] for one in self.tables("^.*n(.)$")] == ["1", "2", "3", "4", "5"]
        assert [one["caption"] for one in self.tables("(never)")] == ["nodes"]
        with pytest.raises(PlumbError, match="has no group"):
            self.document("r.")

    def test_a_cell_is_read_without_colour(self):
        first, second = self.tables()
        texts = [cell["pieces"][0]["pieces"][0] for cell in first["rows"][0][1:]]
        assert texts[1].startswith("✗")
        assert second["rows"][0][5]["pieces"][0]["pieces"] == ("–",)
        places = [int(text.lstrip("✗")) for text in texts]
        assert all(0 <= place <= 100 for place in places)
        assert "share" not in second["rows"][0][5]
        looks = [cell["look"] for cell in (*first["rows"][0][1:3], second["rows"][0][5])]
        assert looks == ["heat", "heat bad", "heat due"]  # the scale is of healthy nodes
        assert "share" not in first["rows"][0][2]

    def test_a_node_opens_with_its_course(self):
        made = self.document()
        entry = made["entries"][1]
        (chart,) = entry["body"][0]["pieces"]
        assert (entry["id"], len(chart["rows"]), [point[1] for point in chart["points"]]) == ("r1n2", 2, [0.0, 1.0])
        assert [row[1] for row in entry["body"][1]["pieces"][0]["rows"]] == ["bad", "bad"]
        cell = self.tables()[0]["rows"][0][2]["pieces"][0]
        assert made["entries"][cell["entry"]]["id"] == "r1n2"

    def test_a_long_rack_is_broken(self):
        names = [f"n{number}" for number in range(60)]
        racks = screen.document("t", screening.assess(names, [], TERMS, 0.05), screen.RACKS, [])["sections"][0]
        (one,) = racks["pieces"][1]["pieces"]
        assert [len(row) - 1 for row in one["rows"]] == [24, 24, 12]
        assert [row[0] for row in one["rows"]] == ["", "from 25", "from 49"]
