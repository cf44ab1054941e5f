"""A contract, its plan and its verdict: as a text, as JSON, as a page; and an offer beside the delivery."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plumbline import __version__
from plumbline.base.table import table
from plumbline.base.units import counted, digits, percent
from plumbline.extras.accept.evidence import Evidence
from plumbline.extras.accept.model import NODE, Clause, Contract
from plumbline.extras.accept.verdict import MISSED, SHOWN, WORDS, Judged, closing
from plumbline.judge.statement import overall
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section

#: the member of a document that says which version of Plumbline made it
VERSION = "plumbline"
#: standard deviation of launches where nothing was measured yet, as a fraction
SPREAD = 0.02
PLAN = ("clause", "members", "launches", "minutes", "shown by", "missed by", "passes from", "finds", "buyer", "vendor")
OFFER = ("clause", "promise", "offered", "delivered", "ratio", "offer", "delivery")


def _value(value: float | None) -> str:
    return "–" if value is None else digits(value)


CLAUSES = Table[Judged](
    "Clauses",
    [
        Column("clause", lambda verdict: verdict.subject),
        Column("over", lambda verdict: verdict.clause.over),
        Column("promise", lambda verdict: verdict.clause.promise),
        Column("bound", lambda verdict: _value(verdict.bound), "number"),
        Column("usual", lambda verdict: _value(verdict.usual), "number", spare=1),
        Column("shown", lambda verdict: f"{len(verdict.of(SHOWN))} of {verdict.members}", "number"),
        Column("launches", lambda verdict: str(verdict.count), "number", spare=2),
        Column(
            "verdict",
            lambda verdict: verdict.word,
            page=lambda verdict: block("badge", verdict.word, verdict=verdict.state),
        ),
        Column("what", lambda verdict: verdict.explanation, "notes"),
    ],
)


def plan(contract: Contract, evidence: Sequence[Evidence]) -> str:
    """The launches and limits of each clause, and the probability with which each fault is detected."""
    rows = [_planned(clause, contract, measured) for clause, measured in zip(contract.clauses, evidence, strict=True)]
    notes = [
        "shown by: launches of a member that must meet the limit, and members; missed by: launches that must miss it, "
        "and members, for the machine to fail",
        "passes from: how much better than the limit all members must be for the machine to pass at once in nine of "
        "ten tests; finds: how much worse so many bad members must be to be found in nine of ten",
        "buyer: the probability that a machine with one bad member too many passes; vendor: that a machine fails whose "
        "members all just meet the limit",
    ]
    if any(measured.spread is None for measured in evidence):
        notes.append(f"?: not measured yet: launches are taken to vary by {percent(SPREAD)} (standard deviation)")
    return "\n".join([table(PLAN, rows, right=PLAN[2:]), "", *notes, *_single(contract)])


def _planned(clause: Clause, contract: Contract, measured: Evidence) -> tuple[str, ...]:
    rule = clause.rule(contract.node_count)
    spread, mark = (SPREAD, "?") if measured.spread is None else (measured.spread, "")
    runs = rule.members if clause.over == NODE else 1
    minutes = "?" if measured.seconds is None else digits(runs * rule.launches * measured.seconds / 60)

    def by(deviations: float | None) -> str:
        return "never" if deviations is None else percent(max(0.0, deviations) * spread) + mark

    return (
        clause.name,
        f"{counted(rule.members, clause.over.split()[-1])}, {rule.allowed} may miss it",
        str(rule.launches),
        minutes,
        f"{rule.meeting} of {rule.launches}, {rule.members - rule.allowed}",
        f"{rule.missing} of {rule.launches}, {rule.failing or 'never'}",
        by(rule.margin()),
        by(rule.detection_margin()),
        percent(rule.buyer),
        percent(rule.vendor),
    )


def _single(contract: Contract) -> list[str]:
    """Of clauses that no single bad member too many fails: with how many launches it would."""
    notes = []
    for clause in contract.clauses:
        rule = clause.rule(contract.node_count)
        if rule.failing != rule.allowed + 1 and (needed := rule.launches_failing()):
            bad_members = counted(rule.allowed + 1, "bad member")
            notes.append(
                f"{clause.name}: with {bad_members} it is unknown; {needed} launches of each would show the failure"
            )
    return notes


def text(contract: Contract, judged: Sequence[Judged]) -> str:
    """A row for each clause, and the line that ends it."""
    head = f"{contract.machine}, {counted(contract.node_count, 'node')}, {contract.vendor}"
    return "\n\n".join([head, CLAUSES.text(judged), closing(judged)])


def document(contract: Contract, judged: Sequence[Judged], digest: str) -> dict[str, Any]:
    """All that was found; ``digest`` is the SHA-256 of the contract. The same records give the same."""
    return {
        "machine": contract.machine,
        "vendor": contract.vendor,
        "contract": digest,
        "verdict": WORDS[overall(judged)],
        "clauses": [verdict.to_dict() for verdict in judged],
        "stacks": _stacks(judged),
        VERSION: __version__,
    }


def _stacks(judged: Sequence[Judged]) -> list[str]:
    """The states of stacks that were measured."""
    return sorted({stack for verdict in judged for stack in verdict.measured.stacks})


def as_json(contract: Contract, judged: Sequence[Judged], digest: str) -> str:
    """:func:`document` as a text."""
    return json.dumps(document(contract, judged, digest), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def page(contract: Contract, judged: Sequence[Judged], digest: str) -> Block:
    """The page: verdict, clauses, their members, and the records behind them."""
    word = WORDS[overall(judged)]
    facts = [
        ("machine", contract.machine),
        ("nodes", str(contract.nodes)),
        ("vendor", contract.vendor),
        ("offer", contract.offer),
        ("contract, SHA-256", digest),
        ("stacks", "; ".join(_stacks(judged)) or None),
        ("judged by", f"plumb {__version__}"),
    ]
    return {
        "title": f"Acceptance of {contract.machine}: {word}",
        "heading": [f"Acceptance of {contract.machine}: ", block("badge", word, verdict=overall(judged))],
        "head": [block("paragraph", closing(judged), id="closing"), blocks.facts("What was promised", facts)],
        "sections": [
            section(
                "clauses",
                "Clauses",
                "Bound: the best limit that these launches show to be met; usual: the median of the members.",
                CLAUSES.block(judged),
            ),
            *(_clause(verdict, contract) for verdict in judged),
        ],
    }


def _clause(verdict: Judged, contract: Contract) -> Block:
    clause, rule = verdict.clause, verdict.clause.rule(contract.node_count)
    subject = [clause.test, *(f"{name}={value}" for name, value in clause.params.items()), clause.stack, clause.figure]
    subject += [f"{name}={value}" for name, value in clause.where.items()]
    about = (
        f"{' '.join(subject)}: {clause.promise}, {clause.over}, confidence {clause.confidence:g}. {clause.note}".strip()
    )
    members = [
        (part.name, part.state, f"{part.met} of {part.count}", _value(part.bound), part.left_out)
        for part in sorted(verdict.parts, key=lambda part: (part.state == SHOWN, part.state != MISSED, part.name))
    ]
    rules = (
        f"A member is shown by {rule.meeting} of {rule.launches} launches that meet the limit, and shown to miss it by "
        f"{rule.missing} that do not; {rule.allowed} of {rule.members} may miss it."
    )
    columns = ["member", "state", blocks.number("meet the limit"), blocks.number("bound", clause.unit), "left out"]
    return section(
        f"clause-{contract.clauses.index(clause)}",
        clause.name,
        about,
        block("paragraph", rules),
        blocks.table(f"Members of {clause.name}", columns, members, first=50, empty="nothing was measured"),
        block("note", f"records: {', '.join(verdict.measured.records)}") if verdict.measured.records else "",
    )


def beside(offered: Sequence[Judged], delivered: Sequence[Judged]) -> str:
    """The offer beside the delivery, by the machine's bound, or where one has none by the usual value."""
    rows = []
    for then, now in zip(offered, delivered, strict=True):
        first, second, kind = then.bound, now.bound, ""
        if first is None or second is None:
            first, second, kind = then.usual, now.usual, " (usual)"
        ratio = "–" if not first or second is None else digits(second / first)
        values = [_value(first) + kind, _value(second) + kind]
        rows.append((now.subject, now.clause.promise, *values, ratio, then.word, now.word))
    return table(OFFER, rows, right=OFFER[2:5])
