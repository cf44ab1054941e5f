"""MPICH: https://www.mpich.org/; its launcher is Hydra. Cray MPICH is of this family too."""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plumbline.errors import PlumbError
from plumbline.mpi.base import Command, Family, Request
from plumbline.mpi.settings import Knob, Rule, Setting
from plumbline.schedulers import SSH_OPTIONS, RankVariables

#: what every Hydra sets
HYDRA_RANKS = RankVariables("PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE")


def hydra(request: Request) -> Command:
    """Hydra, which hands the whole environment on and does not bind by default.

    https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md; the arguments of ssh
    come from HYDRA_LAUNCHER_EXTRA_ARGS, separated by blanks.
    """
    # A scheduler's PMIx variables beside Hydra's PMI: "Found both env vars PMI_SIZE and PMIX_NAMESPACE".
    environment = dict(request.scheduler.steps_without_pmi)
    arguments = ["-bind-to", "none"] if request.bound else []
    if request.layout.hosts:
        arguments += ["-hosts", ",".join(request.layout.hosts)]
    if request.layout.ssh:
        arguments += ["-launcher", "ssh"]
        environment["HYDRA_LAUNCHER_EXTRA_ARGS"] = " ".join(SSH_OPTIONS)
    elif request.forks:
        arguments += ["-launcher", "fork"]
    return proxies(request, arguments, environment)


def proxies(request: Request, more: list[str], environment: dict[str, str]) -> Command:
    """What every Hydra shares: the number of ranks, and proxies that a step of the scheduler starts.

    The step must not bind the proxies: the ranks inherit what a proxy may use.
    """
    layout = request.layout
    arguments = [request.program, "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    unbound = request.scheduler.unbound_steps if request.bound else {}
    return Command((*arguments, *more), {**environment, **unbound}, request.scheduler.hidden_variables)


def _knob(name: str, *values: str, operations: tuple[str, ...] = (), note: str = "", **more: Any) -> Knob:
    return Knob(
        f"MPIR_CVAR_{name}",
        values,
        more.pop("when", "start"),
        more.pop("scope", "intra"),
        operations,
        **more,
        note=note,
    )


def _algorithm(collective: str, *values: str) -> Knob:
    return _knob(
        f"{collective.upper()}_INTRA_ALGORITHM", *values, operations=(collective,), when="running", scope="both"
    )


def _on_node(collective: str, *values: str) -> Knob:
    return _knob(f"{collective.upper()}_POSIX_INTRA_ALGORITHM", *values, operations=(collective,), when="running")


KNOBS = (
    _knob("CH4_CMA_ENABLE", "0", note="0: messages go through cells; worse alone, better with large cells"),
    _knob(
        "CH4_SHM_POSIX_IQUEUE_CELL_SIZE", "16384", "32768", "65536",
        at_least=("MPIR_CVAR_CH4_PACK_BUFFER_SIZE",), note="MPI_Init aborts with a smaller pack buffer",
    ),
    _knob("CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "128", "256", note="memory: cells times their size a rank"),
    _knob("CH4_IPC_CMA_P2P_THRESHOLD", "16384", "65536", "262144", "1048576", note="bytes; single copy from here on"),
    _on_node("allreduce", "mpir", "release_gather"),
    _on_node("bcast", "mpir", "release_gather"),
    _on_node("reduce", "mpir", "release_gather"),
    _on_node("barrier", "mpir", "release_gather"),
    _on_node("alltoall", "ipc_read"),
    _algorithm("allreduce", "recursive_doubling", "reduce_scatter_allgather", "ring"),
    _algorithm("alltoall", "brucks", "pairwise", "scattered"),
    _knob("ALLREDUCE_COMPOSITION", "1", "2", operations=("allreduce",), when="running", scope="both"),
    _knob("CH4_NETMOD", "ofi", "ucx", scope="inter", note="not tried between nodes"),
    _knob("CH4_OFI_EAGER_THRESHOLD", "16384", "65536", scope="inter", note="not tried"),
)  # fmt: skip


class Mpich(Family):
    """MPICH."""

    name = "mpich"
    abi = "mpich"
    library = "libmpi.so.12"
    launchers = MappingProxyType({"hydra": hydra})
    launcher_programs = ("bin/mpiexec.hydra", "bin/mpiexec")
    rank_variables: tuple[RankVariables, ...] = (
        HYDRA_RANKS,
        # Cray PMI, and PALS, which may leave the number of ranks on a node to it
        RankVariables("PMI_RANK", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "PMI_SIZE"),
        RankVariables("PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_SIZE"),
        RankVariables("PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE", "PALS_SIZE"),
    )
    failures = (
        r"^=\s+BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        r"^.*Abort\([0-9]+\) on node [0-9]+",
        r"^.*\bexecvp error on file ",
    )
    shared_files = ("mpich_shm_*",)
    #: seen with version 5.0.2: 5.3 MiB a rank
    shared_memory = (0, 6 << 20)
    pmi = "pmi2"
    knobs: tuple[Knob, ...] = KNOBS
    parts: tuple[str, ...] = ("mpich/**/*.so*", "ucx/**/*.so*", "libfabric/**/*.so*")
    host_settings: tuple[str, ...] = ("etc/mpiexec.hydra.conf", "etc/mpich.conf", "etc/mpich*/*.conf")
    settings: tuple[str, ...] = ("etc/mpiexec*.conf", "etc/mpich.conf")
    variables: tuple[str, ...] = ("MPIR_", "MPICH_", "MPIEXEC_", "HYDRA_", "PMI_", "PALS_")

    def words(self, about: str) -> list[str]:
        """A line for each, in the order of their numbers: ``word - what it means``."""
        return re.findall(r"^\s*(\w+)\s+- ", about, re.MULTILINE)

    def rule_settings(self, rules: tuple[Rule, ...], folder: Path) -> tuple[Setting, ...]:
        """A setting for each collective: for a range of sizes the library wants its whole table of choices anew.

        It then holds for all numbers of ranks, those of a rule or not.
        """
        chosen: dict[str, str] = {}
        for rule in rules:
            other = chosen.setdefault(rule.collective, rule.algorithm) != rule.algorithm
            if other or rule.from_bytes or rule.to_bytes is not None:
                what = f"MPICH takes one algorithm of {rule.collective} for all sizes and ranks only"
                raise PlumbError(what, "rules", "leave the ranges out")
        return tuple(Setting(f"MPIR_CVAR_{name.upper()}_INTRA_ALGORITHM", value) for name, value in chosen.items())
