"""Whether a variant was disturbed on one side, or in most pairs: then the disturbance may be the difference.

The flags show only a part of what disturbs: where one side is flagged more often than chance explains, the pairs
without a flag are in doubt too. Only causes and counts are looked at, never a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plumbline.records.model import Launch

#: level of the test: the share of variants, disturbed equally often on both sides, for which it says they are not
ERROR = 0.01
#: the same where the gate stops for it, at any of its looks: the error of a FAIL
LASTING = 0.001
#: option that claims that the candidate's own threads disturb it
OPTION = "--disturbed-by-itself"


@dataclass(frozen=True)
class Disturbed:
    """How much of a variant was disturbed; two numbers are those of baseline and candidate.

    ``launches`` and ``alone`` (pairs of which only this side was) are of all ``pairs``, those included that were
    measured again; ``restless`` of the ``counting`` ones have a disturbed launch. With ``by_itself``, the claim that
    the candidate disturbs itself, only a disturbed baseline makes a pair restless.
    """

    pairs: int
    launches: tuple[int, int]
    alone: tuple[int, int]
    counting: int
    restless: int
    by_itself: bool = False

    def doubt(self, together: tuple[int, int] = (0, 0)) -> str | None:
        """Why neither PASS nor FAIL may be given, or None. ``together`` is :func:`together` of the gate's variants."""
        found = self._one_sided(self.alone, f"of {self.pairs} launches each")
        if not found and 2 * self.restless > self.counting:
            return f"{self.restless} of the {self.counting} pairs that count were disturbed: measure on a quiet host"
        if not found and (together[0] - together[1]) * (self.alone[0] - self.alone[1]) > 0:
            return self._one_sided(together, "of the launches of all variants")
        return found

    def lasting(self) -> str | None:
        """A doubt that more pairs would hardly remove, or None: by chance it comes up in one of 1000 looks."""
        quiet = self.counting - self.restless
        mostly = self.restless > quiet and two_sided(self.restless, quiet) <= 2 * LASTING
        return self.doubt() if mostly else self._one_sided(self.alone, f"of {self.pairs} launches each", LASTING)

    def _one_sided(self, alone: tuple[int, int], what: str, error: float = ERROR) -> str | None:
        which, p = int(alone[1] > alone[0]), two_sided(*alone)
        if p > error or (which and self.by_itself):
            return None
        names = ("baseline", "candidate")
        claim = f"; if its own threads did it, claim {OPTION}" if which else ""
        often, seldom = f"{alone[which]} times the {names[which]}", f"{alone[1 - which]} times the {names[1 - which]}"
        return f"{what} {often} alone was disturbed, {seldom}: no chance (p = {p:.1g}){claim}"


def of(pairs: Sequence[tuple[Launch, Launch]], by_itself: bool) -> Disturbed:
    """What of ``pairs``, those included that were measured again, was disturbed."""
    flags = [(baseline.disturbed, candidate.disturbed) for baseline, candidate in pairs]
    counting = [flag for flag, (launch, _) in zip(flags, pairs, strict=True) if not launch.superseded]
    return Disturbed(
        len(flags),
        (sum(one for one, _ in flags), sum(two for _, two in flags)),
        (flags.count((True, False)), flags.count((False, True))),
        len(counting),
        sum(one or (two and not by_itself) for one, two in counting),
        by_itself,
    )


def together(every: Iterable[Disturbed | None]) -> tuple[int, int]:
    """``alone`` of all variants that are not in doubt themselves, summed; figures of one variant share one object."""
    variants = {id(item): item.alone for item in every if item and not item.doubt()}.values()
    return sum(one for one, _ in variants), sum(two for _, two in variants)


def two_sided(first: int, second: int) -> float:
    """Two-sided p of two counts that are equally likely: McNemar's test, exact (Psychometrika 12 (1947) 153).

    >>> two_sided(0, 8)
    0.0078125
    """
    both = first + second
    tail = sum(math.comb(both, count) for count in range(max(first, second), both + 1))
    return min(1.0, 2 * tail / 2**both)
