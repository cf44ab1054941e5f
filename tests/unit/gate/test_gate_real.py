"""The measurement of real error rates (tests/rates/real.py), on launches that are made up."""

# ruff: noqa: S311

import json
import math
import random
import sys

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError

sys.path.insert(0, str(paths.root() / "tests/rates"))
import real

FOREVER = math.inf


def launches(slowed=1.05, noise=0.01, disturbed=0.0, seed=1):
    draw = random.Random(seed)

    def measure(name):
        value = 0.02 * (slowed if name == "slowed" else 1) * math.exp(draw.gauss(0, noise))
        return {"value": value, "verified": True, "disturbed": draw.random() < disturbed}

    return measure


def test_the_slowed_program_is_found_and_the_same_one_passes():
    same = real.gate("plain", launches(noise=0.003), random.Random(1), FOREVER)
    slower = real.gate("slowed", launches(noise=0.003), random.Random(1), FOREVER)
    assert (same["verdict"], slower["verdict"]) == ("PASS", "FAIL")
    assert slower["ratio"] == pytest.approx(1.05, abs=0.01)
    assert same["pair_noise"] < 0.02


def test_a_gate_that_cannot_see_goes_to_the_cap_and_one_without_time_is_dropped():
    found = real.gate("plain", launches(noise=0.3), random.Random(1), FOREVER)
    assert (found["verdict"], found["pairs"]) == ("INCONCLUSIVE", 90)
    assert real.gate("plain", launches(), random.Random(1), 0.0) is None


def test_disturbed_pairs_are_measured_again():
    found = real.gate("plain", launches(noise=0.003, disturbed=1.0), random.Random(1), FOREVER)
    assert found["again"] == 9
    assert found["disturbed"] == 2 * (13 + 9)


def test_both_kinds_grow_together_until_there_are_enough():
    lines, wanted = [], {"plain": 10, "slowed": 2}
    while (kind := real.next_kind(lines, wanted)) is not None:
        lines.append({"candidate": kind})
        if len(lines) == 6:
            assert sum(line["candidate"] == "slowed" for line in lines) == 1
    assert [sum(line["candidate"] == kind for line in lines) for kind in wanted] == [10, 2]


def test_gates_of_another_setting_are_not_mixed_in_and_a_torn_line_is_left_out(tmp_path):
    file = tmp_path / "gates.jsonl"
    assert real.read(file, "a") == []
    file.write_text(json.dumps({"setting": "a"}) + "\n" + '{"setting": "a", "ver')
    assert real.read(file, "a") == [{"setting": "a"}]
    with pytest.raises(PlumbError, match="another setting"):
        real.read(file, "b")


def test_the_result_counts_and_bounds():
    made = [real.gate("plain", launches(seed=seed), random.Random(seed), FOREVER) for seed in range(4)]
    found = real.summary(made, {"elements": 1})
    assert found["A/A"]["gates"] == 4
    assert found["A/A"]["FAIL at most"] == pytest.approx(1 - 0.05 ** (1 / 4), abs=1e-3)
    assert found["5 % slower"]["gates"] == 0
    json.dumps(found, allow_nan=False)


def test_both_programs_have_arrays_that_lie_alike_in_their_pages():
    for asked in (1, real.STEP, 4_194_304, 10_000_000):
        count = real.round_up(asked)
        assert asked <= count < asked + real.STEP
        assert 8 * count % 4096 == 8 * round(count * real.SLOWER) % 4096 == 0
