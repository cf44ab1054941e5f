"""Limits of simulated classes, one by one. `make rates` measures how often `plumb check` errs by such."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from plumbline.base import paths
from plumbline.extras.nodes import classes

sys.path.insert(0, str(paths.root() / "tests/rates"))
import check as simulated
from promises import Promises

ALLOWED = simulated.RATE / simulated.FIGURES
#: by noise, nodes, checks and rounds: the limits of a member, of another node and of doubt, and the slowdown from which
#: on a node is bad, in percent; rounds that are missing; as how many independent rounds those of a check count
LIMITS = {
    ("normal", 4, 8, 13): "4.96 – 4.96 5.52 0 11.9", ("normal", 10, 16, 31): "4.64 8.12 4.64 5.33 0 24.2",
    ("tails", 10, 16, 13): "12.80 20.52 5.23 14.23 0 11.1", ("student", 40, 4, 13): "4.97 5.96 4.97 5.54 0 13.0",
    ("bimodal", 10, 16, 13): "10.46 15.64 9.85 11.13 0 11.0", ("bimodal", 40, 4, 31): "9.13 11.03 8.32 9.49 0 28.4",
    ("alike", 10, 16, 31): "5.06 10.04 5.06 5.92 0 3.7", ("alike", 40, 4, 13): "– – 4.77 – 880 3.8",
    ("rough", 40, 4, 13): "9.53 12.23 5.00 10.63 0 5.8", ("rougher", 40, 4, 31): "– – 18.82 – 1004 3.3",
}  # fmt: skip


@pytest.mark.parametrize(("model", "nodes", "checks", "rounds"), LIMITS)
def test_limits_of_a_class(model, nodes, checks, rounds):
    random = np.random.default_rng([1, nodes, checks, rounds, *model.encode()])
    sample = simulated.draw(model, nodes, checks, rounds, random)
    limit = classes.limit(sample, rounds, ALLOWED, simulated.DOUBT / simulated.FIGURES, simulated.TOLERANCE)
    sizes = (limit.member, limit.non_member, limit.doubt, limit.detectable)
    shown = " ".join("–" if size is None else f"{100 * size:.2f}" for size in sizes)
    assert f"{shown} {limit.missing} {limit.rounds:.1f}" == LIMITS[model, nodes, checks, rounds]
    if limit.member is not None:
        assert simulated.most(model, limit.member - sample.levels(), rounds).mean() <= ALLOWED


def test_what_the_rates_promise():
    rates = simulated.Found(promised=1.0, rate=8e-7, above=0.01, found=0.079, seen=0.8, doubt=8e-5)
    promises = Promises()
    simulated.keep("normal", "", 31, rates, promises)
    simulated.keep("bursts", "", 31, replace(rates, rate=1.0), promises)
    simulated.keep("alike", "", 31, replace(rates, promised=0.5, found=0.2), promises)
    assert promises.broken == []
    worse = ({"rate": 9e-7}, {"doubt": 9e-5}, {"seen": 0.79}, {"promised": 0.99}, {"found": 0.081}, {"found": 0.049})
    for changes in worse:
        simulated.keep("normal", "", 31, replace(rates, **changes), promises)
    assert len(promises.broken) == len(worse)


def test_a_disturbance_of_whole_checks_that_was_never_seen_is_not_promised_against():
    """What no class can know of; docs/health.md says so, and a node is drained by two checks in a row only."""
    assert simulated.simulate("bursts", 4, 8, 13, 40).rate > 100 * ALLOWED


def test_without_the_correction_for_rounds_that_are_alike_the_rate_is_not_kept(monkeypatch):
    """What the correction is for: checks whose own part is as large as the noise of a round."""
    random = np.random.default_rng(5)
    noise = random.normal(0, 0.01, (10, 8, 1)) + random.normal(0, 0.005, (10, 8, 13))
    of = np.broadcast_to(np.arange(80).reshape(10, 8, 1), noise.shape).ravel()
    sample = classes.Sample(noise.ravel(), of // 8, of)
    assert classes.limit(sample, 13, ALLOWED, 1e-4, 0.001).member is None
    monkeypatch.setattr(classes.majority, "alike", lambda *_: 0.0)
    wrong = classes.limit(sample, 13, ALLOWED, 1e-4, 0.001).member
    assert wrong is not None
    checks = random.normal(0, 0.01, 100_000)
    assert float(np.mean(checks > wrong)) > 100 * ALLOWED
