"""Each lab of one node that this machine can show, run for real, as small as can be: every table gets its figures."""

from __future__ import annotations

import functools
from pathlib import Path

import own_code
import pytest
import tiny_labs

from plumbline import site
from plumbline.base import paths
from plumbline.labs import machine

pytestmark = pytest.mark.e2e
#: a stack with the eager limits and algorithms that labs change
STACK = "openmpi"


def shown() -> list[str]:
    """The labs that can be run here."""
    own = site.claiming(site.load_all())
    return tiny_labs.fitting(1, machine.offered(own)) if own else []


def run_with(around: dict[str, str]) -> tiny_labs.Run:
    """What runs a command with these variables."""
    return functools.partial(own_code.run, paths.root(), around)


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of commands whose results have launches of all tests of the labs of one node."""
    folder = tmp_path_factory.mktemp("labs")
    around = own_code.variables(folder)
    tiny_labs.measure(shown(), STACK, folder, paths.sites(), run_with(around))
    return around


@pytest.mark.parametrize("name", shown())
def test_a_lab_shows_the_figures_that_were_measured(around: dict[str, str], name: str, tmp_path: Path) -> None:
    tiny_labs.check(name, around, run_with(around), tmp_path / "lab.json")
