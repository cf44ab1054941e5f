"""Hosts of a launch, ranks started by srun, and what every node says of itself, with made-up launchers."""

import os
import sys

import pytest
import samples
import stack_manifest

from plumbline import mpi, schedulers
from plumbline.base.errors import PlumbError
from plumbline.launch import hosts
from plumbline.schedulers import slurm

SRUN = """#!/bin/sh
printf 'MPI plugin types are...\\n\\tpmix\\n\\tnone\\n\\tpmi2\\nspecific pmix plugin versions available: pmix_v4\\n' >&2
"""
PART = {"name": "main", "scheduler": "slurm", "launcher": "srun"}
JOB = {"SLURM_JOB_ID": "7"}


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a program first in PATH."""
    slurm.Srun.plugins.cache_clear()
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
        return folder / name

    yield make
    slurm.Srun.plugins.cache_clear()


def chosen(family, partition=PART, environment=JOB):
    found = stack_manifest.made(family, family).launcher_on(samples.partition(**partition), environment)
    return found.kind, found.program, found.plugin, found.variables


def test_every_library_gets_its_pmi(program):
    program("srun", SRUN)
    assert chosen("openmpi") == ("srun", "srun", "pmix", {"PMIX_MCA_psec": "native"})
    for family in ("mpich", "mvapich"):
        assert chosen(family) == ("srun", "srun", "pmi2", {})


def test_the_launcher_of_the_stack_is_used_where_the_partition_names_no_other():
    assert chosen("mpich", {"name": "main", "launcher": "mpirun"}, {}) == ("hydra", "/bin/mpiexec", None, {})


def test_a_partition_chooses_another(program):
    program("srun", SRUN)
    assert chosen("openmpi", {**PART, "srun_mpi": {"openmpi": "pmix_v4"}})[2] == "pmix_v4"
    with pytest.raises(PlumbError, match=r"needs srun --mpi=pmix_v9, .*offers pmix, none, pmi2, pmix_v4"):
        chosen("openmpi", {**PART, "srun_mpi": {"openmpi": "pmix_v9"}})


def test_intel_mpi_needs_slurms_library(program, tmp_path, monkeypatch):
    program("srun", SRUN)
    monkeypatch.setattr(slurm, "LIBRARY_FOLDERS", ())
    with pytest.raises(PlumbError, match=r"under srun needs libpmi2\.so"):
        chosen("intelmpi")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libpmi2.so.0").touch()
    assert chosen("intelmpi")[3] == {"I_MPI_PMI_LIBRARY": str(tmp_path / "lib" / "libpmi2.so.0")}
    assert chosen("intelmpi", environment={**JOB, "I_MPI_PMI_LIBRARY": "/x"})[3] == {}


def test_what_a_library_needs_of_srun_is_in_the_command(program):
    program("srun", SRUN)
    launcher = stack_manifest.made("openmpi", "openmpi").launcher_on(samples.partition(**PART), JOB)
    found = launcher.command(mpi.Layout(1, 2), bound=True, environment=JOB)
    assert found.environment == {"PMIX_MCA_psec": "native"}


def test_srun_needs_a_job():
    with pytest.raises(PlumbError, match="not inside a job"):
        chosen("mpich", environment={})


def test_hosts_of_a_partition_begin_with_this_one(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "b.cluster")
    part = {"name": "p", "scheduler": "ssh", "hosts": ["a", "b", "c"]}
    assert hosts.chosen(samples.partition(**part), 2) == ("b", "a")
    assert hosts.chosen(samples.partition(**part), 1) == ()
    with pytest.raises(PlumbError, match="4 nodes asked, hosts names 3"):
        hosts.chosen(samples.partition(**part), 4)
    with pytest.raises(PlumbError, match=r"this host, b\.cluster, is none of the partition's"):
        hosts.chosen(samples.partition(**{**part, "hosts": ["a", "c"]}), 1)
    with pytest.raises(PlumbError, match="neither a scheduler nor hosts"):
        hosts.chosen(samples.partition(), 2)
    assert hosts.chosen(samples.partition(scheduler="slurm"), 2) == ()


def test_hosts_that_a_scheduler_gave(tmp_path):
    file = tmp_path / "nodes"
    file.write_text("n1\nn1\nn2\n")
    assert allocated({"PBS_JOBID": "1.head", "PBS_NODEFILE": str(file)}) == ("n1", "n2")
    file.write_text("n1 16 all.q@n1 <NULL>\nn2 16 all.q@n2 <NULL>\n")
    assert allocated({"JOB_ID": "1", "PE_HOSTFILE": str(file)}) == ("n1", "n2")
    assert allocated({"LSB_JOBID": "1", "LSB_HOSTS": "n1 n1 n2"}) == ("n1", "n2")
    assert allocated({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]"}) == ("n1", "n2")
    assert allocated({}) == ()


def allocated(environment):
    return schedulers.current(environment).hosts(environment)


def collect(command, folder, names=("here", "there")):
    launcher = mpi.Launcher(mpi.TABLE["mpich"], "hydra", str(command))
    return hosts.collect(hosts.Ranks(launcher, mpi.Layout(2, 4, names), (), dict(os.environ)), folder)


def test_a_node_that_says_nothing_is_named(program, tmp_path):
    """The made-up launcher starts the one process that this host can run, and fails for the other."""
    name = os.uname().nodename
    text = f'#!/bin/sh\nwhile [ "$1" != {sys.executable} ]; do shift; done\n"$@"\necho "no route to host" >&2\nexit 3\n'
    first, second = collect(program("mpiexec", text), tmp_path / "about", (name, "there"))
    assert first["hostname"] == name
    assert first["kernel"]
    assert second == {"hostname": "there", "missing": "no answer: the launcher ended with status 3: no route to host"}


@pytest.mark.parametrize(("slots", "nodes", "expected"), [
    ("here\nhere\nn2\nn3\n", 1, ("here",)),
    ("n2\nhere\nn3\n", 2, ("here", "n2")),
    ("here\nn2\n", 2, ()),
    ("n2\nn3\n", 1, ()),
    ("", 1, ()),
])  # fmt: skip
def test_a_launch_takes_its_share_of_a_larger_job(tmp_path, monkeypatch, slots, nodes, expected):
    monkeypatch.setattr(hosts.socket, "gethostname", lambda: "here.example.org")
    file = tmp_path / "nodes"
    file.write_text(slots)
    assert hosts.share(nodes, {"PBS_JOBID": "1.head", "PBS_NODEFILE": str(file)}) == expected
    assert hosts.share(nodes, {}) == ()
