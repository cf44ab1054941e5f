"""MPI libraries: the differences between their families, a module each, behind :class:`plumbline.mpi.base.Family`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.mpi.base import TRANSPORT_SETTINGS, TRANSPORTS, Command, Family, LaunchRequest, Layout
from plumbline.mpi.intelmpi import IntelMpi
from plumbline.mpi.mpich import Mpich, Mvapich
from plumbline.mpi.openmpi import OpenMpi
from plumbline.schedulers import RANK_LAUNCHERS, RankVariables

__all__ = [
    "ERRORS",
    "HOST_SETTINGS",
    "KINDS",
    "RANK_VARIABLES",
    "REACHING",
    "SHARED_FILES",
    "TABLE",
    "VARIABLES",
    "WORDS",
    "Command",
    "Family",
    "Launcher",
    "Layout",
    "identify",
    "launcher",
    "rank",
    "talking",
    "without_log",
]

#: name in stack manifests -> family
TABLE: dict[str, Family] = {family.name: family for family in (OpenMpi(), Mvapich(), Mpich(), IntelMpi())}
#: names, as patterns, of the files in /dev/shm that MPI libraries make
SHARED_FILES = tuple(name for family in TABLE.values() for name in family.shared_files)
#: how the variables begin that change what an MPI library, or what it is made of, does
VARIABLES = tuple(dict.fromkeys((*(name for family in TABLE.values() for name in family.variables), *TRANSPORTS)))
#: the settings files that MPI libraries, or what they are made of, read on every host: patterns below the root
HOST_SETTINGS = tuple(
    dict.fromkeys((*(name for family in TABLE.values() for name in family.host_settings), *TRANSPORT_SETTINGS))
)
#: What MPI libraries, and those below them, print among what a program prints: whole lines. UCX's own errors stay.
_LOGS = (
    r"\[\d+\.\d{6}\] \[\S+:\d+:\S+\](?!\s+\S+:\d+\s+UC\w+\s+(?:ERROR|FATAL)\b)",
    *(family.startup for family in TABLE.values() if family.startup),
)
_LOG_LINES = re.compile(rf"^(?:{'|'.join(_LOGS)}).*(?:\n|\Z)", re.MULTILINE)
#: words of the variables that make such a library talk
_TALKING = re.compile("DEBUG|VERBOSE|LOG_LEVEL|SHOW|DISPLAY|PRINT|TRACE|SUMMARY|INFO")
#: launcher kind -> the function that makes its command
_MAKERS = {kind: maker for family in TABLE.values() for kind, maker in family.launchers.items()}

#: the programs by which launchers reach other hosts and start ranks there
REACHING = frozenset((*schedulers.REMOTE.programs, "rsh", "prted", "orted", "hydra_pmi_proxy", "hydra_bstrap_proxy"))
#: launcher, as the kernel names its program or as a scheduler's is written -> what to write for it
WORDS = {
    **{program: words for family in TABLE.values() for program, words in family.launcher_options.items()},
    **{program: words for scheduler in schedulers.TABLE.values() for program, words in scheduler.words.items()},
}
#: the launchers that a stack manifest may name
KINDS = (*_MAKERS, *RANK_LAUNCHERS)
#: the begin of the errors of the schedulers' launchers
ERRORS = tuple(rank_launcher.error for rank_launcher, _ in RANK_LAUNCHERS.values())
#: As in custom-kernels/common/rank_variables.c: an MPI launcher counts before PMIx and before the scheduler it runs in.
RANK_VARIABLES = tuple(
    dict.fromkeys(
        (
            *(row for family in TABLE.values() for row in family.rank_variables),
            RankVariables("PMIX_RANK"),
            *(row for scheduler in schedulers.TABLE.values() for row in scheduler.rank_variables),
        )
    )
)


@dataclass(frozen=True)
class Launcher:
    """The launcher of the ranks of a stack: that of an MPI library, or a scheduler's own.

    ``kind`` is one of :data:`KINDS`; ``plugin`` is for a scheduler's own; ``variables`` are what the library
    needs with it.
    """

    family: Family
    kind: str
    program: str
    plugin: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(
        self, layout: Layout, *, bound: bool, environment: Mapping[str, str], exported: tuple[str, ...] = ()
    ) -> Command:
        """The command that starts ``layout`` from a process with ``environment``; others: :class:`LaunchRequest`."""
        if self.kind in RANK_LAUNCHERS:
            rank_launcher, scheduler = RANK_LAUNCHERS[self.kind]
            _, *words = rank_launcher.command(
                layout.nodes, layout.ranks_per_node, layout.hosts,
                round_robin=layout.round_robin, bound=bound, plugin=self.plugin,
            )  # fmt: skip
            command = Command((self.program, *words), {}, scheduler.hidden_variables)
        else:
            command = _MAKERS[self.kind](LaunchRequest(self.program, layout, bound, exported, environment))
        unbound = self.family.unbound if bound else {}
        return Command(command.arguments, {**command.environment, **unbound, **self.variables}, command.removed)

    def reaches(self, environment: Mapping[str, str]) -> bool:
        """Whether it reaches the nodes of the job without help; else they are named, and reached by ssh."""
        return self.kind in RANK_LAUNCHERS or self.family.reaches(schedulers.current(environment), self.program)


def launcher(native: Launcher, stack: str, partition: Partition | None, environment: Mapping[str, str]) -> Launcher:
    """The launcher of ``stack`` on a partition: the scheduler's if the partition names it, else the ``native`` one.

    ``partition`` None: this host, by the stack's own. ``environment``: the variables of the launch so far. Raises
    :class:`PlumbError` where the scheduler's launcher cannot start ranks of this library here.
    """
    if partition is None or partition.launcher not in RANK_LAUNCHERS:
        return native
    name, family = partition.launcher, native.family
    rank_launcher, scheduler = RANK_LAUNCHERS[name]
    where = f"partition {partition.name}"
    if not scheduler.inside(environment):
        message = f"ranks are started by {name}, and this is not inside a job of its scheduler"
        raise PlumbError(message, where, "submit it")
    plugin = getattr(partition, f"{name}_mpi").get(family.name, family.pmi)
    offered = rank_launcher.plugins()
    if plugin not in offered:
        cure = (
            f"{name} --mpi=list offers {', '.join(offered) or 'nothing'}; choose with {name}_mpi: {{{family.name}: …}}"
        )
        raise PlumbError(f"{stack} needs {name} --mpi={plugin}, which is not offered here", where, cure)
    return Launcher(family, name, name, plugin, family.step_variables(rank_launcher, plugin, environment, where))


def identify(text: str) -> tuple[Family, str] | None:
    """Family and version of the library or launcher that names itself in ``text``; None: of no family."""
    return next(((family, match[1]) for family in TABLE.values() if (match := re.search(family.identity, text))), None)


def without_log(text: str) -> str:
    """The output of a program, without the known lines of MPI libraries and of the libraries below them."""
    return _LOG_LINES.sub("", text)


def talking(names: Iterable[str]) -> list[str]:
    """Those of the variables ``names`` that make an MPI library, or one below it, print more than errors."""
    return [name for name in names if name.startswith(VARIABLES) and _TALKING.search(name.upper())]


def rank(environment: Mapping[str, str]) -> int | None:
    """The rank of a process, from the variables that its launcher set; None for a process that is not a rank."""
    return next((int(value) for row in RANK_VARIABLES if (value := environment.get(row.rank, "")).isdigit()), None)
