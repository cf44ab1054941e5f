"""How often the right commit is named: a small edition of tests/rates/bisection.py (docs/rates.md has its table)."""

import sys

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import bisection

SEED = 11
SEARCHES = 12


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return bisection.repository(tmp_path_factory.mktemp("rates"))


@pytest.mark.parametrize("kind", bisection.KINDS, ids=lambda kind: kind.name)
def test_the_right_commit_is_named(repository, kind, capsys):
    rate = bisection.measure(kind, "quiet", SEARCHES, SEED, *repository)
    with capsys.disabled():
        print(f"\n{kind.name}: {rate.right} of {rate.searches} right, {rate.launches:.0f} launches")
    assert (rate.right, rate.wrong) == (SEARCHES, 0)
    assert rate.gates <= 11 * len(kind.steps)
    assert rate.launches <= 420 * len(kind.steps)


def test_noise_that_leaves_gates_open_costs_launches_and_not_the_answer(repository):
    """One gate each, as before, is right in less than half of these searches."""
    rate = bisection.measure(bisection.KINDS[0], "noisy", SEARCHES, SEED, *repository)
    assert rate.wrong == 0
    assert rate.right >= 0.7 * SEARCHES


def test_noise_hides_a_commit_and_never_names_another(repository):
    rate = bisection.measure(bisection.Kind("one step of 1 %", (0.01,)), "noisy", SEARCHES, SEED, *repository)
    assert (rate.right, rate.wrong) == (0, 0)


def test_the_measurement_sees_a_search_that_errs(repository):
    """Plain bisection with five launches of each commit, where sessions wander."""
    rate = bisection.measure(bisection.KINDS[1], "drift", SEARCHES, SEED, *repository, bisection.plain(5))
    assert rate.wrong > SEARCHES // 4
