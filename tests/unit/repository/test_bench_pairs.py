"""The comparison of interleaved launches: its interval holds what it says, its verdicts follow the interval."""

import json
import random
import sys
from types import ModuleType

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(paths.root() / "tests/bench"))
    monkeypatch.delitem(sys.modules, "pairs", raising=False)
    import pairs

    return pairs


@pytest.mark.parametrize(("count", "low", "high"), [(6, 0, 5), (10, 1, 8), (20, 5, 14), (30, 9, 20)])
def test_interval_is_that_of_the_tables(pairs, count, low, high):
    """The order statistics that every table of the sign test has for 95 %."""
    assert pairs.interval(range(count)) == (low, high)


def test_too_few_pairs_have_no_interval(pairs):
    with pytest.raises(ValueError, match="5 pairs have no 95 % interval"):
        pairs.interval(range(5))


def test_interval_covers_the_median(pairs):
    draw = random.Random(5)  # noqa: S311 - a simulation
    trials = 2000
    hits = 0
    for _ in range(trials):
        low, high = pairs.interval([draw.expovariate(1.0) for _ in range(12)])
        hits += low <= 0.6931 <= high
    assert hits >= 0.95 * trials - 3 * (trials * 0.05 * 0.95) ** 0.5


def test_launches_are_interleaved_and_the_first_ones_thrown_away(pairs):
    order: list[str] = []

    def run(name: str, value: float) -> float:
        order.append(name)
        return value if len(order) > 2 else 1e9

    ratio = pairs.compare(lambda: run("ours", 3.0), lambda: run("theirs", 2.0), 8, "higher")
    assert (ratio.median, ratio.low, ratio.high, ratio.pairs) == (1.5, 1.5, 1.5, 8)
    assert (ratio.ours, ratio.theirs) == (3.0, 2.0)
    couples = [frozenset(order[start : start + 2]) for start in range(2, len(order), 2)]
    assert couples == [frozenset({"ours", "theirs"})] * 8
    assert len({tuple(order[start : start + 2]) for start in range(2, len(order), 2)}) == 2


@pytest.mark.parametrize(("median", "low", "high", "better", "verdict"), [
    (1.02, 1.01, 1.03, "higher", "reached"),
    (1.02, 0.99, 1.03, "higher", "open, median reaches it"),
    (0.99, 0.97, 1.01, "higher", "open, median misses it"),
    (0.98, 0.97, 0.99, "higher", "missed"),
    (0.98, 0.97, 0.99, "lower", "reached"),
    (1.02, 1.01, 1.03, "lower", "missed"),
])  # fmt: skip
def test_verdicts(pairs, median, low, high, better, verdict):
    assert pairs.Ratio(median, low, high, 9, 1.0, 1.0, better).verdict(1.0) == verdict


def test_the_table_and_the_status_name_what_was_missed(pairs, capsys):
    missed = pairs.Ratio(0.90, 0.88, 0.92, 9, 90.0, 100.0, "higher")
    assert pairs.report(lambda: {"triad": (missed, 1.0)}, "MB/s") == 1
    out = capsys.readouterr().out
    assert "[0.880, 0.920]" in out
    assert "missed" in out

    def fails() -> None:
        raise PlumbError("no stack", "mpich", "install it")

    assert pairs.report(fails, "MB/s") == 2


def test_a_figure_is_one_row_of_a_kernel(pairs):
    rows = [{"metric": "time", "value": value, "params": {"threads": value}} for value in (1, 2)]
    text = json.dumps({"measurements": rows})
    assert pairs.figure(text, "time", threads=2) == 2.0
    with pytest.raises(PlumbError, match="2 figures 'time'"):
        pairs.figure(text, "time")


def test_a_launch_that_fails_is_an_error(pairs):
    with pytest.raises(PlumbError, match="exit status 3: broken"):
        pairs.launch(["sh", "-c", "echo broken >&2; exit 3"])
    assert pairs.launch(["printenv", "PLUMB_X"], {"PLUMB_X": "1"}) == "1\n"


def test_what_the_other_programs_print_is_read(pairs, monkeypatch):
    monkeypatch.delitem(sys.modules, "membw", raising=False)
    import membw

    assert (
        membw.stream_triad("Add:    1.0 2 3 4\nTriad:          31021.5     0.0125     0.0124     0.0126\n") == 31021.5
    )
    assert membw.likwid_rate("MFlops/s:\t\t3641.94\nMByte/s:\t\t43703.29\n") == 43703.29
    with pytest.raises(PlumbError, match="cannot read the output"):
        membw.stream_triad("Segmentation fault")


@pytest.mark.parametrize(("flags", "kernel"), [
    ("fpu sse2 avx avx2 avx512f", "stream_mem_avx512"),
    ("fpu sse2 avx avx2", "stream_mem_avx"),
    ("fpu sse2", "stream_mem_sse"),
])  # fmt: skip
def test_likwid_runs_the_widest_kernel(pairs, monkeypatch, flags, kernel):
    monkeypatch.delitem(sys.modules, "membw", raising=False)
    import membw

    assert membw.likwid_kernel(flags) == kernel
