"""Whether this host is the one that a lock of Spack is for: its system, and the compilers that are there."""

import json
import platform

import pytest

from plumbline.base.errors import PlumbError
from plumbline.stacks.manifest import Compiler
from plumbline.stacks.spack import environments, programs, sites
from plumbline.stacks.spack.programs import Package


@pytest.fixture
def release(monkeypatch):
    def set_(name, version):
        found = {"ID": name, "VERSION_ID": version}
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: found)

    return set_


@pytest.mark.parametrize(
    ("system", "name", "version", "fits"),
    [
        ("debian12", "debian", "12", True),
        ("almalinux9", "almalinux", "9.4", True),
        ("ubuntu24.04", "ubuntu", "24.04", True),
        ("debian12", "ubuntu", "24.04", False),
        ("debian12", "debian", "13", False),
    ],
)
def test_a_lock_of_another_system_is_refused(release, system, name, version, fits):
    release(name, version)
    node = {"arch": {"platform_os": system}}
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


def lock(program, version="12.2.0", fortran="/nowhere/gfortran"):
    compilers = {"c": str(program), "fortran": fortran}
    gcc = {"name": "gcc", "version": version, "external": {"extra_attributes": {"compilers": compilers}}}
    needed = [{"hash": "g", "name": "gcc", "parameters": {"virtuals": ["c"]}}]
    return {"concrete_specs": {"g": gcc, "s": {"name": "stream", "version": "5.10", "dependencies": needed}}}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("echo 12.2.0", None),
        ('[ "$1" = -dumpversion ] && echo 12.2.0', None),  # clang knows no -dumpfullversion
        ("echo 13.4.0", "is 13.4.0"),
        ("exit 1", "is not there"),
    ],
)
def test_the_compiler_is_asked_for_its_version(tmp_path, answer, told):
    program = script(tmp_path, answer)
    if told is None:
        sites.check_compilers(lock(program), "here")
    else:
        with pytest.raises(PlumbError, match=rf"the lock is for gcc 12\.2\.0, {program} {told} \(here\)"):
            sites.check_compilers(lock(program), "here")


def test_an_absent_compiler_counts_if_something_is_built_with_it(tmp_path):
    program = script(tmp_path, "echo 12.2.0")
    document = lock(program)
    sites.check_compilers(document, "here")
    document["concrete_specs"]["s"]["dependencies"][0]["parameters"]["virtuals"].append("fortran")
    with pytest.raises(PlumbError, match="/nowhere/gfortran is not there"):
        sites.check_compilers(document, "here")
    sites.check_compilers(document, "here", absent=False)


def test_the_committed_locks_are_for_one_compiler():
    file = environments.lock("openmpi")
    document = json.loads(file.read_text())
    names = {node["name"] for node in document["concrete_specs"].values() if node["name"] in ("gcc", "llvm")}
    assert names == {"gcc"}


def test_another_compiler_than_gcc_is_named(tmp_path):
    needed = [{"hash": "l", "name": "llvm", "parameters": {"virtuals": ["c"]}}]
    llvm = Package("llvm", "19.1.0", "l", tmp_path, {})
    osu = Package("osu-micro-benchmarks", "7.5.2", "o", tmp_path, {"dependencies": needed})
    found = programs.compiler({"llvm": llvm, "osu-micro-benchmarks": osu})
    assert found == Compiler(name="llvm", version="19.1.0", path=str(tmp_path / "bin" / "clang"))
