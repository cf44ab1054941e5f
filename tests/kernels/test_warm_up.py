"""The warm-up of kernels, in C, against calls whose times and page faults are made up here."""

import ctypes
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.stacks import kernels, manifest

FOLDER = paths.root() / "custom-kernels"
#: time in ns and page faults of a call, by its number
Call = Callable[[int], tuple[float, float]]
BATCH = ctypes.CFUNCTYPE(
    None, ctypes.c_long, ctypes.c_long, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)
)


class WarmUps(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_long) for name in ("all", "unsteady")),
        *((name, ctypes.c_double) for name in ("change", "faults", "passed_ns")),
    )


@pytest.fixture(scope="module")
def warm_up(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[int, WarmUps, str]]:
    """Warms up by a ``Call``: the number of calls, what it came to, and what the kernel says of it."""
    names = manifest.names()
    if not names:
        pytest.skip("no stack is installed: make setup")
    stack = manifest.load("mpich" if "mpich" in names else names[0])
    folder = tmp_path_factory.mktemp("warm_up")
    file = folder / "take.so"
    sources = [
        Path(__file__).with_name("warm_up_take.c"),
        *(FOLDER / "runtime" / name for name in ("warm_up.c", "samples.c", "timer.c")),
    ]
    command = [kernels.wrapper(stack), "-std=c17", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC"]
    # the functions of MPI are not called
    command += [f"-I{FOLDER / 'runtime'}", "-Wl,-z,lazy", "-o", file, *sources, "-lm"]
    environment = {**os.environ, **manifest.environment(stack, os.environ)}
    subprocess.run([str(word) for word in command], check=True, env=environment)
    library = ctypes.CDLL(str(file), mode=ctypes.RTLD_LOCAL | 1)
    library.take.restype = ctypes.c_long
    library.remark.restype = ctypes.c_char_p

    def taken(call: Call, most_s: float = 0.1) -> tuple[int, WarmUps, str]:
        def batch(first: int, calls: int, time, faults) -> None:
            made = [call(number) for number in range(first, first + calls)]
            time[0], faults[0] = sum(one[0] for one in made), sum(one[1] for one in made)

        found = WarmUps()
        calls = library.take(ctypes.c_double(most_s), BATCH(batch), ctypes.byref(found))
        return calls, found, library.remark(ctypes.byref(found)).decode()

    return taken


def noisy(seed: int) -> Callable[[], float]:
    """A factor about 1, sometimes 20: what an interruption does."""
    dice = random.Random(seed)  # noqa: S311 - a simulation
    return lambda: dice.uniform(0.9, 1.1) * (20 if dice.random() < 0.002 else 1)


def test_calls_that_stay_the_same_end_the_warm_up_by_its_least_time(warm_up):
    factor = noisy(0)
    for _ in range(20):
        calls, found, remark = warm_up(lambda _: (5000 * factor(), 0.0))
        assert 500 <= calls <= 10_000
        assert (found.unsteady, remark) == (0, "")


def test_a_slow_start_with_page_faults_is_waited_for(warm_up):
    """As Intel MPI's: 510 round trips of 40 us (here so slow that the least time is over), then 0.4 us."""
    factor = noisy(1)
    calls, found, remark = warm_up(lambda number: (40_000 * factor(), 0.5) if number < 510 else (400 * factor(), 0.0))
    assert calls > 2 * 510
    assert (found.unsteady, remark) == (0, "")


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_trend_that_remains_is_unsteady(warm_up, sign):
    factor = noisy(2)
    _, found, remark = warm_up(lambda number: (20_000 * (number + 1) ** (0.5 * sign) * factor(), 0.0), 0.02)
    assert found.unsteady == 1
    assert sign * found.change > 0.05
    assert found.faults == 0
    assert found.passed_ns >= 2e7
    after = r"after 0\.02\d? s of warm-up a call's time still changed by [\d.]+ %"
    assert re.match(rf"not steady: 1 of 1 figures; {after}", remark)
    assert remark.endswith("likely cause: other programs, or a clock of the cores that changes")


def test_page_faults_that_remain_are_unsteady_and_counted(warm_up):
    _, found, remark = warm_up(lambda number: (5_000.0, 0.25))
    assert found.unsteady == 1
    assert found.faults == pytest.approx(0.25)
    assert remark.endswith("with 0.25 page faults a call; likely cause: memory that is touched for the first time")


def test_few_page_faults_are_none(warm_up):
    """Intel MPI's large messages have two in eight for good."""
    _, found, remark = warm_up(lambda number: (80_000.0, 0.25))
    assert (found.unsteady, remark) == (0, "")


@pytest.mark.parametrize(("most_s", "expected"), [(0.1, 10), (0.0, 1)])
def test_long_calls_end_by_the_bound_and_are_not_judged(warm_up, most_s, expected):
    calls, found, remark = warm_up(lambda number: (1e7 / (number + 1) if most_s == 0 else 1e7, 5.0), most_s)
    assert calls == expected
    assert (found.unsteady, remark) == (0, "")
