"""Locks on files, ended with the process that holds one; folders that only their maker removes."""

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.gate import variants

HOLDER = """
import sys
from pathlib import Path
from plumbline.base import files
with files.lock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_lock_keeps_another_process_out_until_its_holder_ends(tmp_path):
    path = tmp_path / "new" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError), files.lock(path, wait=False):
            pass
        holder.kill()
    with files.lock(path):
        pass


def test_a_lock_that_was_released_is_free_again(tmp_path):
    for _ in range(2):
        with files.lock(tmp_path / "lock", wait=False):
            pass


def test_what_is_written_for_people_replaces_a_file_but_no_device(tmp_path):
    file = tmp_path / "new" / "verdicts.json"
    for text in ("old", "new"):
        files.write("the verdicts", file, text)
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    assert file.read_text() == "new"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, text=True) as reader:
        files.write("the verdicts", fifo, "through")
        assert reader.communicate()[0] == "through"
    assert fifo.is_fifo()
    files.write("the verdicts", Path("/dev/null"), "gone")
    assert Path("/dev/null").is_char_device()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        old = Path(folder) / "verdicts"
        old.write_text("old")
        before = old.stat().st_ino
        files.write("the verdicts", old, "new")
        assert (old.read_text(), old.stat().st_ino == before) == ("new", False)


def test_a_file_that_cannot_be_written_is_named_with_what_it_was_to_hold(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(PlumbError, match=r"^cannot write the verdicts: Is a directory \(.*/folder\): ask somebody$"):
        files.write("the verdicts", tmp_path / "folder", "text", "ask somebody")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("step", [(Path, "mkdir"), (Path, "touch"), (Path, "rename"), (shutil, "rmtree")])
@pytest.mark.parametrize("number", range(3))
def test_an_interruption_while_a_folder_is_made_anew_leaves_none_that_is_refused(tmp_path, monkeypatch, step, number):
    """After each step, the next call makes it."""
    folder = tmp_path / "launch-0"
    files.make_anew(folder)
    (folder / "output").write_text("x")
    owner, name = step
    real, calls = getattr(owner, name), itertools.count()

    def interrupted(*words: object, **more: object) -> object:
        found = real(*words, **more)
        if next(calls) == number:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as once:
        once.setattr(owner, name, interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            files.make_anew(folder)
    files.make_anew(folder)
    assert [file.name for file in folder.iterdir()] == [files.MARK]
    assert [file.name for file in tmp_path.iterdir()] == [folder.name]


def test_a_folder_of_ours_is_made_anew(tmp_path):
    folder = tmp_path / "new" / "launch-0"
    files.make_anew(folder)
    (folder / "output").mkdir()
    files.make_anew(folder)
    assert [file.name for file in folder.iterdir()] == [files.MARK]


@pytest.mark.parametrize("kind", ["folder", "file", "link", "link to nothing", "folder for a mark"])
def test_what_is_not_ours_is_never_removed(tmp_path, kind):
    path, other = tmp_path / "launch-0", tmp_path / "other"
    other.mkdir()
    (other / files.MARK).touch()
    if kind == "folder":
        path.mkdir()
        (path / "thesis.tex").write_text("years of work")
    elif kind == "file":
        path.write_text("years of work")
    elif kind == "folder for a mark":
        (path / files.MARK).mkdir(parents=True)
    else:
        path.symlink_to(other if kind == "link" else tmp_path / "gone")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PlumbError, match="not made by Plumbline"):
        files.make_anew(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_gate_removes_only_its_own_dry_run(tmp_path, monkeypatch):
    monkeypatch.setattr(variants, "subprocess", None)  # nothing may be started
    (tmp_path / "reframe").mkdir()
    (tmp_path / "reframe" / "thesis.tex").write_text("years of work")
    with pytest.raises(PlumbError, match="not made by Plumbline"):
        variants.list_variants(["mpich"], None, None, tmp_path)
    assert (tmp_path / "reframe" / "thesis.tex").read_text() == "years of work"


def test_states_are_those_of_all_files_but_git_s_and_compiled_modules(tmp_path):
    for name in ("a/b", "a/.git/c", "a/__pycache__/d.pyc", "a/__pycache__/e.nbi"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "folder").symlink_to(".")
    (tmp_path / "a" / os.fsdecode(b"odd\xff")).touch()
    before = files.states(tmp_path, tmp_path / "a")
    assert sorted(before) == ["__pycache__/e.nbi", "b", "folder", "odd\\xff"]
    (tmp_path / "a" / "b").write_text("more")
    after = files.states(tmp_path, tmp_path / "a")
    assert {name for name in before if before[name] != after[name]} == {"b"}


def test_states_where_a_folder_cannot_be_listed(tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "file").touch()
    listing = os.scandir

    def refused(folder):
        if os.fspath(folder).endswith("hidden"):
            raise PermissionError
        return listing(folder)

    monkeypatch.setattr(os, "scandir", refused)
    assert [*files.states(tmp_path, tmp_path)] == ["file"]


def test_files_below_are_also_those_of_linked_folders_without_going_in_circles(tmp_path):
    for name in ("a/b/file", "c/file"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    links = {
        "a/d": "../c",
        "a/e": "../c",
        "c/up": "../a",
        "c/too": "../a",
        "a/b/up": "..",
        "a/gone": "loop",
        "a/loop": "gone",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    names = [file.relative_to(tmp_path).as_posix() for file in files.below(tmp_path / "a")]
    assert names == ["a/b/file", "a/d/file", "a/e/file"]
    assert files.below(tmp_path / "none") == []
    with pytest.raises(OSError, match="a link to a folder that it is in"):
        files.copy(tmp_path / "a", tmp_path / "copy")


def test_a_copy_has_times_and_modes_and_no_link_into_what_it_is_of(tmp_path):
    source = tmp_path / "source"
    (source / "in").mkdir(parents=True)
    (source / "in" / "file").write_text("first")
    (source / "in" / "file").chmod(0o741)
    os.utime(source / "in" / "file", ns=(1, 123456789))
    (source / "link").symlink_to("in/file")
    (source / "nowhere").symlink_to("absent")
    files.copy(source, tmp_path / "copy")
    status = (tmp_path / "copy" / "in" / "file").stat()
    assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o741, 123456789)
    (tmp_path / "copy" / "link").write_text("second")
    assert (source / "in" / "file").read_text() == "first"
    os.mkfifo(source / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        files.copy(source, tmp_path / "other")


def test_a_full_disk_is_named_by_its_file(tmp_path, monkeypatch):
    """write(2) and fsync(2) name no file."""
    (tmp_path / "kept").write_text("old")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(files, "sync", Mock(side_effect=full))
    with pytest.raises(OSError, match="kept"):
        files.replace(tmp_path / "kept", "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("kept", "old")]
