"""Recipes with a source from elsewhere, and the locks of site ``ci`` that are made of them. Needs no Spack."""

import os
import re
import subprocess

import pytest
import recipe_hash
import spack_site

from plumbline.base import paths
from plumbline.extras.spack import environments

ROOT = paths.root() / "spack-env"
SITE = "ci"
REPOSITORY = ROOT / "repo" / "spack_repo" / "elsewhere"
RECIPES = {it.parent.name.replace("_", "-"): it.read_text() for it in sorted(REPOSITORY.glob("packages/*/package.py"))}
LOCKS = sorted(file.parent.name for file in (ROOT / "environments" / SITE).glob("*/spack.lock"))
MIRROR = "debian:"
#: sources that Debian has not, and Spack's own recipe takes from GitHub
GITHUB = {"compiler-wrapper", "intel-mpi-benchmarks"}


@pytest.fixture(autouse=True)
def site(monkeypatch):
    monkeypatch.setenv("PLUMB_SPACK_SITE", SITE)


def debian():
    """Archive -> SHA-256, as Debian's index has it; of the whole list."""
    rows = [line.split() for line in (REPOSITORY / "debian.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for row in rows for digest in row[3:])
    return {archive: digest for _, _, archive, digest, _ in rows}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_takes_an_archive_of_debians_index_or_of_a_commit(name):
    (source,) = recipe_hash.versions(RECIPES[name]).values()
    if source["url"].startswith(MIRROR):
        assert debian()[source["url"].removeprefix(MIRROR)] == source["sha256"]
    else:
        assert re.fullmatch(r"https://github\.com/\S+/archive/[0-9a-f]{40}\.tar\.gz", source["url"])


def test_what_debian_has_is_in_its_own_release():
    for line in (REPOSITORY / "debian.txt").read_text().splitlines():
        if not line.startswith("#"):
            _, revision, archive, *_ = line.split()
            package, _, version = archive.rpartition("/")[2].partition(".orig.")[0].partition("_")
            assert revision.split(":")[-1].startswith(f"{version}-"), archive
            assert archive.split("/")[-2] == package


def test_another_package_is_refused_in_one_line(tmp_path):
    done = subprocess.run([ROOT / "debian-sources", tmp_path, "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "debian.txt has no nothing" in done.stderr


def test_an_archive_that_was_cut_off_is_brought_again(tmp_path):
    """As a full disk leaves it, under its name."""
    script = "#!/bin/sh\ncase $1 in indextargets) echo Debian http://debian.example ;; source) exit 1 ;; esac\n"
    (tmp_path / "apt-get").write_text(script)
    (tmp_path / "apt-get").chmod(0o755)
    (digest,) = (digest for archive, digest in debian().items() if "/zlib/" in archive)
    kept = tmp_path / "mirror/_source-cache/archive" / digest[:2] / f"{digest}.tar.gz"
    kept.parent.mkdir(parents=True)
    kept.write_text("half")
    command = [ROOT / "debian-sources", tmp_path / "mirror", "zlib"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert "cannot be had" in done.stderr


def test_the_site_has_a_lock_of_each_of_its_own_environments():
    assert LOCKS == sorted(environments.known()) != []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_whole_and_of_any_machine_of_its_target(name):
    document = environments.read(name)
    assert spack_site.foreign_paths(environments.lock(name)) == []
    assert {(node.target, node.arch.platform_os) for node in document.nodes} == {("x86_64_v3", "debian12")}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_of_the_recipes_as_they_are(name):
    nodes = [node for node in environments.read(name).nodes if node.namespace == "elsewhere"]
    assert environments.known()[name].package in {node.name for node in nodes}
    for node in nodes:
        patches = node.parameters.get("patches", ())
        assert recipe_hash.of(RECIPES[node.name], node.version, patches) == node.package_hash, node.name


@pytest.mark.parametrize(
    ("before", "after"), [("97f10c04", "97f10c05"), ("    version(", "    parallel_build = 1\n    version(")]
)
def test_another_archive_or_another_recipe_has_another_hash(before, after):
    """So the test above can fail."""
    _, node = spack_site.node(environments.read("openmpi"), "openmpi")
    changed = RECIPES["openmpi"].replace(before, after)
    assert changed != RECIPES["openmpi"]
    assert recipe_hash.of(changed, node.version, node.parameters["patches"]) != node.package_hash


@pytest.mark.parametrize("name", LOCKS)
def test_every_source_of_a_lock_is_one_of_debian_or_named_here(name):
    there = {archive.split("/")[-2] for archive in debian()}
    for node in environments.read(name).nodes:
        if node.external is None and node.name not in ("gcc-runtime",):  # made of no archive
            assert node.namespace == "elsewhere" or node.name in there | GITHUB, node.name
