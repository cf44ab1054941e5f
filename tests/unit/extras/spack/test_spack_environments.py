"""Named environments: plain ones of Spack; what a site adds, and two stacks of one MPI library side by side."""

import json
import shutil

import pytest
import spack_site
import yaml

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.extras import spack
from plumbline.extras.spack import environments
from plumbline.stacks import manifest

REAL = environments.folder() / "environments"
DESCRIPTIONS = sorted([*REAL.rglob(environments.DESCRIPTION), *REAL.parent.glob("templates/*/*/spack.yaml")])


@pytest.fixture
def root(tmp_path, monkeypatch):
    """See :mod:`spack_site`, with a site of its own that has the default one's Open MPI and tools."""
    spack_site.suit_any_machine(monkeypatch.setattr)
    root = spack_site.make(tmp_path, monkeypatch)
    place = root / "spack-env" / "environments"
    for name in ("openmpi", "tools"):
        shutil.copytree(place / name, place / "own" / name)
    monkeypatch.setenv("PLUMB_SPACK_SITE", "own")
    return root


def described(name):
    return yaml.safe_load((environments.site() / name / environments.DESCRIPTION).read_text())["spack"]


def describe(name, text):
    file = environments.site() / name / environments.DESCRIPTION
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("file", DESCRIPTIONS, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_an_environment_needs_nothing_of_ours(file):
    """Spack reads it as it is: no variable, and what it includes is there."""
    document = yaml.safe_load(file.read_text())["spack"]
    assert "$" not in file.read_text()
    assert document["include"] == [".."]
    scope = file.parents[1] / "include.yaml"
    assert all((scope.parent / entry).is_dir() for entry in yaml.safe_load(scope.read_text())["include"])
    assert not any(spec.startswith("plumbline") for spec in document["specs"])
    site_files = [*file.parents[1].glob("*.yaml"), *(REAL.parent / "common").iterdir()]
    assert not any("${" in each.read_text() for each in site_files)


@pytest.mark.parametrize("file", sorted(REAL.rglob(environments.DESCRIPTION)), ids=lambda of: "-".join(of.parts[-3:-1]))
def test_versions_are_requirements(file):
    """A version that is not required may give way silently."""
    required = yaml.safe_load(file.read_text())["spack"]["packages"]["mpi"]["require"]
    assert all("@" in spec for spec in required)


def test_a_copy_includes_the_same_folders(root):
    environments.copy("openmpi")
    copied = yaml.safe_load((environments.workplace("openmpi") / environments.DESCRIPTION).read_text())["spack"]
    assert copied == {**described("openmpi"), "include": [str(environments.site())]}


def test_a_site_adds_environments(root):
    text = "spack:\n  specs: [mpich@5.0.1 device=ch3]\n  packages: {c: {require: [gcc@14]}}\n"
    describe("mpich-gcc14", text)
    assert "mpich-gcc14" in spack.names()
    with pytest.raises(PlumbError, match="environment 'mpich-gcc14' has no lock"):
        stacks.install("spack", "mpich-gcc14")


@pytest.mark.parametrize(("text", "message"), [
    ("spack:\n  specs: openmpi\n", "specs: Expected `array`, got `str`"),
    ("spack: {}\n", "missing required field `specs`"),
    ("specs: [openmpi]\n", "Expected `object`, got `null`"),
    ("spack: {\n", "is not YAML"),
])  # fmt: skip
def test_an_environment_that_is_none_is_named(root, text, message):
    describe("x", text)
    with pytest.raises(PlumbError, match=message) as error:
        environments.known()
    assert str(environments.site() / "x") in str(error.value)


def test_two_stacks_of_one_mpi_stand_side_by_side(root):
    describe("openmpi-ucx", yaml.safe_dump({"spack": described("openmpi")}).replace("fabrics=cma", "fabrics=cma,ucx"))
    document = json.loads(environments.lock("openmpi").read_text())
    for entry in document["roots"]:
        entry["spec"] = entry["spec"].replace("fabrics=cma", "fabrics=cma,ucx")
    text = json.dumps(document)
    environments.lock("openmpi-ucx").write_text(text)
    committed = root.parent / "fake" / "locks" / "openmpi-ucx" / environments.LOCK
    committed.parent.mkdir()
    committed.write_text(text)
    for name in ("openmpi", "openmpi-ucx"):
        stacks.install("spack", name)
    assert set(manifest.names()) == {"spack-openmpi", "spack-openmpi-ucx"}
    first, second = (manifest.load(name) for name in manifest.names())
    assert first.mpi.family == second.mpi.family == "openmpi"
    assert (spack._stale("openmpi"), spack._stale("openmpi-ucx")) == (None, None)
    environments.lock("openmpi-ucx").write_text(text + "\n")
    assert (spack._stale("openmpi"), bool(spack._stale("openmpi-ucx"))) == (None, True)


def test_settings_of_an_environment_are_those_of_its_stack_and_do_not_change_the_lock(root):
    stacks.install("spack", "openmpi")
    assert manifest.load("spack-openmpi").settings == {}
    variables = {"set": {"OMPI_MCA_pml": "ucx", "UCX_TLS": "all"}}
    describe("openmpi", yaml.safe_dump({"spack": {**described("openmpi"), "env_vars": variables}}))
    assert spack._stale("openmpi") == spack.CHANGED
    stacks.install("spack", "openmpi")
    installed = manifest.load("spack-openmpi")
    assert installed.settings == {"pml": "ucx"}
    assert installed.environment["UCX_TLS"] == "all"


def test_tools_are_installed_into_a_folder_and_are_no_stack(root, capsys):
    """The fake Spack makes no view: what it links there is put there by hand."""
    calls = root.parent / "fake" / "calls"
    view = environments.view("tools")
    stacks.install("spack", "tools")
    told = capsys.readouterr().out.splitlines()[-1]
    assert "likwid 5.5.1" in told
    assert "mpip 3.5" in told
    assert "ncurses" not in told
    assert told.endswith(f"programs in {view}/bin")
    assert manifest.names() == []
    stacks.install("spack", "tools", dry_run=True)
    assert capsys.readouterr().out == "spack-tools: would be installed (not there)\n"
    (view / "bin").mkdir(parents=True)
    before = calls.read_text()
    stacks.install("spack", "tools")
    assert capsys.readouterr().out == "spack-tools: up to date\n"
    assert calls.read_text() == before
    environments.lock("tools").write_text(environments.lock("tools").read_text() + "\n")
    assert spack._stale("tools") == spack.CHANGED
