"""Statements on figures, in one form for all that judge: a line for people, JSON, JUnit XML and a Markdown table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree  # only written, never read

from plumbline.base import table
from plumbline.base.terminal import NOT_XML
from plumbline.base.units import percent, significant
from plumbline.base.verdicts import counts, severity, worst

#: rows of the Markdown table (hosts cut long comments), its columns, and those of numbers
ROWS = 200
HEADER = ("series", "verdict", "candidate / baseline", "interval", "pairs", "ruled out from", "reason")
RIGHT = ("candidate / baseline", "pairs", "ruled out from")
#: facts that a merge request shows, and how they begin there
TOLD = {"note": "", "why": "to find the cause: ", "cause": ""}
#: JUnit's names of states that are not a success
ELEMENTS: dict[str, str] = {"FAIL": "failure", "INCONCLUSIVE": "skipped", "INVALID": "error"}


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


def document(statements: Sequence[Statement], rule: Mapping[str, Any], facts: Sequence[tuple[str, str]] = ()) -> str:
    """``{"verdict", "rule", "series": […]}``, each series as on its line of standard output.

    ``facts`` of a live gate (session, seed, the command to repeat it, …) stand under ``facts``.
    """
    optional = nonempty(facts=[{"name": name, "text": text} for name, text in facts])
    series = [item.to_dict() for item in statements]
    whole = {"verdict": overall(statements), "rule": rule, "series": series, **optional}
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def junit(statements: Sequence[Statement], command: str, margins: str) -> str:
    """A test case for each: FAIL is a failure, INCONCLUSIVE is skipped, INVALID is an error."""
    number = Counter(item.state for item in statements)
    suite = ElementTree.Element(
        "testsuite",
        name=f"plumb {command}, {margins}",
        tests=str(len(statements)),
        failures=str(number["FAIL"]),
        skipped=str(number["INCONCLUSIVE"]),
        errors=str(number["INVALID"]),
    )
    for item in statements:
        case = ElementTree.SubElement(suite, "testcase", classname=f"plumb.{command}", name=_xml(item.subject))
        if item.state in ELEMENTS:
            text = f"{item.state}: {_xml(item.reason or '')}"
            ElementTree.SubElement(case, ELEMENTS[item.state], message=text, type=item.state)
        ElementTree.SubElement(case, "system-out").text = _xml(json.dumps(item.to_dict(), ensure_ascii=False))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def markdown(statements: Sequence[Statement], margins: str, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The verdict, how many of each, a table with the worst first, and those of ``facts`` that are in :data:`TOLD`."""
    rows = sorted(statements, key=lambda item: severity(item.state), reverse=True)
    cells = [
        (
            item.subject,
            item.state,
            "" if item.ratio is None else f"{item.ratio:.4g}",
            "" if item.interval is None else f"{item.interval[0]:.4g} to {item.interval[1]:.4g}",
            str(item.count),
            item.ruled_out or "",
            item.reason or "",
        )
        for item in rows[:ROWS]
    ]
    lines = [f"**{overall(statements)}** ({counted(statements)}); {margins}", "", table.markdown(HEADER, cells, RIGHT)]
    if len(rows) > ROWS:
        lines += ["", f"{len(rows) - ROWS} more series are not shown, none worse than {rows[ROWS].state}."]
    fact_lines = [f"- {TOLD[name]}{table.escaped(text)}" for name, text in facts if name in TOLD]
    return "\n".join([*lines, *([""] if fact_lines else []), *fact_lines]) + "\n"


def _xml(text: str) -> str:
    return NOT_XML.sub("?", text)
