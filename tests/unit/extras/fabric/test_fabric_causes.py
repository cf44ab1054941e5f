"""The table of causes: each entry is found where it is, and nowhere else."""

import re
from pathlib import Path

import fabrics
import pytest
from fabrics import case, facts, smoke
from witness_helper import compile_c

from plumbline.base import paths
from plumbline.extras.fabric import causes
from plumbline.extras.fabric.causes import CAUSES
from plumbline.extras.fabric.smoke import SMALL_VOLUME
from plumbline.mpi import ways
from plumbline.site.nodes import findings


def loads(*files):
    return {"loads": {"library": None, "files": {str(file): "0" * 64 for file in files}}}


def library(folder, source, *options, name="libuct_ib.so"):
    return Path(compile_c(folder, source, "-shared", "-fPIC", *options, name=name))


def without_its_library(folder):
    needed = library(folder, "int verbs(void) { return 1; }", name="libverbs_made.so")
    source = 'int verbs(void); const char *mark = "ibv_open_device"; int own(void) { return verbs(); }'
    plugin = library(folder, source, f"-L{folder}", "-lverbs_made")
    needed.unlink()
    return case(ways.INFINIBAND, **loads(plugin))


def closed(folder):
    return case(ways.INFINIBAND)


def other_interface(folder):
    cards = [
        {"name": name, "physical": True, "driver": "x", "speed_mbit": speed, "state": "up", "numa": 0}
        for name, speed in (("eth0", 1000), ("ib0", 100_000))
    ]
    ran = smoke(*fabrics.by_tcp("10.0.0.1", "10.0.0.2", SMALL_VOLUME), nodes=2)
    return case(ways.TCP, ran, node=facts(nics=cards))


#: cause -> a case that has it, and what shows it
MADE = {
    "turned off by a setting": (lambda _: case(ways.SHARED, settings={"OMPI_MCA_btl": ("self,tcp", "site.yaml")}),
                                "OMPI_MCA_btl=self,tcp (site.yaml)"),
    "provider not built": (
        lambda folder: case(ways.INFINIBAND, **loads(library(folder, "int own(void) { return 1; }"))),
        "none of its 1 libraries has ibv_open_device",
    ),
    "plugin without its library": (without_its_library, "libuct_ib.so lacks libverbs_made.so"),
    "UCX without threads": (
        lambda _: case(ways.INFINIBAND, smoke(lines=(f"pml_ucx.c:325 UCP worker {causes.NO_THREADS}.",))),
        f"the library says that UCX {causes.NO_THREADS}",
    ),
    "ranks in user namespaces of their own": (lambda _: case(ways.CMA, smoke({}, {"user_namespace": "user:[2]"})),
                                              "the ranks are in 2 user namespaces"),
    findings.PTRACE: (lambda _: case(ways.CMA, node=facts(knobs={"ptrace_scope": 1})), "1"),
    "copies refused by the kernel": (
        lambda _: case(ways.CMA, smoke({"refused": 3}, {})), "the kernel refused 3 copies",
    ),
    "device closed to this user": (closed, "there is no /dev/infiniband/uverbs*"),
    findings.LOCKED: (lambda _: case(ways.INFINIBAND, node=facts(knobs={"memlock_bytes": 64 << 10})), "64 KiB"),
    findings.SHM: (lambda _: case(ways.SHARED, node=facts(knobs={"shm_bytes": 64 << 20})), "64 MiB"),
    "slower interface": (other_interface, "messages go by eth0, 1 Gbit/s; ib0 has 100 Gbit/s"),
    "peer not reached: firewall or wrong interface": (
        lambda _: case(ways.TCP, smoke(failed="exit status 14", lines=("Error:  Connection refused (111)",), nodes=2)),
        "Error:  Connection refused (111)",
    ),
    "too slow beside other work": (
        lambda _: case(ways.SHARED, smoke(failed="ended by its time limit of 30 s", late=True, beside="other work")),
        "other work",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def addresses(monkeypatch):
    known = {"eth0": "10.0.0.1", "ib0": "10.1.0.1"}
    monkeypatch.setattr(causes, "address", known.get)


def test_every_cause_has_a_test():
    assert set(MADE) == {cause.name for cause in CAUSES}


def test_the_page_has_every_cause_in_the_order_of_the_table():
    page = (paths.root() / "docs" / "fabrics.md").read_text(encoding="utf-8").partition("## Causes and cures")[2]
    rows = re.findall(r"^\| (?!cause )([^|]+) \|", page, re.MULTILINE)
    assert rows == [cause.name for cause in CAUSES]


@pytest.mark.parametrize("name", MADE)
def test_a_cause_is_found_with_what_shows_it(name, tmp_path):
    if name == "device closed to this user" and Path("/dev/infiniband").exists():
        pytest.skip("this host has InfiniBand")
    make, seen = MADE[name]
    assert (name, seen) in [(why.cause, why.seen) for why in causes.of(make(tmp_path))]


@pytest.mark.parametrize(("nodes", "wanted"), [(1, []), (2, ["peer not reached: firewall or wrong interface"])])
def test_a_time_limit_is_no_firewall_within_a_node(nodes, wanted):
    late = smoke(failed="ended by its time limit of 30 s", late=True, nodes=nodes)
    assert [why.cause for why in causes.of(case(ways.TCP, late))] == wanted


@pytest.mark.parametrize("way", [*ways.WAYS, ways.SHARED, ways.TCP])
def test_where_nothing_is_wrong_only_what_is_not_there_is_named(way):
    found = {why.cause for why in causes.of(case(way))}
    assert found <= {"provider not built", "device closed to this user"}


@pytest.mark.parametrize("name", MADE)
def test_a_cure_is_said_in_full(name, tmp_path):
    found = [why.cure for why in causes.of(MADE[name][0](tmp_path))]
    assert all(found)
    assert not any("{" in cure for cure in found)


@pytest.mark.parametrize("level", [0, 2])
def test_ucx_is_asked_for_its_threads(tmp_path, level):
    attributes = "struct attributes { unsigned long long mask; int level; };"
    query = f"int ucp_lib_query(struct attributes *found) {{ found->level = {level}; return 0; }}"
    ucx = library(tmp_path, f"{attributes} {query}", name="libucp.so.0")
    assert causes.threads_of_ucx(case(ways.INFINIBAND, **loads(ucx))) == level
    assert causes.threads_of_ucx(case(ways.INFINIBAND)) is None


def test_a_plugin_beside_a_loaded_library_counts(tmp_path):
    uct = library(tmp_path, "int own(void) { return 1; }", name="libuct.so.0")
    (tmp_path / "ucx").mkdir()
    library(tmp_path, 'const char *mark = "ibv_open_device";', name="ucx/libuct_ib.so.0")
    assert [file.name for file in case(ways.INFINIBAND, **loads(uct)).able] == ["libuct_ib.so.0"]


def test_what_others_can_is_not_what_the_library_can(tmp_path):
    """The C library and the witness have the calls by which CMA copies; a library without CMA loads both."""
    source = 'const char *mark = "process_vm_readv";'
    others = [library(tmp_path, source, name=name) for name in ("libc.so.6", "libplumbwitness.so")]
    own = library(tmp_path, "int own(void) { return 1; }", name="libopen-pal.so")
    made = case(ways.CMA, **loads(own, *others))
    assert made.able == []
    assert "provider not built" in {one.cause for one in causes.of(made)}
