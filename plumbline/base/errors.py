"""The one exception that people see."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

Value = TypeVar("Value")


class PlumbError(Exception):
    """An error that a person can fix: its message, its place and its cure."""

    def __init__(self, message: str, where: str | None = None, cure: str | None = None) -> None:
        super().__init__(message)
        self.message, self.where, self.cure = message, where, cure

    def __str__(self) -> str:
        where, cure = (f" ({self.where})" if self.where else ""), (f": {self.cure}" if self.cure else "")
        return " ".join(f"{self.message}{where}{cure}".split())


def suggest(word: str, known: Collection[str], otherwise: str | None = None) -> str:
    """The cure for a word that is not ``known``: the most similar one, else ``otherwise``, else all of them.

    >>> suggest("opnmpi", ["mpich", "openmpi"]), suggest("x", ["mpich", "openmpi"])
    ("did you mean 'openmpi'?", 'known: mpich, openmpi')
    >>> suggest("local", ["local"], "plumb list shows what there is")
    'plumb list shows what there is'
    """
    close = difflib.get_close_matches(word, [name for name in known if name != word], n=1)
    return f"did you mean '{close[0]}'?" if close else otherwise or f"known: {', '.join(known)}"


def require(name: str, known: Collection[str], message: str, where: str, otherwise: str | None = None) -> None:
    """Raise :class:`PlumbError` with the cure of :func:`suggest` for a ``name`` that is not ``known``."""
    if name not in known:
        raise PlumbError(message, where, suggest(name, known, otherwise))


def pick(known: Mapping[str, Value], name: str, message: str, where: str, otherwise: str | None = None) -> Value:
    """The entry ``name`` of ``known``; raises as :func:`require` without one."""
    require(name, known, message, where, otherwise)
    return known[name]


def pattern_fault(text: str) -> str:
    """Why ``text`` is no regular expression; empty if it is one."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"'{text[:80]}' is not a regular expression: {error}"
    return ""


def assignments(texts: Sequence[str], where: str, cure: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """The values of ``texts`` by their names; raises :class:`PlumbError` for one that is not of the ``form``."""
    for text in texts:
        if text.find("=") < 1:
            raise PlumbError(f"'{text}' is not {form}", where, cure)
    return dict(text.split("=", 1) for text in texts)
