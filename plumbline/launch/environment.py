"""The environment that a launch starts from: of the inherited variables only those that the table keeps for launches.

What the stack, the site, the test and the launcher set is laid over it (:mod:`plumbline.launch.prepare`). Among it are
the settings that a launch asks its MPI library for, which are compared with the values that its processes report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi, schedulers
from plumbline.base import csv_input, group, surroundings
from plumbline.base.errors import PlumbError
from plumbline.launch.witness.model import Setting, Witness
from plumbline.mpi import Family
from plumbline.records.launch import SettingsSeen

#: the table of all variables that reach us: that of every host, MPI libraries, schedulers
TABLE = (
    *surroundings.TABLE,
    surroundings.Row(schedulers.STEP_SETTINGS, "kept", "stated", "settings of the scheduler's launcher"),
    surroundings.Row(schedulers.JOB_VARIABLES, "kept", "kept", "job of the scheduler"),
    surroundings.Row(mpi.VARIABLES, "kept", "named", "MPI libraries and their components"),
)
#: Where the libraries below MPI write their log: UCX takes standard output, where the figures are. Every launch gets
#: them, as it gets its HOME.
LOGS = {"UCX_LOG_FILE": "stderr"}
#: names of the settings that the witness is to ask the library for, with commas between
SETTINGS_VARIABLE = "PLUMB_WITNESS_SETTINGS"
#: how many settings, and bytes of their names, the witness has room for (custom-kernels/witness/settings.c)
MOST_SETTINGS = 64
MOST_BYTES = 4095
_SWITCH = {"true": "1", "yes": "1", "on": "1", "enable": "1", "false": "0", "no": "0", "off": "0", "disable": "0"}


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
    rows = [(surroundings.row(name, TABLE), name, value) for name, value in environment.items()]
    sorted_out = group((known.launches, (name, value)) for known, name, value in rows if known)
    kept, stated, named = (dict(sorted_out.get(treatment, ())) for treatment in ("kept", "stated", "named"))
    return Inherited({**kept, **stated}, stated, named)


def at_home(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``environment`` with :data:`LOGS`, and with ``folder`` for HOME, unless it has them.

    So no settings file of the user's home is read.
    """
    return {"HOME": str(folder), **LOGS, **environment}


def settings_variables(family: Family, requested: Mapping[str, str]) -> dict[str, str]:
    """Variables that make the library take the settings ``requested``, and the witness ask the library for them.

    Raises :class:`PlumbError` for more settings than the witness has room for.
    """
    if not requested:
        return {}
    names = ",".join(requested)
    if len(requested) > MOST_SETTINGS or len(names) > MOST_BYTES:
        raise PlumbError(
            f"{len(requested)} settings are more than a launch can verify", "settings", f"{MOST_SETTINGS} at most"
        )
    assignments = {family.setting_variable(name): value for name, value in requested.items()}
    return {**family.telling, **assignments, SETTINGS_VARIABLE: names}


def compare_settings(
    family: Family, requested: Mapping[str, str], witnesses: Iterable[Witness], lines: Iterable[str]
) -> tuple[SettingsSeen, list[str]]:
    """The values of ``requested`` in the library of every rank, and the reasons why they do not prove all of it.

    ``lines`` are the output of the ranks: a library that does not report the value of a text setting by MPI_T prints it
    in the lines of its first rank.
    """
    matches = [re.match(family.startup, line) for line in lines] if family.startup else []
    texts = [match.string[match.end() :].strip() for match in matches if match]
    refused = [text for text in texts if family.refusal and re.search(family.refusal, text)]
    printed = dict(text.split("=", 1) for text in texts if "=" in text)
    seen: dict[str, str] = {}
    reasons = [f"{family.name} reports: {line}" for line in refused]
    for witness in witnesses:
        name = f"rank {witness.rank}"
        if witness.settings is None:
            reasons.append(f"{name} has no settings of its MPI library: it ended without MPI_Finalize")
            continue
        known = {item.name: item for item in witness.settings}
        for setting, value in requested.items():
            has = (known[setting].value if setting in known else "") or printed.get(setting, "")
            if setting not in known:
                reasons.append(f"setting {setting}={value} was not taken: {family.name} has no {setting}")
            elif _same(family, value, has, known[setting]):
                seen.setdefault(setting, value)
            else:
                reasons.append(f"setting {setting}={value} was not taken: {name} has {has or 'nothing'}")
                seen[setting] = has
    return SettingsSeen(dict(requested), seen), list(dict.fromkeys(reasons))


def _same(family: Family, requested: str, has: str, known: Setting) -> bool:
    """Whether the library's value is the one that was asked for, in words, digits or as a switch."""
    words = family.words(known.about) if has.isdigit() else []
    named = words[int(has)] if words and int(has) < len(words) else known.word
    return (
        requested in (has, named)
        or _SWITCH.get(requested.lower(), requested) == has
        or csv_input.plain(requested) == csv_input.plain(has)
    )
