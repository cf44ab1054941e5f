"""Reference files: what a family of tests is expected to reach on a site (``site-configs/NAME/references/*.yaml``)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from plumbline.base.units import Better
from plumbline.host.topology.plan import Count


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
        parts = [self.test, self.figure, self.stack, self.partition, self.params]
        return json.dumps(parts, sort_keys=True, default=str)

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
