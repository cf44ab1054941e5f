"""Sites as ReFrame's configuration: what this host's site must have, and what another's need not."""

import ast
import json
import os
import re
import shutil
import subprocess

import pytest
import stack_manifest
import yaml

from plumbline import mpi, schedulers, site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.measure.reframe import settings
from plumbline.records import outcome
from plumbline.reframe import extend
from plumbline.stacks import manifest

SITE = """\
schema: 1
name: here
description: a site for tests
hostnames: [".*"]
partitions:
  - name: default
    scheduler: local
    topology: topology/default.xml
    stacks: [nonesuch]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A site of this host that offers a stack nobody installed; no stack is."""
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path))
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
    (tmp_path / "here" / "topology").mkdir(parents=True)
    (tmp_path / "here" / "topology" / "default.xml").write_text("<topology/>")
    (tmp_path / "here" / "site.yaml").write_text(SITE)
    return tmp_path / "here" / "site.yaml"


def test_this_hosts_site_must_have_its_stacks(here):
    with pytest.raises(PlumbError, match=r"site here, partition default: stack nonesuch is not installed .*site\.yaml"):
        settings.configuration()


def test_another_site_may_offer_what_is_not_installed(here):
    here.write_text(SITE.replace('[".*"]', '["(?!)"]') + "archived: true\n")
    found = settings.configuration()
    (partition,) = found["systems"][0]["partitions"]
    assert partition["environs"] == ["nonesuch"]
    assert partition["extras"]["plumb"]["archived"] is True
    (environment,) = (item for item in found["environments"] if item["name"] == "nonesuch")
    stack = {"stack": "nonesuch", "benchmarks": None, "accelerator": None, "family": None}
    assert environment["extras"] == {"plumb": stack}


def test_the_log_that_reframe_begins_among_the_temporary_files_is_not_left_there(here, tmp_path):
    """It begins one before it reads the configuration, and no signal may leave it."""
    here.write_text(SITE.replace("[nonesuch]", "[]"))
    shutil.copyfile(paths.suite() / "site-configs" / "settings.py", tmp_path / "settings.py")
    (tmp_path / "temporary").mkdir()
    command = [paths.program("reframe"), "-C", str(tmp_path / "settings.py"), "--show-config=systems/0/name"]
    environment = {**os.environ, "PYTHONPATH": str(paths.root()), "TMPDIR": str(tmp_path / "temporary")}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_site_and_inventory_offer_the_schedulers_of_the_table():
    asked = yaml.safe_load((paths.root() / "playbooks/roles/plumb_inventory/meta/argument_specs.yml").read_text())
    options = asked["argument_specs"]["main"]["options"]["plumb_inventory_partitions"]["options"]
    assert set(options["scheduler"]["choices"]) == set(schedulers.TABLE)
    assert options["launcher"]["choices"] == ["mpirun", *schedulers.RANK_LAUNCHERS]
    assert checked("scheduler", "nonesuch") == f"scheduler 'nonesuch' is unknown: known: {', '.join(schedulers.TABLE)}"
    assert checked("launcher", "nonesuch").startswith("launcher 'nonesuch' is unknown: known: mpirun, ")
    for name in schedulers.RANK_LAUNCHERS:
        said = checked(f"{name}_mpi", {"nonesuch": "x"})
        assert said == f"MPI family 'nonesuch' is unknown: known: {', '.join(mpi.TABLE)}"
        assert checked(f"{name}_mpi", dict.fromkeys(mpi.TABLE, "x")) == ""


def test_playbooks_offer_the_profiles_of_the_table():
    text = (paths.root() / "playbooks/roles/plumb_campaign/meta/argument_specs.yml").read_text()
    assert re.findall(r"choices: \[(quick.*)\]", text) == 2 * [", ".join(outcome.PROFILES)]


def checked(key, value, scheduler="local"):
    """What is said of a site whose partition has ``key``, without its place; empty if it is in order."""
    part = {"name": "default", "topology": "t.xml", "stacks": [], "scheduler": scheduler, key: value}
    document = {"schema": 1, "name": "here", "description": "", "hostnames": [".*"], "partitions": [part]}
    try:
        site.check(document, "f")
    except PlumbError as error:
        return str(error).removeprefix("partitions[0]: ").replace(" (f)", "")
    return ""


def test_a_partition_takes_what_its_scheduler_has():
    """Hosts where no scheduler gives the nodes, a launcher of its own where the scheduler has one."""
    for name, found in schedulers.TABLE.items():
        assert checked("scheduler", name) == checked("launcher", "mpirun", name) == ""
        assert bool(checked("hosts", ["n1"], name)) is found.has_jobs
        for launcher in schedulers.RANK_LAUNCHERS:
            own = found.rank_launcher is not None and found.rank_launcher.name == launcher
            assert bool(checked("launcher", launcher, name)) is not own


def test_the_shipped_sites_are_a_configuration(tmp_path, monkeypatch):
    """Of a fresh clone: nothing is installed, and no site claims the host."""
    for folder in (paths.root() / "site-configs").iterdir():
        if folder.is_dir() and folder.name not in ("local", "__pycache__"):
            shutil.copytree(folder, tmp_path / folder.name)
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path))
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
    found = json.loads(json.dumps(settings.configuration()))
    assert [system["name"] for system in found["systems"]] == site.names()


def made(here, scheduler, more):
    elsewhere = SITE.replace('[".*"]', '["(?!)"]').replace("scheduler: local", f"scheduler: {scheduler}")
    here.write_text(elsewhere + more)
    return settings.configuration()["systems"][0]["partitions"][0]


def test_jobs_by_ssh_start_on_the_first_host_and_check_its_key(here):
    part = made(here, "ssh", "    hosts: [n1, n2]\n    access: [-p2222]\n")
    options = ["#host=n1", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-p2222"]
    assert part["access"] == options
    assert part["sched_options"] == {"ssh_hosts": ["n1", "n2"]}
    facts = part["extras"]["plumb"]
    assert (facts["nodes"], facts["max_pending_s"], facts["max_job_s"]) == (2, 3600, None)
    assert made(here, "slurm", "    max_job_s: 7200\n")["extras"]["plumb"]["max_job_s"] == 7200


@pytest.mark.parametrize(("scheduler", "more", "said"), [
    ("slurm", "    hosts: [n1]\n", "slurm"),
    ("pbs", "    launcher: srun\n", "pbs"),
    ("ssh", "    hosts: ['n1; reboot']\n", "n1; reboot"),
    ("ssh", "    hosts: [n1, n1]\n", "names a host twice"),
    ("local", "    environment: {'A B': x}\n", "A B"),
    ("slurm", "    srun_mpi: {openmpi: 'pmix --x'}\n", "pmix --x"),
    ("slurm", "    max_pending_s: 0\n", "0"),
    ("slurm", "    max_job_s: 0\n", "0"),
])  # fmt: skip
def test_what_a_partition_must_not_say(here, scheduler, more, said):
    with pytest.raises(PlumbError, match=said):
        made(here, scheduler, more)


@pytest.mark.parametrize("file", ["plumbline/reframe.py", "reframe-tests/__init__.py", "site-configs/settings.py"])
def test_an_old_python_of_a_foreign_reframe_reads_the_files_that_name_the_cure(file):
    source = (paths.root() / file).read_text()
    ast.parse(source, feature_version=(3, 6))
    assert "__future__" not in source


THEIRS = {
    "systems": [
        {"name": name, "hostnames": [name], "partitions": [{"name": "cpu", "environs": ["builtin", "gnu"]}]}
        for name in ("daint", "eiger")
    ],
    "environments": [
        {"name": "gnu", "cc": "gcc", "modules": ["PrgEnv-gnu"], "features": ["mpi"]},
        {"name": "gnu", "cc": "gcc-14", "target_systems": ["eiger"]},
    ],
}


@pytest.fixture
def ours(here):
    """The installed stack ``two``, which needs a module, and the site of :func:`here`."""
    manifest.save(stack_manifest.made("two", modules=["openmpi/5"]))
    here.write_text(SITE.replace("nonesuch", "two"))


def test_a_foreign_configuration_gets_what_its_system_lacks_and_nothing_else(ours):
    theirs = {**THEIRS, "logging": [{"handlers_perflog": []}]}
    before = json.dumps(theirs)
    extended = extend(theirs, "daint", {"gnu": "two", "builtin": "two"}, site="here", partitions={"cpu": "default"})
    assert json.dumps(theirs) == before
    daint, eiger = extended["systems"]
    assert eiger == theirs["systems"][1]
    facts = daint["partitions"][0].pop("extras")["plumb"]
    assert (facts["site"], facts["partition"], facts["scheduler"]) == ("here", "default", "local")
    assert daint == theirs["systems"][0]
    assert extended["environments"][:2] == theirs["environments"]
    gnu, builtin = extended["environments"][2:]
    assert gnu.pop("extras")["plumb"]["stack"] == builtin.pop("extras")["plumb"]["stack"] == "two"
    added = {"modules": ["PrgEnv-gnu", "openmpi/5"], "features": ["mpi", "plumb_stack"]}
    assert gnu == {"name": "gnu", "cc": "gcc", **added, "target_systems": ["daint:cpu"]}
    assert (builtin["cc"], builtin["cxx"], builtin["target_systems"]) == ("cc", "", ["daint:cpu"])
    assert extended["logging"] == theirs["logging"]


@pytest.mark.parametrize(("changes", "line"), [
    ({"system": "dainty"}, "no system 'dainty' (site_configuration): did you mean 'daint'?"),
    ({"partitions": {"cpus": "default"}}, "system daint has no partition 'cpus' (partitions): did you mean 'cpu'?"),
    ({"partitions": {"cpu": "defaul"}}, "site here has no partition 'defaul'"),
    ({"environments": ["gnu"]}, "environments and partitions are dictionaries"),
    ({"site": "nowhere"}, "plumb site init --site nowhere"),
    ({"partitions": {}}, "site here knows no partition of system daint"),
    ({"environments": {"gnv": "two"}}, "system daint has no environment 'gnv' (environments): did you mean 'gnu'?"),
    ({"environments": {"gnu": "tow"}}, "stack 'tow' is not installed"),
])  # fmt: skip
def test_what_cannot_be_extended_is_one_line_and_no_success(ours, changes, line):
    words = {"system": "daint", "environments": {"gnu": "two"}, "site": "here", "partitions": {"cpu": "default"}}
    with pytest.raises(SystemExit) as ended:
        extend(THEIRS, **{**words, **changes})
    assert str(ended.value).startswith("plumb: ")
    assert line in str(ended.value)
