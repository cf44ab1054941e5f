"""Results of other tools as pairs; tests/data/tools has a file of each, as the tool wrote it but for its host."""

import datetime
import json
import os
import statistics

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.judge import from_tools
from plumbline.parsers import tools

DATA = paths.root() / "tests/data/tools"


@pytest.mark.parametrize(("name", "times"), [
    ("pytest-benchmark", ["test_sort.py::test_sort", "test_sort.py::test_sum"]),
    ("google-benchmark", ["BM_sort/64", "BM_sort/512"]),
    ("hyperfine", ["sleep 0.01"]),
    ("conbench", ["sort 20000"]),
    ("asv", ["sums.Sums.time_sum 100", "sums.Sums.time_sum 1000", "sums.time_plain"]),
])  # fmt: skip
def test_the_files_of_the_tools_are_read(name, times):
    when, known = tools.read(DATA / f"{name}.json")
    assert list(known) == times
    assert all(1e-8 < statistics.median(values) < 0.1 for values in known.values()), "seconds"
    if name in ("pytest-benchmark", "google-benchmark"):
        begun = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
        assert f"{begun:%Y-%m-%dT%H}" == "2026-11-29T18"


def test_a_sample_of_criterion_is_called_as_its_folder():
    _, known = tools.read(DATA / "sum/new/sample.json")
    medians = {name: statistics.median(values) for name, values in known.items()}
    assert medians == {"sum": pytest.approx(1.56e-9, rel=0.7)}


def put(folder, number, seconds, when, command="./x"):
    """A file of hyperfine, last changed at ``when``."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{number}.json"
    times = [seconds, seconds * 1.01, seconds * 0.99]
    file.write_text(json.dumps({"results": [{"command": command, "times": times, "user": when}]}))
    os.utime(file, (when, when))


@pytest.fixture
def runs(tmp_path):
    """``runs(ratio)``: folders old and new of 20 runs each, by turns or in an order of its own."""

    def call(ratio, order=lambda number, side: 4 * number + (side if number % 2 else 2 - side)):
        for number in range(20):
            for side, name in enumerate(("old", "new")):
                value = (1 + (number * (7 + side) % 11 - 5) / 1000) * (ratio if side else 1)
                put(tmp_path / name, number, value, 1e9 + order(number, side), f"./{name}")
        return tmp_path / "old", tmp_path / "new"

    return call


def test_runs_by_turns_get_the_verdict_of_pairs(runs, output_of):
    old, new = runs(1.05)
    assert "./new: slower by 5" in output_of(1, "gate", "--pairs", str(old), str(new))
    (series,) = json.loads(output_of(0, "gate", "--pairs", *map(str, runs(1.0)), "--json"))["series"]
    assert (series["verdict"], series["pairs"]) == ("PASS", 20)


def test_the_last_run_may_lack_its_pair(runs, capsys):
    old, new = runs(1.0)
    put(old, 20, 1.0001, 2e9, "./old")
    assert cli.main(["gate", "--pairs", str(old), str(new)]) == 0
    assert "the last run of the baseline has no pair and does not count" in capsys.readouterr().out
    put(old, 21, 1.0002, 2e9 + 1, "./old")
    with pytest.raises(PlumbError, match=r"22 and 20 runs .*cp -a keeps that time"):
        from_tools.pairs(old, new)


def test_copies_and_values_that_repeat_are_no_measurements(runs, capsys):
    old, new = runs(1.0)
    for number in range(20):
        document = json.loads((new / f"{number}.json").read_text())
        document["results"][0] |= {"times": [1.2345678], "user": number}
        when = (new / f"{number}.json").stat().st_mtime
        (new / f"{number}.json").write_text(json.dumps(document))
        os.utime(new / f"{number}.json", (when, when))
    assert cli.main(["gate", "--pairs", str(old), str(new)]) == 3
    assert "all 20 values of the candidate are 1.2345678: nothing was measured" in capsys.readouterr().out
    (new / "3.json").write_text((old / "5.json").read_text())
    with pytest.raises(PlumbError, match=r"a copy of .*old/5\.json: no run of its own \(.*new/3\.json"):
        from_tools.pairs(old, new)


@pytest.mark.parametrize("order", [lambda number, side: 100 * side + number, lambda number, side: number])
def test_runs_that_were_not_made_by_turns_get_none(runs, order):
    with pytest.raises(PlumbError, match=r"\./new: 20 and 20 runs that were not made by turns show no pairs"):
        from_tools.pairs(*runs(1.5, order))


def test_what_is_no_pair_of_results_is_one_line(runs, tmp_path, refused):
    old, new = runs(1.0)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "damaged.json").write_text('{"results": [{"command": "a"}]}')
    (tmp_path / "zero.json").write_text('{"iters": [0], "times": [1]}')
    for words, fault in (
        ((old, tmp_path / "empty"), "there is no JSON file"),
        ((old, tmp_path / "other.json"), "no results of a tool that is known here"),
        ((old, tmp_path / "damaged.json"), "the results cannot be read: KeyError: 'times'"),
        ((tmp_path / "zero.json", new), "the results cannot be read: ZeroDivisionError"),
        ((old, new, "--better", "higher"), "--better higher with files of other tools"),
        ((old, new, new), "--pairs takes a CSV file, or two folders"),
        ((DATA / "hyperfine.json",), "one file of a tool shows no pairs"),
    ):
        assert fault in refused(3, "gate", "--pairs", *map(str, words))


def test_a_benchmark_that_one_side_lacks_is_named(tmp_path):
    document = json.loads((DATA / "pytest-benchmark.json").read_text())
    for place, side in enumerate(("old", "new")):
        (tmp_path / side).mkdir()
        document["datetime"] = f"2026-11-29T18:0{place}:00+00:00"
        (tmp_path / side / "1.json").write_text(json.dumps(document))
        document["benchmarks"].pop()
        document["benchmarks"] *= 2
    with pytest.raises(PlumbError, match=r"only one side has test_sort\.py::test_sum"):
        from_tools.pairs(tmp_path / "old", tmp_path / "new")


def test_a_run_of_criterion_or_asv_is_a_folder_with_other_files_too(tmp_path):
    for number in range(2):
        for place, side in enumerate(("old", "new")):
            for kind, name in enumerate(("sum", "sort")):
                folder = tmp_path / side / str(number) / name / "new"
                folder.mkdir(parents=True)
                (folder / "estimates.json").write_text("{}")
                (folder / "sample.json").write_text(
                    json.dumps({"iters": [2.0], "times": [2.0 + number + 4 * kind + 10 * place]})
                )
                os.utime(folder / "sample.json", (1e9 + 2 * number + place,) * 2)
    found = from_tools.pairs(tmp_path / "old", tmp_path / "new")
    assert {item.name: item.candidate.values for item in found} == {
        "sort": pytest.approx([8e-9, 8.5e-9]),
        "sum": pytest.approx([6e-9, 6.5e-9]),
    }
    (tmp_path / "asv").mkdir()
    (tmp_path / "asv" / "machine.json").write_text("{}")
    (tmp_path / "asv" / "c-existing.json").write_text((DATA / "asv.json").read_text())
    assert len(from_tools.series(tmp_path / "asv", "lower")) == 3


def test_a_folder_of_runs_is_a_history(tmp_path, output_of):
    for number in range(40):
        put(tmp_path / "nightly", number, (1 if number < 28 else 1.2) + number * 7 % 11 / 1000, 1e9 + 86400 * number)
    words = ["history", "--series", str(tmp_path / "nightly"), "--better", "lower"]
    (line,) = map(json.loads, output_of(1, *words).splitlines())
    assert (line["series"], line["points"], line["alarms"][0]["index"]) == ("./x", 40, "2001-10-07T01:46:40Z")


def compared(capsys, *words):
    assert cli.main(["compare", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_runs_without_pairs_are_compared_as_sessions(runs, capsys, refused):
    """Here all of the old side came before the new one, so that a gate gives no verdict."""
    old, new = runs(1.05, lambda number, side: 100 * side + number)
    comparison = compared(capsys, old, new)
    (line,) = comparison["lines"]
    assert (line["claimed"], line["differences"][1]["basis"]) == ([False, True], "sessions")
    assert line["differences"][1]["ratio"] == pytest.approx(1.05, abs=0.005)
    assert [line["cells"][1]["launches"], line["unit"], line["better"]] == [60, "s", "lower"]
    assert comparison["circumstances"][0][0] == "begun (UTC)"
    assert "a copy of" in refused(2, "compare", str(old), str(new), str(runs(1.0)[0] / "3.json"))


@pytest.mark.parametrize(("ratio", "claimed"), [(1.2, False), (4.0, True)])
def test_a_file_of_each_side_shows_only_large_differences(tmp_path, capsys, output_of, ratio, claimed):
    """One run cannot show how runs differ, however often it repeats."""
    for name, seconds in (("a", 1.0), ("b", ratio)):
        put(tmp_path, name, seconds, 1e9, f"./{name}")
    (line,) = compared(capsys, tmp_path / "a.json", tmp_path / "b.json")["lines"]
    assert (line["claimed"][1], line["differences"][1]["basis"]) == (claimed, "launches")
    out = output_of(0, "compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert "~: from fewer than 3 sessions of a side, which are taken to differ by 15 %" in out
    assert cli.main(["compare", str(tmp_path / "a.json"), str(DATA / "pytest-benchmark.json")]) == 2
    assert "no benchmark in common" in capsys.readouterr().err
