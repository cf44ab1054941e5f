"""What a neighbour costs: the parts of machines, both proven, and false costs. Nothing is asserted on elapsed time."""

import contextlib
import json
import math
import os
import signal
import subprocess
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from witness_helper import compile_c

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list
from plumbline.commands import cli
from plumbline.extras.neighbours import bench
from plumbline.host import machine
from plumbline.launch import hosts, neighbour, process
from plumbline.launch.witness import disturbance
from plumbline.statistics import paired
from plumbline.statistics.paired import CAP, FAIL, SCALE, PairedRule

PROGRAM = """#!/bin/sh
n=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.count"
echo "rate: 200.$((n * 37 % 89 + 10)) MB/s"
"""
FIGURE = ("--figure", "rate: (\\S+)", "--unit", "MB/s", "--better", "higher")


@pytest.mark.parametrize(("topology", "parts"), [
    ("core:2 pu:1", [("NUMA", "0", "1")]),
    ("package:2 l3:1 core:2 pu:2", [("core", "0", "1"), ("L3", "0-1", "2-3"), ("NUMA", "0-3", "4-7")]),
    ("package:2 numa:2 l3:2 core:2 pu:1",
     [("L3", "0", "1"), ("NUMA", "0-1", "2-3"), ("socket", "0-3", "4-7"), ("node", "0-7", "8-15")]),
])  # fmt: skip
def test_each_distance_is_there_once_with_the_nearest_part_that_both_share(topology, parts):
    here = machine.load(topology)
    seen = [(each.shared, *map(cpu_list, each[1:])) for each in bench.distances(here, here.cpus)]
    assert seen == parts


def test_a_machine_without_two_parts_is_refused(capsys):
    with pytest.raises(PlumbError, match="a neighbour needs a part of its own"):
        bench.distances(machine.load("core:1 pu:1"), [0])
    assert cli.main(["neighbours", "--dry-run", "--topology", "package:2 l3:1 core:2 pu:2"]) == 0
    assert "15 neighbours: 390 to 2700 launches" in capsys.readouterr().out


#: a kernel that may have more CPUs than a cpu_set_t holds
MANY_CPUS = """
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
int sched_getaffinity(pid_t thread, size_t size, cpu_set_t *cpus) {
    long used = size > sizeof *cpus ? syscall(SYS_sched_getaffinity, thread, size, cpus) : -1;
    return used < 0 ? (errno = EINVAL, -1) : 0;
}
"""


def test_a_neighbour_works_where_there_may_be_more_than_1024_cpus(tmp_path):
    shim = compile_c(tmp_path, MANY_CPUS, "-shared", "-fPIC", name="many.so")
    words = [paths.tools() / "bin" / "plumb-neighbour", "sleeper", "1"]
    with subprocess.Popen(words, env={"LD_PRELOAD": str(shim)}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.terminate()


def unproven(kind, cpus, busy=1.0):
    """What is wrong with a neighbour on CPU 1 by such a witness."""
    seen = SimpleNamespace(
        threads=[SimpleNamespace(affinity=list(cpus))], ended=[], window=SimpleNamespace(wall_s=2.0),
        usage=SimpleNamespace(user_s=2.0 * busy, system_s=0.0),
    )  # fmt: skip
    return neighbour.unproven([seen], kind, (1,))


def test_the_neighbour_is_proven_on_its_part_and_at_work():
    assert unproven("memory", [1]) == []
    assert unproven("sleeper", [1], busy=0.0) == []
    assert unproven("memory", [1], busy=0.5) == ["the neighbour worked for 50 % of its time"]
    with pytest.raises(PlumbError, match="was seen on CPUs 0-1, its part is 1"):
        unproven("memory", [0, 1])
    with pytest.raises(PlumbError, match="was seen on CPUs none, its part is 1"):
        neighbour.unproven([], "memory", (1,))


def end(pid):
    os.kill(pid, signal.SIGTERM)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_launch_leaves_the_neighbour_alone_whose_own_end_is_an_error(tmp_path):
    start = partial(neighbour.neighbour, "sleeper", machine.load(), sorted(os.sched_getaffinity(0))[:1], tmp_path)
    with start() as idle:
        assert process.run(["true"], os.environ, tmp_path, 60.0).status == "ok"
    assert (idle, process.beside) == ([], set())
    with pytest.raises(PlumbError, match="ended by itself"), start():
        end(*process.beside)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a program, on parts that may be one CPU, where nothing counts as a disturbance."""
    quiet = {"disturbed": False, "causes": [], "figures": {}, "beside": []}
    monkeypatch.setattr(disturbance, "assess", lambda *_, **__: quiet)  # other tests run beside this one
    monkeypatch.setattr(hosts, "turn", lambda: contextlib.nullcontext([]))
    monkeypatch.setattr(neighbour, "BUSY", 0.0)
    cpus = sorted(os.sched_getaffinity(0))
    parts = [bench.Distance("L3", tuple(cpus[:1]), tuple(cpus[-1:]))]
    monkeypatch.setattr(bench, "distances", lambda *_: parts)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").write_text(PROGRAM)
    (tmp_path / "app").chmod(0o755)
    return tmp_path


def test_real_neighbours_are_measured_resumed_and_kept_apart_from_gates(here, capsys, refused):
    words = ["neighbours", "--kinds", "sleeper,messages", *FIGURE, "--work", "work"]
    assert cli.main([*words, "--minutes", "0.0001", "--", "./app"]) == 1
    assert "plumb neighbours --resume" in capsys.readouterr().out
    assert "its candidates have neighbours" in refused(3, "gate", "--resume", "work")
    status = cli.main(["neighbours", "--resume", "work", "--json"])
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert [(row["neighbour"], row["shared"], row["verdict"]) for row in rows] == [
        ("sleeper", "L3", "PASS"), ("messages", "L3", "PASS"),
    ]  # fmt: skip
    assert status == 0
    assert rows[0]["slowdown"] == pytest.approx(1.0, abs=0.02)
    assert err.splitlines()[-1] == "neighbours: none costs anything that was seen"


@pytest.mark.parametrize(("words", "reason"), [
    ([], "no program is named"),
    (["--kinds", "loud", "--", "./app"], "there is no neighbour 'loud'"),
    (["--", "./nobody"], "there is no program ./nobody (plumb neighbours)"),
    (["--stack", "x", "--", "./app"], "--stack is for programs of plumb.yaml"),
    (["--resume", "nowhere"], "give the folder that plumb neighbours named"),
    (["--resume", "."], "no measurement of neighbours to resume"),
])  # fmt: skip
def test_bad_input_is_one_line(here, capsys, words, reason):
    assert cli.main(["neighbours", *words]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert len(err.splitlines()) == 1


def costs(draw, cost, series, noise=0.01):
    """State and centre of series of pairs of launches, alone and beside a neighbour that costs so much."""
    logs = np.log(cost) + draw.normal(0, noise * math.sqrt(2), (series, CAP))
    values = np.rint(logs * SCALE).astype(np.int64)
    decided = paired.decisions(values, np.full(series, CAP), PairedRule())
    return decided.state, [paired.estimate(row[None, :used]) for row, used in zip(values, decided.pairs, strict=True)]


def test_a_sleeper_costs_nothing_and_a_known_cost_predicts_a_program_of_the_same_class():
    draw = np.random.default_rng(7)
    state, _ = costs(draw, 1.0, 2000)
    assert (state == FAIL).mean() <= 0.01
    _, first = costs(draw, 1.3, 200)
    _, second = costs(draw, 1.3, 200)
    meet = [a.low[0] <= b.high[0] and b.low[0] <= a.high[0] for a, b in zip(first, second, strict=True)]
    assert np.mean(meet) >= 0.98
    _, another = costs(draw, 1.1, 200)  # of another class
    assert np.mean([a.low[0] <= b.high[0] for a, b in zip(first, another, strict=True)]) == 0
