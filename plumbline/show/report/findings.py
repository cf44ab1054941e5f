"""The findings of a campaign, in words: rules make them from its records, worst first.

A rule is a function that yields :class:`CampaignFinding`; a page has those of :data:`RULES`, in this order.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plumbline.base import group, units
from plumbline.judge import agreement, hybrid
from plumbline.judge.agreement import Claim
from plumbline.judge.compare import Cell, Comparison, Line, Side, compare
from plumbline.judge.expectations import Expectation, Fault, called, disturber, expectations, faults
from plumbline.records.launch import kind as kind_of
from plumbline.records.model import Record
from plumbline.show.compare import figures
from plumbline.show.pages.blocks import Block, block, link, section
from plumbline.show.record import map_costs

#: findings of one rule that a page shows: the largest
MOST = 5
#: smallest ratio between two stacks or placements that is a finding
NOTABLE = 1.25
#: words of a remark by which a kernel says that a figure falls short
SHORT = "likely cause"
#: how a remark begins by which a kernel says that its warm-up ended before its calls took the same time
UNSTEADY = "not steady"
#: the next step where most launches were disturbed
AGAIN = "plumb campaign when nothing else runs; plumb doctor says what disturbs"


class CampaignFinding(NamedTuple):
    """``text`` is a sentence without its full stop, ``entry`` the number of the record that shows it best.

    Of a rule's findings those with the largest ``weight`` come first.
    """

    text: str
    entry: int | None
    weight: float = 0.0


@dataclass(frozen=True)
class Campaign:
    """The input of the rules: records with the numbers of their entries."""

    entries: Sequence[tuple[Record, int]]

    @functools.cached_property
    def usable(self) -> list[tuple[Record, int]]:
        """The entries that are valid and have figures."""
        return [(record, number) for record, number in self.entries if record.is_valid and record.figures]

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each record's entry, by the record's id."""
        return {record.id: number for record, number in self.entries}

    @functools.cached_property
    def expected(self) -> list[Expectation]:
        """What is expected of each figure of the valid records."""
        return expectations(record for record, _ in self.usable)

    @functools.cached_property
    def first(self) -> list[Expectation]:
        """What is expected of the first figure of each of these records, that which tables show."""
        return [each for each in self.expected if each.figure is each.record.figures[0]]

    @functools.cached_property
    def faults(self) -> list[Fault]:
        """What is slow, and what may explain it; nothing where most launches were disturbed."""
        return [] if self.disturbance else faults(self.expected)

    @functools.cached_property
    def disturbance(self) -> str:
        """How many launches were disturbed, and by which causes, where most were: figures say little; else empty."""
        records = [record for record, _ in self.entries]
        launches = sum(record.launch_count for record in records)
        hit = sum(record.disturbed_count for record in records)
        counted = f"{hit} of {units.counted(launches, 'launch')} were disturbed"
        return f"{counted} ({disturber(records)})" if 2 * hit > launches else ""

    @functools.cached_property
    def disagreements(self) -> list[tuple[Claim, Claim]]:
        """Tests that measure the same quantity on the same cores and do not agree."""
        return agreement.disagreements([record for record, _ in self.usable])

    @functools.cached_property
    def comparison(self) -> Comparison | None:
        """The stacks side by side; None for a single stack. Figures on which two tests disagree are left out."""
        names = sorted({record.stack.name for record, _ in self.usable})
        sides = [Side(name, (("stack", name),)) for name in names]
        doubtful = agreement.doubtful(self.disagreements)
        return compare([record for record, _ in self.usable], sides, doubtful=doubtful) if len(sides) > 1 else None


def findings(campaign: Campaign) -> Block:
    """The findings of all rules, at most :data:`MOST` of each."""
    listed = [finding for rule in RULES for finding in ranked(rule(campaign))[:MOST]]
    return section(
        "findings",
        "Findings",
        "What stands out in this campaign, by fixed rules.",
        listed and block("bullets", *(link(f"{finding.text}.", entry=finding.entry) for finding in listed)),
        otherwise="Nothing stands out.",
    )


def ranked(items: Iterable[CampaignFinding]) -> list[CampaignFinding]:
    """The findings by their weight, those of equal weight in their order."""
    return sorted(items, key=lambda finding: -finding.weight)


def stacks(campaign: Campaign) -> Block:
    """The campaign's stacks in one table."""
    comparison = campaign.comparison if campaign.comparison and campaign.comparison.lines else None
    return section(
        "stacks",
        "Stacks side by side",
        "The first figure of each test on each stack, and its ratio to the first stack that has it.",
        comparison and figures(comparison, {record.id: number for record, number in campaign.usable}),
        otherwise="No test of this campaign ran with two stacks; plumb stack install makes more.",
    )


def not_valid(campaign: Campaign) -> Iterator[CampaignFinding]:
    """How many records are not valid, and why the first of them is not."""
    bad = [(record, number) for record, number in campaign.entries if not record.is_valid]
    if bad:
        record, number = bad[0]
        why = f": {record.faults[0]}" if record.faults else ""
        first = f"the first is {called(record)} on {record.stack.name}{why}"
        count = f"{len(bad)} of {units.counted(len(campaign.entries), 'record')}"
        yield CampaignFinding(f"{count} are not valid; {first}", number)


def not_as_expected(campaign: Campaign) -> Iterator[CampaignFinding]:
    """What is slow, by :mod:`plumbline.judge.expectations`; another rule has what runs without placement."""
    for place, fault in enumerate(campaign.faults):
        if fault.worst.kind != "placement":
            yield CampaignFinding(str(fault), campaign.numbers[fault.worst.record.id], -place)


def unbound(campaign: Campaign) -> Iterator[CampaignFinding]:
    """The loss of a test where nothing is bound, against its best placement with as many ranks and threads."""
    for alike in group((_but_for_placement(item[0]), item) for item in campaign.usable).values():
        bound = [item[0].figures[0] for item in alike if item[0].plan.bound is not False]
        for record, number in (item for item in alike if item[0].plan.bound is False):
            figure = record.figures[0]
            others = [placed.value for placed in bound if placed.name == figure.name]
            if not others or min(figure.value, *others) <= 0:  # an overlap of 0 % has no ratio to anything
                continue
            ratio = figure.value / (max(others) if figure.better == "higher" else min(others))
            worse = 1 / ratio if figure.better == "higher" else ratio
            if worse >= NOTABLE:
                loss = f"loses {100 * (1 - ratio):.0f} %" if figure.better == "higher" else f"takes {ratio:.1f} times"
                text = f"{record.stack.name} without placement {loss} of the best placement's {figure.name}"
                yield CampaignFinding(f"{text}: {called(record)}, {' '.join(figure.shown)}", number, worse)


def _but_for_placement(record: Record) -> str:
    """The key that the control without placement and its counterpart share."""
    placed, free = record.placement, ("placement", "memory", "threads")
    params = {name: value for name, value in record.variant.params.items() if name not in free}
    size = (placed.threads, placed.ranks_per_node, placed.nodes)
    return repr((record.site, record.partition, record.variant.test, record.stack.name, size, sorted(params.items())))


def stacks_apart(campaign: Campaign) -> Iterator[CampaignFinding]:
    """The tests in which stacks differ most, as far as a difference may be claimed; each test once."""
    if campaign.comparison is None:
        return
    widest: dict[str, CampaignFinding] = {}
    for line in campaign.comparison.lines:
        if (apart := _extremes(line)) is None:
            continue
        (_, best), (_, worst) = apart
        ratio = max(best.value, worst.value) / min(best.value, worst.value)
        if ratio < NOTABLE or (line.key.test in widest and ratio <= widest[line.key.test].weight):
            continue
        values = " and ".join(
            f"{' '.join(units.human(cell.value, line.unit, cell.step))} on {campaign.comparison.sides[side]}"
            for side, cell in apart
        )
        text = f"{line.key.variant} ({line.key.placement}): {line.key.figure} is {values}, {ratio:.1f} times apart"
        widest[line.key.test] = CampaignFinding(text, campaign.numbers.get(worst.records[-1]), ratio)
    yield from widest.values()


def hybrid_or_pure(campaign: Campaign) -> Iterator[CampaignFinding]:
    """Which of the best hybrid and the best pure MPI code wins, where one does."""
    for verdict in hybrid.verdicts([record for record, _ in campaign.usable]):
        if verdict.state in (hybrid.HYBRID, hybrid.MPI):
            ratio = f"{units.ratio(verdict.ratio)} [{units.interval(verdict.interval)}] times as fast"
            codes = f"the best hybrid code ({hybrid.how(verdict.hybrid)}) is {ratio} as the best pure MPI code"
            text = f"{verdict.subject} on {verdict.pure.stack.name}: {codes}"
            yield CampaignFinding(f"{text} ({hybrid.how(verdict.pure)})", campaign.numbers[verdict.hybrid.id])


def maps_of_ranks(campaign: Campaign) -> Iterator[CampaignFinding]:
    """Bytes that maps of ranks send between nodes, against the best map; equal findings of several records once."""
    costs = [(f"{called(record)}: {cost}", number) for record, number in campaign.usable for cost in map_costs(record)]
    for text, numbers in group(costs).items():
        yield CampaignFinding(text, numbers[0])


def disturbed(campaign: Campaign) -> Iterator[CampaignFinding]:
    """The number of disturbed launches, and the most common cause."""
    launches = [launch for record, _ in campaign.entries for launch in record.counting()]
    hit = [launch for launch in launches if launch.disturbed]
    if not hit:
        return
    kinds = Counter(kind for launch in hit for kind in {kind_of(cause) for cause in launch.disturbance.causes})
    causes = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(3))
    text = f"{len(hit)} of {units.counted(len(launches), 'launch')} were disturbed: {causes}"
    yield CampaignFinding(f"{text}; next: {AGAIN}" if campaign.disturbance else text, None)


def shortfalls(campaign: Campaign) -> Iterator[CampaignFinding]:
    """Remarks of programs on figures that are unsteady or fall short of their possible value, each cause once.

    The percentage is the record's, as in all views: a remark has that of one launch.
    """
    seen: set[str] = set()
    for record, number in campaign.usable:
        figure = record.figures[0]
        for remark in dict.fromkeys(text for launch in record.counting() for text in launch.remarks):
            before, short, cause = remark.partition(SHORT)
            kind = re.sub(r"[\d.]+", "#", cause)
            if short and kind not in seen:
                seen.add(kind)
                reaches = f"reaches {figure.reached}" if figure.reached else "falls short"
                statement = before.rstrip("; ") if before.startswith(UNSTEADY) else f"{figure.name} {reaches}"
                yield CampaignFinding(f"{called(record)} on {record.stack.name}: {statement}; {short}{cause}", number)


def contradictions(campaign: Campaign) -> Iterator[CampaignFinding]:
    """Tests that measure the same quantity on the same cores and stack and do not agree; two tests and a stack once."""
    alike = group(
        ((frozenset(claim.record.variant.test for claim in pair), pair[0].record.stack.name, pair[0].quantity), pair)
        for pair in campaign.disagreements
    )
    for pair, *_ in alike.values():
        first, _ = pair
        values = " and ".join(
            f"{' '.join(units.human(each.value, each.samples.first.unit, each.samples.step))} by {called(each.record)}"
            for each in pair
        )
        cpus = " and ".join(map(str, first.cpus))
        text = f"{first.quantity.name} between CPUs {cpus} on {first.record.stack.name} is {values}"
        yield CampaignFinding(
            f"these two disagree: {text}; neither is used to compare stacks", campaign.numbers[first.record.id]
        )


RULES = (
    not_valid,
    not_as_expected,
    unbound,
    shortfalls,
    contradictions,
    stacks_apart,
    hybrid_or_pure,
    maps_of_ranks,
    disturbed,
)


def _extremes(line: Line) -> tuple[tuple[int, Cell], tuple[int, Cell]] | None:
    """The best and the worst side of a line whose difference is claimed; None without such a pair."""
    present = [(number, cell) for number, cell in enumerate(line.cells) if cell and cell.has_ratio]
    present.sort(key=lambda item: item[1].value, reverse=line.better == "higher")
    best = [item for item in present if item[0] in line.best]
    worse = [item for item in present if item[0] not in line.best]
    return (best[0], worse[-1]) if best and worse else None
