"""Records that anybody may have written, to be run again: they give data, but may not choose the code that runs."""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.launch.prepare import APPLICATION, OWN
from plumbline.mpi import loading
from plumbline.records.model import Record
from plumbline.records.variant import Variant

CURE = "if you know who wrote it, add --trust"
#: an option, or a word that is neither a path nor anything to a shell
_PLAIN = re.compile(r"[\w.,:=+-]+")


def refuse_build(record: Record, cure: str = CURE) -> None:
    """Raise :class:`PlumbError` for variables that ``record`` has for a build and that could be more than options."""
    state = record.variant.application
    for name, value in state.variables if state else ():
        if loading.loads(name) or not _is_plain(value):
            raise PlumbError(f"a file may not say what is run: build:{name}={value}", f"record {record.id}", cure)


def _is_plain(value: str) -> bool:
    """Whether a variable of a build has options, or one word: no path and no command."""
    words = value.split()
    return all(map(_PLAIN.fullmatch, words)) and (len(words) <= 1 or all(word.startswith("-") for word in words))


def variant_of(record: Record, trusted: bool = False, cure: str = CURE) -> Variant:
    """The variant of ``record``, to be launched.

    Raises :class:`PlumbError`, unless it is ``trusted``, where it names a program that is none of our builds, or
    variables and settings by which code is loaded, and as :func:`refuse_build`.
    """
    variant, where = record.variant, f"record {record.id}"
    if trusted:
        return variant
    refuse_build(record, cure)
    for values in (variant.environment, variant.settings):
        loading.refuse(values, where, cure)
    if variant.benchmark in (OWN, APPLICATION):
        program, command = (variant.context.get(name) for name in ("program", "command"))
        builds = paths.build().resolve() / "applications"
        if command != [program] or not Path(str(program)).resolve().is_relative_to(builds):
            raise PlumbError(f"it runs a program that was not built here: {program}", where, cure)
    return variant
