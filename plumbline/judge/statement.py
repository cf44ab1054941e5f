"""Statements on figures, in one form for all that judge, with a line for people and one of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.base.units import percent, significant
from plumbline.base.verdicts import counts, worst


@dataclass(frozen=True)
class Statement:
    """The statement on one subject.

    ``count`` is how many pairs or launches it rests on. ``ratio`` is as measured, with its ``interval``. Had something
    been slower by the fraction ``detectable``, that would have been seen. ``notes`` follow the ``reason``.
    """

    subject: str
    state: str
    count: int
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    detectable: float | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        """The reason and the notes; empty without both."""
        return "; ".join(filter(None, (self.reason, *self.notes)))

    @property
    def ruled_out(self) -> str | None:
        """From where a PASS or a GAIN rules slowdowns out, for people: ``2.1 %``."""
        return percent(self.detectable) if self.state in ("GAIN", "PASS") and self.detectable is not None else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that the command prints for it."""
        raise NotImplementedError


def nonempty(**members: Any) -> dict[str, Any]:
    """The ``members`` of a JSON object that are there: neither None nor empty."""
    return {name: value for name, value in members.items() if value}


def rounded(value: Any, digits: int) -> Any:
    """``value`` with the numbers in it rounded to ``digits`` significant ones."""
    if isinstance(value, dict):
        return {name: rounded(member, digits) for name, member in value.items()}
    if isinstance(value, tuple):
        return [rounded(member, digits) for member in value]
    return None if value is None else significant(value, digits)


def overall(statements: Sequence[Statement]) -> str:
    """The worst state of all."""
    return worst([item.state for item in statements])


def counted(statements: Sequence[Statement]) -> str:
    """How many there are of each state: ``3 PASS, 1 FAIL``."""
    return counts([item.state for item in statements])


def lines(statements: Sequence[Statement]) -> str:
    """A line of JSON for each."""
    return "\n".join(json.dumps(item.to_dict(), ensure_ascii=False, allow_nan=False) for item in statements)


def closing(statements: Sequence[Statement], start: str, fine: str, slower: str = "") -> str:
    """The line for people: the worst state after ``start``, and how many there are of each.

    Then ``fine`` with the largest ``detectable`` where nothing is slower; else ``slower``, or the first reason.
    """
    state = overall(statements)
    line = f"{start.format(state)}{counted(statements)}; "
    if state in ("GAIN", "PASS"):
        return line + fine.format(percent(max(item.detectable or 0.0 for item in statements)))
    first = next(item for item in statements if item.state == state)
    return line + (slower if slower and state == "FAIL" else f"{first.subject}: {first.explanation}")
