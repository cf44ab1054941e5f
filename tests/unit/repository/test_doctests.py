"""The examples in docstrings hold."""

import doctest
import importlib

import pytest

from plumbline.base import paths

PACKAGE = paths.root() / "plumbline"
MODULES = sorted(
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    for file in PACKAGE.rglob("*.py")
    if ">>> " in file.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, capsys):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0
    assert done.failed == 0, capsys.readouterr().out
