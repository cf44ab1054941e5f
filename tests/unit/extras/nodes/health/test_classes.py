"""Classes of nodes from checks: who belongs to one, its limits, and what plumb-check finds by the file."""

import json
import math

import numpy as np
import pytest
from check_runs import CPU, run

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.nodes import checks as node_checks
from plumbline.extras.nodes import classes, model
from plumbline.extras.nodes.model import Check, Figure
from plumbline.host import binder

#: figure -> usual value, unit and direction
FIGURES = {"memory": (100.0, "GB/s", "higher"), "fma": (500.0, "GFlop/s", "higher"), "handover": (80.0, "ns", "lower")}
FACTS = {"cpu.online": "0-63", "memory.thp": "always", "memory.mib": "257000"}
LINES = ["plumb-class 1", "name test", f"cpu {CPU} 0"]
NODES = [f"n{number}" for number in range(1, 9)]


def values(slow, random, rounds=15):
    """Rounds of a node that is slower by ``slow``, with 1 % of noise."""
    made = {}
    for name, (usual, _, better) in FIGURES.items():
        logs = random.normal(math.log1p(slow), 0.01, rounds) * (1 if better == "lower" else -1)
        made[name] = list(usual * np.exp(logs))
    return made


def check(node, number, random, slow=0.0, **changes):
    own = [
        Figure(name=name, unit=FIGURES[name][1], better=FIGURES[name][2], rounds=rounds)
        for name, rounds in values(slow, random).items()
    ]
    known = {"others": [0.0] * 15, "facts": FACTS, "bad": [], "doubts": [], "figures": own, **changes}
    return Check(schema=1, node=node, time=86400.0 * number, seconds=18.0, **known)


def checks(nodes=NODES, each=16, **slow):
    random = np.random.default_rng(7)
    return [check(node, number, random, slow.get(node, 0.0)) for node in nodes for number in range(each)]


class TestMembers:
    """Who a class is made of."""

    def test_all_that_are_alike(self):
        made = classes.make(checks(), 0.05)
        assert (made.members, made.refused, made.facts) == (NODES, {}, FACTS)
        assert (made.checks, made.days, made.disturbed) == (128, 16, 0)

    def test_not_one_that_is_slow_or_differs_or_was_disturbed(self):
        random = np.random.default_rng(1)
        found = checks(n3=0.15)
        found += [check("n20", number, random, facts={**FACTS, "memory.thp": "never"}) for number in range(4)]
        found += [check("n21", number, random, others=[1.0] * 12 + [0.0] * 3) for number in range(4)]
        found.append(check("n22", 1, random, bad=["wrong result: multiply-adds of CPU 3"]))
        made = classes.make(found, 0.05)
        assert made.members == [node for node in NODES if node != "n3"]
        assert made.refused.keys() == {"n3", "n20", "n21", "n22"}
        assert "is slower by 1" in made.refused["n3"]
        assert made.refused["n20"] == "memory.thp is 'never', not 'always'"
        assert made.refused["n21"] == "12 rounds without other work, at least 15 are needed"

    def test_memory_may_differ_by_what_kernels_keep(self):
        random = np.random.default_rng(1)
        other = [check("n9", number, random, facts={**FACTS, "memory.mib": "256500"}) for number in range(4)]
        assert "n9" in classes.make(checks() + other, 0.05).members
        other = [check("n9", number, random, facts={**FACTS, "memory.mib": "240000"}) for number in range(4)]
        assert classes.make(checks() + other, 0.05).refused["n9"] == "memory.mib is '240000', not '257000'"

    def test_the_memory_of_idle_nodes_is_what_most_checks_saw(self, tmp_path):
        random = np.random.default_rng(1)
        seen = [check(node, number, random, facts={**FACTS, classes.AVAILABLE: free})
                for node in NODES for number, free in enumerate(("200000", "250000", "251000"))]  # fmt: skip
        made = classes.make(seen, 0.05)
        text = classes.text(made, LINES, "2026-11-30", 0.05, classes.RATE, None)
        assert made.members == NODES
        assert "\nidle 250000\n" in text
        assert classes.AVAILABLE not in text
        (tmp_path / "node.class").write_text(text)
        assert run("--class", tmp_path / "node.class", "--plan").returncode == 0

    def test_checks_from_before_a_change_of_facts_do_not_count(self):
        random = np.random.default_rng(1)
        found = checks()
        before = {**FACTS, "cpu.microcode": "0x1"}
        for number in range(16):
            found += [check("n9", number, random, 0.15, facts=before), check("n9", 16 + number, random)]
        found.append(check("n9", 3, random, facts=before, bad=["/tmp has 0 GiB free, 0.93 GiB are needed"]))
        made = classes.make(found, 0.05)
        assert (made.members, made.refused, made.facts) == ([*NODES, "n9"], {}, FACTS)
        assert (made.checks, made.outdated) == (128 + 16, 17)

    def test_two_kinds_are_no_class(self):
        random = np.random.default_rng(1)
        kinds = [check(node, number, random, facts={"cpu.model": node}) for node in "ab" for number in range(4)]
        with pytest.raises(PlumbError, match=r"not of one kind: cpu\.model is 'a' on 1 of 2"):
            classes.make(kinds, 0.05)

    @pytest.mark.parametrize("found", [[], checks(["n1"], 1)[:0], checks(["n1"], 0)])
    def test_nothing_is_no_class(self, found):
        with pytest.raises(PlumbError, match="no class can be made"):
            classes.make(found, 0.05)


class TestLimits:
    """What a class promises."""

    def test_long_checks_find_less(self):
        made = classes.make(checks(), 0.05)
        assert made.rounds == {10: 5, 25: 13, 55: 33, 120: 75, 900: 401}
        found = [made.limits[seconds]["memory"].detectable for seconds in (25, 55, 120, 900)]
        assert all(one is not None and 0.05 <= one < 0.08 for one in found)
        few = classes.make(checks(each=4), 0.05).limits[10]["memory"]
        assert few.member is None
        assert few.missing > 0

    def test_few_nodes_say_nothing_of_others(self):
        few, many = (classes.make(checks(NODES[:count], 32), 0.05).limits[55]["memory"] for count in (4, 8))
        assert few.member is not None
        assert few.non_member is None
        assert many.non_member is not None
        assert many.member is not None
        assert many.non_member >= many.member

    def test_one_check_promises_nothing(self):
        made = classes.make(checks(["n1"], 1), 0.05)
        assert {one.member for one in made.limits[55].values()} == {None}

    def test_a_tolerance_is_never_exceeded(self):
        made = classes.make(checks(), 0.20)
        for name, one in made.limits[900].items():
            usual, _, better = FIGURES[name]
            limit = made.figures[name].value(one.member or 0.0)
            assert (limit <= usual / 1.19) if better == "higher" else (limit >= usual * 1.19)


class TestByThePlumbCheck:
    """The class file, read and used by plumb-check itself."""

    def state(self, file, node, drawn):
        rounds = file.with_name("rounds")
        lines = [" ".join(f"{name} {drawn[name][row]:.9g}" for name in drawn) for row in range(13)]
        rounds.write_text("\n".join(lines) + "\n")
        words = ["--class", file, "--measured", rounds, "--node", node, "--form", "json", "--state"]
        return str(json.loads(run(*words, file.with_name("state")).stdout)["state"])

    def made(self, folder):
        made = classes.make(checks(), 0.05)
        without = classes.Class(**{**vars(made), "facts": {}})  # this host is not of that kind
        file = folder / "made.class"
        file.write_text(classes.text(without, LINES, "2026-11-25T10:00:00Z", 0.05, classes.RATE, None))
        return made, file

    def test_healthy_nodes_are_not_bad(self, tmp_path):
        """`make rates` has how often they are."""
        random = np.random.default_rng(11)
        _, file = self.made(tmp_path)
        assert {self.state(file, node, values(0.0, random, 13)) for node in NODES} == {"ok"}

    @pytest.mark.parametrize("name", FIGURES)
    @pytest.mark.parametrize(("beyond", "state"), [(6, "ok"), (7, "bad")])
    def test_most_rounds_beyond_the_limit_are_bad(self, tmp_path, name, beyond, state):
        made, file = self.made(tmp_path)
        limit = made.limits[25][name].member
        assert limit is not None
        drawn = {figure: [usual] * 13 for figure, (usual, _, _) in FIGURES.items()}
        slow, fine = (made.figures[name].value(limit + offset) for offset in (1e-4, -1e-4))
        drawn[name] = [slow] * beyond + [fine] * (13 - beyond)
        assert self.state(file, "n1", drawn) == state

    def test_what_is_said_to_be_found_is_found(self, tmp_path):
        random = np.random.default_rng(12)
        made, file = self.made(tmp_path)
        slow = max(one.detectable or 0.0 for one in made.limits[25].values())
        assert [self.state(file, "n1", values(slow, random, 13)) for _ in range(10)] == ["bad"] * 10

    def test_the_plan(self, tmp_path):
        _, file = self.made(tmp_path)
        lines = run("--class", file, "--plan", status=0).stdout.splitlines()
        assert lines[0].startswith("class test, made 2026-11-25T10:00:00Z, of 8 nodes; at most 1e-05 of the checks")
        assert len([line for line in lines if " memory " in line]) == 5


class TestPlan:
    """What is measured on a node."""

    def lines(self, topology):
        file = paths.root() / "tests/data/topologies" / topology
        return classes.plan_lines("a:b", binder.resolve("core", memory="local", topology=file))

    def test_each_core_once_and_neighbours_of_a_numa_node(self):
        lines = self.lines("epyc-2x64-smt2.xml")
        cores = {int(line.split()[1]): int(line.split()[2]) for line in lines if line.startswith("cpu ")}
        pairs = [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("pair ")]
        assert len(cores) == 128
        assert sorted(cpu for pair in pairs for cpu in pair) == sorted(cores)
        assert all(cores[first] == cores[second] for first, second in pairs)

    def test_the_odd_one_has_no_neighbour(self):
        lines = self.lines("asymmetric-cgroup.xml")
        cores = [line for line in lines if line.startswith("cpu ")]
        pairs = [line for line in lines if line.startswith("pair ")]
        assert 2 * len(pairs) <= len(cores)


class TestCommands:
    """plumb calibrate --nodes and plumb check, on this host, with a plumb-check whose rounds are given."""

    @pytest.fixture(autouse=True)
    def host(self, tmp_path, monkeypatch):
        tools = tmp_path / "tools" / "bin"
        tools.mkdir(parents=True)
        (tools / "plumb-bind").symlink_to(paths.binder())
        rounds = tmp_path / "rounds"
        random = np.random.default_rng(3)
        names = {"memory": 1.0, "fma": 1.0}
        lines = [" ".join(f"{name} {random.normal(100, 1):.6g}" for name in names) for _ in range(15)]
        rounds.write_text("\n".join(lines) + "\n")
        runner = tools / "plumb-check"
        runner.write_text(f'#!/bin/sh\nexec {paths.checker()} "$@" --measured {rounds} --state {tmp_path}/state\n')
        runner.chmod(0o755)
        for name in ("sites", "build", "tools", "results"):
            monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
        assert cli.main(["site", "init"]) == 0

    def test_from_nothing_to_a_check(self, tmp_path, capsys):
        assert cli.main(["calibrate", "--nodes", "1", "--checks", "20", "--json"]) in (0, 1)
        out, err = capsys.readouterr()
        assert {json.loads(one)["figure"] for one in out.splitlines()[1:] if one.startswith("{")} == {"memory", "fma"}
        file = node_checks.class_file(site.here(), "default")
        assert f"written: {file}" in err
        assert "one day says nothing about others" in err
        assert len(model.read([file.with_suffix(".jsonl")])) == 20
        assert cli.main(["calibrate", "--nodes", "1", "--checks", "2"]) in (0, 1)
        assert len(model.read([file.with_suffix(".jsonl")])) == 22
        capsys.readouterr()
        assert cli.main(["check", "--plan"]) == 0
        assert cli.main(["check", "--seconds", "55"]) in (0, 1)

    def test_checks_from_before_a_change_of_facts_are_counted(self, capsys):
        assert cli.main(["calibrate", "--nodes", "1", "--checks", "3"]) in (0, 1)
        assert "change of facts" not in capsys.readouterr().out
        kept = node_checks.class_file(site.here(), "default").with_suffix(".jsonl")
        before = [{**one, "facts": {"cpu.model": "another"}} for one in map(json.loads, kept.read_text().splitlines())]
        kept.write_text("".join(f"{json.dumps(one)}\n" for one in before))
        assert cli.main(["calibrate", "--nodes", "1", "--checks", "2"]) in (0, 1)
        assert "3 checks from before a change of facts of the node left out" in capsys.readouterr().out

    def test_without_a_class_the_command_that_makes_one_is_named(self, refused):
        assert "plumb calibrate --nodes 1 --site local --partition default" in refused(2, "check")

    def test_a_dry_run_measures_nothing(self, tmp_path, output_of):
        assert "would measure 1 node, 8 x 25 s each" in output_of(0, "calibrate", "--nodes", "1", "--dry-run")
        assert not (tmp_path / "build" / "health").exists()

    @pytest.mark.parametrize(("words", "what"), [
        (["calibrate", "--nodes", "1", "--checks", "0"], "--checks is 0"),
        (["calibrate", "--nodes", "1", "--partition", "nope"], "nope"),
        (["calibrate", "--nodes", "1", "--checks", "1001"], "--checks is 1001"),
        (["calibrate", "--nodes", "1", "--seconds", "0.5"], "--seconds is 0.5"),
        (["calibrate", "--nodes", "1", "--rate", "0", "--dry-run"], "rate 0"),
        (["calibrate", "--node", "other", "--dry-run"], "other is not this host (partition default): --node "),
        (["check", "--write", "."], "this is a folder (.): name a file"),
        (["check", "--class", "/nowhere"], "no such file (/nowhere)"),
        (["check", "--class", "/nowhere", "--node", "a", "--node", "b"], "2 nodes are named"),
    ])  # fmt: skip
    def test_bad_input_is_one_line(self, words, what, capfd):
        capfd.readouterr()
        assert cli.main(words) == 2
        assert what in capfd.readouterr().err

    def test_what_nagios_is_told_of_bad_options(self, capsys):
        """2 would be a node that is bad."""
        for words in (["--form", "nagios", "--seconds", "x"], ["--form=nagios", "--wrong"]):
            with pytest.raises(SystemExit) as ended:
                cli.main(["check", *words])
            assert ended.value.code == 3

    def test_a_kept_file_that_is_damaged(self, tmp_path, refused):
        file = node_checks.class_file(site.here(), "default").with_suffix(".jsonl")
        file.parent.mkdir()
        file.write_text('{"schema": 1}\n')
        assert f"({file}, line 1): remove the line" in refused(2, "calibrate", "--nodes", "1", "--checks", "1")
        assert file.read_text() == '{"schema": 1}\n'
