"""The real Spack: no drift of the locks, benchmarks in C on two MPIs through ReFrame, and again from the archive.

Needs Spack and its packages (``SPACK_ROOT`` and ``PLUMB_SPACK_PACKAGES``, or a network) and the sources of OSU and IMB
(``PLUMB_SPACK_MIRROR``, or a network). ``PLUMB_SPACK_TEST_SITE`` names a site folder whose ``openmpi.yaml`` and
``mpich.yaml`` replace the common environments, where the locked versions cannot be had. Takes about ten minutes.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from plumbline import paths
from plumbline.records import store
from plumbline.stacks import manifest
from plumbline.stacks.spack import bootstrap, environment, settings
from plumbline.stacks.spack.runner import Spack

pytestmark = pytest.mark.e2e
BIN = Path(sys.executable).parent
MPIS = ("openmpi", "mpich")


def reachable(host):
    try:
        socket.create_connection((host, 443), timeout=5).close()
    except OSError:
        return False
    return True


def why_not():
    """Why the real Spack cannot be tried here; None when it can."""
    if not os.environ.get("SPACK_ROOT") and not reachable("github.com"):
        return "no SPACK_ROOT, and github.com cannot be reached"
    if not os.environ.get("PLUMB_SPACK_MIRROR") and not reachable("github.com"):
        return "no PLUMB_SPACK_MIRROR, and github.com cannot be reached"
    missing = [name for name in MPIS if not manifest.path(name).exists()]
    return f"stack {missing[0]} is not installed" if missing else None


@pytest.fixture(scope="module")
def stacks(tmp_path_factory):
    """A stacks folder with the wheel MPIs in it, and a site that gives them to Spack; variables for ``plumb``."""
    reason = why_not()
    if reason:
        pytest.skip(f"not run: {reason}")
    folder = tmp_path_factory.mktemp("spack")
    (folder / "stacks").mkdir()
    for name in MPIS:
        (folder / "stacks" / name).symlink_to(paths.stacks() / name)
    site = folder / "site"
    site.mkdir()
    given = os.environ.get("PLUMB_SPACK_TEST_SITE")
    for file in Path(given).glob("*.yaml") if given else ():
        shutil.copy(file, site)
    write_site(site)
    return {
        **os.environ,
        "PLUMB_STACKS": str(folder / "stacks"),
        "PLUMB_SPACK_SITE": str(site),
        "PLUMB_SPACK_HOME": str(folder / "home"),
    }


def write_site(site):
    """The default site's packages, with the MPIs of the wheel stacks and without a BLAS, which takes long to build."""
    base = settings.folder() / "sites" / settings.DEFAULT_SITE / "packages.yaml"
    packages = yaml.safe_load(base.read_text())["packages"]
    packages["plumbline-kernels"] = {"variants": ["~dgemm"]}
    for name in MPIS:
        document = manifest.load(name)
        external = {"spec": f"{name}@{document['mpi']['version']}~fortran", "prefix": str(paths.stacks() / name)}
        external["extra_attributes"] = {"plumb_stack": name}
        packages[f"{name}:"] = {"buildable": False, "externals": [external]}
    (site / "packages.yaml").write_text(yaml.safe_dump({"packages": packages}))


def plumb(variables, *arguments, timeout=1800):
    done = subprocess.run(
        [str(BIN / "plumb"), "stack", *arguments],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", settings.ENVIRONMENTS)
def test_concretizing_gives_the_committed_lock(stacks, name):
    variables = {key: value for key, value in stacks.items() if key != "PLUMB_SPACK_SITE"}
    assert plumb(variables, "lock", "--check", f"spack:{name}") == f"spack:{name}: unchanged\n"


@pytest.fixture(scope="module")
def installed(stacks):
    """The two stacks, concretized and built with checksums on."""
    specs = [f"spack:{name}" for name in MPIS]
    plumb(stacks, "lock", *specs)
    plumb(stacks, "install", *specs)
    return stacks


def test_latency_and_pingpong_run_on_two_mpis_through_reframe(installed, tmp_path):
    sites = tmp_path / "sites"
    shutil.copytree(paths.sites() / "local", sites / "local")
    shutil.copy(paths.sites() / "settings.py", sites)
    file = sites / "local" / "site.yaml"
    site = yaml.safe_load(file.read_text())
    for part in site["partitions"]:
        part["stacks"] = [f"spack-{name}" for name in MPIS]
    file.write_text(yaml.safe_dump(site))
    variables = {
        **installed,
        "PLUMB_ROOT": str(paths.root()),
        "PLUMB_SITES": str(sites),
        "PLUMB_RESULTS": str(tmp_path / "results"),
        "PLUMB_PROFILE": "quick",
        "RFM_CONFIG_FILES": str(sites / "settings.py"),
        "RFM_PREFIX": str(tmp_path / "reframe"),
    }
    tests = "osu_pair.*latency|imb_pair.*PingPong"
    command = [str(BIN / "reframe"), "-c", str(paths.root() / "reframe-tests"), "--nocolor", "-r", "-t", "quick"]
    done = subprocess.run(
        [*command, "-n", tests, "-S", "launches=1"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=paths.root(),
    )
    assert done.returncode == 0, done.stdout[-4000:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
        records, damages = store.read_all()
    assert damages == []
    seen = {(record["stack"]["name"], Path(record["benchmark"]["file"]).name) for record in records}
    wanted = {(f"spack-{name}", program) for name in MPIS for program in ("osu_latency", "IMB-MPI1")}
    assert seen == wanted, done.stdout[-4000:]
    for record in records:
        assert record["verified"], record["reasons"]
        assert record["benchmark"]["command"][0].startswith(installed["PLUMB_SPACK_HOME"])


def test_the_archive_installs_into_an_empty_tree_without_network(installed, tmp_path):
    archive = tmp_path / "all.tar"
    digest = re.search(r"--sha256 ([0-9a-f]{64})", plumb(installed, "pack", str(archive), "spack:openmpi"))[1]
    # a longer path than that of the first tree, and nothing given but the archive
    elsewhere = tmp_path / "a-longer-name-of-a-folder" / "stacks"
    elsewhere.mkdir(parents=True)
    (elsewhere / "openmpi").symlink_to(paths.stacks() / "openmpi")
    given = ("SPACK_ROOT", "PLUMB_SPACK_PACKAGES", "PLUMB_SPACK_MIRROR", "PLUMB_SPACK_WHEELS", "GIT_CONFIG_GLOBAL")
    variables = {key: value for key, value in installed.items() if key not in given}
    variables |= {"PLUMB_STACKS": str(elsewhere), "PLUMB_SPACK_HOME": str(elsewhere / "spack")}
    plumb(variables, "install", "--from", str(archive), "--sha256", digest, "spack:openmpi")
    log = (elsewhere / "spack-openmpi.log").read_text()
    built = re.findall(r"No binary for (\S+)-[\d.]+-\w{32} found", log)
    assert built == ["plumbline-kernels"], "everything else comes from the buildcache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_STACKS", str(elsewhere))
        assert manifest.problems(manifest.load("spack-openmpi")) == []


@pytest.mark.parametrize("name", MPIS)
def test_the_recipe_of_the_kernels_tests_itself(installed, name):
    with pytest.MonkeyPatch.context() as patch:
        for key, value in installed.items():
            patch.setenv(key, value)
        spack = Spack(bootstrap.prepare(), environment.workplace(name), f"spack-{name}")
        assert "1 passed of 1 spec" in spack.run("test", "run", "plumbline-kernels")


def test_locks_of_the_test_site_know_their_externals(installed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_SPACK_SITE", installed["PLUMB_SPACK_SITE"])
        for name in MPIS:
            foreign = environment.foreign_paths(environment.read(name))
            assert str(paths.stacks() / name) in foreign
