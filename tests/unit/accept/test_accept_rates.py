"""How often `plumb accept` errs, small edition of tests/rates/accept.py; the whole one is in docs/rates.md."""

from __future__ import annotations

import sys

import pytest

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import accept as simulated

#: of so many machines, more than so many wrong verdicts have a probability below 1 in 10,000 where 5 % are declared
MACHINES, MOST = 150, 19


@pytest.mark.parametrize("model", ["normal", "student", "bimodal"])
@pytest.mark.parametrize("shape", simulated.SHAPES[:3])
def test_wrong_verdicts_are_as_rare_as_declared(model: str, shape: tuple[int, float, int, int]) -> None:
    found = simulated.simulate(model, shape, MACHINES)
    assert found.wrong_pass * MACHINES <= MOST
    assert found.wrong_fail * MACHINES <= MOST
    assert found.worse <= found.wrong_pass + 0.05


def test_clear_machines_are_decided() -> None:
    found = simulated.simulate("normal", (8, 1.0, 8, 0), MACHINES)
    assert min(found.passes, found.finds) > 0.95


def test_what_all_launches_share_is_not_seen() -> None:
    """docs/acceptance.md says so: a limit that is missed by less than sessions vary passes on a good day."""
    found = simulated.simulate("alike", (8, 1.0, 8, 0), MACHINES)
    assert found.wrong_pass * MACHINES > MOST
    assert found.worse * MACHINES <= MOST
