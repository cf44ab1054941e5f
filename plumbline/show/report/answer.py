"""Is the machine fine? One sentence, and each variant's figure beside what is expected of it, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plumbline.base import group
from plumbline.base.units import counted
from plumbline.judge.references.match import side
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Record
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section
from plumbline.show.report.findings import Campaign

#: variants in the picture, the worst ones
MOST = 24
#: end of the axis of percentages; a figure beyond it has a reference that is far too low
LAST = 200


def answer(campaign: Campaign) -> Block:
    """The section that begins a report."""
    known = [(record, entry) for record, entry in campaign.usable if _percent(record.figures[0]) is not None]
    # nobody expects what is slow on purpose at a limit, but its own reference may be expected
    shown = [item for item in known if not item[0].is_slow_on_purpose or item[0].figures[0].reference]
    return section(
        "answer",
        "Is this machine fine?",
        "",
        block("paragraph", block("strong", sentence(campaign)), id="answer-sentence"),
        bool(shown) and _picture(shown, len(known) - len(shown)),
    )


def sentence(campaign: Campaign) -> str:
    """The faults of the campaign, or that there are none, as far as the figures have references."""
    records, usable = [record for record, _ in campaign.entries], campaign.usable
    if not usable:
        return "Nothing can be said: no record is valid and has a figure."
    expected = [figure for record, _ in usable for figure in record.figures if figure.reference]
    below = sum(side(figure) == "below" for figure in expected)
    low = len(campaign.far)
    invalid = len(records) - sum(record.is_valid for record in records)
    of = [
        (invalid, f"of {counted(len(records), 'variant')}", "not valid"),
        (below, f"of {counted(len(expected), 'figure')} with a reference", "below it"),
        (low, f"{'test' if low == 1 else 'tests'} of memory or arithmetic", "far from what the machine can do"),
    ]
    wrong = [f"{number} {which} {'is' if number == 1 else 'are'} {fault}" for number, which, fault in of if number]
    launches = [launch for record in records for launch in record.launches]
    disturbed = sum(launch.disturbed for launch in launches)
    if 2 * disturbed > len(launches):
        wrong.append(f"{disturbed} of {counted(len(launches), 'launch')} were disturbed, so that figures say little")
    unknown = "No figure has a reference, so nothing says how fast this machine should be: plumb calibrate makes them"
    if wrong:
        return f"Not everything: {'; '.join(wrong)}." + ("" if expected else f" {unknown}.")
    start = f"All {counted(len(records), 'variant')} are verified" if len(records) > 1 else "The variant is verified"
    if not expected:
        return f"{start}, and no benchmark of memory or arithmetic falls short. {unknown}."
    figures = f"none of {counted(len(expected), 'figure')} with a reference is below it"
    return f"Yes: {start[0].lower()}{start[1:]}, and {figures}."


def _percent(figure: Figure) -> float | None:
    """Percent of the reference, more being better; without one, of the limit or ceiling; None with neither."""
    if figure.reference is not None and figure.value > 0 and figure.reference.value > 0:
        share = figure.value / figure.reference.value
        return 100 * (share if figure.better == "higher" else 1 / share)
    return figure.reached.percent if figure.reached else None


class Reached(NamedTuple):
    """A record, its name in the picture, its entry, and percent of what is expected of it."""

    label: str
    record: Record
    entry: int
    percent: float


REACHED = Table[Reached](
    "Reached",
    [
        Column("variant", lambda row: row.label),
        Column("stack", lambda row: row.record.stack.name),
        Column("figure", lambda row: row.record.figures[0].name),
        Column("value", lambda row: " ".join(row.record.figures[0].shown), "number"),
        Column("reached", lambda row: f"{row.percent:.1f}", "number", "%"),
        Column("of", lambda row: _bound(row.record.figures[0])),
    ],
)


def _bound(figure: Figure) -> str | None:
    return "reference" if figure.reference else figure.reached.bound if figure.reached else None


def _picture(shown: Sequence[tuple[Record, int]], slow: int) -> Block:
    """A lane for each test and placement, with a point for each stack; ``slow`` variants are left out on purpose."""
    colours = blocks.palette(record.stack.name for record, _ in shown)
    values = [
        Reached(
            f"{naming.name(record.variant)}, {naming.placement(record.placement)}",
            record,
            entry,
            _percent(record.figures[0]) or 0.0,
        )
        for record, entry in shown
    ]
    worst = {label: min(reached) for label, reached in group((row.label, row.percent) for row in values).items()}
    labels = sorted(worst, key=lambda label: worst[label])[:MOST][::-1]
    kept = sorted((row for row in values if row.label in labels), key=lambda row: row.percent)
    more = len(worst) - len(labels)
    aside = f"{counted(slow, 'variant')} that {'is' if slow == 1 else 'are'} slow on purpose (no placement, far memory)"
    return REACHED.chart(
        "Reached, in percent",
        "The first figure of each variant: of its reference, else of the physical limit or of what the machine reached "
        f"at set-up; the worst first{f', {more} better ones are left out' if more else ''}. "
        + (f"Not here: {aside}. " if slow else "")
        + "Colour: stack.",
        kept,
        targets=[row.entry for row in kept],
        series=[
            blocks.series(
                name,
                colours[name],
                [
                    (place, min(row.percent, LAST), labels.index(row.label), f"{row.percent:.1f} %")
                    for place, row in enumerate(kept)
                    if row.record.stack.name == name
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
