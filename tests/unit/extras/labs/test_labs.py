"""Labs: what is declared, what is seen, and what is said of it."""

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs
from samples import barrier as measured
from samples import record as stored

from plumbline import site
from plumbline.base import paths
from plumbline.base.table import escaped
from plumbline.commands import cli
from plumbline.extras.labs import command, evidence, model
from plumbline.extras.labs.model import Lab, Lesson, Needs, Table
from plumbline.judge.references import match
from plumbline.measure.reframe import campaign

#: a lab of one table: kinds of barriers by placement, beside what was published of a machine of the past
LAB = Lab(
    name="R7",
    title="Barriers",
    question="Which is cheap?",
    minutes=1,
    tests=["barrier_pair"],
    tables=[
        Table(title="By kind", tests="barrier_pair", figures=r"(?:time_)?(?P<kind>spin|pthread)(?:_cycles)?",
              rows={"kind": []}, columns={"placement": []}, labels={"pair:l3": "shared L3"},
              published=["rrze-nehalem:ep"])
    ],
    lesson="Spin.",
    seen=[
        Lesson(says="A spin loop is cheaper", better={"kind": "spin", "placement": "pair:l3"},
               than={"kind": "pthread", "placement": "pair:l3"})
    ],
)  # fmt: skip


def several(spin, pthread, launches=5, unit=None, **params):
    """Records of both kinds with so many launches each."""
    params["placement"] = "pair:l3"
    made = [measured(spin, **params), measured(pthread, "time_pthread", **params)]
    for record in made:
        (figure,) = record.figures
        figure.unit = unit or figure.unit
        figure.samples = [figure.value * (1 + 0.001 * (number - launches // 2)) for number in range(launches)]
        record.launches = [record.launches[0]] * launches
    return made


@pytest.mark.parametrize(("records", "state"), [
    (several(5.0, 50.0), "holds"),
    (several(50.0, 5.0), "does not hold"),
    (several(50.0, 50.4), "not decided"),
    (several(5.0, 50.0, launches=3), "holds"),
    (several(5.0, 50.0, launches=2), "not measured"),
    (several(5.0, 50.0)[:1], "not measured"),
    ([], "not measured"),
])  # fmt: skip
def test_a_lesson_is_seen_by_a_comparison(records, state):
    (finding,) = evidence.findings(LAB, records)
    assert finding.state == state


def test_a_figure_of_zero_has_no_ratio_and_is_still_compared():
    """RRZE: no library hides a receive, which is 0 %."""
    records = several(5.0, 50.0)
    records[0].figures[0].samples = [0.0] * 5
    (finding,) = evidence.findings(LAB, records)
    assert (finding.state, finding.ratio) == ("holds", None)


@pytest.mark.parametrize(
    ("unit", "samples", "state"),
    [("bytes", [0.0], "holds"), ("us", [0.0], "not measured"), ("bytes", [0.0, 8.0], "not measured")],
)
def test_bytes_are_counted_and_need_no_launches(unit, samples, state):
    """SciNet: one map sends nothing between nodes; as time, and where launches differ, that would be chance."""
    records = several(5.0, 50.0, launches=1)
    for record, values in zip(records, (samples, [50.0]), strict=True):
        record.figures[0].unit, record.figures[0].samples = unit, values
    (finding,) = evidence.findings(LAB, records)
    assert (finding.state, finding.ratio) == (state, None)


@pytest.mark.parametrize(
    ("values", "state", "ratio"), [((5.0, 50.0), "holds", 10.0), ((50.0, 5.0), "does not hold", 0.1)]
)
def test_what_a_table_counts_needs_one_launch(values, state, ratio):
    lab = structs.replace(LAB, tables=[structs.replace(LAB.tables[0], counted=True)])
    (finding,) = evidence.findings(lab, several(*values, launches=1))
    assert (finding.state, finding.ratio, finding.interval) == (state, pytest.approx(ratio), None)
    (finding,) = evidence.findings(lab, several(5.0, 50.0, launches=2))  # launches differ: not counted after all
    assert finding.state == "not measured"


def test_what_is_counted_or_computed_shows_no_answer_of_what_is_measured():
    """RRZE: a model's record does not say that all schemes have the same result."""
    says = [Lesson(says="the same bits")]
    tables = [structs.replace(LAB.tables[0], counted=True)]
    (finding,) = evidence.findings(structs.replace(LAB, tables=tables, seen=says), several(5.0, 50.0))
    assert finding.state == "not measured"
    (finding,) = evidence.findings(structs.replace(LAB, seen=says), several(5.0, 50.0))
    assert finding.state == "holds"


def test_each_stack_is_compared_with_itself():
    records = [*several(5.0, 50.0), *several(50.0, 5.0, stack="mpich")]
    found = evidence.findings(LAB, records)
    assert [(one.subject, one.state) for one in found] == [
        ("A spin loop is cheaper (openmpi)", "holds"),
        ("A spin loop is cheaper (mpich)", "does not hold"),
    ]
    closing = evidence.closing(LAB, found, "")
    assert closing.startswith("holds here in 1 of 2 comparisons, not in: A spin loop is cheaper (mpich)")


def test_a_number_is_said_with_its_name():
    found = evidence.findings(LAB, [*several(5.0, 50.0, threads=2), *several(6.0, 60.0, threads=4)])
    assert [one.subject for one in found] == [f"A spin loop is cheaper (threads {number})" for number in (2, 4)]


def test_a_lesson_without_a_comparison_needs_verified_records():
    lab = Lab(name="D2", title="Heat", question="?", minutes=1, lesson="!", seen=[Lesson(says="15 digits")])
    assert [one.state for one in evidence.findings(lab, [])] == ["not measured"]
    record = measured(1.0)
    assert [one.state for one in evidence.findings(lab, [record])] == ["holds"]
    record.state = "running"
    assert [one.state for one in evidence.findings(lab, [record])] == ["not measured"]
    record.state, record.verified, record.reasons = "complete", False, ["heat1d: the answer is wrong: T(2)"]
    (finding,) = evidence.findings(lab, [record])
    assert (finding.state, finding.reason) == ("does not hold", record.reasons[0])


def test_a_launch_that_was_ended_is_no_evidence_against_a_lesson():
    """Its reason is why there is no evidence, and what other launches show stands."""
    lab = Lab(name="U4", title="Product", question="?", minutes=1, lesson="!", seen=[Lesson(says="right")])
    ended = measured(1.0)
    ended.verified, ended.reasons = False, ["launch 0: ended by its time limit of 60 s"]
    (finding,) = evidence.findings(lab, [ended])
    assert (finding.state, finding.reason) == (
        "not measured", f"{ended.variant.name} on openmpi: launch 0: ended by its time limit of 60 s",
    )  # fmt: skip
    assert evidence.closing(lab, [finding], "") == f"no figures here: {finding.reason}"
    assert [item.state for item in evidence.findings(lab, [ended, measured(1.0)])] == ["holds"]


ANSWERS = Lesson(says="equal bits", variants={"placement": ["pair:l3", "pair:smt"]}, answers="checksum of .*")


def answering(checksum, placement):
    """A record whose launches print a checksum, and a remark that is no answer."""
    record = measured(1.0, placement=placement)
    for launch in record.launches:
        launch.remarks = [f"checksum of 8 points = {checksum}", "its clock is steady", f"rank = {placement}"]
    return record


@pytest.mark.parametrize(("records", "state", "reason"), [
    ([("a1", "pair:l3"), ("a1", "pair:smt")], "holds", "checksum of 8 points is a1"),
    ([("a1", "pair:l3"), ("b2", "pair:smt")], "does not hold", "checksum of 8 points is a1 and b2"),
    ([("a1", "pair:l3"), ("a1", "pair:l3")], "not measured", "there is no placement pair:smt"),
    ([("a1", "pair:l3"), ("b2", "pair:l3")], "does not hold", "checksum of 8 points is a1 and b2"),
])  # fmt: skip
def test_a_lesson_about_answers_needs_them_of_all_variants(records, state, reason):
    lab = Lab(name="R8", title="Jacobi", question="?", minutes=1, lesson="!", seen=[ANSWERS])
    for rows in ([answering(*item) for item in records], [answering(*item).row() for item in records]):
        (finding,) = evidence.findings(lab, rows)
        assert (finding.state, finding.reason) == (state, reason)


def test_answers_of_one_record_that_differ_are_against_the_lesson():
    record = answering("a1", "pair:l3")
    record.launches = [record.launches[0], structs.replace(record.launches[0], remarks=["checksum of 8 points = b2"])]
    assert record.answers["checksum of 8 points"] == "a1 or b2"
    lab = Lab(name="R8", title="J", question="?", minutes=1, lesson="!", seen=[structs.replace(ANSWERS, variants={})])
    (finding,) = evidence.findings(lab, [record, answering("a1", "pair:smt")])
    assert (finding.state, finding.reason) == ("does not hold", "checksum of 8 points is a1 or b2 and a1")


@pytest.mark.parametrize(("factor", "state"), [(1.3, "holds"), (1.01, "does not hold")])
def test_a_lesson_may_say_by_how_much_a_figure_may_be_worse(factor, state):
    """99.7 % of the peak: nearly as much, not more."""
    near = structs.replace(LAB.seen[0], within=factor)
    (finding,) = evidence.findings(structs.replace(LAB, seen=[near]), several(6.0, 5.0))
    assert (finding.state, finding.ratio) == (state, pytest.approx(5 / 6))


def test_a_place_may_be_the_nearest_that_the_machine_has():
    """Where no L3 cache is shared, two cores of a NUMA node are as near as two can be."""
    point = {"kind": "spin", "placement": "pair:l2|pair:l3"}
    lesson = structs.replace(LAB.seen[0], better=point, than={**point, "kind": "pthread"})
    (finding,) = evidence.findings(structs.replace(LAB, seen=[lesson]), several(5.0, 50.0))
    assert finding.state == "holds"


@pytest.mark.parametrize(
    ("pthread", "rounds", "state"), [(50.0, 3, "holds"), (50.0, 1, "not decided"), (6.0, 3, "not decided")]
)
def test_what_other_work_disturbed_is_firm_only_by_rounds_and_far_beyond_it(pthread, rounds, state):
    records = []
    for number, (place, record) in itertools.product(range(rounds), enumerate(several(5.0, pthread))):
        launches = [structs.replace(launch, disturbed=True) for launch in record.launches]
        records.append(structs.replace(record, session=f"{number}-{place}", launches=launches))
    (finding,) = evidence.findings(LAB, records)
    assert finding.state == state
    assert evidence.closing(LAB, [finding], "").endswith("all launches were disturbed")


def test_the_last_line_says_what_is_missing_here():
    found = evidence.findings(LAB, [])
    assert evidence.closing(LAB, found, "") == "not measured here yet: plumb lab R7"
    few = evidence.findings(LAB, several(5.0, 50.0, launches=2))
    assert evidence.closing(LAB, few, "") == "too few launches to say it: plumb lab R7"
    lacks = model.lacking(Needs(packages=2, cores=2), [Needs(cores=2)])
    assert evidence.closing(LAB, found, lacks) == "cannot be shown here: 2 packages needed, here 1"
    right = evidence.LessonFinding(subject="Pi is right", state="holds", count=5)
    assert evidence.closing(LAB, [right], "") == "holds here: Pi is right"


def test_plans_are_no_comparisons_that_hold_here():
    plan = evidence.LessonFinding(subject="Rank 0 is on CPU 0", state=evidence.HOLDS, count=1, planned=True)
    same, better = (evidence.findings(LAB, several(5.0, other)) for other in (5.02, 50.0))
    closing = evidence.closing(LAB, [*same, plan, plan], "")
    assert closing.startswith("not decided here: A spin loop is cheaper")
    assert closing.endswith("plumb lab R7 measures again; true without measuring, in 2 lines")
    assert evidence.closing(LAB, [*better, plan], "").startswith("holds here: A spin loop is cheaper")
    assert evidence.closing(LAB, [*better, *same, plan], "").startswith("holds here in 1 of 2 comparisons; not dec")


def test_no_difference_where_none_could_be_seen_is_not_against_the_lesson():
    """On one NUMA node all memory is local."""
    found = evidence.findings(LAB, several(50.0, 50.4))
    assert evidence.closing(LAB, found, "").startswith("not decided here: A spin loop is cheaper: 1.008 times")
    lacks = "2 packages needed, here 1"
    assert evidence.closing(LAB, found, lacks) == f"cannot be shown here: {lacks}"
    assert evidence.closing(LAB, evidence.findings(LAB, several(50.0, 5.0)), lacks).startswith("does not hold here")


def test_the_partition_that_lacks_least_counts():
    offers = [Needs(cores=1), Needs(cores=64, packages=2, nodes=1)]
    assert model.lacking(Needs(packages=2, nodes=2), offers) == "2 nodes needed, here 1"
    assert model.lacking(Needs(packages=2), offers) == ""


def test_what_was_published_and_what_was_measured_stand_in_one_table():
    """Cycles there and nanoseconds here: each with its unit, and no ratio between them."""
    (filled,) = evidence.filled(LAB, several(5.0, 50.0))
    table, rows = command.cells(filled)
    assert [column.title for column in table.columns] == ["kind", "", "shared L3", "pair:smt", "pair:xsocket"]
    assert rows == [
        ("pthread", "rrze-nehalem:ep", "4796 cycles", "23352 cycles", "49237 cycles"),
        ("", "here", "50.00 ns", "–", "–"),
        ("spin", "rrze-nehalem:ep", "267.0 cycles", "17388 cycles", "787.0 cycles"),
        ("", "here", "5.00 ns", "–", "–"),
    ]


def test_the_ratio_stands_below_both():
    (filled,) = evidence.filled(LAB, several(5.0, 50.0, unit="cycles"))
    _, rows = command.cells(filled)
    assert rows[2] == ("", "here / published", "0.0104", "–", "–")
    assert rows[5] == ("", "here / published", "0.0187", "–", "–")


def test_a_ratio_has_no_unit():
    records = several(5.0, 50.0, unit="1")
    lab = structs.replace(LAB, tables=[structs.replace(LAB.tables[0], published=[])])
    found = evidence.findings(lab, records)
    assert found[0].reason == "5.00 against 50.00"
    shown = command.text(command.Done(lab, evidence.filled(lab, records), [], found, ""))
    assert "\n\nBy kind\nkind " in shown


@pytest.mark.parametrize(("threads", "kind"), [((2, 4, 8), "log"), ((2, 4, 6), "value"), ((2, 4), "value")])
def test_a_curve_has_a_legend_and_an_axis_that_suits_its_numbers(threads, kind):
    over = structs.replace(LAB.tables[0], columns={"threads": []}, curve="threads", published=[])
    lab = structs.replace(LAB, tables=[over])
    filled = evidence.filled(lab, [one for number in threads for one in several(5.0, 50.0, threads=number)])
    picture = str(command.document(command.Done(lab, filled, [], [], "")))
    assert "'legend': True" in picture
    assert f"'max': 'dataMax', 'type': '{kind}'" in picture


def test_what_a_class_fills_in_has_nothing_measured():
    (filled,) = evidence.filled(LAB, several(5.0, 50.0))
    _, rows = command.cells(filled, empty=True)
    assert [row[1:] for row in rows if row[1] == "here"] == [("here", "", "", "")] * 2
    assert "5.00" not in str(rows)


# --- what is declared


@pytest.mark.parametrize("name", model.every())
def test_each_lab_is_of_tests_and_figures_that_there_are(name):
    lab = model.named(name)
    assert lab.name == name
    known = site.expected()
    for pattern in lab.tests:
        test = pattern.partition("[")[0].partition(".")[0].partition("%")[0].strip("^$")
        assert test in known, pattern
    for table in lab.tables:
        assert any(re.fullmatch(table.tests, test) for test in known), table.title
        assert [place for place in table.published if place.partition(":")[0] not in site.names()] == []
    assert lab.tests or lab.prints
    assert lab.seen or any(one.lines for one in lab.prints)


def test_each_published_figure_is_in_a_lab():
    """The tables of the documents can be found in what labs print, figure by figure."""
    shown = {
        (place, cell.value)
        for lab in model.every().values()
        for filled in evidence.filled(lab, [])
        for place, found in filled.published.items()
        for cell in found.cells.values()
    }
    missing = [
        f"{name}:{entry.partition} {entry.test} {entry.figure} {entry.params} {entry.value:g}"
        for name in site.names()
        for file in match.files(name)
        for entry in match.read(file).references
        if entry.method == "published" and (f"{name}:{entry.partition}", entry.value) not in shown
    ]
    assert missing == []


def test_there_is_a_lab_for_each_experiment():
    counts = {"T": 5, "R": 9, "U": 4, "S": 7, "D": 8}
    assert list(model.every()) == [f"{letter}{n}" for letter, last in counts.items() for n in range(1, last + 1)]


# --- the command


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A folder of results with nothing in it."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    return tmp_path


def test_it_lists_the_labs_by_document(alone, output_of):
    said = output_of(0, "lab")
    assert [line for line in said.splitlines() if line.startswith("R7 ")]
    assert all(document in said for document in model.DOCUMENTS.values())


def test_a_lab_without_records_shows_what_was_published(alone, output_of):
    files = [alone / "lab.html", alone / "lab.json", alone / "lab.txt"]
    words = [word for file in files for word in ("--output", str(file))]
    last = output_of(0, "lab", "R7", "--recorded", *words, "--handout", str(alone / "class.html")).splitlines()[-1]
    assert last == json.loads(files[1].read_text())["closing"] == files[2].read_text().splitlines()[-1]
    assert "49237" in files[0].read_text()
    assert "To be filled." in (alone / "class.html").read_text()


def test_what_a_document_printed_is_shown_without_measuring(alone, output_of):
    output = output_of(0, "lab", "D6", "--recorded")
    assert "published:\nTask  AppTime" in output
    assert output.endswith("\nno figures here: records do not keep its output; without --recorded it is measured\n")


def test_records_of_a_stack_that_is_not_installed_are_shown(alone, monkeypatch, output_of):
    (alone / "results" / "local").mkdir(parents=True)
    document = stored()
    document["stack"]["name"] = "gone"
    (alone / "results" / "local" / "20260101T000000Z-h-000000.jsonl").write_text(json.dumps(document) + "\n")
    monkeypatch.setattr(site, "here", lambda: "local")
    assert output_of(0, "lab", "D3", "--recorded", "--stack", "gone").startswith("D3  False sharing")


def test_a_file_shows_one_lab(alone, refused):
    assert "this file shows one lab" in refused(2, "lab", "R7", "D3", "--recorded", "--output", str(alone / "lab.html"))


def test_several_labs_end_with_a_table(alone, output_of):
    file = alone / "labs.md"
    said = output_of(0, "lab", "R7", "D3", "--recorded", "--output", str(file)).splitlines()[-2:]
    assert [line.split()[0] for line in said] == ["R7", "D3"]
    assert [line.split(" | ")[0] for line in file.read_text().splitlines()[2:]] == ["| R7", "| D3"]


def test_labs_that_would_end_too_late_are_left_out(alone, monkeypatch, capsys):
    """By the time that went by; first come those whose lesson can show on this machine (T1 needs two NUMA nodes)."""
    clock = iter([0.0, 0.0, 60.0, 180.0])
    measured_labs = []
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(command, "_measure", lambda lab, chosen: measured_labs.append(lab.name) or 0)
    monkeypatch.setattr(command, "_lacking", lambda: lambda lab: "2 NUMA nodes" if lab.name == "T1" else "")
    assert max(model.named(name).minutes for name in ("D3", "D2", "T1")) <= 2
    assert cli.main(["lab", "T1", "D3", "D2", "--minutes", "3.1"]) == 0
    assert measured_labs == ["D3", "D2"]
    assert "T1 left out: it takes" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "fault"), [
    (["D3", "--stack", "nosuch"], "nosuch"),
    (["D3", "--recorded", "--stack", "nosuch"], "nosuch"),
    (["D3", "--recorded", "--site", "nosuch"], "nosuch"),
    (["D3", "--site", "ulysses"], "this host is of the site"),
    (["D3", "--since", "2026-01-01"], "--since chooses records that there are"),
    (["all", "D3"], "there is no lab 'all'"),
    (["--handout", "class.html"], "no lab is named"),
])  # fmt: skip
def test_options_that_choose_records_choose_what_is_measured(alone, monkeypatch, refused, words, fault):
    monkeypatch.setattr(command, "_measure", lambda *of: pytest.fail("measured"))
    monkeypatch.setattr(site, "here", lambda: "local")
    assert fault in refused(2, "lab", *words)
    assert list(Path.cwd().glob("class.html")) == []


MINE = """name: MyLab
title: Mine
question: Which is cheap?
minutes: 1
tests: [barrier_pair]
lesson: Spin.
"""


def test_a_lab_of_a_persons_own_and_one_that_is_broken(alone, tmp_path, monkeypatch, capsys):
    """The broken one stops only itself."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "plumbline" / "labs"
    folder.mkdir(parents=True)
    (folder / "MyLab.yaml").write_text(MINE)
    (folder / "D10.yaml").write_text(MINE.replace("MyLab", "D10"))
    (folder / "broken.yaml").write_text("name: [")
    (folder / "Named.yaml").write_text(MINE)
    (folder / "D3.yaml").write_text(MINE.replace("MyLab", "D3"))
    assert cli.main(["lab"]) == 0
    shown, errors = capsys.readouterr()
    assert "Labs of your own\nlab " in shown
    assert "35 labs" in shown
    assert "broken.yaml" in errors
    assert "name: it is MyLab here, and Named in the file's name" in errors
    assert "not used: Plumbline has a lab D3" in errors
    for name in ("mylab", str(folder / "MyLab.yaml"), "D10"):
        assert cli.main(["lab", name, "--recorded"]) == 0
    assert cli.main(["lab", "broken", "--recorded"]) == 2


def ratios(**changes):
    """By machine, the ratio of the spin loop in a shared L3 cache to what was published of two machines."""
    places = ["rrze-woodcrest:e5420", "rrze-nehalem:ep"]
    lab = structs.replace(LAB, tables=[structs.replace(LAB.tables[0], published=places, **changes)])
    table, rows = command.cells(*evidence.filled(lab, several(5.0, 50.0, unit="cycles")))
    column = [each.title for each in table.columns].index("shared L3")
    return {row[1]: row[column] for row in rows if row[1].startswith("here / ")}


def test_each_machine_that_has_the_figure_gets_its_ratio():
    """A Woodcrest has no shared L3 cache: its cores that share an L2 cache are as near, where a lab says so."""
    assert ratios() == {"here / rrze-nehalem:ep": "0.0187"}
    assert ratios(nearest={"pair:l3": ["pair:l2"]}).keys() == {"here / rrze-nehalem:ep", "here / rrze-woodcrest:e5420"}


def test_a_row_may_mean_the_same_as_a_published_one():
    places = ["rrze-woodcrest:e5420"]
    table = structs.replace(
        LAB.tables[0], rows=LAB.tables[0].columns, columns=LAB.tables[0].rows, published=places,
        nearest={"pair:l3": ["pair:l2"]},
    )  # fmt: skip
    lab = structs.replace(LAB, tables=[table])
    _, rows = command.cells(*evidence.filled(lab, several(5.0, 50.0, unit="cycles")))
    assert [row[1] for row in rows if row[0] == "shared L3" or not row[0]][-1] == "here / published"


def test_a_reader_ranks_what_the_document_lets_rank():
    table = structs.replace(LAB.tables[0], ranked={"kind": ["pthread", "spin"]}, published=[])
    (filled,) = evidence.filled(structs.replace(LAB, tables=[table]), several(5.0, 50.0))
    assert command.ranking(filled) == "from best to poorest: spin, pthread"
    assert command.ranking(filled, empty=True) == "1.) ________   2.) ________"
    (filled,) = evidence.filled(structs.replace(LAB, tables=[table]), several(5.0, 50.0)[:1])
    assert command.ranking(filled) == ""


def test_a_hand_out_has_the_tables_without_any_figure():
    lab = structs.replace(LAB, tables=[structs.replace(LAB.tables[0], published=[])])
    page = str(command.handout(command.Done(lab, evidence.filled(lab, []), [], [], "")))
    assert "To be filled." in page
    rows = structs.replace(lab.tables[0], rows={"kind": ["spin"]})
    (filled,) = evidence.filled(structs.replace(lab, tables=[rows]), [])
    table, rows = command.cells(filled, empty=True)
    assert ([column.title for column in table.columns], rows) == (["kind", "placement …"], [("spin", "")])


def test_the_page_has_a_line_for_each_lab():
    """``plumb lab all --recorded --output labs.md`` writes them."""
    page = (paths.root() / "docs" / "labs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]\d) \| (.+?) \| .+ \|$", page, re.MULTILINE)
    assert rows == [(name, escaped(lab.title)) for name, lab in model.every().items()]


def test_an_interrupt_begins_no_other_lab(monkeypatch, capsys):
    begun = []
    monkeypatch.setattr(campaign, "measure", lambda tests: begun.append(tests) or campaign.INTERRUPTED)
    assert cli.main(["lab", "T1", "T2"]) == campaign.INTERRUPTED
    (tests,) = begun
    assert (tests.profile, tests.part, tests.experiment, tests.rounds) == ("lab", "chosen tests", "lab", 5)
