"""Reference files: what a family of tests is expected to reach on a site (``site-configs/NAME/references/*.yaml``).

Which reference a figure has, and on which side of it the figure lies.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from plumbline import site
from plumbline.base import group, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.host.binder import Count
from plumbline.records.figure import Figure, Reference
from plumbline.records.model import AnyRecord

#: relative difference that counts as rounding of the values in files and figures
ROUNDING = 1e-9


class Placed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The placement of a reference: members of that of a record."""

    memory: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    nodes: Count | UnsetType = UNSET
    ranks_per_node: Count | UnsetType = UNSET
    threads: Count | UnsetType = UNSET


class Subject(Struct, frozen=True, kw_only=True):
    """The subject of a reference: all that must be equal in a record, and in its placement the members that are set.

    ``test`` is the class of the ReFrame test; ``params`` are all parameters of the variant, as in the record.
    """

    test: str
    figure: str
    stack: str
    partition: str
    params: dict[str, Any]
    placement: Placed = Placed()

    @property
    def key(self) -> str:
        """The members that must be equal, as one text."""
        return json.dumps(
            [self.test, self.figure, self.stack, self.partition, self.params], sort_keys=True, default=str
        )

    def overlaps(self, subject: Subject) -> bool:
        """Whether a record can match both: what both say of the placement is equal, as is all else."""
        placements = zip(structs.astuple(self.placement), structs.astuple(subject.placement), strict=True)
        return self.key == subject.key and all(UNSET in both or both[0] == both[1] for both in placements)

    def __str__(self) -> str:
        """Such as ``stream_threads placement=core threads=2 triad openmpi default``."""
        params = [f"{name}={value}" for name, value in self.params.items()]
        return " ".join([self.test, *params, self.figure, self.stack, self.partition])


class _Expected(Subject, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="method"):
    value: Annotated[float, Meta(gt=0)]
    unit: str
    better: Better
    lower: Annotated[float, Meta(gt=-1, le=0)] | None
    upper: Annotated[float, Meta(ge=0)] | None

    @property
    def method(self) -> str:
        """Where its value comes from."""
        return str(self.__struct_config__.tag)


class Calibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The origin of a calibrated value: ``records``, of so many ``sessions``, on these ``nodes``.

    ``dates`` are those of the first and the last session. ``spread`` is the standard deviation of the sessions, from
    the median absolute deviation, relative to the value. ``stack_sha256`` is that of the stack's manifest,
    ``suite_commit`` that of the newest record.
    """

    records: Annotated[list[Annotated[str, Meta(pattern=r"^[0-9a-f]{12}$(?!\n)")]], Meta(min_length=1)]
    sessions: Count
    dates: Annotated[list[str], Meta(min_length=2, max_length=2)]
    spread: Annotated[float, Meta(ge=0)]
    nodes: list[str]
    stack_sha256: str
    suite_commit: str | None


class Written(Struct, frozen=True, kw_only=True):
    """Where a value is written, or who declared it and why."""

    document: Annotated[str, Meta(min_length=1)]


class Calibrated(_Expected, frozen=True, kw_only=True, tag="calibrated"):
    """A reference from records: ``plumb calibrate`` writes it.

    ``lower`` and ``upper`` are the lowest and the highest value that is within, relative to ``value``
    (-0.05: 5 % less); null: no bound.
    """

    source: Calibration


class Published(_Expected, frozen=True, kw_only=True, tag="published"):
    """A reference that somebody measured and published."""

    source: Written


class Declared(_Expected, frozen=True, kw_only=True, tag="declared"):
    """A reference that a person decided on."""

    source: Written


Entry: TypeAlias = Calibrated | Published | Declared


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The expected values of a family of tests; ``test``: their names up to the first underscore."""

    schema: Literal[1]
    test: Annotated[str, Meta(pattern=r"^[a-z0-9]+$(?!\n)")]
    references: list[Entry]


@dataclass(frozen=True)
class Match:
    """The reference of a figure: its entry, and the file with it (relative to the sites folder)."""

    entry: Entry
    file: str

    def of_record(self) -> Reference:
        """The part that a record keeps, as ``figure.reference``."""
        kept = {name: getattr(self.entry, name) for name in ("value", "unit", "method", "lower", "upper")}
        return Reference(**kept, file=self.file)


class References:
    """All references of one site, in the files' order."""

    def __init__(self, entries: list[Match]) -> None:
        self.entries = entries
        self._by_key = group((match.entry.key, match) for match in entries)

    @classmethod
    def load(cls, site_name: str) -> References:
        """Read ``references/*.yaml`` of a site; :class:`PlumbError` names the file and key that is wrong."""
        return cls(
            [
                Match(entry, file.relative_to(paths.sites()).as_posix())
                for file in files(site_name)
                for entry in read(file).references
            ]
        )

    def resolve(self, record: AnyRecord, figure: str) -> Match | None:
        """The reference of ``figure`` of ``record``, None where there is none.

        Test, figure, stack, partition and all parameters must be equal, and what the reference gives of the placement.
        Raises :class:`PlumbError` if two match, because neither can be trusted.
        """
        wanted = subject(record, figure)
        matches = [match for match in self._by_key.get(wanted.key, []) if match.entry.overlaps(wanted)]
        if len(matches) > 1:
            raise PlumbError(
                f"{len(matches)} references match {wanted}",
                " and ".join(dict.fromkeys(match.file for match in matches)),
                "remove all but one",
            )
        return matches[0] if matches else None


def subject(record: AnyRecord, figure: str) -> Subject:
    """The members by which a reference of ``figure`` of a record is found, the whole placement included."""
    return Subject(
        test=record.variant.test,
        figure=figure,
        stack=record.stack.name,
        partition=record.partition,
        params=record.variant.params,
        placement=Placed(**structs.asdict(record.placement)),
    )


def files(site_name: str) -> list[Path]:
    """The reference files of a site, sorted."""
    return sorted((site.folder(site_name) / "references").glob("*.yaml"))


def read(file: Path) -> Document:
    """A reference file; raises :class:`PlumbError` unless it obeys its schema."""
    return schemas.load("references", file, Document, "references", "restore the file")


def judge(figure: Figure, entry: Entry | None) -> str:
    """``unreferenced``, ``within``, ``below`` or ``above``, for a record's figure.

    ``below`` means worse than the reference's range and ``above`` better than it: a latency of twice the reference is
    ``below``. Raises :class:`PlumbError` for a figure that cannot be compared: another unit or direction, not finite.
    """
    for name in ("unit", "better") if entry else ():
        if getattr(figure, name) != getattr(entry, name):
            raise PlumbError(
                f"{figure.name} has {name} {getattr(figure, name)}, its reference {getattr(entry, name)}",
                "reference",
                "fix the reference",
            )
    if entry and not math.isfinite(figure.value):
        raise PlumbError(f"{figure.name} is {figure.value}", "reference", "only finite figures are judged")
    return side(figure, entry)


def side(figure: Figure, reference: Entry | Reference | None) -> str:
    """As :func:`judge`, of a figure and a reference that can be compared."""
    if reference is None:
        return "unreferenced"
    low, high = bounds(reference.value, reference.lower, reference.upper)
    if figure.value < low * (1 - ROUNDING):
        return "below" if figure.better == "higher" else "above"
    if figure.value > high * (1 + ROUNDING):
        return "above" if figure.better == "higher" else "below"
    return "within"


def bounds(value: float, lower: float | None, upper: float | None) -> tuple[float, float]:
    """The lowest and the highest value that is within, of a reference ``value`` and its bounds as fractions of it."""
    return 0.0 if lower is None else value * (1 + lower), math.inf if upper is None else value * (1 + upper)


def thresholds(reference: Reference, value: float) -> tuple[float, float | None, float | None, str]:
    """(value, lower, upper, unit) of a record's reference as ReFrame takes it, bounds as fractions of the value.

    ReFrame compares exactly. A bound that ``value`` misses by :data:`ROUNDING` only is wider by that, so that ReFrame
    fails what :func:`judge` does not call ``within``, and nothing else.
    """
    lower, upper = reference.lower, reference.upper
    low, high = bounds(reference.value, lower, upper)
    if lower is not None and low * (1 - ROUNDING) <= value < low:
        lower = (1 + lower) * (1 - ROUNDING) - 1
    if upper is not None and high < value <= high * (1 + ROUNDING):
        upper = (1 + upper) * (1 + ROUNDING) - 1
    return reference.value, lower, upper, reference.unit
