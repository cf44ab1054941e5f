"""Folders that hold somebody's work: a command that would need the name says so, and all of it stays."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import samples

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.gate import setup
from plumbline.gate.sides import Side
from plumbline.launch import hosts
from plumbline.measure import jobs, session
from plumbline.measure.reframe import campaign


@pytest.fixture
def thesis(tmp_path):
    """A folder with a file, and one below it."""
    folder = tmp_path / "mine"
    (folder / "figures").mkdir(parents=True)
    for file in (folder / "thesis.txt", folder / "figures" / "1.txt"):
        file.write_text("mine")
    return folder


def untouched(folder):
    found = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.name not in ("lock",))
    assert found == ["figures", "figures/1.txt", "thesis.txt"]
    assert (folder / "thesis.txt").read_text() == (folder / "figures" / "1.txt").read_text() == "mine"


def test_a_gate_is_not_begun_in_a_folder_of_somebody(thesis):
    request = setup.GateRequest((Side("baseline", "openmpi"), Side("candidate", "mpich")), folder=thesis)
    with pytest.raises(PlumbError, match="this folder is not empty: it holds"):
        setup.prepare(request, lambda _: None)
    untouched(thesis)


@pytest.mark.parametrize("name", ["reframe", "launch-0", "gate.json", "pairs", "job.out", "notes.md", ".hidden"])
def test_any_name_in_a_work_folder_is_somebodys(name, tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / name).mkdir()
    with pytest.raises(PlumbError, match="is not empty"):
        session.refuse_foreign(tmp_path)
    (tmp_path / name / files.MARK).touch()
    session.refuse_foreign(tmp_path)


def test_a_gate_that_was_killed_while_it_was_prepared_can_be_begun_again(tmp_path, monkeypatch):
    runnable = SimpleNamespace(code=SimpleNamespace(name="heat"))
    monkeypatch.setattr(campaign, "built", lambda *_: ([], []))
    monkeypatch.setattr(campaign.build.Runnable, "of", lambda _: runnable)
    monkeypatch.setattr(campaign.msgspec.json, "encode", lambda _: b"{}")
    campaign.prepared(Path("plumb.yaml"), SimpleNamespace(key="0a" * 6), [], tmp_path, print)
    (tmp_path / "lock").touch()
    files.make_anew(tmp_path / "reframe")
    assert len([*tmp_path.iterdir()]) == 3
    session.refuse_foreign(tmp_path)


def test_a_job_does_not_write_among_somebodys_files(thesis):
    partition = samples.partition(name="main", scheduler="slurm")
    with pytest.raises(PlumbError, match="was not made by Plumbline"):
        jobs.run(jobs.Submission(partition, [sys.executable], 1, thesis), lambda _: None)
    untouched(thesis)


def test_the_facts_of_hosts_do_not_go_among_somebodys_files(thesis):
    with pytest.raises(PlumbError, match="was not made by Plumbline"):
        hosts.collect(hosts.Ranks(None, None, (), {}), thesis)
    untouched(thesis)
