"""Verdicts on a candidate against a baseline from pairs of launches: GAIN, PASS, FAIL, INCONCLUSIVE or INVALID."""

from __future__ import annotations

from pathlib import Path

from plumbline.base.extensions import Extension
from plumbline.measure.session import Say
from plumbline.records.model import Record

_COMMAND: Extension[[Record, Record, Path | None], str | None] = Extension("cause.command")
_SEARCH: Extension[[str, float, Path, Say, bool], str] = Extension("cause.search")


def cause_command(first: Record, second: Record, application: Path | None = None) -> str | None:
    """The command that looks for the cause of a difference; None where none can."""
    return next(iter(_COMMAND(first, second, application)), None)


def cause_search(command: str, minutes: float, folder: Path, say: Say, trusted: bool = False) -> str:
    """The answer of ``command`` within ``minutes`` in one line; all of it is in ``folder``."""
    return _SEARCH.first(command, minutes, folder, say, trusted)
