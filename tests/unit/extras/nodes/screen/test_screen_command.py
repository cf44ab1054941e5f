"""plumb screen on a fake Slurm whose nodes run plumb-check on rounds that are given to it, and on this host."""

import dataclasses
import json
import shutil
import statistics
import time
from pathlib import Path

import fake_scheduler
import msgspec
import pytest
import samples
from check_runs import FINE, class_file, rounds

from plumbline import schedulers, site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.nodes import checks, links, model
from plumbline.extras.nodes.screening import Terms
from plumbline.measure import jobs
from plumbline.records import model as records
from plumbline.records import store
from plumbline.schedulers import program as scheduler_program

SLOW = {"memory": 70.0}
#: nodes by what sinfo says
NODES = {"n1": "idle", "n2": "idle", "n3": "allocated", "n4": "drained"}


def program(file, text):
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A site with a class, whose plumb-check takes the rounds in ``rounds-NODE`` or ``rounds``."""
    tools = tmp_path / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "plumb-bind").symlink_to(paths.binder())
    rounds(tmp_path, *[FINE] * 5)
    given = f'for word; do file={tmp_path}/rounds-$word; [ ! -f "$file" ] || set -- "$@" --measured "$file"; done'
    last = f'exec {paths.checker()} --measured {tmp_path}/rounds "$@" --state {tmp_path}/state'
    program(tools / "plumb-check", f"{given}\n{last}")
    for name in ("sites", "build", "tools", "results", "stacks"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    assert cli.main(["site", "init"]) == 0
    made = checks.class_file(site.here(), "default")
    made.parent.mkdir()
    shutil.move(class_file(tmp_path, "jobs /usr/local/lib/plumbline/health.sh slurm jobs"), made)
    return tmp_path


@pytest.fixture
def slurm(place, monkeypatch):
    """The site has a Slurm with :data:`NODES`; a job is on n3."""
    fake = fake_scheduler.install("slurm", place, monkeypatch)
    lines = "\n".join(f"{name}|{state}|none" for name, state in NODES.items())
    program(fake.state / "bin" / "sinfo", f"cat <<.\n{lines}\n.")
    program(fake.state / "bin" / "squeue", 'case " $* " in *" n3 "*) echo 17 ;; esac')
    file = site.folder(site.here()) / "site.yaml"
    file.write_text(file.read_text().replace("scheduler: local", "scheduler: slurm"))
    return fake


def slow(place, node):
    (place / "rounds").rename(place / "fine")
    rounds(place, *[SLOW] * 5).rename(place / f"rounds-{node}")
    (place / "fine").rename(place / "rounds")


def history():
    return checks.class_file(site.here(), "default").with_suffix(".screen.jsonl")


def again(place, days):
    """What was checked is older by so many days."""
    kept = [msgspec.structs.replace(one, time=one.time - 86400 * days) for one in model.history(history())]
    history().unlink()
    model.append(history(), kept)


class TestOnTheFakeSlurm:
    """One call, from the choice of the nodes to the closing line."""

    def test_idle_nodes_are_checked_and_others_named(self, place, slurm, capsys, output_of):
        capsys.readouterr()
        out = output_of(0, "screen")
        assert {one.node: one.state for one in model.history(history())} == {"n1": "ok", "n2": "ok"}
        assert "left out: 1 node, busy: n3\nleft out: 1 node, cannot be used: n4\n" in out
        assert out.endswith("screen: 2 of 4 nodes within 7 days: 2 ok\n")
        words = slurm.words("start")
        assert words is not None
        assert {"--exclusive", "--nodes=2", "--nodelist=n[1-2]"} <= set(words)
        before = history().read_bytes()
        assert cli.main(["screen"]) == 0
        assert history().read_bytes() == before

    def test_a_bad_node(self, place, slurm, capsys, output_of):
        slow(place, "n2")
        assert "n2      bad" in output_of(1, "screen", "--output", str(place / "m.html"))
        assert "found once" in (place / "m.html").read_text()
        assert cli.main(["screen", "--json"]) == 1
        out, err = capsys.readouterr()
        found = {one["node"]: one for one in map(json.loads, out.splitlines())}
        assert {name: one["state"] for name, one in found.items()} == {
            "n1": "ok", "n2": "bad", "n3": "due", "n4": "due",
        }  # fmt: skip
        assert "in 2 checks in a row" in found["n2"]["line"]
        assert err.endswith("screen: 2 of 4 nodes within 7 days: 1 ok, 1 bad\n")
        assert [one.node for one in model.history(history())].count("n2") == 2
        (place / "rounds-n2").unlink()
        again(place, 5)
        assert cli.main(["screen"]) == 0

    def test_a_dry_run_starts_nothing(self, place, slurm, output_of):
        out = output_of(0, "screen", "--dry-run", "--node-hours", "0.007")
        assert "would check 1 node, 25 s each: n1" in out
        assert "left out: 2 nodes, no node hours are left: n2, n3" in out
        assert slurm.words("start") is None
        assert not history().exists()

    def test_a_node_that_does_not_answer(self, place, slurm, monkeypatch, output_of):
        monkeypatch.setattr(scheduler_program, "LOG_S", 0.1)
        program(place / "tools" / "bin" / "plumb-check", "echo '{\"schema\":1}'; exit 1")
        assert "left out: 2 nodes, it did not answer: n1, n2" in output_of(0, "screen")
        assert not history().exists()

    def test_what_a_killed_call_left_is_taken(self, place, slurm):
        """The job of the killed call had ended: its nodes are not checked again."""
        assert cli.main(["screen"]) == 0
        lines = history().read_text().splitlines()
        history().write_text(f"{lines[0]}\n{lines[1][:50]}")
        left = paths.build() / "health" / site.here() / "default.screen"
        for line in lines:
            (left / f"{json.loads(line)['node']}.json").write_text(line)
        (left / "n9.json").write_text("{")
        (slurm.state / "start.called").unlink()
        assert cli.main(["screen"]) == 0
        assert sorted(history().read_text().splitlines()) == sorted(lines)
        assert list(left.glob("*.json")) == []
        assert slurm.words("start") is None

    def test_two_calls_at_once(self, place, slurm, capsys):
        with files.lock(paths.build() / "health" / site.here() / "default.screen.lock"):
            assert cli.main(["screen"]) == 2
        assert "another plumb screen of this partition is at work" in capsys.readouterr().err

    def test_links_by_a_stack_that_is_not_there(self, place, slurm, refused):
        assert "has the kernels (its stacks: nope)" in refused(2, "screen", "--links", "--stack", "nope")
        assert not history().exists()

    def test_nobody_can_say_whether_there_are_jobs(self, place, slurm, refused):
        program(slurm.state / "bin" / "squeue", "exit 1")
        assert "nobody can say whether jobs are on n1" in refused(2, "screen")
        assert slurm.words("start") is None


def test_jobs_on_a_node_of_each_scheduler():
    """Without jobs there are none; where nobody can say, that is an error."""
    assert schedulers.named("local").jobs_on("n1") == schedulers.named("ssh").jobs_on("n1") == ""
    with pytest.raises(PlumbError, match="cannot say whether jobs are on a node"):
        schedulers.named("lsf").jobs_on("n1")


class TestHere:
    """Without a scheduler, and with what cannot be."""

    def test_this_host(self, place, output_of):
        assert output_of(0, "screen").endswith("screen: 1 of 1 node within 7 days: 1 ok\n")

    @pytest.mark.parametrize(("words", "what"), [
        (["--seconds", "30"], "the class has no checks of 30 s"),
        (["--partition", "nope"], "nope"),
        (["--links"], "links are between two nodes or more"),
        (["--history", "/nowhere"], "nothing was checked (/nowhere)"),
        (["--output", "m.txt"], "the ending of the file says no known form"),
        (["--time-limit", "25"], "a job of 25 s has no time for a check of 25 s (--time-limit)"),
    ])  # fmt: skip
    def test_bad_input_is_one_line(self, place, words, what, refused):
        assert what in refused(2, "screen", *words)

    @pytest.mark.parametrize("content", [b"\xff\xfe", b"budget \n", b""])
    def test_a_class_that_is_none(self, place, content, capsys):
        file = checks.class_file(site.here(), "default")
        file.write_bytes(content)
        capsys.readouterr()
        assert cli.main(["screen", "--dry-run"]) == 2
        said = f"the class has no checks of 25 s ({file}): make it again by plumb calibrate --nodes\n"
        assert capsys.readouterr().err == f"plumb: {said}"

    def test_without_a_class(self, place, refused):
        checks.class_file(site.here(), "default").unlink()
        assert "plumb calibrate --nodes 1" in refused(2, "screen")


class TestLinks:
    """Groups in jobs of their own, whose records are what is known; a search that was cut off goes on."""

    NAMES = tuple(f"m{number:02}" for number in range(24))

    @pytest.fixture
    def launched(self, place, monkeypatch):
        """The groups that were launched; m05 is slow. A job leaves a record as plumb launch does."""
        made = []

        def launch(words, part, nodes, folder, say, hosts, limit):
            made.append(hosts)
            variant = json.loads(Path(words[1]).read_text())
            values = [(70.0 if "m05" in hosts else 100.0) + 0.1 * ((3 * len(made) + n) % 5) for n in range(5)]
            own = [samples.launch(order, value) for order, value in enumerate(values)]
            document = {**samples.record(nodes=list(hosts), time=store.now(), id=f"{len(made):012x}"), "launches": own}
            document |= {"variant": variant, "site": site.here()}
            one = records.convert(document)
            known = {"name": links.FIGURE, "unit": "MB/s", "better": "higher", "limit": None, "reference": None}
            middle = statistics.median(values)
            one.figures = [records.Figure(**known, value=middle, launches=5, samples=values)]
            store.write(store.session_file(one.site, store.new_session()), [one])
            return 0

        monkeypatch.setattr(jobs, "run_plumb", launch)
        return made

    def links(self, say=lambda line: None, **changes):
        part = site.load(site.here()).partitions[0]
        terms = Terms(7, changes.pop("hours", None), 25, time.time())
        stack = changes.pop("stack", "mpich")
        return links.Links(site.here(), part, stack, 2, terms, 0.05, 60, say, **changes)

    def test_a_slow_pair_is_followed_to_its_node(self, launched):
        mine = self.links()
        groups = mine.groups(self.NAMES)
        assert sorted(node for own in groups for node in own) == sorted(self.NAMES)
        found = links.search(groups, mine.measure)
        assert (found.nodes, found.rounds, len(launched)) == (["m05"], 2, 15)
        assert links.lines(mine, found, len(groups)) == [
            "bad: node m05: every group with it is slow",
            "links: 12 groups, and 2 rounds of halves; 15 measured now",
        ]

    def test_a_node_without_a_partner_is_named_and_is_another_one_in_the_next_period(self, launched):
        names, alone = self.NAMES[:7], set()
        mine = self.links()
        for _ in range(7):
            groups = mine.groups(names)
            (left,) = mine.left_over
            assert sorted([left, *(node for own in groups for node in own)]) == sorted(names)
            alone.add(left)
            mine.terms = dataclasses.replace(mine.terms, now=mine.terms.now + 7 * 86400)
        assert alone == set(names)
        said = links.lines(mine, links.search([], mine.measure), 3)
        assert said[0] == f"in no group in this period: {left}: fewer than 2 are left of the idle nodes"

    def test_the_next_call_measures_nothing_and_says_the_same(self, launched):
        first = self.links()
        links.search(first.groups(self.NAMES), first.measure)
        second = self.links()
        groups = second.groups(self.NAMES)
        assert (len(groups), links.search(groups, second.measure).nodes, len(launched), second.launched) == (
            12, ["m05"], 15, 0,
        )  # fmt: skip

    def test_another_stack_is_measured_anew(self, launched):
        """Groups of two MPI libraries are not compared; the node hours are those of both."""
        for number, stack in enumerate(("mpich", "openmpi"), 1):
            mine = self.links(stack=stack)
            assert mine.spent() == (number - 1) * 15 * 120
            assert links.search(mine.groups(self.NAMES), mine.measure).nodes == ["m05"]
            assert (len(launched), mine.launched) == (number * 15, 15)

    def test_a_call_that_was_killed_goes_on(self, launched):
        for stop in (7, 13):
            mine = self.links()
            mine.say = lambda line: None
            groups = mine.groups(self.NAMES)

            def measure(nodes, own=mine, stop=stop):
                if len(launched) == stop:
                    raise KeyboardInterrupt
                links.Links._launch(own, nodes)

            mine._launch = measure
            with pytest.raises(KeyboardInterrupt):
                links.search(groups, mine.measure)
        last = self.links()
        assert (links.search(last.groups(self.NAMES), last.measure).nodes, len(launched)) == (["m05"], 15)

    def test_node_hours(self, launched):
        """0.1 h are 360 s: three pairs of 120 s."""
        mine = self.links(hours=0.1)
        groups = mine.groups(self.NAMES)
        found = links.search(groups, mine.measure)
        assert (len(launched), len(found.open)) == (3, 12)
        assert "open: 9 groups: no node hours are left" in "\n".join(links.lines(mine, found, len(groups)))

    def test_a_job_that_cannot_be_had(self, place, monkeypatch):
        def refuse(*words):
            raise PlumbError("the job did not end in time", "x", "y")

        monkeypatch.setattr(jobs, "run_plumb", refuse)
        mine = self.links()
        found = links.search(mine.groups(self.NAMES[:4]), mine.measure)
        assert (found.nodes, mine.why[found.open[0]]) == ([], "the job did not end in time")
