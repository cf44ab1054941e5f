"""A real tuning, small: two sizes, one setting, one rung. What is judged is that it ran and kept its records."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import own_site
import pytest
import yaml

from plumbline import site
from plumbline.base import paths
from plumbline.commands import cli
from plumbline.extras.tune import command, race
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import TuningBench, TuningRequest, TuningState
from plumbline.extras.tune.confirm import Confirmed
from plumbline.mpi import openmpi
from plumbline.mpi.openmpi import OpenMpi
from plumbline.mpi.settings import Configuration, Setting
from plumbline.records import store
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e
NAME = "btl_sm_eager_limit"
#: of two launches each
MOST_SCREENS = 3


@pytest.fixture
def small(tmp_path, monkeypatch):
    """One value of one setting, and as few launches as there can be."""
    (knob,) = (knob for knob in OpenMpi.knobs if knob.name == NAME)
    monkeypatch.setattr(OpenMpi, "knobs", (msgspec.structs.replace(knob, values=("65536",)),))
    monkeypatch.setattr(race, "ROUNDS", (1,))
    monkeypatch.setattr(tune, "SCREEN", 1)
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path


@pytest.fixture
def tuned_stack(tmp_path, monkeypatch):
    """What is there right after a tuning that gained: sites and stacks of their own, the installed stack's programs."""
    for name in ("stacks", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "stacks" / "openmpi").symlink_to(paths.stacks() / "openmpi")
    own_site.copy(tmp_path, stacks=["openmpi"])
    part = site.load(site.here()).partitions[0]
    here = TuningRequest(site.here(), part.name, "openmpi", "openmpi", ("core",), (8,), 1, {"commit": "a"})
    for name in ("sites", "stacks", "results"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    winner = Confirmed(Configuration((Setting(NAME, "65536"),)), {}, ("20260101T000000Z-host-abcdef",))
    said: list[str] = []
    command.write_down(TuningBench(tmp_path / "tuning", TuningState(here), print), winner, said.append)
    assert said[-1] == f"site {here.site}, partition {here.partition}: offers openmpi+tuned"
    return tmp_path


def test_a_tuned_stack_can_be_gated_against_the_stack_that_it_was_made_from(tuned_stack, capsys):
    words = ["gate", "--baseline", "openmpi", "--candidate", "openmpi+tuned", "--test", "osu_barrier.*core"]
    status = cli.main([*words, "--minutes", "0.01", "--work", str(tuned_stack / "gate")])
    said = capsys.readouterr()
    assert "openmpi+tuned against openmpi, 1 variant" in said.out, said.err
    assert status == 3, "one pair proves nothing"
    records = [item for file in (tuned_stack / "results").rglob("*.jsonl") for item in store.read(file)]
    assert {item.variant.stack for item in records} == {"openmpi", "openmpi+tuned"}
    tuned = next(item for item in records if item.variant.stack == "openmpi+tuned")
    assert tuned.launches[0].verified, tuned.launches[0].reasons
    assert tuned.launches[0].settings.seen == {NAME: "65536"}


@pytest.mark.long
def test_a_stack_is_screened_raced_and_judged_and_goes_on_from_its_records(small, capsys):
    """The gate gets a hundredth of a minute: too few pairs, which prove nothing, and the tuning says so."""
    work, document = small / "work", small / "tune.json"
    begun = ["tune", "openmpi", "--sizes", "8,16K", "--all", "--minutes", "0.01", "--work", str(work)]
    status = cli.main([*begun, "--output", str(document)])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "time in us, placement core, default settings" in said.out
    assert "rung 1: the best of 1 candidate" in said.out
    found = json.loads(document.read_text())
    assert found["default_us"]["core"]["pingpong 16 KiB"] > 0
    (candidate,) = found["race"][0]
    assert candidate["settings"]["settings"] == [{"name": NAME, "value": "65536"}]
    assert set(candidate["ratios"]) == set(found["default_us"]["core"])
    records = [item for file in sorted((work / "records").glob("*.jsonl")) for item in store.read(file)]
    tuned = next(item for item in records if item.variant.settings)
    assert tuned.variant.settings == {NAME: "65536"}
    assert tuned.launches[0].verified, tuned.launches[0].reasons
    launches = sum(len(item.launches) for item in records)
    assert found["cost"]["launches"] >= launches > 2, "the confirmation may have had none"
    assert f"cost: {found['cost']['launches']} launches that took" in said.out
    last = said.out.splitlines()[-1]
    assert last.startswith(("tune: not proven: ", "tune: no significant gain: "))
    assert cli.main(["tune", "--resume", str(work), "--output", str(document)]) == 0
    assert "launch 1/" not in capsys.readouterr().out, "what was measured is read, not measured again"
    assert json.loads(document.read_text())["race"] == found["race"]


@pytest.fixture
def bad_at_3_and_5(tmp_path, monkeypatch):
    """A stack whose library broadcasts in pieces of 4 bytes between 3 and between 5 ranks, and as usual otherwise."""
    rules = tmp_path / "collectives.rules"
    lines = [f"{ranks}\n1\n0 {algorithm} 0 {piece}" for ranks, algorithm, piece in ((3, 3, 4), (4, 0, 0), (5, 3, 4))]
    rules.write_text("\n".join(["1", str(openmpi.COLLECTIVES.index("bcast")), str(len(lines)), *lines]) + "\n")
    settings = {openmpi.DYNAMIC.name: openmpi.DYNAMIC.value, openmpi.RULES_SETTING: str(rules)}
    stack = manifest.load("openmpi")
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(tune, "SCREEN", 2)
    manifest.save(msgspec.structs.replace(stack, name="bad", settings=settings))
    return tmp_path


@pytest.mark.long
def test_numbers_of_ranks_with_a_bad_algorithm_are_found(bad_at_3_and_5, capsys):
    """More ranks than cores: those of Open MPI give the CPU away while they wait.

    Two launches beside other work may not prove a difference: then they are made again.
    """
    wanted = {("none, 3 ranks", "against 4 ranks, which are more"), ("none, 5 ranks", "against 4 ranks, times 1.25")}
    words = ["tune", "bad", "--screen", "--placement", "none", "--rank-counts", "3-5", "--sizes", "64K"]
    ranks: set[tuple[str, str]] = set()
    for attempt in range(MOST_SCREENS):
        document, work = bad_at_3_and_5 / f"{attempt}.json", bad_at_3_and_5 / f"work{attempt}"
        assert cli.main([*words, "--work", str(work), "--output", str(document)]) == 0
        ranks |= {
            (place, one["against"])
            for place, every in json.loads(document.read_text())["findings"].items()
            for one in every
            if (one["kind"], one["row"]) == ("ranks", "bcast 64 KiB")
        }
        if ranks >= wanted:
            break
    assert ranks >= wanted
    assert "bcast 64 KiB" in capsys.readouterr().out
    assert not [place for place, _ in ranks if place == "none, 4 ranks"]


@pytest.fixture
def code(small, monkeypatch):
    """A repository with two programs is the present folder."""
    folder = small / "code"
    folder.mkdir()
    shutil.copy(Path(__file__).resolve().parents[1] / "support" / "talk.c", folder / "code.c")
    time = {"time": {"pattern": r"Time: (\S+) s", "unit": "s"}}
    programs = {"talk": {"command": "./code talk", "figures": time}, "quiet": {"command": "./code", "figures": time}}
    document = {"application": "code", "build": ["mpicc -O1 -o code code.c"], "programs": programs}
    (folder / "plumb.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setenv("PLUMB_BUILD", str(small / "build"))
    if "PLUMB_TOOLS" not in os.environ:
        monkeypatch.setenv("PLUMB_TOOLS", str(Path(__file__).resolve().parents[2] / "build" / "tools"))
    monkeypatch.chdir(folder)
    return small


def test_a_stack_is_tuned_for_a_program_whose_own_time_decides(code, capsys, output_of):
    work, document = code / "work", code / "tune.json"
    words = ["tune", "openmpi", "--for", "talk", "--sizes", "8K", "--minutes", "0.01", "--work", str(work)]
    said = output_of(0, *words, "--output", str(document))
    assert said.splitlines()[-1].startswith(("tune: GAIN", "tune: not proven: ", "tune: no significant gain: "))
    assert "profile: 1 launch" in said
    found = json.loads(document.read_text())
    assert found["asked"]["program"][0]["name"] == "code_talk %placement=core"
    assert found["race"], "its allreduce makes the setting worth a race"
    assert {one["row"] for each in found["confirmed"] for one in each["verdicts"]} <= {"time"}
    assert cli.main(["tune", "--resume", str(work)]) == 0
    assert "profile: 1 launch" not in capsys.readouterr().out, "what was measured is read, not measured again"


@pytest.mark.long
def test_nothing_is_raced_for_a_program_without_communication(code, output_of):
    said = output_of(0, "tune", "openmpi", "--for", "quiet", "--work", str(code / "work"))
    assert said.splitlines()[-1].startswith(("tune: nothing to gain: code_quiet: 0.", "tune: not proven: "))
    assert "screen" not in said


def test_the_plan_of_a_tuning_for_a_program_has_its_profile_and_its_pairs(code, refused, output_of):
    said = output_of(0, "tune", "openmpi", "--for", "talk", "--dry-run")
    assert "profile of talk: 1 launch" in said
    assert "then pairs: 90 min at most by talk, up to 4 times" in said
    assert "did you mean 'quiet'?" in refused(2, "tune", "openmpi", "--for", "quit")
