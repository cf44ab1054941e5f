"""Which files of a program count as those of a launch: what it wrote after its begin, wherever that is."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.launch.output import Written
from plumbline.parsers.application import Rules

OLD = "t 9.87654321\n"
NEW = "t 1.23456789\n"


def rules(name: str, **more: str) -> Rules:
    return msgspec.convert({"figures": {"t": {"pattern": "t (.*)", "file": name, **more}}}, Rules)


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder with ``old.txt``, and in it the folder of a launch, which begins later."""
    older = [tmp_path / "old.txt", tmp_path / "data" / "out.txt"]
    for file in older:
        file.parent.mkdir(exist_ok=True)
        file.write_text(OLD)
    files.make_anew(tmp_path / "launch")
    begin = (tmp_path / "launch" / files.MARK).stat().st_mtime_ns
    for file in older:  # as if an earlier launch had just written it
        os.utime(file, ns=(begin - 50_000_000, begin - 50_000_000))
    (tmp_path / "launch" / "data").symlink_to(tmp_path / "data")
    return tmp_path


def texts(place: Path, name: str, program: Callable[[Path], object], **more: str) -> dict[str, str]:
    """What counts of a launch whose program is ``program``, which gets the folder where it runs."""
    begun = Written(place / "launch", rules(name.format(place=place), **more))
    program(place / "launch")
    return {file.replace(str(place), "{place}"): text for file, text in begun.texts().items()}


def nothing(_: Path) -> None:
    """A program that writes nothing."""


OLDER: dict[str, tuple[str, Callable[[Path], object]]] = {
    "an absolute path": ("{place}/old.txt", nothing),
    "above the folder": ("../old.txt", nothing),
    "below the inputs": ("data/out.txt", nothing),
    "a pattern": ("data/*.txt", nothing),
    "a symbolic link": ("out.txt", lambda folder: (folder / "out.txt").symlink_to(folder.parent / "old.txt")),
    "a hard link": ("out.txt", lambda folder: os.link(folder.parent / "old.txt", folder / "out.txt")),
    "a file that was moved": ("out.txt", lambda folder: (folder.parent / "old.txt").rename(folder / "out.txt")),
    "a copy with its time": ("out.txt", lambda folder: shutil.copy2(folder.parent / "old.txt", folder / "out.txt")),
    "another mode": ("../old.txt", lambda folder: (folder.parent / "old.txt").chmod(0o600)),
}


@pytest.mark.parametrize("how", OLDER)
def test_a_file_of_before_the_launch_is_refused(place, how):
    name, program = OLDER[how]
    with pytest.raises(PlumbError) as raised:
        texts(place, name, program)
    assert "is older than the launch, which did not write it" in str(raised.value)


def rewrite(folder: Path) -> None:
    (folder.parent / "old.txt").write_text(NEW)


@pytest.mark.parametrize(("name", "program"), [
    ("out.txt", lambda folder: (folder / "out.txt").write_text(NEW)),
    ("{place}/old.txt", rewrite),
    ("../old.txt", rewrite),
    ("data/new.txt", lambda folder: (folder / "data" / "new.txt").write_text(NEW)),
    ("data/n*.txt", lambda folder: (folder / "data" / "new.txt").write_text(NEW)),
    ("HPCG-Benchmark_3.1_*.txt", lambda folder: (folder / "HPCG-Benchmark_3.1_2026-11-29.txt").write_text(NEW)),
    ("{place}/*.txt", lambda folder: (folder.parent / "new.txt").write_text(NEW)),
    ("a[1].txt", lambda folder: (folder / "a[1].txt").write_text(NEW)),
])  # fmt: skip
def test_what_the_launch_wrote_is_read_wherever_it_is(place, name, program):
    assert texts(place, name, program) == {name: NEW}


def test_a_file_that_is_moved_to_its_name_when_it_is_complete_is_read(place):
    def program(folder: Path) -> None:
        (folder / "out.part").write_text(NEW)
        (folder / "out.part").rename(folder.parent / "old.txt")

    assert texts(place, "{place}/old.txt", program) == {"{place}/old.txt": NEW}


def append(folder: Path) -> None:
    with (folder.parent / "old.txt").open("a") as log:
        log.write(NEW)


def test_of_a_file_that_grew_only_the_end_counts(place):
    assert texts(place, "../old.txt", append) == {"../old.txt": NEW}
    found = texts(place, "../old.txt", append, pattern="", csv="t")
    assert found == {"../old.txt": OLD + NEW}, "the line that names columns stays"


def test_a_pattern_of_several_new_files_is_refused(place):
    def program(folder: Path) -> None:
        for name in ("a.txt", "b.txt"):
            (folder / name).write_text(NEW)

    with pytest.raises(PlumbError, match=r"the launch wrote 2 files \*\.txt: a\.txt, b\.txt"):
        texts(place, "*.txt", program)


@pytest.mark.parametrize("name", ["out.txt", "*.log", "/nowhere/out.txt", ".", ""])
def test_an_absent_file_is_left_out(place, name):
    assert texts(place, name, nothing) == {}


def test_what_is_no_regular_file_is_not_opened(place):
    assert texts(place, "out.txt", lambda folder: os.mkfifo(folder / "out.txt")) == {}


def test_clocks_of_several_nodes_may_differ_a_little(place):
    begun = Written(place / "launch", rules("out.txt"), nodes=2)
    (place / "launch" / "out.txt").write_text(NEW)
    slow = time.time_ns() - 1_000_000_000
    os.utime(place / "launch" / "out.txt", ns=(slow, slow))
    assert begun.texts() == {"out.txt": NEW}
