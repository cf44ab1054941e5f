"""The measurement of docs/why.md with ten differences: what it calls right, open and wrong."""

import sys
from pathlib import Path

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import ten_differences as measured

FLAG_AND_SETTING = measured.SEARCHES["flag and setting"]


def document(*causes):
    """The JSON of a search that names causes, each with a state."""
    return {"causes": [{"cause": cause, "state": state} for cause, state in causes], "line": "why: …"}


@pytest.mark.parametrize(("causes", "wanted", "answer"), [
    ([("build variables", "FAIL"), ("setting smsc", "FAIL"), ("code", "PASS")], FLAG_AND_SETTING, "right"),
    ([("build variables", "FAIL"), ("setting smsc", "INCONCLUSIVE")], FLAG_AND_SETTING, "open"),
    ([("build variables", "FAIL"), ("code", "FAIL"), ("setting smsc", "FAIL")], FLAG_AND_SETTING, "wrong"),
    ([("code", "GAIN")], (frozenset({"code"}),), "wrong"),
    ([("variables MODE and CHECKS", "FAIL")], (measured.PAIR,), "right"),
    ([("variable MODE", "FAIL")], (measured.PAIR,), "wrong"),
    ([], (), "right"),
    ([("variable COLOUR", "FAIL")], (), "wrong"),
])  # fmt: skip
def test_an_answer_is_right_open_or_wrong(causes, wanted, answer):
    assert measured.judged(document(*causes), wanted).partition(":")[0] == answer


@pytest.mark.parametrize("acting", [frozenset().union(*wanted) for wanted in measured.SEARCHES.values()], ids=sorted)
def test_a_side_has_all_ten_differences(acting):
    parts = measured.side(acting, Path("/folder")).split(",")
    assert len(parts) == len(measured.DIFFERENCES) == 10
    neutral = measured.side(frozenset(), Path("/folder")).split(",")
    assert sum(one != other for one, other in zip(parts, neutral, strict=True)) == len(acting)
