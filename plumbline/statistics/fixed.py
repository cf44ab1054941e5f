"""The paired rule where the number of pairs was fixed before measuring: one look, at all pairs, with all of the error.

It holds for pairs whose number does not depend on their values. Pairs that were measured until they were decided belong
to :mod:`plumbline.statistics.sequential`.
"""

from __future__ import annotations

from plumbline.statistics import signed_rank
from plumbline.statistics.arrays import Floats, Ints
from plumbline.statistics.sequential import FAIL_SPENDING, PASS_SPENDING, Errors, Rule, look

ERRORS = Errors(FAIL_SPENDING.error, PASS_SPENDING.error)


def states(logs: Ints, rule: Rule, blur: Ints) -> Ints:
    """FAIL, GAIN, PASS or GO_ON of each row of ``logs``; arguments are those of :func:`sequential.decisions`."""
    return look(logs, rule, blur, ERRORS)


def evidence(logs: Ints, rule: Rule, blur: Ints) -> Floats:
    """p of "slowdown <= tolerance" of each row."""
    return signed_rank.cumulative(logs.shape[1], signed_rank.rank_sum(rule.tolerated + blur[:, None] - logs))
