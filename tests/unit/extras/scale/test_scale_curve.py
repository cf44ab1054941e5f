"""Scaling curves with planted laws: intervals, the law that is named, and why a curve bends."""

import dataclasses
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
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


def test_noisy_points_have_no_law():
    """They contradict none, be the curve what it may."""
    assert planted("jump of 50 % at 64", 0.05, 5, 1).law() == (
        None, "a law needs points that are known within 9%: more --rounds"
    )  # fmt: skip


def test_few_digits_hide_a_part_of_the_efficiency_and_no_round_cures_it():
    """0.2149 s and 0.1151 s, 0.93, are printed as 0.21 and 0.12 in each round."""
    known = Curve((1, 2, 4), np.array([[0.21] * 5, [0.12] * 5, [0.06] * 5]), steps=(0.01,) * 3)
    each = known.efficiency(1)
    assert each.low <= 0.2149 / (2 * 0.1151) <= each.high
    assert each.low <= 0.2051 / (2 * 0.1249) <= each.high
    assert (known.is_enough, known.is_known) == (True, False)
    assert known.law() == (None, "a law needs values that are printed with more digits")
    assert curve.fastest(Curve((1, 2), np.array([[0.22] * 5, [0.21] * 5]), steps=(0.01,) * 2))[1], "not decided"


@pytest.mark.parametrize(("unit", "value", "proven"), [("GB/s", 1234.56789, False), ("s", 1.4, True), ("1", 7.0, True)])
def test_a_stored_figure_is_no_value(unit, value, proven):
    scaling = SimpleNamespace(rule=FigureRule(pattern="(.*)", unit=unit), counts=[1, 2], cores=0, weak=False)
    launches = [measured.Measured(place=place, round=number, value=value) for number in range(5) for place in (0, 1)]
    kept = measured.proven(scaling, launches)
    assert len(measured.curve_of(scaling, kept).measured) == (2 if proven else 0)
    assert proven or "digit by digit" in measured.faults(scaling, kept)[1]


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
    (step(8.0, 3.0, thread_load=1.15, first=1.4), "load or waits"),
    (step(8.0, 3.0, thread_load=1.05), "waits"),
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
    (counted(step(12.0, 3.0, on_one_node=0.95), (20, 20), (20, 30)), "memory on one NUMA node"),
    (counted(step(12.0, 3.0, on_one_node=0.95), (20, 20), (31, 31)), "more instructions"),
    (step(12.0, 3.0, on_one_node=0.95), "memory, caches, clock, or spinning"),
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
    '"place": 0, "round": 0, "spent": {"threads": 1}}, {"place": 0, "round": 1, "spent": {"mpi": 0}',
])  # fmt: skip
def test_launches_that_were_not_measured_are_one_line(tmp_path, launch):
    (tmp_path / measured.FILE).write_text(f"[{{{launch}}}]")
    with pytest.raises(PlumbError, match="not the launches of a scaling"):
        measured.kept(tmp_path, SCALING)


@pytest.mark.parametrize("counts", [[], [1, 0], [-1]])
def test_a_scaling_over_no_number_is_one_line(tmp_path, counts):
    measured.SCALING.save(tmp_path, structs.replace(SCALING, counts=counts))
    with pytest.raises(PlumbError, match="not the state of a scaling"):
        measured.SCALING.peek(tmp_path)


def test_processors_need_not_have_counted_each_launch(tmp_path):
    each = ({}, {"ghz": 3.0, "cycles": 1e9, "instructions": 1e9})
    launches = [
        measured.Measured(place=0, round=number, value=1.0, spent=SPENT | more) for number, more in enumerate(each)
    ]
    (tmp_path / measured.FILE).write_bytes(msgspec.json.encode(launches))
    assert measured.kept(tmp_path, SCALING) == launches


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
    with measured.clocks(tmp_path, range(4)) as looks:
        assert measured.clock_of([rank], looks) == 0.0
        while not looks:
            time.sleep(0.01)
    assert measured.clock_of([rank], looks) == 3.0
    assert measured.clock_of([structs.replace(rank, host="elsewhere")], looks) == 0.0


def test_memory_on_one_numa_node_is_that_of_threads_on_several():
    here = machine.load("numa:2 core:1 pu:1")
    threads = [ThreadSeen(name="p", affinity=[cpu], last_cpu=cpu) for cpu in (0, 1)]
    memory = {"page_bytes": 1 << 20, "nodes": {"0": 250, "1": 20}, "freed_nodes": {"0": 10}}
    rank = RankSeen(host="n", rank=0, local_rank=0, threads=threads, memory=memory, usage={})
    assert measured._on_one_node(here, rank) == 260 / 280
    assert measured._on_one_node(here, structs.replace(rank, threads=threads[:1])) == 0.0
    assert measured._on_one_node(here, structs.replace(rank, memory={**memory, "page_bytes": 4096})) == 0.0
    line = bends.sentence(step(12.0, 3.0, on_one_node=0.93))
    assert "; 93% of a rank's memory lie on one NUMA node, its threads run on several" in line


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
    badges = [json.loads(shown.badge(each, 0.7)) for each in (result, none)]
    assert [(each["message"], each["color"]) for each in badges] == [
        ("100% with 2 threads", "yellow"), ("100% with 1 thread", "green")
    ]  # fmt: skip


def test_the_cores_that_a_point_leaves_idle_are_filled(tmp_path, monkeypatch):
    """One hardware thread of each: by the plan, or where the launcher puts ranks at a launch that does not count."""
    topology, plan = "core:2 pu:2", binder.resolve
    monkeypatch.setattr(measured.machine, "load", partial(machine.load, topology))
    monkeypatch.setattr(measured.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(measured.binder, "resolve", lambda *words, **more: plan(*words, topology=topology, **more))
    assert [measured._idle(measured._used(SCALING, None, place, tmp_path)) for place in (0, 1)] == [[2], []]
    job = SimpleNamespace(plan=plan("core", threads=1, ranks=1, topology=topology))
    of_file = structs.replace(SCALING, variants=[None])
    assert measured._idle(measured._used(of_file, lambda: SimpleNamespace(jobs=[job]), 0, tmp_path)) == [2]
    thread = ThreadSeen(name="p", affinity=[2, 3], last_cpu=3)
    rank = RankSeen(host=os.uname().nodename, rank=0, local_rank=0, threads=[thread], memory={}, usage={})
    monkeypatch.setattr(measured.proof, "run", lambda *_, **__: SimpleNamespace(ranks=[rank]))
    ranks = structs.replace(SCALING, kind="ranks", placement="")
    assert measured._idle(measured._used(ranks, None, 0, tmp_path / "launch")) == [0]


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
