"""What is said of simulated machines, one by one. `make rates` measures how often `plumb accept` errs."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import accept as simulated
import caution
from promises import Promises

#: by noise and shape, of 8 machines each (p: pass, f: fail, u: unknown): one node too many just misses the limit, all
#: nodes just meet it, one too many misses it by 2 %, all are 3 % better, as many as the rule needs are 5 % worse.
#: What all launches of a node share (alike) is not seen: docs/acceptance.md says so
WORDS = {
    ("normal", 1): "uuuuuuuu uuuuuuuf ffffufff pppppppp ffffffff",
    ("tails", 1): "uuuuuuuu uuuuuuuu ffffffuf uupuuppu ffffffff",
    ("student", 1): "uuuuuuuu uuuuuuuu ffuffuuu ppppuppp ffffffff",
    ("bimodal", 1): "uuuuuuuu uuuuuuuu uffffffu uuuuuuuu ffffffff",
    ("alike", 0): "uuupuuuu puupuupu fffuffff pppppppp ffffffff",
}


@pytest.mark.parametrize(("model", "shape"), WORDS)
def test_each_machine_has_its_word(model, shape):
    kinds = simulated.words(model, simulated.SHAPES[shape], 8)
    assert " ".join("".join(word[0] for word in kind) for kind in kinds) == WORDS[model, shape]


@pytest.mark.parametrize("cell", [caution.ACCEPT[1], caution.ACCEPT[-2]])
def test_disturbed_launches_show_only_what_is_so(cell):
    random = np.random.default_rng(1)
    assert [caution.word(cell, caution.LIMIT * 3, random) for _ in range(5)] == ["pass"] * 5
    assert "pass" not in [caution.word(cell, caution.LIMIT * 0.999, random) for _ in range(10)]


def test_what_the_rates_promise():
    shape = simulated.SHAPES[1]
    rates = simulated.Rates(wrong_pass=0.07, wrong_fail=0.07, worse=0.07, passes=0.96, finds=0.96)
    promises = Promises()
    simulated.keep("normal", shape, rates, 1000, promises)
    simulated.keep("alike", shape, replace(rates, wrong_pass=0.5), 1000, promises)
    assert promises.broken == []
    for changes in ({"wrong_pass": 0.08}, {"wrong_fail": 0.08}, {"worse": 0.08}, {"passes": 0.95}, {"finds": 0.95}):
        simulated.keep("normal", shape, replace(rates, **changes), 1000, promises)
    simulated.keep("alike", shape, replace(rates, worse=0.08), 1000, promises)
    assert len(promises.broken) == 6
