"""Building the kernels of a stack: when, from what, and what a failure leaves behind."""

import threading
from pathlib import Path
from typing import Any

import pytest
import spack_site
from msgspec.structs import replace
from test_stacks import make_stack

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.mpi.settings import Configuration
from plumbline.stacks import abi, blas, fetch, kernels, manifest, stream
from plumbline.stacks.manifest import Fingerprint, Loads, Manifest, Tuned


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one kernel, a stack called ``fake``, and tools that do nothing but install a program."""
    root = tmp_path / "checkout"
    monkeypatch.setattr(paths, "root", lambda: root)
    spack_site.copy_environments(root)
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    folder = root / "custom-kernels"
    for part in kernels.PARTS:
        (folder / part).mkdir(parents=True)
    (folder / "kernels/ranks").mkdir()
    (folder / "kernels/ranks/pi.c").write_text("int main(void) {}\n")
    make_stack(tmp_path / "stacks", "fake")
    (tmp_path / "stacks" / "fake" / "bin" / "mpicc").write_text("#!/bin/sh\n")
    monkeypatch.setattr(stream.Compiler, "find", lambda: stream.Compiler("/usr/bin/gcc", "12.2.0"))
    monkeypatch.setattr(stream.Compiler, "native", lambda self: "znver9")
    monkeypatch.setattr(blas, "prefix", lambda: paths.stacks() / "blas")
    monkeypatch.setattr(fetch, "call", _call)
    return folder


def _call(command: list[str], *_: Any) -> str:
    if command[0] == "ldd":
        return f"{abi.LIBRARY} => {paths.stacks() / 'fake' / 'lib' / kernels.ABI_LIBRARY} (0x00007f)\n"
    if "--install" in command:
        program = Path(command[-1]) / "bin" / "pi"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return ""


def test_kernels_are_built_once_and_again_when_a_source_changes(source):
    assert kernels.stale("fake") == "there are none yet"
    assert kernels.refresh("fake")
    entry = manifest.load("fake").benchmarks["pi"]
    assert entry.suite == "kernels"
    assert entry.sha256 == manifest.sha256(Path(entry.file))
    assert not kernels.refresh("fake")
    (source / "kernels/ranks/pi.c").write_text("int main(void) { return 0; }\n")
    assert kernels.stale("fake") == "their sources, the compiler or the library changed"
    assert kernels.refresh("fake")
    assert kernels.stale("fake") is None
    manifest.save(replace(manifest.load("fake"), benchmarks={}))  # the rest of the stack was made again
    assert kernels.refresh("fake")


def test_kernels_older_than_their_sources_are_one_line(source, capsys, refused, output_of):
    kernels.refresh("fake")
    assert kernels.outdated(manifest.load("fake")) is None
    assert cli.main(["stack", "check", "fake"]) == 0
    (source / "kernels/ranks/pi.c").write_text("int main(void) { return 0; }\n")
    capsys.readouterr()
    assert "kernels older than their sources: plumb stack install fake" in output_of(0, "stack", "list")
    for command in (["stack", "check", "fake"], ["tune", "fake"]):
        line = refused(2, *command)
        assert line.startswith("plumb: the kernels of stack fake are older than their sources")
        assert line.endswith("plumb stack install fake\n")


def test_a_tuned_stack_has_the_kernels_of_the_one_that_it_is_made_of(source):
    kernels.refresh("fake")
    (source / "kernels/ranks/pi.c").unlink()
    where = Fingerprint("", "", "", 2, "compact")
    of_fake = {"name": "fake+tuned", "tuned": Tuned("fake", "", "", where, Configuration())}
    loads = Loads(library=None, files={})
    told = kernels.outdated(replace(manifest.load("fake"), settings={"x": "1"}, loads=loads, **of_fake))
    assert told is not None
    assert told.cure == "plumb stack install fake"


def test_of_kernels_that_were_not_built_here_nothing_is_said(source):
    assert kernels.outdated(manifest.load("fake")) is None


def test_the_other_benchmarks_stay_in_the_manifest(source):
    before = set(manifest.load("fake").benchmarks)
    kernels.refresh("fake")
    assert set(manifest.load("fake").benchmarks) == before | {"pi"}


def test_a_kernel_that_was_changed_is_built_again(source):
    kernels.refresh("fake")
    (paths.stacks() / "fake" / "kernels" / "bin" / "pi").write_text("#!/bin/false\n")
    assert "is not the program that was recorded" in str(kernels.stale("fake"))
    kernels.refresh("fake")
    manifest.check(manifest.load("fake"))


def test_a_changed_mpi_library_stays_one_when_kernels_are_built_and_another_blas_is_theirs(source):
    document = manifest.load("fake")
    files = [paths.stacks() / "fake" / "libmpi.so", blas.prefix() / "lib" / "libblas.so"]
    files[1].parent.mkdir(parents=True)
    for file in files:
        file.write_text("as it was")
    loads = Loads(library=None, files={str(file): manifest.sha256(file) for file in files})
    manifest.save(replace(document, loads=loads))
    for file in files:
        file.write_text("another")
    kernels.refresh("fake")
    (problem,) = manifest.problems(manifest.load("fake"))
    assert problem.endswith(str(files[0]))


def test_a_failed_build_leaves_the_old_programs(source, monkeypatch):
    kernels.refresh("fake")
    (source / "kernels/ranks/pi.c").write_text("int main(\n")

    def fail(command: list[str], complaint: str, owner: str, *_: Any) -> str:
        raise PlumbError(f"{complaint}: pi.c:1: error", owner)

    monkeypatch.setattr(fetch, "call", fail)
    with pytest.raises(PlumbError, match=r"the kernels do not compile: pi\.c:1: error"):
        kernels.refresh("fake")
    manifest.check(manifest.load("fake"))


def test_a_stack_without_a_compiler_wrapper_is_refused(source):
    (paths.stacks() / "fake" / "bin" / "mpicc").unlink()
    with pytest.raises(PlumbError, match="has no compiler wrapper"):
        kernels.refresh("fake")


def test_abi_builds_that_no_stack_refers_to_are_removed(source):
    old = paths.stacks() / "abi" / "0123456789ab"
    (old / "bin").mkdir(parents=True)
    kernels.refresh("fake")
    assert not old.exists()


def test_abi_builds_stay_while_a_manifest_cannot_be_read(source):
    old = paths.stacks() / "abi" / "0123456789ab"
    (old / "bin").mkdir(parents=True)
    damaged = make_stack(paths.stacks(), "damaged")
    assert damaged
    manifest.path("damaged").write_text("{")
    kernels.refresh("fake")
    assert old.exists()


def test_another_stack_does_not_remove_an_abi_build_that_no_manifest_names_yet(source, monkeypatch):
    """Just before ``fake`` saves its manifest, ``other`` builds its kernels and removes what nothing refers to."""
    library = paths.stacks() / "fake" / "lib" / abi.LIBRARY
    library.parent.mkdir()
    library.touch()
    make_stack(paths.stacks(), "other")
    (paths.stacks() / "other" / "bin" / "mpicc").touch()
    waits = threading.Event()
    monkeypatch.setattr(stacks, "print", lambda *_, **__: waits.set(), raising=False)
    other = threading.Thread(target=kernels.refresh, args=["other"])
    save = manifest.save

    def interrupted(document: Manifest) -> Path:
        if document.name == "fake":
            other.start()
            while other.is_alive() and not waits.is_set():
                other.join(0.01)
        return save(document)

    monkeypatch.setattr(manifest, "save", interrupted)
    kernels.refresh("fake")
    other.join()
    assert "pi-abi" in manifest.load("fake").benchmarks
    manifest.check(manifest.load("fake"))


def test_the_kernels_are_compiled_in_the_build_folder(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "elsewhere"))
    commands: list[list[str]] = []

    def call(command: list[str], *rest: Any) -> str:
        commands.append(command)
        return _call(command, *rest)

    monkeypatch.setattr(fetch, "call", call)
    kernels.refresh("fake")
    (folder,) = [Path(command[command.index("-B") + 1]) for command in commands if "-B" in command]
    assert folder.is_relative_to(tmp_path / "elsewhere")


def test_the_compiler_error_is_the_first_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    script = "echo 'a.c:1: error: first'; echo 'a.c:2: error: second' >&2; echo 'gmake: *** Error 2' >&2; exit 2"
    with pytest.raises(PlumbError) as caught:
        fetch.call(["sh", "-c", script], "does not compile", "fake")
    assert "error: second" in caught.value.message
    assert "error: first" in (tmp_path / "fake.log").read_text()
