"""The command that looks for the cause of a difference, where more than one thing differs."""

from __future__ import annotations

from plumbline.records.model import Record
from plumbline.why import factors


def command(first: Record, second: Record) -> str | None:
    """``plumb why FIRST SECOND``; None where the records differ in one thing alone: that is the cause."""
    variants = first.variant, second.variant
    runs = [(one.stack.name.partition("@")[0], _code(one)) for one in (first, second)]
    number = sum(one != other for one, other in zip(*runs, strict=True)) + len(factors.of_variants(*variants))
    return f"plumb why {first.id} {second.id}" if number > 1 else None


def _code(record: Record) -> str:
    state = record.variant.application
    return (state.commit or state.digest) if state else record.stack.name.partition("@")[2]
