"""``plumb bisect`` with gates that make their numbers up: what is kept, interruptions, time, files, options."""

import json
import re
import threading

import pieces
import pytest
import samples
import stack_manifest
from fake_bench import FakeBench
from git_history import linear, stepped
from msgspec.structs import replace

from plumbline.commands import cli
from plumbline.extras.search.bisect import bench
from plumbline.extras.search.bisect.search import ATTEMPTS, SCREENED
from plumbline.gate import duet, live, rules, setup, sides
from plumbline.measure import jobs, session
from plumbline.measure.application import model
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import LOOKS

CIRCUMSTANCES = {"commit": "c", "stacks": {"mpich": "1"}, "nodes": "node1", "environment": "e"}

DESCRIBED = "{application: heat, programs: {heat: {command: ./heat, figures: {triad: {wall: true}}}}}"


class Crash(Exception):
    """What nothing catches."""


class World:
    """A repository of 17 commits whose times are made up; ``broken`` ones do not build, ``spoiled`` ones answer wrong.

    ``started``: the commits of each pair, in order. After ``most`` launches each raises ``end``.
    """

    def __init__(self, folder):
        self.history = linear(folder, 16)
        self.times = stepped(16, {11: 1.1})
        self.broken, self.spoiled, self.disturbed, self.noise = (), (), (), 0.002
        self.most, self.end = None, Crash()
        self.launches, self.began = 0, []
        self.only = []
        self.programs = ""

    def subject(self, side):
        return self.history.subjects[side.spelling.removeprefix("commit:")]

    def prepare(self, request, say, build=None):
        """As :func:`plumbline.gate.setup.prepare`."""
        names = [self.subject(side) for side in request.both]
        if names[0] != names[1]:
            self.began.append(tuple(names))
            self.only.append((request.variant, request.figure))
        for name, side in zip(names, request.both, strict=True):
            if name in self.broken:
                raise sides.Unusable(side, "error: expected ';'", "heat.c", "correct it")
        variants = [samples.asked(name=name, environment={}) for name in ("heat", "study")]
        wanted = [one for one in variants if request.variant in (None, one.name)]
        settled = [rules.settle(one, *rules.imposed(request.terms.rule), request.terms.rule) for one in wanted]
        name = f"20260101T000000Z-n-{request.folder.parent.parent.name}-{request.folder.name}"
        couples = [[one, replace(one, stack="mpich@other")] for one in settled]
        begun = setup.Session(name, *names, couples, request.terms, dict(CIRCUMSTANCES))
        setup.GATE.begin(request.folder, begun)
        return request.folder

    def bench(self, begun, folder):
        """As :class:`plumbline.gate.live.GateBench`."""
        names = [begun.baseline, begun.candidate]
        ratio = self.times[names[1]] / self.times[names[0]]
        ratios = [ratio if couple[0].name == "heat" else 1.0 for couple in begun.couples]
        wrong = {"verified": False, "reasons": ["wrong answer"]}
        spoil = {(0, side, 2): wrong for side, name in enumerate(names) if name in self.spoiled}
        is_disturbed = folder.name in self.disturbed
        made = FakeBench(begun, folder, ratios, self.noise, flag=lambda side, index: is_disturbed, spoil=spoil)
        launch = made.launch

        def counted(*words):
            if self.most is not None and self.launches >= self.most:
                raise self.end
            self.launches += 1
            return launch(*words)

        made.launch = counted
        if self.programs:
            made.program = lambda which: self.programs[int(names[which])]
        return made


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The present folder is a repository with a plumb.yaml; nothing is launched."""
    made = World(tmp_path / "code")
    for name in ("RESULTS", "BUILD", "STACKS"):
        monkeypatch.setenv(f"PLUMB_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(made.history.folder)
    (made.history.folder / model.FILE).write_text(DESCRIBED)
    monkeypatch.setattr(session, "circumstances", lambda stacks: dict(CIRCUMSTANCES))
    monkeypatch.setattr(manifests, "names", lambda: ["mpich"])
    monkeypatch.setattr(manifests, "load", lambda name: stack_manifest.made(name))
    monkeypatch.setattr(setup, "prepare", made.prepare)
    monkeypatch.setattr(setup, "partition_of", lambda begun: samples.partition())
    monkeypatch.setattr(live, "GateBench", made.bench)
    return made


def bisect(*words):
    return cli.main(["bisect", *map(str, words)])


def new(tmp_path, world, *words):
    ends = [world.history.names[name] for name in ("0", "16")]
    return bisect(*ends, "--stack", "mpich", "--seed", 1, "--work", tmp_path / "work", *words)


def named(file):
    return [re.search(r"\((\d+), ", item["label"])[1] for item in json.loads(file.read_text())["culprits"]]


def test_a_plumb_yaml_below_the_top_of_its_repository(world, tmp_path, monkeypatch):
    below = world.history.folder / "code"
    below.mkdir()
    (world.history.folder / model.FILE).rename(below / model.FILE)
    monkeypatch.chdir(below)
    assert new(tmp_path, world, "--output", tmp_path / "found.json") == 0
    assert named(tmp_path / "found.json") == ["11"]


def test_the_commit_is_named_and_all_is_written(world, tmp_path, capsys):
    files = [tmp_path / f"found.{ending}" for ending in ("json", "md", "html")]
    assert new(tmp_path, world, *(word for file in files for word in ("--output", file))) == 0
    answer = rf"{world.history.names['11'][:12]} \(11, \d{{4}}-\d\d-\d\d\) makes heat: triad slower by 10 % "
    out = capsys.readouterr().out
    assert re.search(rf"^bisect: {answer}", out, re.MULTILINE)
    document = json.loads(files[0].read_text())
    assert re.match(answer, document["answer"])
    assert (document["status"], named(files[0])) == (0, ["11"])
    assert [world.history.subjects[step["commit"]] for step in document["steps"]] == ["8", "12", "10", "11"]
    assert files[1].read_text().startswith("**" + document["answer"][:12])
    (found,) = re.findall('<script type="application/json" id="data">(.*?)</script>', files[2].read_text(), re.DOTALL)
    page = json.loads(found)
    assert len(pieces.rows(pieces.section(page, "steps"))) == 6
    (chart,) = pieces.blocks(page, "chart")
    assert [row[0] for row in chart["rows"]] == [8, 10, 11, 12, 16]
    assert world.only[0] == (None, None)
    assert set(world.only[1:]) == {("heat", "triad")}, "the slowest series alone is followed"


def test_all_gates_have_the_order_that_is_named(world, tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(duet, "duet", lambda make, folder: folders.append(folder) or make())
    assert new(tmp_path, world, "--order", "duet") == 0
    assert {folder.name[:3] for folder in folders} == {f"{number:03}" for number in range(len(world.began))}
    assert all("--order duet" in " ".join(setup.GATE.peek(folder).terms.command) for folder in folders)


def test_ends_that_do_not_differ_are_said(world, tmp_path, capsys):
    world.times = stepped(16, {})
    assert new(tmp_path, world) == 1
    assert "is not slower than" in capsys.readouterr().out.splitlines()[-1]
    assert world.began == [("0", "16")]


@pytest.mark.parametrize(("way", "reason"), [
    ("broken", "error: expected ';' (heat.c): correct it"),
    ("spoiled", "the candidate is not verified: wrong answer"),
])  # fmt: skip
def test_what_cannot_be_measured_is_skipped(world, tmp_path, way, reason):
    setattr(world, way, ("8",))
    assert new(tmp_path, world, "--output", tmp_path / "o.json") == 0
    assert named(tmp_path / "o.json") == ["11"]
    first, *others = json.loads((tmp_path / "o.json").read_text())["steps"]
    assert (first["said"], first["reason"][: len(reason)], len(first["gates"])) == ("skip", reason, 1)
    assert "skip" not in [step["said"] for step in others]


@pytest.mark.parametrize("name", ["0", "16"])
def test_an_end_that_cannot_be_measured_is_an_error(world, tmp_path, capsys, name):
    world.broken = (name,)
    assert new(tmp_path, world) == 3
    assert capsys.readouterr().err.count("expected ';' (heat.c)") == 1
    world.broken, world.spoiled = (), (name,)
    assert bisect("--resume", tmp_path / "work") == 3


def test_an_interrupted_bisection_reads_what_it_has(world, tmp_path, capsys):
    assert new(tmp_path, world, "--output", tmp_path / "whole.json") == 0
    whole, launches = (tmp_path / "whole.json").read_text(), world.launches
    world.most, world.launches = 74, 0  # whole pairs: of one that is torn a launch is made again
    words = ["bisect", *(world.history.names[name] for name in ("0", "16")), "--stack", "mpich", "--seed", "1"]
    assert cli.main([*words, "--work", str(tmp_path / "again")]) == 3  # a crash
    began = len(world.began)
    for most in (76, 80, None):
        world.most = most
        assert bisect("--resume", tmp_path / "again", "--output", tmp_path / "o.json") == (0 if most is None else 3)
    assert world.launches == launches
    assert len(world.began) - began < began  # a gate that had begun is not begun again
    again = (tmp_path / "o.json").read_text()
    assert re.sub("work", "again", whole) == again


def test_time_that_is_up_loses_nothing(world, tmp_path, capsys):
    assert new(tmp_path, world, "--minutes", 1e-9) == 2
    assert "time is up: plumb bisect --resume" in capsys.readouterr().out.splitlines()[-1]
    assert bisect("--resume", tmp_path / "work") == 0
    assert len(json.loads((tmp_path / "work" / "bisect.json").read_text())["comparisons"]) == 6


def test_a_gate_that_disturbance_leaves_open_is_measured_again(world, tmp_path):
    first = f"001-{world.history.names['0'][:8]}-{world.history.names['8'][:8]}"
    world.disturbed = (first, f"{first}-2")
    assert new(tmp_path, world) == 0
    assert (tmp_path / "work" / "gates" / f"{first}-3").is_dir()
    kept = json.loads((tmp_path / "work" / "bisect.json").read_text())["comparisons"][1]
    assert (kept["state"], kept["folder"]) == ("PASS", f"gates/{first}-3")
    assert kept["launches"] > 3 * 2 * LOOKS[0]
    world.disturbed = (first, *(f"{first}-{number}" for number in range(2, ATTEMPTS + 1)))
    began = len(world.began)
    ends = [world.history.names[name] for name in ("0", "16")]
    bisect(*ends, "--stack", "mpich", "--work", tmp_path / "other")
    assert world.began[began + 1 :][: ATTEMPTS + 1] == [("0", "8")] * ATTEMPTS + [("8", "16")]


def test_ends_that_are_measured_again_are_so_in_every_figure(world, tmp_path):
    """What the disturbed gate called worst need not be what is slower."""
    world.disturbed = (f"000-{world.history.names['0'][:8]}-{world.history.names['16'][:8]}",)
    assert new(tmp_path, world) == 0
    assert world.only[:2] == [(None, None)] * 2
    assert set(world.only[2:]) == {("heat", "triad")}


def test_two_do_not_work_in_one_folder(world, tmp_path, capsys):
    assert new(tmp_path, world, "--minutes", 1e-9) == 2
    with bench.BISECTION.locked(tmp_path / "work"):
        found = []
        other = threading.Thread(target=lambda: found.append(bisect("--resume", tmp_path / "work")))
        other.start()
        other.join()
    assert found == [3]
    assert "another bisection runs in this folder" in capsys.readouterr().err


def test_a_login_host_submits_all_of_it_as_one_job(world, tmp_path, monkeypatch, capsys):
    submitted = []

    def submit(job, say):
        submitted.append(job)
        return cli.main(list(job.command)[1:])

    monkeypatch.setattr(jobs, "needed", lambda part: not submitted)
    monkeypatch.setattr(jobs, "run", submit)
    world.times = stepped(16, {})
    assert new(tmp_path, world, "--json") == 1
    assert json.loads(capsys.readouterr().out)["status"] == 1
    assert len(submitted) == 1
    state = json.loads((tmp_path / "work" / "bisect.json").read_text())
    assert state["asked"]["circumstances"]["nodes"] == "node1"


def test_the_plan_measures_nothing(world, tmp_path, capsys):
    ends = [world.history.names[name] for name in ("0", "16")]
    assert bisect(*ends, "--stack", "mpich", "--dry-run") == 0
    out = capsys.readouterr().out
    assert out.startswith("16 commits: 4 steps, for one change about 8 gates")
    assert "144 to 1440 in all" in out
    assert world.began == []


@pytest.mark.parametrize(("words", "said"), [
    ([], "two commits are needed"),
    (["main"], "two commits are needed"),
    (["main", "nosuch"], "'nosuch' is not a commit"),
    (["main", "main"], "main and main are the same commit"),
    (["main~3", "main", "--must-detect", "0.001"], "must-detect has to be the larger one"),
    (["main~3", "main", "--resume", "work"], "--resume continues a bisection that was started"),
    (["--resume", "absent"], "no such folder"),
    (["--resume", ".", "--first-parent"], "--resume continues"),
])  # fmt: skip
def test_bad_input_is_one_line(world, capsys, words, said):
    assert bisect(*words, *(["--stack", "mpich"] if words[:1] == ["main"] and "--resume" not in words else [])) == 3
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_damaged_state_is_one_line(world, tmp_path, refused):
    new(tmp_path, world, "--minutes", 1e-9)
    (tmp_path / "work" / "bisect.json").write_text("{}")
    assert "not the state of a bisection" in refused(3, "bisect", "--resume", tmp_path / "work")


def test_commits_with_the_same_program_are_measured_once(world, tmp_path, capsys):
    world.programs = "aaaabbbbccccddddd"  # of the 17 commits; the last step of c makes nothing slower
    world.times = stepped(16, {8: 1.1})
    assert new(tmp_path, world, "--output", tmp_path / "found.json") == 0
    assert named(tmp_path / "found.json") == ["8"]
    # the ends, one commit of b and of c, the commit against its parent, what is left on either side by whole gates
    measured = [tuple(world.programs[int(name)] for name in pair) for pair in world.began]
    assert len(measured) <= 6
    looked = len(json.loads((tmp_path / "work" / "bisect.json").read_text())["programs"])
    assert json.loads((tmp_path / "found.json").read_text())["launches"] == world.launches + looked
    assert "the same program on both sides" not in capsys.readouterr().out.splitlines()[-1]


def test_a_step_takes_few_pairs_and_the_culprit_a_whole_gate(world, tmp_path):
    assert new(tmp_path, world) == 0
    kept = json.loads((tmp_path / "work" / "bisect.json").read_text())["comparisons"]
    pairs = [(item["pairs"], item["launches"]) for item in kept]
    assert pairs[1:5] == [(SCREENED, 2 * SCREENED)] * 4
    assert all(number >= LOOKS[0] for number, _ in (pairs[0], *pairs[5:]))


def test_two_programs_need_one_gate(world, tmp_path):
    world.programs = "a" * 11 + "b" * 6
    assert new(tmp_path, world, "--output", tmp_path / "found.json") == 0
    assert named(tmp_path / "found.json") == ["11"]
    assert world.began == [("0", "16")]


def test_equal_programs_are_measured_where_that_is_wanted(world, tmp_path):
    world.programs = "a" * 11 + "b" * 6
    assert new(tmp_path, world, "--measure-equal") == 0
    assert len(world.began) == 6
