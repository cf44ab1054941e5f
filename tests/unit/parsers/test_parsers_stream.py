"""STREAM: values, and every guard broken on purpose."""

import re
from pathlib import Path

import msgspec
import pytest

from plumbline.parsers import parse, stream
from plumbline.parsers.measurement import Measurement, ParseError, measured

STORED = Path(__file__).parents[2] / "data" / "outputs" / "stream"
TWO = (STORED / "gcc-2thread.txt").read_text()
ONE = (STORED / "openmpi-1rank.txt").read_text()
RULE = "-" * 61


def test_values_of_two_threads():
    params = {"array_elements": 1000000, "threads": 2}
    assert parse("stream", TWO, {"threads": 2, "array_elements": 1000000})[::3] == [
        Measurement("copy", 136677.9, "MB/s", "higher", params, 5),
        Measurement("triad", 86928.6, "MB/s", "higher", params, 5),
    ]


def test_without_openmp_there_is_no_thread_count():
    found = parse("stream", (STORED / "gcc-serial.txt").read_text(), {"threads": 1})
    assert [one.metric for one in found] == ["copy", "scale", "add", "triad"]
    assert found[3].value == 55676.6
    assert found[0].params == {"array_elements": 1000000}


@pytest.mark.parametrize(("pattern", "replacement", "reason"), [
    (r"(?s)^.*?(?=Function)", "", "no line 'STREAM version'"),
    (r"STREAM version", "STREAM2 version", "no line 'STREAM version'"),
    (r"Array size = [0-9]+", "Array size = many", "the array size is missing"),
    (r"(Array size = .*\n)", r"\1\1", "the array size stands there 2 times"),
    (r"Each kernel .*\n", "", "number of executions is missing"),
    (r"Threads counted = 2", "Threads counted = 1", "2 threads requested, 1 counted"),
    (r"Number of Threads counted.*\n", "", "'Number of Threads counted' is missing"),
    (r"(Number of Threads counted.*\n)", r"\1\1", "stands there 2 times: lines of several ranks"),
    (r"(?s)Function.*", "", "never begins: truncated"),
    (r"Add: .*\n", "", "'Triad: .*' stands where the row 'Add:' was expected"),
    (r"(Scale: .*\n)", r"\1\1", "'Scale: .*' stands where the row 'Add:' was expected"),
    (r"(?s)Add:.*", "", "truncated: the output ends before the row 'Add:'"),
    (r"(Copy: +)[0-9.]+", r"\1nan", "'nan' is not a finite"),
    (r"(Copy: +)[0-9.]+", r"\1inf", "'inf' is not a finite"),
    (r"(Copy: +)", r"\1-", "'-136677.9' is not a finite, non-negative"),
    (r"(Copy: +)[0-9.]+", r"\g<1>1e999", "'1e999' is not a finite"),
    (r"(Copy: +)[0-9.]+", r"\g<1>1.2.3", "'1.2.3' is not a finite"),
    (r"(Copy: +)[0-9.]+", r"\g<1>0.0", "impossible row"),
    (r"(Copy: +)[0-9.]+ +[0-9.]+", r"\g<1>136677.9 0.9", "impossible row"),
    (r"(Copy: .*)\n", r"\1 Copy: 1.0 2.0 3.0 4.0\n", "stands where the row 'Copy:' was expected"),
    (r"\n(Triad)", r"\nsome warning\n\1", "'some warning' stands where the row 'Triad:'"),
    (r"Solution Validates.*", "Failed Validation on array a[], AvgRelAbsErr > epsilon (1e-13)", "validation failed"),
    (r"Solution Validates.*\n", "", "was expected: garbled output|ends before 'Solution Validates'"),
    (r"(?s)Solution.*", "", "truncated: the output ends before 'Solution Validates'"),
    (r"(?s)(Solution Val).*", r"\1", "stands where 'Solution Validates' was expected"),
    (r"(?s)(three arrays\n)-.*", r"\1", "truncated: the output ends before the last rule"),
    (r"\Z", "more\n", "'more' stands where nothing more was expected"),
    (r"\Z", TWO, "outputs of 2 processes"),
    (r"\Z", "Abort(1) on node 0 (rank 0): died\n", "the run failed"),
])  # fmt: skip
def test_each_guard(pattern, replacement, reason):
    damaged = re.sub(pattern, replacement.replace("\\n", "\n"), TWO, count=1)
    assert damaged != TWO
    with pytest.raises(ParseError, match=reason):
        parse("stream", damaged, {})


def test_what_was_asked_for_must_have_run():
    with pytest.raises(ParseError, match="ran with threads = 2, 4 was asked for"):
        parse("stream", TWO, {"threads": 4})
    with pytest.raises(ParseError, match="array_elements = 1000000, 80 was asked for"):
        parse("stream", TWO, {"array_elements": 80})
    with pytest.raises(ParseError, match="context 'threads' must be"):
        parse("stream", TWO, {"threads": "2"})


def test_combine_adds_up_the_ranks():
    first, second = parse("stream", ONE), parse("stream", (STORED / "mpich-1rank.txt").read_text())
    triad = stream.combine([first, second])[3]
    assert triad.value == pytest.approx(35494.8 + 36698.2)
    assert triad.params == {"array_elements": 1000000, "threads": 1, "ranks": 2}
    assert stream.combine([first])[0].value == first[0].value


def test_combine_refuses_ranks_that_ran_other_things():
    one = parse("stream", ONE)
    with pytest.raises(ParseError, match="no rank"):
        stream.combine([])
    with pytest.raises(ParseError, match=r"rank 0 ran .*'threads': 1.*, rank 1 .*'threads': 2"):
        stream.combine([one, parse("stream", TWO)])


@pytest.mark.parametrize(("change", "reason"), [
    ({"unit": "MiB/s"}, "unknown unit 'MiB/s'"),
    ({"value": float("nan")}, "not a finite"),
    ({"value": float("inf")}, "not a finite"),
    ({"value": -1.0}, "not a finite"),
])  # fmt: skip
def test_a_measurement_checks_itself(change, reason):
    sound = {"metric": "triad", "value": 1.0, "unit": "MB/s", "better": "higher", "params": {}}
    assert msgspec.to_builtins(measured(**sound)) == {**sound, "iterations": None}  # type: ignore[arg-type]
    with pytest.raises(ParseError, match=reason):
        measured(**{**sound, **change})  # type: ignore[arg-type]


def test_an_output_of_version_5_9():
    text = re.sub(r"STREAM version.*", "STREAM version $Revision: 5.9 $", (STORED / "gcc-2thread.txt").read_text())
    for new, old in (
        (r"(Array size = \d+) \(elements\), Offset = 0 \(elements\)", r"\1, Offset = 0"),
        (r"Each kernel will be executed (\d+) times\.", r"Each test is run \1 times, but only"),
        (r"Best Rate MB/s  Avg", r"  Rate (MB/s)   Avg"),
        (r"Solution Validates:.*", r"Solution Validates"),
    ):
        text, changed = re.subn(new, old, text)
        assert changed
    assert parse("stream", text, {"threads": 2}) == parse("stream", (STORED / "gcc-2thread.txt").read_text(), {})
    with pytest.raises(ParseError, match="validation failed"):
        parse("stream", text.replace("Solution Validates", "Failed Validation on array a[], AvgRelAbsErr > 1"), {})
