"""Launcher command lines, by family and layout."""

import pytest

from plumbline.errors import PlumbError
from plumbline.launch.launchers import Layout, prefix


def line(family: str, layout: Layout, bound: bool = True, exported: tuple[str, ...] = ()) -> str:
    return " ".join(prefix({"family": family, "command": "RUN"}, layout, bound, exported).arguments)


ONE = Layout(nodes=1, ranks_per_node=4)
TWO = Layout(nodes=2, ranks_per_node=4)
DEALT = Layout(nodes=2, ranks_per_node=4, round_robin=True)


@pytest.mark.parametrize(
    ("family", "layout", "expected"),
    [
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
    ],
)
def test_binding_is_switched_off(family, layout, expected):
    assert line(family, layout) == expected


@pytest.mark.parametrize("family", ["prrte", "orte", "hydra", "srun"])
def test_the_control_keeps_the_launchers_default(family):
    assert "bind" not in line(family, ONE, bound=False)


def test_intel_mpi_binds_by_a_variable(monkeypatch):
    monkeypatch.setenv("I_MPI_PIN", "1")
    launcher = {"family": "intel-hydra", "command": "RUN"}
    assert prefix(launcher, ONE, bound=True).environment == {"I_MPI_PIN": "0"}
    assert prefix(launcher, ONE, bound=False).environment == {}


def test_hosts_are_named_where_no_scheduler_does(monkeypatch):
    layout = Layout(nodes=2, ranks_per_node=2, hosts=("a", "b"))
    assert line("prrte", layout, exported=("X",)) == (
        "RUN -n 4 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none --host a:2,b:2 -x X"
    )
    assert line("hydra", layout) == "RUN -n 4 -ppn 2 -bind-to none -hosts a,b"
    assert line("srun", layout).endswith("--nodelist=a,b")


def test_open_mpi_as_root(monkeypatch):
    launcher = {"family": "prrte", "command": "RUN"}
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert prefix(launcher, ONE, bound=True).environment == {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert prefix(launcher, ONE, bound=True).environment == {}


def test_hydra_under_slurm_hides_pmix(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    found = prefix({"family": "hydra", "command": "RUN"}, TWO, bound=True)
    assert found.environment == {"SLURM_MPI_TYPE": "none", "SLURM_CPU_BIND": "none"}
    assert "SRUN_CPUS_PER_TASK" in found.removed
    assert prefix({"family": "hydra", "command": "RUN"}, TWO, bound=False).environment == {"SLURM_MPI_TYPE": "none"}


@pytest.mark.parametrize(("family", "option"), [("hydra", "-launcher fork"), ("intel-hydra", "-bootstrap fork")])
def test_hydra_needs_no_step_of_slurm_for_ranks_on_its_own_node(family, option, monkeypatch):
    share = Layout(nodes=1, ranks_per_node=4, hosts=("node1",))
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert "fork" not in line(family, ONE)  # a shell of salloc on a login host
    monkeypatch.setenv("SLURMD_NODENAME", "node1")
    assert line(family, ONE).endswith(option)
    assert line(family, share).endswith(f"-hosts node1 {option}")
    for other in (TWO, Layout(nodes=1, ranks_per_node=4, hosts=("node2",), ssh=True)):
        assert "fork" not in line(family, other)


@pytest.mark.parametrize("family", ["prrte", "orte", "hydra", "intel-hydra"])
def test_ssh_asks_nobody_and_trusts_no_unknown_host(family):
    found = prefix({"family": family, "command": "RUN"}, Layout(2, 2, ("a", "b"), ssh=True), bound=True)
    said = " ".join([*found.arguments, *found.environment.values()])
    assert "-o BatchMode=yes -o StrictHostKeyChecking=yes" in said
    plain = prefix({"family": family, "command": "RUN"}, Layout(2, 2, ("a", "b")), bound=True)
    assert "ssh" not in " ".join([*plain.arguments, *plain.environment.values()])


def test_a_step_of_srun_gets_all_cpus_of_its_job():
    found = prefix({"family": "srun", "command": "srun", "mpi": "pmix"}, TWO, bound=True)
    assert found.arguments[1] == "--mpi=pmix"
    assert not any(word.startswith("--cpus-per-task") for word in found.arguments)
    assert {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXPORT_ENV"} <= set(found.removed)


def test_unknown_family():
    with pytest.raises(PlumbError, match="unknown launcher family 'aprun'"):
        line("aprun", ONE)
