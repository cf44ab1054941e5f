"""Margins of each figure: from a file of rules, or else from the test, or else from the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline import schemas, site
from plumbline.base.errors import PlumbError
from plumbline.records.variant import Variant, WantedFigure
from plumbline.statistics.paired import Rule

#: of a site's folder
FILE = "gate.yaml"
MARGINS = ("tolerance", "must_detect")


def load(given: Path | None, name: str) -> tuple[list[dict[str, Any]], str]:
    """The rules of the file ``given``, else of site ``name``'s ``gate.yaml``, else none; and where they stand.

    Raises :class:`PlumbError` for a file that cannot be read, or does not obey the schema ``gate``.
    """
    file = given or site.folder(name) / FILE
    if given is None and not file.is_file():
        return [], ""
    document = schemas.read_yaml(file, "rules of the gate", "give a file of rules, docs/gate.md shows one")
    schemas.check("gate", document, str(file))
    for position, entry in enumerate(document["rules"]):
        for key in ("test", "variant", "figure"):
            try:
                re.compile(entry.get(key, ""))
            except re.error as error:
                what = f"rule {position + 1}: '{entry[key]}' is not a regular expression: {error}"
                raise PlumbError(what, str(file), "correct it") from error
    return list(document["rules"]), str(file)


def settle(variant: Variant, entries: list[dict[str, Any]], where: str, default: Rule) -> Variant:
    """``variant`` with both margins in each of its figures, so that its record can be judged later by the same.

    The first entry that matches a figure counts; a margin that it leaves open comes from the test, or from ``default``.
    Optional figures are left out: where one is absent, nothing distinguishes a loss from a machine that never had it.
    Raises :class:`PlumbError` for margins that contradict each other.
    """
    figures = []
    for figure in variant.figures:
        if figure.optional:
            continue
        entry = next((entry for entry in entries if _matches(entry, variant, figure)), {})
        margins = {name: entry.get(name, getattr(figure, name)) for name in MARGINS}
        try:
            rule = replace(default, **{name: value for name, value in margins.items() if value is not None})
        except PlumbError as error:
            raise PlumbError(
                f"{variant.name}: {figure.name}: {error.what}", where or "plumb gate", error.cure
            ) from error
        figures.append(_with(figure, rule))
    return structs.replace(variant, figures=figures)


def impose(variant: Variant, rule: Rule) -> Variant:
    """``variant`` with the margins of ``rule`` in each of its figures, optional ones left out as by :func:`settle`."""
    return structs.replace(variant, figures=[_with(one, rule) for one in variant.figures if not one.optional])


def _with(figure: WantedFigure, rule: Rule) -> WantedFigure:
    return structs.replace(figure, tolerance=rule.tolerance, must_detect=rule.must_detect)


def _matches(entry: dict[str, Any], variant: Variant, figure: WantedFigure) -> bool:
    return (
        re.fullmatch(entry.get("test", ".*"), variant.test) is not None
        and re.search(entry.get("variant", ""), variant.name) is not None
        and re.fullmatch(entry.get("figure", ".*"), figure.name) is not None
    )
