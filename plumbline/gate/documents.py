"""Verdicts as a line for people, as a JSON document, as JUnit XML and as a Markdown table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree  # only written, never read

from plumbline.gate.decide import Verdict
from plumbline.statistics.sequential import Rule
from plumbline.terminal import NOT_XML
from plumbline.units import percent
from plumbline.verdicts import State, counts, severity, worst

#: rows of the Markdown table; hosts cut long comments
ROWS = 200


def states(verdicts: Sequence[Verdict]) -> list[State]:
    """The verdict of each: PASS, FAIL, …."""
    return [item.verdict for item in verdicts]


def margins(rule: Rule) -> str:
    """The margins of ``rule`` for people: ``1.0 % tolerated, 5.0 % must be seen``."""
    return f"{percent(rule.tolerance)} tolerated, {percent(rule.must_detect)} must be seen"


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """``verdicts``, the worst first."""
    return sorted(verdicts, key=lambda item: severity(item.verdict), reverse=True)


def closing(verdicts: Sequence[Verdict]) -> str:
    """The one line for people: the worst verdict, how many of each, and the first reason."""
    found = states(verdicts)
    state = worst(found)
    line = f"gate: {state}: {counts(found)}"
    if state in ("GAIN", "PASS"):
        blind = max(item.detectable or 0.0 for item in verdicts)
        return f"{line}; slowdowns of {percent(blind)} and more are ruled out in every series"
    first = next(item for item in verdicts if item.verdict == state)
    return f"{line}; {first.series}: {first.reason}"


def document(verdicts: Sequence[Verdict], rule: Rule, facts: Sequence[tuple[str, str]] = ()) -> str:
    """``{"verdict", "rule", "series": […]}``, each series as on its line of standard output.

    ``facts`` of a live gate (session, seed, the command to repeat it, …) stand under ``facts``.
    """
    whole = {"verdict": worst(states(verdicts)), "rule": _rule(rule), "series": [item.to_dict() for item in verdicts]}
    if facts:
        whole["facts"] = [{"name": name, "text": text} for name, text in facts]
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    """Its margins; ``gain`` only where it was asked for."""
    return {name: value for name, value in asdict(rule).items() if name != "gain" or value}


def junit(verdicts: Sequence[Verdict], rule: Rule) -> str:
    """A test case per series: FAIL is a failure, INCONCLUSIVE is skipped, INVALID is an error."""
    number = Counter(states(verdicts))
    suite = ElementTree.Element(
        "testsuite",
        name=f"plumb gate, {margins(rule)}",
        tests=str(len(verdicts)),
        failures=str(number["FAIL"]),
        skipped=str(number["INCONCLUSIVE"]),
        errors=str(number["INVALID"]),
    )
    element = {"FAIL": "failure", "INCONCLUSIVE": "skipped", "INVALID": "error"}
    for item in verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname="plumb.gate", name=_xml(item.series))
        if item.verdict in element:
            ElementTree.SubElement(
                case, element[item.verdict], message=f"{item.verdict}: {_xml(item.reason or '')}", type=item.verdict
            )
        ElementTree.SubElement(case, "system-out").text = _xml(json.dumps(item.to_dict(), ensure_ascii=False))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def markdown(verdicts: Sequence[Verdict], rule: Rule, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The verdict, the counts, a table with the worst series first, and the notes among ``facts``."""
    found = states(verdicts)
    rows = worst_first(verdicts)
    lines = [
        f"**{worst(found)}** ({counts(found)}); {margins(rule)}",
        "",
        "| series | verdict | candidate / baseline | interval | pairs | ruled out from | reason |",
        "|---|---|--:|---|--:|--:|---|",
    ]
    for item in rows[:ROWS]:
        ratio = "" if item.ratio is None else f"{item.ratio:.4g}"
        interval = "" if item.interval is None else f"{item.interval[0]:.4g} to {item.interval[1]:.4g}"
        blind = item.ruled_out or ""
        cells = (_cell(item.series), item.verdict, ratio, interval, str(item.pairs), blind, _cell(item.reason or ""))
        lines.append(f"| {' | '.join(cells)} |")
    if len(rows) > ROWS:
        lines += ["", f"{len(rows) - ROWS} more series are not shown, none worse than {rows[ROWS].verdict}."]
    told = [_cell(text) for name, text in facts if name == "note"]
    lines += ["", *(f"- {text}" for text in told)] if told else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    escaped = re.sub(r"([\\`*_\[\]|])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;")
    return " ".join(escaped.split())


def _xml(text: str) -> str:
    return NOT_XML.sub("?", text)
