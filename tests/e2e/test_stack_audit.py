"""The audit of real stacks, in which causes are made for real: what is missed is named, with its cause."""

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import own_site
import pytest
import stack_manifest
from fabrics import adapter
from msgspec import convert
from msgspec.structs import replace
from odd_stack import Bench

from plumbline import site
from plumbline.base import files, paths
from plumbline.extras.fabric import audit
from plumbline.extras.fabric.audit import Use
from plumbline.mpi import ways
from plumbline.site.nodes import collection
from plumbline.site.nodes.model import Hca, Node
from plumbline.stacks import manifest as manifests

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores are needed"),
]
LOOPBACK = {"OMPI_MCA_btl_tcp_if_include": "lo", "FI_TCP_IFACE": "lo"}
OFF = "turned off by a setting"
#: stack, what the partition sets, what is missed by it, and the setting that is named
FORCED = [
    ("openmpi", {"OMPI_MCA_btl": "^sm"}, ways.SHARED, "OMPI_MCA_btl=^sm"),
    ("openmpi", {"OMPI_MCA_btl": "self,tcp"}, ways.SHARED, "OMPI_MCA_btl=self,tcp"),
    ("openmpi", {"OMPI_MCA_smsc": "^cma"}, ways.CMA, "OMPI_MCA_smsc=^cma"),
    ("mpich", {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}, ways.SHARED, "UCX_TLS=tcp,self"),
    (
        "mpich", {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}, ways.SHARED,
        "MPIR_CVAR_NOLOCAL=1",
    ),
    ("mpich", {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}, ways.CMA, "MPIR_CVAR_CH4_CMA_ENABLE=0"),
    ("intelmpi", {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"}, ways.SHARED, "I_MPI_FABRICS=ofi"),
]  # fmt: skip


class Audit:
    """Audits the installed ``stack``, or what ``change`` makes of its manifest, on a site of the test's own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def document(self, stack: str) -> dict[str, Any]:
        file = self.bench.folder / "installed" / stack / manifests.FILE
        if not file.exists():
            pytest.skip(f"stack {stack} is not installed")
        return dict(json.loads(file.read_text(encoding="utf-8")))

    def use(self, document: dict[str, Any]) -> None:
        folder = self.bench.folder / "stacks" / document["name"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / manifests.FILE).write_text(json.dumps(document), encoding="utf-8")

    def site(self, environment: dict[str, str]) -> None:
        own_site.change(self.bench.folder / "sites", of_site={"hostnames": [".*"]}, environment=environment)

    def facts(self, *adapters: dict[str, Any]) -> Node:
        return replace(collection.here(self.bench.folder), hcas=convert(list(adapters), list[Hca]))

    def run(self, document: dict[str, Any], environment: dict[str, str] | None = None, facts: Any = None) -> list[Use]:
        self.use(document)
        self.site(LOOPBACK | (environment or {}))
        folder = self.bench.folder / "audit"
        folder.mkdir()
        partition = site.load("local").partitions[0]
        return audit.audit(manifests.load(document["name"]), "local", partition, 1, facts or self.facts(), folder)

    def copied(self, stack: str, change: Callable[[Path], None]) -> dict[str, Any]:
        """A copy of a stack, in whose folder ``change`` was made, as an installation would record it."""
        old, new = str((self.bench.folder / "installed" / stack).resolve()), self.bench.folder / "copy"
        shutil.copytree(old, new, symlinks=True)
        change(new)
        document = json.loads(json.dumps(self.document(stack)).replace(old, str(new)))
        loads = document["loads"]
        loads["files"] = {name: sha for name, sha in loads["files"].items() if Path(name).exists()}
        for file in manifests.parts(stack_manifest.typed(document), loads["library"]):
            loads["files"][str(file)] = files.sha256(file)
        return document


@pytest.fixture
def audited(bench: Bench) -> Audit:
    return Audit(bench)


def missed(found: list[Use]) -> dict[str, list[tuple[str, str]]]:
    return {one.name: [(why.cause, why.seen) for why in one.why] for one in found if one.bad}


@pytest.mark.parametrize("stack", ["openmpi", "mpich", "intelmpi"])
def test_an_installed_stack_misses_nothing_here(audited, stack):
    found = audited.run(audited.document(stack))
    assert missed(found) == {}
    assert "us, " in next(one.seen for one in found if one.name == ways.SHARED)


def test_the_page_shows_the_rows_of_a_real_audit(audited):
    page = (paths.root() / "docs" / "fabrics.md").read_text(encoding="utf-8")
    block = page.partition("$ plumb stack check openmpi --run\n")[2].partition("```")[0]
    shown = [re.split(r" {2,}", line)[1:3] for line in block.splitlines() if line.startswith("openmpi ")]
    found = audited.run(audited.document("openmpi"), facts=audited.facts())
    assert shown == [[one.between, one.name] for one in found]


@pytest.mark.parametrize(
    ("stack", "variables", "way", "seen"),
    [pytest.param(*case, marks=() if place in (0, 2, 3, 6) else pytest.mark.long) for place, case in enumerate(FORCED)],
)
def test_a_way_that_a_variable_turns_off(audited, stack, variables, way, seen):
    found = missed(audited.run(audited.document(stack), variables))
    assert list(found) == [way]
    assert (OFF, f"{seen} (environment of partition default in site.yaml)") in found[way]


def test_a_settings_file_of_the_stack_forces_tcp(audited):
    def change(prefix: Path) -> None:
        (prefix / "etc").mkdir(exist_ok=True)
        (prefix / "etc" / "openmpi-mca-params.conf").write_text("# old\nbtl = tcp,self\n", encoding="utf-8")

    found = missed(audited.run(audited.copied("openmpi", change)))
    file = audited.bench.folder / "copy" / "etc" / "openmpi-mca-params.conf"
    assert found == {ways.SHARED: [(OFF, f"OMPI_MCA_btl=tcp,self ({file})")]}


class TestUserNamespaces:
    """Each rank in a user namespace of its own, as a container for each rank has it."""

    @pytest.fixture
    def apart(self, audited: Audit) -> Callable[[str], dict[str, Any]]:
        command = [shutil.which("unshare") or "unshare", "--user", "--map-root-user"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("this host refuses user namespaces")

        def make(stack: str) -> dict[str, Any]:
            document = audited.document(stack)
            entry = document["benchmarks"]["pairs"]
            entry["command"] = [*command, *entry["command"]]
            return document

        return make

    def test_open_mpi_copies_twice(self, audited, apart):
        found = missed(audited.run(apart("openmpi")))
        expected = ("ranks in user namespaces of their own", "the ranks are in 2 user namespaces")
        assert found == {ways.CMA: [expected]}

    def test_mpich_ends(self, audited, apart):
        found = missed(audited.run(apart("mpich")))
        expected = ("copies refused by the kernel", "the library says that the kernel refused a copy")
        assert found == {audit.MESSAGES: [expected]}


class TestWithAnAdapter:
    """The facts say that this node has an adapter, which it has not."""

    @pytest.fixture(autouse=True)
    def unlike(self) -> None:
        if Path("/sys/class/infiniband").exists():
            pytest.skip("this host has adapters of its own")

    def test_a_plugin_was_removed(self, audited):
        def change(prefix: Path) -> None:
            for pattern in ("libuct_ib*", "libuct_rdmacm*", "libverbs-fi*", "libefa-fi*"):
                for file in prefix.rglob(pattern):
                    file.unlink()

        found = audited.run(audited.copied("openmpi", change), facts=audited.facts(adapter()))
        causes = dict(missed(found)[ways.INFINIBAND])
        assert causes["provider not built"].endswith("has ibv_open_device")

    def test_a_plugin_without_its_library(self, audited):
        if subprocess.run("ldconfig -p | grep libpsm2", shell=True, check=False).returncode == 0:  # noqa: S602
            pytest.skip("this host has libpsm2")
        found = missed(audited.run(audited.document("openmpi"), facts=audited.facts(adapter("hfi1_0"))))
        assert ("plugin without its library", "libpsmx2-fi.so lacks libpsm2.so.2") in found[ways.OMNIPATH]

    @pytest.fixture
    def little(self) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, hard))
        yield
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))

    @pytest.mark.usefixtures("little")
    def test_memory_may_not_be_locked(self, audited):
        found = missed(audited.run(audited.document("mpich"), facts=audited.facts(adapter())))
        assert ("locked memory", "64 KiB") in found[ways.INFINIBAND]


def test_the_command_prints_json_and_says_by_its_status_what_is_missed(audited, output_of, monkeypatch):
    audited.use(audited.document("openmpi"))
    audited.site(LOOPBACK)
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    lines = [json.loads(line) for line in output_of(0, "stack", "check", "--run", "--json").splitlines()]
    assert {line["stack"] for line in lines} == {"openmpi"}
    (own,) = (line for line in lines if line["name"] == "OMPI_MCA_btl of this shell")
    assert own["why"][0] == {
        "cause": "not given to these launches", "seen": "turns shared memory off", "cure": "unset OMPI_MCA_btl",
    }  # fmt: skip
    audited.site(LOOPBACK | {"OMPI_MCA_btl": "self,tcp"})
    assert "1 of " in output_of(1, "stack", "check", "--run", "openmpi")


def test_a_stack_that_cannot_be_launched_is_one_row(audited, output_of):
    document = audited.document("openmpi")
    del document["benchmarks"]["pairs"]
    audited.use(document)
    audited.site({})
    assert "has no benchmark 'pairs'" in output_of(1, "stack", "check", "--run", "openmpi")


def test_options_of_a_run_need_it(audited, refused):
    audited.use(audited.document("openmpi"))
    assert "--json goes with --run" in refused(2, "stack", "check", "--json")
