"""The tests of the suite by name, and the families that their references are filed under."""

from __future__ import annotations

from plumbline.base import paths
from plumbline.base.errors import PlumbError

#: the family of the suite's check of itself, which measures nothing
SUITE = "suite"


def expected() -> set[str]:
    """The names of all tests, from ``reframe-tests/expected.txt``."""
    file = paths.suite() / "reframe-tests" / "expected.txt"
    try:
        return set(file.read_text(encoding="utf-8").split())
    except OSError as error:
        raise PlumbError(f"cannot read the list of tests: {error.strerror}", str(file), "restore the file") from None


def family(test: str) -> str:
    """The family that a test's references are filed under: its name up to the first underscore."""
    return test.partition("_")[0]


def families() -> list[str]:
    """The families of the tests that measure something, sorted."""
    return sorted({family(test) for test in expected()} - {SUITE})
