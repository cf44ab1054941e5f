"""The environment that a launch starts from: of the inherited variables only those that the table keeps for launches.

What the stack, the site, the test and the launcher set is laid over it (:mod:`plumbline.launch.prepare`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi, schedulers
from plumbline.base import surroundings

#: the table of all variables that reach us: that of every host, MPI libraries, schedulers
TABLE = (
    *surroundings.TABLE,
    surroundings.Row(schedulers.STEP_SETTINGS, "kept", "stated", "how a scheduler's own launcher runs ranks"),
    surroundings.Row(schedulers.JOB_VARIABLES, "kept", "kept", "a scheduler's job"),
    surroundings.Row(mpi.VARIABLES, "kept", "named", "MPI libraries, and what they are made of"),
)
#: Where the libraries below MPI write their log: UCX takes standard output, where the figures are. Every launch gets
#: them, as it gets its HOME.
LOGS = {"UCX_LOG_FILE": "stderr"}


@dataclass(frozen=True)
class Inherited:
    """Variables that a launch inherits (``kept``), that its records state, and that it lacks as they change figures."""

    kept: dict[str, str]
    stated: dict[str, str]
    changing: dict[str, str]

    def removed(self, variables: Mapping[str, str]) -> list[str]:
        """Names in ``changing`` whose value, or a part of it, a launch with ``variables`` lacks.

        The parts are those of a search path, between colons.
        """
        lists = {name: set(value.split(":")) for name, value in self.changing.items()}
        return sorted(name for name, wanted in lists.items() if not wanted <= set(variables.get(name, "").split(":")))


def inherit(environment: Mapping[str, str]) -> Inherited:
    """The variables of ``environment``, sorted by their treatment in a launch."""
    by_treatment: dict[str, dict[str, str]] = {"kept": {}, "stated": {}, "named": {}, "dropped": {}}
    for name, value in environment.items():
        known = surroundings.row(name, TABLE)
        by_treatment[known.launches if known else "dropped"][name] = value
    return Inherited({**by_treatment["kept"], **by_treatment["stated"]}, by_treatment["stated"], by_treatment["named"])


def at_home(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``environment`` with :data:`LOGS`, and with ``folder`` for HOME, unless it has them.

    So no settings file of the user's home is read.
    """
    return {"HOME": str(folder), **LOGS, **environment}
