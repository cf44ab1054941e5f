"""Change points: the arithmetic against plain loops, the promises, and each guard broken on purpose."""

import math
import statistics
import sys

import numpy as np
import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.statistics import changes
from plumbline.statistics.changes import Change, Settings, follow

sys.path.insert(0, str(paths.root() / "tests/rates"))
import changes as rates
from promises import Promises

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
    assert change == Change(20, 24, pytest.approx(1.1))
    assert {type(change.index), type(change.seen_at)} == {int}, "plain data"
    assert follow([3.0] * 20 + [3.1] * 80).changes == ()  # real, and smaller than 5 %


def test_too_few_points_say_nothing():
    for points in range(15):
        course = follow(series(0, points) * np.linspace(1, 2, points))
        assert course.changes == ()
    assert follow(series(0, 9)).smallest_visible is None
    assert follow(series(0, 10)).smallest_visible is not None


@pytest.mark.parametrize("value", [0.105, 0.115, 0.145])
@pytest.mark.parametrize("noise", [0.0005, 0.005])
def test_one_printed_step_is_no_change(value, noise):
    """0.1149 and 0.1151 are printed as 0.11 and 0.12: that is 9 %."""
    assert rates.printed(value, noise, change=0.002, series=20, seed=1) == 0
    assert rates.printed(value, noise, change=math.log(1.2), series=20, seed=1) > 0.9


def test_a_constant_may_have_changed_by_a_step_unseen():
    assert follow([0.11] * 40, step=0.01).smallest_visible > follow([0.11] * 40).smallest_visible + 0.09


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


def simulated(model, step=0.0, count=8, launches=5):
    """Series of tests/rates/changes.py, always the same, with a slowdown of ``step`` at point 50."""
    random = np.random.default_rng([7, *model.encode()])
    for _ in range(count):
        logs = rates.MODELS[model](random, rates.POINTS, launches)
        logs[rates.STEP_AT :] += np.log1p(step)
        yield np.exp(logs)


def alarms(every, settings=None):
    """Of each series the changes and the points that showed them: 50@54 is the fifth slower point."""
    courses = [follow(values, settings) for values in every]
    return " ".join("+".join(f"{c.index}@{c.seen_at}" for c in course.changes) or "-" for course in courses)


#: by model and step: what `make rates` measures the rates of
ALARMS = {
    ("quiet", 0.0): "- - - - - - - -",
    ("quiet", 0.03): "- - - - - - - -",
    ("quiet", 0.05): "50@54 50@54 50@55 50@54 50@54 50@55 50@54 50@54",
    ("quiet", 0.1): "50@54 50@54 50@54 50@54 50@54 50@54 50@54 50@54",
    ("bimodal", 0.0): "- - - - - - - -",
    ("bimodal", 0.03): "- - - - - - - -",
    ("bimodal", 0.05): "50@54 49@55 50@57 50@54 50@54 50@56 50@58 50@54",
    ("bimodal", 0.1): "50@54 49@53 50@54 50@54 50@54 50@54 50@54 50@54",
    ("drift", 0.0): "- - - - - - - -",
    ("drift", 0.03): "- - - - - - - -",
    ("drift", 0.05): "50@69 - - - - 51@68 50@88 -",
    ("drift", 0.1): "50@58 50@60 50@63 50@67 50@71 50@57 50@55 50@55",
    ("noisy", 0.0): "- - - - - - - -",
    ("noisy", 0.03): "- - - - - - - -",
    ("noisy", 0.05): "- 50@70 50@84 50@71 - 50@93 54@78 -",
    ("noisy", 0.1): "50@55 50@54 50@55 50@54 50@62 50@59 50@56 50@56",
    ("spikes", 0.0): "- - - - - - - -",
    ("spikes", 0.03): "- - - - - - - -",
    ("spikes", 0.05): "46@52 50@55 50@55 50@54 50@54 50@56 50@54 -",
    ("spikes", 0.1): "46@52 50@54 50@54 50@54 50@54 50@54 50@54 50@60",
    ("sine", 0.0): "- 24@41 20@43 - - - - -",
    ("walk", 0.0): "41@67 14@31 - - - 20@25+50@54 - 90@97",
}


@pytest.mark.parametrize(("model", "step"), ALARMS)
def test_alarms(model, step):
    """Slow waves (sine, walk) are not always told from steps."""
    assert alarms(simulated(model, step)) == ALARMS[model, step]


#: in percent
VISIBLE = {
    "quiet": "5.82 5.83 5.76 5.63 5.87 5.68 6.68 5.66",
    "bimodal": "7.34 7.09 7.20 6.96 6.90 7.03 7.82 7.05",
    "drift": "22.10 23.37 22.25 18.81 27.94 14.94 11.36 8.45",
    "noisy": "10.69 10.01 9.81 12.63 15.19 10.23 11.48 11.35",
    "spikes": "30.14 6.79 7.08 6.27 6.30 7.26 6.66 13.95",
}


@pytest.mark.parametrize("model", VISIBLE)
def test_the_smallest_visible_step_is_seen_within_ten_points(model):
    sizes = []
    for values in simulated(model):
        sizes.append(follow(values[:50]).smallest_visible)
        values[50:] *= 1 + sizes[-1]
        assert follow(values[:60]).changes
    assert " ".join(f"{100 * size:.2f}" for size in sizes) == VISIBLE[model]


def test_what_the_rates_promise():
    rate = rates.Rates(100, 0.99, 4.0, 0.01)
    promises = Promises()
    rates.keep("quiet", 0.01, {0.05: rate, 0.10: rate}, 0.99, promises)
    rates.keep("sine", 0.1, {}, 0.99, promises)
    assert promises.broken == []
    late = rates.Rates(100, 0.8, 5.5, 0.0)
    rates.keep("quiet", 0.03, {0.05: late, 0.10: late}, 0.94, promises)
    rates.keep("sine", 0.2, {}, 0.99, promises)
    assert len(promises.broken) == 6


def test_few_looks_need_the_full_test(monkeypatch):
    """Of 925 looks at series without a step: that makes it fast."""
    sizes = []
    energy = changes.energy
    monkeypatch.setattr(changes, "energy", lambda logs: sizes.append(len(logs)) or energy(logs))
    for model in rates.PROMISED:
        follow(np.exp(rates.MODELS[model](np.random.default_rng(1), 200, 1)))
    assert len(sizes) == 79
    assert max(sizes) == SETTINGS.window


def test_guard_persistence():
    """A change that need not last is raised by spikes."""
    assert alarms(simulated("spikes", 0.0, 5, 1)) == "- - - - -"
    at_once = "37@37+49@49 27@27 60@60 21@21+92@92 18@18+62@62"
    assert alarms(simulated("spikes", 0.0, 5, 1), Settings(persist=1)) == at_once


def test_guard_autocorrelation(monkeypatch):
    """Without the inflation of variances, waves are steps."""
    assert alarms(simulated("drift", 0.0, 6, 1)) == "- - - - - -"
    original = changes._noise

    def plain(residuals, fitted):
        noise = original(residuals, fitted)
        return changes._Noise(noise.variance, noise.freedom, 1.0)

    monkeypatch.setattr(changes, "_noise", plain)
    assert alarms(simulated("drift", 0.0, 6, 1)) == "- - 10@38 - - 35@42+46@69"


def test_guard_spikes(monkeypatch):
    """Without clipping, spikes in the past hide a step."""
    every = [series(seed, 70, steps=[(50, 1.08)]) for seed in range(6)]
    for values in every:
        values[[10, 25, 40]] *= 1.6
    assert alarms(every) == "50@54 50@54 50@54 50@55 50@55 50@54"
    monkeypatch.setattr(changes, "despike", lambda logs, settings: logs)
    assert alarms(every) == "- - - - - -"


def test_guard_margin_of_spikes(monkeypatch):
    """Clipping without a margin takes a second mode for spikes, and its return for a change."""
    values = np.exp(np.array([0.0, 0.001, -0.001, 0.002, 0.0, 0.06] * 8 + [0.06] * 5))
    logs = np.log(values)
    assert changes.despike(logs, SETTINGS)[5] > 0.05
    monkeypatch.setattr(changes, "SPIKE", 0.0)
    assert changes.despike(logs, Settings(min_effect=1e-6))[5] < 0.01


def test_guard_significance():
    """At p = 0.05 noise alone raises alarms."""
    assert alarms(simulated("noisy", 0.0, 4, 1)) == "- - - -"
    raised = "17@32+33@38+71@75 23@28 43@53+58@64 45@49+58@64"
    assert alarms(simulated("noisy", 0.0, 4, 1), Settings(p_value=0.05)) == raised


def test_a_change_that_begins_later_than_it_could_have_lasted_waits():
    logs = np.log(series(3, 44, noise=0.003, steps=[(40, 1.3)]))
    assert changes.split(logs, SETTINGS) is None
    assert changes.split(np.append(logs, logs[-1]), SETTINGS) == 40
