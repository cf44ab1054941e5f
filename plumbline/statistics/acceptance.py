"""Whether enough members of a machine meet a limit, by counts alone: exact error rates, whatever the distribution.

A member (a node, a link, the machine) *meets* a limit if at least the share ``of_launches`` of its launches does, 0.5:
its median does. Each has a fixed number of launches, so the number of those that meet the limit is binomial: this is
Wilks' tolerance limit (Ann. Math. Stat. 12 (1941) 91) and the test that Clopper and Pearson's interval inverts
(Biometrika 26 (1934) 404). All members are to be measured, so nothing is drawn from a larger number of members: one
that is not measured is not shown.

- The machine passes if all members but those that the contract allows are *shown* to meet the limit. Of a machine with
  one more bad member than is allowed, at least one bad member had to be shown; that has the probability ``buyer``.
- It fails if more members are shown to miss it than are allowed. Of a machine that is just good, good members had to be
  shown to miss it; that has the probability ``vendor``.

Both are at most 1 - confidence. Each retest gives a member another chance, which is part of both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from plumbline.statistics import special

#: more launches of a member than this are not looked for
MOST_LAUNCHES = 10_000
#: ... and than this to decide on a member that was measured
MOST_TRIED = 200
#: the probability with which what is said to be found is found
FOUND = 0.9


def at_least(count: int, of: int, chance: float) -> float:
    """The probability of ``count`` successes or more in ``of`` independent tries with this ``chance``.

    >>> at_least(5, 5, 0.5), round(at_least(8, 9, 0.5), 4), at_least(0, 3, 0.1), at_least(4, 3, 0.9)
    (0.03125, 0.0195, 1.0, 0.0)
    """
    if count <= 0:
        return 1.0
    return float(special.betainc(count, of - count + 1, chance)) if count <= of else 0.0


def _least(top: int, holds: Callable[[int], bool]) -> int | None:
    """The least number from 1 to ``top`` for which ``holds``, which holds for all larger ones too; None if none."""
    return 1 + bisect.bisect_left(range(1, top), True, key=holds) if holds(top) else None


@dataclass(frozen=True)
class AcceptanceRule:
    """The demand of a clause: the ``share`` of ``members`` that must meet a limit, shown by ``launches`` of each.

    ``retests``: how often a member that was not shown may be tested again.
    """

    members: int
    share: float
    confidence: float
    launches: int
    of_launches: float = 0.5
    retests: int = 0

    @property
    def allowed(self) -> int:
        """How many members may miss the limit; one has to meet it."""
        return min(math.floor((1 - self.share) * self.members + 1e-9), self.members - 1)

    def _chances(self, single: float) -> float:
        """The probability of what happens in a test with probability ``single``, in the test or a retest."""
        return float(-math.expm1((1 + self.retests) * math.log1p(-single))) if single < 1 else 1.0

    def _wrongly_shown(self, meeting: int) -> float:
        """The probability that a machine with a bad member too many passes, if ``meeting`` launches show a member."""
        return at_least(1, self.allowed + 1, self._chances(at_least(meeting, self.launches, self.of_launches)))

    def _wrongly_failed(self, missing: int, members: int) -> float:
        """The probability that ``members`` of a just good machine are shown bad, by ``missing`` launches each."""
        single = self._chances(at_least(missing, self.launches, 1 - self.of_launches))
        return at_least(members, self.members - self.allowed, single)

    @cached_property
    def meeting(self) -> int | None:
        """How many launches of a member must meet the limit for it to be shown; None: not even all can show it."""
        return _least(self.launches, lambda count: self._wrongly_shown(count) <= 1 - self.confidence)

    @cached_property
    def missing(self) -> int:
        """How many launches of a member must miss the limit for the miss to be shown."""
        least = _least(self.launches, lambda count: self._wrongly_failed(count, 1) <= 1 - self.confidence)
        return least or self.launches

    @cached_property
    def failing(self) -> int | None:
        """How many members must be shown to miss the limit for the machine to fail; None: not even all can."""
        most = self.members - self.allowed
        more = _least(most, lambda count: self._wrongly_failed(self.missing, count) <= 1 - self.confidence)
        return None if more is None else self.allowed + more

    @property
    def buyer(self) -> float:
        """The probability that a machine with one bad member too many passes."""
        return 0.0 if self.meeting is None else self._wrongly_shown(self.meeting)

    @property
    def vendor(self) -> float:
        """The probability that a machine fails whose members just meet the limit."""
        return 0.0 if self.failing is None else self._wrongly_failed(self.missing, self.failing - self.allowed)

    def launches_needed(self) -> int | None:
        """The least number of launches of a member that can show that it meets the limit; None: too many."""
        return _least(MOST_LAUNCHES, lambda count: self._with(count).meeting is not None)

    def launches_failing(self) -> int | None:
        """The least number of launches that can show that one member more than is allowed misses it."""
        return _least(MOST_LAUNCHES, lambda count: self._with(count).failing == self.allowed + 1)

    def deciding(self, met: int, count: int) -> int | None:
        """About how many launches would decide on a member of which ``met`` of ``count`` launches meet the limit.

        The least number by which it would be shown, or shown to miss it, with the same share; None: over
        :data:`MOST_TRIED`.
        """
        for launches in range(self.launches + 1, MOST_TRIED + 1):
            rule, like = self._with(launches), met / count * launches
            fails = rule.failing == rule.allowed + 1 and launches - like >= rule.missing
            if fails or (rule.meeting is not None and like >= rule.meeting):
                return launches
        return None

    def _with(self, launches: int) -> AcceptanceRule:
        return _rule(self.members, self.share, self.confidence, launches, self.of_launches, self.retests)

    def passes(self, chance: float) -> float:
        """The probability that the machine passes at once, if each launch meets the limit with this ``chance``."""
        single = 0.0 if self.meeting is None else at_least(self.meeting, self.launches, chance)
        return at_least(self.members - self.allowed, self.members, single)

    def finds(self, chance: float) -> float:
        """The probability of a failure where just enough members are bad, whose launches miss it with this chance."""
        return 0.0 if self.failing is None else at_least(self.missing, self.launches, chance) ** self.failing

    def margin(self) -> float | None:
        """By how many standard deviations of a launch all members must be better than the limit to pass nine in ten.

        For normal noise; None: they never do.
        """
        return _deviations(self.passes)

    def detection_margin(self) -> float | None:
        """By how many standard deviations of a launch :attr:`failing` members must be worse to be found."""
        return _deviations(self.finds)


#: keeps what a rule worked out: rules of many numbers of launches are asked for each undecided member
_rule = lru_cache(maxsize=MOST_LAUNCHES)(AcceptanceRule)


def _deviations(rate: Callable[[float], float]) -> float | None:
    """Where ``rate`` of the normal probability of a deviation reaches :data:`FOUND`."""

    def short(deviation: float) -> float:
        return rate(float(special.ndtr(deviation))) - FOUND

    from scipy import optimize  # as special: not above

    return float(optimize.brentq(short, -8, 8, xtol=1e-6)) if short(8) > 0 else None


def bound(launches: Sequence[float], rule: AcceptanceRule, higher: bool) -> float | None:
    """The tolerance bound of a member: the best limit that its launches show it to meet; None: too few of them.

    >>> bound([3, 1, 2, 5, 4], AcceptanceRule(1, 1, 0.9, 5), True)
    1
    """
    if rule.meeting is None or len(launches) < rule.meeting:
        return None
    return sorted(launches, reverse=higher)[rule.meeting - 1]


def shown(bounds: Sequence[float], rule: AcceptanceRule, higher: bool) -> float | None:
    """The tolerance bound of the machine, from those of its members: the best limit that it passes; None: it has none.

    >>> shown([9, 4, 7], AcceptanceRule(4, 0.5, 0.9, 5), True), shown([9], AcceptanceRule(4, 0.5, 0.9, 5), True)
    (7, None)
    """
    place = rule.members - rule.allowed
    return sorted(bounds, reverse=higher)[place - 1] if len(bounds) >= place else None
