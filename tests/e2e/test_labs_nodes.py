"""Each lab of two nodes that fits on namespaces of this machine, run for real, as small as can be."""

from collections.abc import Iterator

import pytest
import tiny_labs
from msgspec import structs
from two_nodes import Site, site_over

from plumbline import site
from plumbline.extras.labs import model
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e
#: the stack with Intel's benchmarks, whose settings a lab changes
STACK = "intelmpi"
#: in make test, which has the launches of other labs over two nodes elsewhere; some take minutes
FEW = ("S3",)


def shown() -> list[str]:
    """The labs that can be run on two nodes like this one."""
    own = site.claiming(site.load_all())
    return tiny_labs.fitting(2, [structs.replace(one, nodes=2) for one in model.offered(own)]) if own else []


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes."""
    if STACK not in manifest.names():
        pytest.skip(f"stack {STACK} is not installed")
    with site_over(tmp_path_factory.mktemp("nodes")) as made:
        yield made


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in FEW else pytest.mark.long) for one in shown()])
def test_a_lab_over_two_nodes_shows_the_figures_that_were_measured(over, name, tmp_path):
    tiny_labs.measure([name], STACK, tmp_path, over.folder / "sites", over.command)
    tiny_labs.check(name, over.variables, over.command, tmp_path / "lab.json")
