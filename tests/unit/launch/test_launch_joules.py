"""Joules of a launch over several nodes, by Slurm's accounting: sacct and scontrol are made up after their manuals."""

import os
import time
from pathlib import Path

import pytest

from plumbline.host import energy
from plumbline.launch import hosts
from plumbline.schedulers import slurm

SOURCE = "Slurm's accounting (ipmi)"
OLD = "7|RUNNING|2|{T}|\n7.batch|RUNNING|1|{T}|\n7.extern|RUNNING|2|{T}|\n7.0|COMPLETED|2|{T}|500\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    slurm._energy_source.cache_clear()
    monkeypatch.setattr(hosts, "PAUSE_S", 0.0)
    monkeypatch.setattr(hosts, "LATE_S", 600)


def cluster(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *answers: str, plugin: str = "acct_gather_energy/ipmi"
) -> Path:
    """A sacct that gives each of ``answers`` once, then the last one for ever; the file of its questions.

    Steps begin in an hour: the launch is before that, however long it takes here.
    """
    for number, text in enumerate(answers):
        (folder / f"answer{number}").write_text(text.replace("{T}", str(int(time.time()) + 3600)))
    asked, last = folder / "asked", len(answers) - 1
    config = f"AccountingStorageType   = accounting_storage/slurmdbd\\nAcctGatherEnergyType    = {plugin}\\n"
    programs = {
        "scontrol": f"printf '{config}'",
        "sacct": f'printf "%s\\n" "$* $SLURM_TIME_FORMAT" >> {asked}\n'
        f"n=$(($(wc -l < {asked}) - 1)); [ $n -le {last} ] || n={last}\n"
        f'f={folder}/answer$n; [ -s $f ] || {{ echo "sacct: error: no database" >&2; exit 1; }}; cat $f',
    }
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return asked


def used(nodes: int = 2) -> hosts.Used:
    return hosts.Meter(nodes, {**os.environ, "SLURM_JOB_ID": "7"}).used()


def test_the_step_that_is_new_is_the_launch(tmp_path, monkeypatch):
    """It comes late, and is seen while it still runs."""
    new = [OLD, OLD, OLD + "7.1|RUNNING|2|{T}|\n", OLD + "7.1|COMPLETED|2|{T}|1234\n"]
    asked = cluster(tmp_path, monkeypatch, *new)
    assert used() == hosts.Used({SOURCE: 1234.0})
    assert asked.read_text().splitlines() == ["-n -P -j 7 -o JobID,State,NNodes,Start,ConsumedEnergyRaw %s"] * 4


@pytest.mark.parametrize(("new", "said"), [
    ("7.1|COMPLETED|2|{T}|0\n", "has no J on 2 nodes"),
    ("7.1|COMPLETED|2|{T}|\n", "has no J on 2 nodes"),
    ("7.1|COMPLETED|2|{T}|4294967294\n", "has no J on 2 nodes"),
    ("7.1|COMPLETED|1|{T}|88\n", "has 88.0 J on 1 node"),
    ("7.1|COMPLETED|2|{T}|88\n7.2|COMPLETED|2|{T}|9\n", "has 88.0 J on 2 nodes, 9.0 J on 2 nodes"),
    ("", "has no entry of it"),
    ("7.1|COMPLETED|2|1700000000|88\n", "has no entry of it"),
])  # fmt: skip
def test_what_is_not_the_whole_launch_is_no_energy_and_said(tmp_path, monkeypatch, new, said):
    monkeypatch.setattr(hosts, "LATE_S", 0)
    cluster(tmp_path, monkeypatch, OLD, OLD + new)
    assert used() == hosts.Used(remarks=(f"no joules: {SOURCE} {said}",))


def test_a_database_that_does_not_answer_is_said(tmp_path, monkeypatch):
    cluster(tmp_path, monkeypatch, "")
    (remark,) = used().remarks
    assert "sacct failed: sacct: error: no database" in remark


@pytest.mark.parametrize("plugin", ["acct_gather_energy/none", "(null)"])
def test_without_a_plugin_nothing_is_asked(tmp_path, monkeypatch, plugin):
    asked = cluster(tmp_path, monkeypatch, OLD, plugin=plugin)
    assert used() == hosts.Used()
    assert not asked.exists()


def test_one_node_has_its_own_counters(tmp_path, monkeypatch):
    asked = cluster(tmp_path, monkeypatch, OLD)
    values = iter([5, 42_000_005])
    meter = energy.Meter("powercap", (energy.Counter("package-0", lambda: next(values), None),))
    monkeypatch.setattr(energy, "find", lambda: meter)
    assert used(1) == hosts.Used({"package-0": 42.0})
    assert not asked.exists()
