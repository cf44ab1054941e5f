"""The one exception that people see."""

from __future__ import annotations


class PlumbError(Exception):
    """An error that a person can fix: what is wrong, where, and what to do about it."""

    def __init__(self, what: str, where: str | None = None, cure: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.cure = cure

    def __str__(self) -> str:
        line = self.what
        if self.where:
            line += f" ({self.where})"
        if self.cure:
            line += f": {self.cure}"
        return " ".join(line.split())
