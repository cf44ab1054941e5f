"""Scaling curves with planted laws: intervals, the law that is named, and why a curve bends."""

import contextlib
import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from plumbline.base.errors import PlumbError
from plumbline.extras.scale import bends, curve, gated, measured, shown
from plumbline.extras.scale.bends import Account, Step
from plumbline.extras.scale.curve import Curve
from plumbline.extras.scale.measured import Scaling
from plumbline.host import binder, machine
from plumbline.judge import decide
from plumbline.judge.pairs import Column, Pairs, efficiency
from plumbline.parsers.application import FigureRule
from plumbline.records.launch import RankSeen, ThreadSeen
from plumbline.statistics.paired import PairedRule

sys.path.insert(0, str(Path(__file__).parents[3] / "rates"))
from scaling import COUNTS, LAWS, N, planted


@pytest.mark.parametrize("name", LAWS)
def test_intervals_hold_the_planted_efficiency_and_parameters(name):
    """95 % intervals of efficiency; parameters' in 99 %, if the right law is named; a curve without a law has none."""
    times, parameters = LAWS[name]
    inside, counted, covered, named = 0, 0, 0, 0
    for seed in range(40):
        known = planted(name, 0.01, 8, seed)
        for place in range(1, len(COUNTS)):
            each, truth = known.efficiency(place), times[0] / (times[place] * N[place])
            inside += each.low <= truth <= each.high
            counted += 1
        law, why = known.law()
        assert law is None or parameters, law
        assert law or "refused" in why
        if law:
            named += law.parameters.keys() == parameters.keys()
            covered += all(law.parameters[key].low <= parameters[key] <= law.parameters[key].high for key in parameters)
    assert inside >= 0.9 * counted
    assert named >= (38 if parameters else 0)
    assert covered >= (38 if parameters else 0)


def test_rates_and_weak_scaling_have_speedups_too():
    values = np.array([[10.0] * 3, [18.0] * 3])
    assert Curve((1, 2), values, rates=True).speedup(1).value == pytest.approx(1.8)
    slower = Curve((1, 2), np.array([[1.0] * 3, [1.25] * 3]), weak=True)
    assert (slower.speedup(1).value, slower.efficiency(1).value) == pytest.approx((1.6, 0.8))


def test_a_point_without_values_is_a_hole():
    """Nothing is interpolated; without the first point the next one is the base."""
    values = np.array([[np.nan] * 3, [1.0, 1.01, 0.99], [0.5, 0.51, 0.5]])
    known = Curve((1, 2, 4), values)
    assert (known.measured, known.base) == ([1, 2], 1)
    assert known.efficiency(2).value == pytest.approx(0.99, abs=0.02)
    assert known.law() == (None, "a law needs three points and three rounds of all of them")


def test_the_best_numbers_say_what_is_not_decided():
    known = planted("saturated at 8", 0.03, 6, 1)
    least, open_places = curve.fastest(known)
    assert least == 3
    assert set(open_places) <= {3, 4, 5, 6}
    largest, _ = curve.most_efficient(planted("saturated at 8", 0.005, 6, 1), 0.7)
    assert COUNTS[largest or 0] == 8
    assert curve.most_efficient(planted("saturated at 8", 0.005, 6, 1), 1.2) == (None, [])


SPENT = {
    "kernel": 0.0, "faults": 0.0, "threads": 4, "workers": 4,
    **dict.fromkeys(("thread_load", "rank_load", "first", "others_load"), 1.0),
}  # fmt: skip


def step(cpu, wall, waited=0.0, weak=False, **spent):
    """From 2 threads that worked 4 s on 2 CPUs each to 4 threads."""
    old = Account(8.0, 4.0, 0.0, {**SPENT, "threads": 2, "workers": 2})
    grown = 2.0 if weak else 1.0
    return Step(2, 4, 4.0 / 2 / wall * grown, old, Account(cpu, wall, waited, {**SPENT, **spent}), weak, "threads")


def counted(known, before, now):
    """``known`` with the instructions and cycles of both points, in 10^9."""
    both = zip((known.old, known.new), (before, now), strict=True)
    old, new = (
        dataclasses.replace(each, spent={**each.spent, "instructions": many, "cycles": cycles})
        for each, (many, cycles) in both
    )
    return dataclasses.replace(known, old=old, new=new)


@pytest.mark.parametrize(("planted_step", "name"), [
    (step(8.0, 3.0, thread_load=1.5), "load"),
    (step(8.0, 3.0, thread_load=1.5, first=2.0), "serial part"),
    (step(8.0, 3.0, thread_load=1.5, first=1.5, others_load=1.3), "load"),
    (step(8.0, 3.0), "waits"),
    (step(8.0, 3.0, waited=1.0), "other work"),
    (step(8.0, 4.0, workers=2), "not used"),
    (step(8.0, 4.0, workers=2, listed=0.1), "load or waits"),
    (step(12.0, 3.0), "memory, caches, clock, or spinning"),
    (step(12.0, 3.0, kernel=0.33, faults=250_000), "kernel"),
    (step(24.0, 6.0, weak=True), "memory, caches, clock, or spinning"),
    (step(12.0, 3.0, memory=0.96), "memory bandwidth"),
    (step(12.0, 3.0, memory=0.5), "memory, caches, clock, or spinning"),
    (counted(step(12.0, 3.0), (20, 20), (31, 31)), "more instructions"),
    (counted(step(24.0, 6.0, weak=True), (20, 20), (40, 60)), "memory or caches"),
    (counted(step(12.0, 3.0, memory=0.96), (20, 20), (20, 30)), "memory bandwidth"),
])  # fmt: skip
def test_the_account_of_cpu_time_names_the_cause(planted_step, name):
    assert [each.name for each in bends.causes(planted_step)] == [name]
    assert bends.sentence(planted_step).startswith("from 2 to 4 threads: +")
    assert f"of +100 %: {name}: " in bends.sentence(planted_step)


def test_an_efficiency_that_falls_is_said_with_both_values():
    """Twice as fast on two threads; the candidate, which is as fast on one, 1.6 times."""
    noise = 0.002 * np.random.default_rng(5).standard_normal((4, 30))
    times = (np.exp(noise) * np.array([[1.0], [1.0], [0.5], [0.625]])).tolist()
    one, two = (Pairs("t", Column(old), Column(new), "lower") for old, new in (times[:2], times[2:]))
    (verdict,) = decide.decide([efficiency("p %threads=2: efficiency", two, one, 2.0)], PairedRule())
    assert gated.sentence(verdict) == "efficiency at 2 threads: fell from 1.00 to 0.80 (0.80 to 0.80)"
    (verdict,) = decide.decide([efficiency("p %threads=2: efficiency", one, one, 2.0)], PairedRule())
    assert gated.sentence(verdict).startswith("efficiency at 2 threads: 0.50, and 0.50 (")


@pytest.mark.parametrize("launch", [
    '"place": 2, "round": 0',
    '"place": -1, "round": 0',
    '"place": 0, "round": 9',
    '"place": 0, "round": 0, "value": 0.0',
])  # fmt: skip
def test_launches_that_were_not_measured_are_one_line(tmp_path, launch):
    (tmp_path / measured.FILE).write_text(f"[{{{launch}}}]")
    with pytest.raises(PlumbError, match="not the launches of a scaling"):
        measured.kept(tmp_path, SCALING)


def test_a_clock_that_falls_is_a_cause_where_it_is_known():
    slower = step(10.0, 2.5)
    assert "a lower clock" in bends.sentence(slower)
    clocked = [dataclasses.replace(each, ghz=ghz) for each, ghz in ((slower.old, 3.5), (slower.new, 2.8))]
    known = dataclasses.replace(slower, old=clocked[0], new=clocked[1])
    assert "clock: the clock of the CPUs fell from 3.50 to 2.80 GHz" in bends.sentence(known)
    same = dataclasses.replace(slower, old=clocked[0], new=dataclasses.replace(clocked[1], ghz=3.5))
    assert "a lower clock" not in bends.sentence(same)
    scaling = structs.replace(SCALING, counts=[2, 4])
    row = shown._row(scaling, Curve((2, 4), np.array([[4.0] * 3, [2.5] * 3])), dict(enumerate(clocked)), 1, 0)
    assert row.common
    assert row.common.value == pytest.approx(0.8 * 3.5 / 2.8)


def test_clocks_are_those_of_the_cpus_of_the_launch(tmp_path):
    for cpu, khz in ((0, "3500000"), (1, "2500000"), (2, "800000")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(khz)
    thread = ThreadSeen(name="p", affinity=[0, 1], last_cpu=0)
    rank = RankSeen(host=os.uname().nodename, rank=0, local_rank=0, threads=[thread], memory={}, usage={})
    with measured.Clocks(tmp_path, range(4)) as looks:
        assert looks.of([rank]) == 0.0
        while not looks.looks:
            time.sleep(0.01)
    assert looks.of([rank]) == 3.0
    assert looks.of([structs.replace(rank, host="elsewhere")]) == 0.0


def test_nodes_share_no_memory():
    (known,) = bends.causes(dataclasses.replace(step(12.0, 3.0), kind="nodes"))
    assert known.name == "copies, or waits that poll"


def test_ranks_without_mpi_are_copies():
    """Each of two ranks does all of the work: the time stays, the CPU time doubles."""
    known = dataclasses.replace(step(16.0, 4.0, mpi=0.0), kind="ranks")
    assert ": copies: no rank called MPI_Init, and the same work took 2.00 times the CPU" in bends.sentence(known)


SCALING = Scaling(
    name="x", kind="threads", counts=[1, 2], commands=[["x"]] * 2, placement="compact", weak=False,
    rule=FigureRule(wall=True), minutes=1.0, rounds=3, seed=1, circumstances={},
)  # fmt: skip


def test_launches_without_a_value_are_said_where_others_have_one():
    launches = [measured.Measured(place=0, round=number, value=1.0) for number in range(3)]
    launches += [
        measured.Measured(place=1, round=0, value=0.5), measured.Measured(place=1, round=1, reason="killed by signal 9")
    ]  # fmt: skip
    result = shown.result(SCALING, launches, "time is up", 0.7)
    assert "2 threads: 1 of 2 launches had no value, the last: killed by signal 9" in result.lines
    assert not any("1 thread:" in line for line in result.lines)
    none = shown.result(SCALING, [*launches[:3], launches[-1]], "time is up", 0.7)
    assert none.last == "no best number: only 1 thread has a value"
    assert shown.as_csv(none).splitlines()[-1] == "2,,,,,,,killed by signal 9"


@pytest.mark.parametrize(("busy", "fault"), [
    (1.0, []), (0.5, ["the neighbour on the other cores worked for 50 % of its time"]),
])  # fmt: skip
def test_the_cores_that_a_point_leaves_idle_have_a_neighbour(tmp_path, monkeypatch, busy, fault):
    """One of its hardware threads each, and none where no core is left; the neighbour must have worked."""
    calls, two, plan = [], machine.load("core:2 pu:2"), binder.resolve

    @contextlib.contextmanager
    def beside(kind, here, cpus, folder):
        calls.append((kind, cpus, folder))
        yield (seen := [])
        seen.append(busy)

    monkeypatch.setattr(measured.neighbour, "neighbour", beside)
    monkeypatch.setattr(measured.neighbour, "busy", lambda seen, cpus: seen)
    monkeypatch.setattr(measured.machine, "load", lambda: two)
    monkeypatch.setattr(measured.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(measured.binder, "resolve", lambda *words, **more: plan(*words, topology="core:2 pu:2", **more))
    for place, expected in ((0, fault), (1, [])):
        with measured._filled(structs.replace(SCALING, fill="compute"), place, tmp_path) as seen:
            assert seen == []
        assert seen == expected
    with measured._filled(SCALING, 0, tmp_path) as seen:
        pass
    assert calls == [("compute", [2], tmp_path)]


def test_two_causes_at_once_are_both_named():
    """Half is idle time, half is dearer work. Time that the account does not have is not decided."""
    line = bends.sentence(step(10.0, 3.1, kernel=0.2))
    assert ": waits, and kernel: CPUs were busy 81% as long as before" in line
    assert "the same work took 1.25 times the CPU time" in line
    elsewhere = dataclasses.replace(step(8.2, 2.1), kept=0.8)
    parts = "CPUs were busy 98% as long as before, with 1.02 times the CPU time"
    assert f"cause not decided: {parts}" in bends.sentence(elsewhere)


def test_two_rounds_have_no_interval():
    known = Curve((1, 2), np.array([[1.0, 1.1], [0.6, 0.61]]))
    assert shown._interval(known.efficiency(1)) == f"{known.efficiency(1).value:.2f}"


def test_the_part_of_the_machine_that_fewer_threads_saturate():
    """One L3 cache is full with half of its cores; the node is not."""
    known = Curve((1, 2, 4, 8), 1 / np.array([[1.0] * 3, [2.0] * 3, [2.0] * 3, [4.0] * 3]))
    (line,) = shown._saturated(known, {4: "one L3 cache", 8: "one node"})
    assert line == "one L3 cache (4 cores) is saturated: 2 threads have at least 95% of its rate"


def test_no_share_is_above_all_or_below_nothing():
    law = curve.Law("Amdahl", {"a": curve.Interval(0.87, -0.1, 1.2)})
    known = curve.Curve([1, 2, 4], np.ones((3, 3)))
    assert "serial share 87.00% (0.00% to 100.00%); by it 8 " in shown._law(law, known)
