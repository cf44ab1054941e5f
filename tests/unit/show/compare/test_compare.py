"""``plumb compare``: sides by name, lines by key, claims that hold, and every form of output."""

import csv
import io
import itertools
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pieces
import pytest
from samples import launch, record, settle, variant

from plumbline.base import git, paths
from plumbline.commands import cli
from plumbline.judge import compare as judging
from plumbline.records import store
from plumbline.records.model import convert
from plumbline.statistics import unpaired

sys.path.insert(0, str(paths.root() / "tests/rates"))
import unpaired as simulated
from promises import Promises

NOISE = (0.99, 1.0, 1.01)
#: seven launches, which the exact test of ranks can tell apart
SEVEN = (0.99, 0.993, 0.996, 1.0, 1.003, 1.006, 1.01)


@pytest.fixture
def measured(results):
    """Writes one session of triad on one stack, about ``value`` MB/s, in as many launches as ``noise`` has factors."""
    numbers = itertools.count(1)

    def write(value, stack="openmpi", noise=NOISE, unit="MB/s", better="higher", disturbed=0, **changes):
        number = next(numbers)
        document = record(**{"id": f"{number:012x}", "session": f"s{number}", **changes})
        document["launches"] = [launch(n, value * noise[n], disturbed=n < disturbed) for n in range(len(noise))]
        for made in document["launches"]:
            made["measurements"][0] |= {"unit": unit, "better": better}
        document["stack"] = document["stack"] | {"name": stack}
        document["variant"] = document["variant"] | {"stack": stack, "launches": len(noise)}
        store.write(store.session_file(document["site"], document["session"]), [convert(settle(document))])

    return write


def compare(capsys, *arguments):
    assert cli.main(["compare", *arguments]) == 0
    return capsys.readouterr().out


def documents(capsys, *arguments):
    return json.loads(compare(capsys, *arguments, "--json"))


def test_without_records_no_side_is_blamed(results, refused):
    assert refused(2, "compare", "openmpi", "mpich").startswith(f"plumb: no valid record to compare ({results}): ")


def test_a_list_of_a_mistyped_test_names_one_that_has_records(measured, refused):
    measured(100.0)
    assert "did you mean 'stream_" in refused(2, "list", "--test", "strem_threads")


def test_three_sessions_of_each_stack_are_judged_by_sessions(measured, capsys):
    for spread in (0.995, 1.0, 1.005):
        measured(10000 * spread, "openmpi")
        measured(11000 * spread, "mpich")
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert line["best"] == [1]
    difference = line["differences"][1]
    assert difference["basis"] == "sessions"
    assert difference["low"] < 1.1 < difference["high"]
    assert difference["low"] > 1.05


def test_a_single_session_needs_more_than_sessions_may_differ(measured, capsys):
    for value, stack in ((10000, "openmpi"), (11000, "mpich"), (20000, "intelmpi")):
        measured(value, stack, SEVEN)
    out = compare(capsys, "openmpi", "mpich", "intelmpi")
    assert "~1.100 [1.078 to 1.122]?" in out  # no launches overlap, and yet sessions may differ so much
    assert "★ 20.00 ~2.000 [1.960 to 2.041]" in out
    assert "~: from fewer than 3 sessions of a side" in out
    assert out.strip().splitlines()[-1] == (
        "mpich against openmpi: 1 of 1 figure undecided; intelmpi is faster than openmpi in 1 of 1 "
        "figure (2.00 times), slower in 0, 0 undecided; two more campaigns make it firm"
    )


@pytest.mark.parametrize("launches", [1, 2])
def test_few_launches_of_one_session_claim_nothing(measured, capsys, launches):
    """Equal sides of one launch each were told apart with an interval of no width."""
    measured(10000, "openmpi", NOISE[:launches])
    measured(30000, "mpich", NOISE[:launches])
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    difference = line["differences"][1]
    assert (line["claimed"], line["best"], difference["visible"]) == ([False, False], [], None)
    assert (difference["p"], difference["low"]) == (1.0, None)
    out = compare(capsys, "openmpi", "mpich")
    assert "~3.000?" in out
    assert "fewer than 3 launches on a side, which show nothing" in out


def test_one_campaign_says_what_exceeds_by_far_how_sessions_differ(measured, capsys):
    """Three launches of one session each, as `make campaign` measures them; 20 % may be the sessions'."""
    factors = (6.97, 5.29, 2.4, 1.2, 0.2, 1.0)
    for number, factor in enumerate(factors):
        chosen = {"variant": variant(test=f"t{number}", name=f"t{number}"), "unit": "us", "better": "lower"}
        measured(1.0, "openmpi", **chosen)
        measured(factor, "mpich", **chosen)
    out = compare(capsys, "openmpi", "mpich")
    assert out.strip().splitlines()[-1] == (
        "mpich is slower in 3 of 6 figures (2.40 to 6.97 times), faster in 1, 2 undecided; "
        "two more campaigns make it firm"
    )
    assert "are taken to differ by 15 % (standard deviation)" in out
    claimed = [line["claimed"][1] for line in documents(capsys, "openmpi", "mpich")["lines"]]
    assert claimed == [True, True, True, False, True, False]


def test_launches_that_scatter_need_a_gap_beyond_what_sessions_differ_by(measured, capsys):
    """The medians are 2.4 times apart, the nearest launches 1.3 times."""
    measured(1.0, "openmpi", (0.7, 1.0, 1.3))
    measured(2.4, "mpich", (0.7, 1.0, 1.3))
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert line["claimed"] == [False, False]
    assert line["differences"][1]["visible"] > 2.4


@pytest.mark.parametrize(
    ("of_first", "of_second", "claimed"), [(2, 0, False), (1, 0, True), (0, 3, True), (3, 2, True)]
)
def test_a_worse_side_that_alone_was_disturbed_shows_nothing(measured, capsys, of_first, of_second, claimed):
    """Disturbance makes slower: it explains a slower side, not a faster one, nor sides that were disturbed alike."""
    measured(10000, "openmpi", disturbed=of_first)
    measured(30000, "mpich", disturbed=of_second)
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert line["claimed"] == [False, claimed]
    out = compare(capsys, "openmpi", "mpich")
    assert ("]†" in out, "†: half or more" in out) == (max(of_first, of_second) > 1,) * 2


def side(name, *launches):
    return judging.Cell(float(np.median(launches)), (name,), (launches,), 0, len(launches), 0.0, (name,))


def test_sides_measured_in_turn_are_the_pairs_that_they_are():
    """The machine changes from launch to launch: 10 % is seen in pairs, and not from session to session."""
    waves = (1.0, 1.3, 0.8, 1.1, 0.9, 1.2, 1.0)
    launches = [wave * (1.1 + 0.002 * number) for number, wave in enumerate(waves)]
    of = {
        name: judging.difference(side("s1", *waves), side(name, *launches), "lower", 10, 0.15) for name in ("s1", "s2")
    }
    in_turn, apart = of["s1"], of["s2"]
    assert (in_turn.basis, in_turn.p < 0.005, round(in_turn.ratio, 2)) == ("pairs", True, 1.11)
    assert in_turn.low < in_turn.ratio < in_turn.high < 1.13
    assert 1 < in_turn.visible < 1.1
    assert (apart.basis, apart.p > 0.3) == ("launches", True)
    assert judging.difference(side("s1", *waves), side("s1", *launches[1:]), "lower", 10, 0.15).basis == "launches"


def test_placements_are_sides(measured, capsys):
    """Ranks, threads and memory stay equal; without a placement memory is where it was first touched."""
    placed = record()["placement"]
    asked = ("none", "firsttouch", 10000), ("compact", "local", 30000), ("compact", "remote", 5000)
    for name, memory, value in asked:
        measured(value, placement=placed | {"name": name, "memory": memory})
    (line,) = documents(capsys, "placement=none", "placement=compact")["lines"]
    assert (line["key"]["placement"], line["claimed"]) == ("1x2", [False, True])
    assert "placement=compact is faster in 1 of 1 figure" in compare(capsys, "placement=none", "placement=compact")


def test_sides_of_campaigns_are_told_of_no_campaigns_to_come(measured, capsys):
    for campaign, value in (("aaaaaa1", 10000), ("bbbbbb2", 30000)):
        measured(value, campaign=campaign, unit="widgets")
    said = compare(capsys, "aaaaaa", "bbbbbb").strip()
    assert said.endswith("better in 1 of 1 figure (3.00 times), worse in 0, 0 undecided")


def test_of_many_sides_the_best_are_counted(measured, capsys):
    for number, stack in enumerate(("a", "b", "c", "d")):
        measured(10000 * 3**number, stack)
    out = compare(capsys, "a", "b", "c", "d")
    assert out.strip().endswith("1 figure: a best in 0, b best in 0, c best in 0, d best in 1, no single best in 0")


def test_sides_that_none_beats_share_the_best(measured, capsys):
    for value, stack in ((10000, "openmpi"), (20000, "mpich"), (20200, "intelmpi")):
        measured(value, stack, SEVEN)
    assert documents(capsys, "openmpi", "mpich", "intelmpi")["lines"][0]["best"] == [1, 2]


def test_lower_is_better_for_times(measured, capsys):
    for value, stack in ((1.0, "openmpi"), (2.0, "mpich")):
        measured(value, stack, SEVEN, unit="us", better="lower")
    assert documents(capsys, "openmpi", "mpich")["lines"][0]["best"] == [0]


def test_multiples_of_a_unit_are_one_figure(measured, capsys):
    for _ in range(3):
        measured(5.0, "openmpi", unit="GB/s")
        measured(5000.0, "mpich", unit="MB/s")
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert (line["unit"], [cell["value"] for cell in line["cells"]]) == ("MB/s", [5000, 5000])
    assert (line["differences"][1]["ratio"], line["claimed"]) == (pytest.approx(1.0), [False, False])


@pytest.mark.parametrize("changes", [{"unit": "widgets/s"}, {"better": "lower"}])
def test_other_units_and_directions_are_not_compared(measured, capsys, refused, changes):
    measured(10.0, "openmpi")
    measured(10.0, "mpich", **changes)
    told = refused(2, "compare", "openmpi", "mpich")
    assert "no figure in common that is alike" in told
    assert "stream_threads triad (MB/s, higher is better) and stream_threads triad (" in told
    for stack in ("openmpi", "mpich"):
        measured(10.0, stack, variant=variant(test="other", name="other"))
    assert "not compared, for unit, direction or arguments differ: stream_thr" in compare(capsys, "openmpi", "mpich")


def test_problems_of_two_sizes_are_two_lines_here_and_in_lists(measured, capsys, output_of):
    """Which differ by the program's arguments alone; folders of files and kinds of GPU are the machine's."""
    for size, stack in itertools.product((600, 1500), ("openmpi", "mpich")):
        of_stack = [f"/opt/{stack}/grid.in", "cuda" if stack == "mpich" else "rocm"]
        measured(size, stack, variant=variant(arguments=["--n", str(size), *of_stack, "--json"]))
    lines = documents(capsys, "openmpi", "mpich")["lines"]
    assert [line["key"]["variant"] for line in lines] == ["stream_threads --n 1500", "stream_threads --n 600"]
    assert [[cell["value"] for cell in line["cells"]] for line in lines] == [[1500, 1500], [600, 600]]
    assert "stream_threads --n 600 " in output_of(0, "list", "--ranked")


def test_arguments_that_do_not_differ_are_not_shown(measured, capsys):
    for stack in ("openmpi", "mpich"):
        measured(10.0, stack, variant=variant(arguments=["--n", "600"]))
    assert "--n" not in compare(capsys, "openmpi", "mpich")


def test_systems_are_compared_stack_by_stack(measured, capsys):
    for stack, site in itertools.product(("openmpi", "mpich"), ("old", "new")):
        measured(10000 if site == "old" else 20000, stack, site=site)
    lines = documents(capsys, "site=old", "site=new")["lines"]
    assert [line["key"]["stack"] for line in lines] == ["mpich", "openmpi"]
    assert all(line["key"]["site"] == "" for line in lines)


def test_periods_end_with_their_last_month(measured, capsys):
    for month, value in (("09", 10000), ("10", 10000), ("11", 20000), ("12", 30000)):
        measured(value, time=f"2026-{month}-28T12:00:00.000Z")
    (line,) = documents(capsys, "2026-09..2026-10", "2026-11..2026-11")["lines"]
    assert [len(cell["sessions"]) for cell in line["cells"]] == [2, 1]
    told = compare(capsys, "2026-09..2026-10", "2026-11..2026-11").splitlines()[2]
    assert told.split("  ")[:2] == ["measured (UTC)", "2026-09-28 12:00 to 2026-10-28 12:00"]
    assert line["cells"][1]["value"] == 20000


def test_circumstances_that_differ_come_first(measured, capsys):
    host = record()["host"]
    measured(10000, campaign="aaaaaa1", host=host | {"kernel": "6.1"})
    measured(10000, campaign="bbbbbb2", host=host | {"kernel": "6.12"})
    out = compare(capsys, "aaaaaa", "bbbbbb")
    assert out.splitlines()[0].split() == ["differs", "too", "aaaaaa", "bbbbbb"]
    assert out.splitlines()[2].split() == ["kernel", "6.1", "6.12"]
    assert "governor" not in out


def test_invalid_records_and_figures_of_one_side_do_not_count(measured, capsys):
    measured(10000, "openmpi")
    measured(99999, "openmpi", verified=False, reasons=["moved"])
    measured(20000, "mpich")
    measured(20000, "mpich", variant=variant(test="other", name="other"))
    out = compare(capsys, "openmpi", "mpich")
    assert "in 1 of 1 figure (2.00 times)" in out
    assert out.strip().endswith("; 1 figure of one side only")
    assert "99999" not in out


def test_a_figure_of_zero_is_shown_and_nothing_is_claimed_of_it(measured, capsys):
    for value, stack in ((0.0, "openmpi"), (5.0, "mpich"), (50.0, "intelmpi")):
        measured(value, stack, SEVEN, unit="%")
    out = compare(capsys, "openmpi", "mpich", "intelmpi")
    assert "1 line with a figure of 0: it has no ratio" in out
    (line,) = documents(capsys, "openmpi", "mpich", "intelmpi")["lines"]
    assert [cell["value"] for cell in line["cells"]] == [0, 5, 50]
    assert (line["differences"], line["best"]) == ([None] * 3, [2])


def test_a_figure_that_is_zero_on_every_side_is_a_line_in_every_form(measured, capsys, output_of, tmp_path):
    """As the overlap of Irecv is on every stack."""
    for stack in ("openmpi", "mpich"):
        measured(0.0, stack, SEVEN, unit="%")
    files = {ending: tmp_path / f"c.{ending}" for ending in ("txt", "csv", "md", "html")}
    compare(capsys, "openmpi", "mpich", *(word for file in files.values() for word in ("--output", str(file))))
    texts = {ending: file.read_text() for ending, file in files.items()}
    assert re.search(r"^stream_threads +compact 1x2 local +triad +% +0\.0 +0\.0$", texts["txt"], re.MULTILINE)
    assert "| triad | % | 0.0 | 0.0 |" in texts["md"]
    rows = csv.DictReader(io.StringIO(texts["csv"]))
    assert [(row["value"], row["ratio"], row["best"]) for row in rows] == [("0.0", "", "no")] * 2
    assert texts["html"].count('[["0.0"]') == 2
    assert re.findall(r" triad +(\S+) +% ", output_of(0, "list")) == ["0.0", "0.0"]


def test_a_page_goes_to_a_file(measured, capsys, tmp_path):
    measured(10000, "openmpi", SEVEN)
    measured(20000, "mpich", SEVEN)
    assert cli.main(["compare", "openmpi", "mpich", "--output", str(tmp_path / "c.pdf")]) == 2
    assert "known endings: .csv, .html" in capsys.readouterr().err
    out = compare(capsys, "openmpi", "mpich", "--output", str(tmp_path / "c.html"))
    assert out.startswith(f"compared: {tmp_path / 'c.html'}, mpich is faster in 1 of 1 figure (2.00 times)")
    text = (tmp_path / "c.html").read_text()
    shown = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert ["★" in cell for cell in pieces.rows(pieces.section(shown, "figures"))[0][5:]] == [False, True]
    table = compare(capsys, "openmpi", "mpich", "--output", str(tmp_path / "c.txt"))
    assert table.startswith("compared: ")
    assert (tmp_path / "c.txt").read_text() == compare(capsys, "openmpi", "mpich")


def test_a_tag_is_its_commit(measured, capsys, refused, monkeypatch):
    commits = {"refs/tags/v1": "a" * 40, "refs/tags/v2": "b" * 40}
    monkeypatch.setattr(git, "commit", commits.get)
    suite = record()["suite"]
    for value, commit in ((10000, "a"), (20000, "b"), (40000, "c")):
        measured(value, suite=suite | {"commit": commit * 40})
    (line,) = documents(capsys, "tag=v1", "tag=v2")["lines"]
    assert [cell["value"] for cell in line["cells"]] == [10000, 20000]
    assert "'v3' is not a tag of this checkout" in refused(2, "compare", "tag=v1", "tag=v3")


@pytest.mark.parametrize(("sides", "line"), [
    (["openmpi"], "one side is nothing to compare"),
    (["openmpi", "stack=openmpi"], "a side is named twice"),
    (["openmpi", "typo"], "'typo' is not a stack, site, partition, node, campaign or commit here"),
    (["openmpi", "opnmpi"], "did you mean 'openmpi'?"),
    (["openmpi", "colour=red"], "'colour=red' is not a condition"),
    (["openmpi", "site=nowhere"], "no valid record is of side 'site=nowhere'"),
    (["stack=openmpi,site=local", "stack=both"], "the sides have no figure in common"),
    (["both", "openmpi"], "'both' is a stack and a site"),
])  # fmt: skip
def test_what_is_no_side_is_one_line(measured, refused, sides, line):
    measured(10000, "openmpi")
    measured(10000, "both", site="both", variant=variant(test="other", name="other"))
    assert line in refused(2, "compare", *sides)


@pytest.mark.parametrize(("case", "claims"), [
    (
        simulated.Case((1, 1), (0.02, 0.01), 10),
        ["0 of p 0.88 to 1", "0 of p 0.71 to 0.89", "0 of p 0.32 to 0.45", "24 of p 0.00068 to 0.0022"],
    ),
    (
        simulated.Case((5, 5), (0.02, 0.01)),
        [
            "0 of p 0.03 to 0.88",
            "8 of p 8.5e-06 to 0.13",
            "24 of p 1.6e-09 to 0.00013",
            "24 of p 6.7e-14 to 4.3e-07",
        ],
    ),
    (
        simulated.Case((3, 10), (0.02, 0.01)),
        ["0 of p 0.0025 to 0.97", "6 of p 6.6e-05 to 0.64", "24 of p 1.3e-06 to 0.043", "24 of p 7.8e-09 to 0.002"],
    ),
    (
        simulated.Case((3, 20), (0.02, 0.01)),
        ["0 of p 0.021 to 1", "3 of p 0.0018 to 0.085", "24 of p 4.4e-06 to 0.0047", "24 of p 1.6e-08 to 0.00027"],
    ),
    (
        simulated.Case((5, 20), (0.02, 0.01)),
        [
            "0 of p 0.17 to 0.99",
            "23 of p 2.4e-05 to 0.059",
            "24 of p 1.3e-09 to 7.2e-05",
            "24 of p 2.6e-14 to 1.3e-07",
        ],
    ),
    (
        simulated.Case((3, 3), (0.005, 0.005), steps=(0.01, 0.01)),
        ["0 of p 1 to 1", "0 of p 0.21 to 1", "24 of p 0.00034 to 0.02", "24 of p 1.7e-06 to 0.0007"],
    ),
], ids=lambda value: value.name if isinstance(value, simulated.Case) else None)  # fmt: skip
def test_equal_sides_claim_nothing_and_large_differences_are_claimed(case, claims):
    """Of 24 figures, sides that are equal and slower by 5, 20 and 100 %. `make rates` has the rates."""
    shown = []
    for effect in (0.0, 0.05, 0.2, 1.0):
        differences, claimed = simulated.compared(case, effect, np.random.default_rng([2, *case.name.encode()]))
        p = [difference.p for difference in differences]
        shown.append(f"{sum(claimed)} of p {min(p):.2g} to {max(p):.2g}")
        assert all(difference.ratio > 1 for difference in itertools.compress(differences, claimed))
    assert shown == claims


def test_what_the_rates_promise():
    case = simulated.Case((5, 5), (0.02, 0.01))
    promises = Promises()
    simulated.keep(case, simulated.Rate(1000, 70, 0.0), 0.99, promises)
    simulated.keep(replace(case, memory=0.9), simulated.Rate(1000, 500, 0.0), 0.99, promises)
    simulated.keep(replace(case, sessions=(1, 1)), simulated.Rate(1000, 70, 0.0), 0.0, promises)
    assert promises.broken == []
    simulated.keep(case, simulated.Rate(1000, 80, 0.0), 0.98, promises)
    simulated.keep(replace(case, sessions=(1, 1), launches=10), simulated.Rate(1000, 0, 0.0), 0.9, promises)
    assert len(promises.broken) == 3


def test_one_printed_step_is_no_difference():
    """Six sessions of a clock that prints hundredths, once on either side of 0.235, are what equal sides often are."""
    stepped = [[[value] * 3] * 10 for value in (0.23, 0.24, 0.27)]
    one, four = (unpaired.compare(stepped[0], side, (0.01, 0.01)) for side in stepped[1:])
    assert (one.p, one.low < 1 < one.high) == (1.0, True)
    assert four.p < 0.001


def test_the_step_is_that_of_the_records(measured, capsys):
    for _ in range(10):
        measured(0.23, "openmpi", (1, 1, 1), unit="us", better="lower")
        measured(0.24, "mpich", (1, 1, 1), unit="us", better="lower")
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert (line["claimed"], line["cells"][0]["step"]) == ([False, False], 0.01)


def test_a_side_that_prints_more_digits_does_not_lend_them_to_the_other(measured, capsys):
    """Both truly take 0.234 us: OSU in C prints two decimals, its port to Python four."""
    for _ in range(3):
        measured(0.23, "openmpi", (1, 1, 1), unit="us", better="lower")
        measured(0.2342, "mpich", (1, 1, 1), unit="us", better="lower")
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert (line["claimed"], [cell["step"] for cell in line["cells"]]) == ([False, False], [0.01, 0.0001])


def test_the_interval_of_few_launches_has_what_the_digits_hide():
    difference = unpaired.compare([[1.4] * 5], [[1.5] * 5], (0.1, 0.1))
    assert difference.low <= 1.45 / 1.45 < 1.55 / 1.35 <= difference.high


@pytest.mark.parametrize(("differ", "claimed"), [(0.002, True), (0.2, False)])
def test_how_much_sessions_differ_is_learnt_from_those_of_the_machine(measured, capsys, differ, claimed):
    """20 % between single sessions is much where those of five other figures differ by 0.2 %, nothing where by 20 %."""
    for stack in ("a", "b", "c", "d", "e"):
        for number in range(5):
            measured(10000 * (1 + differ * number), stack, (1, 1, 1))
    measured(10000, "openmpi", SEVEN)
    measured(12000, "mpich", SEVEN)
    (line,) = documents(capsys, "openmpi", "mpich")["lines"]
    assert line["claimed"] == [False, claimed]


def test_too_few_series_tell_nothing_of_sessions():
    series = [[1.0, 1.2, 1.4, 1.6, 1.8]] * (unpaired.LEARNT_FROM - 1)
    assert unpaired.session_spread(series) == unpaired.SESSIONS
    assert unpaired.session_spread([*series, [1.0] * 4]) == unpaired.SESSIONS
    assert unpaired.session_spread([*series, series[0]]) > 0.2


def test_equal_sessions_are_not_taken_for_exact():
    found = unpaired.compare([[10.0]] * 3, [[10.01]] * 3)
    assert found.p > unpaired.ERROR
    assert found.low < 1 < found.high
