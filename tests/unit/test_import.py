"""``plumb import``: performance logs of ReFrame become records that are listed and compared, and judged by nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import record

from plumbline import cli
from plumbline.errors import PlumbError
from plumbline.exchange import perflogs
from plumbline.records import model, query
from plumbline.references import calibrate

CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Speed(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo'
    executable_opts = ['rate 12.5 lat 3.0']
    size = parameter([1, 2])
    reference = {'*': {'rate': (12, -0.1, None, 'GB/s')}}

    @sanity_function
    def ok(self):
        return sn.assert_found('rate', self.stdout)

    @performance_function('GB/s')
    def rate(self):
        return sn.extractsingle(r'rate (\\S+)', self.stdout, 1, float)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'lat (\\S+)', self.stdout, 1, float)
"""
HEADER = (
    "result|job_completion_time|name|environ|job_nodelist|num_tasks|partition|"
    "rate_value|rate_unit|rate_ref|rate_lower_thres|rate_upper_thres|system"
)


def line(value="12.5", system="sys", time="2026-01-01T00:00:00", unit="GB/s", thresholds="-0.1|None", name="T %n=1"):
    return f"pass|{time}|{name}|gnu|n1,n2|4|part|{value}|{unit}|12|{thresholds}|{system}"


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


@pytest.fixture
def log(tmp_path):
    def write(*lines, name="T.log"):
        (tmp_path / name).write_text("\n".join([HEADER, *lines]) + "\n")
        return tmp_path / name

    return write


def bring(*words):
    return cli.main(["import", *map(str, words)])


def test_a_log_of_reframe_itself(results, tmp_path, capsys):
    (tmp_path / "check.py").write_text(CHECK)
    program = Path(sys.executable).parent / "reframe"
    words = [program, "-c", "check.py", "-r", f"--perflogdir={tmp_path}/perflogs", f"--prefix={tmp_path}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RFM_")}
    subprocess.run(
        words, cwd=tmp_path, env={**environment, "HOME": str(tmp_path)}, check=True, capture_output=True, timeout=120
    )
    (file,) = tmp_path.glob("perflogs/*/*/*.log")
    assert bring(file) == 0
    assert "2 records imported, 0 known before" in capsys.readouterr().out
    rows, damages = query.records()
    assert damages == []
    assert [row.variant.params for row in rows] == [{"size": "1"}, {"size": "2"}]
    for row in rows:
        figures = {figure.name: (figure.value, figure.unit, figure.better) for figure in row.figures}
        assert figures == {"rate": (12.5, "GB/s", "higher"), "latency": (3.0, "us", "lower")}
        assert (row.provenance, row.is_verified, row.is_valid, row.is_comparable) == ("imported", False, False, True)


def test_a_log_that_grew_adds_and_doubles_nothing(results, log, capsys):
    bring(log(line()))
    bring(log(line(), line(time="2026-01-02T00:00:00")))
    bring(log(line(time="2026-01-02T00:00:00"), name="rotated.log"))
    assert [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[::2]] == [
        ["1 record imported", " 0 known before"],
        ["1 record imported", " 1 known before"],
        ["0 records imported", " 1 known before"],
    ]
    rows, damages = query.records()
    assert len({row.session for row in rows}) == 2
    assert ([row.time[:10] for row in rows], damages) == (["2026-01-01", "2026-01-02"], [])
    assert (rows[0].placement.nodes, rows[0].placement.ranks_per_node, rows[0].nodes) == (2, 2, ["n1", "n2"])


def test_a_new_header_in_the_middle_and_lines_without_values(results, log, capsys):
    other = HEADER.replace("rate", "speed")
    bring(log(line(), line(value="None"), "", other, line("7")))
    assert "2 records imported, 0 known before, 1 line without a value" in capsys.readouterr().out
    rows, _ = query.records()
    assert sorted(figure.name for row in rows for figure in row.figures) == ["rate", "speed"]


@pytest.mark.parametrize(
    ("changes", "words", "better"),
    [
        ({}, [], "higher"),
        ({"unit": "s"}, [], "lower"),
        ({"thresholds": "None|0.1"}, [], "lower"),
        ({}, ["--lower", "rate"], "lower"),
    ],
)
def test_direction(results, log, changes, words, better):
    bring(log(line(**changes)), *words)
    assert query.records()[0][0].figures[0].better == better


@pytest.mark.parametrize(
    ("time", "known"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00.000Z"),
        ("1767225600.5", "2026-01-01T00:00:00.500Z"),
    ],
)
def test_times(results, log, time, known):
    bring(log(line(time=time)))
    assert query.records()[0][0].time == known


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (line("fast"), "rate_value 'fast' is not a number"),
        (line("nan"), "rate_value 'nan' is not finite"),
        (line(time="yesterday"), "'yesterday' is no time"),
        (line(time="9" * 30), "is no time"),
        (line() + "|more", "14 cells under 13 columns"),
        (line(system="../x"), "cannot be the name of a site"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_imported(results, log, capsys, bad, what):
    assert bring(log(line(), bad)) == 2
    said = capsys.readouterr().err
    assert what in said
    assert "T.log:3" in said
    assert list(results.rglob("*.jsonl")) == []


def test_what_is_no_log(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("a|b\n")
    with pytest.raises(PlumbError, match="no column job_completion_time_unix or job_completion_time, name"):
        perflogs.read(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(PlumbError, match="not a text file"):
        perflogs.read(file)
    with pytest.raises(PlumbError, match="cannot read the performance log"):
        perflogs.read(tmp_path)


def test_imported_figures_are_listed_shown_and_compared(results, log, capsys):
    bring(log(line("10", system="one"), line("20", system="two")))
    capsys.readouterr()
    assert cli.main(["list"]) == 0
    assert "2 imported" in capsys.readouterr().out
    assert cli.main(["show", "last"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("imported: ")
    assert cli.main(["compare", "site=one", "site=two", "--format", "csv"]) == 0
    assert ",site=two,20.0,1," in capsys.readouterr().out


def test_a_comparison_with_measured_figures_says_so(results, log, capsys):
    bring(log(line("10", system="one", unit="MB/s", name="stream_threads")))
    item = record(site="two")
    item["figures"][0]["name"] = item["variant"]["figures"][0]["name"] = "rate"
    item["placement"] = {"name": "unknown", "memory": "unknown", "threads": 1, "ranks_per_node": 2, "nodes": 2}
    item["stack"]["name"] = "gnu"
    item["variant"]["params"] = {}
    (results / "two").mkdir()
    (results / "two" / "s.jsonl").write_text(json.dumps(item) + "\n")
    capsys.readouterr()
    assert cli.main(["compare", "site=one", "site=two"]) == 0
    (told,) = [text.split() for text in capsys.readouterr().out.splitlines() if text.startswith("provenance")]
    assert told == ["provenance", "imported", "measured"]


def test_no_verdict_is_made_of_imported_figures(results, log, capsys):
    bring(log(*(line(str(10 + day % 3 - 5 * (day > 15)), time=f"2026-01-{day:02d}T00:00:00") for day in range(1, 29))))
    capsys.readouterr()
    assert cli.main(["history"]) == 3
    assert "no verified record" in capsys.readouterr().err
    rows, _ = query.records()
    assert not any(calibrate.propose(rows, "sys").changes.values())
    assert query.records(query.Selection(valid=True)) == ([], [])
    (file,) = results.rglob("*.jsonl")
    assert cli.main(["gate", str(file)]) == 3
    assert cli.main(["report"]) == 2
    assert cli.main(["reproduce", rows[0].id]) == 2
    assert "an imported record" in capsys.readouterr().err


def test_records_of_earlier_versions_are_measured():
    assert model.convert(record()).provenance == "measured"
