"""Whether this host is the one that a lock of Spack is for: its system, and the compilers that are there."""

import platform

import msgspec
import pytest

from plumbline.base.errors import PlumbError
from plumbline.extras.spack import environments, programs, sites
from plumbline.extras.spack.lock import Architecture, Attributes, Dependency, Edge, External, Lock, Node
from plumbline.extras.spack.programs import Package
from plumbline.stacks.manifest import Compiler


@pytest.fixture
def release(monkeypatch):
    def set_(name, version):
        found = {"ID": name, "VERSION_ID": version}
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: found)

    return set_


@pytest.mark.parametrize(("system", "name", "version", "fits"), [
    ("debian12", "debian", "12", True),
    ("almalinux9", "almalinux", "9.4", True),
    ("ubuntu24.04", "ubuntu", "24.04", True),
    ("debian12", "ubuntu", "24.04", False),
    ("debian12", "debian", "13", False),
])  # fmt: skip
def test_a_lock_of_another_system_is_refused(release, system, name, version, fits):
    release(name, version)
    node = Node("stream", "5.10", Architecture(system, "x86_64"))
    if fits:
        sites.check_system(node, "here")
    else:
        with pytest.raises(PlumbError, match=rf"the lock is for {system}, this machine has {name} {version} \(here\)"):
            sites.check_system(node, "here")


def script(folder, text):
    file = folder / "cc"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def lock(program, *languages):
    """A lock with one package, which is compiled by ``program``."""
    arch = {"arch": {"platform_os": "debian12", "target": "x86_64"}}
    compilers = {"c": str(program), "fortran": "/nowhere/gfortran"}
    gcc = {"name": "gcc", "version": "12.2.0", "external": {"extra_attributes": {"compilers": compilers}}}
    needed = [{"hash": "g", "name": "gcc", "parameters": {"virtuals": ["c", *languages]}}]
    nodes = {"g": gcc | arch, "s": {"name": "osu", "version": "7.5", "dependencies": needed} | arch}
    return msgspec.convert({"roots": [], "spack": {}, "concrete_specs": nodes}, Lock)


@pytest.mark.parametrize(("answer", "told"), [
    ("echo 12.2.0", None),
    ('[ "$1" = -dumpversion ] && echo 12.2.0', None),  # clang knows no -dumpfullversion
    ("echo 13.4.0", "is 13.4.0"),
    ("exit 1", "is not there"),
])  # fmt: skip
def test_the_compiler_is_asked_for_its_version(tmp_path, answer, told):
    program = script(tmp_path, answer)
    if told is None:
        sites.check_compilers(lock(program), "here")
    else:
        with pytest.raises(PlumbError, match=rf"the lock is for gcc 12\.2\.0, {program} {told} \(here\)"):
            sites.check_compilers(lock(program), "here")


def test_an_absent_compiler_counts_if_something_is_built_with_it(tmp_path):
    program = script(tmp_path, "echo 12.2.0")
    sites.check_compilers(lock(program), "here")
    document = lock(program, "fortran")
    with pytest.raises(PlumbError, match="/nowhere/gfortran is not there"):
        sites.check_compilers(document, "here")
    sites.check_compilers(document, "here", absent=False)


def test_the_committed_locks_are_for_one_compiler():
    names = {node.name for node in environments.read("openmpi").nodes if node.name in ("gcc", "llvm")}
    assert names == {"gcc"}


def test_another_compiler_than_gcc_is_named(tmp_path):
    arch = Architecture("debian12", "x86_64_v3")
    needed = (Dependency("llvm", "l", Edge(virtuals=("c",))),)
    llvm = Package("l", tmp_path, Node("llvm", "19.1.0", arch))
    node = Node("osu-micro-benchmarks", "1.0", arch, dependencies=needed)
    osu = Package("k", tmp_path, node)
    found = programs.compiler({"llvm": llvm, "osu-micro-benchmarks": osu})
    assert found == Compiler(name="llvm", version="19.1.0", path=str(tmp_path / "bin" / "clang"))


@pytest.mark.parametrize(("target", "compiler", "version", "options"), [
    ("x86_64_v3", "gcc", "12.2.0", ["-march=x86-64-v3", "-mtune=generic"]),
    ("neoverse_v2", "gcc", "12.2.0", ["-march=armv9-a+i8mm+bf16", "-mtune=cortex-a710"]),
    ("x86_64_v3", "llvm", "14.0.6", ["-march=x86-64-v3", "-mtune=generic"]),
])  # fmt: skip
def test_stream_is_compiled_for_the_target_of_the_lock(target, compiler, version, options):
    assert sites.target_options(Node("osu", "7.5", Architecture("debian12", target)), compiler, version) == options


def test_a_compiler_elsewhere_is_linked_with_its_own_openmp(tmp_path):
    for name in ("bin", "lib"):
        (tmp_path / name).mkdir()
    arch, program = Architecture("debian12", "x86_64_v3"), str(tmp_path / "bin" / "clang")
    attributes = Attributes(compilers={"c": program})
    llvm = Node("llvm", "14.0.6", arch, external=External(extra_attributes=attributes))
    osu = Node("osu-micro-benchmarks", "1.0", arch, dependencies=(Dependency("llvm", "l", Edge(("c",))),))
    packages = {node.name: Package(node.name[0], tmp_path, node) for node in (llvm, osu)}
    found = programs.stream_compiler(packages)
    assert (found.path, found.name, found.links) == (program, "llvm", (f"-Wl,-rpath,{tmp_path / 'lib'}",))
