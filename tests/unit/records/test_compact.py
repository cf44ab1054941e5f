"""Compaction loses nothing, whatever happens in its middle, and nothing is counted twice."""

import argparse
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import launch, record

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import records as command
from plumbline.records import compact, query, store
from plumbline.records.store import Damage


def write(number, month=1, **changes):
    """A session of two records."""
    records = [
        record(id=f"{2 * number + side:012x}", time=f"2026-{month:02}-01T00:00:{number:02}.000Z", **changes)
        for side in range(2)
    ]
    file = store.session_file("local", f"s{number}")
    store.write(file, records)
    return file


def everything():
    """All answers there are, from both ways of reading."""
    full, damages = query.collect(lambda record: record)
    assert query.records() == ([record.row() for record in full], damages)
    return full, damages


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.run_compact.add_to(parser)
    args = parser.parse_args(arguments)
    return args.run(args)


def parts(results):
    return sorted(file.name for file in (results / "local" / "compact").iterdir())


def test_every_record_survives_bit_for_bit(results, capsys):
    for number in range(6):
        write(number, month=1 + number % 2)
    odd = store.session_file("local", "odd")
    text = json.dumps(record(id="f" * 12, host={"kernel": "ü \u2028", "load": [1.10, 1e300]}), ensure_ascii=False)
    odd.write_text(f"\n  {text} \r\n\n{text.replace('f' * 12, 'e' * 12)}", encoding="utf-8")
    before, lines = everything(), compact.lines_of(odd)
    assert run() == 0
    assert parts(results) == ["2026-01.0001.jsonl.gz", "2026-02.0001.jsonl.gz"]
    assert everything() == before  # both are there, and counted once
    assert run("--remove-sessions") == 0
    assert list(results.rglob("*.jsonl")) == []
    assert parts(results) == ["2026-01.0001.jsonl.gz", "2026-02.0001.jsonl.gz"]
    assert everything() == before
    assert query.find("eeee") == before[0][-2] or query.find("eeee").id == "e" * 12
    assert query.find("last") == before[0][-1]
    found = compact.lines(results / "local" / "compact" / "2026-01.0001.jsonl.gz", {"odd.jsonl"})
    assert [(number, line) for _, number, line in found] == lines
    assert capsys.readouterr().out.splitlines()[-1] == "site local: 7 sessions compacted, 7 files removed"
    assert run() == 0
    assert capsys.readouterr().out == "nothing to compact\n"


def test_only_what_is_old_and_whole_is_compacted(results, capsys):
    write(0)
    write(1, month=3)
    write(2, state="running")
    broken = write(3)
    broken.write_text(broken.read_text() + "{broken\n")
    store.session_file("local", "s4").write_text("")
    before = everything()
    assert run("--until", "2026-02-01", "--remove-sessions") == 1
    answer = capsys.readouterr()
    assert "1 session compacted, 1 file removed, 1 left alone: damaged, 1 left alone: empty" in answer.out
    assert "1 left alone: not before 2026-02-01, 1 left alone: running" in answer.out
    assert f"damaged record: {broken}:3" in answer.err
    assert sorted(file.stem for file in results.rglob("*.jsonl")) == ["s1", "s2", "s3", "s4"]
    assert everything() == before


def test_later_sessions_make_later_parts(results):
    write(0)
    run("--remove-sessions")
    write(1)
    run()
    write(2)
    before = everything()
    run("--remove-sessions")
    assert parts(results) == [f"2026-01.{number:04}.jsonl.gz" for number in (1, 2, 3)]
    assert everything() == before


def test_a_session_that_changed_beats_its_compacted_lines(results):
    write(0)
    run()
    write(0, verdict="within", launches=[launch(0, 1.0)])
    full, _ = everything()
    assert {item.verdict for item in full} == {"within"}
    run("--remove-sessions")
    assert len(parts(results)) == 2
    assert everything() == (full, [])


@pytest.mark.parametrize("step", ["_digests", "_name", "_remove", "sync"])
def test_an_interruption_anywhere_loses_nothing(results, monkeypatch, step):
    write(0)
    write(1, month=2)
    before = everything()

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(compact, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("--remove-sessions")
    assert everything() == before
    assert not [name for name in parts(results) if name.startswith(".")]
    assert run("--remove-sessions") == 0
    assert everything() == before
    assert list(results.rglob("*.jsonl")) == []


def test_a_compaction_that_is_killed_leaves_what_was_there(results):
    for number in range(3):
        write(number)
    before = everything()
    code = """
import os
from plumbline.records import compact
compact._name = lambda temporary, month: os.kill(os.getpid(), 9)
compact.compact("local", remove=True)
"""
    root = str(paths.root())
    answer = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": root}, check=False)
    assert answer.returncode == -9, answer
    assert everything() == before
    assert run("--remove-sessions") == 0
    assert everything() == before


def test_two_compactions_at_once_do_not_overwrite_each_other(results, monkeypatch):
    write(0)
    before = everything()
    real = compact.os.link
    taken = []

    def rival(source, target):
        if not taken:
            taken.append(target)
            Path(target).write_bytes(Path(source).read_bytes())
        real(source, target)

    monkeypatch.setattr(compact.os, "link", rival)
    assert run("--remove-sessions") == 0
    assert parts(results) == ["2026-01.0001.jsonl.gz", "2026-01.0002.jsonl.gz"]
    assert everything() == before


def test_nothing_is_removed_that_differs_from_its_part(results, monkeypatch):
    file = write(0)
    run()
    before = file.read_bytes()
    real = compact._held
    monkeypatch.setattr(compact, "_held", lambda folder, files: {name: "0" * 64 for name in real(folder, files)})
    with pytest.raises(PlumbError, match="differs from its compacted lines"):
        compact._remove(results / "local", [file])
    assert file.read_bytes() == before


def test_a_session_that_changes_while_it_is_compacted_is_kept(results, monkeypatch):
    file = write(0)
    real = compact._digests

    def changing(part, folder, sources):
        found = real(part, folder, sources)
        write(0, verdict="within")
        return found

    monkeypatch.setattr(compact, "_digests", changing)
    with pytest.raises(PlumbError, match="changed meanwhile"):
        run("--remove-sessions")
    assert parts(results) == []
    assert file.exists()


def test_a_damaged_part_is_named_and_the_rest_is_read(results):
    write(0)
    write(1, month=2)
    run("--remove-sessions")
    part = results / "local" / "compact" / "2026-01.0001.jsonl.gz"
    for spoilt in (part.read_bytes()[:-50], b"", os.urandom(2000)):
        part.write_bytes(spoilt)
        full, damages = everything()
        assert [item.id for item in full] == ["000000000002", "000000000003"]
        assert [damage.file for damage in damages] == [part]
    write(0)
    with pytest.raises(PlumbError, match="cannot read"):
        run("--remove-sessions")
    assert store.session_file("local", "s0").exists()


def test_bits_that_flip_inside_a_part_are_noticed(results):
    for number in range(20):
        write(number)
    run("--remove-sessions")
    part = results / "local" / "compact" / "2026-01.0001.jsonl.gz"
    content = bytearray(part.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
    part.write_bytes(content)
    full, damages = everything()
    assert len(full) < 40
    assert [damage.file for damage in damages] == [part]


def test_a_full_disk_is_one_line(results, monkeypatch):
    write(0)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compact, "sync", full)
    with pytest.raises(PlumbError, match="cannot compact: No space left on device"):
        run("--remove-sessions")
    assert parts(results) == []
    assert len(everything()[0]) == 2


def test_bad_input_is_one_line(results, capsys):
    with pytest.raises(SystemExit):
        run("--until", "yesterday")
    assert "is not a time" in capsys.readouterr().err
    with pytest.raises(PlumbError, match="no records of site 'nowhere'"):
        run("--site", "nowhere")


def as_parquet(part):
    """Write ``part`` as an earlier version did: with columns of their own for what is in the line, too."""
    import polars

    rows = [(source, number, text.decode()) for source, number, text in compact.lines(part)]
    frame = polars.DataFrame(rows, schema=["source", "line", "json"], orient="row").with_columns(id=polars.lit("x"))
    frame.write_parquet(part.with_name(part.name.replace(".jsonl.gz", ".parquet")))


def test_parquet_of_an_earlier_version_is_named_and_converted(results, capsys):
    for number in range(3):
        write(number)
    before = everything()
    run("--remove-sessions")
    part = results / "local" / "compact" / "2026-01.0001.jsonl.gz"
    content, old = part.read_bytes(), part.with_name("2026-01.0001.parquet")
    as_parquet(part)
    part.unlink()
    assert everything() == ([], [Damage(old, 0, "of an earlier version, as Parquet: `plumb compact` converts it")])
    capsys.readouterr()
    assert run() == 0
    assert f"written: {part}: converted\n" in capsys.readouterr().out
    assert everything() == before
    assert parts(results) == [part.name]
    assert part.read_bytes() == content
    as_parquet(part)  # as if the conversion was interrupted before it removed the file
    assert run() == 0
    assert parts(results) == [part.name]
    assert everything() == before


def test_parquet_that_is_damaged_or_another_stays(results, monkeypatch):
    write(0)
    run("--remove-sessions")
    (name,) = parts(results)
    part = results / "local" / "compact" / name
    old = part.with_name("2026-01.0001.parquet")
    as_parquet(part)
    compact.write_part(part, {"s0.jsonl": [(1, b"{}")]})
    with pytest.raises(PlumbError, match=r"differs from 2026-01.0001.jsonl.gz"):
        run()
    old.write_bytes(b"PAR1 and no more")
    with pytest.raises(PlumbError, match="cannot read"):
        run()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PlumbError, match="only Polars reads Parquet"):
        run()
    assert parts(results) == [part.name, old.name]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"[]\n{}\n", b'{"s0.jsonl":[1,2]}\n{}\n', b'{"s0.jsonl":[1]}\n{}\n{}\n']
)
def test_a_part_that_is_not_as_its_index_says_is_unreadable(results, content):
    part = write(0).parent / "compact" / "2026-01.0001.jsonl.gz"
    part.parent.mkdir()
    part.write_bytes(gzip.compress(content))
    with pytest.raises(compact.Unreadable, match=r"its index|no index"):
        list(compact.lines(part, {"s0.jsonl"} if b"s0" in content else None))
