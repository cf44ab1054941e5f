"""The longest job of a partition, as Slurm says it."""

import pytest
import yaml

from plumbline import schedulers
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands.cli import main


@pytest.fixture
def sinfo(tmp_path, monkeypatch):
    """A sinfo that answers so, and notes what it was asked."""

    def answers(text):
        program = tmp_path / "bin/sinfo"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho \"$@\" >>{tmp_path}/asked\nprintf '{text}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return tmp_path / "asked"

    return answers


@pytest.mark.parametrize(("text", "limit"), [
    ("1:00:00\\n", 3600),
    ("1-12:00:00\\n", 129600),
    ("30:00\\n", 1800),
    ("infinite\\n", None),
    ("2:00:00\\ninfinite\\n1:00:00\\n", 3600),
])  # fmt: skip
def test_sinfo_is_asked_for_the_partition(sinfo, text, limit):
    asked = sinfo(text)
    assert schedulers.named("squeue").longest_job("main") == limit
    assert asked.read_text() == "-h -o %l --partition=main\n"


def test_another_answer_is_one_line(sinfo):
    sinfo("soon\\n")
    with pytest.raises(PlumbError, match="'soon' is not a time limit"):
        schedulers.named("slurm").longest_job(None)


@pytest.mark.parametrize("scheduler", ["flux", "local", "ssh"])
def test_other_schedulers_are_not_asked(sinfo, scheduler):
    asked = sinfo("1:00:00\\n")
    assert schedulers.named(scheduler).longest_job(None) is None
    assert not asked.exists()


def test_away_from_the_cluster_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert schedulers.named("slurm").longest_job("main") is None


@pytest.mark.parametrize(("given", "limit"), [([], 5400), (["--max-job=600"], 600)])
def test_a_new_site_says_it(sinfo, monkeypatch, tmp_path, given, limit):
    sinfo("1:30:00\\n")
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    monkeypatch.setattr("plumbline.host.collector.topology", lambda program: ("<topology/>", ""))
    assert main(["site", "init", "--site", "far", "--scheduler", "squeue", "--offer", "mpich", *given]) == 0
    assert yaml.safe_load((paths.sites() / "far/site.yaml").read_text())["partitions"][0]["max_job_s"] == limit
