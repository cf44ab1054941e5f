"""Labs, gates, searches and tunings are neither history nor the newest campaign; one option has them all."""

import argparse
import json

import pieces
import pytest
from samples import session, variant
from stored import keep

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.commands import report as report_command
from plumbline.judge import samples as samples_of
from plumbline.judge.history import series_of_records
from plumbline.judge.references import calibrate
from plumbline.judge.references.match import subject
from plumbline.records import naming, outcome, query
from plumbline.records.model import convert, document
from plumbline.records.query import Selection
from plumbline.show.report import data


@pytest.fixture
def local(results, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_SITES", str(tmp_path / "sites"))
    return results / "local"


def measured(number, value, **changes):
    """A record of the day ``number`` whose launches all have this value."""
    return session(number, *[value] * 3, **{"campaign": f"C{number}", **changes})


#: three whole campaigns; then a gate, a tuning, an early gate, a lab, an interrupted campaign and chosen tests
CAMPAIGNS = [1, 2, 3]
GATE, TUNING, EARLY, LAB, INTERRUPTED, CHOSEN = range(4, 10)
SLOW = 50.0


@pytest.fixture
def stored(local):
    keep(
        *(measured(number, 100.0) for number in CAMPAIGNS),
        measured(GATE, SLOW, campaign=None, side="candidate", experiment="gate"),
        measured(TUNING, SLOW, campaign=None, side="candidate", experiment="tune"),
        measured(EARLY, SLOW, campaign=None, side="baseline"),
        measured(LAB, SLOW, experiment="lab"),
        measured(INTERRUPTED, 101.0),
        measured(CHOSEN, 99.0),
    )
    for number in CAMPAIGNS:
        outcome.write("local", f"C{number}", "full" if number == 2 else "quick", [("OK", "a", None)])
    outcome.write("local", f"C{LAB}", "lab", [("OK", "a", None)], outcome.CHOSEN)
    outcome.write("local", f"C{INTERRUPTED}", "quick", [("OK", "a", None)], outcome.INTERRUPTED)
    outcome.write("local", f"C{CHOSEN}", "quick", [("OK", "a", None)], outcome.CHOSEN)
    return local


PLAIN = [*CAMPAIGNS, INTERRUPTED, CHOSEN]


def ids(rows):
    return [int(row.id, 16) for row in rows]


def plumb(capsys, *words):
    status = cli.main(list(words))
    return status, capsys.readouterr().out


def test_an_early_record_says_by_its_side_that_it_is_of_a_gate(stored):
    rows, _ = query.records()
    found = {int(row.id, 16): row.experiment for row in rows if row.is_experiment}
    assert found == {GATE: "gate", TUNING: "tune", EARLY: "gate", LAB: "lab"}
    whole, damages = query.of_rows(rows)
    assert not damages
    assert {item.id: item.is_experiment for item in whole} == {row.id: row.is_experiment for row in rows}


def test_a_record_without_the_member_is_written_as_it_was():
    before = measured(1, 100.0)
    assert "experiment" not in document(convert(before))


def test_a_selection_leaves_experiments_out(stored):
    assert ids(query.records(Selection(plain=True))[0]) == PLAIN
    assert len(query.records(Selection())[0]) == 9


@pytest.mark.parametrize("all_of_them", [False, True])
def test_history_has_no_points_of_experiments(stored, capsys, all_of_them):
    _, out = plumb(capsys, "history", "--json", *(["--experiments"] if all_of_them else []))
    (line,) = (json.loads(text) for text in out.splitlines())
    assert line["points"] == (9 if all_of_them else len(PLAIN))


@pytest.mark.parametrize("all_of_them", [False, True])
def test_dashboards_have_no_figures_of_experiments(stored, capsys, all_of_them):
    _, out = plumb(capsys, "export", "--format", "csv", *(["--experiments"] if all_of_them else []))
    assert len(out.splitlines()) - 1 == (9 if all_of_them else len(PLAIN))


def test_a_refused_candidate_does_not_move_the_reference(stored):
    def sessions(where):
        changes = calibrate.propose(query.records(where)[0], "local").changes
        return [change.new.source.sessions for each in changes.values() for change in each]

    assert sessions(Selection(plain=True)) == [len(PLAIN)]
    assert sessions(Selection()) == [9]


def test_where_there_are_experiments_alone_the_option_is_named(local, refused):
    keep(measured(1, 1.0, campaign=None, side="baseline"))
    assert "--experiments" in refused(3, "history")


def test_the_newest_record_is_of_no_experiment(stored):
    assert int(query.find("last").id, 16) == CHOSEN
    for number in PLAIN:
        (stored / f"s{number}.jsonl").unlink()
    assert int(query.find("last").id, 16) == LAB


@pytest.mark.parametrize(("profile", "wanted", "expected"), [
    (None, "last", 3),
    ("quick", "last", 3),
    ("full", "last", 2),
    (None, f"C{LAB}", LAB),
    (None, f"C{INTERRUPTED}", INTERRUPTED),
])  # fmt: skip
def test_the_report_is_of_the_newest_whole_campaign_of_the_profile(stored, profile, wanted, expected):
    rows, _ = query.records()
    assert data.choose(rows, wanted, "local", profile)[0] == f"C{expected}"


def test_a_profile_without_a_whole_campaign_is_refused_and_the_present_ones_named(stored):
    with pytest.raises(PlumbError, match="no whole campaign of profile 'heat'") as error:
        data.choose(query.records()[0], "last", "local", "heat")
    assert error.value.cure == "there are: quick, chosen tests; quick, interrupted; lab; quick; full"


def test_without_whole_campaigns_a_part_is_shown_before_a_lab(stored):
    rows = [row for row in query.records()[0] if int(row.id, 16) not in CAMPAIGNS]
    assert data.choose(rows, "last", "local")[0] == f"C{CHOSEN}"
    assert data.choose([row for row in rows if row.experiment], "last", "local")[0] == f"C{LAB}"
    assert data.choose([row for row in rows if row.campaign is None], "last", "local")[0] is None


@pytest.mark.parametrize(("profile", "cases", "part"), [
    ("quick", [("OK", "a", None)], None),
    ("quick", [("OK", "a", None), ("ABORT", "b", None)], outcome.INTERRUPTED),
    ("lab", [("OK", "a", None)], outcome.CHOSEN),
    ("accept", [("OK", "a", None)], outcome.CHOSEN),
])  # fmt: skip
def test_early_outcomes_say_what_they_can(local, profile, cases, part):
    outcome.write("local", "C", profile, cases)
    assert outcome.standing("local", "C") == (profile, part)


def test_unknown_and_damaged_outcomes(local):
    assert outcome.standing("local", "C") == (None, None)
    local.mkdir(parents=True)
    outcome.file("local", "C").write_text("{}")
    assert str(outcome.standing("local", "C")) == "campaign"


def test_the_page_lists_the_others(stored, capsys):
    parser = argparse.ArgumentParser()
    report_command.run_report.add_to(parser)
    args = parser.parse_args([])
    assert args.run(args) == 0
    out = capsys.readouterr().out
    assert "campaign C3: " in out
    assert f"newer: quick, chosen tests: plumb report --campaign C{CHOSEN}" in out
    text = (stored / "report.html").read_text(encoding="utf-8")
    page = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert [(row[1], row[2]) for row in pieces.rows(pieces.section(page, "others"))] == [
        ("quick, chosen tests", "C9"), ("quick, interrupted", "C8"), ("lab", "C7"), ("gate", "s6"),
        ("tune", "s5"), ("gate", "s4"), ("full", "C2"), ("quick", "C1"),
    ]  # fmt: skip
    (points,) = (chart["rows"] for chart in pieces.blocks(pieces.section(page, "history"), "chart"))
    assert [int(row[2], 16) for row in points] == PLAIN


@pytest.mark.parametrize("changes", [
    {"environment": {"A": "1"}},
    {"settings": {"btl": "self"}},
    {"context": {"replaced": ["/tmp/a.out"]}},
    {"application": {"name": "heat", "program": "heat", "commit": "a" * 40, "build": {"CFLAGS": "-O3"}}},
])  # fmt: skip
def test_other_circumstances_are_another_series_and_another_reference(changes):
    rows = [
        convert(measured(number, 100.0 + 20 * (number % 2), variant=variant(**(changes if number % 2 else {})))).row()
        for number in range(1, 9)
    ]
    assert [len(item.values["node1"]) for item in samples_of.nodes(rows)] == [12, 12]
    assert len({item.name for item in samples_of.nodes(rows)}) == 2
    both = series_of_records(rows)
    assert sorted(set(entry.values).pop() for entry in both) == [100.0, 120.0]
    assert len({entry.name for entry in both}) == 2
    figures = [(row, row.figures[0]) for row in rows]
    assert calibrate.entry(figures, 3).source.sessions == 4
    assert calibrate.entry(figures, 3).value == 100.0


def test_records_of_the_port_of_osu_are_another_series_than_those_of_osu():
    documents = [measured(day, value) for day, value in ((1, 100.0), (2, 30.0))]
    documents[0]["benchmark"]["version"] = "mpi4py-4.1.2"
    port, program = rows = [convert(item).row() for item in documents]
    assert naming.name(port.variant) == f"{naming.name(program.variant)} (mpi4py)"
    assert port.variant.selected == program.variant.name  # ReFrame knows no other
    assert {series.name: series.values for series in series_of_records(rows)} == {
        f"{row.variant.name} {row.stack.name} triad": [value] for row, value in ((port, 100.0), (program, 30.0))
    }
    assert subject(port, "triad").key != subject(program, "triad").key
