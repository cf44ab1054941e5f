"""The bed for tests: raised once, or used as it is if it is up."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import parallel
import pytest
from processes import ended
from testbed import bed as beds
from testbed import host
from testbed.client import Bed

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the bed as end to end, before marks select."""
    for item in items:
        if "bed" in getattr(item, "fixturenames", ()):
            item.add_marker("e2e")


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The bed. It is taken down at the end if it was raised for the tests, unless PLUMB_KEEP_BED is set."""
    problem = host.obstacle()
    if problem:
        pytest.skip(problem)
    if not beds.status()[0]:
        parallel.RAISED.parent.mkdir(exist_ok=True)
        parallel.RAISED.touch()
    try:
        done = ended([str(HERE / "bed"), "up"], timeout=1800)
        if done.returncode != 0:
            pytest.fail(f"bed up: {done.stderr}")
        yield Bed()
    finally:
        if os.environ.get("PLUMB_KEEP_BED"):
            parallel.RAISED.unlink(missing_ok=True)
        parallel.end_bed()


@pytest.fixture
def fault(bed: Bed) -> Iterator[Callable[..., None]]:
    """Makes a fault (`fault("drain", "node2")`); all are healed after the test."""

    def make(*arguments: str) -> None:
        done = bed.call("fault", *arguments)
        assert done.returncode == 0, done.stderr

    yield make
    healed = bed.call("heal")
    assert healed.returncode == 0, healed.stderr
