"""The archive for a machine without network: made, unpacked, and refused when it was changed."""

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
import spack_site

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras import spack
from plumbline.extras.spack import bootstrap, buildcache, environments
from plumbline.stacks import archive, pack


def checkout(folder, monkeypatch):
    spack_site.suit_any_machine(monkeypatch.setattr)
    root = spack_site.make(folder, monkeypatch)
    (root / "requirements.txt").write_text("clingo==1.0\n")
    return root


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An archive with its SHA-256, beside the checkout that it was packed in and the fake Spack's folder."""
    file = tmp_path_factory.mktemp("original") / "all.tar"
    with pytest.MonkeyPatch.context() as monkeypatch:
        checkout(file.parent, monkeypatch)
        return file, pack.pack([("spack", "openmpi")], file)


@pytest.fixture
def root(tmp_path, monkeypatch):
    return checkout(tmp_path, monkeypatch)


@pytest.fixture
def packed(original, root):
    """That archive beside a new checkout."""
    return Path(shutil.copy(original[0], root.parent)), original[1]


def rewritten(file, change):
    """The archive with each member passed through ``change(name, content)``; None drops it."""
    target = file.with_name("changed.tar")
    with tarfile.open(file) as old, tarfile.open(target, "w") as new:
        for member in old:
            content = change(member.name, old.extractfile(member).read())
            if content is not None:
                member.size = len(content)
                new.addfile(member, io.BytesIO(content))
    return target


def test_it_holds_everything(root, original):
    file, digest = original
    with tarfile.open(file) as tar:
        names = [name.split("/") for name in tar.getnames()]
    assert {name[0] for name in names} == {"SHA256SUMS", "index.json", "wheels", "spack"}
    assert {name[1] for name in names if name[0] == "spack"} == {"git", "mirror", "buildcache", "index"}
    assert len(digest) == 64
    pushes = [call for call in (file.parent / "fake" / "calls").read_text().splitlines() if "buildcache push" in call]
    assert pushes


def test_it_is_all_that_a_machine_without_network_needs(packed, monkeypatch):
    spack_site.start_processes(monkeypatch)
    file, digest = packed
    for name in spack_site.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    archive.unpack(file, digest)
    stacks.install("spack", "openmpi")
    assert (environments.home() / "spack" / "bin" / "spack").exists()
    mirrors = (environments.home() / "config" / "mirrors.yaml").read_text()
    assert "mirrors:'" in mirrors  # the public mirror is out
    assert f"file://{archive.place()}/spack/mirror" in mirrors
    assert f"file://{archive.place()}/spack/buildcache" in mirrors


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda name, content: content + b"x" if name == "spack/mirror/source" else content, "mirror/source is not what"),
    (lambda name, content: None if name.startswith("spack/buildcache/blobs") else content,
     r"buildcache/blobs/sha256/\w+/\w+ is not"),
    (lambda name, content: None if name == "SHA256SUMS" else content, "no SHA256SUMS in the archive"),
])  # fmt: skip
def test_a_changed_archive_is_refused_and_leaves_nothing(packed, change, complaint):
    file = rewritten(packed[0], change)
    with pytest.raises(PlumbError, match=complaint):
        archive.unpack(file)
    assert buildcache.airgap() is None
    assert [entry.name for entry in paths.stacks().iterdir() if "archive" in entry.name] == [".archive.lock"]


def unpacked(file, monkeypatch):
    """The machine without network: the folder that the archive left."""
    for name in spack_site.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    archive.unpack(file)
    return buildcache.airgap()


def test_the_index_of_the_packages_is_younger_than_they_are(packed, monkeypatch):
    unpacked(packed[0], monkeypatch)
    index = bootstrap.cache() / "providers" / "builtin-specfile_v5-index.json"
    assert not index.exists()
    bootstrap.prepare()
    assert index.read_text() == "the index of all packages\n"
    package = environments.home() / "packages" / "repos" / "spack_repo" / "builtin" / "repo.yaml"
    assert index.stat().st_mtime_ns > package.stat().st_mtime_ns


def osu(folder):
    """Description and binary of the OSU benchmarks in a buildcache."""
    description = next(folder.glob("v3/manifests/spec/osu-micro-benchmarks/*.json"))
    checksum = json.loads(description.read_text())["data"][0]["checksum"]
    return description, folder / "blobs" / "sha256" / checksum[:2] / checksum


@pytest.mark.parametrize("part", [0, 1])
def test_a_file_of_the_buildcache_that_is_changed_after_unpacking_stops_the_installation(packed, monkeypatch, part):
    file = osu(unpacked(packed[0], monkeypatch) / "buildcache")[part]
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(PlumbError, match=rf"buildcache is damaged or was tampered with: {file.name} is not what"):
        stacks.install("spack", "openmpi")
    assert not spack.manifest.path("spack-openmpi").exists()


def test_a_binary_that_was_added_or_removed_after_unpacking_is_refused(packed, monkeypatch):
    folder = unpacked(packed[0], monkeypatch) / "buildcache"
    buildcache.check_unpacked()
    (folder / "added").write_bytes(b"x")
    with pytest.raises(PlumbError, match="tampered with: added is not what was put there"):
        buildcache.check_unpacked()
    (folder / "added").unlink()
    _, binary = osu(folder)
    binary.unlink()
    with pytest.raises(PlumbError, match=rf"tampered with: {binary.name} is missing"):
        buildcache.check_unpacked()


def test_sources_that_are_missing_make_no_archive(root):
    (root.parent / "fake" / "unfetched").write_text("2")
    target = root.parent / "all.tar"
    with pytest.raises(PlumbError, match="2 sources could not be fetched"):
        pack.pack([("spack", "openmpi")], target)
    assert not target.exists()
    assert not list(target.parent.glob(".all*"))
    assert not list(paths.stacks().glob("plumb-pack-*"))


def test_a_place_that_cannot_be_written_is_named(packed, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way\n")
    with monkeypatch.context() as patch:
        patch.setenv("PLUMB_STACKS", str(tmp_path / "file"))
        with pytest.raises(PlumbError, match=r"cannot write what the archive holds: .*/file.*run it again"):
            archive.unpack(packed[0])
    monkeypatch.setenv("PLUMB_SPACK_HOME", str(tmp_path / "file"))
    with pytest.raises(PlumbError, match=r"cannot write the archive: .*/file"):
        pack.pack([("spack", "openmpi")], tmp_path / "x.tar")
    with pytest.raises(PlumbError, match=r"cannot write stack 'spack-openmpi': .*/file"):
        stacks.install("spack", "openmpi")
