"""Stacks whose programs misbehave on purpose, launched by the real launchers."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from plumbline import paths
from plumbline.stacks import manifest as manifests

#: prints a valid STREAM table, so that only what else the program does decides
STREAM_OUTPUT = """
import sys
sys.stdout.write('''-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 4000000000 (elements), Offset = 0 (elements)
Memory per array = 30517.6 MiB (= 29.8 GiB).
Total memory required = 91552.7 MiB (= 89.4 GiB).
Each kernel will be executed 10 times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
-------------------------------------------------------------
Number of Threads requested = 1
Number of Threads counted = 1
-------------------------------------------------------------
Your clock granularity/precision appears to be 1 microseconds.
Each test below will take on the order of 20000 microseconds.
   (= 20000 clock ticks)
Increase the size of the arrays if this shows that
you are not getting at least 20 clock ticks per test.
-------------------------------------------------------------
WARNING -- The above is only a rough guideline.
For best results, please be sure you know the
precision of your system timer.
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           20000.0     0.016100     0.016000     0.016200
Scale:          20000.0     0.016100     0.016000     0.016200
Add:            20000.0     0.024100     0.024000     0.024200
Triad:          20000.0     0.024100     0.024000     0.024200
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
''')
sys.stdout.flush()
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty results folder."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


class Bench:
    """Makes stacks from Python programs, and variants of them, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stack(self, code: str, base: str = "mpich", name: str = "odd") -> dict[str, Any]:
        """Stack ``name``: MPI of the installed stack ``base``, with a program ``stream`` that runs ``code``."""
        document = json.loads((self.folder / "installed" / base / manifests.FILE).read_text())
        script = self.folder / f"{name}.py"
        script.write_text(code)
        document["name"] = name
        document["benchmarks"] = {
            "stream": {
                "suite": "stream",
                "version": "5.10",
                "command": [os.path.realpath(sys.executable), str(script)],
                "file": str(script),
                "sha256": manifests.sha256(script),
                "built": "by a test",
                "facts": {"array_elements": 4_000_000_000},
            }
        }
        (self.folder / "stacks" / name).mkdir(parents=True, exist_ok=True)
        manifests.save(document)
        return document

    def variant(self, **changes: Any) -> dict[str, Any]:
        """A variant of the odd stack: one rank, one thread, pinned."""
        from samples import variant

        return variant(**{"stack": "odd", "threads": 1, "launches": 1, "name": "odd", **changes})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: Path) -> Bench:
    """See :class:`Bench`; installed stacks are read from the checkout, odd ones live in the test's folder."""
    (tmp_path / "installed").symlink_to(paths.stacks())
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    site = tmp_path / "sites" / "local"
    shutil.copytree(paths.sites() / "local", site)
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    return Bench(tmp_path)
