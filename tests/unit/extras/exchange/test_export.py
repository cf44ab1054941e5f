"""``plumb export``: each form holds the figures of the records, and the programs that it is for read it."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser
from samples import launch, record, variant

from plumbline.base import units
from plumbline.commands import cli
from plumbline.extras.exchange import rows

HOSTILE = 'a "b" \\ <c>,\nd'


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results" / "local").mkdir(parents=True)
    return tmp_path / "results"


def put(results, *records):
    text = "".join(json.dumps(item) + "\n" for item in records)
    (results / "local" / "s.jsonl").write_text(text)


def made(number, value, **changes):
    """The record of day ``number``, of three launches about ``value``."""
    launches = [launch(order, value + order) for order in range(3)]
    time = f"2026-01-{number:02d}T00:00:00.000Z"
    return record(id=f"{number:012x}", session=f"s{number}", time=time, launches=launches, **changes)


def export(capsys, *words):
    status = cli.main(["export", *map(str, words)])
    return status, *capsys.readouterr()


def test_a_program_of_ones_own_has_its_application_and_commit(results, capsys):
    state = {"name": "heat", "program": "fine", "commit": "c" * 40}
    put(results, made(1, 1.0), made(2, 2.0, variant=variant(test="heat_fine", application=state)))
    first, second = csv.DictReader(io.StringIO(export(capsys, "--format", "csv")[1]))
    assert (first["application"], first["commit"]) == ("", "")
    assert (second["application"], second["commit"]) == ("heat", "c" * 40)


def test_reframe_keeps_the_commit(results, capsys, tmp_path):
    states = [{"name": "heat", "program": "fine", "commit": letter * 40} for letter in "cd"]
    put(results, *(made(day, day, variant=variant(application=state)) for day, state in enumerate(states, start=1)))
    assert export(capsys, "--format", "reframe", "--output", tmp_path / "results.db")[0] == 0
    span = "20260101:20260131"
    ended = reframe(tmp_path / "results.db", tmp_path, f"--performance-compare={span}/{span}/median:+plumbline_commit/")
    found = [line for line in ended.stdout.splitlines() if "triad" in line]
    assert ["c" * 40 in line for line in found] == [True, False], ended.stdout + ended.stderr


def test_conditions_choose_records(results, capsys, tmp_path):
    put(results, made(1, 1.0, campaign="c1"), made(2, 2.0, campaign="c2"), made(3, 3.0, campaign="c2"))
    target = tmp_path / "f.csv"
    status, out, _ = export(capsys, "--format", "csv", "--campaign", "c2", "--since", "2026-01-03", "--output", target)
    assert (status, out) == (0, f"exported: {target}, 1 figure of 1 record\n")
    assert [row["id"][-1] for row in csv.DictReader(target.open())] == ["3"]
    status, out, err = export(capsys, "--format", "csv", "--campaign", "c2")
    assert (status, out.count("\n"), err) == (0, 3, "exported: 2 figures of 2 records\n")
    status, _, err = export(capsys, "--format", "csv", "--stack", "mpich")
    assert status == 2
    assert "no record of stack 'mpich'" in err


def test_every_unit_has_a_base_unit():
    assert set(rows.BASE) == set(units.UNITS)


def test_openmetrics_is_what_prometheus_reads(results, capsys):
    named = variant(name=HOSTILE)
    put(results, made(2, 200.0, variant=named), made(1, 100.0, variant=named), made(3, 5.0, verified=False))
    status, out, _ = export(capsys, "--format", "openmetrics")
    (family,) = parser.text_string_to_metric_families(out)
    assert status == 0
    assert (family.name, family.type, family.unit) == ("plumbline_figure_bytes_per_second", "gauge", "bytes_per_second")
    points = [(sample.value, float(sample.timestamp)) for sample in family.samples]
    assert points == [(101e6, 1767225600.0), (201e6, 1767312000.0)]
    assert family.samples[0].labels["variant"] == HOSTILE
    assert family.samples[0].labels["figure"] == "triad"


def reframe(database, home, *words):
    program = Path(sys.executable).parent / "reframe"
    storage = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(database), "RFM_TABLE_FORMAT": "csv"}
    around = {**os.environ, **storage, "HOME": str(home)}
    command = [program, *words]
    return subprocess.run(command, env=around, cwd=home, capture_output=True, text=True, timeout=120, check=False)


def test_reframe_compares_our_figures(results, capsys, tmp_path):
    reference = {"value": 90.0, "unit": "MB/s", "method": "calibrated", "lower": -0.1, "upper": None, "file": "a.yaml"}
    second = made(20, 200.0, campaign="c2")
    second["figures"][0]["reference"] = reference
    put(results, made(1, 100.0, campaign="c1"), made(2, 102.0, campaign="c1"), second, made(21, 7.0, verified=False))
    target = tmp_path / "results.db"
    assert export(capsys, "--format", "reframe", "--output", target)[0] == 0
    ended = reframe(target, tmp_path, "--performance-compare=20260110:20260131/20260101:20260110/median:/")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (row,) = [line for line in ended.stdout.splitlines() if "triad" in line]
    assert [cell in row for cell in ("stream_threads", "local:default+openmpi", "201", "102", "97.06")] == [True] * 5
    listed = reframe(target, tmp_path, "--list-stored-sessions=20260101:20260131")
    assert listed.stdout.count("20260101T000000+0000") == 1
    assert "c1" in listed.stdout
    assert "c2" in listed.stdout
