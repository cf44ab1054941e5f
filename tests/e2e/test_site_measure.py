"""``plumb site measure`` for real, on a host that believes its caches to be small: every ceiling has its evidence.

Set-up measures them too, before any test.
"""

import os
import subprocess
import sys

import own_site
import pytest
import small_caches

from plumbline import site
from plumbline.host import ceilings, machine
from plumbline.host.ceilings import words
from plumbline.measure import ceilings as measuring
from plumbline.records import store

pytestmark = pytest.mark.e2e


@pytest.fixture
def small(tmp_path, monkeypatch):
    """This host with caches of 64 KiB, its site in a folder of the test, and one short launch for each ceiling."""
    small_caches.pretend(tmp_path, 65536, monkeypatch)
    own_site.copy(tmp_path)
    for name in ("sites", "build", "results"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.setattr(measuring, "LAUNCHES", 1)
    monkeypatch.setattr(measuring, "CACHE_BYTES", 1 << 20)
    return tmp_path


@pytest.mark.long
def test_every_ceiling_is_from_a_verified_launch_of_this_machine(small):
    part = site.partition(site.load("local"), "default")
    said = []
    assert not measuring.is_current("local", part)
    code = measuring.measure("local", part, None, said.append)
    (found,) = ceilings.read("local")
    assert (code, found.left_out) == (0, []), said
    records = {
        record.id: record for record in store.read(small / "build" / "ceilings" / "local" / f"{found.session}.jsonl")
    }
    host = machine.load()
    lists = {name: getattr(found, name) for name in found.__struct_fields__ if name.endswith(("_s", "_ns"))}
    expected = {given.list: set() for item in measuring.experiments(host) for given in item.gives}
    for item in measuring.experiments(host):
        for given in item.gives:
            expected[given.list].add(tuple(item.where(given).items()))
    for name, wanted in expected.items():
        assert {tuple(where(one).items()) for one in lists[name]} == wanted, name
        for one in lists[name]:
            record = records[one.record]
            assert record.is_valid
            assert [len(launch.ranks) for launch in record.launches] == [1]
            assert one.median > 0
    assert not list((small / "results").rglob("*.jsonl"))  # the machine's ceilings are not results of a campaign
    assert found.machine == words(host)
    assert measuring.is_current("local", part)
    done = subprocess.run(
        [sys.executable, "-m", "plumbline.commands.cli", "site", "measure", "--site", "local", "--if-needed"],
        env=os.environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "the ceilings of partition default are up to date" in done.stdout


def where(one):
    """What tells a ceiling from the others of its list, as :meth:`Experiment.where` gives it."""
    members = ("cores", "numa_node", "level", "kernel", "pair")
    return {name: value for name in members if (value := getattr(one, name)) is not None}
