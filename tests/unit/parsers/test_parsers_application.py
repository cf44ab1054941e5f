"""How the figures of a program of plumb.yaml are found, and what is refused."""

from typing import Any

import pytest

from plumbline import parsers
from plumbline.base.errors import PlumbError
from plumbline.parsers.measurement import step_of

PRINTED = "step 1: 10.5 MLUP/s\nstep 2: 11.5 MLUP/s\nResidual: -1.0D-03\n"


def parsed(rule: dict[str, Any], text: str, checks: list[dict[str, Any]] = [], **context: Any) -> float:  # noqa: B006
    rules = {"figures": {"rate": rule}, "checks": checks}
    (found,) = parsers.parse("application", text, {"rules": rules, **context})
    assert (found.metric, found.unit, found.better) == ("rate", rule.get("unit", "s"), rule.get("better", "lower"))
    return found.value


def pattern(text: str, **more: Any) -> dict[str, Any]:
    return {"pattern": text, "unit": "MLUP/s", "better": "higher", **more}


@pytest.mark.parametrize(("rule", "text", "value"), [
    (pattern(r"step 2: ([\d.]+)"), PRINTED, 11.5),
    (pattern(r"^step \d: ([\d.]+)", take="last"), PRINTED, 11.5),
    (pattern(r"^step \d: ([\d.]+)", take="first"), PRINTED, 10.5),
    (pattern(r"^step \d: ([\d.]+)", take="sum"), PRINTED, 22.0),
    (pattern(r"^step \d: ([\d.]+)", take="lowest"), PRINTED, 10.5),
    (pattern(r"^step \d: ([\d.]+)", take="highest"), PRINTED, 11.5),
    (pattern(r"^step \d: ([\d.]+)", take="median"), PRINTED, 11.0),
    (pattern(r"step 1: (?P<value>\S+) (?P<unit>\S+)"), PRINTED, 10.5),
    (pattern("rate=(.*)"), "rate= 1.5D+03", 1500.0),
    ({"json": "runs.1.rate", "unit": "GB/s", "better": "higher"}, '{"runs": [{}, {"rate": 7}]}', 7),
    ({"csv": "Time (s)", "unit": "s"}, "Name, Time (s)\nall, 3.25\n", 3.25),
    ({"csv": "t", "unit": "s", "take": "sum"}, "n,t\na,1\nb,2\n", 3.0),
])  # fmt: skip
def test_a_figure_is_found(rule, text, value):
    assert parsed(rule, text) == value


@pytest.mark.parametrize(("text", "take", "step"), [
    ("t 0.05\nt 0.05\nt 0.05\n", "sum", 0.03),
    ("t 0.05\nt 0.06\n", "median", 0.01),
    ("t 1.50\n", "only", 0.01),
    ("t 1.5D+02\n", "only", 10.0),
])  # fmt: skip
def test_the_step_of_a_computed_figure_is_that_of_what_was_printed(text, take, step):
    rules = {"figures": {"t": {"pattern": r"t (\S+)", "take": take}}}
    (measurement,) = parsers.parse("application", text, {"rules": rules})
    assert step_of([measurement]) == pytest.approx(step)


def test_the_step_of_a_rate_is_that_of_its_time():
    rule = {"pattern": "took (.*)", "unit": "s", "flops": 3e9}
    _, rate = parsers.parse("application", "took 1.50", {"rules": {"figures": {"solve": rule}}})
    assert (rate.value, step_of([rate])) == pytest.approx((2.0, 2.0 * 0.01 / 1.5))


def test_the_wall_time_is_the_witness_s():
    assert parsed({"wall": True}, "", wall_s=1.25) == 1.25


@pytest.mark.parametrize(("unit", "factor"), [("s", 1.0), ("ms", 1e-3), ("min", 60.0)])
def test_declared_work_becomes_rates(unit, factor):
    rule = {"pattern": "took (.*)", "unit": unit, "flops": 3e9, "bytes": 6e9}
    found = parsers.parse("application", "took 2.0", {"rules": {"figures": {"solve": rule}}})
    seconds = 2.0 * factor
    assert [(one.metric, one.unit, one.better, one.params) for one in found[1:]] == [
        ("solve_flop_rate", "GFlop/s", "higher", {"work": "flops"}),
        ("solve_bandwidth", "MB/s", "higher", {"work": "bytes"}),
    ]
    assert [one.value for one in found[1:]] == pytest.approx([3.0 / seconds, 6000.0 / seconds])


def test_work_in_no_time_is_refused():
    with pytest.raises(PlumbError, match="figure rate: no time passed, and flops are declared"):
        parsed({"pattern": "took (.*)", "unit": "s", "flops": 1e9}, "took 0.0")


@pytest.mark.parametrize(("rule", "text", "took", "refused"), [
    ({"pattern": "t (.*)"}, "t 1234.56789", 0.05, True),
    ({"json": "t"}, '{"t": 1234.5}', 0.05, True),
    ({"csv": "t"}, "t\n1234.5\n", 0.05, True),
    ({"pattern": "t (.*)", "unit": "ms"}, "t 51.2", 0.05, True),
    ({"pattern": "t (.*)", "unit": "us"}, "t 52000.5", 0.05, True),
    ({"pattern": "t (.*)", "unit": "min"}, "t 0.5", 0.05, True),
    ({"pattern": "t (.*)", "unit": "h"}, "t 2", 7000.0, False),  # whole hours
    ({"pattern": "t (.*)"}, "t 0.0501", 0.05, False),
    ({"pattern": "t (.*)"}, "t 1", 0.05, False),  # whole seconds, rounded up
    ({"pattern": "t (.*)", "take": "sum"}, "t 0.49\n" * 4, 0.5, False),  # of four ranks
    ({"pattern": "t (.*)", "take": "sum"}, "t 0.49\n" * 5, 0.5, True),
    ({"pattern": "t (.*)", "take": "median"}, "t 0.6\n" * 5, 0.4, True),
    ({"pattern": "t (.*)", "unit": "core-s"}, "t 1.96", 0.5, False),
    ({"pattern": "t (.*)", "unit": "ns/day"}, "t 1.96", 0.5, False),
])  # fmt: skip
def test_a_time_longer_than_its_launch_is_refused(rule, text, took, refused):
    context = {"launch_s": took, "workers": 4}
    if not refused:
        parsed(rule, text, **context)
        return
    with pytest.raises(PlumbError, match=f"is more than the launch took, {took:g} s"):
        parsed(rule, text, **context)


@pytest.mark.parametrize(("group", "text", "part", "whole"), [
    ("Time: *([0-9.]+)", "Time: 9.5e-05 s", "9.5", "9.5e-05"),
    ("([0-9.]+) s", "Time: 9.5e-05 s", "05", "9.5e-05"),
    ("Time: *([0-9.]+)", "Time: 9.5D-05 s", "9.5", "9.5D-05"),
    ("Time: *([0-9.]+)", "Time: 1.5-103 s", "1.5", "1.5-103"),
    ("Time: *([0-9.]+)", "Time: 1,234.5 s", "1", "1,234.5"),
    ("Time: .*?([0-9.]+) s", "Time: 1,234.5 s", "234.5", "1,234.5"),
    ("Time: *([0-9.]+)", "Time: 1.234,5 s", "1.234", "1.234,5"),
    ("Time: *([0-9.]+)", "Time: 12,5 s", "12", "12,5"),
    ("Time: *([0-9.]+)", "Time: 1'234.5 s", "1", "1'234.5"),
    ("took ([0-9]+)", "took 12.5", "12", "12.5"),
    ("took ([0-9])", "took 12", "1", "12"),
    ("took .*([0-9]+)", "took 12", "2", "12"),
    (r"took \D*([0-9.]+)", "took -12.5", "12.5", "-12.5"),
    ("Elapsed: ([0-9.]+)", "Elapsed: 0:12.5", "0", "0:12.5"),
    (r"real\s+([0-9.]+)", "real\t1m2.51s", "1", "1m2.51s"),
    ("PWSCF *: .* +([0-9.]+)s WALL", "PWSCF : 1m 2.51s CPU 1m 0.34s WALL", "0.34", "1m 0.34s"),
    ("PWSCF *: .*?([0-9.]+)s WALL", "PWSCF : 1m 2.51s CPU 1m12.34s WALL", "12.34", "1m12.34s"),
    ("(?P<name>Time): (?P<value>[0-9.]+)", "Time: 1e3 s", "1", "1e3"),
])  # fmt: skip
def test_a_group_that_takes_a_part_of_a_number_is_refused(group, text, part, whole):
    with pytest.raises(PlumbError) as raised:
        parsed({"pattern": group, "unit": "s"}, text)
    assert f"figure rate: the group takes '{part}' of '{whole}'" in str(raised.value)
    assert raised.value.cure


@pytest.mark.parametrize(("group", "text", "value"), [
    ("Time: ([-+.0-9eEdD]+)", "Time: 9.5e-05 s", 9.5e-5),
    ("Time: ([0-9.,]+)", "Time: 1,234.5 s", 1234.5),
    ("took ([0-9.]+)", "It took 12.5.", None),
    ("took ([0-9.]+)", "It took 12.5, as before", 12.5),
    ("took ([0-9]+) s", "It took 12 s.", 12),
    ("^t,([0-9]+),", "t,12,13", 12),
    ("^t=([0-9.]+)", "t=12.5,13.1", 12.5),
    ("rank [0-9]+:([0-9.]+)", "rank 0:12.5", 12.5),
    (r"real\s+0m([0-9.]+)s", "real\t0m1.25s", 1.25),
    ("10 min ([0-9.]+) max", "10 min 1.25 max 2 s", 1.25),
    ("PWSCF *: .* +([0-9.]+)s WALL", "PWSCF        :      0.40s CPU      0.41s WALL", 0.41),
    ("v2-([0-9.]+)", "v2-12.5", 12.5),
    ("from ([0-9.]+)", "from 1.5-100.5", 1.5),
    ("T([0-9.]+)ms", "T12.5ms", 12.5),
])  # fmt: skip
def test_a_group_that_takes_a_whole_number_is_read(group, text, value):
    if value is None:  # the group has the full stop, too: no number, and not half of one
        with pytest.raises(PlumbError, match="is not a finite number"):
            parsed({"pattern": group, "unit": "s"}, text)
        return
    assert parsed({"pattern": group, "unit": "s"}, text) == value


def test_the_number_of_a_check_is_whole_too():
    with pytest.raises(PlumbError, match=r"the group takes '9' of '9\.5'"):
        parsed(pattern("rate ([0-9.]+)"), "rate 4.5\nsum 9.5", [{"pattern": "sum ([0-9]+)", "value": 9}])


def test_a_figure_may_be_in_a_file():
    assert parsed(pattern("rate ([0-9.]+)", file="log.txt"), "nothing", files={"log.txt": "rate 4.5"}) == 4.5


@pytest.mark.parametrize(("rule", "text", "said"), [
    (pattern("rate ([0-9.]+)"), " \n", "the program printed nothing (the standard output)"),
    (pattern("rate ([0-9.]+)"), PRINTED, "figure rate: pattern 'rate ([0-9.]+)' is not there"),
    (pattern(r"step \d: (\S+)"), PRINTED, r"figure rate: pattern 'step \d: (\S+)' is there 2 times"),
    (pattern("rate (.*)"), "rate nan", "figure rate: 'nan' is not a finite number (the standard output)"),
    (pattern("rate (.*)"), "rate 1e999", "figure rate: '1e999' is not a finite, non-negative number"),
    (pattern("rate (.*)"), "rate -1", "figure rate: '-1' is not a finite, non-negative number"),
    (pattern(r"step 1: (?P<value>\S+) (?P<unit>\S+)", unit="GF/s"), PRINTED, "printed the unit 'MLUP/s', GF/s was"),
    (pattern("rate (.*)", file="log.txt"), PRINTED, "the program did not write the file log.txt"),
    ({"json": "rate", "unit": "1"}, "rate", "figure rate: it is not one JSON document: Expecting value"),
    ({"json": "rate", "unit": "1"}, '{"rates": 1}', "figure rate: json 'rate' is not there"),
    ({"json": "rate", "unit": "1"}, '{"rate": true}', "figure rate: 'true' is not a finite number"),
    ({"csv": "t", "unit": "s"}, "n,time\na,1\n", "figure rate: there is no column t (the standard"),
    ({"wall": True}, PRINTED, "figure rate: its wall time is not there"),
])  # fmt: skip
def test_what_is_no_figure_is_one_line(rule, text, said):
    with pytest.raises(PlumbError) as raised:
        parsed(rule, text)
    assert said in str(raised.value)


@pytest.mark.parametrize(("check", "said"), [
    ({"pattern": "step 2"}, None),
    ({"pattern": "converged"}, "wrong answer: pattern 'converged' is not there (the standard output)"),
    ({"pattern": r"Residual: (\S+)", "value": -1.0e-3}, None),
    ({"pattern": r"Residual: (\S+)", "value": -1.01e-3, "tolerance": 0.02}, None),
    ({"pattern": r"Residual: (\S+)", "value": 0, "tolerance": 0.01}, None),
    ({"pattern": r"Residual: (\S+)", "value": 2e-3, "tolerance": 0.02}, "-1.0D-03, 0.002 expected within 4e-05"),
    ({"pattern": "step 2: .* (.*)", "value": 1}, "wrong answer: 'MLUP/s' is not a finite number, 1 expected"),
])  # fmt: skip
def test_an_answer_is_checked(check, said):
    if said is None:
        assert parsed(pattern("step 2: ([0-9.]+)"), PRINTED, [check]) == 11.5
        return
    with pytest.raises(PlumbError) as raised:
        parsed(pattern("step 2: ([0-9.]+)"), PRINTED, [check])
    assert said in str(raised.value)
