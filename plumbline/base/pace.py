"""The time that the rest of a work takes, by the kinds of its steps: a campaign, launches in turn, pairs of a gate."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from plumbline.base import group


def left(done: Iterable[tuple[str, float]], waiting: Mapping[str, float], usual: Mapping[str, float]) -> float:
    """Seconds that so many ``waiting`` steps of each kind take, after the steps that are ``done``.

    A step takes the median of those of its kind that are done; without one its ``usual`` time, at the pace of what is
    done; without that, too, the mean of what is done. Here all takes twice as long as usual:

    >>> left([("a", 2.0), ("a", 2.0), ("b", 8.0)], {"a": 1, "c": 2}, {"a": 1.0, "b": 4.0, "c": 10.0})
    42.0
    >>> left([("a", 2.0)], {"b": 3}, {}), left([], {"b": 3}, {"b": 1.0}), left([], {"b": 3}, {})
    (6.0, 3.0, 0.0)
    """
    steps = list(done)
    medians = {kind: statistics.median(seconds) for kind, seconds in group(steps).items()}
    known = [(seconds, usual[kind]) for kind, seconds in steps if kind in usual]
    pace = sum(seconds for seconds, _ in known) / sum(expected for _, expected in known) if known else 1.0
    mean = statistics.fmean(seconds for _, seconds in steps) if steps else 0.0
    expected = {kind: usual[kind] * pace if kind in usual else mean for kind in waiting} | medians
    return sum(number * expected[kind] for kind, number in waiting.items())
