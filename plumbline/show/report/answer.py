"""Is the machine fine? One sentence, each figure that is not as expected, and how near the others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plumbline.base import group
from plumbline.base.units import counted
from plumbline.judge.expectations import Expectation, called
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section
from plumbline.show.report.findings import Campaign

#: rows of the table, lanes of the picture, and faults in the sentence, at most
ROWS, MOST, NAMED = 12, 24, 3
#: end of the axis of percentages
LAST = 150


def answer(campaign: Campaign) -> Block:
    """The section that begins a report."""
    apart = sorted((each for each in campaign.first if each.state != "as expected"), key=lambda each: -each.times)
    # what a library adds to a message has no share of anything that the machine can do
    near = [each for each in campaign.first if each.kind not in (None, "library", "placement") and each.times]
    return section(
        "answer",
        "Is this machine fine?",
        "",
        block("paragraph", block("strong", sentence(campaign)), id="answer-sentence"),
        bool(apart)
        and EXPECTED.block(apart[:ROWS], targets=[campaign.numbers[each.record.id] for each in apart[:ROWS]]),
        len(apart) > ROWS and block("note", f"{len(apart) - ROWS} more are not as expected."),
        bool(near) and _picture(near, campaign.numbers),
    )


def sentence(campaign: Campaign) -> str:
    """Whether the machine is fine, by what is expected of its figures and by references; then what else is slow."""
    records = [record for record, _ in campaign.entries]
    if not campaign.first:
        return "Nothing can be said: no record is valid and has a figure."
    if campaign.disturbance:
        return f"Nothing can be said: {campaign.disturbance}, so that figures say little."
    states = Counter(each.state for each in campaign.first)
    invalid = len(records) - sum(record.is_valid for record in records)
    of_machine = [fault for fault in campaign.faults if fault.of_machine]
    others = [fault for fault in campaign.faults if not fault.of_machine]
    is_are, unknown = "is" if invalid == 1 else "are", states["no expectation"]
    wrong = [
        *map(str, of_machine[:NAMED]),
        *([f"{len(of_machine) - NAMED} more are slow"] if len(of_machine) > NAMED else []),
        *([f"{invalid} of {counted(len(records), 'variant')} {is_are} not valid"] if invalid else []),
    ]
    total = f"{states['as expected']} of {counted(len(campaign.first), 'figure')} are as expected"
    total += f", {unknown} {'has' if unknown == 1 else 'have'} no expectation" if unknown else ""
    besides = "; ".join(fault.short for fault in others[:NAMED])
    if wrong:
        return f"No: {'; '.join(wrong)}. {total}." + (f" Beyond the machine: {besides}." if besides else "")
    if not states["as expected"]:
        why = f"no figure is as expected; {campaign.first[0].state}: {campaign.first[0].about}"
        return f"Nothing can be said: {why}."
    return f"Yes, but {besides}. {total}." if besides else f"Yes: {total}."


EXPECTED = Table[Expectation](
    "Not as expected",
    [
        Column("variant", lambda row: called(row.record)),
        Column("stack", lambda row: row.record.stack.name),
        Column("figure", lambda row: row.figure.name),
        Column("value", lambda row: " ".join(row.figure.shown), "number"),
        Column("state", lambda row: f"{row.state}: {row.about}", "notes"),
    ],
)


def _picture(near: Sequence[Expectation], numbers: dict[str, int]) -> Block:
    """A lane for each test and placement, with a point for each stack."""
    colours = blocks.palette(each.record.stack.name for each in near)
    worst = {label: max(times) for label, times in group((called(each.record), each.times) for each in near).items()}
    labels = sorted(worst, key=lambda label: -worst[label])[:MOST][::-1]
    kept = sorted((each for each in near if called(each.record) in labels), key=lambda each: -each.times)
    more = len(worst) - len(labels)
    return NEAR.chart(
        "Reached, in percent of what is expected",
        f"First figures of memory and arithmetic, the worst first{f', {more} better ones left out' if more else ''}. "
        "Colour: stack.",
        kept,
        targets=[numbers[each.record.id] for each in kept],
        series=[
            blocks.series(
                name,
                colours[name],
                [
                    (place, min(_percent(each), LAST), labels.index(called(each.record)), f"{_percent(each):.0f} %")
                    for place, each in enumerate(kept)
                    if each.record.stack.name == name
                ],
                look={"type": "scatter", "symbolSize": 9},
            )
            for name in sorted(colours)
        ],
        legend=len(colours) > 1,
        height=90 + 22 * len(labels),
        wide=300,
        x={"name": "%", "type": "value", "min": 0, "boundaryGap": 0},
        y=blocks.lanes(labels),
    )


def _percent(each: Expectation) -> float:
    return 100 / each.times


NEAR = Table[Expectation](
    "Reached",
    [
        *EXPECTED.columns[:4],
        Column("of", lambda row: row.origin),
        Column("reached", lambda row: f"{_percent(row):.0f}", "number", "%"),
        Column("slow below", lambda row: f"{100 / row.limit:.0f}", "number", "%"),
    ],
)
