"""What is in ``spack-env/``: valid, pinned, complete and the same everywhere. Needs no Spack."""

import json
import re
import shutil

import pytest
import spack_site
import yaml

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras import spack
from plumbline.extras.spack import environments, lock

ROOT = paths.root() / "spack-env"
SITE = ROOT / "environments"
LOCKS = sorted(SITE.rglob(environments.LOCK))
NAMES = tuple(environments.known())


@pytest.fixture(autouse=True)
def default_site(monkeypatch):
    monkeypatch.delenv("PLUMB_SPACK_SITE", raising=False)


def test_versions_are_valid_and_their_solver_is_the_locked_one():
    versions = environments.versions()
    lock = environments.requirements().read_text()
    assert re.search(rf"^clingo=={re.escape(versions.clingo)} ", lock, re.MULTILINE)
    entries = re.split(r"\n(?=[a-z])", lock)
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock


@pytest.mark.parametrize(("change", "complaint"), [
    ({"clingo": None}, "clingo"),
    ({"spack": {"git": "https://x/y.git", "tag": "v1", "commit": "2e90"}}, r"spack\.commit"),
    ({"extra": 1}, "extra"),
])  # fmt: skip
def test_versions_that_are_not_valid_are_refused(tmp_path, monkeypatch, change, complaint):
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    (tmp_path / "spack-env").mkdir()
    document = yaml.safe_load((ROOT / "versions.yaml").read_text())
    (tmp_path / "spack-env" / "versions.yaml").write_text(yaml.safe_dump({**document, **change}))
    with pytest.raises(PlumbError, match=complaint):
        environments.versions()


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_has_a_whole_lock(name):
    document = environments.read(name)
    assert {root.spec for root in document.roots} == set(environments.known()[name].specs)
    assert spack_site.foreign_paths(environments.lock(name)) == []
    assert document.spack["commit"] == environments.versions().spack.commit


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_built_for_the_target_of_the_site(name):
    for node in environments.read(name).nodes:
        assert (node.target, node.arch.platform_os) == ("x86_64_v3", "debian12"), node.name


@pytest.mark.parametrize("name", spack.names())
def test_every_mpi_has_the_benchmarks_and_is_the_one_that_they_use(name):
    document = environments.read(name)
    package = environments.known()[name].package
    digest, _ = spack_site.node(document, package)
    for benchmark in ("osu-micro-benchmarks", "intel-mpi-benchmarks"):
        _, node = spack_site.node(document, benchmark)
        assert [needed.hash for needed in node.dependencies if needed.name == package] == [digest]


@pytest.mark.parametrize(
    "file",
    [file for file in LOCKS if file.parent.name.startswith("openmpi")],
    ids=lambda file: "-".join(file.parts[-3:-1]),
)
def test_every_open_mpi_copies_large_messages_of_a_node_once(file):
    """Spack builds no way that is not named: by ``fabrics=none``, its default, CMA is left out."""
    packages = json.loads(file.read_text())["concrete_specs"].values()
    (found,) = (package for package in packages if package["name"] == "openmpi")
    assert "cma" in found["parameters"]["fabrics"]


CLUSTERS = {
    "debian12-zen4": ("x86_64_v4", {"openmpi", "openmpi-cuda", "mpich"}),
    "debian12-neoverse_v2": ("neoverse_v2", {"openmpi", "mpich"}),
    "debian12-sapphirerapids": ("sapphirerapids", {"openmpi", "mpich"}),
}

LOCKS_OF_CLUSTERS = [(site, name) for site, row in CLUSTERS.items() for name in sorted(row[1])]


def by_name(name):
    return {node.name: node for node in environments.read(name).nodes}


@pytest.mark.parametrize(("site", "name"), LOCKS_OF_CLUSTERS)
def test_a_lock_of_a_cluster_has_fabrics_a_scheduler_fortran_and_its_processor(monkeypatch, site, name):
    monkeypatch.setenv("PLUMB_SPACK_SITE", site)
    assert spack_site.foreign_paths(environments.lock(name)) == []
    nodes = by_name(name)
    mpi = nodes[environments.known()[name].package].parameters
    assert mpi["fortran"] is True
    assert mpi.get("netmod") == "ucx" or "ucx" in mpi["fabrics"]
    assert nodes["slurm"].external
    assert {node.target for node in nodes.values() if not node.external} == {CLUSTERS[site][0]}


@pytest.mark.parametrize(("site", "name"), LOCKS_OF_CLUSTERS)
def test_ucx_of_a_cluster_has_what_connectx_needs(monkeypatch, site, name):
    """UCX 1.18 and later build rc, dc and ud for ConnectX only with mlx5's own verbs, whatever `+dc` says."""
    monkeypatch.setenv("PLUMB_SPACK_SITE", site)
    ucx = by_name(name)["ucx"].parameters
    wanted = ("verbs", "mlx5_dv", "rdmacm", "rc", "ud", "dc", "thread_multiple", "cma")
    assert [variant for variant in wanted if ucx[variant] is not True] == []


@pytest.mark.parametrize("site", CLUSTERS)
def test_open_mpi_of_a_cluster_has_both_fabrics_and_its_scheduler(monkeypatch, site):
    monkeypatch.setenv("PLUMB_SPACK_SITE", site)
    nodes = by_name("openmpi")
    assert nodes["openmpi"].parameters["fabrics"] == ["cma", "ofi", "ucx"]
    assert nodes["openmpi"].parameters["schedulers"] == ["slurm"]
    assert "verbs" in nodes["libfabric"].parameters["fabrics"]
    assert nodes["slurm"].parameters["pmix"] is True, "srun --mpi=pmix starts it"


@pytest.mark.parametrize("site", CLUSTERS)
def test_the_page_names_the_locks_of_a_cluster(site):
    locks = {file.parent.name for file in (SITE / site).glob("*/spack.lock")}
    assert locks == CLUSTERS[site][1]
    row = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(f"| `{site}` |"))
    assert set(re.findall("`([^`]+)`", row.split("|")[3])) == locks


def test_messages_between_gpus_are_known_to_library_transport_and_benchmark(monkeypatch):
    monkeypatch.setenv("PLUMB_SPACK_SITE", "debian12-zen4")
    nodes = by_name("openmpi-cuda")
    for name in ("openmpi", "ucx", "osu-micro-benchmarks"):
        assert nodes[name].parameters["cuda"] is True, name
    assert nodes["ucx"].parameters["gdrcopy"] is True
    assert nodes["cuda"].external


def test_the_same_package_is_of_one_version_in_all_locks():
    seen = {}
    for name in NAMES:
        for node in environments.read(name).nodes:
            if (name, node.name) == ("openmpi-4.1", "openmpi"):  # another version is what it is for
                continue
            seen.setdefault(node.name, set()).add(node.version)
    assert {name: versions for name, versions in seen.items() if len(versions) > 1} == {}


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_what_every_lock_compiles_is_compiled_by_spacks_wrapper(file):
    """Spack can build nothing without it, and leaves it out where the compiler does not run."""
    document = lock.decode(file.read_bytes())
    assert any(node.compiler("c") for node in document.nodes)
    assert list(document.without_wrapper()) == []


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_no_lock_depends_on_the_caches_of_a_machine(file):
    """STREAM, whose arrays do, is built beside the packages."""
    assert "stream" not in {node.name for node in lock.decode(file.read_bytes()).nodes}


def test_the_page_tells_the_locked_versions():
    page = (ROOT / "README.md").read_text()
    for name in spack.names():
        _, node = spack_site.node(environments.read(name), environments.known()[name].package)
        assert re.search(rf"^\| `{name}` \| [^|]*{re.escape(node.version)} \|", page, re.MULTILINE), name
    versions = environments.versions()
    for word in (versions.spack.tag, versions.packages.tag, versions.clingo):
        assert word in page


def test_site_files_name_system_prefixes_only():
    text = (SITE / "packages.yaml").read_text()
    assert set(re.findall(r"prefix: ([^\s}]+)", text)) == {"/usr", "/usr/lib/llvm-14"}
    common = [file for folder in ("common", "repo") for file in (ROOT / folder).rglob("*.yaml")]
    for file in [
        *ROOT.glob("*.yaml"),
        *common,
        *SITE.glob("*.yaml"),
        *SITE.glob("*/spack.yaml"),
    ]:  # other sites may name what they like
        assert not re.search(r"/(home|root|work|tmp)/", file.read_text()), file


def damaged(tmp_path, monkeypatch, change):
    """The default site with ``change`` done to its lock of Open MPI."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.copytree(SITE / "openmpi", site / "openmpi")
    shutil.copytree(SITE / "mpich", site / "mpich", ignore=shutil.ignore_patterns(environments.LOCK))
    document = json.loads((SITE / "openmpi" / environments.LOCK).read_text())
    change(document)
    (site / "openmpi" / environments.LOCK).write_text(json.dumps(document))
    monkeypatch.setenv("PLUMB_SPACK_SITE", str(site))


def hash_of(lock, name):
    return next(digest for digest, node in lock["concrete_specs"].items() if node["name"] == name)


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda lock: lock["roots"].pop(), "the lock does not match environment 'openmpi': "),
    (lambda lock: lock["roots"][0].update(spec="openmpi@4"), r"does not match environment 'openmpi': .*openmpi@4"),
    (lambda lock: lock["concrete_specs"].pop(lock["roots"][0]["hash"]), "the lock lacks "),
    (lambda lock: lock["concrete_specs"].pop(hash_of(lock, "hwloc")), "lacks hwloc .*which .* needs"),
    (lambda lock: lock["spack"].update(commit="0" * 40), "the lock was made by Spack 000000000000"),
    (lambda lock: lock.pop("roots"), "cannot read the lock"),
])  # fmt: skip
def test_damaged_locks_are_refused(tmp_path, monkeypatch, change, complaint):
    damaged(tmp_path, monkeypatch, change)
    with pytest.raises(PlumbError, match=complaint) as error:
        environments.read("openmpi")
    assert error.value.cure == environments.command("plumb stack lock spack:openmpi")


def test_a_missing_lock_and_an_unknown_site_are_named(tmp_path, monkeypatch):
    damaged(tmp_path, monkeypatch, lambda lock: None)
    with pytest.raises(PlumbError, match="environment 'mpich' has no lock"):
        environments.read("mpich")
    monkeypatch.setenv("PLUMB_SPACK_SITE", "nowhere")
    with pytest.raises(PlumbError, match=r"no Spack site 'nowhere'.*one of: ci, debian12-neoverse_v2, "):
        environments.read("mpich")


def test_foreign_paths_are_found(tmp_path):
    file = tmp_path / "x.lock"
    file.write_text(json.dumps({"a": "/usr/bin/gcc", "b": ["/home/me/mpi"], "c": {"d": "/usrlocal/x"}, "e": "/usr"}))
    assert spack_site.foreign_paths(file) == ["/home/me/mpi", "/usrlocal/x"]


def test_the_page_says_of_every_lock_what_of_it_was_built_and_run():
    """Under "What of the locks was ever built and run"; a row may have several locks of a site."""
    page = (ROOT / "README.md").read_text()
    _, _, rest = page.partition("## What of the locks was ever built and run\n")
    told = [
        f"{site}/{name}"
        for row in rest.splitlines()
        if (found := re.match(r"\| `([\w-]+)`: (`[\w., `-]+`) \|", row))
        for site, names in [found.groups()]
        for name in re.findall("`([^`]+)`", names)
    ]
    there = ["/".join(file.parts[-3:-1]).replace("environments/", "default/") for file in LOCKS]
    assert sorted(told) == sorted(there)
