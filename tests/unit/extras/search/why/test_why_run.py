"""Whole searches with launches that are made up: the ends, the effects, what is kept, and what is said."""

import itertools
import json
import math
import re
import time
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import samples
import stack_manifest

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.extras.search.why import ends, run
from plumbline.extras.search.why.answer import Answer, page
from plumbline.extras.search.why.model import WHY
from plumbline.gate import confirm, duet
from plumbline.host import change
from plumbline.measure import driver, jobs, session
from plumbline.records import model, query, store
from plumbline.records.launch import Launch
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import PairedRule

ONE = {"placement": "core", "settings": {"a": "1", "b": "1", "c": "1"}, "environment": {"X": "1"}}
TWO = {"placement": "numa", "settings": {"a": "2", "b": "2", "c": "1"}, "environment": {}}


def record(number, host=None, **changes):
    made = samples.record(id=f"{number:012x}", variant=samples.variant(**changes))
    made["host"] |= host or {}
    return model.convert(made)


class World:
    """Launches whose rate depends on the variant; ``fails``, ``is_wrong`` and ``stop`` say what goes wrong."""

    def __init__(self, effect):
        self.effect = effect
        self.fails = lambda variant: None
        self.is_wrong = lambda variant: False
        self.is_disturbed = False
        self.stop_after = math.inf
        self.started = 0
        self.host = {}
        self.ids = itertools.count(100)

    def prepare(self, variant, name):
        if why := self.fails(variant):
            raise PlumbError(why)
        made = samples.record(
            id=f"{next(self.ids):012x}", session=name, variant=msgspec.to_builtins(variant),
            state="running", launches=[], figures=[],
        )  # fmt: skip
        return SimpleNamespace(record=model.convert(made), facts=None, host=None, ceilings=None)

    def launch(self, job, index, order, folder):
        if self.started >= self.stop_after:
            raise Interrupted(2)
        self.started += 1
        slower = self.effect(job.record.variant, self.host)
        noise = np.random.default_rng([index, order]).normal(0, 0.002)
        more = {"verified": False, "reasons": ["wrong answer"]} if self.is_wrong(job.record.variant) else {}
        if self.is_disturbed:
            more |= {"disturbed": True, "disturbance": {"disturbed": True, "causes": ["steal"], "figures": {}}}
        return msgspec.convert(samples.launch(order, 10000 / slower * math.exp(noise), index=index, **more), Launch)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A site on whose only stack placement numa costs 20 %, and a=2 with X unset 50 %."""

    def effect(variant, host):
        found = 1.2 if variant.placement == "numa" else 1.0
        return found * (1.5 if variant.settings["a"] == "2" and "X" not in variant.environment else 1.0)

    made = World(effect)
    for name, folder in (("PLUMB_STACKS", "stacks"), ("PLUMB_RESULTS", "results"), ("PLUMB_BUILD", "build")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "stacks" / "openmpi").mkdir(parents=True)
    manifests.save(stack_manifest.made("openmpi", "openmpi"))
    monkeypatch.setattr(site, "here", lambda: "local")
    monkeypatch.setattr(site, "load", lambda name: samples.site({}))
    monkeypatch.setattr(jobs, "needed", lambda part: False)
    monkeypatch.setattr(confirm, "installed", lambda record, kernels=True: record.stack.name)
    now = lambda stacks, part=None: {"stacks": dict.fromkeys(stacks, "x"), "nodes": "n"}  # noqa: E731
    monkeypatch.setattr(session, "circumstances", now)
    monkeypatch.setattr(driver, "prepare", made.prepare)
    monkeypatch.setattr(driver.pipeline, "launch", made.launch)
    monkeypatch.setattr(driver.figures, "settle", settle)
    monkeypatch.setattr(driver.References, "load", lambda name: None)
    known = {"aaaa": record(1, **ONE), "bbbb": record(2, **TWO)}
    known |= {one.id: one for one in known.values()}
    monkeypatch.setattr(query, "find", known.__getitem__)
    return made


def settle(record, *_):
    """As the driver does, without figures, limits and references."""
    reasons = [reason for launch in record.launches for reason in launch.reasons]
    reasons = reasons or ([] if record.counting() else ["no launch counts"])
    record.verified, record.reasons = not reasons, reasons


def search(
    tmp_path, first=ONE, second=TWO, minutes=None, roots=False, hosts=({}, {}), say=lambda line: None, order="turns"
):
    folder = tmp_path / "why"
    if not folder.exists():
        both = [record(place, hosts[place - 1], **one) for place, one in enumerate((first, second), 1)]
        found = ends.of_records(*both, roots, lambda line: None)
        run.begin(folder, found, PairedRule(), 1, "triad", order)
    return Answer(run.resume(folder, minutes, say))


def named(answer):
    return {one.subject: round(one.ratio, 2) for one in answer.causes if one.acts}


def test_what_acts_is_named_with_what_it_makes(world, tmp_path):
    answer = search(tmp_path)
    assert answer.kind == "explained"
    assert named(answer) == {
        "setting a with variable X": pytest.approx(1 / 1.5, abs=0.01),
        "placement": pytest.approx(1 / 1.2, abs=0.01),
    }
    assert answer.remainder == pytest.approx(0, abs=0.02)
    assert answer.closing().startswith("why: stream_threads")
    assert "B is slower by 80 %; setting a with variable X (1, 1 → 2, not set) explain 69 % of it" in answer.closing()
    assert "placement 31 %" in answer.closing()
    [nothing] = [one for one in answer.causes if not one.acts]
    assert nothing.subject == "setting b"
    assert nothing.reason.startswith("makes less than")
    document = json.loads(answer.json())
    assert document["not_explained"] == pytest.approx(0, abs=0.02)
    assert [one["cause"] for one in document["causes"]] == ["setting a with variable X", "placement", "setting b"]
    assert "| setting b |" in answer.markdown()
    shown = page(answer)
    assert "bars" in json.dumps(shown)


def test_what_fails_in_one_end_is_not_claimed_beside_others_that_make_all_of_it(world, tmp_path):
    """b makes 16 % in A, where it does not fit; it cannot be taken out of B."""
    set_to = [{"placement": "core", "settings": dict.fromkeys("abc", value)} for value in "12"]
    world.effect = lambda variant, host: {"11": 1.0, "12": 1.16}.get(variant.settings["a"] + variant.settings["b"], 2.0)
    world.fails = lambda variant: "symbol lookup" if variant.settings == {"a": "2", "b": "1", "c": "2"} else None
    answer = search(tmp_path, *set_to)
    assert list(named(answer)) == ["setting a"]
    (open_one,) = [one for one in answer.causes if one.subject == "setting b"]
    assert (open_one.put_in, open_one.part) == (pytest.approx(0.16, abs=0.01), None)
    assert open_one.reason == "tried in A only, where it makes more than the others leave: open"
    assert "setting b" not in answer.closing()


def test_the_ends_alone_can_run_side_by_side(world, tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(duet, "duet", lambda make, folder: folders.append(folder) or make())
    assert named(search(tmp_path, order="duet")) == named(search(tmp_path / "turns"))
    assert folders == [(tmp_path / "why" / run.ENDS).resolve()]
    monkeypatch.setattr(change, "can_set", lambda name: name == "thp")
    hosts = ({"thp": "always"}, {"thp": "never"})
    with pytest.raises(PlumbError, match="both sides at once have the same host settings"):
        search(tmp_path / "host", roots=True, hosts=hosts, order="auto")


def test_an_interrupted_search_goes_on_where_it_was(world, tmp_path):
    whole = search(tmp_path / "whole")
    total = world.started
    world.started, world.stop_after = 0, total - 20
    with pytest.raises(Interrupted):
        search(tmp_path)
    world.started, world.stop_after = 0, math.inf
    again = search(tmp_path)
    assert world.started == 20
    assert named(again) == named(whole)
    world.started = 0
    assert named(search(tmp_path)) == named(whole)
    assert world.started == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(r',"seal":"[0-9a-f]+"', "", "it has no seal any more"), (r'"wall_s":1.0', '"wall_s":2.0', "damaged|changed")],
)
def test_records_that_were_changed_end_the_search(world, tmp_path, before, after, said):
    search(tmp_path)
    file = tmp_path / "why" / "records" / "0.jsonl"
    file.write_text(re.sub(before, after, file.read_text(), count=1))
    with pytest.raises(PlumbError, match=said):
        search(tmp_path)


def test_a_program_that_is_another_one_ends_the_search(world, tmp_path):
    search(tmp_path)
    file = tmp_path / "why" / "records" / "0.jsonl"
    (kept,) = store.whole(file, "")
    kept.command = ["another"]
    store.write(file, [kept])
    with pytest.raises(PlumbError, match=r"the command of .* is another one now.*start a new search"):
        search(tmp_path)


def test_the_minutes_are_those_of_the_ends_and_of_all_rounds_together(world, tmp_path, monkeypatch):
    """Each launch takes a second: the ends need 26, and a round has 8."""
    monkeypatch.setattr(time, "monotonic", lambda: float(world.started))
    answer = search(tmp_path, minutes=0.5)
    assert answer.kind == "undecided"
    assert 26 < world.started < 26 + 2 * 8


@pytest.mark.parametrize(("minutes", "is_disturbed", "said"), [
    (0.1, False, "is not certain yet: 3 pairs: 13 are needed"),
    (0.1, True, "this host cannot decide now: 6 of 6 launches were disturbed"),
    (0.0, False, "is not certain yet: 0 pairs: 13 are needed"),
])  # fmt: skip
def test_ends_for_which_time_is_up_are_undecided(world, tmp_path, monkeypatch, minutes, is_disturbed, said):
    monkeypatch.setattr(time, "monotonic", lambda: float(world.started))
    world.is_disturbed = is_disturbed
    told = []
    answer = search(tmp_path, minutes=minutes, say=told.append)
    assert world.started == 60 * minutes
    assert answer.kind == "undecided"
    assert said in answer.closing()
    assert f"time is up: plumb why --resume {tmp_path / 'why'} goes on" in told
    assert answer.markdown()
    assert page(answer)
    world.is_disturbed = False
    assert search(tmp_path).kind == "explained"


def test_three_disturbed_pairs_end_a_search_whose_sides_are_not_far_apart(world, tmp_path):
    world.effect = lambda variant, host: 1.1 if variant.placement == "numa" else 1.0
    world.is_disturbed = True
    told = []
    for pairs in (3, 6):  # a search that is resumed tries again
        answer = search(tmp_path, say=told.append)
        assert (answer.kind, world.started) == ("undecided", 2 * pairs)
        assert "this host cannot decide now" in answer.closing()
        assert "the first 3 pairs were disturbed, so this host cannot decide now: plumb why --resume" in "".join(told)
    world.is_disturbed = False
    assert search(tmp_path).kind == "explained"


def test_an_end_whose_answer_is_wrong_cannot_be_compared(world, tmp_path):
    world.is_wrong = lambda variant: variant.placement == "numa"
    with pytest.raises(PlumbError, match=r"the ends cannot be compared: .*: wrong answer"):
        search(tmp_path, minutes=0.1)


def test_equal_ends_end_the_search_and_say_what_was_not_set(world, tmp_path):
    world.effect = lambda variant, host: 1.0
    answer = search(tmp_path, hosts=({"kernel": "6.1"}, {"kernel": "6.2"}))
    assert answer.kind == "outside"
    assert "not in what can be set; what differed and is not set here: host.kernel 6.1 → 6.2" in answer.closing()
    assert answer.outcome.attribution is None


def test_a_gain_is_explained_in_the_same_way(world, tmp_path):
    answer = search(tmp_path, first=TWO, second=ONE)
    assert "B is faster by" in answer.closing()
    assert {one.subject for one in answer.causes if one.acts} == {"placement", "setting a with variable X"}
    assert all("faster" in one.reason or one.together for one in answer.causes if one.acts)


def test_one_factor_is_measured_with_the_ends(world, tmp_path):
    answer = search(tmp_path, second={**ONE, "placement": "numa"})
    assert named(answer) == {"placement": pytest.approx(1 / 1.2, abs=0.01)}
    assert answer.outcome.attribution.design == "the ends alone"
    assert world.started == 26


def test_what_cannot_be_started_is_said(world, tmp_path):
    world.fails = lambda variant: "no room" if variant.placement == "numa" and variant.settings["b"] == "1" else None
    answer = search(tmp_path)
    assert any("no room" in line for line in answer.notes())
    assert "placement" in named(answer)


def test_an_end_that_fails_ends_the_search(world, tmp_path):
    world.fails = lambda variant: "gone" if variant.settings["b"] == "2" else None
    with pytest.raises(PlumbError, match="gone"):
        search(tmp_path)


def test_a_search_whose_stack_changed_is_refused(world, tmp_path, monkeypatch):
    search(tmp_path)
    monkeypatch.setattr(session, "circumstances", lambda stacks, part=None: {"stacks": {"openmpi": "y"}, "nodes": "n"})
    with pytest.raises(PlumbError, match="stacks changed since this search began"):
        search(tmp_path)


def test_a_search_whose_stack_is_gone_waits_for_it(world, tmp_path, monkeypatch):
    """The error names the stack; when it is there again, nothing is measured twice."""

    def real(stacks, part=None):
        return {"stacks": {name: manifests.digest(manifests.load(name)) for name in stacks}, "nodes": "n"}

    monkeypatch.setattr(session, "circumstances", real)
    world.stop_after = 40
    with pytest.raises(Interrupted):
        search(tmp_path)
    (tmp_path / "stacks" / "openmpi").rename(tmp_path / "away")
    with pytest.raises(PlumbError, match="stack 'openmpi' is not installed"):
        search(tmp_path)
    assert world.started == 40
    (tmp_path / "away").rename(tmp_path / "stacks" / "openmpi")
    world.stop_after = math.inf
    assert named(search(tmp_path)) != {}
    assert len(run.resume(tmp_path / "why", None, lambda line: None).launches) == world.started


def test_a_factor_that_cannot_be_set_any_more_is_said_and_the_others_are_found(world, tmp_path):
    world.stop_after = 40
    with pytest.raises(Interrupted):
        search(tmp_path)
    world.stop_after = math.inf
    world.fails = lambda variant: "no more" if variant.settings["b"] == "1" and variant.placement == "numa" else None
    answer = search(tmp_path)
    assert any("no more" in line for line in answer.notes())
    assert "placement" in named(answer)


def test_settings_of_the_host_are_set_for_each_launch_and_set_back(world, tmp_path, monkeypatch):
    root = tmp_path / "root"
    file = root / change.TABLE["thp"]
    file.parent.mkdir(parents=True)
    (root / "run").mkdir()
    file.write_text("always [madvise] never")
    monkeypatch.setattr(change, "can_set", lambda name: name == "thp")
    real = change.changing
    monkeypatch.setattr(run.change, "changing", lambda: real(root))
    world.effect = lambda variant, host: 1.3 if file.read_text() == "never" else 1.0
    hosts = ({"thp": "always"}, {"thp": "never"})
    answer = search(tmp_path, second={**ONE, "placement": "numa"}, roots=True, hosts=hosts)
    assert named(answer) == {"host setting thp": pytest.approx(1 / 1.3, abs=0.01)}
    assert file.read_text() == "madvise"


def test_the_command_says_it_and_ends_with_its_status(world, tmp_path, output_of):
    said = output_of(0, "why", "aaaa", "bbbb", "--dry-run")
    assert ["setting", "a", "1", "2", "here"] in [line.split() for line in said.splitlines()]
    assert "about 38 launches of the ends and 130 of 4 factors" in said
    assert re.search(r"^about (\d+ min )?\d+ s of launches of [0-9.]+ s, as the launches of 0+1 and 0+2$", said, re.M)
    files = [tmp_path / f"answer{ending}" for ending in (".json", ".md", ".html")]
    words = [word for file in files for word in ("--output", str(file))]
    words += ["--figure", "triad", "--work", str(tmp_path / "work"), "--seed", "1"]
    out = output_of(0, "why", "aaaa", "bbbb", *words)
    assert out.splitlines()[-1] == json.loads(files[0].read_text())["line"]
    assert all(file.stat().st_size > 500 for file in files)
    assert json.loads(output_of(0, "why", "--resume", str(tmp_path / "work"), "--json"))["answer"] == "explained"


@pytest.mark.parametrize(("words", "said"), [
    (["aaaa"], "one side alone"),
    (["aaaa", "bbbb", "--figure", "speed"], "'speed' is not a figure"),
    (["--resume", "absent"], "no such folder"),
    (["--resume", "x", "--test", "y"], "--resume continues a search"),
    ([], "no gate ended with FAIL here"),
    (["openmpi", "mpich", "--root"], "sides do not say how the host is set"),
])  # fmt: skip
def test_bad_input_is_one_line_and_status_3(world, words, said, refused):
    assert said in refused(3, "why", *words)


def test_two_searches_in_one_folder_are_refused(world, tmp_path):
    search(tmp_path)
    with WHY.locked(tmp_path / "why"), pytest.raises(PlumbError, match="another search runs in this folder"):
        search(tmp_path)


@pytest.mark.parametrize(("log", "commits"), [(0.1, "aaa bbb"), (-0.1, "bbb aaa")])
def test_where_the_code_acts_the_next_command_finds_the_commit(log, commits):
    ended = [SimpleNamespace(test="heat", stack="mpich", application=SimpleNamespace(commit=c)) for c in ("aaa", "bbb")]
    factors = [SimpleNamespace(kind="code"), SimpleNamespace(kind="setting")]
    named = [SimpleNamespace(acts=True, members=(0,)), SimpleNamespace(acts=False, members=(1,))]
    answer = SimpleNamespace(
        ends=SimpleNamespace(first=ended[0], second=ended[1], factors=factors), application=None, _log=log,
        outcome=SimpleNamespace(attribution=SimpleNamespace(named=named)),
    )  # fmt: skip
    (line,) = Answer.bisection.fget(answer)
    assert line == f"to find the commit: plumb bisect {commits} --stack mpich --test 'heat(%|$)'"
    named[0].acts = False
    assert Answer.bisection.fget(answer) == []
