"""The commands of the README's five questions answer them, on the records that its own two commands leave."""

import gzip
import re

import pytest

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.records import model, outcome
from plumbline.show.report import answer
from plumbline.show.report.findings import Campaign

ROOT = paths.root()
CAMPAIGN = gzip.decompress((ROOT / "tests/data/first-campaign.jsonl.gz").read_bytes())
#: these measure; the report has its sentence below, and one record's proof is not in this short form of a campaign
OTHERS = ("gate", "why", "bisect", "report", "show")
#: words of an answer that says nothing
NOTHING = re.compile(
    r"nothing (?:can be|is) (?:said|claimed)|no difference seen|no single best|\bno data\b", re.IGNORECASE
)


def commands() -> list[str]:
    """Those of the table below "Five questions"."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Five questions")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|") and "`plumb" in line]
    return [found for row in rows for found in re.findall(r"`plumb ([^`]+)`", row)]


@pytest.fixture
def first_campaign(tmp_path, monkeypatch):
    """The records of a first campaign of three libraries, and its outcome."""
    name = re.search(rb'"campaign":"([^"]+)"', CAMPAIGN)[1].decode()
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / f"{name}-vm-000000.jsonl").write_bytes(CAMPAIGN)
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path))
    outcome.write("local", name, "quick", [("OK", "stream_threads /1 @local:default+mpich", None, 1.0)])
    return tmp_path


@pytest.mark.parametrize("command", [line for line in commands() if not line.startswith(OTHERS)])
def test_a_command_that_reads_records_answers(first_campaign, capsys, command):
    status = cli.main(command.split())
    said = "".join(capsys.readouterr())
    assert NOTHING.search(said) is None, said[-500:]
    if command == "outliers":  # one node has none to be compared with: the command that answers is named
        assert "plumb report judges a single node" in said
    else:
        assert status == 0
    if command.startswith("compare"):
        assert re.search(r"mpich is worse in \d+ of \d+ figures", said)


def test_the_report_says_whether_the_machine_is_fine():
    records = [model.decode(line) for line in CAMPAIGN.splitlines()]
    sentence = answer.sentence(Campaign([(record, place) for place, record in enumerate(records)]))
    assert re.match(r"Yes, but mpich is slow, .*\d+ of 72 figures are as expected", sentence)


def test_every_command_of_the_five_questions_is_known():
    assert {line.split()[0] for line in commands()} - set(OTHERS) == {"list", "compare", "outliers"}
