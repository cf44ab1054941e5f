"""Margins of each figure: from a file of rules, or else from the test, or else from the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from plumbline import site
from plumbline.base import schemas
from plumbline.base.errors import PlumbError, pattern_fault
from plumbline.records.variant import Variant, WantedFigure
from plumbline.statistics.paired import PairedRule

#: of a site's folder
FILE = "gate.yaml"
MARGINS = ("tolerance", "must_detect")


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Margins of some figures: the slowdown that may pass, and the one that must not, as fractions.

    Regular expressions: ``test`` and ``figure`` match whole names, ``variant`` is found anywhere in the variant's name.
    """

    test: str = ".*"
    variant: str = ""
    figure: str = ".*"
    tolerance: Annotated[float, Meta(ge=0, le=10)] | UnsetType = UNSET
    must_detect: Annotated[float, Meta(gt=0, le=10)] | UnsetType = UNSET

    def is_of(self, variant: Variant, figure: WantedFigure) -> bool:
        """Whether these are the margins of ``figure``, if no earlier entry has them."""
        return (
            re.fullmatch(self.test, variant.test) is not None
            and re.search(self.variant, variant.name) is not None
            and re.fullmatch(self.figure, figure.name) is not None
        )


class Rules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of margins by test and figure; the first entry that matches counts."""

    schema: Literal[1]
    rules: list[Entry]


def load(rules_file: Path | None, name: str) -> tuple[list[Entry], str]:
    """The entries of the file ``rules_file``, else of site ``name``'s ``gate.yaml``, else none; and where they stand.

    Raises :class:`PlumbError` for a file that cannot be read, or is not a file of margins.
    """
    file = rules_file or site.folder(name) / FILE
    if rules_file is None and not file.is_file():
        return [], ""
    cure = "give a file of rules, docs/gate.md shows one"
    entries = schemas.load("gate", file, Rules, "rules of the gate", cure).rules
    for position, entry in enumerate(entries, 1):
        if entry.tolerance is UNSET and entry.must_detect is UNSET:
            raise PlumbError(f"rule {position} has no margin", str(file), "give tolerance, must_detect or both")
        for pattern in (entry.test, entry.variant, entry.figure):
            if fault := pattern_fault(pattern):
                raise PlumbError(f"rule {position}: {fault}", str(file), "correct it")
    return entries, str(file)


def settle(variant: Variant, entries: Sequence[Entry], where: str, default: PairedRule) -> Variant:
    """``variant`` with both margins in each of its figures, so that its record can be judged later by the same.

    The first entry that matches a figure counts; a margin that it leaves open comes from the test, or from ``default``.
    Optional figures are left out: where one is absent, nothing distinguishes a loss from a machine that never had it.
    Raises :class:`PlumbError` for margins that contradict each other.
    """
    figures = []
    for figure in variant.figures:
        if figure.optional:
            continue
        entry = next((entry for entry in entries if entry.is_of(variant, figure)), Entry())
        margins = {name: getattr(figure if getattr(entry, name) is UNSET else entry, name) for name in MARGINS}
        try:
            rule = replace(default, **{name: value for name, value in margins.items() if value is not None})
        except PlumbError as error:
            raise PlumbError(
                f"{variant.name}: {figure.name}: {error.message}", where or "plumb gate", error.cure
            ) from error
        figures.append(structs.replace(figure, tolerance=rule.tolerance, must_detect=rule.must_detect))
    return structs.replace(variant, figures=figures)


def of_options(args: argparse.Namespace, **usual: Any) -> PairedRule:
    """The rule of ``--tolerance`` and ``--must-detect``; ``usual`` has other members, and margins without an option."""
    named = {name: getattr(args, name) for name in MARGINS if getattr(args, name) is not None}
    return PairedRule(**{**usual, **named})


def imposed(rule: PairedRule) -> tuple[list[Entry], str]:
    """Entries for :func:`settle` that give the margins of ``rule`` to every figure."""
    return [Entry(tolerance=rule.tolerance, must_detect=rule.must_detect)], ""
