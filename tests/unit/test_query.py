"""Queries say what reading every record says, whatever stands in the files and whatever happens to them meanwhile."""

import copy
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import launch, record

from plumbline import paths, schemas
from plumbline.errors import PlumbError
from plumbline.records import query, rows, scan, sources, store
from plumbline.records.query import Selection
from plumbline.records.select import select

HEX = st.text("0123456789abcdef", min_size=12, max_size=12)
WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 10**9))
PARAMS = st.dictionaries(st.sampled_from(["bytes", "operation"]), st.one_of(st.integers(0, 3), WORDS, st.just(8.0)))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@st.composite
def measurements(draw):
    return {
        "metric": draw(st.sampled_from(["time", "triad", "bandwidth"])),
        "value": draw(NUMBERS),
        "unit": draw(st.sampled_from(["us", "MB/s"])),
        "better": draw(st.sampled_from(["higher", "lower"])),
        "params": draw(PARAMS),
        "iterations": draw(st.one_of(st.none(), st.integers(1, 9))),
    }


@st.composite
def launches(draw, order):
    extra = draw(st.sampled_from([{}, {"superseded": True}, {"output_tail": "x", "waiting": ["rank 1"]}]))
    return launch(
        order,
        1.0,
        status=draw(st.sampled_from(["ok", "failed", "timeout"])),
        verified=draw(st.booleans()),
        disturbed=draw(st.booleans()),
        exit_code=draw(st.one_of(st.none(), st.integers(0, 255))),
        reasons=draw(st.lists(WORDS, max_size=2)),
        measurements=draw(st.lists(measurements(), max_size=4)),
        **extra,
    )


@st.composite
def figures(draw):
    limit = {"value": 5.0, "unit": "us", "method": draw(WORDS), "percent": draw(NUMBERS)}
    reference = {"value": draw(NUMBERS), "unit": "us", "method": "calibrated", "file": "local/references/a.yaml"}
    return {
        "name": draw(WORDS),
        "value": draw(NUMBERS),
        "unit": "us",
        "better": draw(st.sampled_from(["higher", "lower"])),
        "launches": draw(st.integers(0, 9)),
        "samples": draw(st.lists(NUMBERS, max_size=4)),
        "limit": draw(st.sampled_from([None, limit])),
        "reference": draw(st.sampled_from([None, reference])),
    }


@st.composite
def documents(draw):
    """Random records that obey the schema."""
    wanted = st.fixed_dictionaries({"name": WORDS, "metric": st.sampled_from(["time", "triad"]), "where": PARAMS})
    return record(
        id=draw(HEX),
        campaign=draw(st.one_of(st.none(), WORDS)),
        time=draw(
            st.sampled_from(["2026-01-01T00:00:00.000Z", "2026-02-03T04:05:06.789Z", "2027-01-01T00:00:00.000Z"])
        ),
        state=draw(st.sampled_from(["running", "complete", "interrupted"])),
        nodes=draw(st.lists(WORDS, max_size=3)),
        variant=samples.variant(
            test=draw(st.sampled_from(["imb_pair", "stream_threads"])),
            params=draw(PARAMS),
            figures=draw(st.lists(wanted, max_size=3)),
        ),
        launches=[draw(launches(order)) for order in range(draw(st.integers(0, 3)))],
        verified=draw(st.booleans()),
        reasons=draw(st.lists(WORDS, max_size=2)),
        verdict=draw(st.sampled_from(["invalid", "unreferenced", "within"])),
        figures=draw(st.lists(figures(), max_size=2)),
        host={"kernel": draw(WORDS), "load": [draw(NUMBERS)], "governor": None, "nested": {"load": None}},
    )


def spoil(item, path, value):
    """``item`` with ``value`` at ``path``; the member is removed if ``value`` is ``...``."""
    item = copy.deepcopy(item)
    *way, last = path
    target = item
    for step in way:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return item


def everywhere(value, path=()):
    """The paths of all members of ``value``."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from everywhere(item, (*path, key))


def put(results, files):
    """Write ``files`` (lists of lines) as session files, in an empty folder."""
    folder = results / "local"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, lines in enumerate(files):
        text = "".join(json.dumps(line) + "\n" if not isinstance(line, str) else line for line in lines)
        (folder / f"s{number}.jsonl").write_text(text, encoding="utf-8")


def assert_equal_to_reading():
    full, damages = store.read_all()
    expected = [rows.of_record(item) for item in full]
    assert query.records() == (expected, damages)
    assert query.samples() == (
        [item for one, row in zip(full, expected, strict=True) for item in rows.samples_of_record(one, row)],
        damages,
    )
    assert query.ids() == [item["id"] for item in full]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.lists(documents(), max_size=3), max_size=4))
def test_queries_equal_reading_of_random_records(results, files):
    put(results, files)
    assert_equal_to_reading()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), item=documents(), values=st.sampled_from([..., None, 7, -1, 1.5, "x", [], [None], {}, True]))
def test_queries_find_the_damage_that_reading_finds_in_what_they_use(results, data, item, values):
    used = [path for path in everywhere(item) if path[0] not in ("plan", "command", "environment", "benchmark")]
    path = data.draw(st.sampled_from(used))
    bad = spoil(item, path, values)
    good = {**item, "id": "0" * 12 if item["id"] != "0" * 12 else "1" * 12}
    put(results, [[good], [good | {"id": "2" * 12}, bad], ["{broken\n", good | {"id": "3" * 12}]])
    full, damages = store.read_all()
    found, seen = query.records()
    if path[0] in ("launches", "figures", "suite", "host", "stack", "variant", "placement"):
        # members that no query uses are checked by plumb show; what is damaged for queries is so for reading
        assert set(seen) <= set(damages)
        assert {row.id for row in found} >= {one["id"] for one in full}
    else:
        assert (found, seen) == ([rows.of_record(one) for one in full], damages)


#: members that queries use, with values that the schema forbids
FORBIDDEN = [
    (("schema",), 2),
    (("id",), "xyz"),
    (("id",), 12),
    (("campaign",), ...),
    (("state",), "done"),
    (("nodes",), ["a", None]),
    (("nodes",), "a"),
    (("verified",), "yes"),
    (("verdict",), "PASS"),
    (("verdict",), None),
    (("host",), []),
    (("host",), ...),
    (("unknown",), 1),
    (("stack", "mpi"), "openmpi"),
    (("stack", "mpi", "version"), 5),
    (("variant", "test"), ...),
    (("variant", "params"), []),
    (("variant", "figures"), None),
    (("variant", "figures", 0, "where"), None),
    (("variant", "figures", 0), "triad"),
    (("placement", "threads"), "2"),
    (("reasons",), [1]),
    (("launches",), {}),
    (("launches", 1), None),
    (("launches", 1, "status"), "fine"),
    (("launches", 1, "disturbed"), 1),
    (("launches", 1, "index"), -1),
    (("launches", 1, "order"), "1"),
    (("launches", 1, "measurements"), ...),
    (("launches", 1, "measurements", 0), 3.0),
    (("launches", 1, "measurements", 0, "value"), "3.0"),
    (("launches", 1, "measurements", 0, "value"), ...),
    (("launches", 1, "measurements", 0, "better"), "faster"),
    (("launches", 1, "measurements", 0, "params"), None),
    (("figures", 0, "better"), "faster"),
    (("figures", 0, "value"), None),
    (("figures", 0, "samples"), [1.0, None]),
    (("figures", 0, "samples"), ["1.0"]),
    (("figures", 0, "limit"), 5.0),
    (("figures", 0, "limit"), {"value": "5"}),
]


@pytest.mark.parametrize(("path", "value"), FORBIDDEN, ids=lambda item: str(item)[:40])
def test_what_the_schema_forbids_is_damage_with_file_and_line(results, path, value):
    put(results, [[record()], [record(id="1" * 12), spoil(record(id="2" * 12), path, value)]])
    where = [(results / "local" / "s1.jsonl", 2)]
    found, damages = query.samples()
    assert [(damage.file, damage.line) for damage in damages] == where
    assert [item.row.id for item in found] == ["0123456789ab", "1" * 12]
    if path[0] != "launches" or path[-1] in (1, "launches", "disturbed"):  # a row needs no more of a launch
        found, damages = query.records()
        assert [(damage.file, damage.line) for damage in damages] == where
        assert [row.id for row in found] == ["0123456789ab", "1" * 12]


@pytest.mark.parametrize(
    "line",
    [
        b"{broken\n",
        b'{"a":1}{"b":2}\n',
        b'"text"\n',
        b"[]\n",
        b"null\n",
        b"\xff\xfe\n",
        os.urandom(3000).replace(b"\n", b"x") + b"\n",
        json.dumps(record(id="2" * 12)).encode()[:-30],
        json.dumps(record(id="2" * 12)).encode()[:-30] + b"\n" + json.dumps(record(id="3" * 12)).encode() + b"\n",
    ],
)
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
    text = json.dumps(record(id="1" * 12)).replace("10100.0", "NaN", 1)
    (results / "local" / "s1.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found, damages = query.records()
    assert (len(found), damages) == (2, [])


def test_no_results_at_all(results):
    assert query.records() == ([], [])
    assert query.samples(Selection(site="nowhere")) == ([], [])
    assert query.ids() == []
    results.mkdir()
    assert query.records() == ([], [])


def test_a_line_longer_than_the_engine_takes_is_read(results, monkeypatch):
    monkeypatch.setattr(scan, "LONGEST", 10_000)
    big = record(id="1" * 12, command=["x" * 200_000])
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
            [record(id="2" * 12, variant=samples.variant(test="imb_pair"), stack=stack)],
            [record(id="3" * 12, state="running")],
            ["{broken\n"],
        ],
    )
    for where, expected in (
        (Selection(), 4),
        (Selection(test="imb"), 1),
        (Selection(test="stream_threads"), 3),
        (Selection(since="2026-01-15"), 1),
        (Selection(until="2026-01-15"), 3),
        (Selection(campaign="c1"), 1),
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
        assert [item.row for item in query.samples(where)[0]] == [row for row in found for _ in (1,)]


def test_samples_choose_what_the_figures_chose(results):
    wanted = [
        {"name": "best", "metric": "triad", "where": {}},
        {"name": "small", "metric": "triad", "where": {"bytes": 8}},
        {"name": "absent", "metric": "copy", "where": {}},
    ]
    rowed = [
        {"metric": "triad", "value": value, "unit": "MB/s", "better": "higher", "params": {"bytes": size}}
        for size, value in ((8.0, 1.0), (16, 3.0), (32, 2.0))
    ]
    one = record(variant=samples.variant(figures=wanted), launches=[launch(0, 1.0, measurements=rowed)])
    put(results, [[one]])
    found, _ = query.samples()
    assert [(item.figure, item.values) for item in found] == [("best", [3.0]), ("small", [1.0]), ("absent", [None])]
    assert found[0].kinds == {("MB/s", "higher")}
    assert select(wanted[0], one["launches"][0])["value"] == 3.0


def test_full_records_are_checked_whole(results):
    put(results, [[record()], [spoil(record(id="1" * 12), ("plan",), {})], [record(id="2" * 12, environment={"A": 1})]])
    assert query.full(["0123456789ab", "f" * 12, "'; --"]) == ([record()], [])
    found, damages = query.full(["2" * 12])
    assert found == []
    assert "environment" in str(damages[0])
    with pytest.raises(PlumbError, match="environment"):
        store.find("222")


def test_a_file_that_vanishes_while_reading_is_looked_for_anew(results, monkeypatch):
    put(results, [[record()], [record(id="1" * 12)]])
    real, calls = sources.find, []

    def stale(site=None):
        found = real(site)
        calls.append(site)
        if len(calls) == 1:
            (results / "local" / "s1.jsonl").unlink()
        return found

    monkeypatch.setattr(sources, "find", stale)
    found, damages = query.records()
    assert ([row.id for row in found], damages, len(calls)) == (["0123456789ab"], [], 2)


def test_files_that_keep_vanishing_end_with_an_error(results, monkeypatch):
    gone = sources.Sources([results / "local" / "gone.jsonl"], [])
    monkeypatch.setattr(sources, "find", lambda site=None: gone)
    for read in (query.records, store.read_all):
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
    assert [item["id"] for item in store.read_all()[0]] == ["0123456789ab"]
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
            env={**os.environ, "PLUMB_RESULTS": str(folder.parent), "PYTHONPATH": str(Path(paths.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(answer.stdout))
    assert peaks[1] - peaks[0] < 80  # MiB, for 156 MB more of files


def test_the_engine_is_silent_and_fetches_nothing():
    with sources.connect() as engine:
        for name, value in (
            ("enable_progress_bar", False),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
            ("temp_directory", ""),
        ):
            assert engine.execute(f"SELECT current_setting('{name}')").fetchall() == [(value,)]


def test_the_sample_obeys_the_schema():
    schemas.check("record", record(), "sample")
