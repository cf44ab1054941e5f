"""What the audit says of a launch: which ways could be used, which were, what was missed."""

import fabrics
import pytest
from fabrics import QUIET, adapter, facts, judge, smoke

from plumbline.extras.fabric import audit, causes
from plumbline.extras.fabric.smoke import LARGE_MESSAGES, SMALL_VOLUME
from plumbline.mpi import ways

NONE = {"copies": 0}


@pytest.fixture(autouse=True)
def addresses(monkeypatch):
    monkeypatch.setattr(causes, "address", {"eth0": "10.0.0.1"}.get)


def verdicts(found):
    return {one.name: one.bad for one in found}


def within(*ranks, node=None, **more):
    return verdicts(judge(smoke(*ranks), node, **more).of_node())


def test_shared_memory_and_copies_are_fine():
    found = within()
    assert (found[ways.SHARED], found[ways.CMA], found[ways.XPMEM]) == (False, False, False)


def test_few_copies_are_probes_of_libraries():
    assert within({"copies": LARGE_MESSAGES // 2 - 1}, {"copies": LARGE_MESSAGES // 2})[ways.CMA] is True
    assert within({"copies": LARGE_MESSAGES}, NONE)[ways.CMA] is False


def test_messages_over_tcp_are_not_in_shared_memory_that_is_mapped_all_the_same():
    found = within(*fabrics.by_tcp("10.0.0.1", "10.0.0.1", SMALL_VOLUME))
    assert (found[ways.SHARED], found[ways.CMA]) == (True, False)
    assert within(*fabrics.by_tcp("10.0.0.1", "10.0.0.1", 100))[ways.SHARED] is False


def test_a_device_that_somebody_put_there_is_to_be_used():
    there = facts(knobs={"xpmem": True})
    assert within(node=there)[ways.XPMEM] is True
    used = within(*[{**NONE, "devices": ["/dev/xpmem"]}] * 2, node=there)
    assert (used[ways.XPMEM], used[ways.CMA]) == (False, False)


def test_a_library_that_copies_twice_by_design_misses_nothing():
    assert within(NONE, NONE, family="intelmpi")[ways.CMA] is False
    assert within(NONE, NONE, family="mpich")[ways.CMA] is True


@pytest.mark.parametrize(("huge", "knobs", "bad", "seen"), [
    (10, {}, False, "20 of 80 MB of the ranks at MPI_Finalize"),
    (0, {}, None, "0 of 80 MB of the ranks at MPI_Finalize"),
    (0, {"thp": "never", "huge_pages": 0}, False, "0 of 80 MB "),
    (0, {"thp": "never", "huge_pages": 9}, None, "0 of 80 MB "),
    (None, {}, None, "the kernel does not tell"),
])  # fmt: skip
def test_memory_in_huge_pages_is_shown(huge, knobs, bad, seen):
    pages = {} if huge is None else {"present_bytes": 40_000_000, "huge_bytes": huge * 1_000_000}
    (row,) = [use for use in judge(smoke(pages, pages), facts(knobs=knobs)).of_node() if use.name == audit.HUGE]
    assert (row.bad, row.seen[: len(seen)]) == (bad, seen)


def test_gpus_want_a_library_that_takes_their_memory():
    card = {"address": "0000:01:00.0", "class": "0302", "vendor": "0x10de", "device": "0x20b0", "numa": 0}
    node = facts(gpus=[card])
    assert within(node=node)[audit.GPU] is True
    assert within(node=node, accelerator="cuda")[audit.GPU] is False


@pytest.mark.parametrize(("version", "variables", "bad", "seen"), [
    ("2021.12.1", {"I_MPI_OFFLOAD": "1"}, True, "no"),
    ("2021.13.0", {}, False, "cuda: I_MPI_OFFLOAD=1 for programs that need it"),
    ("2021.18.1", {"I_MPI_OFFLOAD": "0"}, False, "cuda: I_MPI_OFFLOAD=1 for programs that need it"),
    ("2021.18.1", {"I_MPI_OFFLOAD": "1"}, False, "cuda: I_MPI_OFFLOAD=1"),
])  # fmt: skip
def test_a_library_that_takes_their_memory_when_it_is_told(version, variables, bad, seen):
    card = {"address": "0000:01:00.0", "class": "0302", "vendor": "0x10de", "device": "0x20b0", "numa": 0}
    mpi = {"family": "intelmpi", "version": version, "abi": "mpich"}
    settings = {name: (value, "the launch") for name, value in variables.items()}
    found = judge(smoke(), facts(gpus=[card]), mpi=mpi, settings=settings).of_node()
    (row,) = [one for one in found if one.name == audit.GPU]
    assert (row.bad, row.seen) == (bad, seen)


class TestBetweenNodes:
    """Ranks of two nodes."""

    @staticmethod
    def of(*ranks, lines=(), node=None):
        return verdicts(judge(smoke(*ranks, nodes=2, lines=lines), node).between_nodes())

    def test_tcp_beside_an_active_port_is_missed(self):
        found = self.of(*fabrics.by_tcp("10.0.0.1", "10.0.0.2", SMALL_VOLUME))
        assert (found[ways.INFINIBAND], found[ways.SLINGSHOT]) == (True, False)

    def test_the_library_s_own_report_counts(self):
        line = "[1.0] [n1:1:0] ucp_worker.c:1855 UCX  INFO  0x1 inter-node cfg#6 tag(rc_mlx5/mlx5_0:1)"
        assert self.of(lines=(line,))[ways.INFINIBAND] is False
        assert self.of(lines=(line.replace("rc_mlx5/mlx5_0:1", "tcp/ib0"),))[ways.INFINIBAND] is True

    def test_a_device_open_in_both_ranks_counts_without_tcp(self):
        opened = {"devices": ["/dev/infiniband/uverbs0"]}
        assert self.of(opened, opened)[ways.INFINIBAND] is False
        assert self.of(opened, {})[ways.INFINIBAND] is True
        one, other = fabrics.by_tcp("10.0.0.1", "10.0.0.2", SMALL_VOLUME)
        assert self.of({**one, **opened}, {**other, **opened})[ways.INFINIBAND] is True

    @pytest.mark.parametrize(
        ("hca", "network"),
        [(adapter(layer="Ethernet"), ways.ROCE), (adapter("hfi1_0"), ways.OMNIPATH), (adapter(state="DOWN"), None)],
    )
    def test_networks_are_told_apart_and_a_port_that_is_down_is_none(self, hca, network):
        assert list(causes.fabrics(facts(hcas=[hca]))) == ([network] if network else [])
        assert bool(causes.inactive(facts(hcas=[hca]), ways.INFINIBAND)) is (network is None)

    def test_slingshot_is_known_by_the_driver_of_its_interface(self):
        card = {"name": "hsn0", "physical": True, "driver": "cxi_ss1", "speed_mbit": 200_000, "state": "up", "numa": 0}
        node = facts(hcas=[], nics=[card])
        assert causes.fabrics(node) == {ways.SLINGSHOT: "hsn0"}
        assert self.of(lines=("libfabric provider: cxi",), node=node)[ways.SLINGSHOT] is False

    def test_a_launch_that_fails_is_missed_with_what_it_says(self):
        ran = smoke(nodes=2, failed="exit status 14", lines=("connect: No route to host",))
        (found,) = judge(ran).between_nodes()
        assert found.bad
        assert "No route to host" in found.effect
        assert "OMPI_MCA_btl_tcp_if_include" in found.cure


def test_of_one_node_what_the_library_cannot_use_is_known():
    (found, *_) = judge(smoke()).untried()
    assert (found.name, found.between, found.bad) == (ways.INFINIBAND, "nodes", True)
    assert "provider not built" in found.effect
    assert list(judge(smoke(), facts(hcas=[])).untried()) == []


def test_variables_of_the_shell_are_named_and_not_held_against_the_stack():
    (found,) = judge(smoke(refused={"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_verbose": "1"})).dropped()
    assert (found.bad, found.why[0].seen) == (None, "turns shared memory off")


def test_the_text_has_a_row_for_each_way_and_a_line_for_each_cause():
    found = list(judge(smoke({**QUIET, "refused": 2, "copies": 0}, {"copies": 0, "user_namespace": "x"})).of_node())
    lines = audit.text(found).splitlines()
    assert sum(line.startswith("made: CMA: ") for line in lines) == 3
    assert lines[-1] == f"1 of {len(found)} missed"
