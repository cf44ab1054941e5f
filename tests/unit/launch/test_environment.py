"""docs/environment.md and the code name the same environment variables."""

import re
from collections.abc import Iterator
from pathlib import Path

from plumbline.base import paths, surroundings

ROOT = paths.root()
PAGE = ROOT / "docs" / "environment.md"
SEARCHED = ("plumbline", "custom-kernels", "playbooks", "reframe-tests", "spack-env")
#: names of the same form that are none, and what they are
NOT_VARIABLES = {
    "PLUMB_BLAS_LIBRARY": "CMake",
    "PLUMB_BLAS_PREFIX": "CMake",
    "PLUMB_BLAS_SYMBOL_PREFIX": "a macro",
    "PLUMB_GROUPS": "CMake",
    "PLUMB_NATIVE": "CMake",
    "PLUMB_TARGET": "CMake",
    "PLUMB_SANITIZE": "CMake",
    "PLUMB_STATIC_LIBC": "CMake",
    "PLUMB_WARNINGS_AS_ERRORS": "CMake",
    "PLUMB_SEED": "a member of records that earlier versions wrote",
}


def files() -> Iterator[Path]:
    yield ROOT / "activate"
    for folder in SEARCHED:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix != ".pyc" and "vendor" not in file.parts:
                yield file


def in_code() -> set[str]:
    """All names but header guards and prefixes."""
    found: set[str] = set()
    for file in files():
        found |= set(re.findall(r"(?<![A-Za-z_])PLUMB_[A-Z0-9_]*[A-Z0-9]\b", file.read_text(errors="replace")))
    guards = {name for name in found if name.endswith("_H")}
    return found - guards


def rows() -> dict[str, list[str]]:
    """Name -> the files that read it."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\| `(PLUMB_\w+)`[^|]*\|[^|]*\|([^|]*)\|", line):
            assert match[1] not in found, f"{match[1]} is there twice"
            found[match[1]] = re.findall("`([^`]+)`", match[2])
    return found


def test_the_table_has_the_variables_of_the_code():
    names = in_code()
    assert set(NOT_VARIABLES) <= names, "an exception that the code no longer needs"
    assert sorted(rows()) == sorted(names - set(NOT_VARIABLES))


def test_each_variable_is_read_where_the_table_says():
    for name, readers in rows().items():
        assert readers, f"{name} is read nowhere"
        for reader in readers:
            assert name in (ROOT / reader).read_text(encoding="utf-8"), f"{reader} does not read {name}"


def test_what_a_job_may_say_of_its_gpus_is_what_the_binder_looks_at():
    text = (ROOT / "custom-kernels/common/device_variables.c").read_text(encoding="utf-8")
    table = re.findall(r'"(\w+)"', text.partition("device_variables[DEVICE_VARIABLES")[2])
    assert tuple(table[: len(surroundings.DEVICES)]) == surroundings.DEVICES
    assert table[len(surroundings.DEVICES) :] == ["CUDA_DEVICE_ORDER"]
