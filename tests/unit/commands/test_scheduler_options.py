"""Account, QOS and reservation of whoever submits reach the jobs of every command that submits some."""

import ast
import json
import shlex
import shutil

import pytest

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.commands.table import JOBS
from plumbline.gate.setup import GATE
from plumbline.measure import session
from plumbline.measure.reframe import campaign, settings

#: of Slurm 22.05.8
RESERVATION = (
    "ReservationName=vet StartTime=2026-11-29T18:31:48 EndTime=2026-11-29T19:01:48 Duration=00:30:00 Nodes=n[1-3] "
    "NodeCnt=3 CoreCnt=6 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=6 "
    "Users=(null) Groups=(null) Accounts=ops Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a "
    "MaxStartDelay=(null)"
)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A site ``big`` of a Slurm whose nodes n1 to n3 are in a maintenance reservation, with a file of the user.

    The programs that submit leave their words in ``submitted``, and fail.
    """
    (tmp_path / "bin").mkdir()
    for name, body in {
        "sinfo": "printf '%s\\n' 'n1|maint|none' 'n2|mixed$|none' 'n3|drained$|fan' 'n4|idle|none'",
        "scontrol": f"echo '{RESERVATION}'",
        "sbatch": f'printf "%s\\n" "$@" >{tmp_path}/submitted; exit 1',
        "salloc": f'printf "%s\\n" "$@" >{tmp_path}/submitted; exit 1',
    }.items():
        file = tmp_path / "bin" / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
    part = {"name": "cpu", "scheduler": "squeue", "access": ["--partition=main"], "topology": "t.xml", "stacks": []}
    document = {"schema": 1, "name": "big", "description": "", "hostnames": [".*"], "partitions": [part]}
    (tmp_path / "sites" / "big" / "health").mkdir(parents=True)
    (tmp_path / "sites" / "big" / "t.xml").touch()
    (tmp_path / "sites" / "big" / "site.yaml").write_text(json.dumps(document))
    (tmp_path / "sites" / "big" / "health" / "cpu.class").write_text("budget 25\n")
    (tmp_path / "plumbline").mkdir()
    (tmp_path / "plumbline" / "config.yaml").write_text(
        "scheduler_options: {big: [--account=lab], 'big:cpu': [--qos=fast], else: [--account=no]}\n"
    )
    for name in ("sites", "build", "stacks", "results"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("plumbline.measure.jobs.LATE_S", 0.1)
    monkeypatch.setattr("plumbline.schedulers.program.LOG_S", 0.1)
    return tmp_path


@pytest.mark.parametrize("line", ["nodes facts OUT", "site measure", "calibrate --nodes 1", "screen"])
def test_a_command_that_submits(cluster, monkeypatch, line):
    monkeypatch.chdir(cluster)
    monkeypatch.setattr("plumbline.extras.nodes.checks.plan_lines", lambda request: [])
    monkeypatch.setattr("plumbline.base.paths.checker", lambda: cluster / "bin" / "sinfo")
    monkeypatch.setattr("plumbline.schedulers.base.Scheduler.jobs_on", lambda scheduler, node: "")
    cli.main([*line.split(), "--scheduler-option=--reservation=vet"])
    words = (cluster / "submitted").read_text().splitlines()
    assert {"--partition=main", "--account=lab", "--qos=fast", "--reservation=vet"} <= set(words)
    assert site.options() == []  # of that call alone


def test_the_first_job_of_a_site_that_is_not_there_yet(cluster, monkeypatch):
    """As onboarding asks for the facts of its nodes."""
    monkeypatch.chdir(cluster)
    shutil.rmtree(cluster / "sites" / "big")
    cli.main(shlex.split("nodes facts --site big --partition cpu --scheduler squeue --access=--partition=main OUT"))
    words = (cluster / "submitted").read_text().splitlines()
    assert {"--partition=main", "--account=lab", "--qos=fast"} <= set(words)


def test_a_session(cluster, monkeypatch):
    """Gates, tunings, searches and acceptances continue in a job of a partition that was loaded."""
    begun = type("Begun", (), {"circumstances": {"nodes": None}})
    monkeypatch.setattr(session.Kind, "peek", lambda kind, folder: begun)
    (part,) = site.load("big").partitions
    with pytest.raises(PlumbError, match="did not reach its end"):
        GATE.in_job(cluster / "work", part, 2, [], print)
    assert {"--account=lab", "--qos=fast"} <= set((cluster / "submitted").read_text().splitlines())


def test_a_campaign(cluster, monkeypatch):
    site.use_options(["--reservation=vet", "--constraint='a b'"])
    try:
        environment = campaign.environment_of_reframe({})
    finally:
        site.use_options([])
    monkeypatch.setenv(site.OPTIONS, environment[site.OPTIONS])
    (system,) = [item for item in settings.configuration()["systems"] if item["name"] == "big"]
    access = system["partitions"][0]["access"]
    assert access[-5:] == [
        "--partition=main", "--account=lab", "--qos=fast", "--reservation=vet", "--constraint='a b'",
    ]  # fmt: skip


def test_no_other_way_leads_to_a_job(package):
    """Jobs are made in three places, and a partition comes from ``site.load``, whatever the command."""

    def calls(name):
        return {
            module
            for module, tree in package.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name
        }

    assert calls("Job") == {"measure/jobs.py", "extras/nodes/checks.py", "site/nodes/collection.py"}
    assert calls("Partition") == {"gate/setup.py"}  # of the gate of two commands, which has no jobs
    assert calls("Site") == set()


@pytest.fixture
def package():
    folder = paths.package()
    files = [file for file in folder.rglob("*.py") if "suite" not in file.relative_to(folder).parts]
    return {str(file.relative_to(folder)): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def test_help_of_every_command_that_submits(capsys):
    for name in sorted(JOBS):
        with pytest.raises(SystemExit):
            cli.main(["help", name])
        assert "--scheduler-option OPTION" in capsys.readouterr().out, name


def test_nodes_of_the_reservation_can_be_used(cluster, capsys, output_of):
    """Without it a machine in maintenance has one node; a node that is broken, or outside, is none of it."""
    assert "1 of 4 nodes can be used" in output_of(0, "nodes", "states")
    out = output_of(0, "nodes", "states", "--scheduler-option=--reservation=vet")
    assert "2 of 3 nodes can be used" in out
    assert "n4" not in out
    assert cli.main(["nodes", "states", "--scheduler-option=--reservation=nope"]) == 2
    assert "reservation nope has no node of main" in capsys.readouterr().err


def test_reservation_of_reframe(cluster, capsys):
    """As in ``plumb campaign -- -J reservation=vet``."""
    here = site.load("big")
    assert campaign._nodes_now(here, ["-J", "reservation=vet"]) == []
    assert campaign._nodes_now(here, []) == []  # of one node, which a test may use
    assert "n1 is maint" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "fault"), [
    ("scheduler_option: {}", "scheduler_option"),
    ("scheduler_options: [--account=lab]", "Expected `object`"),
    ("scheduler_options: {big: ['lab']}", "'lab' is not one option"),
    ('scheduler_options: {big: ["--account=\'lab"]}', "close the quotes"),
])  # fmt: skip
def test_a_file_that_is_not_valid(cluster, refused, text, fault):
    (cluster / "plumbline" / "config.yaml").write_text(text)
    error = refused(2, "nodes", "states")
    assert fault in error
    assert f"{cluster}/plumbline/config.yaml" in error


def test_an_option_that_cannot_count(cluster, capsys):
    assert cli.main(["nodes", "states", "--scheduler-option=rm -rf"]) == 2
    assert "'rm -rf' is not one option (--scheduler-option)" in capsys.readouterr().err
    file = cluster / "sites" / "big" / "site.yaml"
    file.write_text(file.read_text().replace("squeue", "local"))
    assert cli.main(["nodes", "states"]) == 0
    assert cli.main(["nodes", "states", "--scheduler-option=--qos=x"]) == 2
    assert "site big has no batch system (--scheduler-option): leave it out" in capsys.readouterr().err


def test_the_site_file_needs_no_account(cluster, capsys, output_of):
    before = (cluster / "sites" / "big" / "site.yaml").read_text()
    assert output_of(0, "site", "list") == "big:cpu  squeue  no stacks  --partition=main  --account=lab  --qos=fast\n"
    assert cli.main(shlex.split("site init --site big --partition cpu --dry-run")) == 0
    assert "account" not in capsys.readouterr().out
    assert (cluster / "sites" / "big" / "site.yaml").read_text() == before
