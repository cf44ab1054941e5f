"""A contract, its plan and its verdict: as a text, as JSON, as a page; and an offer beside the delivery.

The sealed archive has contract, records, nodes, verdict and page, with the SHA-256 of each: whoever has it works the
verdict out again. A record that was changed is told by its own seal, a file by the list, and both together, with a new
list, by the archive's SHA-256 alone, which both parties write down.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from plumbline import __version__
from plumbline.base import files, schemas, sealed
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, dashed, digits, percent
from plumbline.extras.accept import model, verdict
from plumbline.extras.accept.model import NODE, Clause, Contract
from plumbline.extras.accept.verdict import MISSED, SHOWN, WORDS, Evidence, Judged, Part, closing
from plumbline.judge.statement import overall
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks, render
from plumbline.show.pages.blocks import Block, block, section
from plumbline.statistics.acceptance import AcceptanceRule

#: the member of a document that says which version of Plumbline made it
VERSION = "plumbline"
#: standard deviation of launches where nothing was measured yet, as a fraction
SPREAD = 0.02
#: a clause, its rule, and what was measured for it
Planned: TypeAlias = tuple[Clause, AcceptanceRule, Evidence]


def _value(value: float | None) -> str:
    return dashed(None if value is None else digits(value))


def _minutes(row: Planned) -> str:
    clause, rule, measured = row
    runs = rule.members if clause.over == NODE else 1
    return "?" if measured.seconds is None else digits(runs * rule.launches * measured.seconds / 60)


def _by(deviations: float | None, measured: Evidence) -> str:
    spread, mark = (SPREAD, "?") if measured.spread is None else (measured.spread, "")
    return "never" if deviations is None else percent(max(0.0, deviations) * spread) + mark


PLAN = Table[Planned](
    "Plan",
    [
        Column("clause", lambda row: row[0].name),
        Column(
            "members",
            lambda row: f"{counted(row[1].members, row[0].over.split()[-1])}, {row[1].allowed} may miss it",
        ),
        Column("launches", lambda row: row[1].launches, "number"),
        Column("minutes", _minutes, "number"),
        Column(
            "shown by",
            lambda row: f"{row[1].meeting} of {row[1].launches}, {row[1].members - row[1].allowed}",
            "number",
        ),
        Column(
            "missed by", lambda row: f"{row[1].missing} of {row[1].launches}, {row[1].failing or 'never'}", "number"
        ),
        Column("passes from", lambda row: _by(row[1].margin(), row[2]), "number"),
        Column("finds", lambda row: _by(row[1].detection_margin(), row[2]), "number"),
        Column("buyer", lambda row: percent(row[1].buyer), "number"),
        Column("vendor", lambda row: percent(row[1].vendor), "number"),
    ],
)
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
    whole=True,
)
#: a clause in an offer and at its delivery, and the values of both with their ratio
OFFER = Table[tuple[Judged, Judged, tuple[str, str, str]]](
    "Offer",
    [
        Column("clause", lambda row: row[1].subject),
        Column("promise", lambda row: row[1].clause.promise),
        Column("offered", lambda row: row[2][0], "number"),
        Column("delivered", lambda row: row[2][1], "number"),
        Column("ratio", lambda row: row[2][2], "number"),
        Column("offer", lambda row: row[0].word),
        Column("delivery", lambda row: row[1].word),
    ],
)


def plan(contract: Contract, evidence: Sequence[Evidence]) -> str:
    """The launches and limits of each clause, and the probability with which each fault is detected."""
    rules = [clause.rule(contract.node_count) for clause in contract.clauses]
    notes = [
        "shown by: launches of a member that must meet the limit, and members; missed by: launches that must miss it, "
        "and members, for the machine to fail",
        "passes from: how much better than the limit all members must be for the machine to pass at once in nine of "
        "ten tests; finds: how much worse so many bad members must be to be found in nine of ten",
        "buyer: the probability that a machine with one bad member too many passes; vendor: that a machine fails whose "
        "members all just meet the limit",
        *(
            [f"?: not measured yet: launches are taken to vary by {percent(SPREAD)} (standard deviation)"]
            if any(measured.spread is None for measured in evidence)
            else []
        ),
        # clauses that no single bad member too many fails
        *(
            f"{clause.name}: with {counted(rule.allowed + 1, 'bad member')} it is unknown; {needed} launches of each "
            "would show the failure"
            for clause, rule in zip(contract.clauses, rules, strict=True)
            if rule.failing != rule.allowed + 1 and (needed := rule.launches_failing())
        ),
    ]
    return "\n".join([PLAN.text(list(zip(contract.clauses, rules, evidence, strict=True))), "", *notes])


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
    subject = [
        clause.test,
        *(f"{name}={value}" for name, value in clause.params.items()),
        clause.stack,
        clause.figure,
        *(f"{name}={value}" for name, value in clause.where.items()),
    ]
    about = (
        f"{' '.join(subject)}: {clause.promise}, {clause.over}, confidence {clause.confidence:g}. {clause.note}".strip()
    )
    members = Table[Part](
        f"Members of {clause.name}",
        [
            Column("member", lambda part: part.name),
            Column("state", lambda part: part.state),
            Column("meet the limit", lambda part: f"{part.met} of {part.count}", "number"),
            Column("bound", lambda part: _value(part.bound), "number", clause.unit),
            Column("left out", lambda part: part.left_out),
        ],
        whole=True,
    )
    parts = sorted(verdict.parts, key=lambda part: (part.state == SHOWN, part.state != MISSED, part.name))
    rules = (
        f"A member is shown by {rule.meeting} of {rule.launches} launches that meet the limit, and shown to miss it by "
        f"{rule.missing} that do not; {rule.allowed} of {rule.members} may miss it."
    )
    return section(
        f"clause-{contract.clauses.index(clause)}",
        clause.name,
        about,
        block("paragraph", rules),
        members.block(parts, first=50, empty="nothing was measured"),
        block("note", f"records: {', '.join(verdict.measured.records)}") if verdict.measured.records else "",
    )


def beside(offered: Sequence[Judged], delivered: Sequence[Judged]) -> str:
    """The offer beside the delivery, by the machine's bound, or where one has none by the usual value."""
    return OFFER.text([(then, now, _compared(then, now)) for then, now in zip(offered, delivered, strict=True)])


def _compared(then: Judged, now: Judged) -> tuple[str, str, str]:
    first, second, kind = then.bound, now.bound, ""
    if first is None or second is None:
        first, second, kind = then.usual, now.usual, " (usual)"
    ratio = second / first if first and second is not None else None
    return _value(first) + kind, _value(second) + kind, _value(ratio)


CONTRACT, RECORDS, NODES, VERDICT, PAGE = "contract.yaml", "records.jsonl", "nodes.txt", "verdict.json", "page.html"
CURE = "plumb accept CONTRACT.yaml --archive FILE makes one"


@dataclass(frozen=True)
class Sealed:
    """The content of an archive, with the verdict on the contract worked out again from the records."""

    contract: Contract
    digest: str
    records: Sequence[Record]
    judged: Sequence[Judged]


def write(
    target: Path,
    file: Path,
    contract: Contract,
    records: Sequence[Record],
    judged: Sequence[Judged],
    nodes: Sequence[str],
) -> str:
    """Make the archive ``target`` of the contract in ``file``; returns its SHA-256."""
    digest = files.sha256(file)
    with files.writing("the archive", target), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / CONTRACT).write_bytes(file.read_bytes())
        store.write(folder / RECORDS, records)
        (folder / NODES).write_text("".join(f"{name}\n" for name in nodes), encoding="utf-8")
        (folder / VERDICT).write_text(as_json(contract, judged, digest), encoding="utf-8")
        (folder / PAGE).write_text(render(page(contract, judged, digest)), encoding="utf-8")
        return sealed.write(folder, target)


def read(source: Path, digest: str | None = None) -> Sealed:
    """Check an archive and judge its records again.

    Raises :class:`PlumbError` for one that is damaged or was changed, and where its verdict is another one.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        listed = sealed.sums(sealed.read(source, CURE, digest, folder)[sealed.SUMS])
        if missing := {CONTRACT, RECORDS, NODES, VERDICT, PAGE} - listed.keys():
            raise PlumbError(f"no {min(missing)} in the archive", str(source), CURE)
        contract = model.load(folder / CONTRACT)
        records = store.whole(folder / RECORDS, "do not use it")
        judged = verdict.judge(
            contract, records, (folder / NODES).read_text(encoding="utf-8", errors="replace").split()
        )
        try:
            parsed = schemas.parse_json((folder / VERDICT).read_bytes())
        except ValueError as error:
            raise PlumbError(f"its verdict cannot be read: {error}", str(source), "do not use it") from None
        stored = parsed if isinstance(parsed, dict) else {}
        now = document(contract, judged, listed[CONTRACT])
        if differing := [name for name in now if name != VERSION and stored.get(name) != now[name]]:
            value = json.dumps(now[differing[0]])
            short = value if len(value) < 80 else f"{value[:80]}…"
            raise PlumbError(
                f"its records do not give its verdict: {differing[0]} is {short}", str(source), "do not use it"
            )
        shown = render(page(contract, judged, listed[CONTRACT])).encode()
        if stored.get(VERSION) == now[VERSION] and (folder / PAGE).read_bytes() != shown:
            raise PlumbError("its page is not that of its records", str(source), "do not use it")
        return Sealed(contract, listed[CONTRACT], records, judged)
