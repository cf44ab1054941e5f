"""The data of the gate's page: every series with its verdict, the worst first, and the pairs that are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from plumbline.judge.decide import Verdict, closing
from plumbline.judge.pairs import Pairs
from plumbline.judge.statement import overall
from plumbline.statistics.sequential import LOOKS, Rule
from plumbline.verdicts import EXIT, severity

#: series whose pairs are drawn, the worst first; the table has them all
DRAWN = 200
#: pairs of a series that are drawn, the first ones
MOST_PAIRS = 1000
#: ratios are drawn within this factor of 1
FARTHEST = 1e100


def document(
    pairs: Sequence[Pairs], verdicts: Sequence[Verdict], rule: Rule, facts: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """The data of the page ``gate``; ``verdicts`` has the verdict of each of ``pairs``, in the same order.

    ``facts`` are shown as name and text. ``rule`` is that of series without margins of their own.
    """
    found = sorted(zip(pairs, verdicts, strict=True), key=lambda both: severity(both[1].state), reverse=True)
    drawn = [item.subject for _, item in found if item.ratio is not None][:DRAWN]
    counts = Counter(item.state for item in verdicts)
    return {
        "title": f"Gate: {overall(verdicts)}",
        "verdict": overall(verdicts),
        "counts": {state: counts[state] for state in EXIT if counts[state]},
        "closing": closing(verdicts),
        "margins": str(rule),
        "facts": [list(fact) for fact in facts],
        "first_look": LOOKS[0],
        "series": [_series(both, item, both.judged_by(rule), item.subject in drawn) for both, item in found],
    }


def _series(pairs: Pairs, item: Verdict, rule: Rule, drawn: bool) -> dict[str, Any]:
    worse = 1 if pairs.better == "lower" else -1
    made = {
        "name": item.subject,
        "better": pairs.better,
        "verdict": item.state,
        "ratio": item.ratio,
        "interval": item.interval,
        "pairs": item.count,
        "again": len(pairs.superseded),
        "ruled_out": item.ruled_out,
        "reason": item.reason,
    }
    if not drawn:
        return made
    count = min(pairs.counting, MOST_PAIRS)
    kept = zip(pairs.baseline[:count], pairs.candidate[:count], strict=True)
    return made | {
        "margins": str(rule),
        "tolerance": (1 + rule.tolerance) ** worse,
        "must_detect": (1 + rule.must_detect) ** worse,
        "ratios": [_ratio(*values) for values in kept],
        "superseded": [[before, _ratio(baseline, candidate)] for before, baseline, candidate in pairs.superseded],
    }


def _ratio(baseline: float, candidate: float) -> float:
    """Candidate over baseline, within what can be drawn."""
    return min(max(candidate / baseline, 1 / FARTHEST), FARTHEST) if baseline > 0 else FARTHEST
