"""Launcher syntax of every MPI family: the only module that knows it.

Whatever starts the ranks has its own binding switched off, because ``plumb-bind`` binds; under the placement ``none``
the launcher's default stays on, because that default is what the control measures.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from plumbline.errors import PlumbError


@dataclass(frozen=True)
class Layout:
    """How many ranks run where. ``hosts`` is empty when the scheduler's allocation, or this host, says it."""

    nodes: int
    ranks_per_node: int
    hosts: tuple[str, ...] = ()
    round_robin: bool = False

    @property
    def ranks(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Command:
    """A launcher's argument list up to the program, and the variables it needs."""

    arguments: tuple[str, ...]
    environment: dict[str, str]


def prefix(launcher: dict[str, Any], layout: Layout, bound: bool, exported: tuple[str, ...] = ()) -> Command:
    """The command that starts ``layout`` with ``launcher`` (the manifest's element).

    ``bound`` is true where plumb-bind binds. ``exported`` names the variables that ranks on other hosts must get too.
    Raises :class:`PlumbError` for a launcher family nobody has taught this module.
    """
    family = launcher["family"]
    if family not in _FAMILIES:
        raise PlumbError(f"unknown launcher family '{family}'", "stack manifest", f"one of {', '.join(_FAMILIES)}")
    return _FAMILIES[family](launcher["command"], layout, bound, exported)


def _prrte(command: str, layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Open MPI 5 (PRRTE): https://docs.open-mpi.org/en/v5.0.x/launching-apps/."""
    arguments = [command, "-n", str(layout.ranks)]
    if layout.nodes > 1:
        arguments += ["--map-by", f"{_mapping(layout)}:OVERSUBSCRIBE"]
    elif bound:
        arguments += ["--map-by", "slot:OVERSUBSCRIBE"]
    return _open_mpi(arguments, layout, bound, exported)


def _orte(command: str, layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Open MPI 4 (ORTE): mpirun(1)."""
    arguments = [command, "-n", str(layout.ranks), "--oversubscribe"]
    if layout.nodes > 1:
        arguments += ["--map-by", _mapping(layout)]
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


def _hydra(command: str, layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """MPICH and MVAPICH (Hydra), which hands the whole environment on and does not bind by default."""
    arguments = [command, "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    if bound:
        arguments += ["-bind-to", "none"]
    if layout.hosts:
        arguments += ["-hosts", ",".join(layout.hosts)]
    # Slurm's PMIx variables beside Hydra's PMI stop MPICH with "Found both env vars PMI_SIZE and PMIX_NAMESPACE".
    return Command(tuple(arguments), {"SLURM_MPI_TYPE": "none"} if "SLURM_JOB_ID" in os.environ else {})


def _intel_hydra(command: str, layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Intel MPI's Hydra, whose binding is done in the library and is switched by I_MPI_PIN."""
    arguments = [command, "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    if layout.hosts:
        arguments += ["-hosts", ",".join(layout.hosts)]
    return Command(tuple(arguments), {"I_MPI_PIN": "0"} if bound else {})


def _srun(command: str, layout: Layout, bound: bool, exported: tuple[str, ...]) -> Command:
    """Slurm's srun(1); ``--mpi`` comes from SLURM_MPI_TYPE in the stack's environment."""
    arguments = [command, f"--nodes={layout.nodes}", f"--ntasks={layout.ranks}"]
    arguments.append(f"--ntasks-per-node={layout.ranks_per_node}")
    if layout.round_robin:
        arguments.append("--distribution=cyclic")
    if bound:
        arguments.append("--cpu-bind=none")
    if layout.hosts:
        arguments.append(f"--nodelist={','.join(layout.hosts)}")
    return Command(tuple(arguments), {"I_MPI_PIN": "0"} if bound else {})


def _root_variables() -> dict[str, str]:
    """Open MPI refuses to start as root, which is who a container runs as, unless both of these are set."""
    if os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


_FAMILIES = {"prrte": _prrte, "orte": _orte, "hydra": _hydra, "intel-hydra": _intel_hydra, "srun": _srun}
