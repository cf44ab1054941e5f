"""Disturbed launches: which pairs are measured again, and when no verdict may be given.

A launch is disturbed by causes outside of it (:mod:`plumbline.launch.witness.disturbance`), never by its value, and
nothing
here looks at a value: of two equal candidates neither has an advantage, and the test keeps its level. All launches stay
in the records, those of a pair that was measured again with ``"superseded": true``. How many are measured again
depends on counts only.

Where a variant was disturbed on one side, or in most pairs, the disturbance may be the difference. The flags show only
a part of what disturbs: where one side is flagged more often than chance explains, the pairs without a flag are in
doubt too. Where both sides were disturbed alike, a difference far beyond the margins is none of disturbance, and gets
its verdict: which sides count as alike is decided here, which difference as far in :mod:`plumbline.judge.decide`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plumbline.records.launch import Launch
from plumbline.statistics.paired import CAP

#: level of the test: the share of variants, disturbed equally often on both sides, for which it says they are not
ERROR = 0.01
#: the same where the gate stops for it, at any of its looks: the error of a FAIL
LASTING = 0.001
#: below this p of the same test the sides were not disturbed alike
ALIKE = 0.1
#: option that claims that the candidate's own threads disturb it
OPTION = "--disturbed-by-itself"


@dataclass(frozen=True)
class Disturbed:
    """How much of a variant was disturbed; two numbers are those of baseline and candidate.

    ``launches`` and ``alone`` (pairs of which only this side was) are of all ``pairs``, those included that were
    measured again; ``restless`` of the ``counting`` ones have a disturbed launch. With ``by_itself``, the claim that
    the candidate disturbs itself, only a disturbed baseline makes a pair restless. ``beside`` says what ran during most
    of the disturbed launches.
    """

    pairs: int
    launches: tuple[int, int]
    alone: tuple[int, int]
    counting: int
    restless: int
    by_itself: bool = False
    beside: str = ""

    @property
    def mostly(self) -> str:
        """That most pairs that count were disturbed; empty if they were not."""
        who = f" ({self.beside})" if self.beside else ""
        words = f"{self.restless} of the {self.counting} pairs that count were disturbed{who}"
        return words if 2 * self.restless > self.counting else ""

    def doubt(self, together: tuple[int, int] = (0, 0), is_far: bool = False) -> str | None:
        """Why neither PASS nor FAIL may be given, or None. ``together`` is :func:`together` of the gate's variants.

        ``is_far``: the sides differ by more than disturbance that is alike on both explains.
        """
        doubt = self._one_sided(self.alone, f"of {self.pairs} launches each")
        # on both sides most launches were disturbed, and as often on either as chance explains
        are_alike = 2 * min(self.launches) > self.pairs and two_sided(*self.alone) > ALIKE
        if not doubt and self.mostly and not (is_far and are_alike):
            return f"{self.mostly}: measure on a quiet host; plumb doctor says what disturbs"
        if not doubt and (together[0] - together[1]) * (self.alone[0] - self.alone[1]) > 0:
            return self._one_sided(together, "of the launches of all variants")
        return doubt

    def lasting(self, is_far: bool = False) -> str | None:
        """A doubt that more pairs would hardly remove, or None: by chance it comes up in one of 1000 looks."""
        quiet = self.counting - self.restless
        mostly = self.restless > quiet and two_sided(self.restless, quiet) <= 2 * LASTING
        return (
            self.doubt(is_far=is_far)
            if mostly
            else self._one_sided(self.alone, f"of {self.pairs} launches each", LASTING)
        )

    def _one_sided(self, alone: tuple[int, int], population: str, error: float = ERROR) -> str | None:
        which, p = int(alone[1] > alone[0]), two_sided(*alone)
        if p > error or (which and self.by_itself):
            return None
        names = ("baseline", "candidate")
        claim = f"; if its own threads did it, claim {OPTION}" if which else ""
        often, seldom = f"{alone[which]} times the {names[which]}", f"{alone[1 - which]} times the {names[1 - which]}"
        return f"{population} {often} alone was disturbed, {seldom}: no chance (p = {p:.1g}){claim}"


def of(pairs: Sequence[tuple[Launch, Launch]], by_itself: bool) -> Disturbed:
    """The disturbed part of ``pairs``, those included that were measured again."""
    flags = [(baseline.disturbed, candidate.disturbed) for baseline, candidate in pairs]
    counting = [flag for flag, (launch, _) in zip(flags, pairs, strict=True) if not launch.superseded]
    return Disturbed(
        len(flags),
        (sum(baseline for baseline, _ in flags), sum(candidate for _, candidate in flags)),
        (flags.count((True, False)), flags.count((False, True))),
        len(counting),
        sum(baseline or (candidate and not by_itself) for baseline, candidate in counting),
        by_itself,
        beside([launch for pair in pairs for launch in pair if launch.disturbed]),
    )


def beside(launches: Sequence[Launch]) -> str:
    """The task that ran during most of these launches, if any did; a launch may have several processes of a name."""
    names = Counter(name for launch in launches for name in dict.fromkeys(launch.disturbance.tasks()))
    name, number = next(iter(names.most_common(1)), ("", 0))
    return f"{name} ran during {number} of the {len(launches)} disturbed launches" if 2 * number > len(launches) else ""


def together(every: Iterable[Disturbed | None]) -> tuple[int, int]:
    """``alone`` of all variants that are not in doubt themselves, summed; figures of one variant share one object."""
    variants = {id(item): item.alone for item in every if item and not item.doubt()}.values()
    return sum(baseline for baseline, _ in variants), sum(candidate for _, candidate in variants)


def two_sided(first: int, second: int) -> float:
    """Two-sided p of two counts that are equally likely: McNemar's test, exact (Psychometrika 12 (1947) 153).

    >>> two_sided(0, 8)
    0.0078125
    """
    both = first + second
    tail = sum(math.comb(both, count) for count in range(max(first, second), both + 1))
    return min(1.0, 2 * tail / 2**both)


#: pairs measured again, at most, in all ...
MOST_AGAIN = CAP // 2
#: ... and beyond half of the pairs that count so far: a host that is always disturbed costs half as much again
AHEAD = 3


def is_due(verified: bool, disturbed: bool, kept: int, replaced: int) -> bool:
    """Whether a pair is to be measured again, after ``kept`` pairs that count and ``replaced`` that do not.

    ``verified``: both of its launches are; a launch that is not is never replaced: it makes its variant INVALID.
    ``disturbed``: one of them is.
    """
    return verified and disturbed and replaced < min(MOST_AGAIN, AHEAD + kept // 2)


def is_pair_due(pair: tuple[Launch, Launch], kept: int, replaced: int) -> bool:
    """Whether the launches of ``pair`` are to be measured again, by :func:`is_due`."""
    return is_due(all(launch.verified for launch in pair), any(launch.disturbed for launch in pair), kept, replaced)


def faults_of_repeats(pairs: Sequence[tuple[Launch, Launch]]) -> list[str]:
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
