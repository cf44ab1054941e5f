"""Queries say what reading every record says, whatever stands in the files and whatever happens to them meanwhile."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import samples
import schema_files
from documents import FORBIDDEN, documents, everywhere, spoil
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import launch, record

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.records import index, query, store
from plumbline.records.model import convert, document
from plumbline.records.query import Selection


def put(results, files):
    """Write ``files`` (lists of lines) as session files, in an empty folder."""
    folder = results / "local"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, lines in enumerate(files):
        text = "".join(json.dumps(line) + "\n" if not isinstance(line, str) else line for line in lines)
        (folder / f"s{number}.jsonl").write_text(text, encoding="utf-8")


def reading():
    """What reading line by line finds by the JSON schema: documents, oldest first, and file and line of damage."""
    found, damaged = {}, []
    for file in sorted(paths.results().rglob("*.jsonl")):
        try:
            lines = list(file.open("rb"))
        except OSError:
            damaged.append((file, 0))
            continue
        for number, line in enumerate(lines, start=1):
            try:
                item = json.loads(line) if line.strip() else None
                if item is not None or line.strip():
                    schema_files.check("record", item)
                    whole = convert(item)
                    if whole.contradiction() or whole.unlike_launches():
                        raise ValueError(whole)
            except ValueError:
                damaged.append((file, number))
                continue
            if item is not None and found.setdefault(item["id"], item) != item:
                damaged.append((file, number))
    return sorted(found.values(), key=lambda item: (item["time"], item["id"])), damaged


def assert_equal_to_reading():
    documents, damaged = reading()
    full, damages = query.collect(lambda record: record)
    assert full == [convert(item) for item in documents]
    assert [(damage.file, damage.line) for damage in damages] == damaged
    assert query.records() == ([record.row() for record in full], damages)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.lists(documents(), max_size=3), max_size=4))
def test_queries_equal_reading_of_random_records(results, files):
    put(results, files)
    assert_equal_to_reading()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), item=documents(), values=st.sampled_from([..., None, 7, -1, 1.5, "x", [], [None], {}, True]))
def test_queries_find_the_damage_that_the_schema_finds(results, data, item, values):
    path = data.draw(st.sampled_from(list(everywhere(item))))
    bad = spoil(item, path, values)
    good = {**item, "id": "0" * 12 if item["id"] != "0" * 12 else "1" * 12}
    put(results, [[good], [good | {"id": "2" * 12}, bad], ["{broken\n", good | {"id": "3" * 12}]])
    full, damaged = reading()
    found, damages = query.records()
    assert found == [convert(one).row() for one in full]
    assert [(damage.file, damage.line) for damage in damages] == damaged


@pytest.mark.parametrize(("path", "value"), FORBIDDEN, ids=lambda item: str(item)[:40])
def test_what_the_schema_forbids_is_damage_with_file_and_line(results, path, value):
    put(results, [[record()], [record(id="1" * 12), spoil(record(id="2" * 12), path, value)]])
    where = [(results / "local" / "s1.jsonl", 2)]
    found, damages = query.records()
    assert [(damage.file, damage.line) for damage in damages] == where
    assert [row.id for row in found] == ["0123456789ab", "1" * 12]


@pytest.mark.parametrize("line", [
    b"{broken\n",
    b'{"a":1}{"b":2}\n',
    b'"text"\n',
    b"[]\n",
    b"null\n",
    b"\xff\xfe\n",
    (12 * bytes(range(256))).replace(b"\n", b"x") + b"\n",
    json.dumps(record(id="2" * 12)).encode()[:-30],
    json.dumps(record(id="2" * 12)).encode()[:-30] + b"\n" + json.dumps(record(id="3" * 12)).encode() + b"\n",
])  # fmt: skip
def test_lines_that_are_no_records_are_named_and_the_rest_is_read(results, line):
    put(results, [[record()], [record(id="1" * 12)]])
    with (results / "local" / "s1.jsonl").open("ab") as stream:
        stream.write(line)
    assert_equal_to_reading()
    assert query.records()[1][0].line == 2


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \n"])
def test_files_without_records_are_no_damage(results, content):
    put(results, [[record()], []])
    (results / "local" / "s1.jsonl").write_bytes(content)
    assert_equal_to_reading()
    assert query.records()[1] == []


def test_lines_that_only_python_reads_are_read(results):
    put(results, [[record()]])
    text = json.dumps(record(id="1" * 12)).replace('"wall_s": 1.0', '"wall_s": NaN', 1)
    (results / "local" / "s1.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found, damages = query.records()
    assert (len(found), damages) == (2, [])


def test_no_results_at_all(results):
    assert query.records() == ([], [])
    assert query.collect(document, Selection(site="nowhere")) == ([], [])
    assert query.full(["0" * 12]) == ([], [])
    results.mkdir()
    assert query.records() == ([], [])


def test_a_long_line_is_read(results):
    big = record(id="1" * 12, command=["x" * 20_000_000])
    put(results, [[record()], [big]])
    assert_equal_to_reading()


def test_names_that_the_engine_would_take_for_patterns(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "a[b]*?'k=v"))
    store.write(store.session_file("local", "x'[1]"), [record()])
    assert_equal_to_reading()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_named(results):
    put(results, [[record()], [record(id="1" * 12)]])
    (results / "local" / "s1.jsonl").chmod(0)
    assert_equal_to_reading()
    assert "Permission denied" in str(query.records()[1][0])


def test_a_link_that_leads_nowhere_and_a_folder_are_named(results):
    put(results, [[record()]])
    (results / "local" / "s1.jsonl").symlink_to("nowhere")
    (results / "local" / "s2.jsonl").mkdir()
    assert_equal_to_reading()
    assert [damage.file.name for damage in query.records()[1]] == ["s1.jsonl", "s2.jsonl"]


def test_an_id_used_twice_is_damage_and_a_copy_is_not(results):
    put(results, [[record()], [record()], [record(session="other")]])
    found, damages = query.records()
    assert len(found) == 1
    assert [str(damage) for damage in damages] == [
        f"{results}/local/s2.jsonl:1: another record has the id 0123456789ab too"
    ]
    assert_equal_to_reading()


def test_selections(results):
    stack = {**record()["stack"], "name": "mpich"}
    put(
        results,
        [
            [record()],
            [record(id="1" * 12, time="2026-02-01T00:00:00.000Z", campaign="c1", session="s1")],
            [record(id="2" * 12, variant=samples.variant(test="imb_pair", name="imb_pair %size=8"), stack=stack)],
            [record(id="3" * 12, state="running")],
            ["{broken\n"],
        ],
    )
    for where, expected in (
        (Selection(), 4),
        (Selection(test="imb"), 1),
        (Selection(test="stream_threads"), 3),
        (Selection(test="imb_pair%size=[89]$"), 1),
        (Selection(test="threads"), 0),
        (Selection(partition="elsewhere"), 0),
        (Selection(since="2026-01-15"), 1),
        (Selection(until="2026-01-15"), 3),
        (Selection(campaign="c1"), 1),
        (Selection(campaign="c"), 1),
        (Selection(session="s1"), 1),
        (Selection(stack="mpich"), 1),
        (Selection(valid=True), 3),
        (Selection(site="local"), 4),
        (Selection(site="elsewhere"), 0),
        (Selection(test="' OR true --"), 0),
    ):
        found, damages = query.records(where)
        assert len(found) == expected
        assert len(damages) == (0 if where.site == "elsewhere" else 1)
        assert found == [row for row in query.records()[0] if where.admits(row)][: len(found)]
        assert [item.row() for item in query.collect(lambda record: record, where)[0]] == found


def test_a_figure_is_the_best_of_the_curve_or_the_measurement_at_its_parameters():
    wanted = [
        {"name": "best", "metric": "triad", "where": {}},
        {"name": "small", "metric": "triad", "where": {"bytes": 8}},
        {"name": "absent", "metric": "copy", "where": {}},
    ]
    rowed = [
        {"metric": "triad", "value": value, "unit": "MB/s", "better": "higher", "params": {"bytes": size}}
        for size, value in ((8.0, 1.0), (16, 3.0), (32, 2.0))
    ]
    one = convert(record(variant=samples.variant(figures=wanted), launches=[launch(0, 1.0, measurements=rowed)]))
    found = [one.launches[0].find(item) for item in one.variant.figures]
    assert [item and item.value for item in found] == [3.0, 1.0, None]
    assert one.launches[0].measurement(one.variant.figures[0]) is found[0]
    with pytest.raises(PlumbError, match=r"figure absent is absent: no copy at any size \(launch 0\)"):
        one.launches[0].measurement(one.variant.figures[2])


def test_full_records_are_checked_whole(results):
    put(results, [[record()], [spoil(record(id="1" * 12), ("plan",), {})], [record(id="2" * 12, environment={"A": 1})]])
    found, damages = query.full(["0123456789ab", "2" * 12, "f" * 12, "'; --"])
    assert found == [convert(record())]
    assert [(damage.file.name, damage.line) for damage in damages] == [("s2.jsonl", 1)]
    assert "environment" in str(damages[0])
    with pytest.raises(PlumbError, match="environment"):
        query.find("222")


def test_a_file_that_vanishes_while_reading_is_looked_for_anew(results, monkeypatch):
    put(results, [[record()], [record(id="1" * 12)]])
    real, calls = index._listing, []

    def stale(site, *words):
        entries = list(real(site, *words))
        calls.append(site)
        if len(calls) == 1:
            (results / "local" / "s1.jsonl").unlink()
        return entries

    monkeypatch.setattr(index, "_is_small", lambda site: True)
    monkeypatch.setattr(index, "_listing", stale)
    found, damages = query.records(Selection(site="local"))
    assert ([row.id for row in found], damages, len(calls)) == (["0123456789ab"], [], 2)


def test_files_that_keep_vanishing_end_with_an_error(results, monkeypatch):
    monkeypatch.setattr(index, "_listing", lambda *_: [(b"local/gone.jsonl", 1, 1, 1, 1)])
    monkeypatch.setattr(index, "_is_small", lambda site: True)
    for read in (lambda: query.records(Selection(site="local")), lambda: query.full([], "local")):
        with pytest.raises(PlumbError, match="change while they are read"):
            read()


def test_a_file_that_is_gone_and_back_again_is_no_damage(results, monkeypatch):
    """Its absence shows when it is opened; a look at the folder afterwards would find it there."""
    put(results, [[record()]])
    opened, absent = Path.open, [True]

    def open_(self, *args, **kwargs):
        if self.suffix == ".jsonl" and absent and absent.pop():
            raise FileNotFoundError(2, "No such file or directory", str(self))
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", open_)
    assert [item.id for item in query.full(["0123456789ab"])[0]] == ["0123456789ab"]
    assert absent == []
    absent.append(True)
    found, damages = query.records()
    assert ([row.id for row in found], damages, absent) == (["0123456789ab"], [], [])


def test_readers_beside_a_writer_see_whole_files(results):
    """A session file that is rewritten, one that comes and goes: every answer is one of the states there were."""
    put(results, [[record()]])
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            changing = [record(id="1" * 12, launches=[launch(order, 1.0) for order in range(number % 5)])]
            store.write(store.session_file("local", "changing"), changing)
            store.write(store.session_file("local", "fleeting"), [record(id="2" * 12)])
            store.session_file("local", "fleeting").unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(15):
            found, damages = query.records()
            assert damages == []
            assert {row.id for row in found} <= {"0123456789ab", "1" * 12, "2" * 12}
            assert found[0].id == "0123456789ab"
    finally:
        stop.set()
        writer.join()


def test_memory_grows_with_the_answer_not_with_the_files(tmp_path):
    """Eight times the bytes in unused members cost no memory: what no query uses is never kept."""
    code = """
import resource, sys
from plumbline.records import query
found, damages = query.records()
assert len(found) == 400 and not damages
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    peaks = []
    for name, padding in (("small", 10_000), ("large", 400_000)):
        folder = tmp_path / name / "local"
        folder.mkdir(parents=True)
        for number in range(400):
            padded = record(id=f"{number:012x}", environment={"PADDING": "x" * padding})
            (folder / f"s{number}.jsonl").write_text(json.dumps(padded) + "\n", encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PLUMB_RESULTS": str(folder.parent), "PYTHONPATH": str(paths.root())},
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(answer.stdout))
    assert peaks[1] - peaks[0] < 80  # MiB, for 156 MB more of files
