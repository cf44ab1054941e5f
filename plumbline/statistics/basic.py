"""The shared base of the methods: robust standard deviations, the odd values of one sample, error over many tests."""

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
