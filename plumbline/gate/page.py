"""The gate's page: every series with its verdict, the worst first, and the pairs that are drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from plumbline.base import units
from plumbline.base.units import counted
from plumbline.base.verdicts import EXIT
from plumbline.judge.decide import Verdict, closing
from plumbline.judge.statement import overall
from plumbline.show.pages import blocks
from plumbline.show.pages.blocks import Block, block, section
from plumbline.show.verdicts import SERIES, Row, worst_first
from plumbline.statistics.paired import LOOKS, PairedRule

#: facts that are said before anything else
HEAD = ("baseline", "candidate", "site", "host", "measured", "launches")
#: series whose pairs are drawn, the worst first; the table has them all
DRAWN = 200
#: pairs of a series that are drawn, the first ones
MOST_PAIRS = 1000
#: ratios are drawn within this factor of 1
FARTHEST = 1e100


def document(verdicts: Sequence[Verdict], rule: PairedRule, facts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The page; ``facts`` are shown as name and text. ``rule`` is that of series without margins of their own."""
    ordered = worst_first(verdicts)
    places = [place for place, item in enumerate(ordered) if item.ratio is not None][:DRAWN]
    drawn = [_pairs(f"pairs-{place}", ordered[place], ordered[place].pairs.judged_by(rule)) for place in places]
    rows = [
        Row(item.subject, item, f"#pairs-{place}" if place in places else None) for place, item in enumerate(ordered)
    ]
    counts = Counter(item.state for item in verdicts)
    state = overall(verdicts)
    without = (
        f"{len(ordered) - len(drawn)} series without a picture: nothing that could be judged, or better than the "
        f"{len(drawn)} worst."
    )
    first = [fact for fact in facts if fact[0] in HEAD]
    rest = [fact for fact in facts if fact[0] not in (*HEAD, "repeat")]
    commands = [
        [block("heading", name), block("command", text, label=name)] for name, text in facts if name == "repeat"
    ]
    circumstances = section(
        "circumstances", "Circumstances", "", blocks.facts("Circumstances of this gate", rest), *commands
    )
    return {
        "title": f"Gate: {state}",
        "heading": ["Gate: ", block("badge", state, verdict=state)],
        "head": [
            *([blocks.facts("What was compared", first)] if first else []),
            block("paragraph", closing(verdicts), id="closing"),
            block("tiles", *(block("tile", name, count=counts[name], verdict=name) for name in EXIT if counts[name])),
        ],
        "sections": [
            section(
                "series",
                "Series",
                "All series, the worst first. Ratio: candidate / baseline; each end of an interval is right with 99 %. "
                f"{rule}, where a series has no margins of its own.",
                SERIES.block(rows),
            ),
            section(
                "pairs",
                "Pairs",
                "Every pair that was measured, in the order measured. Open dots: disturbed pairs, which were measured "
                "again and do not count.",
                block("pictures", *drawn),
                len(ordered) > len(drawn) and block("note", without),
            ),
            *([circumstances] if facts else []),
        ],
    }


def _pairs(name: str, item: Verdict, rule: PairedRule) -> Block:
    """Each pair as a dot: those that count, then those that were measured again."""
    pairs = item.pairs
    tolerated, seen = (
        (1 + margin) ** (1 if pairs.better == "lower" else -1) for margin in (rule.tolerance, rule.must_detect)
    )
    baseline, candidate = (side.tolist()[:MOST_PAIRS] for side in pairs.counting)
    kept, count = [_ratio(*values) for values in zip(baseline, candidate, strict=True)], len(baseline)
    both = zip(pairs.baseline.superseded, pairs.candidate.superseded, strict=True)
    again = [(before, _ratio(first, second)) for (before, first), (_, second) in both]
    drawn = [*enumerate(kept, 1), *((before + 0.6, ratio) for before, ratio in again)]
    shown = [*(ratio for _, ratio in drawn), tolerated, seen, 1.0]
    room = math.exp(max(0.06 * math.log(max(shown) / min(shown)), 1e-6))
    return blocks.chart(
        item.subject,
        f"{item.state}. Above 1 is {'slower' if pairs.better == 'lower' else 'faster'}. {rule}; "
        f"dotted line: judging stopped after {counted(item.count, 'pair')}.",
        ["pair", blocks.number("candidate / baseline"), "note"],
        [
            *((place, units.ratio(ratio), "") for place, ratio in enumerate(kept, 1)),
            *(
                (None, units.ratio(ratio), f"disturbed before pair {before + 1}, measured again")
                for before, ratio in again
            ),
        ],
        id=name,
        height=260,
        series=[
            blocks.series(
                item.subject,
                None,
                [(row, *point) for row, point in enumerate(drawn)],
                hollow=list(range(count, len(drawn))),
            )
        ],
        x={"name": "pair", "min": 0, "max": max(count, LOOKS[0]) + 1},
        y={
            "name": "candidate / baseline",
            "type": "log" if max(shown) / min(shown) > 3 else "value",
            "min": min(shown) / room,
            "max": max(shown) * room,
        },
        marks=[
            {"yAxis": 1, "tone": "line-strong", "dash": "solid"},
            {"yAxis": tolerated, "tone": "warn", "dash": "dashed", "label": "tolerated", "place": "insideStartTop"},
            {"yAxis": seen, "tone": "bad", "dash": "dashed", "label": "must be seen", "place": "insideEndTop"},
            {"xAxis": item.count + 0.5, "tone": "muted", "dash": "dotted"},
        ],
    )


def _ratio(baseline: float, candidate: float) -> float:
    """Candidate over baseline, within the range that can be drawn."""
    return min(max(candidate / baseline, 1 / FARTHEST), FARTHEST) if baseline > 0 else FARTHEST
