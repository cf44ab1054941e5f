"""Settings that a launch asks its MPI library for, and the values that the measured processes report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from plumbline.base.errors import PlumbError
from plumbline.launch.witness.model import Setting, Witness
from plumbline.mpi import Family
from plumbline.records.launch import SettingsSeen

#: names of the settings that the witness is to ask the library for, with commas between
VARIABLE = "PLUMB_WITNESS_SETTINGS"
#: how many settings, and bytes of their names, the witness has room for (custom-kernels/witness/settings.c)
MOST = 64
MOST_BYTES = 4095
_SWITCH = {"true": "1", "yes": "1", "on": "1", "enable": "1", "false": "0", "no": "0", "off": "0", "disable": "0"}


def variables(family: Family, requested: Mapping[str, str]) -> dict[str, str]:
    """Variables that make the library take the settings ``requested``, and the witness ask the library for them.

    Raises :class:`PlumbError` for more settings than the witness has room for.
    """
    if not requested:
        return {}
    names = ",".join(requested)
    if len(requested) > MOST or len(names) > MOST_BYTES:
        raise PlumbError(f"{len(requested)} settings are more than a launch can prove", "settings", f"{MOST} at most")
    assignments = {family.setting_variable(name): value for name, value in requested.items()}
    return {**family.telling, **assignments, VARIABLE: names}


def compare(
    family: Family, requested: Mapping[str, str], witnesses: Iterable[Witness], lines: Iterable[str]
) -> tuple[SettingsSeen, list[str]]:
    """The values of ``requested`` in the library of every rank, and the reasons why they do not prove all of it.

    ``lines`` are the output of the ranks: a library that does not report the value of a text setting by MPI_T prints it
    in the lines of its first rank.
    """
    printed, refused = _printed_settings(family, lines)
    seen: dict[str, str] = {}
    reasons = [f"{family.name} reports: {line}" for line in refused]
    for witness in witnesses:
        name = f"rank {witness.rank}"
        if witness.settings is None:
            reasons.append(f"{name} has no settings of its MPI library: it ended without MPI_Finalize")
            continue
        known = {item.name: item for item in witness.settings}
        for setting, value in requested.items():
            if setting not in known:
                reasons.append(f"setting {setting}={value} was not taken: {family.name} has no {setting}")
                continue
            has = known[setting].value or printed.get(setting, "")
            if not _same(family, value, has, known[setting]):
                reasons.append(f"setting {setting}={value} was not taken: {name} has {has or 'nothing'}")
                seen[setting] = has
            else:
                seen.setdefault(setting, value)
    return SettingsSeen(dict(requested), seen), list(dict.fromkeys(reasons))


def _printed_settings(family: Family, lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The settings that the library printed, and those that it refused."""
    printed: dict[str, str] = {}
    refused = []
    for line in lines:
        match = re.match(family.startup, line) if family.startup else None
        if match is None:
            continue
        text = line[match.end() :].strip()
        if family.refusal and re.search(family.refusal, text):
            refused.append(text)
        name, equals, value = text.partition("=")
        if equals:
            printed[name] = value
    return printed, refused


def _same(family: Family, requested: str, has: str, known: Setting) -> bool:
    """Whether the library's value is the one that was asked for, in words, digits or as a switch."""
    if requested == has:
        return True
    words = family.words(known.about) if has.isdigit() else []
    named = words[int(has)] if words and int(has) < len(words) else known.word
    return (
        requested == named
        or _SWITCH.get(requested.lower(), requested) == has
        or _number(requested) == _number(has) is not None
    )


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
