"""Which pairs are measured again: those with a disturbed launch, up to a number that depends on counts only.

A launch is disturbed by causes outside of it (:mod:`plumbline.witness.disturbance`), never by its value, and nothing
here looks at a value: of two equal candidates neither has an advantage, and the test keeps its level. All launches stay
in the records, those of a pair that was measured again with ``"superseded": true``.
"""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.records.model import Launch
from plumbline.statistics.paired import CAP

#: pairs measured again, at most, in all ...
MOST = CAP // 2
#: ... and beyond half of the pairs that count so far: a host that is always disturbed costs half as much again
AHEAD = 3


def is_due(verified: bool, disturbed: bool, kept: int, replaced: int) -> bool:
    """Whether a pair is to be measured again, after ``kept`` pairs that count and ``replaced`` that do not.

    ``verified``: both of its launches are; a launch that is not is never replaced: it makes its variant INVALID.
    ``disturbed``: one of them is.
    """
    return verified and disturbed and replaced < min(MOST, AHEAD + kept // 2)


def is_pair_due(pair: tuple[Launch, Launch], kept: int, replaced: int) -> bool:
    """Whether the launches of ``pair`` are to be measured again, by :func:`is_due`."""
    return is_due(all(launch.verified for launch in pair), any(launch.disturbed for launch in pair), kept, replaced)


def faults(pairs: Sequence[tuple[Launch, Launch]]) -> list[str]:
    """Why the marks of these pairs, in order, are not those that :func:`is_due` gives; empty if they are.

    Without any mark all pairs count: ``plumb launch`` measures none again.
    """
    if not any(launch.superseded for pair in pairs for launch in pair):
        return []
    kept = replaced = 0
    for pair in pairs:
        wanted = is_pair_due(pair, kept, replaced)
        if any(launch.superseded != wanted for launch in pair):
            done = "was not measured again" if wanted else "was measured again"
            return [f"the pair of launches {pair[0].order} and {pair[1].order} {done} against the rule"]
        replaced += wanted
        kept += not wanted
    return []
