"""Attacks on records: changed, contradictory and endless ones. Each is named, nothing hangs, and the rest is read."""

import gzip
import json
import os
import random
import subprocess
import sys

import pytest
from samples import launch, record

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.records import compact, query, store


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def file(results):
    found = store.session_file("local", "s1")
    store.write(found, [record(), record(id="1" * 12)])
    return found


def reasons():
    return [damage.reason for damage in query.records()[1]]


def test_any_flipped_bit_of_a_record_is_seen(file):
    line = file.read_bytes().splitlines(keepends=True)[0]
    draw = random.Random(12)  # noqa: S311 - not a secret
    for _ in range(2000):
        place, bit = draw.randrange(len(line) - 1), 1 << draw.randrange(8)
        flipped = line[:place] + bytes([line[place] ^ bit]) + line[place + 1 :]
        found = [store.parse(file, 1, part) for part in flipped.splitlines(keepends=True)]
        assert all(isinstance(item, store.Damage) for item in found), (place, bit)


@pytest.mark.parametrize(("old", "new"), [
    ('"value":10200.0', '"value":20200.0'),
    ('"disturbed":false', '"disturbed":true'),
    ('"kernel":"6.1"', '"kernel":"6.2"'),
    ('"schema":1,', '"schema":1, '),
])  # fmt: skip
def test_an_edited_record_is_named_and_the_others_are_read(file, capsys, old, new):
    file.write_text(file.read_text().replace(old, new, 1))
    assert reasons() == ["changed since it was measured: its seal is not that of its text"]
    assert cli.main(["list"]) == 1
    said = capsys.readouterr()
    assert f"{file}:1: changed since it was measured" in said.err
    assert "1 variant," in said.out
    assert cli.main(["show", "0123"]) != 0
    assert "changed since it was measured" in capsys.readouterr().err


def test_a_seal_that_was_moved_is_no_seal(file):
    document = json.loads(file.read_text().splitlines()[0])
    file.write_text(json.dumps({"seal": document.pop("seal"), **document}) + "\n")
    assert reasons() == ["changed since it was measured: its seal is not at the end of its line"]


def test_an_edited_line_of_a_compacted_file_is_named(results, file):
    compact.compact("local", remove=True)
    (part,) = (results / "local" / "compact").iterdir()
    assert reasons() == []
    part.write_bytes(gzip.compress(gzip.decompress(part.read_bytes()).replace(b'"value":10200.0', b'"value":20200.0')))
    assert len(reasons()) == 2
    assert all("changed since it was measured" in reason for reason in reasons())


def figures(**changes):
    return {"figures": [{**record()["figures"][0], **changes}]}


@pytest.mark.parametrize(("changes", "said"), [
    (figures(value=10300.0), "not the median of its samples"),
    (figures(launches=4), "3 samples of 3 launches"),
    (figures(samples=[10000.0, 10100.0]), "2 samples of 3 launches"),
    (figures(samples=[10000.0, 10100.0, 10300.0]), "not what the launches measured"),
    (figures(samples=[10200.0, 10000.0, 10100.0]), "not what the launches measured"),
    (figures(name="copy"), "not what the launches measured"),
    ({"launches": [], **figures()}, "3 samples of 0 launches"),
    ({"launches": [], **figures(samples=[], launches=0)}, "figures[0].samples: Expected"),
    ({"launches": [launch(n, -1.0) for n in range(3)]}, "negative or not finite"),
    ({"launches": [launch(n, 1.0, superseded=n > 0) for n in range(3)], **figures()}, "3 samples of 1 launches"),
])  # fmt: skip
def test_figures_that_contradict_the_launches_are_damage(results, changes, said):
    """In records of earlier versions, which have no seal."""
    target = store.session_file("local", "s1")
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps(record(**changes)) + "\n" + json.dumps(record(id="1" * 12)) + "\n")
    (reason,) = reasons()
    assert said in reason
    assert [row.id for row in query.records()[0]] == ["1" * 12]


def test_what_was_interrupted_between_a_launch_and_its_figures_is_kept(results):
    made = record(state="interrupted", launches=[launch(0, 1.0)], **figures())
    store.write(store.session_file("local", "s1"), [made])
    assert (len(query.records()[0]), reasons()) == (1, [])


@pytest.mark.parametrize("time", ["", "yesterday", "2026-13-01T00:00:00.000Z", "../../../../tmp", "٢٠٢٦-01-01T00:00Z"])
def test_a_bad_time_is_damage_and_stops_no_compaction(results, file, time):
    bad = store.session_file("local", "bad")
    store.write(bad, [record(id="2" * 12, time=time)])
    assert [reason.partition(":")[0] for reason in reasons()] == ["not a valid record"]
    found = compact.compact("local", remove=True)
    assert (found.compacted, found.removed, found.left) == (1, 1, {"damaged": 1})
    assert bad.exists()


@pytest.mark.parametrize(
    "name", ["local/s2.jsonl", "local/compact/2026-01.0001.jsonl.gz", "local/compact/2026-01.0001.parquet"]
)
@pytest.mark.parametrize("command", ["list", "show", "compact"])
def test_a_fifo_among_the_results_keeps_nobody_waiting(results, file, name, command):
    (results / name).parent.mkdir(exist_ok=True)
    os.mkfifo(results / name)
    words = [sys.executable, "-m", "plumbline.commands.cli", command]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=paths.root(), check=False)
    assert "Traceback" not in answer.stderr
    assert "not a regular file" in answer.stdout + answer.stderr or command == "show"
