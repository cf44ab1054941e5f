"""Points of a scaling curve: numbers, and the command of each."""

from __future__ import annotations

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.scale import points
from plumbline.host import machine

RANGER = paths.suite() / "site-configs" / "ranger" / "topology" / "normal.xml"


def test_the_ladder_has_the_steps_of_the_machine() -> None:
    """Four sockets of four cores, each a NUMA node."""
    ranger = machine.load(RANGER)
    assert points.numbers("ladder", ranger, "threads") == [1, 2, 4, 8, 16]
    assert points.starts([1, 4, 16], ranger) == {4: "one socket", 16: "one node"}
    ulysses = machine.load(paths.suite() / "site-configs" / "ulysses" / "topology" / "default.xml")
    assert points.numbers("ladder", ulysses, "threads") == [1, 2, 4, 8, 10, 16, 20]
    assert points.numbers("doubling", ulysses, "threads") == [1, 2, 4, 8, 16, 20]


@pytest.mark.parametrize(
    ("spelling", "kind", "fault"),
    [
        ("1,2,x", "threads", "'x' is no whole number above 0"),
        ("0,1", "threads", "'0' is no whole number"),
        ("1.5,2", "threads", "'1.5' is no whole number"),
        ("2,1,2", "threads", "2 stands there twice"),
        ("4", "threads", "one point is no curve"),
        ("1,,2", "threads", "'' is no whole number"),
        ("", "threads", "'' is no whole number"),
        ("1,17", "threads", "17 threads, and this host has 16 CPUs"),
    ],
)
def test_a_bad_list_is_one_line(spelling: str, kind: str, fault: str) -> None:
    with pytest.raises(PlumbError, match=fault):
        points.numbers(spelling, machine.load(RANGER), kind)


def test_ranks_may_be_more_than_the_cpus_of_this_host() -> None:
    assert points.numbers("1, 64", machine.load(RANGER), "ranks") == [1, 64]


def commands(
    words: list[str], kind: str = "ranks", weak: bool = False, values: tuple[str, ...] = ()
) -> list[list[str]]:
    return points.commands(words, kind, [1, 8], values, weak)


def test_placeholders_and_their_arithmetic() -> None:
    words = ["mpirun", "-n", "{ranks}", "./p", "{100*ranks}", "{(ranks+7)//8}x{n%5}", "{ print $1 }", "{other}"]
    assert commands(words)[1] == ["mpirun", "-n", "8", "./p", "800", "1x3", "{ print $1 }", "{other}"]
    assert commands(["./p", "{value}"], "threads", values=("30", "60")) == [["./p", "30"], ["./p", "60"]]


@pytest.mark.parametrize(
    ("words", "more", "fault"),
    [
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
    ],
)
def test_a_command_that_cannot_scale_is_one_line(words: list[str], more: dict, fault: str) -> None:
    with pytest.raises(PlumbError, match=fault):
        commands(words, **more)


def test_data_never_run_code() -> None:
    for word in ("{__import__('os').system('true')}", "{(lambda: ranks)()}", "{[ranks][0]}"):
        with pytest.raises(PlumbError):
            commands(["./p", word])
