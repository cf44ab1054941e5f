"""``plumb accept``: what it measures, with a campaign that writes records in place of launches; its files and forms."""

import json
import re
from pathlib import Path

import acceptance
import pytest
import samples
import yaml

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.accept import command
from plumbline.gate.variants import Listing
from plumbline.measure.reframe import campaign
from plumbline.records import store
from plumbline.schedulers import Node

CLAUSE = {**acceptance.BANDWIDTH, "launches": 5, "share": 1.0, "at_least": 10, "over": "each node"}
PLACE = {"site": "cluster", "partition": "default"}
VARIANT = samples.asked(test="stream_threads", name="stream_threads %placement=compact %threads=2", **PLACE)


class Campaigns:
    """Campaigns that measure ``value`` in MB/s, or raise it; each call is kept."""

    def __init__(self):
        self.calls = []
        self.value = lambda node: 12_000.0
        self.status = 0

    def __call__(self, tests, nodes=(), turn=None):
        words = list(tests.options)
        (count,) = (int(word.partition("=")[2]) for word in words if word.startswith("launches="))
        pattern = words[words.index("-n") + 1]
        assert re.match(pattern, VARIANT.name.replace(" ", ""))
        assert not re.match(pattern, VARIANT.name.replace(" ", "") + "0")
        (node,) = (one.partition("=")[2] for one in nodes)
        self.calls.append((node, count))
        value = self.value(node)
        if value is not None and self.status == 0:
            number = len(list(Path("results/cluster").iterdir())) + 1
            launches = [acceptance.triad(order, value + order) for order in range(count)]
            made = acceptance.record(number, acceptance.BANDWIDTH, [node], launches)
            made.time = f"2200-01-01T00:{number:02}:00.000Z"
            store.write(Path("results") / "cluster" / f"{number}.jsonl", [made])
        return self.status


@pytest.fixture
def campaigns(tmp_path, monkeypatch):
    """A site ``cluster`` with four nodes of a scheduler, and a contract of STREAM on three."""
    for name in ("results", "sites", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sites/cluster").mkdir(parents=True)
    (tmp_path / "results/cluster").mkdir(parents=True)
    (tmp_path / "sites/cluster/t.xml").touch()
    part = {"name": "default", "scheduler": "slurm", "topology": "t.xml", "stacks": ["openmpi"]}
    site = {"schema": 1, "name": "cluster", "description": "", "hostnames": [".*"], "partitions": [part]}
    (tmp_path / "sites/cluster/site.yaml").write_text(yaml.safe_dump(site))
    write()
    made = Campaigns()
    monkeypatch.setattr(campaign, "measure", made)
    nodes = [Node("n0", "down", False), *(Node(f"n{number}", "idle", True) for number in (1, 2, 3))]
    monkeypatch.setattr(command.schedulers, "nodes", lambda *_: nodes)
    listing = Listing({"openmpi": {VARIANT.name: VARIANT}})
    monkeypatch.setattr(command.variants, "list_variants", lambda *_: listing)
    now = {"commit": "a", "stacks": {"openmpi": "b"}, "nodes": "login", "environment": {}}
    monkeypatch.setattr(command.session, "circumstances", lambda _: now)
    return made


def write(*clauses, **changes):
    document = acceptance.contract(*(clauses or (CLAUSE,)), **{"nodes": 3, **changes})
    Path("c.yaml").write_text(yaml.safe_dump(document))


def accept(*words):
    return cli.main(["accept", "c.yaml", *words])


def test_each_node_is_measured_once_and_a_repetition_measures_nothing(campaigns):
    assert accept() == 0
    assert campaigns.calls == [("n1", 5), ("n2", 5), ("n3", 5)]
    assert accept() == 0
    assert accept("--recorded") == 0
    assert len(campaigns.calls) == 3


def test_it_continues_with_what_is_missing(campaigns, capsys):
    campaigns.value = lambda node: None if node == "n2" else 12_000.0
    assert accept() == 2
    assert "1 not measured: n2" in capsys.readouterr().out
    campaigns.calls.clear()
    campaigns.value = lambda node: 12_000.0
    assert accept() == 0
    assert campaigns.calls == [("n2", 5)]


def test_a_node_that_is_down_keeps_no_other_from_being_measured(campaigns, capsys):
    def value(node):
        if node == "n1":
            raise PlumbError("n1 cannot be used", "partition default", "these can: n[2-3]")
        return 12_000.0

    campaigns.value = value
    assert accept() == 2
    out = capsys.readouterr().out
    assert "not measured: n1 cannot be used (partition default): these can: n[2-3]" in out
    assert "1 not measured: n1" in out
    assert [node for node, _ in campaigns.calls] == ["n1", "n2", "n3"]


def test_one_host_measures_no_other(campaigns, monkeypatch, capsys):
    file = Path("sites/cluster/site.yaml")
    file.write_text(file.read_text().replace("slurm", "local"))
    assert accept() == 2
    assert "n1: scheduler local has jobs on this host alone" in capsys.readouterr().out
    assert campaigns.calls == []


def test_an_interrupted_campaign_ends_the_command(campaigns):
    campaigns.status = campaign.INTERRUPTED
    assert accept() == 130
    assert len(campaigns.calls) == 1


def test_no_campaign_begins_after_the_minutes(campaigns, capsys):
    assert accept("--minutes", "0.000000001") == 2
    assert campaigns.calls == []
    assert "time is up" in capsys.readouterr().out


def test_a_retest_is_measured_when_it_is_asked_for(campaigns):
    write({**CLAUSE, "launches": 10, "retests": {"share": 0.4}})
    campaigns.value = lambda node: 9_000.0 if node == "n3" else 12_000.0
    assert accept() == 2
    assert accept() == 2
    assert len(campaigns.calls) == 3
    campaigns.value = lambda node: 12_000.0
    assert accept("--retest") == 0
    assert campaigns.calls[3:] == [("n3", 10)]


def test_records_from_before_the_test_do_not_count(campaigns):
    old = [acceptance.triad(order, 1.0) for order in range(8)]
    store.write(Path("results/cluster/old.jsonl"), [acceptance.record(99, acceptance.BANDWIDTH, ["n1"], old)])
    assert accept("--recorded") == 2
    assert accept() == 0


def test_once_begun_no_other_time_is_chosen(campaigns, refused):
    assert accept() == 0
    for option in ("--since=2020-01-01", "--until=2030-01-01"):
        assert "leave both out: what was measured since 20" in refused(3, "accept", "c.yaml", option)


def test_nodes_that_cannot_be_chosen_are_refused_before_anything_is_measured(campaigns, monkeypatch, refused):
    scheduler = command.schedulers.named(command.site.load("cluster").partitions[0].scheduler)
    monkeypatch.setattr(type(scheduler), "can_pin", False)
    assert "cannot be put on a node that is named (partition default): measure" in refused(3, "accept", "c.yaml")
    assert campaigns.calls == []


def test_changed_circumstances_and_another_contract_are_refused(campaigns, monkeypatch, refused):
    assert accept("--work", "mine") == 0
    write({**CLAUSE, "at_least": 11})
    assert "this folder holds the test of another contract" in refused(3, "accept", "c.yaml", "--work", "mine")
    write()
    now = {"commit": "a", "stacks": {"openmpi": "c"}, "nodes": "login", "environment": {}}
    monkeypatch.setattr(command.session, "circumstances", lambda _: now)
    assert "stacks changed since this acceptance test began" in refused(3, "accept", "c.yaml", "--work", "mine")


@pytest.mark.parametrize(("changes", "said"), [
    ({"params": {"placement": "spread"}}, "no variant of stream_threads has these params"),
    ({"over": "whole machine"}, "no variant of stream_threads over 3 nodes has these params"),
    ({"stack": "mpich"}, "no variant of stream_threads has these params"),
])  # fmt: skip
def test_a_clause_without_a_variant_is_refused_before_anything_is_measured(changes, said, campaigns, refused):
    write({**CLAUSE, **changes})
    assert said in refused(3, "accept", "c.yaml")
    assert campaigns.calls == []


def test_why_a_variant_is_skipped_is_said(campaigns, monkeypatch, capsys):
    names = ("compact", "spread")
    skips = {f"stream_threads %placement={name} %threads=2": f"no room for {name}" for name in names}
    monkeypatch.setattr(command.variants, "list_variants", lambda *_: Listing({}, {"openmpi": skips}))
    write({**CLAUSE, "params": {"threads": 2, "placement": "spread"}})
    assert accept() == 3
    assert "no variant of stream_threads has these params; skipped: no room for spread" in capsys.readouterr().err


def test_several_variants_are_refused():
    contract = command.Contract(
        schema=1, machine="m", vendor="v", offer="", nodes=1,
        clauses=[acceptance.clause({**CLAUSE, "params": {}})],
    )  # fmt: skip
    other = samples.asked(name="stream_threads %placement=spread %threads=2")
    listing = Listing({"openmpi": {VARIANT.name: VARIANT, other.name: other}})
    with pytest.raises(PlumbError, match="2 variants"):
        command._variant(contract.clauses[0], contract, listing)


def test_files_and_forms(campaigns, capsys):
    assert accept("--json", "--output", "a.html", "--output", "a.json", "--output", "a.txt") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads(Path("a.json").read_text())
    assert json.loads(out)["clauses"][0]["bound"] == 12.0
    assert err.count("accept: pass: 1 clause: 1 pass") == 1
    assert Path("a.txt").read_text().endswith("accept: pass: 1 clause: 1 pass\n")
    page = Path("a.html").read_text()
    assert "Acceptance of Example-1: pass" in page
    assert "src=" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_the_plan_measures_nothing(campaigns, capsys):
    assert accept("--plan") == 0
    assert "5 of 5, 3" in capsys.readouterr().out
    assert campaigns.calls == []
    assert not Path("build").exists()
