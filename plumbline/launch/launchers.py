"""Launcher syntax of every MPI family: the only module that knows it.

Whatever starts the ranks has its own binding switched off, because ``plumb-bind`` binds; under the placement ``none``
the launcher's default stays on, because that default is what the control measures.

Inside a job of Slurm, PBS, LSF or Grid Engine the launchers find the job's hosts themselves and start their daemons
through the scheduler, where they were built with it; Hydra on one node of a Slurm job does without (`_on_this_node`).
``Layout.ssh`` is for hosts that no scheduler gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plumbline.errors import PlumbError

#: asks nobody for a password, and refuses a host whose key is not known
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
#: what a job script of Slurm leaves behind that would give a step fewer CPUs, fewer variables or another order of ranks
#: than its command line says: https://slurm.schedmd.com/srun.html#SECTION_INPUT-ENVIRONMENT-VARIABLES
SLURM_INPUTS = (
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TRES_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_EXPORT_ENV",
    "SRUN_EXPORT_ENV",
)


@dataclass(frozen=True)
class Layout:
    """How many ranks run where. ``hosts`` is empty when the scheduler's allocation, or this host, says it.

    ``ssh``: the hosts are reached by ssh, not through a scheduler.
    """

    nodes: int
    ranks_per_node: int
    hosts: tuple[str, ...] = ()
    round_robin: bool = False
    ssh: bool = False

    @property
    def ranks(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Command:
    """A launcher's argument list up to the program, the variables it needs, and those it must not see."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    removed: tuple[str, ...] = ()


def prefix(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...] = ()) -> Command:
    """The command that starts ``layout`` with ``launcher``: the manifest's element, or for srun one with ``mpi`` too.

    ``bound`` is true where plumb-bind binds. ``exported`` names the variables that ranks on other hosts must get too.
    Raises :class:`PlumbError` for a launcher family nobody has taught this module.
    """
    family = launcher["family"]
    if family not in _FAMILIES:
        raise PlumbError(f"unknown launcher family '{family}'", "stack manifest", f"one of {', '.join(_FAMILIES)}")
    return _FAMILIES[family](launcher, layout, bound, exported)


def _prrte(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Open MPI 5 (PRRTE): https://docs.open-mpi.org/en/v5.0.x/launching-apps/; ssh is what plm_ssh_agent says."""
    arguments = [launcher["command"], "-n", str(layout.ranks)]
    if layout.nodes > 1:
        arguments += ["--map-by", f"{_mapping(layout)}:OVERSUBSCRIBE"]
    elif bound:
        arguments += ["--map-by", "slot:OVERSUBSCRIBE"]
    if layout.ssh:
        arguments += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", " ".join(("ssh", *SSH_OPTIONS))]
    return _open_mpi(arguments, layout, bound, exported)


def _orte(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Open MPI 4 (ORTE): mpirun(1); its ssh component is called rsh (``ompi_info --param plm rsh``)."""
    arguments = [launcher["command"], "-n", str(layout.ranks), "--oversubscribe"]
    if layout.nodes > 1:
        arguments += ["--map-by", _mapping(layout)]
    if layout.ssh:
        arguments += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", " ".join(("ssh", *SSH_OPTIONS))]
    return _open_mpi(arguments, layout, bound, exported)


def _mapping(layout: Layout) -> str:
    return "node" if layout.round_robin else f"ppr:{layout.ranks_per_node}:node"


def _open_mpi(arguments: list[str], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """What both generations of Open MPI share: binding, hosts, variables for ranks on other hosts."""
    if bound:
        arguments += ["--bind-to", "none"]
    if layout.hosts:
        arguments += ["--host", ",".join(f"{host}:{layout.ranks_per_node}" for host in layout.hosts)]
    if layout.nodes > 1:
        for name in exported:
            arguments += ["-x", name]
    return Command(tuple(arguments), _root_variables())


def _hydra(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """MPICH and MVAPICH (Hydra), which hands the whole environment on and does not bind by default.

    https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md; the arguments of ssh
    come from HYDRA_LAUNCHER_EXTRA_ARGS, separated by blanks.
    """
    arguments = [launcher["command"], "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    if bound:
        arguments += ["-bind-to", "none"]
    environment = {}
    if layout.hosts:
        arguments += ["-hosts", ",".join(layout.hosts)]
    if layout.ssh:
        arguments += ["-launcher", "ssh"]
        environment = {"HYDRA_LAUNCHER_EXTRA_ARGS": " ".join(SSH_OPTIONS)}
    elif _on_this_node(layout):
        arguments += ["-launcher", "fork"]
    # Slurm's PMIx variables beside Hydra's PMI stop MPICH with "Found both env vars PMI_SIZE and PMIX_NAMESPACE".
    return _under_slurm(arguments, {**environment, **_in_slurm({"SLURM_MPI_TYPE": "none"})}, bound)


def _intel_hydra(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Intel MPI's Hydra, whose binding is done in the library and is switched by I_MPI_PIN.

    https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-14/global-hydra-options.html
    """
    arguments = [launcher["command"], "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    if layout.hosts:
        arguments += ["-hosts", ",".join(layout.hosts)]
    if layout.ssh:
        arguments += ["-bootstrap", "ssh", "-bootstrap-exec-args", " ".join(SSH_OPTIONS)]
    elif _on_this_node(layout):
        arguments += ["-bootstrap", "fork"]
    return _under_slurm(arguments, {"I_MPI_PIN": "0"} if bound else {}, bound)


def _on_this_node(layout: Layout) -> bool:
    """Whether all ranks run where this runs, on a node of a Slurm job: then Hydra needs no srun to start its proxy.

    A step costs Slurm's daemons a few percent of the CPUs of a short launch, which would be flagged as disturbed by it.
    SLURMD_NODENAME is set on the nodes of a job only, not in a shell of salloc on a login host.
    """
    return layout.nodes == 1 and "SLURMD_NODENAME" in os.environ


def _under_slurm(arguments: list[str], environment: dict[str, str], bound: bool) -> Command:
    """Hydra starts its proxies with srun, which must not bind them: the ranks inherit what a proxy may use."""
    removed = SLURM_INPUTS if "SLURM_JOB_ID" in os.environ else ()
    return Command(tuple(arguments), {**environment, **_in_slurm({"SLURM_CPU_BIND": "none"} if bound else {})}, removed)


def _in_slurm(variables: dict[str, str]) -> dict[str, str]:
    return variables if "SLURM_JOB_ID" in os.environ else {}


def _srun(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Slurm's srun(1), https://slurm.schedmd.com/srun.html and https://slurm.schedmd.com/mpi_guide.html.

    Where ``launcher`` has no ``mpi``, ``--mpi`` comes from SLURM_MPI_TYPE in the stack's environment. There is no
    ``--cpus-per-task``: with it a step gets just as many CPUs of its job, without it all of them.
    """
    arguments = [launcher["command"]]
    if "mpi" in launcher:  # a rank that fails ends the others, as with every mpirun
        arguments += [f"--mpi={launcher['mpi']}", "--kill-on-bad-exit=1"]
    arguments += [f"--nodes={layout.nodes}", f"--ntasks={layout.ranks}"]
    arguments.append(f"--ntasks-per-node={layout.ranks_per_node}")
    if layout.round_robin:
        arguments.append("--distribution=cyclic")
    if bound:
        arguments.append("--cpu-bind=none")
    if layout.hosts:
        arguments.append(f"--nodelist={','.join(layout.hosts)}")
    return Command(tuple(arguments), {"I_MPI_PIN": "0"} if bound else {}, SLURM_INPUTS)


def _root_variables() -> dict[str, str]:
    """Open MPI refuses to start as root, which is who a container runs as, unless both of these are set."""
    if os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


_Maker = Callable[[dict[str, Any], Layout, bool, tuple[str, ...]], Command]
_FAMILIES: dict[str, _Maker] = {
    "prrte": _prrte,
    "orte": _orte,
    "hydra": _hydra,
    "intel-hydra": _intel_hydra,
    "srun": _srun,
}
