"""Change points: the arithmetic against plain loops, the promises, and each guard broken on purpose."""

import math
import statistics
import sys
import time

import numpy as np
import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.statistics import changes
from plumbline.statistics.changes import Change, Settings, follow

sys.path.insert(0, str(paths.root() / "tests/rates"))
import changes as rates

SETTINGS = Settings()


def series(seed, points=120, noise=0.01, steps=()):
    """Positive values around 100 with ``steps``: (position, factor)."""
    values = 100 * np.exp(np.random.default_rng(seed).normal(0, noise, points))
    for position, factor in steps:
        values[position:] *= factor
    return values


def slow_energy(x, t):
    """The statistic of a split, from its definition."""
    left, right = x[:t], x[t:]
    n, m = len(left), len(right)
    between = sum(abs(a - b) for a in left for b in right) * 2 / (n * m)
    within = 0.0
    for side in (left, right):
        pairs = [abs(side[i] - side[k]) for i in range(len(side)) for k in range(i)]
        within += sum(pairs) / len(pairs) if pairs else 0.0
    return n * m / (n + m) * (between - within)


@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_energy_is_what_its_definition_says(size):
    logs = np.log(series(size, size))
    fast = changes.energy(logs)
    assert fast[0] == -math.inf
    assert fast[1:] == pytest.approx([slow_energy(list(logs), t) for t in range(1, size)])


@pytest.mark.parametrize(("begin", "points"), [(0, 15), (0, 200), (37, 150), (140, 150), (149, 150)])
def test_the_screen_is_what_its_definition_says(begin, points):
    logs = np.log(series(4, points, noise=0.04))
    expected = []
    for look in range(begin + SETTINGS.baseline + SETTINGS.persist - 1, points):
        seen = logs[max(begin, look + 1 - SETTINGS.window) : look + 1]
        newest, before = seen[-SETTINGS.persist :], seen[: -SETTINGS.persist]
        if abs(statistics.median(newest) - statistics.median(before)) >= SETTINGS.effect / 2:
            expected.append(look)
    assert list(changes._screen(logs, begin, SETTINGS)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_every_point_is_judged_with_only_those_up_to_it(seed):
    values = series(seed, 110, noise=0.02, steps=[(30, 1.12), (60, 0.85), (85, 1.1)])
    whole = follow(values).changes
    for end in range(1, len(values), 3):
        assert follow(values[:end]).changes == tuple(change for change in whole if change.seen_at < end)


@pytest.mark.parametrize("seed", range(6))
def test_scaling_changes_nothing_and_reversing_mirrors(seed):
    values = series(seed, noise=0.03, steps=[(50, 1.15)])
    course = follow(values)
    scaled, mirrored = follow(values * 1e-7), follow(1 / values)
    assert course.changes
    assert [(c.index, c.seen_at) for c in scaled.changes] == [(c.index, c.seen_at) for c in course.changes]
    assert [(c.index, c.seen_at) for c in mirrored.changes] == [(c.index, c.seen_at) for c in course.changes]
    assert [1 / c.ratio for c in mirrored.changes] == pytest.approx([c.ratio for c in course.changes])
    assert mirrored.smallest_visible == pytest.approx(course.smallest_visible)


def test_a_step_is_seen_at_its_fifth_point():
    for seed in range(10):
        (change,) = follow(series(seed, 80, steps=[(40, 1.1)])).changes
        assert (change.index, change.seen_at) == (40, 44)
        assert change.ratio == pytest.approx(1.1, rel=0.02)


def test_constants_and_their_steps():
    assert follow([3.0] * 100).changes == ()
    assert follow([3.0] * 20 + [3.3] * 4).changes == ()
    (change,) = follow([3.0] * 20 + [3.3] * 5).changes
    assert (change.index, change.seen_at, round(change.ratio, 9)) == (20, 24, 1.1)
    assert follow([3.0] * 20 + [3.1] * 80).changes == ()  # real, and smaller than 5 %


def test_too_few_points_say_nothing():
    for points in range(15):
        course = follow(series(0, points) * np.linspace(1, 2, points))
        assert course.changes == ()
    assert follow(series(0, 9)).smallest_visible is None
    assert follow(series(0, 10)).smallest_visible is not None


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_what_does_not_last_is_no_change(length):
    for seed in range(10):
        values = series(seed, 100)
        values[50 : 50 + length] *= 1.5
        assert follow(values).changes == ()


def test_a_change_and_its_end_are_two():
    values = series(1, 120, steps=[(40, 1.2), (70, 1 / 1.2)])
    assert [(c.index, round(c.ratio, 1)) for c in follow(values).changes] == [(40, 1.2), (70, 0.8)]


def test_small_steps_do_not_hide_a_large_one():
    for seed in range(5):
        values = series(seed, 100, noise=0.004, steps=[(30, 1 / 1.03), (60, 1.1)])
        (change,) = follow(values).changes
        assert change.index == 60


@pytest.mark.parametrize("bad", [[1.0, math.nan], [1.0, math.inf], [0.0], [-1.0], [[1.0]]])
def test_what_is_no_series_is_refused(bad):
    with pytest.raises(PlumbError, match="positive, finite"):
        follow(bad)


@pytest.mark.parametrize("bad", [{"min_effect": 0}, {"min_effect": math.nan}, {"persist": 0}, {"persist": 21}])
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(PlumbError):
        Settings(**bad)


def test_rates(capsys):
    """The fast form of docs/rates.md: no more than the stated rates, with room for 200 series."""
    limits = {  # false alarms at most; 5 %, 10 % steps found at least; delay at 10 % at most
        "quiet": (0.02, 0.85, 0.97, 5),
        "bimodal": (0.03, 0.80, 0.95, 6),
        "drift": (0.04, 0.45, 0.93, 9),
        "noisy": (0.03, 0.40, 0.93, 8),
        "spikes": (0.02, 0.75, 0.90, 6),
    }
    for model, (most, least5, least10, delay) in limits.items():
        none = rates.measure(model, 0.0, 200, 5, seed=7)
        five = rates.measure(model, 0.05, 80, 5, seed=7)
        ten = rates.measure(model, 0.10, 80, 5, seed=7)
        size, share = rates.visible(model, 60, 5, seed=7)
        with capsys.disabled():
            print(
                f"\n{model}: false {none.false:.1%}, 5 % found {five.found:.0%} after {five.delay:.1f}, "
                f"10 % found {ten.found:.0%} after {ten.delay:.1f}, visible {size:.1%} found {share:.0%}",
                end="",
            )
        assert none.false <= most, model
        assert five.found >= least5, model
        assert ten.found >= least10, model
        assert ten.delay <= delay, model
        assert share >= 0.95, model


@pytest.mark.parametrize(("model", "most"), [("sine", 0.15), ("walk", 0.45)])
def test_slow_waves_raise_fewer_alarms(model, most):
    """With the usual correction of the autocorrelation's bias, 31 % of the sines and 53 % of the walks were alarms."""
    assert false_rate(model, 100, launches=5) <= most


def test_two_hundred_series_of_two_hundred_points_are_fast():
    """About two seconds, in units of what the same processor takes at that moment to add ten million numbers."""
    models = [rates.MODELS[name] for name in ("quiet", "bimodal", "drift", "noisy", "spikes")]
    values = [np.exp(model(np.random.default_rng(k), 200, 1)) for k in range(40) for model in models]
    start = time.process_time()
    for one in values:
        follow(one)
    followed = time.process_time()
    sum(number + 1 for number in range(10_000_000))
    assert followed - start < 5 * (time.process_time() - followed)


def false_rate(model, count=200, settings=None, launches=1):
    return rates.measure(model, 0.0, count, launches, seed=3, settings=settings).false


def test_guard_persistence():
    """A change that need not last is raised by spikes."""
    assert false_rate("spikes") <= 0.02
    assert false_rate("spikes", settings=Settings(persist=1)) > 0.1


def test_guard_autocorrelation(monkeypatch):
    """Without the inflation of variances, waves are steps."""
    guarded = false_rate("drift")
    original = changes._noise

    def plain(residuals, fitted):
        noise = original(residuals, fitted)
        return changes._Noise(noise.variance, noise.freedom, 1.0)

    monkeypatch.setattr(changes, "_noise", plain)
    assert false_rate("drift") > max(0.05, 2 * guarded)


def test_guard_spikes(monkeypatch):
    """Without clipping, spikes in the past hide a step."""

    def found():
        hits = 0
        for seed in range(20):
            values = series(seed, 70, steps=[(50, 1.08)])
            values[[10, 25, 40]] *= 1.6
            hits += any(change.index in range(48, 53) for change in follow(values).changes)
        return hits

    assert found() >= 18
    monkeypatch.setattr(changes, "despike", lambda logs, settings: logs)
    assert found() <= 5


def test_guard_margin_of_spikes(monkeypatch):
    """Clipping without a margin takes a second mode for spikes, and its return for a change."""
    values = np.exp(np.array([0.0, 0.001, -0.001, 0.002, 0.0, 0.06] * 8 + [0.06] * 5))
    logs = np.log(values)
    assert changes.despike(logs, SETTINGS)[5] > 0.05
    monkeypatch.setattr(changes, "SPIKE", 0.0)
    assert changes.despike(logs, Settings(min_effect=1e-6))[5] < 0.01


def test_guard_significance(monkeypatch):
    """At p = 0.05 noise alone raises alarms."""
    assert false_rate("noisy") <= 0.04
    assert false_rate("noisy", settings=Settings(p_value=0.05)) > 0.3


def test_a_change_that_begins_later_than_it_could_have_lasted_waits():
    logs = np.log(series(3, 44, noise=0.003, steps=[(40, 1.3)]))
    assert changes.split(logs, SETTINGS) is None
    assert changes.split(np.append(logs, logs[-1]), SETTINGS) == 40


def test_change_is_plain_data():
    (change,) = follow([1.0] * 20 + [2.0] * 5).changes
    assert change == Change(20, 24, pytest.approx(2.0))
    assert type(change.index) is int
    assert type(change.seen_at) is int
