"""A contract: the starter, and what is refused before anything is measured."""

import re
from pathlib import Path

import acceptance
import pytest
import samples
import yaml

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.records import model

BAD = [
    ({"nodes": 0}, "nodes: "),
    ({"nodes": "n[1-"}, "nodes: 'n[1-' cannot be host names"),
    ({"clauses": []}, "clauses: "),
    ({"extra": 1}, "extra"),
    ({"machine": "two\nlines"}, "machine: "),
]
BAD_CLAUSE = [
    ({"test": "stream_thread"}, "test: no test is called 'stream_thread': did you mean 'stream_threads'?"),
    ({"at_most": 5}, "at_least: one of at_least and at_most is the limit"),
    ({"at_least": None}, "at_least: one of at_least and at_most is the limit"),
    ({"at_least": -1}, "at_least: "),
    ({"unit": "furlongs"}, "unit: 'furlongs' is unknown"),
    ({"unit": "us"}, "unit: clause memory bandwidth: triad is in MB/s"),
    ({"at_least": None, "at_most": 9}, "at_least: clause memory bandwidth: of triad, higher is better: write at_least"),
    ({"share": 0}, "share: "),
    ({"share": 1.5}, "share: "),
    ({"confidence": 1}, "confidence: "),
    ({"launches": 0}, "launches: "),
    ({"launches": 4}, "launches: 4 of each node can never show with confidence 0.95 that 8 of 8 meet the limit: 5 are"),
    ({"share": 0.75, "launches": 5}, "that 6 of 8 meet the limit: 6 are needed"),
    ({"of_launches": 0.9}, "can never show with confidence 0.95 that 8 of 8 meet the limit: 29 are needed"),
    ({"retests": {"share": 0.02}}, "retests.share: 0.02 of 8 nodes is less than one"),
    ({"over": "whole machine", "share": 0.5}, "over: the whole machine is one"),
    ({"over": "each rack"}, "over: "),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder whose results have a record of STREAM."""
    (tmp_path / "results" / "local").mkdir(parents=True)
    record = model.encode([model.convert(samples.record())])
    (tmp_path / "results" / "local" / "s.jsonl").write_text(record)
    for name in ("results", "sites", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(document, capsys):
    """Exit status of the check of a contract, and the lines that it prints."""
    Path("c.yaml").write_text(yaml.safe_dump(document))
    status = cli.main(["accept", "c.yaml", "--check"])
    out, err = capsys.readouterr()
    return status, (out + err).splitlines()


def test_the_starter_is_in_order_and_replaces_nothing(place, capsys, refused):
    assert cli.main(["accept", "new.yaml", "--init"]) == 0
    before = Path("new.yaml").read_text()
    assert "there is a file of this name already" in refused(3, "accept", "new.yaml", "--init")
    assert Path("new.yaml").read_text() == before


def test_the_contract_of_the_page_is_in_order(place, capsys):
    page = (paths.suite() / "docs/acceptance.md").read_text(encoding="utf-8")
    (text,) = re.findall("```yaml\n(.*?)```", page, re.DOTALL)
    Path("page.yaml").write_text(text)
    assert cli.main(["accept", "page.yaml", "--check"]) == 0


@pytest.mark.parametrize(("changes", "said"), BAD)
def test_what_is_wrong_with_the_whole_is_one_line(changes, said, place, capsys):
    status, lines = checked(acceptance.contract(**changes), capsys)
    assert (status, len(lines)) == (3, 1)
    assert said in lines[0]


@pytest.mark.parametrize(("changes", "said"), BAD_CLAUSE)
def test_what_is_wrong_with_a_clause_is_one_line_with_its_key(changes, said, place, capsys):
    clause = {name: value for name, value in {**acceptance.BANDWIDTH, **changes}.items() if value is not None}
    status, lines = checked(acceptance.contract(clause), capsys)
    assert (status, len(lines)) == (3, 1), lines
    assert said in lines[0]
    assert "clauses[0]." in lines[0] or "$.clauses" in lines[0], lines


def test_all_faults_are_named(place, capsys):
    other = {**acceptance.BANDWIDTH, "launches": 3, "unit": "x"}
    status, lines = checked(acceptance.contract(acceptance.BANDWIDTH, other), capsys)
    assert status == 3
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        *("clauses[1].name", "clauses[1].launches", "clauses[1].unit", "clauses[1].launches")
    ]


def test_links_need_two_nodes_and_an_end(place, capsys):
    for nodes, said in ((1, "clauses[0].over: 1 node has no links"), (5000, "at most 1000000 can be judged")):
        status, lines = checked(acceptance.contract(acceptance.LINKS, nodes=nodes), capsys)
        assert (status, len(lines)) == (3, 1)
        assert said in lines[0]


def test_a_contract_that_is_absent_or_no_yaml_is_one_line(place, refused):
    Path("torn.yaml").write_text("a: [")
    for words in (["accept"], ["accept", "absent.yaml"], ["accept", "torn.yaml", "--plan"]):
        refused(3, *words)


def test_the_stored_contract_and_records_are_those_that_are_made(tmp_path):
    """Those of docs/acceptance.md."""
    acceptance.write(tmp_path)
    for name in ("contract.yaml", "results/cluster/night.jsonl"):
        assert (tmp_path / name).read_bytes() == (acceptance.FOLDER / name).read_bytes()
