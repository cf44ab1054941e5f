"""Pairs of numbers and verdicts, as the gate has them."""

import samples

from plumbline.judge.decide import Verdict
from plumbline.judge.pairs import Column, Pairs


def pairs_of(name, baseline, candidate, better, steps=(0.0, 0.0), again=(), **more):
    """The pairs of one series; ``again``: after how many of them others were measured again, and their two values."""
    first = Column(baseline, steps[0], [(before, value) for before, value, _ in again])
    second = Column(candidate, steps[1], [(before, value) for before, _, value in again])
    return Pairs(name, first, second, better, **more)


def values_of(pairs):
    """The values of baseline and candidate."""
    return pairs.baseline.values, pairs.candidate.values


def verdict_of(name, *members, **more):
    """A verdict that rests on no numbers."""
    return Verdict(name, *members, **more, pairs=pairs_of(name, [], [], "lower"))


def records_of(*sides, each=lambda side, index: {}):
    """The records, as JSON documents, of the values of baseline and candidate; ``each`` changes a launch."""

    def launch(side, index, value):
        return samples.launch(2 * index + side, float(value), index=index, **each(side, index))

    return [
        samples.record(id=f"{side + 1}" * 12, launches=[launch(side, *pair) for pair in enumerate(values)])
        for side, values in enumerate(sides)
    ]
