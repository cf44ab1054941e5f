"""``plumb report``: which records it takes, where it writes, and what it says when it cannot."""

import argparse
import json

import pieces
import pytest
import reports
from samples import record

from plumbline.base.errors import PlumbError
from plumbline.commands import report as command
from plumbline.records import outcome
from plumbline.show.report import data


def put(results, *records, site="local", name="20260101T000000Z-node1-abcdef"):
    (results / site).mkdir(parents=True, exist_ok=True)
    lines = [item if isinstance(item, str) else json.dumps(item) for item in records]
    (results / site / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def report(*arguments):
    parser = argparse.ArgumentParser()
    command.run_report.add_to(parser)
    args = parser.parse_args(arguments)
    return args.run(args)


def shown(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def campaign_of(document):
    """The campaign that the head of the page names."""
    return dict(pieces.blocks(document["head"], "facts")[0]["rows"])["campaign"]


def records_of(document):
    """The records of the first series of the history."""
    return [row[2] for row in pieces.blocks(pieces.section(document, "history"), "chart")[0]["rows"]]


def numbered(number, **changes):
    """A record of the month ``number``."""
    return record(id=f"{number:012x}", time=f"2026-{number:02d}-01T00:00:00.000Z", **changes)


def test_the_newest_campaign_goes_beside_the_records(results, capsys):
    put(results, numbered(1, campaign="A"), numbered(2, campaign="B"), numbered(3))
    assert report() == 0
    file = results / "local" / "report.html"
    assert campaign_of(shown(file)) == "B"
    assert [entry["id"] for entry in shown(file)["entries"]] == [f"{2:012x}"]
    assert records_of(shown(file)) == [f"{n:012x}" for n in (1, 2, 3)]
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"report: {file} (")


def test_a_page_holds_so_many_records_and_says_what_it_leaves_out(results, monkeypatch, capsys):
    bad = {"verified": False, "verdict": "invalid", "figures": [], "reasons": ["why"]}
    put(results, *(numbered(n, campaign="A", **(bad if n == 2 else {})) for n in range(1, 7)))
    monkeypatch.setattr(data, "MAX_RECORDS", 4)
    assert report() == 0
    found = shown(results / "local" / "report.html")
    assert sorted(entry["id"] for entry in found["entries"]) == [f"{n:012x}" for n in (3, 4, 5, 6)]
    left_out = pieces.text(pieces.section(found, "left-out"))
    assert "2 older records of the campaign, 1 of them not valid" in left_out
    assert "the 2 oldest records of the campaign are left out: a page holds 4" in capsys.readouterr().out


def test_another_campaign_output_and_since(results, tmp_path):
    put(results, numbered(1, campaign="A-1"), numbered(2, campaign="A-1"), numbered(3, campaign="B"))
    target = tmp_path / "out" / "a.html"
    assert report("--campaign", "A", "--output", str(target), "--since", "2026-02") == 0
    assert [entry["id"] for entry in shown(target)["entries"]] == [f"{n:012x}" for n in (1, 2)]
    assert records_of(shown(target)) == [f"{n:012x}" for n in (2, 3)]


def test_records_of_no_campaign_are_shown_where_there_is_none(results):
    put(results, numbered(1))
    assert report() == 0
    assert campaign_of(shown(results / "local" / "report.html")) == "none: records made one by one"


def test_a_damaged_line_is_named_and_the_rest_is_shown(results, capsys):
    put(results, numbered(1, campaign="A"), '{"half": ')
    assert report() == 1
    assert "plumb: damaged record: " in capsys.readouterr().err
    found = shown(results / "local" / "report.html")
    assert len(found["entries"]) == 1
    damages = pieces.blocks(pieces.section(found, "left-out"), "bullets")[-1]["pieces"]
    assert [line.split(": ")[0] for line in damages] == ["20260101T000000Z-node1-abcdef.jsonl:2"]


def test_a_wrong_time_is_one_line(results, capsys):
    with pytest.raises(SystemExit):
        report("--since", "yesterday")
    assert "'yesterday' is not a time" in capsys.readouterr().err.splitlines()[-1]
    assert not (results / "local" / "report.html").exists()


@pytest.mark.parametrize(("arguments", "what"), [
    (["--campaign", "C"], "no campaign 'C'"),
    (["--campaign", "A"], "'A' begins 2 campaigns"),
    (["--site", "elsewhere"], "no records of site 'elsewhere'"),
])  # fmt: skip
def test_wrong_choices_are_one_line(results, arguments, what):
    put(results, numbered(1, campaign="A1"), numbered(2, campaign="A2"))
    with pytest.raises(PlumbError, match=what) as error:
        report(*arguments)
    assert error.value.cure
    assert not (results / "local" / "report.html").exists()


def test_no_records_and_two_sites(results):
    with pytest.raises(PlumbError, match="no records yet"):
        report()
    put(results, numbered(1))
    put(results, numbered(2, site="other"), site="other")
    with pytest.raises(PlumbError, match="which site"):
        report()
    assert report("--site", "other") == 0


def test_an_output_that_cannot_be_written(results, tmp_path):
    put(results, numbered(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(PlumbError, match="cannot write the report"):
        report("--output", str(tmp_path / "file" / "report.html"))


def test_skips_of_the_campaign_are_kept_and_shown(results):
    reports.write(results)
    assert report() == 0
    found = pieces.called(pieces.section(shown(results / "local" / "report.html"), "left-out"), "Cases")
    skips = [(row[0], row[2]) for row in found["rows"]]
    assert skips == [(4, "no two cores share a core"), (1, "stack openmpi has no imb-mpi1")]


def test_a_damaged_outcome_is_an_error(results):
    put(results, numbered(1, campaign="A"))
    outcome.write("local", "A", "quick", [])
    assert report() == 0
    outcome.file("local", "A").write_text('{"cases": [{"state": "SKIP"}]}')
    with pytest.raises(PlumbError, match="damaged outcome"):
        report()


def test_an_outcome_is_of_this_site_only(results):
    outcome.write("local", "A", "quick", [])
    assert outcome.read("local", "A") == {"profile": "quick", "cases": [], "part": None}
    assert outcome.read("local", "../local/A") is None
    assert outcome.read("local", None) is None
    outcome.file("local", "B").mkdir(parents=True)
    with pytest.raises(PlumbError, match="cannot write the outcome"):
        outcome.write("local", "B", "quick", [])
