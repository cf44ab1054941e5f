"""The benchmark of the store in small: its answers are right, read from session files and compacted."""

import json
import os
import subprocess
import sys

import pytest
import stored

from plumbline.base import paths

BENCH = paths.root() / "tests" / "scale" / "bench_store.py"
sys.path.insert(0, str(BENCH.parent))

import bench_store  # noqa: E402
import generate  # noqa: E402

from plumbline.records import compact, index, model, query  # noqa: E402

#: a hundredth of the benchmark
MEASUREMENTS = 10_000


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    generate.write(folder, MEASUREMENTS)
    return folder


def ask(results, question):
    """An answer of the benchmark, with what it took in a process of its own."""
    environment = {**os.environ, "PLUMB_RESULTS": str(results), "BENCH_BEGAN": "0"}
    command = [sys.executable, str(BENCH), "--ask", question]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(answer.stdout)


def test_what_is_generated_is_as_many_valid_records_of_realistic_size(results):
    files = sorted(results.rglob("*.jsonl"))
    assert len(files) == MEASUREMENTS // generate.PER_FILE
    records = list(stored.read_file(files[0]))
    assert sum(len(launch["measurements"]) for record in records for launch in record["launches"]) == generate.PER_FILE
    assert files[0].stat().st_size > 25_000


def test_answers_and_memory_before_and_after_compaction(results, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(results))
    full, damages = stored.read_all()
    expected = [model.convert(item).row() for item in full]
    disturbed = sum(2 * row.disturbed_count > row.launch_count for row in expected)
    pairs = len(full) // 2 * len(generate.FIGURES) * generate.LAUNCHES
    for step in ("session files", "compacted"):
        assert query.records() == (expected, damages), step
        assert damages == []
        listed, gate = ask(results, "list"), ask(results, "gate")
        assert listed["found"] == f"{len(full)} lines, 0 damaged"
        assert gate["found"] == f"{generate.VARIANTS * len(generate.FIGURES)} series of {pairs} pairs, 0 damaged"
        assert bench_store.history().endswith(f"of {2 * len(full)} points, 0 damaged")
        values = 2 * len(full) * generate.LAUNCHES
        classes = generate.VARIANTS * len(generate.FIGURES) * len(generate.STACKS)
        assert bench_store.outliers() == f"{classes} classes of {values} values, 0 damaged"
        # one session of each variant is too few
        refused = {
            ("figure", "fewer than 3 sessions"): classes - 2 * disturbed,
            ("record", "most launches disturbed"): disturbed,
        }
        assert bench_store.calibrate() == f"0 references, refused {refused}, 0 damaged"
        assert max(listed["mebibytes"], gate["mebibytes"]) < 500
        compact.compact(only_site(full), remove=True)
    assert list(results.rglob("*.jsonl")) == []


def test_the_session_of_a_long_gate_is_decoded_a_record_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    file = generate.write_gate(tmp_path, variants=40)
    assert file.stat().st_size > 17_000_000
    answers = {question: ask(tmp_path, question) for question in bench_store.OF_A_GATE}
    assert answers["list"]["found"] == "80 lines, 0 damaged"
    assert max(answer["mebibytes"] for answer in answers.values()) < 150
    decoded = []
    decode = model.decode
    monkeypatch.setattr(model, "decode", lambda line, *brief: decoded.append(line) or decode(line, *brief))
    monkeypatch.setattr(index, "SETTLED", 0)
    (tmp_path / index.NAME).unlink()
    newest = query.records()[0][-1].id
    assert len(decoded) == 80
    decoded.clear()
    assert query.find(newest).id == newest
    assert len(decoded) == 1


def only_site(records):
    """The one site of the records."""
    (site,) = {record["site"] for record in records}
    return site
