"""Which commits simulated searches name, in how many gates and launches. `make rates` measures how often they err."""

import sys
from dataclasses import replace

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import bisection
from promises import Promises

SEED = 11
KINDS = {kind.name: kind for kind in (*bisection.KINDS, bisection.HIDDEN)}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return bisection.repository(tmp_path_factory.mktemp("rates"))


@pytest.mark.parametrize(("kind", "model", "number", "changed", "answer"), [
    ("one step of 3 %", "noisy", 8, [34], "34: 15 gates, 2124 launches"),
    ("10 %, one commit in ten does not build", "noisy", 0, [9], "9+10+11: 10 gates, 666 launches"),
    ("10 %, and a gain of 5 % that hides half of it", "quiet", 0, [4, 10], "4 10: 19 gates, 458 launches"),
    ("one step of 1 %", "noisy", 0, [5], "none: 2 gates, 234 launches"),
])  # fmt: skip
def test_the_commits_that_change_something_are_named(repository, kind, model, number, changed, answer):
    """Noise that leaves gates open costs launches and not the answer; it hides a step of 1 %, and names no other."""
    commits, names = repository
    world = bisection.world(KINDS[kind], model, number, SEED, names)
    named = [sorted(map(world.places.get, candidates)) for candidates in bisection.bisected(world, commits)]
    assert sorted(world.changed) == changed
    shown = " ".join("+".join(map(str, places)) for places in named) or "none"
    assert f"{shown}: {world.gates} gates, {world.launches} launches" == answer


def test_the_measurement_sees_a_search_that_errs(repository):
    """Plain bisection with five launches of each commit, where sessions wander."""
    promises = Promises()
    bisection.keep(bisection.measure(KINDS["one step of 5 %"], "drift", 2, SEED, *repository), promises)
    assert promises.broken == []
    rate = bisection.measure(KINDS["one step of 5 %"], "drift", 2, SEED, *repository, bisection.plain(5))
    assert (rate.right, rate.wrong, rate.launches) == (1, 1, 40)
    bisection.keep(rate, promises)
    assert promises.broken == ["one step of 5 %, drift: 1 named another commit", "one step of 5 %, drift: 1 of 2 right"]


def test_what_the_rates_promise():
    rate = bisection.Rate(KINDS["two steps of 5 %"], "quiet", 100, 98, 0, launches=840.0, gates=22.0)
    noisy = replace(rate, model="noisy", right=95, launches=3000.0, gates=30.0)
    hidden = replace(noisy, kind=bisection.HIDDEN, right=0)
    promises = Promises()
    for kept in (rate, noisy, hidden):
        bisection.keep(kept, promises)
    assert promises.broken == []
    for changes in ({"right": 94}, {"wrong": 1}, {"launches": 841.0}, {"gates": 22.1}):
        bisection.keep(replace(rate, **changes), promises)
    bisection.keep(replace(noisy, right=94), promises)
    bisection.keep(replace(hidden, wrong=1), promises)
    assert len(promises.broken) == 6
