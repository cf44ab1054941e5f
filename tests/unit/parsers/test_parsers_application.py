"""How the figures of a program of plumb.yaml are found, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline import parsers
from plumbline.base.errors import PlumbError

PRINTED = "step 1: 10.5 MLUP/s\nstep 2: 11.5 MLUP/s\nResidual: -1.0D-03\n"


def parsed(rule: dict[str, Any], text: str, checks: list[dict[str, Any]] = [], **context: Any) -> float:  # noqa: B006
    rules = {"figures": {"rate": rule}, "checks": checks}
    (found,) = parsers.parse("application", text, {"rules": rules, **context})
    assert (found.metric, found.unit, found.better) == ("rate", rule.get("unit", "s"), rule.get("better", "lower"))
    return found.value


def pattern(text: str, **more: Any) -> dict[str, Any]:
    return {"pattern": text, "unit": "MLUP/s", "better": "higher", **more}


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
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
    ],
)
def test_a_figure_is_found(rule, text, value):
    assert parsed(rule, text) == value


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


def test_a_figure_may_be_in_a_file():
    assert parsed(pattern("rate ([0-9.]+)", file="log.txt"), "nothing", files={"log.txt": "rate 4.5"}) == 4.5


@pytest.mark.parametrize(
    ("rule", "text", "said"),
    [
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
    ],
)
def test_what_is_no_figure_is_one_line(rule, text, said):
    with pytest.raises(PlumbError) as raised:
        parsed(rule, text)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"pattern": "step 2"}, None),
        ({"pattern": "converged"}, "wrong answer: pattern 'converged' is not there (the standard output)"),
        ({"pattern": r"Residual: (\S+)", "value": -1.0e-3}, None),
        ({"pattern": r"Residual: (\S+)", "value": -1.01e-3, "tolerance": 0.02}, None),
        ({"pattern": r"Residual: (\S+)", "value": 0, "tolerance": 0.01}, None),
        ({"pattern": r"Residual: (\S+)", "value": 2e-3, "tolerance": 0.02}, "-1.0D-03, 0.002 expected within 4e-05"),
        ({"pattern": "step 2: .* (.*)", "value": 1}, "wrong answer: 'MLUP/s' is not a finite number, 1 expected"),
    ],
)
def test_an_answer_is_checked(check, said):
    if said is None:
        assert parsed(pattern("step 2: ([0-9.]+)"), PRINTED, [check]) == 11.5
        return
    with pytest.raises(PlumbError) as raised:
        parsed(pattern("step 2: ([0-9.]+)"), PRINTED, [check])
    assert said in str(raised.value)
