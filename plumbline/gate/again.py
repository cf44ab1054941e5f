"""Which pairs are measured again: those with a disturbed launch, up to a number that depends on counts only.

A launch is disturbed by causes outside of it (:mod:`plumbline.witness.disturbance`), never by its value, and nothing
here looks at a value: of two equal candidates neither has an advantage, and the test keeps its level. All launches stay
in the records, those of a pair that was measured again with ``"superseded": true``.
"""

from __future__ import annotations

from typing import Any

from plumbline.gate.sequential import CAP

#: pairs measured again, at most, in all ...
MOST = CAP // 2
#: ... and beyond half of the pairs that count so far: a host that is always disturbed costs half as much again
AHEAD = 3


def due(baseline: dict[str, Any], candidate: dict[str, Any], kept: int, aside: int) -> bool:
    """Whether this pair is to be measured again, after ``kept`` pairs that count and ``aside`` that do not.

    A launch that is not verified is never replaced: it makes its variant INVALID.
    """
    if not (baseline["verified"] and candidate["verified"]):
        return False
    return (baseline["disturbed"] or candidate["disturbed"]) and aside < min(MOST, AHEAD + kept // 2)


def superseded(launch: dict[str, Any]) -> bool:
    """Whether ``launch`` belongs to a pair that was measured again."""
    return bool(launch.get("superseded", False))


def faults(baseline: list[dict[str, Any]], candidate: list[dict[str, Any]]) -> list[str]:
    """Why the marks of these launches, pairs in order, are not those that :func:`due` gives; empty if they are.

    Without any mark all pairs count: ``plumb launch`` measures none again.
    """
    if not any(map(superseded, (*baseline, *candidate))):
        return []
    kept = aside = 0
    for first, second in zip(baseline, candidate, strict=True):
        wanted = due(first, second, kept, aside)
        if superseded(first) != wanted or superseded(second) != wanted:
            done = "was not measured again" if wanted else "was set aside"
            return [f"the pair of launches {first['order']} and {second['order']} {done} against the rule"]
        aside += wanted
        kept += not wanted
    return []
