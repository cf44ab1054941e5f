"""The index says what reading every file says, whatever happens to files and index; and it saves the reading."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from samples import record
from witness_helper import compile_c

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.launch import process
from plumbline.records import compact, index, query, store
from plumbline.records.model import convert, seal

sys.path.insert(0, str(paths.root() / "tests" / "scale"))

import generate

CHILD = """
from plumbline.records import index, query
index.SMALL, index.SETTLED, index.BATCH = 0, 0, 4000
query.records()
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "SMALL", 0)
    monkeypatch.setattr(index, "SETTLED", 0)
    return tmp_path / "results"


def put(name, *numbers, site="local", **members):
    """Write the session ``name`` of records with these numbers as ids."""
    records = [convert(record(id=f"{number:012x}", session=name, site=site, **members)) for number in numbers]
    store.write(store.session_file(site, name), records)
    return store.session_file(site, name)


def truth(monkeypatch):
    """What reading all files in memory says."""
    index._kept.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(index, "_names", lambda site: [index.MEMORY])
        return query.records(), query.collect(lambda item: item)


def assert_right(monkeypatch):
    expected = truth(monkeypatch)
    assert (query.records(), query.collect(lambda item: item)) == expected
    rows, damages = query.each()
    assert ([*rows], damages) == expected[0]
    assert query.count() == len(expected[0][0])


def decoded(monkeypatch, *words):
    """Records, bytes and files that a command reads from record files."""
    lines, parse = [], store.parse

    def counting(file, number, line, *brief):
        lines.append((file, len(line)))
        return parse(file, number, line, *brief)

    with monkeypatch.context() as patch:
        patch.setattr(index, "AT_ONCE", 1)  # all in this process
        patch.setattr(store, "parse", counting)
        assert cli.main([*words]) == 0
    return len(lines), sum(size for _, size in lines), len({file for file, _ in lines})


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.long)])
def test_commands_read_only_the_records_that_they_need(results, monkeypatch, tmp_path, capsys, count):
    size, campaigns = 72, count // 72
    generate.write_campaigns(results, campaigns - 2, size)
    generate.write_campaigns(results, 2, size, seed=7, site="other")
    total = sum(file.stat().st_size for file in results.rglob("*.jsonl"))
    assert decoded(monkeypatch, "list") == (size * campaigns, total, len([*results.rglob("*.jsonl")]))
    assert f"of {query.count():,} records: --all lists all" in capsys.readouterr().out
    sides, sites = ("mpich", "openmpi"), shutil.copytree(paths.sites() / "local", tmp_path / "sites" / "other").parent
    file = sites / "other" / "site.yaml"
    file.write_text(file.read_text().replace("name: local", "name: other", 1))
    for words in (
        ["list"],
        ["list", "--all", "--test", "imb_pair"],
        ["export", "--format", "csv", "--output", str(tmp_path / "figures.csv")],
        ["compare", *sides, "--site", "other"],
        ["history", "--site", "other"],
        ["calibrate", "--site", "other", "--min-sessions", "2", "--dry-run", "--sites", str(sites)],
    ):
        assert decoded(monkeypatch, *words) == (0, 0, 0), words
    records, read, opened = decoded(monkeypatch, "show", "last")
    assert (records, opened) == (1, 1)
    assert read < 30_000
    assert decoded(monkeypatch, "report", "--site", "other")[::2] == (size, size // 2)
    publish = "publish", "--site", "other", str(tmp_path / "pages")
    assert decoded(monkeypatch, *publish)[::2] == (2 * size, size)  # a page for each campaign, once
    assert decoded(monkeypatch, *publish) == (0, 0, 0)
    generate.write_campaigns(results, 1, size, seed=8, site="new")
    assert decoded(monkeypatch, "list")[::2] == (size, size // 2)
    assert (results / index.NAME).stat().st_size < 0.15 * total + 200_000


def test_files_that_change_are_read_again(results, monkeypatch):
    first, second = put("s1", 1, 2), put("s2", 3)
    assert_right(monkeypatch)
    put("s3", 4, site="other")
    shutil.copy(first, first.with_name("copy.jsonl"))
    assert_right(monkeypatch)
    before, text = second.stat(), second.read_text()
    second.write_text(text.replace('"verified":true', '"verified":trux'))
    os.utime(second, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert second.stat().st_size == before.st_size
    assert_right(monkeypatch)
    assert "JSON" in str(query.records()[1]) or "seal" in str(query.records()[1])
    second.write_text(text[:-40])
    assert_right(monkeypatch)
    put("s2", 3, 5)
    put("s1", 1, verified=False)
    assert_right(monkeypatch)
    first.with_name("copy.jsonl").unlink()
    compact.compact("local")
    assert_right(monkeypatch)
    compact.compact("local", remove=True)
    assert_right(monkeypatch)
    put("s1", 1, 2, 9)
    assert_right(monkeypatch)
    shutil.rmtree(results / "local")
    assert_right(monkeypatch)
    assert [row.id for row in query.records()[0]] == [f"{4:012x}"]


@pytest.fixture
def stated(results, monkeypatch):
    """The record files whose states a question looks at, of many."""
    monkeypatch.setattr(index, "MANY", 0)
    monkeypatch.setattr(index, "AT_ONCE", 1)
    for site in ("a", "b"):
        for number in range(9):
            put(f"{site}{number}", 10 * ord(site) + number, site=site, time=f"2026-11-0{number + 1}T00:00:00.000Z")
    names, listing, state = set(), index._listing, index.files.state
    monkeypatch.setattr(index, "_listing", lambda *words: [names.add(e[0]) or e for e in listing(*words)])
    monkeypatch.setattr(index.files, "state", lambda file: names.add(os.fsencode(file.name)) or state(file))

    def asked(question):
        names.clear()
        answer = question()
        return answer, len(names)

    query.records()
    query.records()
    return asked


def test_a_question_for_few_of_many_records_looks_at_folders(results, stated, monkeypatch):
    assert stated(lambda: query.records(newest=3)[0][-1].time[:10]) == ("2026-11-09", 3)
    assert stated(query.count) == (18, 0)
    assert stated(lambda: query.find("last").id)[1] == 1
    assert stated(query.records)[1] == 18
    put("b9", 5, site="b", time="2026-11-10T00:00:00.000Z")
    assert stated(lambda: query.records(newest=1)[0][0].id) == (f"{5:012x}", 11)
    assert stated(lambda: query.records(newest=1)[0][0].id) == (f"{5:012x}", 1)
    (results / "b" / "b9.jsonl").unlink()
    assert stated(query.count) == (18, 9)
    put("c0", 7, site="c")
    assert stated(query.count) == (19, 1)
    compact.compact("b", remove=True)
    assert stated(query.count)[0] == 19
    assert_right(monkeypatch)


def test_of_many_records_a_file_edited_in_place_is_read_again_when_it_is_wanted(results, stated):
    file = results / "a" / "a8.jsonl"
    text = file.read_text()
    file.write_text(text.replace('"verified":true', '"verified":trux'))
    rows, damages = query.records(newest=1)
    assert rows[0].session == "b8"
    rows, damages = query.records(newest=2)
    assert ([row.session for row in rows], [damage.file for damage in damages]) == (["b7", "b8"], [file])


def test_a_folder_that_changed_just_now_is_listed_again(results, stated, monkeypatch):
    monkeypatch.setattr(index, "SETTLED", 10**15)
    put("b9", 5, site="b")
    for _ in range(2):
        assert stated(query.count) == (19, 10)


def test_an_index_that_can_only_be_read_answers(results, stated, monkeypatch):
    (results / "a" / "notes.ndjson").touch()
    with closing(sqlite3.connect(results / index.NAME)) as database:
        database.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(index, "PATIENCE", 0.01)
        assert query.count() == 18


def test_a_file_that_changed_behind_its_state_is_read_again(results, monkeypatch):
    """Bits of a disk that turn change no time: the record is damaged as soon as it is wanted."""
    file, real = put("s1", 1), index._listing
    monkeypatch.setattr(index, "_listing", lambda *words: [(path, 1, size, 1, 1) for path, _, size, *_ in real(*words)])
    query.records()
    file.write_text(file.read_text().replace('"value":10200.0', '"value":20200.0'))
    assert query.collect(lambda item: item)[0] == []
    assert "changed since it was measured" in str(query.records()[1])


@pytest.mark.parametrize("sessions", [1, 30])
def test_what_only_reading_a_whole_record_shows_is_damage_from_then_on(results, monkeypatch, sessions):
    """The index decodes of a sealed record what a row needs."""
    for number in range(1, sessions + 1):
        file = put(f"s{number}", number, number + 100)
        first, second = file.read_text().splitlines()
        body = second.rpartition(',"seal"')[0].replace('"iterations":10', '"iterations":"x"')
        assert '"iterations":"x"' in body
        file.write_text(f"{first}\n{seal(body + '}')}\n")
    assert len(query.records()[0]) == 2 * sessions
    for _ in range(2):
        whole, damages = query.collect(lambda item: item.id)
        assert (len(whole), len(damages)) == (sessions, sessions)
        assert "iterations" in damages[0].reason
    assert len(query.records()[0]) == sessions
    with pytest.raises(PlumbError, match="damaged"):
        query.find(f"{101:012x}")


def spoil(file, content):
    if isinstance(content, str):
        with closing(sqlite3.connect(file)) as database:
            database.executescript(content)
    else:
        file.write_bytes(content(file.read_bytes()))


@pytest.mark.parametrize("content", [
    lambda old: b"",
    lambda old: b"no database at all, but long enough to be read as the header of such a file " * 9,
    lambda old: old[: len(old) // 2],
    lambda old: old[:4096] + bytes(len(old) - 4096),
    "PRAGMA user_version = 7",
    "UPDATE rows SET row = x'c1'",
    "DELETE FROM shared",
    "DROP TABLE rows",
    "UPDATE sites SET digest = x'00', listing = x'c1'",
])  # fmt: skip
def test_a_damaged_or_older_index_is_made_anew(results, monkeypatch, content):
    put("s1", *range(1, 20))
    assert_right(monkeypatch)
    spoil(results / index.NAME, content)
    assert_right(monkeypatch)
    assert [file.name for file in results.iterdir() if file.suffix == ".jsonl"] == []


def test_where_the_folder_cannot_be_written_the_index_is_in_the_cache(results, monkeypatch, tmp_path):
    put("s1", 1, 2)
    (results / index.NAME).mkdir()
    assert_right(monkeypatch)
    assert [file.suffix for file in (tmp_path / "cache" / "plumbline").iterdir()] == [".sqlite3"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert_right(monkeypatch)


def test_another_command_has_its_turn(results, monkeypatch):
    """Without a pause it would wait in vain, and make an index of its own."""
    for number in range(1, 20):
        put(f"s{number}", number)
    pauses = []
    monkeypatch.setattr(index, "BATCH", 4000)
    monkeypatch.setattr(index, "TURN", 0)
    monkeypatch.setattr(index.time, "sleep", pauses.append)
    query.records()
    assert len(pauses) > 5


def test_a_lock_that_another_holds_is_waited_for_and_then_done_without(results, monkeypatch):
    put("s1", 1)
    query.records()
    put("s2", 2)
    monkeypatch.setattr(index, "PATIENCE", 0.01)
    with closing(sqlite3.connect(results / index.NAME)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert_right(monkeypatch)


def child(results, **more):
    environment = {**os.environ, "PYTHONPATH": str(paths.root()), **more}
    return subprocess.Popen([sys.executable, "-c", CHILD], env=environment, stderr=subprocess.PIPE, text=True)


def test_a_full_disk_costs_the_index_only(results, monkeypatch):
    put("s1", *range(1, 60))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limit[1]))
    try:
        rows, damages = query.records()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert (len(rows), damages) == (59, [])
    assert_right(monkeypatch)


def test_several_commands_make_one_index(results, monkeypatch):
    for number in range(1, 40):
        put(f"s{number}", number)
    children = [child(results) for _ in range(4)]
    assert [(process.wait(), process.stderr.read()) for process in children] == [(0, "")] * 4
    assert_right(monkeypatch)


@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=pytest.mark.long)])
def test_a_kill_at_any_write_of_the_index_leaves_right_answers(results, monkeypatch, tmp_path, kills):
    library = compile_c(tmp_path, "kills_at_a_write.c", "-shared", "-fPIC", "-ldl")
    number, write, killed = 0, 0, 0
    while killed < kills:
        for _ in range(3):
            number += 1
            put(f"s{number % 9}", number, number + 1_000_000)
        write += 1
        process = child(results, LD_PRELOAD=str(library), KILL_AT=str(write))
        _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), errors
        killed += process.returncode != 0
        if process.returncode == 0:  # it has fewer writes
            assert write > 5
            write = 0
        assert_right(monkeypatch)


def test_readers_that_are_killed_cost_nothing(results, monkeypatch):
    """Several processes read; what one did not finish is read here."""
    for number in range(1, 40):
        put(f"s{number}", number)
    monkeypatch.setattr(index, "SHARE", 4000)
    monkeypatch.setattr(index.os, "sched_getaffinity", lambda _: range(4))
    here, real = os.getpid(), index._reading

    def dying(doubted, entries):
        if os.getpid() != here and b"s2" in entries[0][0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(doubted, entries)

    monkeypatch.setattr(index, "_reading", dying)
    before = set(process.descendants(here))
    assert_right(monkeypatch)
    assert query.count() == 39
    assert set(process.descendants(here)) <= before


@pytest.mark.parametrize("broken", ["fork", "pipe"])
def test_where_no_process_can_start_this_one_reads(results, monkeypatch, broken):
    for number in range(1, 40):
        put(f"s{number}", number)
    monkeypatch.setattr(index, "SHARE", 4000)
    monkeypatch.setattr(index.os, "sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(index.os, broken, lambda: (_ for _ in ()).throw(BlockingIOError(11, "no room")))
    assert query.count() == 39


@pytest.mark.parametrize(
    ("mode", "group", "expected"), [(0o600, 0, 0o600), (0o640, 0, 0o640), (0o640, 1, 0o600), (0o644, 1, 0o644)]
)
def test_nobody_reads_the_index_who_cannot_read_the_records(results, monkeypatch, mode, group, expected):
    if group and os.geteuid():
        pytest.skip("only root gives files away")
    put("s1", 1)
    query.records()
    (results / index.NAME).chmod(0o644)
    file = put("s2", 2)
    file.chmod(mode)
    os.chown(file, -1, group or os.getgid())
    query.records()
    assert (results / index.NAME).stat().st_mode & 0o777 == expected
    file.chmod(0o644)
    (results / index.NAME).chmod(0o644)
    file.parent.chmod(0o700)
    query.records()
    assert (results / index.NAME).stat().st_mode & 0o777 == 0o600


def test_an_index_of_another_user_does_not_get_records_that_few_may_read(results, monkeypatch, tmp_path):
    put("s1", 1)
    query.records()
    put("s2", 2).chmod(0o600)
    monkeypatch.setattr(index.os, "geteuid", lambda: 1234)
    assert query.count() == 2
    with closing(sqlite3.connect(results / index.NAME)) as database:
        assert database.execute("SELECT count(*) FROM lines").fetchone() == (1,)
    assert len([*(tmp_path / "cache" / "plumbline").glob("*.sqlite3")]) == 1


def test_progress_is_shown_on_a_terminal_after_a_while(results, monkeypatch, capsys):
    put("s1", 1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    query.records()
    assert capsys.readouterr().err == ""
    put("s2", 2)
    monkeypatch.setattr(index, "QUIET", 0)
    query.records()
    assert "reading records of local: 2 of 2 files" in capsys.readouterr().err


def test_a_site_whose_folder_is_a_link_counts(results, tmp_path, monkeypatch):
    put("s1", 1)
    (results / "local").rename(tmp_path / "elsewhere")
    (results / "local").symlink_to(tmp_path / "elsewhere")
    (results / "circle").symlink_to("circle")
    assert [row.id for row in query.records()[0]] == [f"{1:012x}"]
    assert_right(monkeypatch)
