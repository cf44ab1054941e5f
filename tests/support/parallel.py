"""What holds where pytest-xdist runs tests at once: which stay together, which run alone, and that nothing is left.

Tests of one file run one after another in one process, because they share what its fixtures make; so do all tests that
use the bed, of which a machine has one. A test marked ``alone`` measures something that other work would change: no
other test runs beside it. It waits for the test that uses the bed first, which may take minutes; only then nobody else
gets in, until it has the machine. Files with such tests come last, when the bed is down: nobody waits for them before.
Launches on one host take turns: while a process has a file of launches, the others get files without.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import processes
import pytest

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parents[2]
BED = (
    "tests/bed/test_bed.py",
    "tests/bed/test_onboarding.py",
    "tests/bed/test_health_bed.py",
    "tests/bed/test_screen_bed.py",
    "tests/bed/test_prove_bed.py",
    "tests/bed/test_advice_bed.py",
    "tests/bed/test_schedulers_bed.py",  # the last: it leaves a bed that ends with the tests without Slurm
)
#: those that take longest begin first, so that no process is left with one of them at the end
FIRST = (*BED, "tests/bed", "tests/e2e", "tests/vm", "tests/kernels", "tests/playbooks")
#: its tests share nothing and take long together
APART = "tests/playbooks/test_playbooks_cluster.py"
#: they share what ReFrame says of the suite on archived sites, which it takes seconds to say
ARCHIVED = (
    "tests/e2e/test_labs_scripts.py",
    *(f"tests/golden/test_{name}.py" for name in ("devices", "nodes", "seed_sites")),
)
#: end-to-end tests that launch little
BESIDE = tuple(
    f"tests/e2e/test_{name}.py" for name in ("ci_runner", "labs_scripts", "module", "offline", "spack", "wheel")
)
#: exists while a bed that a test raised is up
RAISED = ROOT / "build" / "bed-of-tests"


def rank(path: str) -> int:
    """Where a file stands in the order of :data:`FIRST`; those not named there come last."""
    return next((place for place, start in enumerate(FIRST) if path.startswith(start)), len(FIRST))


def arranged(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests of the longest files first, those that want the machine alone last; in a file they stay in order."""
    alone = {item.path for item in items if item.get_closest_marker("alone") and not uses_bed(item.nodeid)}
    return sorted(items, key=lambda item: (item.path in alone, rank(item.nodeid)))


def uses_bed(path: str) -> bool:
    """Whether it is a test that uses the bed."""
    return path.split("::")[0] in BED


def launches(path: str) -> bool:
    """Whether its tests spend their time with launches on this host."""
    return path.startswith("tests/e2e/") and not path.startswith(BESIDE) and "_browser.py" not in path


class Turns:
    """In a process that runs tests: waits until a test may begin."""

    def __init__(self, folder: Path) -> None:
        self.queue = (folder / "queue").open("w")
        self.bed = (folder / "bed").open("w")
        self.door = (folder / "door").open("w")
        self.room = (folder / "room").open("w")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Share the room with others, or have it alone."""
        alone = item.get_closest_marker("alone") is not None
        if alone or uses_bed(item.nodeid):
            _enter(self.queue, self.bed, fcntl.LOCK_EX)
        # who waits for the room to be empty stands in the door: nobody else gets in before
        _enter(self.door, self.room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            fcntl.flock(self.room, fcntl.LOCK_UN)
            fcntl.flock(self.bed, fcntl.LOCK_UN)


def _enter(door: IO[str], room: IO[str], how: int) -> None:
    """Lock ``room``, and meanwhile ``door``."""
    fcntl.flock(door, fcntl.LOCK_EX)
    try:
        fcntl.flock(room, how)
    finally:
        fcntl.flock(door, fcntl.LOCK_UN)


class Controller:
    """In the process that hands out the tests: prepares the others, and ends what they left."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plumbline-turns-"))
        self.run = ""

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> Scheduling:
        """Tests are handed out by file, in the order of collection; those that use the bed as if they were one file."""
        from xdist.scheduler import LoadScopeScheduling

        class ByFile(LoadScopeScheduling):
            def _split_scope(self, nodeid: str) -> str:
                file = nodeid.split("::")[0]
                if file == APART:
                    return nodeid
                return BED[0] if uses_bed(nodeid) else ARCHIVED[0] if file in ARCHIVED else file

            def _assign_work_unit(self, node: WorkerController) -> None:
                others = [
                    unit for other, work in self.assigned_work.items() if other is not node for unit in work.items()
                ]
                busy = any(launches(name) and not all(ended.values()) for name, ended in others)
                fitting = (unit for unit in self.workqueue if not (busy and launches(unit)))
                self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
                super()._assign_work_unit(node)

        config.option.loadscopereorder = False
        return ByFile(config, log)

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a process where the locks are."""
        node.workerinput["turns"] = str(self.folder)
        self.run = node.workerinput["testrunuid"]

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """End what a test left that was interrupted: its process may have had too little time for that."""
        yield
        end_bed()
        end_processes(self.run)
        shutil.rmtree(self.folder)


def end_bed() -> None:
    """Take down a bed that a test raised, if one is up."""
    if RAISED.exists():
        subprocess.run([ROOT / "tests/bed/bed", "down"], check=False, timeout=300)
        RAISED.unlink(missing_ok=True)


def end_processes(marker: str) -> None:
    """End all processes that have ``marker`` in their environment: SIGTERM, and after 10 s SIGKILL."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + 10
        for pid in processes.carriers(marker):
            try:
                os.kill(pid, signum)
            except ProcessLookupError:
                continue
        while processes.carriers(marker) and time.monotonic() < end:
            time.sleep(0.05)


def configure(config: pytest.Config) -> None:
    """Register what this process needs; nothing where tests run one after another."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Turns(Path(config.workerinput["turns"])))
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(Controller())
