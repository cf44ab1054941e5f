"""Points of a scaling curve: numbers, and the command of each."""

import itertools
import sys
from pathlib import Path

import pytest
import samples
from msgspec import structs

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.scale import command, named, points
from plumbline.host import machine

sys.path.insert(0, str(Path(__file__).parents[3] / "data" / "topologies"))
import make

RANGER = paths.suite() / "site-configs" / "ranger" / "topology" / "normal.xml"


def test_the_ladder_has_the_steps_of_the_machine():
    """Four sockets of four cores, each a NUMA node."""
    ranger = machine.load(RANGER)
    assert points.numbers("ladder", ranger, "threads") == [1, 2, 4, 8, 16]
    assert points.starts([1, 4, 16], ranger) == {4: "one socket", 16: "one node"}
    ulysses = machine.load(paths.suite() / "site-configs" / "ulysses" / "topology" / "default.xml")
    assert points.numbers("ladder", ulysses, "threads") == [1, 2, 4, 8, 10, 16, 20]
    assert points.numbers("doubling", ulysses, "threads") == [1, 2, 4, 8, 16, 20]


#: of ten machines the steps that are no powers of two, and what fills a part as a whole; the third is 2 x 64, NPS4
PLANS = {
    "a64fx-4x12": ({12, 48}, {12: "one socket", 48: "one node"}),
    "comet-2x12": ({12, 24}, {12: "one socket", 24: "one node"}),
    "epyc-2x64-smt2": (set(), {8: "one L3 cache", 16: "one NUMA node", 64: "one socket", 128: "one node"}),
    "gpc-2x4": (set(), {4: "one socket", 8: "one node"}),
    "grace-2x72": ({72, 144}, {72: "one socket", 144: "one node"}),
    "numa-without-memory": (set(), {4: "one L3 cache", 8: "one NUMA node", 32: "one node"}),
    "one-socket-8-l3": (set(), {8: "one L3 cache", 64: "one node"}),
    "rrze-westmere": ({6, 12}, {6: "one socket", 12: "one node"}),
    "skylake-2x20-snc2": ({10, 20, 40}, {10: "one NUMA node", 20: "one socket", 40: "one node"}),
    "xeon-max-2x56-hbm": ({56, 112}, {56: "one socket", 112: "one node"}),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_a_large_machine(name):
    here = machine.load(Path(make.__file__).with_name(f"{name}.xml"))
    steps, fills = PLANS[name]
    counts = points.numbers("ladder", here, "threads")
    assert {count for count in counts if count & (count - 1)} == steps
    assert points.starts(counts, here) == fills


def test_the_plan_of_a_laptop_with_two_kinds_of_cores_counts_cores_and_not_threads():
    """Six cores of two hardware threads, eight of one, all below one cache."""
    cores = [*make.cores(make.numbered(0, 6, step=2, sibling=1)), *make.cores(make.numbered(12, 8))]
    root = make.machine([make.package(0, [make.l3(24 * make.MIB, cores)], [make.numa(0, 32)])])
    make.gather(root, frozenset())
    laptop = machine.parse("\n".join(["<topology>", *make.lines(root, itertools.count(1)), "</topology>"]), "laptop")
    assert points.numbers("ladder", laptop, "threads") == [1, 2, 4, 8, 14]


def test_the_plan_of_four_nodes_is_that_of_their_job():
    ranger = machine.load(RANGER)
    assert points.numbers("ladder", ranger, "nodes", 4) == [1, 2, 4]
    with pytest.raises(PlumbError, match="8 nodes, and this job has 4"):
        points.numbers("1,8", ranger, "nodes", 4)
    with pytest.raises(PlumbError, match="one point is no curve"):
        points.numbers("ladder", ranger, "nodes")


def test_a_split_shares_the_cores():
    words = ["mpirun", "-n", "{ranks}", "-x", "OMP_NUM_THREADS={threads}"]
    assert points.splits(words, 12) == [1, 2, 3, 4, 6, 12]
    assert points.commands(words, "ranks", [3], [], False, 12) == [["mpirun", "-n", "3", "-x", "OMP_NUM_THREADS=4"]]


@pytest.mark.parametrize(("spelling", "kind", "fault"), [
    ("1,2,x", "threads", "'x' is no whole number from 1 to 9999999"),
    ("1,99999999", "threads", "'99999999' is no whole number from 1 to 9999999"),
    ("0,1", "threads", "'0' is no whole number"),
    ("1.5,2", "threads", "'1.5' is no whole number"),
    ("2,1,2", "threads", "2 stands there twice"),
    ("4", "threads", "one point is no curve"),
    ("1,,2", "threads", "'' is no whole number"),
    ("", "threads", "'' is no whole number"),
    ("1,17", "threads", "17 threads, and this host has 16 CPUs"),
])  # fmt: skip
def test_a_bad_list_is_one_line(spelling, kind, fault):
    with pytest.raises(PlumbError, match=fault):
        points.numbers(spelling, machine.load(RANGER), kind)


def test_ranks_may_be_more_than_the_cpus_of_this_host():
    assert points.numbers("1, 64", machine.load(RANGER), "ranks") == [1, 64]


def commands(words, kind="ranks", weak=False, values=()):
    return points.commands(words, kind, [1, 8], values, weak)


def test_placeholders_and_their_arithmetic():
    words = ["mpirun", "-n", "{ranks}", "./p", "{100*ranks}", "{(ranks+7)//8}x{n%5}", "{ print $1 }", "{other}"]
    assert commands(words)[1] == ["mpirun", "-n", "8", "./p", "800", "1x3", "{ print $1 }", "{other}"]
    assert commands(["./p", "{value}"], "threads", values=("30", "60")) == [["./p", "30"], ["./p", "60"]]


@pytest.mark.parametrize(("words", "more", "fault"), [
    (["mpirun", "-n", "2", "./p"], {}, "the command is the same with 1 and 8 ranks"),
    (["./p", "100"], {"kind": "threads", "weak": True}, "the command is the same with 1 and 8 threads"),
    (["./p", "{ranks**2}"], {}, r"\{ranks\*\*2\} has no whole value"),
    (["./p", "{ranks/2}"], {}, "not an arithmetic expression"),
    (["./p", "{ranks}", "{100*threads}"], {}, r"\{100\*threads\} has no number, as the curve is over ranks"),
    (["./p", "{ranks//0}"], {}, "has no whole value with 1 ranks"),
    (["./p", "{ranks" + "*99999999" * 9 + "}"], {}, "it is too large"),
    (["./p", "{value}"], {"values": ("1",)}, "1 value for 2 points"),
    (["./p", "{ranks}"], {"values": ("1", "2")}, r"\{value\} in the command and --values go together"),
    (["./p", "{value}", "{ranks}"], {}, r"\{value\} in the command and --values go together"),
])  # fmt: skip
def test_a_command_that_cannot_scale_is_one_line(words, more, fault):
    with pytest.raises(PlumbError, match=fault):
        commands(words, **more)


FILE = """
application: heat
programs:
  heat:
    command: /bin/true
    figures: {time: {wall: true}}
    scale: {over: ranks, counts: [1, 3]}
"""


@pytest.mark.parametrize(("words", "last"), [
    ((), ("3 ranks", {"threads": 1, "ranks_per_node": 3, "placement": "compact"})),
    (("--over", "nodes", "--counts", "1,2"), ("2 nodes", {"nodes": 2, "placement": "core"})),
    (("--counts", "1,5", "--placement", "scatter"),
     ("5 ranks", {"threads": 1, "ranks_per_node": 5, "placement": "scatter"})),
])  # fmt: skip
def test_the_points_of_a_program_are_those_of_its_file(tmp_path, monkeypatch, capsys, words, last):
    (tmp_path / "plumb.yaml").write_text(FILE)
    base = structs.replace(samples.asked(), site="ranger", partition="normal", nodes=1, placement="core")
    begun = []
    monkeypatch.setattr(named, "base", lambda *_: base)
    monkeypatch.setattr(command, "circumstances", lambda *_: {})
    monkeypatch.setattr(command, "_plan", lambda scaling: begun.append(scaling) or scaling.label(1))
    assert cli.main(["scale", "heat", "--application", str(tmp_path / "plumb.yaml"), "--dry-run", *words]) == 0
    assert capsys.readouterr().out == f"{last[0]}\n"
    variant = begun[0].variants[1]
    assert {name: getattr(variant, name) for name in last[1]} == last[1]
    assert (variant.launches, len(variant.figures)) == (1, 1)


def test_data_never_run_code():
    for word in ("{__import__('os').system('true')}", "{(lambda: ranks)()}", "{[ranks][0]}"):
        with pytest.raises(PlumbError):
            commands(["./p", word])


def test_a_program_has_other_arguments_at_each_point_of_weak_scaling():
    words = points.commands(["heat", "{3*n}"], "ranks", [1, 2], [], True)
    weak = named.points(samples.asked(), "ranks", [1, 2], "compact", None, words)
    assert [variant.arguments for variant in weak] == [["3"], ["6"]]
