"""Which sides of a gate are the same program: what a traced launch of each looks at, and attacks on that."""

import os
import py_compile
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import samples

from plumbline.base import paths
from plumbline.gate import same
from plumbline.judge import decide
from plumbline.judge.pairs import Column, Pairs
from plumbline.records import model
from plumbline.statistics.paired import PairedRule

SIDES = ("0123456789abcdef", "fedcba9876543210")
SCRIPT = '#!/bin/sh\ncd "${0%/*}"\n'


@dataclass
class Job:
    """As much of a prepared launch as counts here."""

    record: model.Record
    plan: dict
    manifest: SimpleNamespace
    ranks: SimpleNamespace

    @property
    def variant(self):
        return self.record.variant


@pytest.fixture
def both(tmp_path, monkeypatch):
    """``both(program, files)``: whether two builds of a script are the same, whose ``files`` are for either side."""
    tools = paths.tools()
    monkeypatch.setenv("PLUMB_TOOLS", str(tools))
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))

    def launch(job, index, position, folder):
        folder.mkdir(parents=True)
        ended = subprocess.run(job.record.command, cwd=folder, capture_output=True, check=False)
        return SimpleNamespace(verified=ended.returncode == 0, reasons=[ended.stderr.decode()])

    monkeypatch.setattr(same.pipeline, "launch", launch)

    def job(side, program, files, environment, copy):
        folder = tmp_path / "build" / "applications" / "app" / SIDES[side] / "source"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "d").mkdir(parents=True)
        for name, texts in {"app": (SCRIPT + program,) * 2, **files}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            if texts[side] == "|":
                os.mkfifo(folder / name)
            elif (texts[side] or "").startswith("->"):
                (folder / name).symlink_to(texts[side][2:])
            elif texts[side] is not None:
                (folder / name).write_text(texts[side].replace("SIDE", SIDES[side]))
                (folder / name).chmod(0o755)
        context = {"copy": {"copy": str(folder / copy)} if copy else {}, "built": str(folder.parent / "built.json")}
        made = model.convert(samples.record(variant=samples.variant(context=context)))
        made.command = [str(folder / "app")]
        made.benchmark = msgspec.structs.replace(
            made.benchmark, file=str(folder / "app"), sha256=same.files.sha256(folder / "app")
        )
        around = {"PATH": os.environ["PATH"], **environment}
        return Job(made, {}, SimpleNamespace(container=None), SimpleNamespace(environment=around))

    def call(program="", files=None, environments=({}, {}), copy=None, before=lambda side: None):
        jobs = [job(side, program, files or {}, environments[side], copy) for side in (0, 1)]
        [before(side) for side in (0, 1)]
        return same.compare(*jobs, tmp_path / "looked-at")

    return call


def test_what_no_launch_reads_does_not_count(both):
    files = {"README": ("a", "b"), "c.txt": ("c", "c"), "made": ("in SIDE", "in SIDE")}
    assert both("cat c.txt; ls d", files) == (True, [])


@pytest.mark.parametrize(("program", "files", "name"), [
    ("cat c.txt", {"c.txt": ("a", "b")}, "c.txt"),
    ('name=c; sh -c "cat $name.txt"', {"c.txt": ("a", "b")}, "c.txt"),
    (". ./helper.sh", {"helper.sh": ("true", "true #")}, "helper.sh"),
    ("test -e FAST || true", {"FAST": (None, "")}, "FAST"),
    ("ls d", {"d/more": (None, "")}, "d"),
    ("cat /proc/self/cwd/c.txt", {"c.txt": ("a", "b")}, "c.txt"),
    ("cat //proc/self/cwd/c.txt", {"c.txt": ("a", "b")}, "c.txt"),
    ("exec ./next", {"next": ("#!./loads\n", "#!./loads\n"), "loads": ("#!/bin/sh\n", "#!/bin/sh\n#")}, "loads"),
])  # fmt: skip
def test_another_file_that_a_launch_looks_at_is_another_program(both, program, files, name):
    is_same, (note,) = both(program, files)
    assert not is_same
    assert note.endswith(f"source/{name}")


def test_a_file_of_another_name_outside_of_the_build(both, tmp_path):
    for name in SIDES:
        (tmp_path / name).write_text("as large")
    is_same, (note,) = both(f'cat {tmp_path}/"$(basename "$(dirname "$PWD")")"')
    assert not is_same
    assert SIDES[0] in note


def test_links_and_places_that_differ_are_another_program(both, tmp_path):
    """Each of these was the same program once: no file that is read has another content."""
    text = ("text", "text")
    for program, files in (
        ("cat a b", {"one": ("1", "1"), "two": ("2", "2"), "a": ("->one", "->two"), "b": ("->two", "->one")}),
        ("cat a/f b/f", {"d/f": text, "e": ("->d", "->d"), "a": ("->d", "->missing"), "b": ("->e", "->e")}),
        ("readlink mode", {"mode": ("->fast", "->slow")}),
        ("cat mode", {"mode": ("->/dev/null", "->/proc/version")}),
        ("ls mode/", {"mode": ("->/usr", "->/var")}),
    ):
        assert not both(program, files)[0], program


@pytest.mark.parametrize(
    ("compiled", "is_same"),
    [((None, None), True), ((1, None), True), ((1, 1), True), ((-1, None), False), ((-1, 1), False)],
)
def test_what_python_compiles_in_a_launch_counts_as_its_source(both, tmp_path, compiled, is_same):
    """Not so what the build compiled (before its mark): nobody knows from which source."""
    places = [tmp_path / "build" / "applications" / "app" / side for side in SIDES]
    call = f"exec {sys.executable} study.py"
    files = {"study.py": ("import part",) * 2, "part.py": ("print(1)",) * 2}
    name = f"part.{sys.implementation.cache_tag}.pyc"

    def launched(side):
        """Before its traced launches, as one that was not traced."""
        (places[side] / "built.json").touch()
        if compiled[side]:
            source = places[side] / "source" / "part.py"
            os.utime(source, (side, side))
            file = py_compile.compile(str(source), str(source.parent / "__pycache__" / name))
            now = (places[side] / "built.json").stat().st_mtime + compiled[side]
            os.utime(file, (now, now))

    assert both(call, files, before=launched)[0] is is_same
    assert not both(call, {**files, "part.py": ("print(1)", "print(2)")}, before=launched)[0]


def test_folders_and_shared_memory_of_a_side_outside_of_the_build(both, tmp_path):
    for place in (tmp_path, Path("/dev/shm")):
        mark = place / SIDES[0]
        mark.mkdir()
        try:
            assert not both(f'test -d {place}/"$(basename "$(dirname "$PWD")")"; true')[0]
        finally:
            mark.rmdir()


def test_launches_that_differ_among_each_other_are_measured(both, tmp_path):
    state = tmp_path / "state"
    is_same, (note,) = both(f"test -e {state} && cat c.txt; touch {state}", {"c.txt": ("a", "b")})
    assert not is_same
    assert "not each of its launches" in note
    assert not both("test -e c.pipe", {"c.pipe": ("|", "|")})[0]


def test_a_daemon_that_reads_files_for_the_program_is_measured(both, tmp_path):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "daemon"))
        daemon.listen()
        call = f"import socket; socket.socket(socket.AF_UNIX).connect('{tmp_path}/daemon')"
        is_same, (note,) = both(f'{sys.executable} -I -c "{call}"')
    assert not is_same
    assert "another program may read files" in note


def test_copies_have_the_files_of_linked_folders(both):
    for files in (
        {"c/f": ("1", "2"), "d/c": ("->../c", "->../c")},
        {"d/f": ("->a", "->b"), "d/a": ("1", "1"), "d/b": ("1", "1")},
    ):
        assert not both("true", files, copy="d")[0]


def test_other_circumstances_are_another_program(both):
    assert both(environments=({"MODE": "1"}, {"MODE": "2"})) == (False, [])


@pytest.mark.parametrize(("program", "why"), [("exit 3", "not verified"), ("unshare --mount true || true", "not seen")])
def test_a_launch_that_fails_or_may_look_at_hidden_files_while_it_is_traced_is_measured(both, program, why):
    is_same, (note,) = both(program)
    assert not is_same
    assert why in note


def test_a_build_that_leaves_its_path_or_its_date_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
    records = []
    for side, when in zip(SIDES, ("12:00:01", "12:00:02"), strict=True):
        folder = tmp_path / "build" / "applications" / "app" / side
        folder.mkdir(parents=True)
        (folder / "app.c").write_text(f'const char *when = "at {when}";\nint main(void) {{ return !when; }}\n')
        subprocess.run(["cc", "-o", folder / "app", "app.c"], cwd=folder, check=True)
        benchmark = SimpleNamespace(file=str(folder / "app"))
        records.append(SimpleNamespace(benchmark=benchmark, variant=SimpleNamespace(stack="mpich", context={})))
    (note,) = same.built_otherwise(*records)
    assert note.endswith(".rodata has a date (12:00:01): set SOURCE_DATE_EPOCH")


def test_the_reason_of_a_pass_that_was_not_measured():
    pairs = Pairs("heat: time", Column([]), Column([]), "lower", same=True)
    (verdict,) = decide.decide([pairs], PairedRule())
    assert (verdict.state, verdict.count, verdict.reason) == ("PASS", 0, decide.SAME)
    assert decide.closing([verdict]) == f"gate: PASS: 1 PASS; {decide.SAME}"
