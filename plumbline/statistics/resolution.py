"""The difference that the step of a timer or of a printout can hide."""

from __future__ import annotations

import math

import numpy as np

from plumbline.statistics import Floats

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
