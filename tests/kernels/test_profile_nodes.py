"""``plumb profile`` of a program over two nodes, on every installed stack: started by ssh, joined by a network."""

from collections.abc import Iterator

import pytest
from kernel_stack import KernelStack
from processes import succeeded
from two_nodes import NAMES, Site, site_over

from plumbline.host import machine
from plumbline.launch import profile_files, profiles
from plumbline.launch.profiles import Profile
from plumbline.records import store
from plumbline.records.model import Record


def profiled(site: Site, stack: KernelStack, placement: str) -> tuple[Record, Profile]:
    """``heat1d`` on four ranks: each exchanges 3 messages with either neighbour; nothing else is counted."""
    words = ["profile", "--stack", stack.name, "--placement", placement, "--nodes", "2", "--ranks", "2"]
    words += ["--threads", "1", "--time-limit", "300"]
    succeeded(site.plumb(*words, "--", str(stack.programs / "heat1d"), "--repetitions", "1"))
    session = max((site.folder / "results" / "local").glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    (record,) = [one for one in store.read(session) if isinstance(one, Record)]
    return record, profile_files.load(session.parent / "profiles" / f"{record.id}.json")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of two nodes."""
    if len(machine.load().cores) < 2:
        pytest.skip("not run: two ranks on a node need two cores")
    with site_over(tmp_path_factory.mktemp("nodes")) as found:
        yield found


def _messages(profile: Profile) -> tuple[int, int]:
    """Those that stay on a node, and those that do not."""
    found = {name: one.messages for name, one in profiles.traffic(profile).items()}
    return sum(found.values()) - found[profiles.NODES], found[profiles.NODES]


def test_two_nodes(each_stack, site):
    """Ranks of both leave a profile, their places are proven, and what crossed the network is told apart."""
    record, profile = profiled(site, each_stack, "compact")
    assert (record.verified, record.is_profiled, record.figures) == (True, True, [])
    assert [rank.host for rank in profile.ranks] == [place.host for place in profile.places] == sorted(2 * NAMES)
    assert profile.missing == []
    assert all(rank.ended == "MPI_Finalize" for rank in profile.ranks)
    assert _messages(profile) == (2 * 6, 6)


def test_placement_over_nodes(one_stack, site):
    """Dealt in turn, every exchange of neighbours leaves its node; ``plumb diff`` says so."""
    both = [profiled(site, one_stack, placement) for placement in ("compact", "roundrobin")]
    assert [rank.host for rank in both[1][1].ranks] == [*NAMES, *NAMES]
    assert _messages(both[1][1]) == (0, 3 * 6)
    told = succeeded(site.plumb("diff", *(record.id for record, _ in both)))
    rows = [line.split() for line in told.stdout.splitlines() if line.startswith(profiles.NODES)]
    assert [row[2:4] for row in rows] == [["6", "18"]]
    assert "the same calls and sizes" in told.stdout


@pytest.mark.parametrize(("words", "line"), [
    (["--nodes", "2", "heat1d"], "--nodes is of a program"),
    (["--nodes", "3", "--placement", "core", "--", "true"], "3 nodes asked, hosts names 2"),
])  # fmt: skip
def test_nodes_that_cannot_be_had_are_one_line(one_stack, site, words, line):
    """Nothing is launched."""
    done = site.plumb("profile", "--stack", one_stack.name, *words)
    told = done.stderr.splitlines()
    assert (done.returncode, len(told)) == (2, 1), done.stderr
    assert line in told[0]
