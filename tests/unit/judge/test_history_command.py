"""``plumb history``: series from files and records, exit statuses, and what is refused."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from samples import record, session, variant
from stored import keep

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.host import provenance
from plumbline.judge.history import series_of_records
from plumbline.records.model import convert

sys.path.insert(0, str(paths.root() / "tests/rates"))
import changes as rates


def plumb_history(*arguments):
    return cli.main(["history", *map(str, arguments)])


def write(file, rows, header="series,index,value"):
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def rows(name, factor=1.1, points=60, at=40, first=0):
    random = np.random.default_rng(1)
    values = 10 * np.exp(random.normal(0, 0.005, points))
    values[at:] *= factor
    return [f"{name},{first + position},{value:.6f}" for position, value in enumerate(values)]


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def falling(kept=20, below=6, **changes):
    """Records of which the last are 10 % slower."""
    values = [10000.0] * kept + [9000.0] * below
    return [session(number, *[value + number % 3 * 10] * 3, **changes) for number, value in enumerate(values)]


def test_a_slowdown_is_an_alarm(tmp_path, capsys):
    file = write(tmp_path / "f.csv", rows("a", first=1000))
    assert plumb_history("--series", file, "--better", "lower") == 1
    (line,) = lines(capsys)
    (alarm,) = line["alarms"]
    assert (line["series"], line["points"]) == ("a", 60)
    assert (alarm["index"], alarm["seen_at"], alarm["direction"]) == (1040, 1044, "worse")
    assert alarm["ratio"] == pytest.approx(1.1, rel=0.01)
    assert 0.05 < line["smallest_visible"] < 0.07


def test_an_improvement_is_shown_and_no_alarm(tmp_path, capsys):
    file = write(tmp_path / "f.csv", rows("a"))
    assert plumb_history("--series", file, "--better", "higher") == 0
    assert lines(capsys)[0]["alarms"][0]["direction"] == "better"


def test_series_may_be_interleaved_and_columns_in_any_order(tmp_path, capsys):
    mixed = [row for pair in zip(rows("a"), rows("b", factor=1.0), strict=True) for row in pair]
    turned = [f"{value},x,{name},{index}" for name, index, value in (row.split(",") for row in mixed)]
    file = write(tmp_path / "f.csv", turned, "value,note,series,index")
    assert plumb_history("--series", file, "--better", "lower") == 1
    first, second = lines(capsys)
    assert (first["series"], len(first["alarms"])) == ("a", 1)
    assert (second["series"], second["alarms"]) == ("b", [])


def test_options_reach_the_method(tmp_path, capsys):
    file = write(tmp_path / "f.csv", rows("a"))
    assert plumb_history("--series", file, "--better", "lower", "--tolerance", "0.2") == 0
    assert plumb_history("--series", file, "--better", "lower", "--persist", "8") == 1
    assert lines(capsys)[1]["alarms"][0]["seen_at"] == 47


@pytest.mark.parametrize(("text", "message"), [
    ("series,index\na,1\n", "columns series,index (f.csv:1): the first line has to be series,index,value"),
    ("series,index,value\na,1,fast\n", "value 'fast' is not a number ("),
    ("series,index,value\nb,1,2\nb,2,2\na,1,nan\n", "value 'nan' is not finite"),  # judges no series
    ("series,index,value\na,1,inf\n", "value 'inf' is not finite"),
    ("series,index,value\na,1,0\n", "value '0' is not positive"),
    ("series,index,value\na,1,-3\n", "value '-3' is not positive"),
    ("series,index,value\na,x,3\n", "index 'x' is not a number"),
    ("series,index,value\na,1,3\na,1,3\n", "series a has index 1 twice (f.csv:3)"),
    ("series,index,value\na,2,3\n\na,1,3\n", "series a has index 1 after 2 (f.csv:4)"),
])  # fmt: skip
def test_bad_input_is_one_line_and_status_3(tmp_path, monkeypatch, refused, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(text)
    assert message in refused(3, "history", "--series", "f.csv", "--better", "lower")


@pytest.mark.parametrize("arguments", [
    ("--series", "f.csv"),
    ("--series", "absent.csv", "--better", "lower"),
    ("--series", "f.csv", "--better", "lower", "--tolerance", "0"),
    ("--series", "f.csv", "--better", "lower", "--persist", "0"),
    ("--better", "lower"),
])  # fmt: skip
def test_bad_options(tmp_path, monkeypatch, refused, arguments):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "f.csv", rows("a"))
    refused(3, "history", *arguments)


def test_records_make_series(results, capsys):
    unproven = session(26, 1.0, verified=False, reasons=["rank 0 left no witness"], verdict="invalid")
    keep(*falling(), unproven, session(27, 1.0, state="interrupted"))
    assert plumb_history("--json") == 1
    (line,) = lines(capsys)
    assert line["series"] == "stream_threads %placement=compact %threads=2 openmpi triad"
    assert line["points"] == 26
    assert [(alarm["index"], alarm["direction"]) for alarm in line["alarms"]] == [(f"{20:012x}", "worse")]
    assert line["key"]["nodes"] == ["node1"]
    assert plumb_history() == 1
    table = capsys.readouterr().out
    assert "suspected: −10.0 % worse since 000000000014" in table
    assert "1 series, 1 suspected to have become worse" in table
    assert plumb_history("--test", "imb") == 3
    assert "no record of a test whose name begins with 'imb'" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["kernel", "microcode", "governor", "turbo", "smt", "thp", "numa_balancing", "load"])
def test_another_environment_is_another_series_but_load_is_none(part):
    first, second = session(0, 1.0), session(1, 1.0)
    second["host"] = {**second["host"], part: [9.0, 9.0, 9.0] if part == "load" else "other"}
    names = {one.name for one in series_of_records([convert(first), convert(second)])}
    assert len(names) == (1 if part == "load" else 2)
    assert part == "load" or provenance.fingerprint(first["host"]) in {name.rsplit(" ", 1)[1] for name in names}


@pytest.mark.parametrize("change", [
    {"nodes": ["node2"]},
    {"partition": "gpu"},
    {"site": "other"},
    {"stack": {**record()["stack"], "name": "mpich"}},
    {"variant": variant(name="stream_threads %placement=compact %threads=1")},
])  # fmt: skip
def test_what_differs_is_another_series(change):
    one, two = series_of_records([convert(session(0, 1.0)), convert(session(1, 1.0, **change))])
    assert one.name != two.name


def test_many_series_of_one_campaign_are_a_line(results, capsys):
    """After a first campaign there is no history: 210 rows would not say more."""
    keep(*(session(number, stack={**record()["stack"], "name": f"s{number}"}) for number in range(21)))
    keep(*(session(30 + number) for number in range(3)))
    assert plumb_history() == 0
    shown = capsys.readouterr().out
    assert "21 series of fewer than 3 points are not shown: a change is seen from 15 on" in shown
    assert [line.split()[3] for line in shown.splitlines() if line.startswith("stream")] == ["openmpi"]
    assert plumb_history("--json") == 0
    assert len(lines(capsys)) == 22


def test_a_change_of_a_program_names_its_commits(results, capsys):
    made = falling()
    for number, one in enumerate(made):
        state = {"name": "heat", "program": "heat", "commit": ("a" if number < 20 else "b") * 40}
        one["variant"] = variant(application=state)
    keep(*made)
    assert plumb_history("--json") == 1
    (line,) = lines(capsys)
    assert [alarm["commits"] for alarm in line["alarms"]] == [["a" * 40, "b" * 40]]
    assert plumb_history() == 1
    assert f"worse since {20:012x}, commits {'a' * 12}..{'b' * 12}" in capsys.readouterr().out


def test_other_settings_of_a_program_are_another_series():
    code = variant(application={"name": "heat", "program": "heat", "commit": "a" * 40})
    variants = (code, code | {"settings": {"eager": "8K"}})
    names = [one.name for one in series_of_records([convert(session(0, 1.0, variant=item)) for item in variants])]
    assert ["eager=8K" in name for name in sorted(names, key=len)] == [False, True]


def test_a_damaged_record_is_said_and_the_rest_followed(results, capsys):
    keep(session(0, 1.0))
    (results / "local" / "s1.jsonl").write_text("{\n")
    assert plumb_history() == 0
    said = capsys.readouterr()
    assert "damaged record" in said.err
    assert "too few" in said.out


def test_the_example_of_the_documentation(tmp_path, monkeypatch, capsys):
    text = (paths.root() / "docs" / "history.md").read_text()
    made, asked, answer = re.search(r"\$ (awk .*)\n\$ plumb history (.*)\n(\{.*\})\n", text).groups()
    monkeypatch.chdir(tmp_path)
    subprocess.run(["sh", "-c", made], check=True)
    assert plumb_history(*asked.split()) == 1
    assert capsys.readouterr().out.strip() == answer


def test_the_table_of_the_documentation_has_every_model(capsys):
    rates.main(["--series", "1"])
    table = capsys.readouterr().out
    for model in rates.MODELS:
        assert table.count(f"| {model} |") == 2
