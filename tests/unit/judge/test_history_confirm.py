"""``plumb history --confirm``: which software is measured against which, and what its answers become."""

import json

import msgspec
import pytest
import samples
import stack_manifest
import stored
from gate_pairs import verdict_of

from plumbline import site
from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.search.why import command as why
from plumbline.gate import confirm, run
from plumbline.records import model
from plumbline.stacks import manifest

NAME = samples.variant()["name"]


def software(version, commit="f" * 40, suite="stream", program="1"):
    """What of a record tells its software."""
    stack = samples.record()["stack"]
    return {
        "stack": {**stack, "mpi": {**stack["mpi"], "version": version}},
        "benchmark": {**samples.record()["benchmark"], "suite": suite, "sha256": program * 64},
        "suite": {"version": "0.1.0", "commit": commit, "dirty": False},
    }


def session(number, triad, **changes):
    made = samples.session(number, *[triad + number % 3 * 10] * 3, **changes)
    stored.keep(made)
    return made


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Empty results and stacks; this host belongs to site ``local``."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setattr(site, "here", lambda: "local")
    return tmp_path


def install(name, record):
    """A stack with the software of ``record`` under another name and path."""
    (paths.stacks() / name).mkdir(parents=True)
    document = model.document(record)
    benchmark = {**document["benchmark"], "command": [f"/other/{name}"], "file": f"/other/{name}"}
    kept = {part: document["stack"][part] for part in ("mpi", "compiler", "sources")}
    loads = {"library": None, "files": {}}
    manifest.save(stack_manifest.made(name, **kept, benchmarks={"stream": benchmark}, loads=loads))


def history(*options):
    return cli.main(["history", *options])


@pytest.fixture
def slower(place):
    """A series that became 10 % slower with another version of MPI; the records before and at the change."""
    old = [session(number, 10000.0, **software("5.0")) for number in range(15)]
    new = [session(15 + number, 9000.0, **software("5.1")) for number in range(7)]
    return model.convert(old[-1]), model.convert(new[0])


@pytest.fixture
def installed(slower):
    """The same, and both versions are installed: the older one as ``mpi-old``."""
    install("mpi-old", slower[0])
    install("openmpi", slower[1])
    return slower


@pytest.fixture
def measured(monkeypatch):
    """Calls of the measurement, which answers with ``measured.verdict``."""

    class Measured(list):
        verdict = verdict_of(f"{NAME}: triad", "FAIL", 13, 0.9, (0.89, 0.91), 0.01, "slower by 11 %")

    calls = Measured()

    def make(say, application):
        def measure(both, couple, rule):
            calls.append((both, couple, rule))
            return run.GateOutcome(rule, [calls.verdict], [])

        return measure

    monkeypatch.setattr(confirm, "measure_here", make)
    return calls


@pytest.mark.parametrize(
    ("verdict", "state", "status"),
    [("FAIL", "confirmed", 1), ("PASS", "refuted", 0), ("INCONCLUSIVE", "open", 2), ("INVALID", "invalid", 3)],
)
def test_an_alarm_is_measured_against_the_last_good_stack(installed, measured, capsys, verdict, state, status):
    measured.verdict = verdict_of(f"{NAME}: triad", verdict, 13, reason="because")
    assert history("--confirm") == status
    said = capsys.readouterr().out
    assert f"{state}: {NAME} openmpi triad: openmpi against mpi-old, 13 pairs: because" in said
    assert said.splitlines()[-1] == f"Newest changes for the worse: 1 {state}"
    ((both, couple, rule),) = measured
    assert [side.measured for side in both] == ["mpi-old", "openmpi"]
    assert [variant.stack for variant in couple] == ["mpi-old", "openmpi"]
    assert rule.must_detect == 0.05


def test_the_cause_of_what_is_confirmed_is_looked_for(installed, measured, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(why, "cause_search", lambda *told: asked.append(told[:2]) or "why: it is the library")
    search, ids = "plumb why 1 2", [one.id for one in installed]
    monkeypatch.setattr(why, "cause_command", lambda *both: search if [one.id for one in both[:2]] == ids else None)
    assert history("--confirm") == 1
    assert f"the cause: {search}" in capsys.readouterr().out
    assert history("--confirm", "--cause-minutes", "9") == 1
    assert "why: it is the library" in capsys.readouterr().out
    assert history("--confirm", "--cause-minutes", "9", "--json") == 1
    confirmation = json.loads(capsys.readouterr().out)["confirmation"]
    assert (confirmation["search"], confirmation["cause"]) == (search, "why: it is the library")
    assert asked == [(search, 9.0)] * 2
    measured.verdict = verdict_of(f"{NAME}: triad", "PASS", 13)
    assert history("--confirm", "--cause-minutes", "9") == 0
    assert len(asked) == 2


@pytest.mark.parametrize("option", [("--cause-minutes", "9"), ("--application", "plumb.yaml")])
def test_options_of_a_confirmation_need_it(slower, tmp_path, capsys, option):
    assert history(*option) == 3
    assert f"{option[0]} goes with --confirm" in capsys.readouterr().err
    (tmp_path / "f.csv").write_text("series,index,value\n")
    assert history("--series", str(tmp_path / "f.csv"), "--better", "lower", *option) == 3
    assert f"{option[0]} goes with the records" in capsys.readouterr().err


def test_json_has_the_confirmation_and_nothing_else_on_stdout(installed, measured, capsys):
    assert history("--confirm", "--json") == 1
    out, err = capsys.readouterr()
    (line,) = map(json.loads, out.splitlines())
    assert line["confirmation"]["state"] == "confirmed"
    assert "confirming: " in err


def test_without_confirm_nothing_is_measured(slower, measured, capsys):
    assert history() == 1
    assert measured == []
    assert "--confirm measures the newest changes" in capsys.readouterr().out


def test_a_stack_that_is_gone_says_what_must_be_run(slower, measured, capsys):
    install("openmpi", slower[1])
    assert history("--confirm") == 2
    said = capsys.readouterr().out
    assert "the last good stack openmpi is not installed here any more" in said
    assert "fresh sessions on at least 3 nodes of partition default" in said
    assert f"plumb reproduce {slower[1].id} on each" in said
    assert measured == []


def test_the_same_software_cannot_be_confirmed_in_pairs(place, measured, capsys):
    for number in range(22):
        session(number, 10000.0 if number < 15 else 9000.0)
    assert history("--confirm") == 2
    assert "the software did not change" in capsys.readouterr().out
    assert measured == []


def test_a_quiet_history_and_an_improvement_need_no_confirmation(place, measured, capsys):
    for number in range(22):
        session(number, 10000.0 if number < 15 else 11000.0)
    assert history("--confirm") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Newest changes for the worse: none"
    assert measured == []


def test_numbers_cannot_be_confirmed(place, capsys):
    assert history("--confirm", "--series", "f.csv", "--better", "lower") == 3
    assert "--confirm goes with the records" in capsys.readouterr().err


def kernels(commits):
    return [
        model.convert(samples.record(**software("5.0", commit=commit, suite="kernels", program=program)))
        for commit, program in zip(commits, "ab", strict=True)
    ]


def test_kernels_of_two_commits_are_built_against_the_stack(place, monkeypatch):
    good, bad = kernels(("1" * 40, "2" * 40))
    install("openmpi", model.convert(samples.record(**software("5.0"))))
    monkeypatch.setattr(git, "commit", lambda name: name)
    both = confirm.choose(good, bad)
    assert [side.measured for side in both] == ["openmpi@" + "1" * 12, "openmpi@" + "2" * 12]
    monkeypatch.setattr(git, "commit", lambda name: name if name[0] == "2" else None)
    assert confirm.choose(good, bad) == "the commits of the kernels are not in this checkout"


def test_commits_of_an_application_are_measured_in_its_repository(place, tmp_path, monkeypatch):
    install("openmpi", model.convert(samples.record(**software("5.0"))))
    records = []
    for number, commit in enumerate("12"):
        state = {"name": "toy", "program": "p", "commit": commit * 40}
        made = samples.record(id=f"{number:012x}", variant=samples.variant(application=state), **software("5.0"))
        records.append(model.convert(made))
    monkeypatch.chdir(tmp_path)
    assert confirm.choose(*records) == "this is not the repository of toy"
    text = "application: toy\nprograms: {p: {command: [/bin/true], figures: {t: {wall: true}}}}\n"
    (tmp_path / "plumb.yaml").write_text(text)
    monkeypatch.setattr(git, "commit", lambda name, at=None: name)
    monkeypatch.setattr(git, "top", lambda folder: folder)
    both = confirm.choose(*records)
    assert [side.code.commit for side in both] == ["1" * 40, "2" * 40]
    monkeypatch.chdir("/")
    assert confirm.choose(*records) == "this is not the repository of toy"
    assert confirm.choose(*records, tmp_path / "plumb.yaml") == both
    asked = []
    outcome = run.GateOutcome(confirm.PairedRule(), [verdict_of(f"{NAME}: triad", "FAIL", 13)], [])
    confirmer = confirm.Confirmer(
        confirm.PairedRule(), lambda *_: outcome, lambda *told: asked.append(told), tmp_path / "plumb.yaml"
    )
    assert confirmer.answer(*records, "triad").state == "confirmed"
    assert asked == [(*records, tmp_path / "plumb.yaml")]
    assert confirm.choose(records[0], records[0], tmp_path / "plumb.yaml") == confirm.UNCHANGED
    monkeypatch.setattr(git, "commit", lambda name, at=None: None)
    monkeypatch.chdir(tmp_path)
    assert confirm.choose(*records) == "the code of record 000000000000 is not a commit of this repository"


def test_another_site_is_not_measured_here(slower):
    good, bad = slower
    assert "this host belongs to local" in confirm.choose(good, msgspec.structs.replace(bad, site="elsewhere"))


def test_the_library_a_program_loads_is_part_of_the_software():
    one, two = samples.record(), samples.record()
    one["benchmark"]["facts"] = {"library": "/a", "library_sha256": "1"}
    two["benchmark"]["facts"] = {"library": "/b", "library_sha256": "1"}
    assert confirm.identity(model.convert(one)) == confirm.identity(model.convert(two))
    two["benchmark"]["facts"]["library_sha256"] = "2"
    assert confirm.identity(model.convert(one)) != confirm.identity(model.convert(two))


def test_the_figures_of_one_variant_are_measured_once_and_a_fault_leaves_the_alarm_open(installed):
    calls = []

    def measure(both, couple, rule):
        calls.append(couple)
        return run.GateOutcome(rule, [verdict_of(f"{NAME}: {name}", "PASS", 13) for name in ("triad", "copy")], [])

    confirmer = confirm.Confirmer(confirm.PairedRule(), measure, why.cause_command)
    for figure in ("triad", "copy"):
        assert confirmer.answer(*installed, figure).state == "refuted"
    assert len(calls) == 1

    optional = confirmer.answer(*installed, "barrier_cycles")
    assert optional.state == "open"
    assert "a gate does not judge this figure" in optional.text

    def broken(both, couple, rule):
        raise PlumbError("no program")

    answer = confirm.Confirmer(confirm.PairedRule(), broken, why.cause_command).answer(*installed, "triad")
    assert answer.state == "open"
    assert "no program" in answer.text
