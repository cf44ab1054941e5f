"""The shared base of the methods: robust standard deviations, the odd values of one sample, error over many tests.

Also the difference that the step of a timer or of a printout can hide.
"""

from __future__ import annotations

import math

import numpy as np

from plumbline.statistics import Flags, Floats, Ints, special

#: standard deviation of a normal distribution over its median absolute deviation, which outlying values hardly move
FROM_DEVIATION = 1.4826
#: ... and over its median absolute difference of two values
FROM_DIFFERENCE = 1 / (0.6744897501960817 * math.sqrt(2))


def spread_of_deviations(values: Floats | Ints) -> Floats:
    """Standard deviation by the median absolute deviation along the last axis; 0 where over half of them are equal."""
    distance = np.abs(values - np.median(values, axis=-1, keepdims=True))
    return np.asarray(FROM_DEVIATION * np.median(distance, axis=-1), dtype=np.float64)


def spread_of_differences(values: Floats) -> float:
    """Standard deviation by the median absolute difference of neighbours along the last axis; NaN is left out.

    A level that changes slowly along the axis, or differs between rows, is not part of it. 0 if there is no difference.
    """
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(values, axis=-1))
    steps = steps[np.isfinite(steps)]
    return FROM_DIFFERENCE * float(np.median(steps)) if steps.size else 0.0


#: values that may be odd at once, as a share: one in this many
ODD = 4


def extremes(values: Floats) -> tuple[Ints, Floats]:
    """Places of ``values`` in the order in which the test takes them out, and the one-sided p of each among those left.

    The test is that of generalised extreme Studentized deviates (Rosner, Technometrics 25 (1983) 165).

    The p of a value is the smallest of its own step and all later ones: what hides behind another is found with it.
    """
    n = values.size
    order = np.argsort(values, kind="stable")
    ranked = values[order] - np.median(values)
    total, squares = np.cumsum(np.r_[0.0, ranked]), np.cumsum(np.r_[0.0, ranked**2])
    low, high = 0, n
    removed, p = [], []
    for _ in range(min(max(1, n // ODD), n - 2)):
        left = high - low
        mean = (total[high] - total[low]) / left
        below, above = mean - ranked[low], ranked[high - 1] - mean
        spread = max(squares[high] - squares[low] - left * mean**2, 0.0)
        reach = max(below, above)
        removed.append(order[high - 1] if above >= below else order[low])
        p.append(_deviate(reach, spread, left))
        low, high = (low, high - 1) if above >= below else (low + 1, high)
    later = np.minimum.accumulate(np.array(p)[::-1])[::-1]
    return np.array(removed, dtype=np.int64), np.asarray(later, dtype=np.float64)


def _deviate(reach: float, squares: float, n: int) -> float:
    """One-sided p of the farthest of ``n`` values at ``reach`` from their mean, ``squares`` their sum of squares."""
    if reach <= 1e-12:
        return 1.0
    rest = squares - reach**2 * n / (n - 1)  # sum of squares of the others about their own mean
    if rest <= 1e-12 * squares:
        return 0.0
    t = reach * n / (n - 1) / math.sqrt(rest / (n - 2) * n / (n - 1))
    return float(special.stdtr(n - 2, -t))


def holm(p: Floats, tests: int, error: float) -> Flags:
    """Which of ``p`` Holm's procedure rejects at the family-wise ``error``.

    ``p`` has one element per hypothesis that may be rejected, of ``tests`` in all: the others count as p = 1. Source:
    Holm, Scand. J. Stat. 6 (1979) 65.
    """
    keep = np.zeros(p.size, dtype=bool)
    for position, row in enumerate(np.argsort(p, kind="stable")):
        if p[row] * (tests - position) > error:
            break
        keep[row] = True
    return keep


#: part of a step by which the median of Walsh averages of rounded differences may lie off, however many there are.
#: At worst a difference is rounded down with probability p = 1/sqrt(2), else up: half of the sums of two are down, and
#: the mean is 1 - p = 0.293 above (values spread evenly over many steps: 0.25)
LATTICE = 0.3
#: of a value that may be rounding: a bound that keeps its logarithm finite
NEARLY_ALL = 1 - 1e-9


def half(value: float, step: float) -> float:
    """By how much, as a log ratio, ``value`` may be larger than what was rounded to it in steps of ``step``."""
    return -math.log1p(-min(step / 2 / value, NEARLY_ALL))


def hidden(baseline: Floats, candidate: Floats, steps: tuple[float, float]) -> float:
    """The largest log ratio of the sides that rounding to ``steps`` may hide, or make up; 0 for steps of 0.

    A side that hardly leaves one value may lie anywhere within half a step of it. Where its values spread over
    neighbouring steps, its rounding errors cancel: of half a step remains the share of its most frequent value among
    that value and its two neighbours, beyond a half (so a few far values change nothing, nor does a second mode).
    What lies off even then is :data:`LATTICE`.
    """
    sides = tuple(zip((baseline, candidate), steps, strict=True))
    halves = [half(float(np.median(values)), step) for values, step in sides]
    if any(values.std() < step / 2 for values, step in sides):
        return sum(halves)
    kept = sum(_not_spread(values, step) * half for (values, step), half in zip(sides, halves, strict=True))
    return min(sum(halves), 2 * LATTICE * min(halves) + kept)


def _not_spread(values: Floats, step: float) -> float:
    """0 where the most frequent value is at most half of it and its neighbours, up to 1 where it is all of them."""
    if step <= 0:
        return 0.0
    different, counts = np.unique(values, return_counts=True)
    often = counts.argmax()
    near = np.abs(different - different[often]) < 1.5 * step
    return max(0.0, 2 * float(counts[often] / counts[near].sum()) - 1)
