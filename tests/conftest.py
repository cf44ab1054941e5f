"""What holds for all tests."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import durations
import hypothesis
import parallel
import pytest
import slow
import surroundings
from refusals import output_of, refused  # noqa: F401 - fixtures
from request_host import host  # noqa: F401 - a fixture
from untouched import Untouched

# Processes that run tests at once have it from the one that hands them out.
if "PLUMB_TEST_HOME" not in os.environ:
    home = tempfile.mkdtemp(prefix="plumbline-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    surroundings.enter(Path(home))

# A script that starts the tests in its background makes them ignore SIGINT, nohup SIGHUP, and so all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Hundreds of tests make a repository: without the examples of hooks that git copies into each.
os.environ["GIT_TEMPLATE_DIR"] = ""

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("without deadline", deadline=None)
hypothesis.settings.load_profile("without deadline")


def pytest_configure(config: pytest.Config) -> None:
    """The checkout's own records, sites and stacks stay as they are, and nothing is left of tests that run at once."""
    parallel.configure(config)
    durations.configure(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Untouched(Path(__file__).resolve().parents[1]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, before marks select; and the order in which tests are handed out."""
    for item in items:
        if item.nodeid.partition("::")[0] in slow.FILES:
            item.add_marker("slow")
    items[:] = parallel.arranged(items)


@pytest.fixture(scope="session", autouse=True)
def _own_results_and_sites(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Records of a test that names no folder do not become a user's, nor do the ceilings that they raise."""
    sites = tmp_path_factory.mktemp("sites") / "site-configs"
    shutil.copytree(Path(__file__).resolve().parents[1] / "site-configs", sites, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", str(tmp_path_factory.mktemp("results")))
        patch.setenv("PLUMB_SITES", str(sites))
        # no test loses power, and a disk that others use takes long; tests of what is synced put their own in its place
        patch.setattr(os, "fsync", lambda _: None)
        yield
