"""``plumb screen --links`` over nodes of one machine, reached by ssh: each group by itself, and a slow link."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import own_site
import pytest
from processes import succeeded
from two_nodes import Site, site_over

from plumbline.records import query

pytestmark = pytest.mark.e2e
CLASS = "plumb-class 1\nname made-up\ncpu 0 0\nbudget 10 1\nend\n"


@contextlib.contextmanager
def screened(folder: Path, names: Sequence[str]) -> Iterator[Site]:
    """A site of scheduler ssh with a class, which judges nothing."""
    with site_over(folder, names) as place:
        own_site.change(folder / "sites", scheduler="ssh")
        made = folder / "sites" / "local" / "health" / "default.class"
        made.parent.mkdir()
        made.write_text(CLASS, encoding="utf-8")
        yield place


def screen(place: Site, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[set[str]]]:
    """The last lines of a screen, and the nodes of each record that it left."""
    done = place.plumb("screen", "--links", "--seconds", "10", "--stack", "mpich")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    monkeypatch.setenv("PLUMB_RESULTS", str(place.folder / "results"))
    rows, damages = query.records(query.Selection(test="screen_links"))
    assert damages == []
    assert all(row.is_valid for row in rows), done.stdout
    return done.stdout.splitlines(), [set(row.nodes) for row in rows]


def test_each_group_is_measured_on_its_own_nodes(tmp_path, monkeypatch):
    names = [f"plumb-n{number}" for number in range(1, 5)]
    with screened(tmp_path, names) as place:
        _, measured = screen(place, monkeypatch)
    assert sorted(map(len, measured)) == [2, 2]
    assert set.union(*measured) == set(names)


@pytest.mark.long
def test_a_slow_link_is_found_among_twelve_nodes(tmp_path, monkeypatch):
    """What it sends has 100 Mbit/s; all others share the machine, so that they may be too unlike for a decision."""
    names = [f"plumb-n{number}" for number in range(1, 13)]
    with screened(tmp_path, names) as place:
        slow = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100mbit", "burst", "64kb", "latency", "1s"]
        around = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        succeeded(place.nodes.run(slow, around, 10, names.index("plumb-n7")))
        said, measured = screen(place, monkeypatch)
    assert set.union(*measured) == set(names)
    bad = [line for line in said if line.startswith("bad: ")]
    followed = "bad: node plumb-n7: every group with it is slow"
    (stuck,) = [line for line in said if "it is slow, but no other group is certainly fine" in line] or [""]
    assert (bad, stuck) == ([followed], "") or (bad == [] and "plumb-n7" in stuck), said
