"""Intel MPI: https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from plumbline.base.errors import PlumbError
from plumbline.mpi import ways
from plumbline.mpi.base import Command, Family, LaunchRequest
from plumbline.mpi.mpich import HYDRA_RANKS, Mpich, proxies
from plumbline.mpi.settings import Knob, Rule, Setting
from plumbline.schedulers import SSH_OPTIONS, RankLauncher

#: the scheduler's library for PMI-2
PMI_LIBRARY = "I_MPI_PMI_LIBRARY"


#: the last byte of a range of sizes without an end
LAST_BYTE = (1 << 31) - 1


def _algorithm(collective: str, last: int) -> Knob:
    values = tuple(map(str, range(1, last + 1)))
    return Knob(f"I_MPI_ADJUST_{collective.upper()}", values, "start", "both", (collective,), sizes="each")


KNOBS = (
    _algorithm("allreduce", 12),
    _algorithm("bcast", 14),
    _algorithm("alltoall", 4),
    _algorithm("allgather", 5),
    _algorithm("reduce", 11),
    _algorithm("reduce_scatter", 5),
    _algorithm("gather", 4),
    _algorithm("scatter", 4),
    _algorithm("barrier", 9),
    Knob("I_MPI_SHM_CELL_FWD_SIZE", ("32768", "65536", "131072"), "start", "intra", note="bytes"),
    Knob("I_MPI_SHM_CMA", ("0", "1"), "start", "intra", note="single copy"),
    Knob("I_MPI_SHM_HEAP", ("0", "1"), "start", "intra", note="the library's allocator in shared memory"),
    Knob(
        "I_MPI_SHM", ("bdw_avx2", "skx_avx2", "skx_avx512"), "start", "intra", note="the CPU must have the instructions"
    ),
    Knob("I_MPI_OFI_PROVIDER", ("tcp", "verbs", "psm3"), "start", "inter", note="not tried"),
)


def intel_hydra(request: LaunchRequest) -> Command:
    """Intel's Hydra, which does not bind: the library does.

    https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-14/global-hydra-options.html
    """
    arguments = []
    if request.layout.ssh:
        arguments += ["-bootstrap", "ssh", "-bootstrap-exec-args", " ".join(SSH_OPTIONS)]
    elif request.forks:
        arguments += ["-bootstrap", "fork"]
    return proxies(request, arguments, {})


class IntelMpi(Family):
    """Intel MPI, which runs the binaries of MPICH."""

    name = "intelmpi"
    abi = Mpich.abi
    libraries = Mpich.libraries
    identity = r"Intel\(R\) MPI Library.*?(\d{4}[\d.]*)"
    launchers = MappingProxyType({"intel-hydra": intel_hydra})
    launcher_options = Mpich.launcher_options
    launcher_programs = ("mpi/*/bin/mpiexec.hydra", "bin/mpiexec.hydra")
    #: its ``mpicc`` asks for Intel's compiler, which may not be there
    compiler_wrappers = ("mpigcc", "mpicc")
    unbound = MappingProxyType({"I_MPI_PIN": "0"})
    rank_variables = HYDRA_RANKS
    failures = Mpich.failures
    #: seen with version 2021.18: 1.7 MiB for two ranks, 1.8 MiB for four
    shared_memory = (2 << 20, 128 << 10)
    pmi = "pmi2"
    knobs = KNOBS
    switches = (*ways.INTEL_MPI, *ways.SWITCHES)
    reports = MappingProxyType({**Family.reports, "I_MPI_DEBUG": "5"})
    #: seen with version 2021.18: 4 MiB go through shared memory, whatever I_MPI_SHM_CMA is
    single_copy = ()
    interface = "FI_TCP_IFACE"
    #: the values of texts (I_MPI_ADJUST_…) are empty in MPI_T
    telling = MappingProxyType({"I_MPI_DEBUG": "5"})
    startup = r"\[\d+\] (?:MPI startup\(\): |\t )"
    refusal = r"will be ignored|is not supported"
    parts = ("*-fi.so", "*heap_proxy.so", "mpi/**/*.so*", "prov/*.so", "../libfabric/lib/**/*.so*")
    settings = ("etc/*", "opt/mpi/etc/*", "mpi/*/etc/*", "mpi/*/opt/mpi/etc/*")
    variables = ("I_MPI_", *Mpich.variables)

    def gpu_buffers(self, version: str) -> Mapping[str, str]:
        """From 2021.13 on.

        https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-13/gpu-buffers-support.html
        """
        return {"I_MPI_OFFLOAD": "1"} if tuple(map(int, re.findall(r"\d+", version))) >= (2021, 13) else {}

    def home_variables(self, prefix: Path) -> dict[str, str]:
        """The library looks for its parts below I_MPI_ROOT; oneAPI puts a folder for the version in between."""
        return {"I_MPI_ROOT": str(next(iter(sorted(prefix.glob("mpi/*"))), prefix))}

    def step_variables(
        self, launcher: RankLauncher, plugin: str, environment: Mapping[str, str], where: str
    ) -> dict[str, str]:
        """For PMI-2, the variable that names the scheduler's library.

        Raises :class:`PlumbError` where that library is not found.
        """
        if plugin != self.pmi or PMI_LIBRARY in environment:
            return {}
        library = launcher.library(plugin)
        if library is None:
            message = f"Intel MPI under {launcher.name} needs lib{plugin}.so, which is in no usual place"
            cure = f"install the package with it, or set {PMI_LIBRARY} in {where}'s environment"
            raise PlumbError(message, where, cure)
        return {PMI_LIBRARY: str(library)}

    def setting_name(self, name: str, about: str) -> str:
        """The name in the environment is in the description: ``@Alias:# I_MPI_…``."""
        alias = re.search(r"@Alias:# (\w+)", about)
        return alias[1] if alias else name

    def range_of(self, about: str) -> str:
        """The range in a description such as ``range: 0-32``; empty without one."""
        match = re.search(r"range: (\d+-\d+)", about)
        return match[1] if match else ""

    def rule_settings(self, rules: tuple[Rule, ...], folder: Path) -> tuple[Setting, ...]:
        """``ALGORITHM:FIRST-LAST@RANKS-RANKS;…``, a setting for each collective, its sizes and ranks inclusive.

        https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-14/i-mpi-adjust-family.html
        """
        by_collective: dict[str, list[str]] = {}
        for rule in rules:
            last = LAST_BYTE if rule.to_bytes is None else rule.to_bytes - 1
            ranks = "" if rule.ranks is None else f"@{rule.ranks}-{rule.ranks}"
            by_collective.setdefault(rule.collective, []).append(f"{rule.algorithm}:{rule.from_bytes}-{last}{ranks}")
        return tuple(Setting(f"I_MPI_ADJUST_{name.upper()}", ";".join(words)) for name, words in by_collective.items())
