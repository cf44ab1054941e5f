"""Fixtures of many unit tests."""

import pytest


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The folder of results, which is not there yet."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"
