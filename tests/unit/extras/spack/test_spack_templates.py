"""Sites and templates of sites: structure, and what an expert would ask of them. Nothing is concretized."""

import json
import re
import shutil

import pytest
import spack_site
import stack_manifest
import yaml
from archspec import cpu

from plumbline import stacks
from plumbline.extras.spack import environments, lock, sites
from plumbline.stacks import manifest

ROOT = environments.folder()
TEMPLATES = sorted(path.parent for path in ROOT.glob("templates/*/packages.yaml"))
SITES = ROOT / "environments"
PLACES = [SITES, *sorted(path.parent for path in SITES.glob("debian12-*/packages.yaml")), *TEMPLATES]


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def packages(request):
    """What the site says of packages, with what it includes."""
    scopes, found = [request.param], {}
    while (file := scopes[-1] / "include.yaml").exists():
        (entry,) = yaml.safe_load(file.read_text())["include"]
        scopes.append((scopes[-1] / entry).resolve())
    for scope in reversed(scopes):
        own = yaml.safe_load((scope / "packages.yaml").read_text())["packages"]
        found |= {name.rstrip(":"): entry for name, entry in own.items()}
    return found


def test_externals_have_version_and_place_and_are_not_built(packages):
    for name, entry in packages.items():
        if "externals" not in entry:
            continue
        assert entry["buildable"] is False, name
        for external in entry["externals"]:
            assert re.match(rf"{re.escape(name)}@[\w.-]+", external["spec"]), external
            assert external["prefix"].startswith("/"), external


def test_the_compiler_has_a_program_for_each_language_and_options_for_the_target(packages):
    entry = packages["all"]
    (target,) = [part.partition("=")[2] for part in entry.get("require:") or entry["require"]]
    for name in ("gcc", "llvm"):
        for external in packages.get(name, {}).get("externals", ()):
            languages = re.search(r"languages:='([^']+)'", external["spec"])
            wanted = languages[1].replace("c++", "cxx").split(",") if languages else ["c", "cxx"]
            assert set(external["extra_attributes"]["compilers"]) == set(wanted)
            version = re.search(r"@([\d.]+)", external["spec"])[1]
            node = lock.Node("x", "1", lock.Architecture("linux", target))
            assert target in cpu.TARGETS
            assert sites.target_options(node, name, version), (target, external["spec"])


def test_ucx_of_connectx_has_its_own_verbs(packages):
    """Without them UCX 1.18 and later build none of rc, dc and ud."""
    variants = packages.get("ucx", {}).get("variants", "")
    assert ("+verbs" in variants) == ("+mlx5_dv" in variants)


def test_zlib_is_not_taken_from_below_usr(packages):
    """PMIx looks for it in PREFIX/lib only, so its configure fails where the system has it in lib64 or lib/TRIPLET."""
    assert "/usr" not in [external["prefix"] for external in packages.get("zlib", {}).get("externals", ())]


@pytest.mark.parametrize("place", TEMPLATES, ids=lambda place: place.name)
def test_the_environments_of_a_template_are_whole_and_told(place, monkeypatch):
    monkeypatch.setenv("PLUMB_SPACK_SITE", str(place))
    own = environments.known()
    page = (ROOT / "README.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| `templates/{place.name}` |"))
    assert set(re.findall("`([^`]+)`", row.split("|")[3])) == set(own)
    assert list(place.rglob("*.lock")) == [], "its externals are of another machine than the one that made the lock"
    assert all(environment.package for environment in own.values())


def test_cray_mpich_is_started_as_the_stack_of_its_modules_says(tmp_path, monkeypatch):
    """It brings no launcher: that and the environment come from the stack that the external names."""
    spack_site.suit_any_machine(monkeypatch.setattr)
    root = spack_site.make(tmp_path, monkeypatch)
    place = root / "spack-env" / "templates" / "cray-ex"
    monkeypatch.setenv("PLUMB_SPACK_SITE", str(place))
    text = (root / "spack-env" / "environments" / "openmpi" / environments.LOCK).read_text()
    document = json.loads(
        text.replace('"openmpi"', '"cray-mpich"').replace("openmpi~fortran fabrics=cma", "cray-mpich")
    )
    (mpi,) = (node for node in document["concrete_specs"].values() if node["name"] == "cray-mpich")
    mpi["external"] = {"path": "/usr", "module": ["cray-mpich/8"], "extra_attributes": {"plumb_stack": "cray-mpich"}}
    environments.lock("cray-mpich").write_text(json.dumps(document))
    committed = root.parent / "fake" / "locks" / "cray-mpich" / environments.LOCK
    committed.parent.mkdir()
    committed.write_text(json.dumps(document))
    state = root.parent / "fake"
    library = state / "store" / "openmpi" / "lib" / "libmpi.so.40"
    library.parent.mkdir(parents=True)
    shutil.copy(state / "programs" / library.name, library)
    library.with_name("libmpi.so.12").symlink_to(library)
    base = stack_manifest.made(
        name="cray-mpich",
        prefix=str(library.parents[1]),
        launcher={"family": "srun", "command": "/usr/bin/true"},
        environment={"MPICH_OFI_NIC_POLICY": "NUMA"},
    )
    manifest.save(base)
    stacks.install("spack", "cray-mpich")
    made = manifest.load("spack-cray-mpich")
    assert (made.mpi.family, made.launcher) == ("mpich", base.launcher)
    assert made.environment == base.environment
    assert made.benchmarks["osu_latency"].facts["library"] == str(library)
