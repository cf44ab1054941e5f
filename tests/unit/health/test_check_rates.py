"""How often `plumb check` errs, small edition of tests/rates/check.py; the whole one is in docs/rates.md."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from plumbline.base import paths
from plumbline.health import limits

sys.path.insert(0, str(paths.root() / "tests/rates"))
import check as simulated

ALLOWED = simulated.RATE / simulated.FIGURES


@pytest.mark.parametrize("model", ["normal", "tails", "student", "bimodal", "alike"])
@pytest.mark.parametrize(("nodes", "checks"), [(4, 8), (10, 16), (40, 4)])
def test_healthy_nodes_are_not_bad(model: str, nodes: int, checks: int) -> None:
    """The mean rate over classes; a class of its own may lie above with the probability that the limit has."""
    for rounds in (13, 31):
        found = simulated.simulate(model, nodes, checks, rounds, 15)
        if found.promised:
            assert found.rate <= ALLOWED
            assert found.seen >= 0.8


@pytest.mark.parametrize("model", ["normal", "student"])
def test_what_is_found_lies_near_the_tolerance(model: str) -> None:
    found = simulated.simulate(model, 10, 16, 31, 15)
    assert found.promised == 1.0
    assert 0.05 <= found.found <= 0.08


def test_a_disturbance_of_whole_checks_that_was_never_seen_is_not_promised_against() -> None:
    """What no class can know of; docs/health.md says so, and a node is drained by two checks in a row only."""
    assert simulated.simulate("bursts", 4, 8, 13, 40).rate > 100 * ALLOWED


def test_without_the_correction_for_rounds_that_are_alike_the_rate_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the correction is for: checks whose own part is as large as the noise of a round."""
    random = np.random.default_rng(5)
    noise = random.normal(0, 0.01, (10, 8, 1)) + random.normal(0, 0.005, (10, 8, 13))
    of = np.broadcast_to(np.arange(80).reshape(10, 8, 1), noise.shape).ravel()
    sample = limits.Sample(noise.ravel(), of // 8, of)
    assert limits.limit(sample, 13, ALLOWED, 1e-4, 0.001).member is None
    monkeypatch.setattr(limits.majority, "alike", lambda *_: 0.0)
    wrong = limits.limit(sample, 13, ALLOWED, 1e-4, 0.001).member
    assert wrong is not None
    checks = random.normal(0, 0.01, 100_000)
    assert float(np.mean(checks > wrong)) > 100 * ALLOWED
