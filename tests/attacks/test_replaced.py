"""Programs and libraries that are not those of the stack, or change while a session runs."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import processes
import pytest
import stack_manifest
from msgspec.structs import replace
from odd_stack import STREAM_OUTPUT, Bench, bench, results  # noqa: F401
from samples import record

from plumbline.base.errors import PlumbError
from plumbline.gate.live import GateBench
from plumbline.judge.decide import decide
from plumbline.judge.pairs import read_pairs
from plumbline.launch.program_files import Files
from plumbline.measure import driver
from plumbline.records import store
from plumbline.records.model import convert
from plumbline.show import diff
from plumbline.stacks import libraries, manifest
from plumbline.stacks.manifest import Launcher
from plumbline.statistics.paired import PairedRule


def append(file, text="\n# changed\n"):
    with file.open("a") as stream:
        stream.write(text)


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program"
    file.write_text("#!/bin/sh\n")
    return file


def wait_for_a_tick(file):
    """Until the kernel's clock, which goes in ticks, gives other times than those of ``file``."""
    clock = file.with_name("clock")

    def ticked():
        clock.touch()
        return clock.stat().st_ctime_ns > file.stat().st_ctime_ns

    processes.wait_until(ticked, "a tick of the file system's clock")


def replaced(file):
    other = file.with_name("other")
    other.write_text("#!/bin/sh\nexit\n")
    other.replace(file)


def edited_with_the_old_times(file):
    before = file.stat()
    file.write_text("#!/bin/zs\n")  # as long as it was
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [append, replaced, edited_with_the_old_times, Path.unlink])
def test_each_change_of_a_file_is_seen_until_it_is_undone(program, change):
    watched = Files([program], {})
    assert watched.changes() == []
    wait_for_a_tick(program)
    change(program)
    assert [str(program) in line for line in watched.changes()] == [True]
    assert len(watched.changes()) == 1
    program.write_text("#!/bin/sh\n")
    assert watched.changes() == []


def test_a_file_that_only_looks_changed_is_none(program):
    watched = Files([], {program: manifest.sha256(program)})
    program.touch()
    program.chmod(0o755)
    assert watched.changes() == []


@pytest.mark.e2e
def test_a_program_that_changes_in_the_middle_is_not_measured(bench):  # noqa: F811
    """The second launch changes the program for the third: so that is invalid, and the second too."""
    more = "\nimport os\nif os.getcwd().endswith('launch-1'): open(__file__, 'a').write('# changed')\n"
    bench.stack(STREAM_OUTPUT + more)
    _, records = driver.run([bench.variant(launches=3)], bench.folder / "work")
    launches = records[0].launches
    assert [launch.verified for launch in launches] == [True, False, False]
    assert launches[2].reasons == [f"{bench.folder}/odd.py was changed since the session began"]
    assert (records[0].verdict, records[0].figures) == ("invalid", [])


@pytest.mark.e2e
def test_a_candidate_replaced_in_the_middle_makes_the_gate_invalid(bench):  # noqa: F811
    for name in ("old", "new"):
        bench.stack(STREAM_OUTPUT, name=name)
    couple = [bench.variant(stack=name, name="twin") for name in ("old", "new")]
    begun = SimpleNamespace(couples=[couple], name=store.new_session(), terms=SimpleNamespace(seed=1))
    sides = GateBench(begun, bench.folder / "work")
    records = sides.couple(0)
    for pair in range(4):
        if pair == 2:
            append(bench.folder / "new.py")
        for side in (0, 1):
            records[side].launches.append(sides.launch(side, pair, 2 * pair + side))
    for side in (0, 1):
        sides.settle(side)
    for one in records:
        one.state = "complete"
    store.write(file := store.session_file("local", records[0].session), records)
    (verdict,) = decide(read_pairs(file), PairedRule())
    assert verdict.state == "INVALID"
    assert "new.py was changed since the session began" in verdict.reason


@pytest.fixture
def linked(tmp_path):
    """The manifest of a stack whose program is linked with its MPI library, that with another, and its folder."""
    lib, odd = tmp_path / "mpi" / "lib", tmp_path / "odd.c"
    (lib / "openmpi").mkdir(parents=True)
    odd.write_text("int odd;")
    for name, more in (("libopen-pal.so.1080", []), ("libmpi.so.40", [f"-L{lib}", "-l:libopen-pal.so.1080"])):
        options = ["-shared", "-fPIC", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", *more]
        subprocess.run(["gcc", *options, "-o", lib / name, odd], check=True)
    shutil.copy(lib / "libopen-pal.so.1080", lib / "openmpi" / "mca_btl_sm.so")
    odd.write_text("int main(void) { return 0; }")
    program = tmp_path / "mpi" / "bin" / "program"
    program.parent.mkdir()
    options = ["-Wl,--no-as-needed", f"-Wl,-rpath-link,{lib}", f"-L{lib}", "-l:libmpi.so.40", "-l:libopen-pal.so.1080"]
    subprocess.run(["gcc", "-o", program, odd, *options], check=True)
    stack = replace(
        stack_manifest.made("fake", "openmpi", environment={"LD_LIBRARY_PATH": str(lib)}, prefix=str(tmp_path / "mpi")),
        provider="module",
        launcher=Launcher(family="prrte", command="/bin/true"),
        benchmarks={"x": manifest.benchmark("osu", "7", program, "by hand")},
    )
    return replace(stack, loads=libraries.loads(stack)), lib


def test_what_a_stack_loads_is_recorded_without_the_systems_own(linked):
    document, lib = linked
    assert document.loads.library == str(lib / "libmpi.so.40")
    names = [str(Path(file).relative_to(lib)) for file in document.loads.files]
    assert names == ["libmpi.so.40", "libopen-pal.so.1080", "openmpi/mca_btl_sm.so"]
    manifest.check(document)


@pytest.mark.parametrize("name", ["libmpi.so.40", "libopen-pal.so.1080", "openmpi/mca_btl_sm.so"])
def test_one_byte_more_in_a_library_is_another_stack(linked, name):
    document, lib = linked
    append(lib / name, "x")
    with pytest.raises(PlumbError, match=rf"what its programs load was changed .*{name}"):
        manifest.check(document)


@pytest.mark.parametrize(("provider", "name"), [
    *(("wheel", f"lib/python3.11/site-packages/{name}") for name in ("a.pth", "tracing/__init__.py", "mpi4py/MPI.pyc")),
    *(("module", name) for name in ("lib/openmpi/mca_btl_fast.so", "etc/openmpi-mca-params.conf")),
])  # fmt: skip
def test_a_module_a_part_or_a_settings_file_that_comes_later_is_another_stack(linked, provider, name):
    document, lib = linked
    document = replace(document, provider=provider)
    manifest.check(document)
    file = lib.parent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("of later\n")
    with pytest.raises(PlumbError, match=rf"would load what was not there before: .*{name}"):
        manifest.check(document)


def test_a_program_that_only_runs_in_the_users_environment_is_refused(linked):
    document, _ = linked
    with pytest.raises(PlumbError, match=r"program lacks .*libopen-pal\.so\.1080 \(stack fake\): launches inherit no"):
        libraries.loads(replace(document, environment={}))


def test_an_updated_library_of_the_system_is_another_circumstance():
    def with_libc(build, when):
        libc = {"path": "/lib/libc.so.6", "build_id": build, "bytes": 5, "modified_ns": when}
        return convert(record(loaded=[libc]))

    first = with_libc("aa", 1)
    assert diff.differences(first, with_libc("aa", 2)) == []
    assert diff.differences(first, with_libc("bb", 1)) == [("loaded./lib/libc.so.6", "5 bytes, aa", "5 bytes, bb")]
    assert diff.differences(first, convert(record())) == []  # of an earlier version


def test_a_library_that_is_gone_and_a_stack_of_an_earlier_version_are_refused(linked):
    document, lib = linked
    (lib / "libopen-pal.so.1080").unlink()
    with pytest.raises(PlumbError, match=r"a file that its programs load is missing: .*libopen-pal"):
        manifest.check(document)
    (lib / "libopen-pal.so.1080").mkdir()
    with pytest.raises(PlumbError, match=r"a file that its programs load cannot be read: .*libopen-pal"):
        manifest.check(document)
    with pytest.raises(PlumbError, match="made by an earlier version"):
        manifest.check(replace(document, loads=None))
