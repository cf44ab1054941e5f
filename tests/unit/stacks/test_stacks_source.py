"""Provider ``source``: MPI libraries of any commit of a repository."""

import argparse
import re
from pathlib import Path

import pytest
import schema_files
import yaml
from msgspec.structs import replace
from own_code import git

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.search.bisect import command
from plumbline.extras.search.why.command import cause_command
from plumbline.gate import sides
from plumbline.measure.reframe import settings
from plumbline.records import model
from plumbline.stacks import kernels, manifest, source
from tests.support import samples

#: of a library: its launcher and itself, which is any library that the loader accepts
BUILD = """
test -d .git
mkdir -p "$PREFIX/bin" "$PREFIX/lib" "$PREFIX/etc"
printf '#!/bin/sh\\necho run\\n' > "$PREFIX/bin/mpirun" && chmod +x "$PREFIX/bin/mpirun"
cp "$(gcc -print-file-name=libc.so.6)" "$PREFIX/lib/libmpi.so.40"
cp notes "$PREFIX/etc/openmpi-mca-params.conf"
cp "$PREFIX/bin/mpirun" "$PREFIX/bin/osu_latency"
"""
ENTRY = {"mpi": {"family": "openmpi", "version": "5.0"}, "build": [BUILD]}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The library, with two commits."""
    folder = tmp_path_factory.mktemp("library") / "ompi"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in ("first", "second"):
        (folder / "notes").write_text(f"# {text}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", text)
    git(folder, "tag", "v1", "HEAD~1")
    return folder


@pytest.fixture
def described(repository, tmp_path, monkeypatch):
    """A function that writes the site's sources and returns the repository. Kernels are not built."""
    for name in ("STACKS", "SITES", "BUILD"):
        monkeypatch.setenv(f"PLUMB_{name}", str(tmp_path / name.lower()))
    monkeypatch.setattr(kernels, "refresh", lambda name: None)
    monkeypatch.setattr(kernels, "stale", lambda name: None)
    file = tmp_path / "sites" / "here" / "sources.yaml"
    file.parent.mkdir(parents=True)

    def write(**changes):
        file.write_text(yaml.safe_dump({"sources": {"ompi": {**ENTRY, "repository": str(repository), **changes}}}))
        return repository

    return write


def called(folder: Path, name: str) -> str:
    return f"ompi@{git(folder, 'rev-parse', name)[:12]}"


class TestInstall:
    def test_a_commit_becomes_a_stack(self, described, capsys):
        folder = described(environment={"OPAL_PREFIX": "${PREFIX}"})
        stacks.install("source", "ompi@v1")
        made = manifest.load(called(folder, "v1"))
        assert (made.provider, made.mpi.version, made.launcher.family) == ("source", "5.0", "prrte")
        assert made.environment == {"OPAL_PREFIX": made.prefix, "LD_LIBRARY_PATH": f"{made.prefix}/lib"}
        assert Path(made.loads.library) == (Path(made.prefix) / "lib" / "libmpi.so.40").resolve()
        assert (Path(made.prefix) / "etc" / "openmpi-mca-params.conf").read_text() == "# first\n"
        assert str(Path(made.prefix) / "etc" / "openmpi-mca-params.conf") in made.loads.files
        assert made.sources[0].version == "v1"
        assert made.sources[0].hash == f"git:{git(folder, 'rev-parse', 'v1')}"
        capsys.readouterr()
        stacks.install("source", "ompi@v1")
        assert capsys.readouterr().out == f"{made.name}: up to date\n"
        assert source.names() == (made.name,)
        assert stacks.origin(made.name) == ("source", made.name)
        described(environment={"OPAL_PREFIX": "/other"})
        stacks.install("source", "ompi@v1")
        assert "its description or its place changed" in capsys.readouterr().out
        assert manifest.load(made.name).environment["OPAL_PREFIX"] == "/other"

    def test_a_benchmark_of_the_build(self, described):
        one = {"suite": "osu", "version": "7.4", "program": "bin/osu_latency"}
        folder = described(benchmarks={"osu_latency": one})
        stacks.install("source", "ompi@HEAD")
        made = manifest.load(called(folder, "HEAD"))
        assert made.benchmarks["osu_latency"].file == f"{made.prefix}/bin/osu_latency"
        described(benchmarks={"osu_latency": {**one, "program": "bin/other"}})
        with pytest.raises(PlumbError, match=r"the build installed no bin/other below \$PREFIX"):
            stacks.install("source", "ompi@HEAD")

    def test_a_library_stays_where_the_kernels_do_not_compile(self, described, monkeypatch):
        def refuse(name):
            raise PlumbError("the kernels do not compile")

        folder = described()
        monkeypatch.setattr(kernels, "refresh", refuse)
        with pytest.raises(PlumbError, match="kernels do not compile"):
            stacks.install("source", "ompi@v1")
        made = manifest.path(called(folder, "v1"))
        before = made.stat().st_ino, made.stat().st_mtime_ns
        monkeypatch.setattr(kernels, "stale", lambda name: "not there")
        monkeypatch.setattr(kernels, "refresh", lambda name: None)
        stacks.install("source", "ompi@v1")
        assert (made.stat().st_ino, made.stat().st_mtime_ns) == before

    @pytest.mark.parametrize(("build", "said"), [
        ("echo 'mpi.c:3: error: no such type'; false", r"the build of ompi@\w{12} fails: mpi\.c:3: error: no such"),
        ("true", r"the build installed no bin/mpirun below \$PREFIX"),
        (f'{BUILD}\nrm "$PREFIX/lib/libmpi.so.40"', r"the build installed no lib/libmpi\.so\.40 below \$PREFIX"),
    ])  # fmt: skip
    def test_what_a_build_lacks_is_one_line_and_nothing_is_left(self, described, tmp_path, build, said):
        described(build=[build])
        with pytest.raises(PlumbError, match=said):
            stacks.install("source", "ompi@HEAD")
        assert [entry.name for entry in (tmp_path / "stacks").iterdir() if entry.is_dir()] == []
        assert [entry.suffix for entry in (tmp_path / "build" / "sources").iterdir()] == [".log"]

    @pytest.mark.parametrize(("name", "changes", "said"), [
        ("ompi", {}, r"'source:ompi' does not name a commit.*source:ompi@HEAD"),
        ("impi@HEAD", {}, "no MPI library is called 'impi'.*did you mean 'ompi'"),
        ("ompi@v7", {}, "'v7' is not a commit.*git fetch brings newer ones"),
        ("ompi@HEAD", {"repository": "ompi"}, "'ompi' is not the absolute path of a git repository.*git clone it"),
        ("ompi@HEAD", {"repository": "/etc"}, "'/etc' is not the absolute path of a git repository"),
        ("ompi@HEAD", {"build": []}, "sources.ompi.build: Expected `array` of length >= 1"),
    ])  # fmt: skip
    def test_what_cannot_be_named_is_one_line(self, described, name, changes, said):
        described(**changes)
        with pytest.raises(PlumbError, match=said):
            stacks.install("source", name)


class TestSides:
    def test_a_side_need_not_be_installed(self, described, monkeypatch):
        folder = described()
        side = sides.resolve("baseline", "source:ompi@v1", None)
        assert (side.stack, side.measured, side.install) == (called(folder, "v1"), called(folder, "v1"), True)
        assert sides.resolve("baseline", "stack:source:ompi@v1,placement:numa", None).changes.placement == "numa"
        assert sides.install_side(side).name == side.stack
        with pytest.raises(PlumbError, match="stack 'impi' is not installed"):
            sides.resolve("baseline", "stack:impi", None)

    def test_every_partition_offers_what_is_compared(self, monkeypatch):
        monkeypatch.setenv(settings.ALSO, "ompi@0123456789ab,ompi@ba9876543210")
        offered = [part["environs"] for system in settings.configuration()["systems"] for part in system["partitions"]]
        assert any(found[-2:] == ["ompi_0123456789ab", "ompi_ba9876543210"] for found in offered)

    def test_a_bisection_of_a_library_has_its_commits(self, described, tmp_path, monkeypatch):
        folder = described()
        monkeypatch.setattr(paths, "is_installed", lambda: False)
        words = ["v1", "HEAD", "--stack", "source:ompi", "--dry-run"]
        request = command._request(options(words))
        assert (request.library, request.good, request.bad) == (
            "ompi",
            *(git(folder, "rev-parse", n) for n in ("v1", "HEAD")),
        )
        assert request.commits(tmp_path / "clone").between(request.good, request.bad) == [request.bad]
        assert request.circumstances["stacks"] == {}


def options(words):
    parser = argparse.ArgumentParser()
    command.run_bisect.add_to(parser)
    return parser.parse_args(words)


def test_a_gate_of_two_commits_offers_to_look_between_them():
    ours = model.convert(samples.record())
    both = [
        replace(ours, id=f"{name}1", stack=replace(ours.stack, name=f"ompi@{name}", provider="source"))
        for name in ("0123456789ab", "ba9876543210")
    ]
    wanted = "plumb bisect 0123456789ab ba9876543210 --stack source:ompi --test "
    assert cause_command(*both).startswith(wanted)
    assert cause_command(both[0], replace(both[1], variant=replace(ours.variant, threads=7))).startswith("plumb why ")


def test_the_example_in_the_documentation_is_valid():
    text = (paths.root() / "docs" / "stacks.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(sources:\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    schema_files.check("sources", yaml.safe_load(example))
    for name in source.Description.__struct_fields__:
        assert f"`{name}`" in text, name
