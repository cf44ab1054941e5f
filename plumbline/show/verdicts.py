"""The verdicts of a gate: the table of its series for a terminal, a page and a merge request, as JSON and JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree  # only written, never read

from plumbline.base import table, units
from plumbline.base.terminal import NOT_XML
from plumbline.base.verdicts import severity
from plumbline.judge.decide import Verdict
from plumbline.judge.statement import Statement, counted, nonempty, overall
from plumbline.show.columns import Column, Table
from plumbline.show.pages.blocks import block, link

#: rows of the Markdown table: hosts cut long comments
ROWS = 200
#: facts that a merge request shows, and how they begin there
TOLD = {"note": "", "why": "to find the cause: ", "cause": ""}
#: JUnit's names of states that are not a success
ELEMENTS = {"FAIL": "failure", "INCONCLUSIVE": "skipped", "INVALID": "error"}


@dataclass(frozen=True)
class Row:
    """A series with its name for people, and on a page the place of its picture."""

    name: str
    verdict: Verdict
    href: str | None = None


SERIES = Table[Row](
    "Series",
    [
        Column("series", lambda row: link(row.name, row.href), "test"),
        Column("verdict", lambda row: block("badge", row.verdict.state, verdict=row.verdict.state)),
        Column("ratio", lambda row: None if row.verdict.ratio is None else units.ratio(row.verdict.ratio), "number"),
        Column("interval", lambda row: units.interval(row.verdict.interval), "number"),
        Column("pairs", lambda row: row.verdict.count, "number"),
        Column(
            "measured again", lambda row: len(row.verdict.pairs.baseline.superseded) or "", "number", forms="text page"
        ),
        Column("ruled out from", lambda row: row.verdict.ruled_out, "number"),
        Column(
            "margins",
            lambda row: (
                f"{units.percent(rule.tolerance)}, {units.percent(rule.must_detect)}"
                if (rule := row.verdict.pairs.rule)
                else ""
            ),
        ),
        Column("reason", lambda row: row.verdict.explanation, "notes", forms="md page"),
    ],
)


def text(rows: Sequence[Row]) -> str:
    """The table for a terminal, with a line for each verdict that has something to say."""
    reasons = [f"{row.name}: {row.verdict.explanation}" for row in rows if row.verdict.explanation]
    return "\n".join([SERIES.text(rows), *([""] if reasons else []), *reasons])


def markdown(verdicts: Sequence[Verdict], margins: str, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The verdict, how many of each, a table with the worst first, and those of ``facts`` that are in :data:`TOLD`."""
    rows = [Row(item.subject, item) for item in worst_first(verdicts)]
    parts = [
        f"**{overall(verdicts)}** ({counted(verdicts)}); {margins}",
        SERIES.markdown(rows[:ROWS]),
        f"{len(rows) - ROWS} more series are not shown, none worse than {rows[ROWS].verdict.state}."
        if len(rows) > ROWS
        else "",
        "\n".join(f"- {TOLD[name]}{table.escaped(text)}" for name, text in facts if name in TOLD),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts by their severity."""
    return sorted(verdicts, key=lambda item: severity(item.state), reverse=True)


def document(statements: Sequence[Statement], rule: Mapping[str, Any], facts: Sequence[tuple[str, str]] = ()) -> str:
    """``{"verdict", "rule", "series": […]}``, each series as :meth:`Statement.to_dict` has it.

    ``facts`` of a live gate (session, seed, the command to repeat it, …) stand under ``facts``.
    """
    whole = {
        "verdict": overall(statements),
        "rule": rule,
        "series": [item.to_dict() for item in statements],
        **nonempty(facts=[{"name": name, "text": text} for name, text in facts]),
    }
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
            ElementTree.SubElement(
                case, ELEMENTS[item.state], message=f"{item.state}: {_xml(item.explanation)}", type=item.state
            )
        ElementTree.SubElement(case, "system-out").text = _xml(json.dumps(item.to_dict(), ensure_ascii=False))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    return NOT_XML.sub("?", text)
