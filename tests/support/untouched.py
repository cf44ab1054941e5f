"""A pytest plugin: fails the run if it changed the folders of a checkout that hold a user's data."""

from collections.abc import Generator
from pathlib import Path

import pytest

#: what lies there belongs to the user; tests have folders of their own
FOLDERS = ("results", "site-configs", "stacks")


def files(checkout: Path) -> dict[str, tuple[int, int]]:
    """Size in bytes and time of change in ns of every file and folder there, by path; Python's caches are left out.

    The size of a folder is given as 0 and its time as 0: what changed in it has an entry of its own.
    """
    found = {}
    for folder in FOLDERS:
        for item in (checkout / folder).rglob("*"):
            if "__pycache__" not in item.parts:
                status = item.lstat()
                own = (0, 0) if item.is_dir() else (status.st_size, status.st_mtime_ns)
                found[str(item.relative_to(checkout))] = own
    return found


class Untouched:
    """Compares the folders of ``checkout`` before and after the run."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.before: dict[str, tuple[int, int]] = {}
        self.changed: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Take what is there before."""
        self.before = files(self.checkout)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare; the run fails if something changed."""
        after = files(self.checkout)
        self.changed = sorted({path for path, _ in self.before.items() ^ after.items()})
        if self.changed and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Name what changed, after everything else: a log of which only the end is kept must have it."""
        yield
        if self.changed:
            terminalreporter.section("the tests changed the checkout", red=True)
            terminalreporter.write_line("\n".join(self.changed))
