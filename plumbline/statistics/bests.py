"""The best of some things against the best of others, by a few values of each: an interval that allows for the choice.

The best is chosen partly by chance. Of groups with centres a_1 … a_m and b_1 … b_n the ratio of the
largest ones is max_i min_j a_i / b_j. Bounds of each a_i / b_j, from the rank-sum test inverted, give max_i min_j of
the lower ones, which is too high only if one of the m bounds against the best b is, and max_i min_j of the upper ones,
which is too low only if one of the n bounds of the best a is. So the errors of one side are shared by m, those of the
other by n bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from plumbline.statistics import rank_sum

ERROR = 0.05
#: at most so many values of each are asked for
_MOST = 100


class Interval(NamedTuple):
    """Bounds of a ratio; 0 and infinity where there are too few values for one."""

    low: float
    high: float


def ratio(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], error: float = ERROR) -> Interval:
    """Interval of (largest centre of ``first``) / (largest of ``second``), wrong with probability ``error`` at most.

    Each element has the positive values of one thing; larger values are better.
    """
    below, above = error / 2 / len(first), error / 2 / len(second)
    return Interval(
        max(min(_bounds(one, other, below).low for other in second) for one in first),
        max(min(_bounds(one, other, above).high for other in second) for one in first),
    )


def values_needed(first: int, second: int, error: float = ERROR) -> int:
    """How many values of each thing :func:`ratio` needs for both bounds; :data:`_MOST` if fewer do not suffice."""
    least = error / 2 / max(first, second)
    return next((count for count in range(2, _MOST) if rank_sum.critical(count, count, least) >= 0), _MOST)


def _bounds(one: Sequence[float], other: Sequence[float], error: float) -> Interval:
    """Of the ratio of two centres, each bound wrong with probability ``error``."""
    place = rank_sum.critical(len(one), len(other), error)
    return Interval(*rank_sum.ratios(one, other, place)) if place >= 0 else Interval(0.0, math.inf)
