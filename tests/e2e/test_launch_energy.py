"""A real launch beside counters of energy that are made up: what its record and ``plumb show`` say."""

import re

import pytest
from odd_stack import ELEMENTS, STREAM_OUTPUT

from plumbline.host import energy
from plumbline.measure import driver
from plumbline.parsers.measurement import Work
from plumbline.show import record as show

pytestmark = pytest.mark.e2e
FIND = energy.find
#: adds 42 J to the counter, as long as it is there
SPEND = """
import pathlib
counter = pathlib.Path({counter!r})
if counter.exists(): counter.write_text(str(int(counter.read_text()) + 42_000_000))
"""


def test_joules_of_each_launch_are_in_its_record(bench, tmp_path, monkeypatch):
    package = tmp_path / "host/sys/class/powercap/intel-rapl:0"
    package.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("energy_uj", "5"), ("max_energy_range_uj", "262143328850")):
        (package / name).write_text(text)
    monkeypatch.setattr(energy, "find", lambda root=None: FIND(root or tmp_path / "host"))
    gpu = energy.Counter("0000:03:00.0", lambda: int((package / "energy_uj").read_text()), None)
    monkeypatch.setattr(energy, "gpus", lambda: energy.Meter("NVML", (gpu,)))
    bench.stack(SPEND.format(counter=str(package / "energy_uj")) + STREAM_OUTPUT)
    _, (record,) = driver.run([bench.variant(launches=2)], bench.folder / "work")
    assert [launch.energy_j for launch in record.launches] == [{"package-0": 42.0}] * 2
    assert [launch.gpu_energy_j for launch in record.launches] == [{"0000:03:00.0": 42.0}] * 2
    iterations = 2 * ELEMENTS
    assert [launch.work for launch in record.launches] == [Work(flop=4 * iterations, bytes=80 * iterations)] * 2
    lines = show.text(record).splitlines()
    assert any(re.match(r" *energy J +power W", line) for line in lines)
    assert "42.00" in show.text(record)
    assert any(line.split()[:5] == ["launch", "start", "wall", "s", "energy"] for line in lines)
    rows = [line.split() for line in lines if re.match(r" +\d  \d\d:", line)]
    assert [row[3] for row in rows] == ["42", "42"]


def test_a_node_without_counters_has_no_column(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(energy, "find", lambda root=None: FIND(tmp_path / "nothing"))
    bench.stack(STREAM_OUTPUT)
    _, (record,) = driver.run([bench.variant()], bench.folder / "work")
    assert [launch.energy_j for launch in record.launches] == [None] * len(record.launches)
    shown = show.text(record)
    assert " J " not in shown
    assert shown.count("joules not read: no counter of energy") == 1
