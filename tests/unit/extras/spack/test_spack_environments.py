"""Named environments: what is required of Spack, what a site adds, and two stacks of one MPI library side by side."""

import json
import shutil

import pytest
import spack_site
import yaml

from plumbline import stacks
from plumbline.base.errors import PlumbError
from plumbline.extras import spack
from plumbline.extras.spack import environments, sites
from plumbline.stacks import manifest


@pytest.fixture
def root(tmp_path, monkeypatch):
    """See :mod:`spack_site`, with a site of its own that has all that the default one has."""
    spack_site.suit_any_machine(monkeypatch.setattr)
    root = spack_site.make(tmp_path, monkeypatch)
    sites = root / "spack-env" / "sites"
    shutil.copytree(sites / environments.DEFAULT_SITE, sites / "own")
    monkeypatch.setenv("PLUMB_SPACK_SITE", "own")
    return root


def describe(entries):
    """Write the site's own environments."""
    (environments.site() / environments.FILE).write_text(yaml.safe_dump(entries))


def rendered(name):
    return yaml.safe_load(environments.render(name))["spack"]


def test_versions_are_requirements_and_the_template_has_the_rest(root):
    for name, wanted in environments.known().items():
        described = rendered(name)
        assert described["packages"]["mpi"] == {"require": [wanted.mpi]}
        assert "@" in wanted.mpi, "a version that is not required may give way silently"
        assert described["include"] == ["${PLUMB_SPACK_SITE_FOLDER}", "${PLUMB_SPACK_ENV}/common"]
    specs = rendered("openmpi")["specs"]
    assert specs[0] == "openmpi~fortran fabrics=cma"
    assert [rendered(name)["specs"][1:] for name in spack.names()] == [specs[1:]] * len(spack.names())
    assert "tools" not in spack.names()


@pytest.mark.parametrize("key", ["openmpi", "openmpi:"])
def test_what_the_site_has_is_taken_as_it_is(root, key):
    """Of an external without `fabrics` Spack says that none satisfies `fabrics=cma`."""
    file = environments.site() / "packages.yaml"
    document = yaml.safe_load(file.read_text())
    document["packages"][key] = {"buildable": False, "externals": [{"spec": "openmpi@5.0.11", "prefix": "/opt/mpi"}]}
    file.write_text(yaml.safe_dump(document))
    assert rendered("openmpi")["packages"]["mpi"] == {"require": ["openmpi"]}
    assert rendered("openmpi")["specs"][0] == "openmpi"
    assert rendered("mpich")["packages"]["mpi"] == {"require": [environments.known()["mpich"].mpi]}


EXTERNAL = [{"spec": "mpich@4.1.2", "prefix": "/usr"}]


@pytest.mark.parametrize(
    ("described", "external"),
    [
        ({"mpi": {"buildable": False}, "mpich": {"externals": EXTERNAL}}, True),
        ({"mpi:": {"buildable": False}, "mpich:": {"externals": EXTERNAL}}, True),
        ({"all": {"buildable": False}, "mpich": {"externals": EXTERNAL}}, True),
        ({"all": {"buildable": False}, "mpi": {"buildable": True}, "mpich": {"externals": EXTERNAL}}, False),
        ({"mpi": {"buildable": False}, "mpich": {"buildable": True, "externals": EXTERNAL}}, False),
        ({"mpi": {"buildable": False}, "mpich": {"buildable": False, "externals": EXTERNAL}}, True),
        ({"mpi": {"buildable": False}, "mpich": None}, False),
        ({"mpi": {"buildable": False}}, False),
        ({"mpich": {"externals": EXTERNAL}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_what_may_be_built_is_said_of_the_package_of_mpi_or_of_all(root, described, external):
    (environments.site() / "packages.yaml").write_text(yaml.safe_dump({"packages": described}))
    wanted = "mpich" if external else environments.known()["mpich"].mpi
    assert rendered("mpich")["packages"]["mpi"] == {"require": [wanted]}


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "packages:\n", "packages: {}\n", "packages:: {}\n"])
def test_a_list_of_packages_may_be_empty(root, text):
    (environments.site() / "packages.yaml").write_text(text)
    assert rendered("mpich")["packages"]["mpi"] == {"require": [environments.known()["mpich"].mpi]}
    environments.check_externals("mpich")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("packages: [mpich]\n", "`packages` is not a mapping"),
        ("packages: {mpich: true}\n", "`packages` is not a mapping"),
        ("packages: {mpich: {\n", "is not YAML"),
        ("mpich\n", "not a mapping"),
    ],
)
def test_a_list_of_packages_that_is_none_is_one_line(root, text, told):
    (environments.site() / "packages.yaml").write_text(text)
    with pytest.raises(PlumbError, match=told):
        environments.render("mpich")


@pytest.mark.parametrize(
    ("required", "told"),
    [
        ("openmpi@5.0.10", r"requires openmpi@5\.0\.10 of mpi, and the site has only openmpi@5\.0\.11~fortran"),
        ("openmpi@=5.0.1", r"requires openmpi@=5\.0\.1 of mpi, and the site has only openmpi@5\.0\.11~fortran"),
        *(("openmpi@5.0", None), ("openmpi@5.0.11", None), ("openmpi@5.0.12:", None), ("openmpi", None)),
        ("mpich@5.0.1", None),
    ],
)
def test_a_version_that_the_site_cannot_have_is_named_before_it_is_concretized(root, required, told):
    """Of this Spack says only, after a minute, that no external satisfies the request."""
    file = environments.site() / "packages.yaml"
    document = yaml.safe_load(file.read_text())
    external = {"spec": "openmpi@5.0.11~fortran", "prefix": "/opt/mpi"}
    document["packages"]["openmpi"] = {"buildable": False, "externals": [external]}
    file.write_text(yaml.safe_dump(document))
    described = {"spack": {"specs": ["openmpi"], "packages": {"mpi": {"require": [required]}}}}
    (environments.site() / "openmpi.yaml").write_text(yaml.safe_dump(described))
    if told is None:
        environments.check_externals("openmpi")
    else:
        with pytest.raises(PlumbError, match=told) as error:
            sites.lock("openmpi")
        assert "own/openmpi.yaml" in str(error.value)
        assert not (root.parent / "fake" / "calls").exists()


def test_a_site_adds_environments_and_their_packages(root):
    compilers = {"c": {"require": ["gcc@14"]}, "cxx": {"require": ["gcc@14"]}}
    describe({"mpich-gcc14": {"mpi": "mpich@5.0.1", "variants": "device=ch3", "packages": compilers}})
    described = rendered("mpich-gcc14")
    assert described["specs"][0] == "mpich device=ch3"
    assert described["packages"] == {"mpi": {"require": ["mpich@5.0.1"]}, **compilers}
    assert "mpich-gcc14" in spack.names()
    with pytest.raises(PlumbError, match="environment 'mpich-gcc14' has no lock at site own"):
        stacks.install("spack", "mpich-gcc14")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"mpi": "lam@7"}, "environment 'x' has no MPI library"),
        ({"mpi": "mpich@5.0.1", "variant": "+x"}, "x.variant: there is no such key: did you mean 'variants'"),
        ({"variants": "~fortran"}, "x: Object missing required field `mpi`"),
        ({"mpi": "mpich@5.0.1", "roots": "hwloc"}, "x.roots: Expected `array`, got `str`"),
    ],
)
def test_a_wrong_entry_is_named(root, entry, told):
    describe({"x": entry})
    with pytest.raises(PlumbError, match=told) as error:
        environments.known()
    assert str(environments.site()) in str(error.value)


def test_two_stacks_of_one_mpi_stand_side_by_side(root):
    describe({"openmpi-ucx": {"mpi": "openmpi@5.0.10", "variants": "~fortran fabrics=cma,ucx"}})
    document = json.loads(environments.lock("openmpi").read_text())
    for entry in document["roots"]:
        entry["spec"] = entry["spec"].replace("fabrics=cma", "fabrics=cma,ucx")
    text = json.dumps(document)
    environments.lock("openmpi-ucx").write_text(text)
    (root.parent / "fake" / "locks" / "openmpi-ucx.lock").write_text(text)
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
    describe({"openmpi": {"mpi": "openmpi@5.0.10", "variants": "~fortran fabrics=cma", "settings": {"pml": "ucx"}}})
    assert spack._stale("openmpi") == "the lock, the kernels or its place changed"
    stacks.install("spack", "openmpi")
    assert manifest.load("spack-openmpi").settings == {"pml": "ucx"}


def test_a_site_may_have_a_template_of_its_own_and_takes_that_of_a_site_that_it_includes(root):
    own = environments.folder() / "sites" / "other" / environments.TEMPLATE
    own.parent.mkdir()
    own.write_text((environments.folder() / environments.TEMPLATE).read_text().replace("@7.5.2", "@7.4"))
    assert "osu-micro-benchmarks@7.5.2" in rendered("openmpi")["specs"]
    (environments.site() / "include.yaml").write_text("include:\n- ${PLUMB_SPACK_ENV}/sites/other\n")
    (own.parent / "packages.yaml").write_text("packages: {}\n")
    assert "osu-micro-benchmarks@7.4" in rendered("openmpi")["specs"]


def test_tools_are_installed_into_a_folder_and_are_no_stack(root, capsys):
    """The fake Spack makes no view: what it links there is put there by hand."""
    calls = root.parent / "fake" / "calls"
    assert rendered("tools")["view"]["default"] == {"root": "${PLUMB_SPACK_HOME}/views/tools", "link": "roots"}
    stacks.install("spack", "tools")
    told = capsys.readouterr().out.splitlines()[-1]
    assert "likwid 5.5.1" in told
    assert "mpip 3.5" in told
    assert "ncurses" not in told
    assert told.endswith(f"programs in {environments.home()}/views/tools/bin")
    assert manifest.names() == []
    stacks.install("spack", "tools", dry_run=True)
    assert capsys.readouterr().out == "spack-tools: would be installed (not there)\n"
    (environments.view("tools") / "bin").mkdir(parents=True)
    before = calls.read_text()
    stacks.install("spack", "tools")
    assert capsys.readouterr().out == "spack-tools: up to date\n"
    assert calls.read_text() == before
    environments.lock("tools").write_text(environments.lock("tools").read_text() + "\n")
    assert spack._stale("tools") == "the lock or its place changed"
