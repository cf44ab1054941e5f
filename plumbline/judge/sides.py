"""A side of a comparison: which records are its own. ``stack=mpich``, ``2026-10..2026-11``, or a name that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plumbline.base import git
from plumbline.base.errors import PlumbError, suggest
from plumbline.records.model import AnyRecord


@dataclass(frozen=True)
class Kind:
    """A property in which sides may differ: ``has`` tests a record, ``members`` of a line's key may then differ too."""

    has: Callable[[AnyRecord, str], bool]
    members: tuple[str, ...]


def _in_period(row: AnyRecord, period: str) -> bool:
    first, _, last = period.partition("..")
    return row.time >= first and (not last or row.time[: len(last)] <= last)


def _of_commit(row: AnyRecord, start: str) -> bool:
    """Whether the code that was measured, an application's or else the suite's, is of the commit."""
    application = row.variant.application
    return ((application.commit if application else row.suite.commit) or "").startswith(start)


KINDS = {
    "stack": Kind(lambda row, value: row.stack.name == value, ("stack",)),
    "site": Kind(lambda row, value: row.site == value, ("site", "partition")),
    "partition": Kind(lambda row, value: f"{row.site}:{row.partition}" == value, ("site", "partition")),
    "node": Kind(lambda row, value: value in row.nodes, ()),
    "campaign": Kind(lambda row, value: (row.campaign or "").startswith(value), ()),
    "commit": Kind(_of_commit, ()),
    "version": Kind(lambda row, value: row.stack.mpi.version == value, ("stack",)),
    "period": Kind(_in_period, ()),
    "placement": Kind(lambda row, value: row.placement.name == value, ("placement",)),
}
#: a tag of this checkout stands for its commit
TAG = "tag"


@dataclass(frozen=True)
class Side:
    """``name`` as it was given, and the conditions that all hold for its records."""

    name: str
    conditions: tuple[tuple[str, str], ...]

    def has(self, row: AnyRecord) -> bool:
        """Whether a record is on this side."""
        return all(KINDS[kind].has(row, value) for kind, value in self.conditions)


def parse(text: str, rows: Sequence[AnyRecord]) -> Side:
    """The side that ``text`` names: ``KIND=VALUE[,KIND=VALUE…]``, a period ``FROM..TO``, or a value alone.

    A value alone is looked for among the ``rows``: it must be the stack, site, partition, campaign, and so on, of some,
    and of one kind only. Raises :class:`PlumbError` for a condition that cannot be read, and for a side without
    records.
    """
    side = Side(text, tuple(_condition(part, text, rows) for part in text.split(",")))
    if not any(side.has(row) for row in rows):
        raise PlumbError(f"no valid record is of side '{text}'", "plumb compare", "plumb list shows what there is")
    return side


def _condition(part: str, text: str, rows: Sequence[AnyRecord]) -> tuple[str, str]:
    kind, equals, value = part.partition("=")
    if equals:
        if kind not in (*KINDS, TAG) or not value:
            cure = f"KIND=VALUE of {', '.join((*KINDS, TAG))}"
            raise PlumbError(f"'{part}' is not a condition", f"plumb compare {text}", cure)
        return ("commit", _commit(value)) if kind == TAG else (kind, value)
    if ".." in part:
        return "period", part
    # a commit and a campaign need at least 6 characters
    guessed = ["stack", "site", "partition", "node", *(["campaign", "commit"] if len(part) >= 6 else [])]
    kinds = [name for name in guessed if any(KINDS[name].has(row, part) for row in rows)]
    if len(kinds) != 1:
        known = {row.stack.name for row in rows} | {row.site for row in rows}
        fault = "is not a stack, site, partition, node, campaign or commit here"
        cure = suggest(part, known, "plumb list shows what there is")
        if kinds:
            fault, cure = f"is a {' and a '.join(kinds)}", f"write {kinds[0]}={part}"
        raise PlumbError(f"'{part}' {fault}", "plumb compare", cure)
    return kinds[0], part


def _commit(tag: str) -> str:
    commit = git.commit(f"refs/tags/{tag}")
    if commit is None:
        raise PlumbError(f"'{tag}' is not a tag of this checkout", "plumb compare", "git tag lists them")
    return commit


def free(sides: Sequence[Side]) -> set[str]:
    """The members of a row's key in which the sides may differ, because their conditions do."""
    return {
        member
        for side in sides
        for condition in side.conditions
        if any(condition not in another.conditions for another in sides)
        for member in KINDS[condition[0]].members
    }
