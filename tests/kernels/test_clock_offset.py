"""The arithmetic of synchronised clocks and of the median's interval, in C, against clocks and numbers made up here."""

import ctypes
import math
import random
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.base import paths

FOLDER = paths.root() / "custom-kernels"


class Trip(ctypes.Structure):
    _fields_ = (("sent", ctypes.c_double), ("theirs", ctypes.c_double), ("back", ctypes.c_double))


class Offset(ctypes.Structure):
    _fields_ = (("at", ctypes.c_double), ("value", ctypes.c_double), ("error", ctypes.c_double))


class Line(ctypes.Structure):
    _fields_ = (("first", Offset), ("last", Offset))


class Interval(ctypes.Structure):
    _fields_ = (("low", ctypes.c_double), ("high", ctypes.c_double))


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    file = tmp_path_factory.mktemp("clocks") / "clocks.so"
    sources = [str(FOLDER / "kernels/messages/clock_offset.c"), str(FOLDER / "runtime" / "samples.c")]
    command = ["gcc", "-std=c17", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(file), *sources, "-lm"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(file))
    library.offset_of.restype = Offset
    library.line_ahead.restype = Line
    library.median_interval.restype = Interval
    for name in ("line_at", "line_error", "line_drift_ppm", "out_of_order"):
        getattr(library, name).restype = ctypes.c_double
    return library


class FakeClock:
    """Another clock, ``ahead`` ns at own time 0 and ``ppm`` too fast, that is asked over a network with any delays."""

    def __init__(self, ahead: float, ppm: float, seed: int) -> None:
        self.ahead, self.ppm, self.dice = ahead, ppm, random.Random(seed)  # noqa: S311 - a simulation

    def offset(self, own: float) -> float:
        """The truth."""
        return self.ahead + own * self.ppm * 1e-6

    def trips(self, own: float, count: int = 64) -> ctypes.Array[Trip]:
        """Round trips from own time ``own`` on, the way there ten times as slow as the way back on average."""
        found = (Trip * count)()
        for trip in found:
            there = own + 500 + self.dice.expovariate(1 / 5000)
            back = there + 300 + self.dice.expovariate(1 / 500)
            trip.sent, trip.theirs, trip.back = own, there + self.offset(there), back
            own = back + 50
        return found


@settings(max_examples=300)
@given(st.floats(-1e14, 1e14), st.floats(-500, 500), st.integers(0, 2**32), st.floats(1e8, 1e10))
def test_the_truth_lies_within_the_error_before_after_and_between(clocks, ahead, ppm, seed, apart):
    clock = FakeClock(ahead, ppm, seed)
    offsets = [clocks.offset_of(clock.trips(when), 64) for when in (0.0, apart)]
    rounding = abs(ahead) * 1e-15 + 0.01 + abs(ppm) * 1e-6 * 2e4  # of doubles; drift during a round trip
    for offset in offsets:
        assert 0 < offset.error < 20_000
        assert abs(offset.value - clock.offset(offset.at)) <= offset.error + rounding
    line = Line(*offsets)
    for part in (0.0, 0.3, 0.7, 1.0):
        own = offsets[0].at + part * (offsets[1].at - offsets[0].at)
        found = clocks.line_at(ctypes.byref(line), ctypes.c_double(own))
        assert abs(found - clock.offset(own)) <= clocks.line_error(ctypes.byref(line)) + rounding
    steepest = 2e6 * (offsets[0].error + offsets[1].error) / apart
    assert abs(clocks.line_drift_ppm(ctypes.byref(line)) - ppm) <= steepest + 1e6 * 2 * rounding / apart


@settings(max_examples=300)
@given(st.floats(-500, 500), st.integers(0, 2**32), st.floats(1e9, 1e11))
def test_what_lies_ahead_is_predicted_without_the_drift_of_errors(clocks, ppm, seed, later):
    """A drift of two uncertain offsets that is taken as it is leads away further and further: ranks wait for it."""
    clock = FakeClock(1e6, ppm, seed)
    first, last = (clocks.offset_of(clock.trips(when), 64) for when in (0.0, 2e8))
    line = clocks.line_ahead(first, last)
    found = clocks.line_at(ctypes.byref(line), ctypes.c_double(last.at + later))
    allowed = last.error + abs(ppm) * 1e-6 * (later + 2e4) + 0.1
    assert abs(found - clock.offset(last.at + later)) <= allowed
    assert abs(clocks.line_drift_ppm(ctypes.byref(line))) <= abs(ppm) + 1e-6


def test_the_shortest_round_trip_counts(clocks):
    trips = (Trip * 3)(Trip(0, 9000, 2000), Trip(3000, 8100, 3200), Trip(4000, 9900, 5000))
    found = clocks.offset_of(trips, 3)
    assert (found.at, found.value, found.error) == (3100, 5000, 100)


@pytest.mark.parametrize(("theirs", "disorder"), [(150.0, 0.0), (100.0, 0.0), (200.0, 0.0), (99.0, 1.0), (230.0, 30.0)])
def test_one_clock_is_read_between_question_and_answer(clocks, theirs, disorder):
    trips = (Trip * 2)(Trip(10, 15, 20), Trip(100, theirs, 200))
    assert clocks.out_of_order(trips, 2) == disorder


def rank_of(count: int) -> int | None:
    """Which order statistic the sign test's 95 % interval begins with, counted from 1."""
    outside, below = 0, 0
    while 40 * (outside + math.comb(count, below)) <= 2**count:
        outside += math.comb(count, below)
        below += 1
    return below or None


@pytest.mark.parametrize("count", [1, 5, 6, 7, 10, 20, 30, 99, 100, 200, 1000, 5000])
def test_the_interval_of_the_median_is_that_of_the_sign_test(clocks, count):
    values = (ctypes.c_double * count)(*range(1, count + 1))
    found = clocks.median_interval(values, ctypes.c_size_t(count))
    rank = rank_of(count)
    if rank is None:
        assert count < 6
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    else:
        assert (found.low, found.high) == (rank, count + 1 - rank)


def test_tables_have_the_same(clocks):
    """The order statistics that every table of the sign test has for 95 %."""
    assert [rank_of(count) for count in (6, 10, 20, 30)] == [1, 2, 6, 10]
