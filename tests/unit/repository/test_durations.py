"""The costs of tests: what is written, and the sums by folder beside those of the run before."""

import json
import subprocess
import sys

import durations
import pytest

OF = "tests/unit/gate/test_a.py::test_"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "build" / "durations.json"


class Reporter(list):
    """A terminal."""

    write_line = list.append


def report(name, seconds, cpu):
    made = pytest.TestReport(name, ("", 0, ""), {}, "passed", None, "call", duration=seconds)
    made.cpu = cpu
    return made


def test_phases_of_a_test_are_added_and_written_and_a_damaged_file_of_the_run_before_is_left_out(file):
    file.parent.mkdir()
    file.write_text('{"a": [1')
    plugin = durations.Durations(file)
    for seconds, cpu in ((1.5, 1.0), (0.25, 0.5)):
        plugin.pytest_runtest_logreport(report(f"{OF}one", seconds, cpu))
    terminal = Reporter()
    plugin.pytest_terminal_summary(terminal)
    assert terminal[-1].split() == ["sum", "1", "1.8", "1.5"]
    assert json.loads(file.read_text()) == {f"{OF}one": [1.75, 1.5]}


def test_sums_by_folder_stand_beside_those_of_the_same_tests_before():
    costs = {f"{OF}one": [1.5, 1.0], f"{OF}new": [2.0, 2.0], "tests/e2e/test_b.py::test_b": [10.0, 4.0]}
    before = {f"{OF}one": [3.0, 2.5], f"{OF}gone": [50.0, 50.0]}
    assert [" ".join(line.split()) for line in durations.table(costs, before)] == [
        "folder tests s CPU s before: tests s CPU s",
        "tests/e2e 1 10.0 4.0",
        "tests/unit/gate 2 3.5 3.0 1 3.0 2.5",
        "sum 3 13.5 7.0 1 3.0 2.5",
    ]


def test_the_meter_counts_a_program_that_a_test_started():
    meter = durations.Meter()
    code = "import time\nwhile time.process_time() < 0.25: pass"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
    hook = meter.pytest_runtest_makereport()
    next(hook)
    with pytest.raises(StopIteration) as ended:
        hook.send(report(f"{OF}one", 1.0, 0.0))
    assert ended.value.value.cpu > 0.2
