"""Robust standard deviations: those of a normal distribution, little moved by outlying values."""

from __future__ import annotations

import math

import numpy as np

from plumbline.statistics.arrays import Floats, Ints

#: standard deviation of a normal distribution over its median absolute deviation
FROM_DEVIATION = 1.4826
#: ... and over its median absolute difference of two values
FROM_DIFFERENCE = 1 / (0.6744897501960817 * math.sqrt(2))


def of_deviations(values: Floats | Ints) -> Floats:
    """Standard deviation by the median absolute deviation along the last axis; 0 where over half of them are equal."""
    distance = np.abs(values - np.median(values, axis=-1, keepdims=True))
    return np.asarray(FROM_DEVIATION * np.median(distance, axis=-1), dtype=np.float64)


def of_differences(values: Floats) -> float:
    """Standard deviation by the median absolute difference of neighbours along the last axis; NaN is left out.

    A level that changes slowly along the axis, or differs between rows, is not part of it. 0 if there is no difference.
    """
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(values, axis=-1))
    steps = steps[np.isfinite(steps)]
    return FROM_DIFFERENCE * float(np.median(steps)) if steps.size else 0.0
