"""Stacks in containers for real: Debian's MPICH with our kernels, in an image that is made here.

Charliecloud and podman run it. ``PLUMB_TEST_IMAGE`` names an image that ``tests/support/container_image.sh`` made
before; making one takes minutes.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import own_site
import processes
import pytest
import stored
from processes import ended, succeeded
from samples import asked
from two_nodes import site_over

from plumbline import stacks
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.measure import driver
from plumbline.stacks import engines, manifest

#: making the image takes minutes; tests/unit/stacks/test_stacks_container.py has the commands of each engine
pytestmark = [pytest.mark.e2e, pytest.mark.long]
PLUMB = str(Path(sys.executable).parent / "plumb")
#: in the words of `plumb stack install`: whose MPI library, started by whose launcher
WAYS = {
    "host": {"mode": "host", "launcher": "mpich"},
    "own": {"mode": "own", "launcher": "mpich"},
    "one": {"mode": "own"},
}
BOTH = [(engine, way) for engine in ("charliecloud", "podman") for way in WAYS]
#: one launch, which other tests may slow down
ONCE = ("-S", "launches=1", "-S", "launch_time_limit=300")
KERNEL = {"benchmark": "pi", "context": {"kernel": "pi"}, "parser": "kernel", "arguments": ["--json"]}
KERNEL |= {"placement": "core", "threads": 1, "ranks_per_node": 2}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image in a folder, and its description beside it."""
    if not manifest.path("mpich").exists():
        pytest.skip("not run: stack mpich is not installed, whose OSU ports the image takes")
    if given := os.environ.get("PLUMB_TEST_IMAGE"):
        return Path(given)
    if shutil.which("mmdebstrap") is None:
        pytest.skip("not run: mmdebstrap is not installed, which makes the image")
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    simulated = ["mmdebstrap", "--quiet", "--simulate", "--variant=apt", release, "/dev/null"]
    tried = ended(simulated, timeout=600)
    if tried.returncode:
        pytest.skip(f"not run: mmdebstrap has no packages of {release}: {tried.stderr.strip().splitlines()[-1]}")
    target = tmp_path_factory.mktemp("image") / "debian"
    script = paths.root() / "tests" / "support" / "container_image.sh"
    command = ["nice", str(script), manifest.load("mpich").prefix, str(target)]
    succeeded(ended(command, timeout=1200))
    return target


@pytest.fixture
def install(image, tmp_path, monkeypatch):
    """A function that installs the image for an engine; skips if that does not start any container here."""
    installed = manifest.path("mpich").parent.resolve()
    for name in ("results", "stacks", "sites"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    shutil.copytree(paths.root() / "site-configs", tmp_path / "sites")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "mpich").symlink_to(installed)

    def make(engine, way="one", name="image"):
        start = engines.start(engine, str(image), (), 1)
        if shutil.which(start[0]) is None:
            pytest.skip(f"not run: {engine} is not installed")
        plain = [word for word in start if not word.startswith(("--cd=", "--workdir="))]
        environment = {**os.environ, **engines.user()}
        tried = ended([*plain, "/bin/true"], env=environment)
        if tried.returncode:
            pytest.skip(f"not run: {engine} starts no container here: {tried.stderr.strip()}")
        stacks.install("container", str(image), called=name, engine=engine, **WAYS[way])
        return manifest.load(name)

    return make


def run(folder, **changes):
    """The record of a launch of the kernel pi in the image."""
    variant = {**KERNEL, "stack": "image", "launches": 1, "test": "t", "name": "t", **changes}
    (record,) = driver.run([asked(**variant)], folder)[1]
    return record


@pytest.mark.parametrize(("engine", "way"), BOTH)
def test_ranks_are_bound_and_seen_in_the_container(engine, way, install, image, tmp_path):
    made = install(engine, way)
    manifest.check(made)
    record = run(tmp_path / "work")
    assert record.launches[0].verified, record.launches[0].reasons
    ranks = record.launches[0].ranks
    assert [rank.program for rank in ranks] == ["/opt/bench/bin/pi"] * 2
    assert [rank.threads[0].affinity for rank in ranks] == [rank.cpus for rank in record.plan.ranks]
    library = "/plumb/host/lib/libmpi.so" if way == "host" else "/usr/lib/"
    assert all(rank.mpi_library.startswith(library) for rank in ranks)
    assert record.stack.mpi.version == (manifest.load("mpich") if way == "host" else made).mpi.version
    assert record.stack.container.sha256 == engines.digest(image)
    assert not list((tmp_path / "work").glob("launch-*"))  # what a verified launch leaves


@pytest.mark.parametrize(("engine", "way"), [("podman", "one"), ("podman", "own"), ("charliecloud", "host")])
def test_nothing_is_left_of_a_launch_that_had_to_be_ended(engine, way, install, tmp_path):
    install(engine, way)
    record = run(tmp_path / "work", time_limit_s=5, arguments=["--json", "--intervals", "1000000000000"])
    assert record.launches[0].status == "timeout"
    assert processes.carrying(str(tmp_path)) == []


def test_a_changed_image_is_refused(install, image, tmp_path):
    install("charliecloud")
    file = image / "opt" / "bench" / "changed"
    file.write_text("1")
    try:
        done = ended([PLUMB, "stack", "check", "image"])
    finally:
        file.unlink()
    assert done.returncode == 2, done
    assert "stack image: the image was changed (SHA-256 differs)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_image_in_which_the_witness_does_not_work_is_refused(install, tmp_path, monkeypatch):
    shutil.copytree(paths.tools(), tmp_path / "tools")
    (tmp_path / "tools" / "lib" / "libplumbwitness.so").write_text("no library")
    monkeypatch.setenv("PLUMB_TOOLS", str(tmp_path / "tools"))
    with pytest.raises(PlumbError, match="the witness library does not work in the image"):
        install("charliecloud")


SOME = "osu_barrier|pi_sum.*core.*build=stack|stream_threads.*compact"
MANY = (
    f"{SOME}|osu_pair.*latency|osu_pair.*=bw|pairs_cores|pi_sum|barrier_pair|sharing_pair|heat1d_steps|deadlock_fixed"
)


@pytest.mark.parametrize(
    ("engine", "way", "tests", "count"),
    [("charliecloud", "host", SOME, 3), ("charliecloud", "host", MANY, 10), ("podman", "one", MANY, 10)],
)
def test_a_campaign_in_a_container(engine, way, tests, count, install, tmp_path):
    install(engine, way)
    own_site.change(tmp_path / "sites", stacks=["image"])
    environment = {**os.environ, "PLUMB_BUILD": str(tmp_path / "build"), "PLUMB_TOOLS": str(paths.tools())}
    command = [PLUMB, "campaign", "--profile", "quick", "--test", tests, "--", *ONCE]
    succeeded(ended(command, env=environment, timeout=1500, cwd=paths.root()))
    records = stored.sound()
    assert len({record["variant"]["name"] for record in records}) >= count
    assert [record["reasons"] for record in records if not record["verified"]] == []
    assert {record["benchmark"]["suite"] for record in records} == {"stream", "osu", "kernels"}
    assert {record["stack"]["container"]["engine"] for record in records} == {engine}


#: those that campaigns over two nodes of one machine can show; its two cores are too few for collective_nodes
NODES = "osu_pair.*(latency|=bw).*pair:node"
MORE_NODES = f"{NODES}|pairs_nodes|pingpong_threads.*node|overlap_.*node"


@pytest.mark.parametrize(
    ("engine", "tests", "count"),
    [(engine, *both) for both in ((NODES, 2), (MORE_NODES, 13)) for engine in ("podman", "charliecloud")],
)
def test_a_campaign_over_two_nodes(engine, tests, count, install, tmp_path, monkeypatch):
    """With the host's MPI library: MPICH 4.0.2 of the image may wait in MPI_Finalize for ever (docs/containers.md)."""
    install(engine, "host")
    with site_over(tmp_path / "nodes") as site:
        # UCX takes two namespaces of one machine for one node
        own_site.change(site.folder / "sites", stacks=["image"], environment={"UCX_TLS": "tcp,self"})
        monkeypatch.setenv("PLUMB_RESULTS", str(site.folder / "results"))
        monkeypatch.setenv("PLUMB_TOOLS", str(paths.tools()))  # found by the former folder of builds
        monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
        done = site.plumb("campaign", "--profile", "full", "--test", tests, "--", "-t", "full", *ONCE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    records = stored.sound()
    assert [record["reasons"] for record in records if not record["verified"]] == []
    assert [len(record["nodes"]) for record in records] == [2] * count
    assert {record["stack"]["container"]["engine"] for record in records} == {engine}


def test_a_gate_says_what_the_container_costs(install, tmp_path):
    made = install("charliecloud", "host")
    own_site.change(tmp_path / "sites", stacks=["mpich", "image"])
    work = tmp_path / "work"
    command = [PLUMB, "gate", "--baseline", "stack:mpich", "--candidate", "stack:container:image", "--work", str(work)]
    # wide margins: thirteen pairs decide however busy the machine is
    command += ["--test", "pi_sum.*placement=core.*build=stack", "--tolerance", "50%", "--must-detect", "400%"]
    environment = {**os.environ, "PLUMB_BUILD": str(tmp_path / "build"), "PLUMB_TOOLS": str(paths.tools())}
    done = ended(command, env=environment, timeout=900)
    assert done.returncode in (0, 1, 2), done.stdout[-3000:] + done.stderr[-1000:]  # as the machine was
    assert done.stdout.splitlines()[-1].startswith("gate: ")
    (file,) = (tmp_path / "results" / "local").glob("*.jsonl")
    baseline, candidate = stored.read_file(file)
    assert (baseline["stack"]["name"], candidate["stack"]["name"]) == ("mpich", "image")
    assert "container" not in baseline["stack"]
    assert candidate["stack"]["container"]["sha256"] == made.container.sha256
    assert all(launch["verified"] for record in (baseline, candidate) for launch in record["launches"])


def test_an_archive_is_unpacked_and_run(install, image, tmp_path):
    """What podman makes of the same folder, as an OCI archive; the folder that it is unpacked to is what is run."""
    install("podman")  # or skipped
    archive = tmp_path / "debian.tar"
    pack(image, archive)
    shutil.copy(image.with_name(f"{image.name}.yaml"), tmp_path / "debian.tar.yaml")
    stacks.install("container", str(archive), called="image", engine="charliecloud")
    made = manifest.load("image")
    assert made.container.root == str(tmp_path / "stacks" / "image" / "image")
    assert made.container.sha256 == engines.digest(archive)
    record = run(tmp_path / "work")
    assert record.launches[0].verified, record.launches[0].reasons


def pack(image, archive):
    with tempfile.TemporaryDirectory() as storage:  # podman takes short paths only
        podman = ["podman", "--root", storage, "--runroot", f"{storage}/run", "--storage-driver", "vfs"]
        with subprocess.Popen(["tar", "-C", image, "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run([*podman, "import", "-", "local/debian"], stdin=tar.stdout, check=True)
        subprocess.run([*podman, "save", "--format", "oci-archive", "--output", archive, "local/debian"], check=True)
