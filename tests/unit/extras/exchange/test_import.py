"""``plumb import``: what ReFrame keeps of runs becomes records, which are listed and compared, never judged."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pieces
import published
import pytest
from samples import record

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.exchange.imported import read
from plumbline.judge.references import calibrate
from plumbline.records import model, query

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
#: a session of ReFrame with one case, whose one value is left open
SESSION = """{"session_info": {"data_version": "4.2", "uuid": "abc"}, "runs": [{"testcases": [{"name": "T",
"system": "sys", "partition": "part", "environ": "gnu", "job_completion_time_unix": 1767225600.5,
"job_nodelist": ["n1"], "num_tasks": 1, "perfvalues": {"sys:part:rate": [%s, 0, null, null, "GB/s", "pass"]}}]}]}"""
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


def reframe(folder, *words, check=CHECK, **variables):
    """ReFrame itself on the check."""
    (folder / "check.py").write_text(check)
    program = Path(sys.executable).parent / "reframe"
    known = {name: value for name, value in os.environ.items() if not name.startswith("RFM_")}
    environment = {**known, **variables, "HOME": str(folder)}
    command = [program, "-c", "check.py", "-r", f"--prefix={folder}", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What ReFrame keeps of one run: log, results database and report."""
    folder = tmp_path_factory.mktemp("reframe")
    files = {"database": folder / "results.db", "report": folder / "report.json"}
    storage = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(files["database"])}
    reframe(folder, f"--perflogdir={folder}/perflogs", f"--report-file={files['report']}", **storage)
    (log,) = folder.glob("perflogs/*/*/*.log")
    return {"log": log, **files}


@pytest.mark.parametrize("kind", ["log", "database", "report"])
def test_what_reframe_itself_keeps(results, kept, capsys, kind):
    assert bring(kept[kind]) == 0
    assert "2 records imported, 0 known before" in capsys.readouterr().out
    rows, damages = query.records()
    assert damages == []
    assert sorted(row.variant.params["size"] for row in rows) == ["1", "2"]
    for row in rows:
        figures = {figure.name: (figure.value, figure.unit, figure.better) for figure in row.figures}
        assert figures == {"rate": (12.5, "GB/s", "higher"), "latency": (3.0, "us", "lower")}
        assert (row.provenance, row.is_verified, row.is_valid, row.is_comparable) == ("imported", False, False, True)
    assert bring(kept[kind]) == 0
    assert "0 records imported, 2 known before" in capsys.readouterr().out


def test_a_log_in_the_format_of_excalibur_tests(results, tmp_path, capsys):
    columns = (
        "job_completion_time", "info", "jobid", "num_tasks", "num_cpus_per_task", "perfvalues", "spack_spec",
        "display_name", "system", "partition", "job_nodelist", "environ", "env_vars", "tags",
    )  # fmt: skip
    values = ("value", "unit", "ref", "lower_thres", "upper_thres")
    handler = {
        "type": "filelog",
        "prefix": "%(check_system)s",
        "level": "info",
        "format": "reframe %(version)s|" + "|".join(f"%(check_{name})s" for name in columns),
        "format_perfvars": "".join(f"%(check_perf_{name})s|" for name in values),
    }
    system = {
        "name": "sys",
        "hostnames": [".*"],
        "partitions": [{"name": "part", "scheduler": "local", "launcher": "local", "environs": ["env"]}],
    }
    settings = {"systems": [system], "environments": [{"name": "env"}], "logging": [{"handlers_perflog": [handler]}]}
    (tmp_path / "config.py").write_text(f"site_configuration = {settings!r}\n")
    built = "spack_spec = variable(str, value='stream@5.10 %gcc', loggable=True)\n    @sanity_function"
    check = CHECK.replace("@sanity_function", built)
    reframe(tmp_path, "-C", "config.py", f"--perflogdir={tmp_path}/perflogs", check=check)
    (log,) = tmp_path.glob("perflogs/*/*.log")
    assert "|stream@5.10 %gcc|Speed %size=" in log.read_text()
    assert bring(log) == 0
    rows, _ = query.records()
    places = [(row.site, row.partition, row.stack.name, row.variant.test) for row in rows]
    assert places == [("sys", "part", "env", "Speed")] * 2
    builds = [row.variant.params for row in rows]
    assert sorted(build["size"] for build in builds) == ["1", "2"]
    assert {build["spack_spec"] for build in builds} == {"stream@5.10 %gcc"}
    assert {figure.name: figure.value for figure in rows[0].figures} == {"rate": 12.5, "latency": 3.0}


def test_our_own_database_comes_back(results, tmp_path, monkeypatch):
    (results / "local").mkdir()
    (results / "local" / "s.jsonl").write_text(json.dumps(record()) + "\n")
    assert cli.main(["export", "--format", "reframe", "--output", str(tmp_path / "r.db")]) == 0
    (before,), _ = query.records()
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "other"))
    assert bring(tmp_path / "r.db") == 0
    (after,), _ = query.records()
    old, new = (
        (row.site, row.partition, row.stack.name, row.time, *((it.name, it.value, it.unit) for it in row.figures))
        for row in (before, after)
    )
    assert old == new


@pytest.mark.parametrize(("blobs", "what"), [
    (None, "no results database of ReFrame: no such table: sessions"),
    (["{}"], "no session of ReFrame: Object missing required field `session_info`"),
    ([7], "no session of ReFrame"),
    (['{"session_info":{"data_version":"3.1"},"runs":[]}'], "a session of version 3.1"),
    ([SESSION % '"fast"'], "rate_value 'fast' is not a number (FILE: session abc: case 1)"),
])  # fmt: skip
def test_what_is_no_database_of_reframe(results, tmp_path, refused, blobs, what):
    file = tmp_path / "r.db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        if blobs is None:
            database.execute("CREATE TABLE other(x)")
        else:
            database.execute("CREATE TABLE sessions(session_start_unix REAL, json_blob TEXT)")
            database.executemany("INSERT INTO sessions VALUES(1, ?)", [(blob,) for blob in [SESSION % 1, *blobs]])
        database.commit()
    assert what.replace("FILE", str(file)) in refused(2, "import", file)
    assert list(results.rglob("*.jsonl")) == []


def test_cases_without_a_value_are_counted(results, tmp_path, capsys):
    file = tmp_path / "report.json"
    file.write_text(SESSION % "null")
    assert bring(file) == 0
    assert "0 records imported, 0 known before, 1 run without a value" in capsys.readouterr().out


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
    assert "2 records imported, 0 known before, 1 run without a value" in capsys.readouterr().out
    rows, _ = query.records()
    assert sorted(figure.name for row in rows for figure in row.figures) == ["rate", "speed"]


@pytest.mark.parametrize(("changes", "words", "better"), [
    ({}, [], "higher"),
    ({"unit": "s"}, [], "lower"),
    ({"thresholds": "None|0.1"}, [], "lower"),
    ({}, ["--lower", "rate"], "lower"),
])  # fmt: skip
def test_direction(results, log, changes, words, better):
    bring(log(line(**changes)), *words)
    assert query.records()[0][0].figures[0].better == better


@pytest.mark.parametrize(("time", "known"), [
    ("2026-01-01T00:00:00", "2026-01-01T00:00:00.000Z"),
    ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00.000Z"),
    ("1767225600.5", "2026-01-01T00:00:00.500Z"),
])  # fmt: skip
def test_times(results, log, time, known):
    bring(log(line(time=time)))
    assert query.records()[0][0].time == known


@pytest.mark.parametrize(("bad", "what"), [
    (line("nan"), "rate_value 'nan' is not finite"),
    (line(time="9" * 30), "is not a time"),
    (line(system="x" * 200_000), "cannot be the name of a site"),
    (line("1e308"), "rate_value '1e308' is not from 1e-30 to 1e+30"),
    (line("5e-324"), "rate_value '5e-324' is not from"),
    (line(unit=""), "figure rate has no unit"),
    (line(unit="None"), "figure rate has no unit"),
    (line(unit="u" * 100_000), "the unit of rate has 100000 characters, 200 at most"),
    (line(name="T" * 100_000), "the name of the test has 100000 characters, 200 at most"),
    (line(name="T %n=" + "1" * 100_000), "the name has 100005 characters, 2000 at most"),
    (line(name="T\x1b[2J"), "the name of the test has characters that cannot be shown"),
    (line().replace("gnu", "g" * 201), "the environment has 201 characters"),
    (line().replace("n1,n2", "n" * 201), "the name of a node has 201 characters"),
    (line(time="9999-01-01"), "'9999-01-01' is not a time"),
    (line(system="../x"), "cannot be the name of a site"),
])  # fmt: skip
def test_a_wrong_line_is_named_and_nothing_is_imported(results, log, capsys, bad, what):
    assert bring(log(line(), bad)) == 2
    said = capsys.readouterr().err
    assert what in said
    assert "T.log:3" in said
    assert (said.count("\n"), len(said) < 300) == (1, True)
    assert list(results.rglob("*.jsonl")) == []


def test_a_value_column_without_a_unit_column_is_named(results, tmp_path, refused):
    file = tmp_path / "T.log"
    file.write_text(f"{HEADER}\n{line()}\n".replace("rate_unit", "rate_units"))
    assert "figure rate has no unit" in refused(2, "import", file)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/full"])
def test_a_device_is_not_read(results, refused, device):
    assert refused(2, "import", device).startswith("plumb: cannot read the performance log: it is a device")


def test_a_log_may_come_from_a_pipe(results, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'printf "%s\\n" "$1" "$2" >"$3"', "sh", HEADER, line(), str(pipe)]):
        assert bring(pipe) == 0
    assert "1 record imported" in capsys.readouterr().out


def test_exports_count_what_they_hold(results, log, tmp_path, capsys):
    bring(log(line()))
    capsys.readouterr()
    for form, output in (("openmetrics", "o.txt"), ("reframe", "r.db")):
        assert cli.main(["export", "--format", form, "--output", str(tmp_path / output)]) == 2
        assert "no valid figure to export among 1 figure" in capsys.readouterr().err
        assert not (tmp_path / output).exists()
    (results / "local").mkdir()
    (results / "local" / "s.jsonl").write_text(json.dumps(record()) + "\n")
    for form, told in (("openmetrics", "1 figure of 1 record, 1 left out"), ("csv", "2 figures of 2 records")):
        assert cli.main(["export", "--format", form, "--output", str(tmp_path / "out")]) == 0
        assert capsys.readouterr().out == f"exported: {tmp_path / 'out'}, {told}\n"


def test_what_is_no_log(tmp_path):
    file = tmp_path / "x.log"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(PlumbError, match="not a text file"):
        read(file)
    with pytest.raises(PlumbError, match="cannot read the performance log"):
        read(tmp_path)


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


def test_a_direction_or_a_unit_of_its_own_is_a_series_of_its_own(results, log, capsys, output_of):
    bring(log(line(), name="a.log"))
    bring(log(line(time="2026-01-02T00:00:00"), name="b.log"), "--lower", "rate")
    bring(log(line(time="2026-01-03T00:00:00", unit="MB/s"), name="c.log"))
    capsys.readouterr()
    found = [json.loads(text) for text in output_of(0, "history", "--json").splitlines()]
    assert [(one["points"], one["better"], one["unit"]) for one in found] == [
        (1, "higher", "GB/s"), (1, "lower", "GB/s"), (1, "higher", "MB/s")
    ]  # fmt: skip
    assert len({one["series"] for one in found}) == 3


@pytest.fixture
def slower(results, log, capsys):
    """A log of four weeks whose rate falls in the middle."""
    lines = [line(str(10 + day % 3 - 5 * (day > 15)), time=f"2026-01-{day:02d}T00:00:00") for day in range(1, 29)]
    bring(log(*lines))
    capsys.readouterr()


def test_imported_figures_are_watched(slower, output_of):
    assert "1 series, 1 suspected to have become worse" in output_of(1, "history")
    assert "open: T %n=1 gnu rate: its figures are imported" in output_of(2, "history", "--confirm")


def test_imported_and_measured_figures_are_no_series(slower, results, output_of):
    (results / "sys").mkdir(exist_ok=True)
    (results / "sys" / "s.jsonl").write_text(json.dumps(record(site="sys")) + "\n")
    keys = [json.loads(text)["key"] for text in output_of(1, "history", "--json").splitlines()]
    assert sorted(key["provenance"] for key in keys) == ["imported", "measured"]


def test_imported_figures_are_published(slower, tmp_path, capsys):
    assert cli.main(["publish", str(tmp_path / "site")]) == 0
    page = published.shown(tmp_path / "site/systems/sys/tests/T.html")
    (chart,) = pieces.blocks(page["sections"], "chart")
    assert len(chart["rows"]) == 28
    assert [mark["label"].split()[-1] for mark in chart["marks"]] == ["worse"]


def test_no_verdict_is_made_of_imported_figures(slower, results, refused):
    rows, _ = query.records()
    assert not any(calibrate.propose(rows, "sys").changes.values())
    assert query.records(query.Selection(valid=True)) == ([], [])
    (file,) = results.rglob("*.jsonl")
    assert cli.main(["gate", str(file)]) == 3
    assert cli.main(["report"]) == 2
    assert "an imported record" in refused(2, "reproduce", rows[0].id)


def test_records_of_earlier_versions_are_measured():
    assert model.convert(record()).provenance == "measured"
