"""Tests that run at once: who waits for whom, what stays together, and what an interrupt leaves."""

import json
import os
import signal
import subprocess
import sys
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
#: each test writes when it ran; the first ones of all processes wait for one another
TESTS = """
import json, os, time
from pathlib import Path
import pytest
from processes import wait_until

@pytest.mark.parametrize("kind", ["others", "others again", pytest.param("alone", marks=pytest.mark.alone)])
def test_when(kind):
    begin = time.monotonic()
    Path(f"{os.getpid()}.began").touch()
    wait_until(lambda: len([*Path().glob("*.began")]) == 3, "three processes at once")
    time.sleep(0.05)
    Path(f"{os.getpid()}-{kind}.json").write_text(json.dumps([begin, time.monotonic(), kind.partition(" ")[0]]))
"""


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Run the tests in ``folder`` in three processes."""
    (folder / "conftest.py").write_text(CONFTEST)
    plugins = ["-p", "no:cacheprovider", "-p", "xdist.plugin"]
    command = [sys.executable, "-m", "pytest", "-x", *plugins, "-n", "3", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others only take time
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_test_that_measures_has_the_machine_alone(tmp_path):
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(TESTS)
    with start(tmp_path) as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "9 passed" in output.splitlines()[-1]
    spans = sorted(json.loads(file.read_text()) for file in tmp_path.glob("*.json"))
    overlaps = {
        frozenset((one[2], other[2])) for place, one in enumerate(spans) for other in spans[:place] if one[0] < other[1]
    }
    assert overlaps == {frozenset({"others"})}


WAITING = """
import os, re
from pathlib import Path
from processes import wait_for, wait_until
"""
ON_THE_BED = """
def test_takes_long():
    Path("began").write_text("yes")
    wait_for(Path("other-2"))
    Path("bed").touch()
"""
ALONE = """
import pytest

def test_before():
    wait_for(Path("began"))
    Path("coming").write_text(str(os.getpid()))

@pytest.mark.alone
def test_alone():
    assert Path("bed").exists()
"""
OTHERS = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_other(number):
    waits = f"-> FLOCK .* {wait_for(Path('coming'))} "
    wait_until(lambda: re.search(waits, Path("/proc/locks").read_text()), "who wants the machine waits for the bed")
    Path(f"other-{number}").write_text("yes")
"""


FIRST = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_launches(number):
    wait_for(Path("unit"))
    Path(f"launched-{number}").write_text("yes")
"""
SECOND = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_launches(number):
    assert Path("launched-1").exists()
"""
UNIT = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_unit(number):
    Path("unit").write_text("yes")
    wait_for(Path("launched-{name}"))
"""


def test_files_of_launches_follow_one_another(tmp_path):
    """Two of them at once would wait for the turns of each other, and the machine for both."""
    units = {"unit/test_c": UNIT.format(name="0"), "unit/test_d": UNIT.format(name="2")}
    for name, text in {"e2e/test_a": FIRST, "e2e/test_b": SECOND, **units}.items():
        file = tmp_path / f"tests/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WAITING + text)
    with start(tmp_path, "-n", "2", "--rootdir", str(tmp_path), "tests") as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "12 passed" in output.splitlines()[-1]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel does not say who waits for a lock")
def test_others_go_on_while_one_that_wants_the_machine_waits_for_the_bed(tmp_path):
    for name, text in {"bed/test_bed": ON_THE_BED, "one/test_alone": ALONE, "two/test_others": OTHERS}.items():
        file = tmp_path / f"tests/{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(WAITING + text)
    with start(tmp_path, "--rootdir", str(tmp_path), "tests") as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "6 passed" in output.splitlines()[-1]


def test_files_with_tests_that_want_the_machine_come_last():
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


def test_an_interrupt_ends_what_the_tests_started(tmp_path):
    (tmp_path / "test_one.py").write_text(HANGING.format(marker=str(tmp_path)))
    with start(tmp_path, "-n", "1", "--testrunuid", tmp_path.name + "-run") as process:
        processes.wait_until((tmp_path / "started").exists, "a test that hangs", of=process)
        assert processes.carrying(tmp_path.name + "-run")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert processes.carrying(tmp_path.name + "-run") == []


def test_every_file_of_the_bed_is_one_that_waits_for_the_others():
    """The bed is one, and two files that use it at once find it busy, or end the faults of each other."""
    folder = Path(__file__).resolve().parents[2] / "bed"
    using = [file for file in folder.glob("test_*.py") if "bed: Bed" in file.read_text() or "(bed" in file.read_text()]
    assert sorted(f"tests/bed/{file.name}" for file in using if file.name != "test_lifecycle.py") == sorted(
        parallel.BED
    )
