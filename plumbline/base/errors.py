"""The one exception that people see."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class PlumbError(Exception):
    """An error that a person can fix: its message, its place and its cure."""

    def __init__(self, message: str, where: str | None = None, cure: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.cure = cure

    def __str__(self) -> str:
        line = self.message
        if self.where:
            line += f" ({self.where})"
        if self.cure:
            line += f": {self.cure}"
        return " ".join(line.split())


def suggest(word: str, known: Collection[str], otherwise: str | None = None) -> str:
    """The cure for a word that is not ``known``: the most similar one, else ``otherwise``, else all of them.

    >>> suggest("opnmpi", ["mpich", "openmpi"]), suggest("x", ["mpich", "openmpi"])
    ("did you mean 'openmpi'?", 'known: mpich, openmpi')
    >>> suggest("local", ["local"], "plumb list shows what there is")
    'plumb list shows what there is'
    """
    close = difflib.get_close_matches(word, [name for name in known if name != word], n=1)
    return f"did you mean '{close[0]}'?" if close else otherwise or f"known: {', '.join(known)}"
