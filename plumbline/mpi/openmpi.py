"""Open MPI: https://docs.open-mpi.org/; its launcher is PRRTE from version 5 on, ORTE before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from plumbline.mpi.base import Command, Family, Layout, Request
from plumbline.schedulers import SSH_OPTIONS, RankLauncher, RankVariables

SSH = " ".join(("ssh", *SSH_OPTIONS))


def prrte(request: Request) -> Command:
    """PRRTE: https://docs.open-mpi.org/en/v5.0.x/launching-apps/; ssh is what plm_ssh_agent says."""
    layout, arguments = request.layout, []
    if layout.nodes > 1:
        arguments += ["--map-by", f"{_mapping(layout)}:OVERSUBSCRIBE"]
    elif request.bound:
        arguments += ["--map-by", "slot:OVERSUBSCRIBE"]
    if layout.ssh:
        arguments += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", SSH]
    return _command(request, arguments)


def orte(request: Request) -> Command:
    """ORTE: mpirun(1); its ssh component is called rsh (``ompi_info --param plm rsh``)."""
    layout, arguments = request.layout, ["--oversubscribe"]
    if layout.nodes > 1:
        arguments += ["--map-by", _mapping(layout)]
    if layout.ssh:
        arguments += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", SSH]
    return _command(request, arguments)


def _mapping(layout: Layout) -> str:
    return "node" if layout.round_robin else f"ppr:{layout.ranks_per_node}:node"


def _command(request: Request, more: list[str]) -> Command:
    """What both generations share: number of ranks, binding, hosts, variables for ranks on other hosts."""
    layout = request.layout
    arguments = [request.program, "-n", str(layout.ranks), *more]
    if request.bound:
        arguments += ["--bind-to", "none"]
    if layout.hosts:
        arguments += ["--host", ",".join(f"{host}:{layout.ranks_per_node}" for host in layout.hosts)]
    if layout.nodes > 1:
        for name in request.exported:
            arguments += ["-x", name]
    return Command(tuple(arguments), _root_variables())


def _root_variables() -> dict[str, str]:
    """The launcher refuses to start as root, which is who a container runs as, unless both of these are set."""
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    return dict.fromkeys(names, "1") if os.geteuid() == 0 else {}


class OpenMpi(Family):
    """Open MPI."""

    name = "openmpi"
    abi = "openmpi"
    library = "libmpi.so.40"
    launchers = MappingProxyType({"prrte": prrte, "orte": orte})
    launcher_programs = ("bin/mpirun",)
    rank_variables = (
        RankVariables(
            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"
        ),
    )
    failures = (
        r"^(?:prterun|mpirun|mpiexec|prte) (?:noticed|detected|was unable|has exited|has lost)",
        r"^(?:PRTE|ORTE) has lost communication",
        r"^MPI_ABORT was invoked on rank",
        r"^.*\*\*\* Process received signal \*\*\*",
    )
    shared_files = ("vader_segment.*", "sm_segment.*")
    degraded = (r"^It appears as if there is not enough space for .*",)
    #: it looks whether there is room for one rank's segment (btl_sm_segment_size), which is then filled as needed
    shared_memory = (16 << 20, 128 << 10)
    pmi = "pmix"
    setting_prefix = "OMPI_MCA_"
    parts = ("openmpi*/**/*.so*", "pmix*/**/*.so*", "prte*/**/*.so*")
    host_settings = ("etc/openmpi*/*mca-params*.conf", "etc/pmix*/*mca-params*.conf", "etc/prte*/*mca-params*.conf")
    settings = ("etc/*mca-params*.conf", "share/pmix/*mca-params*.conf")
    variables = ("OMPI_", "OPAL_", "ORTE_", "PMIX_", "PRTE_")

    def launcher_kind(self, version: str) -> str:
        """PRRTE came with version 5."""
        return "orte" if int(version.split(".")[0]) < 5 else "prrte"

    def step_variables(
        self, launcher: RankLauncher, plugin: str, environment: Mapping[str, str], where: str
    ) -> dict[str, str]:
        """A scheduler's PMIx may name munge, for which the library's own has no plugin: "psec munge not found"."""
        return {"PMIX_MCA_psec": "native"} if plugin.startswith("pmix") else {}
