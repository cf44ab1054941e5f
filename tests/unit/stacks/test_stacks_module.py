"""Provider ``module``: what a site already has."""

import os
import re
import subprocess

import pytest
import schema_files
import yaml
from msgspec.structs import replace

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import stacks as stack_command
from plumbline.measure.reframe import settings
from plumbline.stacks import kernels, libraries, manifest, module

ENTRY = {
    "mpi": {"family": "openmpi", "version": "4.1.4"},
    "launcher": {"family": "orte", "command": "mpirun"},
    "compiler": {"name": "gcc", "version": "12.2.0"},
    "benchmarks": {"osu_latency": {"suite": "osu", "version": "7.4", "program": "osu_latency"}},
}


REFRESH = kernels.refresh


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that writes the site's stacks; its programs are on PATH."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    for name in ("mpirun", "osu_latency"):
        file = tmp_path / "mpi" / "bin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {name}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'mpi' / 'bin'}:{os.environ['PATH']}")
    file = tmp_path / "sites" / "here" / "stacks.yaml"
    file.parent.mkdir(parents=True)

    def write(**changes):
        file.write_text(yaml.safe_dump({"stacks": {"site-openmpi": {**ENTRY, **changes}}}))
        return file

    return write


def test_a_description_becomes_a_manifest(site, tmp_path, capsys):
    site(environment={"UCX_TLS": "all"})
    assert module.names() == ("site-openmpi",)
    stacks.install("module", "site-openmpi")
    document = manifest.load("site-openmpi")
    assert document.provider == "module"
    assert document.prefix == str(tmp_path / "mpi")
    assert document.environment == {"UCX_TLS": "all"}
    assert document.mpi.abi == "openmpi"
    manifest.check(document)
    capsys.readouterr()
    stacks.install("module", "site-openmpi")
    assert capsys.readouterr().out == "site-openmpi: up to date\n"


def test_a_stack_for_own_programs_alone_names_its_mpi_library(site, tmp_path, monkeypatch):
    """Without it nothing would show that a program was built for another one."""
    file = site(benchmarks={})
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(libraries, "linked", lambda *_: {})  # this host may have the library
        with pytest.raises(PlumbError, match=r"libmpi\.so\.40 is not found") as error:
            stacks.install("module", "site-openmpi")
    assert error.value.where == str(file)
    library = tmp_path / "mpi" / "lib" / "libmpi.so.40"
    library.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    stacks.install("module", "site-openmpi")
    made = manifest.load("site-openmpi")
    assert made.benchmarks == {}
    assert "  launcher " in stack_command.text(made)
    assert made.loads
    assert made.loads.library == str(library)
    assert manifest.problems(made) == []


def test_an_accelerator_is_what_the_site_says(site):
    site()
    stacks.install("module", "site-openmpi")
    assert manifest.load("site-openmpi").accelerator is None
    site(accelerator="rocm")
    stacks.install("module", "site-openmpi")
    assert manifest.load("site-openmpi").accelerator == "rocm"
    assert settings._environment(manifest.load("site-openmpi"))["extras"]["plumb"]["accelerator"] == "rocm"
    site(accelerator="metal")
    with pytest.raises(PlumbError, match="accelerator"):
        stacks.install("module", "site-openmpi")


def test_a_changed_program_makes_it_anew(site, tmp_path):
    site()
    stacks.install("module", "site-openmpi")
    (tmp_path / "mpi/bin/osu_latency").write_text("#!/bin/sh\necho another\n")
    assert manifest.problems(manifest.load("site-openmpi"))
    stacks.install("module", "site-openmpi")
    assert not manifest.problems(manifest.load("site-openmpi"))


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A login shell, with a banner, whose module openmpi/4 has a program and sets variables."""
    profile = tmp_path / "home" / ".bash_profile"
    profile.parent.mkdir()
    load = f"PATH={tmp_path}/loaded/bin:$PATH; export UCX_TLS=rc LD_LIBRARY_PATH=/opt/ompi/lib:$LD_LIBRARY_PATH"
    unload = "unset UCX_TLS; export LD_LIBRARY_PATH=${LD_LIBRARY_PATH#/opt/ompi/lib:}"
    # a module system of this host would come back by BASH_ENV
    profile.write_text(
        f"""unset BASH_ENV; echo 'Welcome=to the machine'
        module() {{
            case "$*" in "load openmpi/4") {load} ;; "unload openmpi/4") {unload} ;; *) return 1 ;; esac
        }}
        """
    )
    program = tmp_path / "loaded" / "bin" / "osu_only_there"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(profile.parent))
    monkeypatch.delenv("BASH_ENV", raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/home/me/lib")
    one = {"suite": "osu", "version": "7", "program": "osu_only_there"}
    return {
        "benchmarks": {"osu_latency": one},
        "launcher": {"family": "orte", "command": "/bin/sh"},
        "program": program,
    }


def test_modules_are_loaded_and_recorded(site, modules):
    program = modules.pop("program")
    site(modules=["openmpi/4"], **modules)
    stacks.install("module", "site-openmpi")
    document = manifest.load("site-openmpi")
    assert document.modules == ["openmpi/4"]
    assert document.benchmarks["osu_latency"].file == str(program)
    assert document.environment == {"UCX_TLS": "rc", "LD_LIBRARY_PATH": "/opt/ompi/lib"}
    site(modules=["openmpi/5"])
    with pytest.raises(PlumbError, match="cannot load openmpi/5"):
        stacks.install("module", "site-openmpi")


def test_the_wrapper_of_a_module_builds_kernels_though_the_launcher_is_elsewhere(site, modules, monkeypatch):
    """Such as srun; otherwise the stack would have no benchmark."""
    built = []
    monkeypatch.setattr(kernels, "refresh", built.append)
    monkeypatch.setattr(module, "_add_stream", built.append)
    program = modules.pop("program")
    site(modules=["openmpi/4"], **modules)
    stacks.install("module", "site-openmpi")
    assert (manifest.load("site-openmpi").prefix, built) == ("/", [])
    program.with_name("mpicc").hardlink_to(program)
    stacks.install("module", "site-openmpi")
    assert manifest.load("site-openmpi").prefix == str(program.parents[1])
    assert built == ["site-openmpi"] * 2


def test_a_damaged_manifest_is_written_again_if_it_is_asked_for(site, modules):
    del modules["program"]
    site(modules=["openmpi/4"], **modules)
    stacks.install("module", "site-openmpi")
    manifest.path("site-openmpi").write_text("{")
    with pytest.raises(PlumbError, match="plumb stack install --force site-openmpi"):
        stacks.install("module", "site-openmpi")
    stacks.install("module", "site-openmpi", force=True)
    assert manifest.load("site-openmpi").modules == ["openmpi/4"]


def test_what_a_loaded_module_set_is_found_too(site, modules, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "rc")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/ompi/lib:/home/me/lib")
    del modules["program"]
    site(modules=["openmpi/4"], environment={"LD_LIBRARY_PATH": "/more:${LD_LIBRARY_PATH}:${TMPDIR}"}, **modules)
    stacks.install("module", "site-openmpi")
    found = manifest.load("site-openmpi").environment
    assert found == {"UCX_TLS": "rc", "LD_LIBRARY_PATH": "/more:/opt/ompi/lib:${TMPDIR}"}


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"benchmarks": {"x": {"suite": "osu", "version": "7", "program": "nowhere"}}}, "there is no program 'nowhere'"),
    ({"modules": ["$(touch x)"]}, r"stacks\.site-openmpi\.modules\[0\]"),
    ({"colour": "red"}, "colour"),
    ({"mpi": {"family": "lam", "version": "1"}}, r"mpi\.family: .*openmpi"),
])  # fmt: skip
def test_bad_descriptions_are_refused(site, changes, complaint):
    site(**changes)
    with pytest.raises(PlumbError, match=complaint):
        stacks.install("module", "site-openmpi")


@pytest.mark.parametrize(("said", "complaint"), [
    (
        'Lmod has detected the following error: The following module(s) are unknown:\n"x/1"\n\nPlease check\n',
        'Lmod has detected the following error: The following module(s) are unknown: "x/1"',
    ),
    ("ERROR: Unable to locate a modulefile for 'x/1'\n", "ERROR: Unable to locate a modulefile for 'x/1'"),
    ("profile: hello\nbash: module: command not found\n", "bash: module: command not found"),
    ("", ""),
])  # fmt: skip
def test_what_the_module_system_complains_of_is_one_line(said, complaint):
    assert module._complaint(said) == complaint


def test_unknown_and_foreign_names(site, tmp_path):
    file = site()
    with pytest.raises(PlumbError, match=r"no module stack is called 'other' .*known: site-openmpi"):
        stacks.install("module", "other")
    stacks.install("module", "site-openmpi")
    other = manifest.load("site-openmpi")
    manifest.save(replace(other, provider="wheel"))
    with pytest.raises(PlumbError, match="is of another provider"):
        stacks.install("module", "site-openmpi")
    second = tmp_path / "sites" / "there" / "stacks.yaml"
    second.parent.mkdir()
    second.write_text(file.read_text())
    with pytest.raises(PlumbError, match="is described twice"):
        module.names()


def test_the_example_of_the_page_is_valid():
    page = (paths.root() / "docs" / "stacks.md").read_text()
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    schema_files.check("module-stacks", example)


@pytest.mark.parametrize("folder", ["lib", "elsewhere"])
def test_an_mpich_as_debian_calls_its_library_is_a_stack(site, tmp_path, folder):
    entry = {"mpi": {"family": "mpich", "version": "4.0.2"}, "launcher": {"family": "hydra", "command": "mpirun"}}
    library = tmp_path / "mpi" / folder / "libmpich.so.12"
    library.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    site(**entry, benchmarks={}, environment={"LD_LIBRARY_PATH": str(library.parent)})
    stacks.install("module", "site-openmpi")
    assert manifest.load("site-openmpi").loads.library == str(library)


@pytest.fixture
def builds(site, tmp_path, monkeypatch):
    """What is built for a stack with a compiler wrapper and without benchmarks of the site; nothing is compiled."""
    library = tmp_path / "mpi/lib/libmpi.so.40"
    library.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    for name in ("mpicc", "mpicc.openmpi"):
        (tmp_path / "mpi/bin" / name).touch()
    seen = []

    def refresh(name):
        stack = manifest.load(name)
        seen.append((kernels.wrapper(stack).name, sorted(stack.benchmarks)))
        entry = manifest.benchmark("kernels", "1", tmp_path / "mpi/bin/osu_latency", "gcc")
        manifest.save(replace(stack, benchmarks={**stack.benchmarks, "pi": entry}))

    def install(archive, prefix, compiler, origin):
        return manifest.benchmark(
            "stream", "5.10", tmp_path / "mpi/bin/osu_latency", "gcc", facts={"array_elements": 1e9}
        )

    archive = tmp_path / "reframe-hpc-4.10.4.tar.gz"
    archive.touch()
    monkeypatch.setattr(kernels, "refresh", refresh)
    monkeypatch.setattr(kernels, "stale", lambda name: None if "pi" in manifest.load(name).benchmarks else "none yet")
    monkeypatch.setattr(module.stream.fetch, "download", lambda *_, **__: {"reframe-hpc": archive})
    monkeypatch.setattr(module.stream, "install", install)
    return seen


def test_a_stack_with_a_compiler_wrapper_has_stream_and_our_kernels(site, builds, capsys):
    site(benchmarks={})
    stacks.install("module", "site-openmpi")
    assert builds == [("mpicc.openmpi", ["stream"])]
    assert sorted(manifest.load("site-openmpi").benchmarks) == ["pi", "stream"]
    capsys.readouterr()
    stacks.install("module", "site-openmpi")
    assert (capsys.readouterr().out, len(builds)) == ("site-openmpi: up to date\n", 1)
    site(benchmarks={}, environment={"UCX_TLS": "all"})
    stacks.install("module", "site-openmpi")
    assert len(builds) == 2


def test_what_cannot_be_built_is_said_and_the_site_s_own_programs_stay(site, builds, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PlumbError("pip cannot get the packages", "stack site-openmpi")

    site()
    with monkeypatch.context() as offline:
        offline.setattr(module.stream.fetch, "download", refuse)
        stacks.install("module", "site-openmpi")
    assert "site-openmpi: pip cannot get the packages" in capsys.readouterr().out
    assert sorted(manifest.load("site-openmpi").benchmarks) == ["osu_latency", "pi"]
    stacks.install("module", "site-openmpi")
    assert sorted(manifest.load("site-openmpi").benchmarks) == ["osu_latency", "pi", "stream"]


def test_a_benchmark_that_is_described_no_more_is_gone(site, builds):
    site()
    stacks.install("module", "site-openmpi")
    site(benchmarks={})
    stacks.install("module", "site-openmpi")
    assert sorted(manifest.load("site-openmpi").benchmarks) == ["pi", "stream"]


def test_kernels_that_a_site_describes_are_not_built(site, builds):
    site(benchmarks={"pi": {"suite": "kernels", "version": "1", "program": "osu_latency"}})
    stacks.install("module", "site-openmpi")
    assert builds == []


def test_a_compiler_wrapper_of_another_library_builds_nothing(site, builds, capsys, monkeypatch):
    """Debian's alternatives may give the plain name of one family to another."""
    monkeypatch.setattr(kernels, "refresh", REFRESH)
    monkeypatch.setattr(kernels, "build", lambda *_: {"pi": manifest.load("site-openmpi").benchmarks["stream"]})
    monkeypatch.setattr(kernels, "_abi", lambda *_: {})
    monkeypatch.setattr(kernels, "_loads", lambda _: manifest.Loads(library="/opt/other/libmpi.so.40", files={}))
    site(benchmarks={})
    stacks.install("module", "site-openmpi")
    assert "mpicc.openmpi takes another MPI library: /opt/other/libmpi.so.40" in capsys.readouterr().out
    assert sorted(manifest.load("site-openmpi").benchmarks) == ["stream"]
