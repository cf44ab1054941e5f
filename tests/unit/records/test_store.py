"""Records survive crashes, full disks and damage."""

import os
import subprocess
import sys

import pytest
import samples
import stored
from samples import record

from plumbline.base.errors import PlumbError
from plumbline.records import query, store


def test_what_is_written_is_read(results):
    file = store.session_file("local", "s1")
    store.write(file, [record()])
    assert stored.read_all() == ([record()], [])
    assert [path.name for path in file.parent.iterdir()] == ["s1.jsonl"]


def test_a_truncated_last_line_is_called_truncated(results):
    file = store.session_file("local", "s1")
    store.write(file, [record()])
    file.write_bytes(file.read_bytes()[:-20])
    records, (damage,) = stored.read_all()
    assert records == []
    assert "truncated" in damage.reason


def test_a_write_that_fails_leaves_the_old_file(results):
    file = store.session_file("local", "s1")
    store.write(file, [record()])
    before = file.read_bytes()
    # a limit on the size of files acts like a full disk, and needs no root
    code = f"""
import resource, signal, sys
sys.path.insert(0, {samples.__file__.rpartition("/")[0]!r})
from pathlib import Path
from samples import record
from plumbline.records import store
from plumbline.base.errors import PlumbError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    store.write(Path({str(file)!r}), [record(), record()])
except PlumbError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("cannot write the record: File too large")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["s1.jsonl"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_loses_nothing_that_was_written(tmp_path, monkeypatch):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=True)
    try:
        monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
        file = store.session_file("local", "s1")
        store.write(file, [record()])
        with pytest.raises(PlumbError, match="No space left on device"):
            store.write(file, [record() for _ in range(100)])
        assert stored.read_all() == ([record()], [])
        assert [path.name for path in file.parent.iterdir()] == ["s1.jsonl"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_find_by_prefix(results):
    later = record(id="0123ffffffff", time="2026-01-02T00:00:00.000Z")
    store.write(store.session_file("local", "s1"), [record(), later])
    assert query.find("01234").id == "0123456789ab"
    assert query.find("last").id == "0123ffffffff"
    with pytest.raises(PlumbError, match="begins 2 ids"):
        query.find("0123")
    with pytest.raises(PlumbError, match="no record 'ab'"):
        query.find("ab")
