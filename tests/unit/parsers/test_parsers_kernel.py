"""Output of our own kernels: whole and right, or an error."""

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.parsers import parse, remarks
from plumbline.parsers.measurement import Measurement, ParseError

OUTPUTS = Path(__file__).parents[2] / "data" / "outputs" / "kernels"
PI = (OUTPUTS / "pi-mpich.json").read_text(encoding="utf-8")


def changed(*path: Any, value: Any) -> str:
    """The output of pi with the element at ``path`` replaced."""
    document = copy.deepcopy(json.loads(PI))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("file", "count"), [("pi-mpich.json", 1), ("rank_map-mpich.json", 4), ("collective-mpich.json", 20)]
)
def test_stored_outputs_are_parsed_whole(file, count):
    found = parse("kernel", (OUTPUTS / file).read_text(encoding="utf-8"), {"kernel": file.split("-")[0]})
    assert len(found) == count
    assert all(isinstance(item, Measurement) and item.iterations for item in found)


def test_remarks_are_the_kernels_own_words():
    said = changed("remarks", value=["BLAS: OpenBLAS 0.3.34"])
    assert len(parse("kernel", said)) == 1
    assert remarks("kernel", said) == ["BLAS: OpenBLAS 0.3.34"]
    assert remarks("kernel", PI) == [], "an output of an earlier version"
    assert remarks("osu", "# OSU MPI Latency Test") == []


def test_what_the_kernels_own_model_gives_stands_beside_the_figure():
    (plain,) = parse("kernel", changed("measurements", 0, "limit", value=None))
    assert plain.model is msgspec.UNSET
    (held,) = parse("kernel", changed("measurements", 0, "limit", value=2.5))
    assert held.model == 2.5


@pytest.mark.parametrize(("context", "line"), [
    ({"kernel": "daxpy"}, "kernel: ran with kernel = pi, daxpy was asked for"),
    ({"ranks": 3}, "kernel: ran with ranks = 2, 3 was asked for"),
    ({"threads": 9}, "kernel: ran with threads = 1, 9 was asked for"),
])  # fmt: skip
def test_what_the_output_contradicts_is_an_error(context, line):
    with pytest.raises(ParseError, match=line):
        parse("kernel", PI, context)


@pytest.mark.parametrize(("text", "line"), [
    ("", "no output"),
    ("\n\n", "no output"),
    ("pi: pi as the integral\n", "not one JSON document"),
    (PI + PI, "not one JSON document"),
    (PI[: len(PI) // 2], "not one JSON document"),
    (changed("checks", 0, "passed", value=False), "pi: the answer is wrong: pi"),
    (changed("passed", value=False), "it says so without a reason"),
    (changed("checks", value=[]), "not a valid kernel: checks"),
    (changed("measurements", value=[]), "not a valid kernel: measurements"),
    (changed("more", value=1), "not a valid kernel: more: there is no such key"),
    (changed("measurements", 0, "params", "size", value=1.5), "not a valid kernel: .*size"),
    (changed("measurements", 0, "value", value=None), "not a valid kernel"),
    (changed("measurements", 0, "value", value=-1.0), "not a valid kernel"),
    (changed("work", value={"flop": -1, "bytes": 0}), "not a valid kernel: .*flop"),
    (changed("work", value={"flop": 1, "bytes": 0, "more": 1}), "not a valid kernel: .*more"),
    (changed("work", value=None), "not a valid kernel: work"),
    (changed("measurements", 0, "unit", value="furlong"), "unknown unit 'furlong'"),
    (changed("measurements", value=[json.loads(PI)["measurements"][0]] * 2), "same name and parameters"),
    ("MPI_ABORT was invoked on rank 0\n" + PI, "the run failed"),
])  # fmt: skip
def test_anything_else_is_an_error(text, line):
    with pytest.raises(ParseError, match=line):
        parse("kernel", text)


@given(st.integers(0, len(PI) - 2))
def test_no_truncated_output_is_a_result(length):
    with pytest.raises(ParseError):
        parse("kernel", PI[:length])
