"""The interface of an MPI library family: one class for each, and nothing outside this package knows one by name.

A *family* is a line of MPI libraries with the same launchers, variables and binary interface. A *launcher kind* is the
syntax of a launcher; a stack manifest names one, because a library may be started by more than one.
"""

from __future__ import annotations

import shlex
from abc import ABC
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.mpi.settings import Configuration, Knob, Rule, Setting, complete, refuse_overlaps
from plumbline.mpi.ways import SINGLE_COPY, SWITCHES, Switch
from plumbline.schedulers import RankLauncher, RankVariables, Scheduler, Words

#: how the variables begin that change what the libraries below MPI do: transports, network cards, collectives
TRANSPORTS = ("UCX_", "UCC_", "FI_", "PSM2_", "PSM3_", "RDMAV_", "IBV_", "MLX4_", "MLX5_", "HCOLL_", "SHARP_", "CXI_")
#: files that those libraries read by themselves on every host: patterns below the root
TRANSPORT_SETTINGS = ("etc/ucx/ucx.conf", "etc/libfabric.conf", "etc/psm3.conf")


@dataclass(frozen=True)
class Layout:
    """How many ranks run where. ``hosts`` is empty when they are those of the scheduler's allocation, or this host.

    ``ssh``: the hosts are reached by ssh, not through a scheduler. ``crowded``: a node has fewer cores than ranks.
    ``by_port``: ranks do not inherit the launcher's file descriptors, and reach it by a port.
    """

    nodes: int
    ranks_per_node: int
    hosts: tuple[str, ...] = ()
    round_robin: bool = False
    ssh: bool = False
    crowded: bool = False
    by_port: bool = False

    @property
    def ranks(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.ranks_per_node

    def node_of(self, rank: int) -> int:
        """Which of the nodes ``rank`` belongs on, counted from 0; -1 for a process that has no rank."""
        if rank < 0:
            return -1
        return rank % self.nodes if self.round_robin else rank // self.ranks_per_node


@dataclass(frozen=True)
class Command:
    """A launcher's argument list up to the program, the variables it needs, and those it must not see."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchRequest:
    """The request to a launcher: ``program`` (its path) starts ``layout`` from a process with ``environment``.

    ``bound``: plumb-bind binds the ranks, so the launcher must not; under the placement ``none`` the launcher's default
    stays on, because that default is what the control measures. ``exported``: the variables that ranks on other hosts
    must get too.
    """

    program: str
    layout: Layout
    bound: bool
    exported: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler in whose job the launcher runs.

        Launchers that were built with it find the job's hosts themselves, and start their daemons through it.
        """
        return schedulers.current(self.environment)

    @property
    def forks(self) -> bool:
        """Whether all ranks run on this node and need no step of the scheduler."""
        return self.layout.nodes == 1 and self.scheduler.may_fork_proxy(self.environment)


class Family(ABC):
    """A line of MPI libraries."""

    #: as stack manifests and records call it
    name: str
    #: the family whose binaries it runs
    abi: str
    #: the file name of the library that those need; patterns of others by which programs of that interface ask for it
    libraries: tuple[str, ...]
    #: how the library and its launcher name themselves; the group is the version
    identity: str
    #: launcher kind -> the function that makes its command
    launchers: Mapping[str, Callable[[LaunchRequest], Command]]
    #: launcher, as the kernel names its program -> what to write for it
    launcher_options: Mapping[str, Words]
    #: launcher programs below the prefix of an installation, patterns, the preferred one first
    launcher_programs: tuple[str, ...]
    #: compiler wrappers below ``bin``, the preferred one first
    compiler_wrappers: tuple[str, ...] = ("mpicc",)
    #: whether its launcher can be reached by a port, without its file descriptors and folders
    by_port: bool = False
    #: variables that keep the library itself from binding its ranks
    unbound: Mapping[str, str] = MappingProxyType({})
    #: the variables in which its launchers tell a process its rank, as in custom-kernels/common/rank_variables.c
    rank_variables: tuple[RankVariables, ...]
    #: patterns of the lines in which its launchers and the library report that a run failed
    failures: tuple[str, ...] = ()
    #: patterns of the lines in which the library reports that it continues with something slower
    degraded: tuple[str, ...] = ()
    #: bytes that it wants free in /dev/shm: of each node, and for each rank there; with less it is slower, or fails
    shared_memory: tuple[int, int] = (0, 0)
    #: names, as patterns, of the files in /dev/shm by which ranks of one node exchange data
    shared_files: tuple[str, ...] = ()
    #: the PMI plugin by which the library gets its ranks from a scheduler's own launcher, unless a partition names one
    pmi: str
    #: the prefix of the name of a setting in the environment
    setting_prefix: str = ""
    #: the settings that are worth a try
    knobs: tuple[Knob, ...] = ()
    #: the setting of how many bytes a rank of a node sends to another without asking it; empty: there is none to set
    eager_limit: str = ""
    #: the settings of the bytes that a rank keeps for each peer that it often sends to without asking, and of the most
    #: peers that it keeps some for; None: there is none to set
    eager_buffers: tuple[str, str] | None = None
    #: collective -> the values of its algorithm's knob for a line of messages and for a binomial tree
    linear_and_tree: Mapping[str, tuple[str, str]] = MappingProxyType({})
    #: the switches that turn ways of its messages off, after :data:`plumbline.mpi.ways.SWITCHES`
    switches: tuple[Switch, ...] = SWITCHES
    #: variables that make the library, and those below it, say by what they reach a peer
    reports: Mapping[str, str] = MappingProxyType({"UCX_LOG_LEVEL": "info"})
    #: the mechanisms by which it copies a large message of a node once
    single_copy: tuple[str, ...] = SINGLE_COPY
    #: whether it leaves UCX out in programs with threads, where UCX was not built for them
    needs_threads_of_ucx: bool = False
    #: the setting of the network interfaces that it takes for TCP
    interface: str = ""
    #: variables that make the library print what settings it takes, where MPI_T does not tell all of them
    telling: Mapping[str, str] = MappingProxyType({})
    #: patterns of how the lines begin that it then prints, and of what it prints about a setting that it does not take
    startup: str | None = None
    refusal: str | None = None
    #: files that it loads by itself: patterns below the folder of the library
    parts: tuple[str, ...]
    #: files that it reads by itself: patterns below the prefix of an installation
    settings: tuple[str, ...] = ()
    #: files that it reads by itself on every host: patterns below the root
    host_settings: tuple[str, ...] = ()
    #: how the variables begin by which a person changes what its launchers and the library do
    variables: tuple[str, ...]

    def library_among(self, names: Collection[str]) -> str | None:
        """The library of this family among ``names``, those that a program is linked with; None: there is none."""
        return next((name for text in self.libraries for name in names if fnmatchcase(name, text)), None)

    def programs_in(self, folder: Path, names: Iterable[str]) -> Iterator[Path]:
        """Those of ``names`` in ``folder``. Debian has several families there, and one of them has the plain name."""
        return filter(Path.is_file, (folder / text for name in names for text in (f"{name}.{self.name}", name)))

    def binary_interface(self, version: str) -> str:
        """The binary interface of ``version``: programs run on every library that has the same."""
        return self.abi

    def launcher_kind(self, version: str) -> str:
        """The kind of launcher that comes with ``version`` of the library."""
        (kind,) = self.launchers
        return kind

    def gpu_buffers(self, version: str) -> Mapping[str, str]:
        """The variables with which ``version`` takes memory of NVIDIA's GPUs as buffers; none: its build decides."""
        return {}

    def reaches(self, scheduler: Scheduler, program: str) -> bool:
        """Whether the launcher ``program`` finds and reaches the nodes of a job of ``scheduler`` without help.

        This is the answer for Hydra, the launcher of all families but Open MPI.
        """
        return scheduler.read_by_hydra

    def setting_variable(self, name: str) -> str:
        """The variable that sets the library's setting ``name``."""
        return self.setting_prefix + name

    def setting_name(self, name: str, about: str) -> str:
        """The setting that MPI_T calls ``name`` and describes by ``about``, as a person sets it."""
        return name

    def range_of(self, about: str) -> str:
        """The range of numbers that the description ``about`` of a setting gives; empty if it gives none."""
        return ""

    def words(self, about: str) -> list[str]:
        """The words for 0, 1, 2, … that the description ``about`` of a setting lists, if any."""
        return []

    def settings_of(self, configuration: Configuration, folder: Path) -> tuple[Setting, ...]:
        """All settings that make ``configuration``, with what they need; files of rules go to ``folder``.

        Raises :class:`PlumbError` for a rule that the library cannot be given.
        """
        refuse_overlaps(configuration.rules)
        return complete((*configuration.settings, *self.rule_settings(configuration.rules, folder)), self.knobs)

    def rule_settings(self, rules: tuple[Rule, ...], folder: Path) -> tuple[Setting, ...]:
        """The settings that make the library follow ``rules``; what files it needs for that go to ``folder``.

        Raises :class:`PlumbError` for a rule that the library cannot be given.
        """
        if rules:
            message = f"rules for collectives cannot be given to {self.name}"
            raise PlumbError(message, rules[0].collective, "use settings")
        return ()

    def native_files(self, settings: tuple[Setting, ...]) -> dict[str, str]:
        """Files, name and text, by which people use ``settings`` without Plumbline."""
        variables = {self.setting_variable(setting.name): setting.value for setting in settings}
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        return {"environment.sh": "\n".join(lines) + "\n"}

    def home_variables(self, prefix: Path) -> dict[str, str]:
        """Variables that an installation below ``prefix`` needs wherever it is used."""
        return {}

    def settings_files(self, prefix: Path, environment: Mapping[str, str], root: Path = Path("/")) -> list[Path]:
        """The settings files that the library below ``prefix`` reads by itself in ``environment``, later ones first."""
        host = [file for text in (*self.host_settings, *TRANSPORT_SETTINGS) for file in sorted(root.glob(text))]
        return host + [file for pattern in self.settings for file in sorted(prefix.glob(pattern))]

    def step_variables(
        self, launcher: RankLauncher, plugin: str, environment: Mapping[str, str], where: str
    ) -> dict[str, str]:
        """Variables that the library needs when ``launcher`` starts its ranks through ``plugin``.

        ``environment``: variables of the launch so far. Raises :class:`PlumbError`, with ``where``, if this host lacks
        what the library needs.
        """
        return {}
