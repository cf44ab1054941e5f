"""Each lab of one node that this machine can show, run for real, as small as can be: every table gets its figures."""

import functools

import own_code
import pytest
import tiny_labs

from plumbline import site
from plumbline.base import paths
from plumbline.extras.labs import model

pytestmark = pytest.mark.e2e
#: stacks: with the eager limits and algorithms that labs change, and with Intel's benchmarks
STACKS = ("openmpi", "intelmpi")


#: labs of one of each kind of test; `make long` runs all
FEW = ("D1", "D6", "S5", "T4")


def shown() -> list[str]:
    """The labs that can be run here."""
    here = site.claiming(site.load_all())
    return tiny_labs.fitting(1, model.offered(here)) if here else []


def run_with(around: dict[str, str]) -> tiny_labs.Run:
    """What runs a command with these variables."""
    return functools.partial(own_code.run, paths.root(), around)


@pytest.fixture(scope="module")
def around(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of commands whose results have launches of all tests of the labs that are looked at."""
    folder = tmp_path_factory.mktemp("labs")
    around = own_code.variables(folder)
    chosen = {item.name for item in request.session.items if item.path == request.path}
    labs = [name for name in shown() if any(f"[{name}]" in item for item in chosen)]
    for stack in STACKS:
        of_stack = [name for name in labs if ("imb_" in model.named(name).pattern) == (stack == "intelmpi")]
        if of_stack:
            (folder / stack).mkdir()
            tiny_labs.measure(of_stack, stack, folder / stack, paths.sites(), run_with(around))
    return around


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in shown()]
)
def test_a_lab_shows_the_figures_that_were_measured(around, name, tmp_path):
    tiny_labs.check(name, around, run_with(around), tmp_path / "lab.json")
