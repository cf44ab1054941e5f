"""Intel MPI: https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from plumbline.errors import PlumbError
from plumbline.mpi.base import Command, Family, Request
from plumbline.mpi.mpich import HYDRA_RANKS, Mpich, proxies
from plumbline.schedulers import SSH_OPTIONS, RankLauncher

#: the scheduler's library for PMI-2
PMI_LIBRARY = "I_MPI_PMI_LIBRARY"


def intel_hydra(request: Request) -> Command:
    """Intel's Hydra, which does not bind: the library does.

    https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-14/global-hydra-options.html
    """
    arguments = []
    if request.layout.hosts:
        arguments += ["-hosts", ",".join(request.layout.hosts)]
    if request.layout.ssh:
        arguments += ["-bootstrap", "ssh", "-bootstrap-exec-args", " ".join(SSH_OPTIONS)]
    elif request.forks:
        arguments += ["-bootstrap", "fork"]
    return proxies(request, arguments, {})


class IntelMpi(Family):
    """Intel MPI, which runs the binaries of MPICH."""

    name = "intelmpi"
    abi = Mpich.abi
    library = Mpich.library
    launchers = MappingProxyType({"intel-hydra": intel_hydra})
    launcher_programs = ("mpi/*/bin/mpiexec.hydra", "bin/mpiexec.hydra")
    #: its ``mpicc`` asks for Intel's compiler, which may not be there
    compiler_wrappers = ("mpigcc", "mpicc")
    unbound = MappingProxyType({"I_MPI_PIN": "0"})
    rank_variables = (HYDRA_RANKS,)
    failures = Mpich.failures
    #: seen with version 2021.18: 1.7 MiB for two ranks, 1.8 MiB for four
    shared_memory = (2 << 20, 128 << 10)
    pmi = "pmi2"
    setting_prefix = "I_MPI_"
    parts = ("*-fi.so", "*heap_proxy.so", "mpi/**/*.so*", "prov/*.so", "../libfabric/lib/**/*.so*")
    settings = ("etc/*", "opt/mpi/etc/*", "mpi/*/etc/*", "mpi/*/opt/mpi/etc/*")
    variables = ("I_MPI_", *Mpich.variables)

    def home_variables(self, prefix: Path) -> dict[str, str]:
        """The library looks for its parts below I_MPI_ROOT; oneAPI puts a folder for the version in between."""
        return {"I_MPI_ROOT": str(next(iter(sorted(prefix.glob("mpi/*"))), prefix))}

    def step_variables(
        self, launcher: RankLauncher, plugin: str, environment: Mapping[str, str], where: str
    ) -> dict[str, str]:
        """PMI-2 is spoken through the scheduler's library."""
        if plugin != self.pmi or PMI_LIBRARY in environment:
            return {}
        library = launcher.library(plugin)
        if library is None:
            wanted = f"lib{plugin}.so"
            what = f"Intel MPI under {launcher.name} needs {wanted}, which is in no usual place"
            raise PlumbError(what, where, f"install the package with it, or set {PMI_LIBRARY} in {where}'s environment")
        return {PMI_LIBRARY: str(library)}
