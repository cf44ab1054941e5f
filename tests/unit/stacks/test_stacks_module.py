"""Provider ``module``: what a site already has."""

import os
import re
import subprocess

import pytest
import yaml
from msgspec.structs import replace

from plumbline import schemas, stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.reframe import settings
from plumbline.stacks import libraries, manifest, module, overview

ENTRY = {
    "mpi": {"family": "openmpi", "version": "4.1.4"},
    "launcher": {"family": "orte", "command": "mpirun"},
    "compiler": {"name": "gcc", "version": "12.2.0"},
    "benchmarks": {"osu_latency": {"suite": "osu", "version": "7.4", "program": "osu_latency"}},
}


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
    assert "  launcher " in overview.text(made)
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
    assert settings._environment(manifest.load("site-openmpi"))["extras"]["accelerator"] == "rocm"
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
    load = f"PATH={tmp_path}/loaded:$PATH; export UCX_TLS=rc LD_LIBRARY_PATH=/opt/ompi/lib:$LD_LIBRARY_PATH"
    unload = "unset UCX_TLS; export LD_LIBRARY_PATH=${LD_LIBRARY_PATH#/opt/ompi/lib:}"
    # a module system of this host would come back by BASH_ENV
    profile.write_text(
        f"""unset BASH_ENV; echo 'Welcome=to the machine'
        module() {{
            case "$*" in "load openmpi/4") {load} ;; "unload openmpi/4") {unload} ;; *) return 1 ;; esac
        }}
        """
    )
    program = tmp_path / "loaded" / "osu_only_there"
    program.parent.mkdir()
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


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"benchmarks": {"x": {"suite": "osu", "version": "7", "program": "nowhere"}}},
            "there is no program 'nowhere'",
        ),
        ({"modules": ["$(touch x)"]}, r"stacks\.site-openmpi\.modules\.0"),
        ({"colour": "red"}, "colour"),
        ({"mpi": {"family": "lam", "version": "1"}}, r"mpi\.family: .*openmpi"),
    ],
)
def test_bad_descriptions_are_refused(site, changes, complaint):
    site(**changes)
    with pytest.raises(PlumbError, match=complaint):
        stacks.install("module", "site-openmpi")


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (
            'Lmod has detected the following error: The following module(s) are unknown:\n"x/1"\n\nPlease check\n',
            'Lmod has detected the following error: The following module(s) are unknown: "x/1"',
        ),
        ("ERROR: Unable to locate a modulefile for 'x/1'\n", "ERROR: Unable to locate a modulefile for 'x/1'"),
        ("profile: hello\nbash: module: command not found\n", "bash: module: command not found"),
        ("", ""),
    ],
)
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
    schemas.check("module-stacks", example, "docs/stacks.md")
