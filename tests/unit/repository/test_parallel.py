"""Tests that run at once: who waits for whom, what stays together, and what an interrupt leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import parallel
import processes
import pytest

SUPPORT = Path(__file__).resolve().parents[2] / "support"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
import parallel
from pathlib import Path

parallel.RAISED = Path("raised")

def pytest_configure(config):
    config.addinivalue_line("markers", "alone: alone")
    parallel.configure(config)
"""
#: each test writes when it ran
TESTS = """
import json, os, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(6))
def test_beside_others(number):
    begin = time.monotonic()
    time.sleep(0.2)
    Path(f"{os.getpid()}-{time.monotonic_ns()}.json").write_text(json.dumps(["others", begin, time.monotonic()]))

@pytest.mark.alone
def test_alone():
    begin = time.monotonic()
    time.sleep(0.2)
    Path(f"{os.getpid()}-{time.monotonic_ns()}.json").write_text(json.dumps(["alone", begin, time.monotonic()]))
"""


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Run the tests in ``folder`` in three processes."""
    (folder / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "3", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_test_that_measures_has_the_machine_alone(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(TESTS)
    with start(tmp_path) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "21 passed" in output.splitlines()[-1]
    ran = {file: json.loads(file.read_text()) for file in tmp_path.glob("*.json")}
    assert len({file.name.split("-")[0] for file in ran}) == 3
    spans = sorted((begin, end, kind) for kind, begin, end in ran.values())
    overlaps = {
        frozenset((one[2], other[2])) for place, one in enumerate(spans) for other in spans[:place] if one[0] < other[1]
    }
    assert overlaps == {frozenset({"others"})}


WAITING = """
import time
from pathlib import Path

def wait_for(name):
    deadline = time.monotonic() + 60
    while not Path(name).exists():
        assert time.monotonic() < deadline, name
        time.sleep(0.02)
"""
ON_THE_BED = """
def test_takes_long():
    Path("began").touch()
    wait_for("other-2")
    Path("bed").touch()
"""
ALONE = """
import pytest

def test_before():
    wait_for("began")
    Path("coming").touch()

@pytest.mark.alone
def test_alone():
    assert Path("bed").exists()
"""
OTHERS = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_other(number):
    wait_for("coming")
    time.sleep(0.3)  # the one that waits for the machine has begun to
    Path(f"other-{number}").touch()
"""


def test_others_go_on_while_one_that_wants_the_machine_waits_for_the_bed(tmp_path: Path) -> None:
    for name, text in {"bed/test_bed": ON_THE_BED, "one/test_alone": ALONE, "two/test_others": OTHERS}.items():
        file = tmp_path / f"tests/{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(WAITING + text)
    with start(tmp_path, "--rootdir", str(tmp_path), "tests") as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "6 passed" in output.splitlines()[-1]


def test_files_with_tests_that_want_the_machine_come_last() -> None:
    def item(path: str, alone: bool = False) -> SimpleNamespace:
        return SimpleNamespace(path=path, nodeid=f"{path}::t", get_closest_marker=lambda name: alone or None)

    bed = item("tests/bed/test_onboarding.py", alone=True)
    first, second = item("tests/e2e/test_a.py", alone=True), item("tests/e2e/test_a.py")
    unit, other = item("tests/unit/test_b.py"), item("tests/e2e/test_c.py")
    assert parallel.arranged([first, second, unit, other, bed]) == [bed, other, unit, first, second]


HANGING = """
import subprocess, sys, time
from pathlib import Path

def test_hangs():
    line = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"
    child = subprocess.Popen([sys.executable, "-c", line, {marker!r}], stdout=subprocess.PIPE)
    child.stdout.readline()
    Path("started").touch()
    time.sleep(300)
"""


def test_an_interrupt_ends_what_the_tests_started(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(HANGING.format(marker=str(tmp_path)))
    with start(tmp_path, "--testrunuid", tmp_path.name + "-run") as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert processes.carrying(tmp_path.name + "-run")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert processes.carrying(tmp_path.name + "-run") == []
