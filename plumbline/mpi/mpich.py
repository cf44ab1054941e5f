"""MPICH: https://www.mpich.org/; its launcher is Hydra. Cray MPICH is of this family too.

Made from it is MVAPICH: https://mvapich.cse.ohio-state.edu/userguide/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plumbline.base import files
from plumbline.base.errors import PlumbError, pick
from plumbline.mpi import ways
from plumbline.mpi.base import Command, Family, LaunchRequest
from plumbline.mpi.settings import Knob, Rule, Setting
from plumbline.schedulers import SSH_OPTIONS, RankVariables, Words

#: the variables that every Hydra sets, and those that it sets with -pmi-port
HYDRA_RANKS = (
    RankVariables("PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE"),
    RankVariables("PMI_ID", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


def hydra(request: LaunchRequest) -> Command:
    """Hydra, which hands the whole environment on and does not bind by default.

    https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md; the arguments of ssh
    come from HYDRA_LAUNCHER_EXTRA_ARGS, separated by blanks.
    """
    # A scheduler's PMIx variables beside Hydra's PMI: "Found both env vars PMI_SIZE and PMIX_NAMESPACE".
    environment = dict(request.scheduler.steps_without_pmi)
    arguments = ["-bind-to", "none"] if request.bound else []
    if request.layout.by_port:
        arguments += ["-pmi-port"]
    if request.layout.ssh:
        arguments += ["-launcher", "ssh"]
        environment["HYDRA_LAUNCHER_EXTRA_ARGS"] = " ".join(SSH_OPTIONS)
    elif request.forks:
        arguments += ["-launcher", "fork"]
    return proxies(request, arguments, environment)


def proxies(request: LaunchRequest, more: list[str], environment: dict[str, str]) -> Command:
    """The arguments common to every Hydra: the number of ranks, and proxies that a step of the scheduler starts.

    The step must not bind the proxies: the ranks inherit what a proxy may use.
    """
    layout = request.layout
    arguments = [request.program, "-n", str(layout.ranks)]
    if layout.nodes > 1 or layout.hosts:
        arguments += ["-ppn", "1" if layout.round_robin else str(layout.ranks_per_node)]
    if layout.hosts:
        arguments += ["-hosts", ",".join(layout.hosts)]
    unbound = request.scheduler.unbound_steps if request.bound else {}
    return Command((*arguments, *more), {**environment, **unbound}, request.scheduler.hidden_variables)


def _knob(name: str, *values: str, **more: Any) -> Knob:
    return Knob(f"MPIR_CVAR_{name}", values, **{"when": "start", "scope": "intra", **more})


def _algorithm(collective: str, *values: str) -> Knob:
    name = f"{collective.upper()}_INTRA_ALGORITHM"
    return _knob(name, *values, operations=(collective,), when="running", scope="both", sizes="all")


def _on_node(collective: str, *values: str) -> Knob:
    return _knob(f"{collective.upper()}_POSIX_INTRA_ALGORITHM", *values, operations=(collective,), when="running")


#: Collectives whose algorithm on a node is chosen by a tree of conditions (``posix_generic.json``), and the conditions
#: for the library's own choice, ``release_gather``. Where they do not hold, or nothing is chosen, it is ``mpir``.
ON_NODE = {
    "barrier": ("is_multi_threaded=no",),
    "bcast": ("is_multi_threaded=no",),
    "reduce": ("is_multi_threaded=no", "is_commutative=yes"),
    "allreduce": ("is_multi_threaded=no", "is_commutative=yes"),
}
#: the smallest page; larger ones are multiples of it
PAGE_BYTES = 4096
ON_NODE_SETTING = "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE"


def on_node_tree(rules: Iterable[Rule]) -> dict[str, Any]:
    """MPICH's tree of choices for the collectives of a node: the library's own tree, with ``rules`` in it.

    The file replaces the library's tree, so it has to hold the library's own choices too. Source: MPICH 5.0,
    ``src/mpi/coll/src/csel.c`` and ``maint/tuning/coll/ch4/posix_generic.json``. Raises :class:`PlumbError` for an
    algorithm that is not one of the collective on a node.
    """
    tree: dict[str, Any] = {}
    for collective, conditions in ON_NODE.items():
        choice = _by_ranks(collective, [rule for rule in rules if rule.collective == collective])
        for condition in reversed(("comm_type=intra", *conditions)):
            choice = {condition: choice}
        tree[f"collective={collective}"] = choice
    return tree


def _leaf(collective: str, algorithm: str = "release_gather") -> dict[str, Any]:
    leaf: dict[str, Any] = {f"algorithm=MPIDI_POSIX_mpi_{collective}_release_gather": {}}
    # The file has no name for mpir, which is used where nothing is chosen: a condition that never holds does that.
    leaves = {"release_gather": leaf, "mpir": {"comm_type=inter": leaf}}
    message = f"'{algorithm}' is not an algorithm of {collective} on a node"
    return pick(leaves, algorithm, message, "rules", f"take one of {', '.join(leaves)}")


def _by_ranks(collective: str, rules: list[Rule]) -> dict[str, Any]:
    numbers = sorted({rule.ranks for rule in rules if rule.ranks is not None})
    others = _by_size(collective, [rule for rule in rules if rule.ranks is None])
    if not numbers:
        return others
    branches: dict[str, Any] = {}
    for ranks in numbers:
        branches.setdefault(f"comm_size<={ranks - 1}", others)  # MPICH 5.0.2 takes comm_size<N as comm_size<=N
        branches[f"comm_size<={ranks}"] = _by_size(collective, [rule for rule in rules if rule.ranks == ranks])
    return {**branches, "comm_size=any": others}


def _by_size(collective: str, rules: list[Rule]) -> dict[str, Any]:
    """The branches are tried in order; the last one takes the rest."""
    if not rules:
        return _leaf(collective)
    branches: dict[str, Any] = {}
    done = 0
    for rule in sorted(rules, key=lambda rule: rule.from_bytes):
        if rule.from_bytes > done:
            branches[f"avg_msg_size<{rule.from_bytes}"] = _leaf(collective)
        done = rule.to_bytes or 0
        branches[f"avg_msg_size<{done}" if done else "avg_msg_size=any"] = _leaf(collective, rule.algorithm)
    return branches if not done else {**branches, "avg_msg_size=any": _leaf(collective)}


KNOBS = (
    _knob("CH4_CMA_ENABLE", "0", note="0: messages go through cells; worse alone, better with large cells"),
    _knob(
        "CH4_SHM_POSIX_IQUEUE_CELL_SIZE", "16384", "32768", "65536",
        at_least=("MPIR_CVAR_CH4_PACK_BUFFER_SIZE",), note="MPI_Init aborts with a smaller pack buffer",
    ),
    _knob("CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "128", "256", note="memory: cells times their size a rank"),
    _knob("CH4_IPC_CMA_P2P_THRESHOLD", "16384", "65536", "262144", "1048576", note="bytes; single copy from here on"),
    _on_node("allreduce", "mpir"),
    _on_node("bcast", "mpir"),
    _on_node("reduce", "mpir"),
    _on_node("barrier", "mpir"),
    _algorithm("alltoall", "brucks", "k_brucks", "nb", "pairwise", "scattered"),
    _algorithm("alltoallv", "nb", "scattered"),
    _algorithm("allgather", "brucks", "k_brucks", "nb", "recursive_doubling", "ring"),
    _algorithm("allgatherv", "brucks", "nb", "recursive_doubling", "ring"),
    _algorithm("gather", "binomial", "nb"),
    _algorithm("scatter", "binomial", "nb"),
    _algorithm("reduce_scatter", "nb", "pairwise", "recursive_doubling", "recursive_halving"),
    _algorithm("reduce_scatter_block", "nb", "pairwise", "recursive_doubling", "recursive_halving"),
    _algorithm("scan", "nb", "recursive_doubling", "smp"),
    _knob("CH4_OFI_EAGER_THRESHOLD", "16384", "65536", scope="inter", note="not tried"),
)  # fmt: skip


class Mpich(Family):
    """MPICH."""

    name = "mpich"
    abi = "mpich"
    #: the second as Debian has it, the third as HPE's Cray MPICH for a compiler (``libmpi_gnu_123.so.12``)
    libraries = ("libmpi.so.12", "libmpich.so.12", "libmpi_*.so.12")
    identity = r"(?:\bMPICH Version:|CRAY MPICH version|HYDRA build details:\s+Version:)\s+(\S+)"
    launchers = MappingProxyType({"hydra": hydra})
    launcher_options = MappingProxyType(
        dict.fromkeys(
            ("mpiexec.hydra", "mpiexec", "mpirun"),
            Words(
                "mpiexec -genvlist NAME,…",
                "mpiexec -bind-to core:THREADS",
                "mpiexec -bind-to core:THREADS -map-by numa",
            ),
        )
    )
    by_port = True
    launcher_programs = ("bin/mpiexec.hydra", "bin/mpiexec")
    rank_variables: tuple[RankVariables, ...] = (
        *HYDRA_RANKS,
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
    switches: tuple[ways.Switch, ...] = (*ways.MPICH, *ways.SWITCHES)
    reports: Mapping[str, str] = MappingProxyType({**Family.reports, "MPIR_CVAR_DEBUG_SUMMARY": "1"})
    interface = "UCX_NET_DEVICES, or FI_TCP_IFACE"
    parts: tuple[str, ...] = ("mpich/**/*.so*", "ucx/**/*.so*", "libfabric/**/*.so*")
    host_settings: tuple[str, ...] = ("etc/mpiexec.hydra.conf", "etc/mpich.conf", "etc/mpich*/*.conf")
    settings: tuple[str, ...] = ("etc/mpiexec*.conf", "etc/mpich.conf")
    variables: tuple[str, ...] = ("MPIR_", "MPICH_", "MPIEXEC_", "HYDRA_", "PMI_", "PALS_")

    def words(self, about: str) -> list[str]:
        """The words of a description with a line for each, ``word - what it means``, in the order of their numbers."""
        return re.findall(r"^\s*(\w+)\s+- ", about, re.MULTILINE)

    def rule_settings(self, rules: tuple[Rule, ...], folder: Path) -> tuple[Setting, ...]:
        """The tree of choices of a node as a file in ``folder``; a setting for each collective that is not in it.

        Such a setting holds for all sizes and ranks, those of a rule or not.
        """
        settings = []
        for rule in (rule for rule in rules if rule.collective not in ON_NODE):
            if rule.from_bytes or rule.to_bytes is not None:
                message = f"MPICH takes one algorithm of {rule.collective} for all sizes only"
                raise PlumbError(message, "rules", "leave the ranges out")
            if len({other.algorithm for other in rules if other.collective == rule.collective}) > 1:
                message = f"MPICH takes one algorithm of {rule.collective} for all numbers of ranks only"
                raise PlumbError(message, "rules", "keep one rule")
            settings.append(Setting(f"MPIR_CVAR_{rule.collective.upper()}_INTRA_ALGORITHM", rule.algorithm))
        on_node = [rule for rule in rules if rule.collective in ON_NODE]
        if on_node:
            file = folder / "posix_coll_tuning.json"
            text = json.dumps(on_node_tree(on_node), indent=1) + "\n"
            # MPICH maps the file and reads up to a null byte, which is missing if the file fills its last page.
            files.write("the algorithms of MPICH", file, text + "\n" * (len(text) % PAGE_BYTES == 0))
            settings.append(Setting(ON_NODE_SETTING, str(file)))
        return tuple(settings)


class Mvapich(Mpich):
    """MVAPICH2, and MVAPICH from version 3 on, whose variables have another prefix."""

    name = "mvapich"
    identity = r"MVAPICH2? Version\s*:\s*(\S+)"
    #: the library binds its ranks itself in MPI_Init
    unbound = MappingProxyType({"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"})
    rank_variables = (
        RankVariables(
            "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"
        ),
        *HYDRA_RANKS,
    )
    variables = ("MV2_", "MVP_", *Mpich.variables)
    #: none was tried, and version 2 has other settings than MPICH
    knobs = ()
    rule_settings = Family.rule_settings
