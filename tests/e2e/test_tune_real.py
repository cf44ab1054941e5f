"""A real tuning, small: two sizes, one setting, one rung. What is judged is that it ran and kept its records."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest
import yaml

from plumbline import site
from plumbline.base import paths
from plumbline.commands import cli
from plumbline.mpi.openmpi import OpenMpi
from plumbline.mpi.settings import Configuration, Setting
from plumbline.records import store
from plumbline.tune import emit, race
from plumbline.tune import stages as tune
from plumbline.tune.bench import Asked, Bench, State
from plumbline.tune.confirm import Confirmed

pytestmark = pytest.mark.e2e
NAME = "btl_sm_eager_limit"


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
    for name in ("sites", "stacks", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "stacks" / "openmpi").symlink_to(paths.stacks() / "openmpi")
    shutil.copytree(paths.sites() / site.here(), tmp_path / "sites" / site.here())
    shutil.copy(paths.sites() / "settings.py", tmp_path / "sites")
    part = site.load(site.here()).partitions[0]
    here = Asked(site.here(), part.name, "openmpi", "openmpi", ("core",), (8,), 1, {"commit": "a"})
    for name in ("sites", "stacks", "results"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    file = tmp_path / "sites" / here.site / "site.yaml"
    document = yaml.safe_load(file.read_text())
    document["partitions"][0]["stacks"] = ["openmpi"]
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    winner = Confirmed(Configuration((Setting(NAME, "65536"),)), {}, ("20260101T000000Z-host-abcdef",))
    said: list[str] = []
    emit.write_down(Bench(tmp_path / "tuning", State(here), print), winner, said.append)
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
