"""Which reference a figure has, and on which side of it the figure lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from plumbline import site
from plumbline.base import group, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.judge.references.model import Document, Entry, Placed, Subject
from plumbline.records.figure import Figure, Reference
from plumbline.records.model import AnyRecord

#: relative difference that counts as rounding of the values in files and figures
ROUNDING = 1e-9


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
        matches = []
        for file in files(site_name):
            document = read(file)
            name = file.relative_to(paths.sites()).as_posix()
            matches += [Match(entry, name) for entry in document.references]
        return cls(matches)

    def resolve(self, record: AnyRecord, figure: str) -> Match | None:
        """The reference of ``figure`` of ``record``, None where there is none.

        Test, figure, stack, partition and all parameters must be equal, and what the reference gives of the placement.
        Raises :class:`PlumbError` if two match, because neither can be trusted.
        """
        wanted = subject(record, figure)
        matches = [match for match in self._by_key.get(wanted.key, []) if match.entry.overlaps(wanted)]
        if len(matches) > 1:
            where = " and ".join(dict.fromkeys(match.file for match in matches))
            raise PlumbError(f"{len(matches)} references match {wanted}", where, "remove all but one")
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
    return schemas.convert("references", schemas.read_yaml(file, "references", "restore the file"), Document, str(file))


def judge(figure: Figure, entry: Entry | None) -> str:
    """``unreferenced``, ``within``, ``below`` or ``above``, for a record's figure.

    ``below`` means worse than the reference's range and ``above`` better than it: a latency of twice the reference is
    ``below``. Raises :class:`PlumbError` for a figure that cannot be compared: another unit or direction, not finite.
    """
    if entry is None:
        return "unreferenced"
    for name in ("unit", "better"):
        if getattr(figure, name) != getattr(entry, name):
            raise PlumbError(
                f"{figure.name} has {name} {getattr(figure, name)}, its reference {getattr(entry, name)}",
                "reference",
                "fix the reference",
            )
    if not math.isfinite(figure.value):
        raise PlumbError(f"{figure.name} is {figure.value}", "reference", "only finite figures are judged")
    return _side(figure, entry.value, entry.lower, entry.upper)


def side(figure: Figure) -> str:
    """As :func:`judge`, by the reference that the record keeps."""
    if figure.reference is None:
        return "unreferenced"
    return _side(figure, figure.reference.value, figure.reference.lower, figure.reference.upper)


def _side(figure: Figure, value: float, lower: float | None, upper: float | None) -> str:
    low, high = bounds(value, lower, upper)
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
