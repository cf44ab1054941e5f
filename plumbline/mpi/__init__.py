"""MPI libraries: what differs between their families, a module each, behind :class:`plumbline.mpi.base.Family`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plumbline import schedulers
from plumbline.base.errors import PlumbError
from plumbline.mpi.base import TRANSPORT_SETTINGS, TRANSPORTS, Command, Family, Layout, Request
from plumbline.mpi.intelmpi import IntelMpi
from plumbline.mpi.mpich import Mpich
from plumbline.mpi.mvapich import Mvapich
from plumbline.mpi.openmpi import OpenMpi
from plumbline.schedulers import RankLauncher, RankVariables, Scheduler
from plumbline.schemas.site import Partition

__all__ = [
    "ERRORS",
    "HOST_SETTINGS",
    "KINDS",
    "RANK_VARIABLES",
    "SHARED_FILES",
    "TABLE",
    "VARIABLES",
    "Command",
    "Family",
    "Launcher",
    "Layout",
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
_LOG = r"\[\d+\.\d{6}\] \[\S+:\d+:\S+\](?!\s+\S+:\d+\s+UC\w+\s+(?:ERROR|FATAL)\b)"
_STARTUPS = (family.startup for family in TABLE.values() if family.startup)
_SAID = re.compile(rf"^(?:{'|'.join((_LOG, *_STARTUPS))}).*(?:\n|\Z)", re.MULTILINE)
#: words of the variables that make such a library talk
_TALKING = re.compile("DEBUG|VERBOSE|LOG_LEVEL|SHOW|DISPLAY|PRINT|TRACE|SUMMARY|INFO")
#: launcher kind -> what makes its command
_MAKERS = {kind: maker for family in TABLE.values() for kind, maker in family.launchers.items()}
#: the name of a scheduler's own launcher -> both
_OWN: dict[str, tuple[RankLauncher, Scheduler]] = {
    scheduler.rank_launcher.name: (scheduler.rank_launcher, scheduler)
    for scheduler in schedulers.TABLE.values()
    if scheduler.rank_launcher
}
#: the launchers that a stack manifest may name
KINDS = (*_MAKERS, *_OWN)
#: what begins the errors of the schedulers' launchers
ERRORS = tuple(own.error for own, _ in _OWN.values())
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
    """What starts the ranks of a stack: a launcher of an MPI library, or a scheduler's own.

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
        """The command that starts ``layout`` from a process with ``environment``; see :class:`Request` for the others.

        Raises :class:`PlumbError` for an unknown kind.
        """
        if self.kind in _OWN:
            made = self._of_scheduler(layout, bound)
        elif self.kind in _MAKERS:
            made = _MAKERS[self.kind](Request(self.program, layout, bound, exported, environment))
        else:
            raise PlumbError(f"unknown launcher family '{self.kind}'", "stack manifest", f"one of {', '.join(KINDS)}")
        unbound = self.family.unbound if bound else {}
        return Command(made.arguments, {**made.environment, **unbound, **self.variables}, made.removed)

    def reaches(self, environment: Mapping[str, str]) -> bool:
        """Whether it reaches the nodes of the job without help; else they are named, and reached by ssh."""
        scheduler = schedulers.current(environment)
        return self.kind in _OWN or self.family.reaches(scheduler, self.program)

    def _of_scheduler(self, layout: Layout, bound: bool) -> Command:
        own, scheduler = _OWN[self.kind]
        _, *words = own.command(
            layout.nodes,
            layout.ranks_per_node,
            layout.hosts,
            round_robin=layout.round_robin,
            bound=bound,
            plugin=self.plugin,
        )
        return Command((self.program, *words), {}, scheduler.hidden_variables)


def launcher(own: Launcher, stack: str, partition: Partition | None, environment: Mapping[str, str]) -> Launcher:
    """What starts the ranks of ``stack`` on a partition: the scheduler's launcher if that names it, else its ``own``.

    ``partition`` None: this host, by the stack's own. ``environment``: what the launch has already. Raises
    :class:`PlumbError` where the scheduler's launcher cannot start ranks of this library here.
    """
    if partition is None or partition.launcher not in _OWN:
        return own
    name, family = partition.launcher, own.family
    rank_launcher, scheduler = _OWN[name]
    where = f"partition {partition.name}"
    if not scheduler.inside(environment):
        raise PlumbError(
            f"ranks are started by {name}, and this is not inside a job of its scheduler", where, "submit it"
        )
    plugin = getattr(partition, f"{name}_mpi").get(family.name, family.pmi)
    offered = rank_launcher.plugins()
    if plugin not in offered:
        cure = (
            f"{name} --mpi=list offers {', '.join(offered) or 'nothing'}; choose with {name}_mpi: {{{family.name}: …}}"
        )
        raise PlumbError(f"{stack} needs {name} --mpi={plugin}, which is not offered here", where, cure)
    return Launcher(family, name, name, plugin, family.step_variables(rank_launcher, plugin, environment, where))


def without_log(text: str) -> str:
    """What a program printed, without the lines of MPI libraries and of those below them, as far as they are known."""
    return _SAID.sub("", text)


def talking(names: Iterable[str]) -> list[str]:
    """Those of the variables ``names`` that make an MPI library, or one below it, print more than errors."""
    return [name for name in names if name.startswith(VARIABLES) and _TALKING.search(name.upper())]


def rank(environment: Mapping[str, str]) -> int | None:
    """The rank of a process, from the variables that its launcher set; None for a process that is not a rank."""
    told = (environment.get(row.rank, "") for row in RANK_VARIABLES)
    return next((int(value) for value in told if value.isdigit()), None)
