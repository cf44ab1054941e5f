"""How often ``plumb outliers`` errs, small edition of tests/rates/outliers.py; the whole one is in docs/rates.md."""

import sys

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import outliers as simulated

SEED = 3


@pytest.mark.parametrize("kind", ["nodes", "matrix"])
def test_healthy_clusters_are_not_reported(kind, capsys):
    every = [simulated.healthy(model, kind, 5 if kind == "nodes" else 2, SEED) for model in simulated.MODELS]
    clusters, reported = sum(one.clusters for one in every), sum(one.reported for one in every)
    with capsys.disabled():
        print(f"\nhealthy {kind}: {reported} of {clusters} clusters reported")
    assert clusters >= 200
    assert reported <= 0.01 * clusters


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (simulated.Fault("node", "nodes", "1 %", 16, 5, {(3,): 0.05}), 0.90),
        (simulated.Fault("nodes", "nodes", "1 %", 32, 5, {(3,): 0.05, (9,): 0.05, (30,): 0.05}), 0.90),
        (simulated.Fault("link", "matrix", "2 %", 8, 5, {(2, 5): 0.10}), 0.90),
        (simulated.Fault("node", "matrix", "1 %", 16, 3, {(3,): 0.05}), 0.90),
        (simulated.Fault("both", "matrix", "1 %", 16, 3, {(3,): 0.05, (6, 9): 0.20}), 0.85),
    ],
    ids=lambda value: value.what if isinstance(value, simulated.Fault) else None,
)
def test_what_is_slow_is_found_and_nothing_else(fault, found):
    got = simulated.find(fault, 40, SEED)
    assert got.exact >= found * got.clusters
    assert got.more <= 0.05 * got.clusters


@pytest.mark.parametrize("alike", [False, True])
def test_healthy_clusters_of_several_figures_are_not_reported(alike, capsys):
    every = [simulated.healthy_together(model, alike, 1, SEED) for model in simulated.MODELS]
    clusters, reported = sum(one.clusters for one in every), sum(one.reported for one in every)
    with capsys.disabled():
        print(f"\nhealthy, several figures: {reported} of {clusters} clusters reported")
    assert clusters >= 100
    assert reported <= 0.02 * clusters


def test_a_node_that_is_slow_in_every_figure_is_found_where_no_figure_shows_it():
    fault = simulated.Fault("node", "nodes", "2 %", 16, 3, {(3,): 0.05})
    got, single = simulated.find_together(fault, 8, 30, SEED)
    assert got.exact >= 0.9 * got.clusters
    assert single == 0


@pytest.mark.parametrize("kind", ["nodes", "matrix"])
def test_the_smallest_detectable_slowdown_is_detected(kind):
    tried, hits = simulated.kept(kind, 21, SEED)
    assert tried >= 12
    assert hits == tried


def test_the_measurement_sees_a_rule_that_errs(monkeypatch):
    """A guard broken on purpose: a rule with a hundred times the error reports healthy clusters."""
    monkeypatch.setattr("plumbline.judge.outliers.SIDE", 0.5)
    monkeypatch.setattr("plumbline.judge.evidence.ALLOWED", -10.0)
    one = simulated.healthy("spread", "nodes", 3, SEED)
    assert one.reported > 0.1 * one.clusters
