"""``plumb outliers``: the tests it rests on, what it says of given numbers and of records, and what is refused."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import launch, record, settle, variant
from samples import session as of_session
from scipy import stats
from stored import keep

from plumbline.commands import cli
from plumbline.commands import judge as command
from plumbline.judge import from_csv, members, outliers, samples
from plumbline.judge.members import Matrix, Nodes
from plumbline.judge.outliers import Margins
from plumbline.records.model import convert
from plumbline.statistics import basic, unpaired


def plumb_outliers(*arguments):
    as_json = ["--json"] if {"--members", "--matrix"} & {*arguments} else []
    return cli.main(["outliers", *as_json, *map(str, arguments)])


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def nodes(count=16, launches=5, slow=None, better="lower", seed=1, sd=0.005):
    """A class of nodes at about 100; ``slow`` maps numbers of nodes to the factor of their values."""
    draw = np.random.default_rng(seed)
    made = Nodes("made", better)
    for node, _ in itertools.product(range(count), range(launches)):
        made.add(f"n{node}", 100 * (slow or {}).get(node, 1.0) * math.exp(draw.normal(0, sd)))
    return made


def links(ends=8, launches=3, slow=None, seed=1, sd=0.005):
    """A class of all links of ``ends`` nodes; ``slow`` maps ends (7,) and links (2, 5) to a factor of their values."""
    draw = np.random.default_rng(seed)
    made = Matrix("made", "lower")
    for launched, (first, second) in itertools.product(range(launches), itertools.combinations(range(ends), 2)):
        factor = math.prod(size for who, size in (slow or {}).items() if set(who) <= {first, second})
        made.add(f"n{first}", f"n{second}", 2 * factor * math.exp(draw.normal(0, sd)), launched)
    return made


def judge(*classes, **margins):
    return outliers.decide(classes, Margins(**margins))


def found(verdict, direction="worse"):
    return {finding.name for finding in verdict.findings if finding.direction == direction}


@pytest.mark.parametrize(("m", "n"), [(1, 9), (3, 12), (5, 7), (7, 5), (10, 30)])
def test_the_rank_sum_is_exact(m, n):
    for u in range(m * n // 2):
        other = stats.mannwhitneyu(*_arrangement(m, n, u), alternative="greater", method="exact").pvalue
        assert unpaired.tail(m, n, u) == pytest.approx(other, rel=1e-9)
        assert unpaired.critical(m, n, unpaired.tail(m, n, u) * (1 + 1e-9)) == u


def _arrangement(m, n, u):
    """``m`` own and ``n`` other values with exactly ``u`` pairs in which the other is the larger."""
    own, place = [], []
    left = u
    for _ in range(m):
        step = min(n, left)
        left -= step
        own.append(n - step + 0.5)
        place.append(step)
    return np.array(own) + np.linspace(0, 0.1, m), np.arange(1, n + 1.0)


def test_the_approximation_of_large_rank_sums_promises_too_little():
    exact = unpaired.tail(20, 200, 900)
    deviate = (900.5 - 2000) / math.sqrt(20 * 200 * 221 / 12)
    assert exact < stats.norm.cdf(deviate) < 3 * exact
    limit = unpaired.critical(25, 300, 1e-4)
    assert unpaired.tail(25, 300, limit) <= 1e-4 < unpaired.tail(25, 300, limit + 1)


def test_ties_count_against_the_rejection():
    assert unpaired.p_not_larger(np.full(3, 1.0), np.full(30, 1.0)) == 1.0
    assert unpaired.p_not_larger(np.full(3, 2.0), np.full(30, 1.0)) == pytest.approx(1 / math.comb(33, 3))


def test_the_first_deviate_is_that_of_the_others():
    values = np.random.default_rng(2).normal(size=12)
    values[4] += 6
    taken, p = basic.extremes(values)
    others = np.delete(values, 4)
    t = (values[4] - others.mean()) / (others.std(ddof=1) * math.sqrt(12 / 11))
    assert taken[0] == 4
    assert p[0] == pytest.approx(stats.t.sf(t, 10))


def test_two_odd_members_do_not_hide_one_another():
    values = np.r_[np.random.default_rng(2).normal(size=14), 30.0, 30.0]
    odd, _ = members.suspects(values, 0.005)
    assert list(np.flatnonzero(odd)) == [14, 15]


def test_one_bad_launch_moves_a_summary_little():
    values = np.random.default_rng(3).normal(0, 0.01, (16, 3))
    values[5, 1] += 0.5
    summary = members.summarise(values, basic.spread_of_differences(values))
    assert abs(summary[5]) < 0.02


@pytest.mark.parametrize(("better", "ratio"), [("lower", 1.05), ("higher", 1 / 1.05)])
def test_a_slow_node_is_found_and_only_it(better, ratio):
    (verdict,) = judge(nodes(slow={7: ratio}, better=better))
    assert verdict.state == "FAIL"
    (finding,) = verdict.findings
    assert (finding.kind, finding.name, finding.direction) == ("node", "n7", "worse")
    assert finding.ratio == pytest.approx(ratio, rel=0.01)


def test_a_faster_node_is_shown_and_no_failure():
    (verdict,) = judge(nodes(slow={7: 0.93}))
    assert verdict.state == "PASS"
    assert found(verdict, "better") == {"n7"}


def test_healthy_nodes_pass_with_what_would_have_been_found():
    (verdict,) = judge(nodes())
    assert (verdict.state, verdict.findings, verdict.reason) == ("PASS", (), None)
    assert 0.01 < verdict.seen["node"] < 0.04


def test_small_differences_do_not_count():
    (verdict,) = judge(nodes(slow={7: 1.015}, sd=0.0005))
    assert verdict.state == "PASS"
    (verdict,) = judge(nodes(slow={7: 1.015}, sd=0.0005), min_effect=0.01)
    assert found(verdict) == {"n7"}


def test_a_second_mode_of_the_launches_is_no_slow_node():
    """Three of three launches in the slow mode: the members' spread alone would call that odd."""
    draw = np.random.default_rng(1)

    def value(node, launched):
        slow = node == 3 or (launched == node % 3 and node % 4 != 0)
        return (106 if slow else 100) * math.exp(draw.normal(0, 0.004))

    made = Nodes("made", "lower")
    for node, launched in itertools.product(range(40), range(3)):
        made.add(f"n{node:02}", value(node, launched))
    (verdict,) = judge(made)
    assert not verdict.findings
    assert verdict.suspects == ("n03",)
    assert verdict.state == "INCONCLUSIVE"
    assert "measure again" in verdict.reason


@pytest.mark.parametrize(("made", "reason"), [
    (lambda: nodes(count=4), "4 nodes: at least 5 are needed"),
    (lambda: nodes(launches=1), "about 3 launches each are needed"),
    (lambda: nodes(count=5, launches=2), "about 4 launches each are needed"),
    (lambda: nodes(sd=0.08), "launches vary by"),
])  # fmt: skip
def test_too_little_is_inconclusive_with_what_is_needed(made, reason):
    (verdict,) = judge(made())
    assert verdict.state == "INCONCLUSIVE"
    assert reason in verdict.reason


@pytest.mark.parametrize(("better", "ratio"), [("lower", 2.7), ("higher", 1 / 2.7)])
def test_the_slowest_of_two_nodes_is_printed_whatever_may_be_claimed(better, ratio, tmp_path, capsys):
    """Two nodes are too few to say which is odd; that one is 2.7 times slower was measured."""
    (verdict,) = judge(nodes(2, slow={1: ratio}, better=better))
    assert (verdict.state, verdict.slowest[0]) == ("INCONCLUSIVE", "n1")
    assert verdict.slowest[1] == pytest.approx(ratio, rel=0.01)
    assert verdict.explanation.startswith("2 nodes: at least 5 are needed; slowest: n1 by 1")
    file = tmp_path / "f.csv"
    file.write_text("node,class,value\na,x,10\na,x,10\nb,x,27\nb,x,27\n")
    assert plumb_outliers("--members", file, "--better", "lower") == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["slowest"] == {"name": "b", "ratio": 2.7}
    assert err.rstrip().endswith("slowest: b by 170 %")


def test_a_pass_has_its_slowest_too_and_one_member_has_none():
    assert judge(nodes())[0].explanation.startswith("slowest: n")
    (alone,) = judge(nodes(1))
    assert (alone.slowest, alone.explanation) == (None, alone.reason)


def test_more_classes_ask_for_more_evidence():
    alone = judge(nodes())[0].seen["node"]
    among = judge(*[nodes(seed=seed) for seed in range(1, 41)])[0].seen["node"]
    assert among > alone


def figures(count, **changes):
    """Classes of the same nodes, each with noise of its own; every second one a rate."""
    found = []
    for number in range(count):
        one = nodes(seed=number + 1, better="lower", **changes)
        if number % 2:
            one.better = "higher"
            one.values = {node: [(at, 1 / value) for at, value in values] for node, values in one.values.items()}
        one.name = f"local default openmpi figure{number}"
        found.append(one)
    return found


def test_figures_of_the_same_nodes_are_judged_together():
    """Noise hides a slow node in each figure with three launches; all of them together show it."""
    made = figures(8, launches=3, sd=0.02, slow={7: 1.05})
    *apart, joined = judge(*made)
    assert not any(verdict.findings for verdict in apart)
    assert joined.subject == "local default openmpi 8 classes together"
    assert joined.to_dict()["together"] == 8
    assert found(joined) == {"n7"}
    assert joined.findings[0].ratio == pytest.approx(1.05, rel=0.02)


def test_only_classes_of_the_same_nodes_are_judged_together():
    one, other, third = figures(3)
    assert len(judge(one)) == 1
    third.values["n99"] = third.values["n1"]
    assert [verdict.subject[-18:] for verdict in judge(one, other, third)][3:] == ["2 classes together"]
    assert len(judge(one, third)) == 2


def test_figures_that_repeat_each_other_are_no_evidence():
    """The same launches in other units: together they say what one of them says."""
    one = nodes(launches=3, sd=0.02)
    copies = []
    for number in range(1, 9):
        copy = Nodes(f"figure{number}", "lower")
        copy.values = {node: [(at, number * value) for at, value in values] for node, values in one.values.items()}
        copies.append(copy)
    (alone,), joined = judge(one), judge(*copies)[-1]
    assert joined.noise == pytest.approx(alone.noise)
    assert joined.spread == pytest.approx(alone.spread)
    assert joined.seen["node"] > alone.seen["node"]


def test_a_noisy_figure_does_not_drown_the_others():
    made = figures(4, slow={7: 1.05})
    noisy = nodes(sd=0.3, seed=9, slow={7: 1.05})
    assert found(judge(*made, noisy)[-1]) == {"n7"}


def test_launches_that_not_every_figure_has_are_left_out():
    one, other = figures(2, launches=4)
    other.values = {node: values[:3] for node, values in other.values.items()}
    assert judge(one, other)[-1].count == 3
    other.values["n3"] = [("elsewhere", value) for _, value in other.values["n3"]]
    assert len(judge(one, other)) == 2


def test_what_is_known_of_a_node_is_said_once():
    one, other = figures(2, slow={7: 1.05})
    one.remarks = {"n7": ["1 of 5 launches disturbed"]}
    other.remarks = {"n7": ["1 of 5 launches disturbed", "smt on, most have off"]}
    (finding,) = judge(one, other)[-1].findings
    assert finding.notes == ("1 of 5 launches disturbed", "smt on, most have off")


def test_what_is_called_detectable_is_detected():
    (verdict,) = judge(nodes(sd=0.01))
    least = verdict.seen["node"]
    for node in range(16):
        (slower,) = judge(nodes(sd=0.01, slow={node: 1 + least * 1.0001}))
        assert found(slower) == {f"n{node}"}


def test_rounds_are_compared_with_themselves():
    draw = np.random.default_rng(1)
    made = Nodes("made", "lower")
    for node, day in itertools.product(range(12), range(4)):
        made.add(f"n{node}", 100 * 1.2**day * (1.06 if node == 4 else 1) * math.exp(draw.normal(0, 0.005)), day)
    (verdict,) = judge(made)
    assert found(verdict) == {"n4"}
    assert verdict.facts == {"rounds": 4}


def test_values_of_one_step_are_no_difference():
    made = Nodes("made", "lower", step=0.01)
    for node, _ in itertools.product(range(16), range(5)):
        made.add(f"n{node}", 0.16 if node == 3 else 0.15)
    assert not judge(made)[0].findings
    made.step = 0.001
    assert found(judge(made)[0]) == {"n3"}
    made.values["n3"] = made.values["n4"]
    assert judge(made)[0].state == "PASS", "equal values are no difference"


def test_a_slow_link_is_found():
    (verdict,) = judge(links(slow={(2, 5): 1.10}))
    assert found(verdict) == {"n2 – n5"}
    assert verdict.members == {"node": 8, "link": 28}


def test_a_slow_node_is_reported_and_not_its_links():
    (verdict,) = judge(links(slow={(6,): 1.06, (1, 3): 1.2}))
    assert [(finding.kind, finding.name) for finding in verdict.findings] == [("node", "n6"), ("link", "n1 – n3")]


def test_few_ends_are_told_by_their_launches():
    for seed in range(4):
        (verdict,) = judge(links(ends=6, launches=5, slow={(2,): 1.08}, seed=seed))
        assert found(verdict) == {"n2"}, seed


@pytest.mark.parametrize("blame", [True, False])
def test_an_end_that_its_links_give_away_is_blamed(blame, monkeypatch):
    """Noise hides the end from its own test now and then, while some of its links are found: the end is the news."""
    if not blame:
        monkeypatch.setattr(outliers, "_blame", lambda parts: None)
    slow = {(3,): 1.08, (1,): 1.015, (5,): 0.985, (6,): 1.018}
    names = set()
    for seed in range(20):
        names |= found(judge(links(slow=slow, launches=5, seed=seed, sd=0.008))[0])
    assert "n3" in names
    assert (len(names) == 1) == blame


def test_the_end_that_slow_links_share_is_named():
    (verdict,) = judge(links(ends=16, slow={(2, 5): 1.2, (2, 9): 1.2, (4, 11): 1.2}))
    assert found(verdict) == {"n2 – n5", "n2 – n9", "n11 – n4"}
    assert verdict.shared == (("n2", 2),)
    assert verdict.to_dict()["shared"] == {"n2": 2}


def test_launches_of_another_level_are_compared_with_themselves():
    draw = np.random.default_rng(1)
    made = Matrix("made", "lower")
    for launched, (first, second) in itertools.product(range(4), itertools.combinations(range(8), 2)):
        factor = 1.1 if (first, second) == (2, 5) else 1.0
        made.add(f"n{first}", f"n{second}", factor * 1.3**launched * math.exp(draw.normal(0, 0.005)), launched)
    assert found(judge(made)[0]) == {"n2 – n5"}


def test_one_launch_tells_a_slow_node_but_no_slow_link():
    (verdict,) = judge(links(ends=12, launches=1, slow={(6,): 1.10}))
    assert found(verdict) == {"n6"}
    assert verdict.findings[0].notes == ("one launch only: measure again",)
    (verdict,) = judge(links(ends=12, launches=1, slow={(2, 5): 1.5}))
    assert verdict.state == "INCONCLUSIVE"
    assert verdict.suspects == ("n2 – n5",)


def test_a_burst_in_one_launch_is_no_slow_node():
    draw = np.random.default_rng(1)
    made = Matrix("made", "lower")
    for launched, (first, second) in itertools.product(range(3), itertools.combinations(range(12), 2)):
        factor = 1.3 if launched == 1 and 4 in (first, second) else 1.0
        made.add(f"n{first}", f"n{second}", factor * math.exp(draw.normal(0, 0.01)), launched)
    assert not judge(made)[0].findings


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 0.5, 1e3, 1e9]), st.booleans())
def test_units_and_order_change_nothing(seed, factor, slow):
    one = nodes(slow={3: 1.05} if slow else None, seed=seed)
    other = Nodes("made", "lower")
    for node in reversed(one.values):
        for _, value in one.values[node]:
            other.add(node, factor * value)
    first, second = judge(one)[0], judge(other)[0]
    assert (first.state, found(first)) == (second.state, found(second))
    assert first.seen["node"] == pytest.approx(second.seen["node"], rel=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_inverse_values_in_the_other_direction_mirror(seed):
    one = nodes(slow={3: 1.05, 5: 0.95}, seed=seed)
    other = Nodes("made", "higher")
    for node, values in one.values.items():
        for _, value in values:
            other.add(node, 1 / value)
    first, second = judge(one)[0], judge(other)[0]
    assert first.state == second.state
    assert all(found(first, way) == found(second, way) for way in ("worse", "better"))


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.floats(1e-3, 1e3) | st.sampled_from([1.0, 2.0]), min_size=1, max_size=4), min_size=1, max_size=9
    )
)
def test_any_numbers_get_a_verdict(table):
    made = Nodes("made", "lower")
    for node, values in enumerate(table):
        for value in values:
            made.add(f"n{node}", value)
    (verdict,) = judge(made)
    assert verdict.state in ("PASS", "FAIL", "INCONCLUSIVE")
    json.dumps(verdict.to_dict(), allow_nan=False)
    if len(table) < outliers.FEWEST:
        assert verdict.state == "INCONCLUSIVE"


def write(file, rows, header):
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def rows(made):
    return [f"{node},triad,{value!r}" for node, values in made.values.items() for _, value in values]


def test_nodes_from_a_file(tmp_path, capsys):
    file = write(tmp_path / "f.csv", rows(nodes(slow={7: 1.05})), "node,class,value")
    assert plumb_outliers("--members", file, "--better", "lower") == 1
    said = capsys.readouterr()
    (line,) = [json.loads(text) for text in said.out.splitlines()]
    assert (line["class"], line["verdict"], line["findings"][0]["name"]) == ("triad", "FAIL", "n7")
    assert said.err == "outliers: FAIL: 1 class: 1 FAIL; slower: node n7 by 4.9 %\n"
    healthy = write(tmp_path / "g.csv", rows(nodes()), "node,class,value")
    assert plumb_outliers("--members", healthy, "--better", "lower") == 0
    assert "would have been found" in capsys.readouterr().err
    assert plumb_outliers("--members", healthy, "--better", "lower", "--must-detect", "0.021") == 2


def test_series_with_an_index_are_rounds(tmp_path, capsys):
    made = [
        f"n{node},copy,{day},{100 * 1.5**day * (1.06 if node == 4 else 1) * (1 + (node * 7 + day * 3) % 5 / 1000)!r}"
        for day in range(5)
        for node in range(12)
    ]
    file = write(tmp_path / "f.csv", made, "node,series,index,value")
    assert plumb_outliers("--members", file, "--better", "lower") == 1
    (line,) = lines(capsys)
    assert (line["class"], line["rounds"], [one["name"] for one in line["findings"]]) == ("copy", 5, ["n4"])


def test_a_matrix_from_a_file(tmp_path, capsys):
    one = links(slow={(2, 5): 1.1})
    made = [
        f"{first[1:]},{second[1:]},pair:l3,{value!r}"
        for launched in range(3)
        for (first, second), values in one.values.items()
        for launch, value in values
        if launch == launched
    ]
    file = write(tmp_path / "f.csv", made, "first,second,class,value")
    assert plumb_outliers("--matrix", file, "--better", "lower") == 1
    (line,) = lines(capsys)
    assert (line["launches"], line["members"]) == (3, {"core": 8, "link": 28})
    assert [(one["kind"], one["name"]) for one in line["findings"]] == [("link", "2 – 5")]


def test_both_directions_of_a_link_are_one_launch(tmp_path, capsys):
    made = [f"{a},{b},pair:node,{100 + (a * 3 + b) % 7 / 10}" for a in range(8) for b in range(8) if a != b]
    file = write(tmp_path / "f.csv", made, "first,second,class,value")
    assert plumb_outliers("--matrix", file, "--better", "lower") == 2
    assert lines(capsys)[0]["launches"] == 1
    named = write(tmp_path / "g.csv", [f"{row},{row.count('1')}" for row in made], "first,second,class,value,launch")
    plumb_outliers("--matrix", named, "--better", "lower")
    assert lines(capsys)[0]["launches"] == 2


@pytest.mark.parametrize(("option", "text", "message"), [
    ("--members", "", "the first line has to be node,class,value or node,series,index,value"),
    ("--members", "node,class,value\na,b,nan\n", "value 'nan' is not a positive number (f.csv:2)"),
    ("--members", "node,class,value\na,b,1\na,b,-1\n", "value '-1' is not a positive number (f.csv:3)"),
    ("--members", "node,class,value\na,b,inf\n", "not a positive number"),
    ("--members", "node,class,value\na,b,0\n", "not a positive number"),
    ("--members", "node,class,value\na,b,1_0\n", "not a positive number"),
    ("--members", "node,class,value\na,b,fast\n", "not a positive number"),
    ("--matrix", "first,second,class,value\na,a,c,1\n", "a is paired with itself (f.csv:2)"),
    ("--matrix", "first,second,class,value\na – c,b,c,1\n", "rename it"),
    ("--matrix", "first,second,class,value,launch\na,b,c,1,x\n", "launch 'x'"),
    ("--matrix", "first,second,class,value,launch\na,b,c,1,99999\n", "launch '99999'"),
    ("--matrix", "node,class,value\na,b,1\n", "the first line has to be first,second,class"),
])  # fmt: skip
def test_bad_input_is_one_line_and_status_3(tmp_path, monkeypatch, refused, option, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(text)
    assert message in refused(3, "outliers", option, "f.csv", "--better", "lower")


@pytest.mark.parametrize("arguments", [
    ("--members", "f.csv"),
    ("--members", "absent.csv", "--better", "lower"),
    ("--members", "f.csv", "--better", "lower", "--tolerance", "0.2"),
    ("--better", "lower"),
    ("last",),
    (),
])  # fmt: skip
def test_bad_options(tmp_path, monkeypatch, refused, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "none"))
    write(tmp_path / "f.csv", rows(nodes()), "node,class,value")
    refused(3, "outliers", *arguments)


def session(number, node, values, **changes):
    """A record of one node with these samples."""
    return of_session(number, *values, nodes=[node], campaign="night", **changes)


@pytest.fixture(autouse=True)
def _empty_results(results):
    """Records of other tests are not there."""


def cluster(slow=3):
    draw = np.random.default_rng(5)
    for node in range(16):
        factor = 0.94 if node == slow else 1.0
        yield session(node, f"n{node:02}", [float(v) for v in factor * 1e4 * np.exp(draw.normal(0, 0.004, 5))])


def test_nodes_from_records(capsys):
    bad = [
        session(90, "n90", [1.0] * 5, verified=False, reasons=["rank 0 left no witness"], verdict="invalid"),
        session(91, "n91", [1.0] * 5, state="interrupted"),
        session(92, "n92", [1.0] * 5, verdict="invalid"),
    ]
    made = list(cluster())
    made[3]["launches"][0]["disturbed"] = True
    made[3]["host"] = {**made[3]["host"], "governor": "powersave"}
    keep(*made, *bad)
    assert plumb_outliers("--json") == 1
    (line,) = lines(capsys)
    assert line["class"] == "local default openmpi stream_threads %placement=compact %threads=2 triad"
    assert line["members"] == {"node": 16}
    (finding,) = line["findings"]
    assert (finding["name"], finding["direction"]) == ("n03", "worse")
    assert finding["notes"] == ["1 of 5 launches disturbed", "governor powersave, most have performance"]
    assert plumb_outliers() == 1
    table = capsys.readouterr().out
    assert "governor powersave" in table
    assert table.endswith("outliers: FAIL: 1 class: 1 FAIL; slower: node n03 by 6.7 %\n")
    assert plumb_outliers("--test", "imb") == 3
    assert plumb_outliers("--figure", "copy") == 3
    assert "no verified record of a single node" in capsys.readouterr().err


@pytest.mark.parametrize("change", [
    {"partition": "gpu"},
    {"site": "other"},
    {"stack": {**record()["stack"], "name": "mpich"}},
    {"variant": variant(name="stream_threads %placement=compact %threads=1")},
])  # fmt: skip
def test_what_is_not_comparable_is_another_class(change):
    both = session(0, "a", [1.0, 1.0]), session(1, "b", [1.0, 1.0], **change)
    one, two = samples.nodes(map(convert, both))
    assert one.name != two.name


def test_superseded_launches_are_no_remark(capsys):
    made = list(cluster())
    made[3]["launches"][0] |= {"disturbed": True, "superseded": True}
    made[3]["launches"][1] |= {"disturbed": True}
    settle(made[3])
    keep(*made)
    assert plumb_outliers("--json") == 1
    assert lines(capsys)[0]["findings"][0]["notes"] == ["1 of 4 launches disturbed"]


def test_damage_is_said_and_the_rest_judged(results, capsys):
    keep(*cluster())
    (results / "local" / "torn.jsonl").write_text('{"schema": 1')
    assert plumb_outliers("--json") == 1
    assert "plumb: damaged record: " in capsys.readouterr().err


def test_records_of_several_nodes_are_no_node(capsys):
    keep(session(0, "a", [1.0]) | {"nodes": ["a", "b"]})
    assert plumb_outliers() == 3
    assert "no verified record" in capsys.readouterr().err


def matrix_record(**changes):
    """A record of the pairs kernel on eight cores, the link of 2 and 5 slow, at two message sizes."""
    draw = np.random.default_rng(1)
    made = record(**changes)
    made["launches"] = [launch(order, 1.0) for order in range(4)]
    for one, size in itertools.product(made["launches"], (8, 4096)):
        for first, second in itertools.combinations(range(8), 2):
            value = 2.0 * (1.1 if (first, second) == (2, 5) else 1.0) * math.exp(draw.normal(0, 0.005))
            one["measurements"].append(
                pair(value, "pair:l3", first, second, "a", "a", first + 8, second + 8, bytes=size)
            )
    return settle(made)


def pair(value, kind, first, second, here, there, mine, yours, **params):
    """What the pairs kernel measures of two ranks, their hosts and CPUs."""
    params |= {"class": kind, "first": first, "second": second, "first_host": here, "second_host": there}
    params |= {"first_cpu": mine, "second_cpu": yours}
    row = {"metric": "latency", "value": value, "unit": "us", "better": "lower", "params": params}
    return {**row, "iterations": 100}


def test_links_from_a_record(capsys):
    keep(matrix_record())
    assert plumb_outliers("last", "--json") == 1
    first, second = lines(capsys)
    for line, size in ((first, 4096), (second, 8)):
        assert line["class"] == f"latency pair:l3 bytes={size} openmpi"
        assert line["members"] == {"core": 8, "link": 28}
        assert [one["name"] for one in line["findings"]] == ["10 – 13"]
    assert plumb_outliers("0123") == 1
    assert "link 10 – 13 by up to" in capsys.readouterr().out


def nodes_record(ranks_per_node):
    """The same over six nodes, the links of node b slow."""
    draw = np.random.default_rng(1)
    made = record() | {"nodes": list("abcdef")}
    made["launches"] = [launch(order, 1.0) for order in range(4)]
    ranks = [(host, cpu) for host in made["nodes"] for cpu in range(ranks_per_node)]
    for one in made["launches"]:
        for (first, (here, mine)), (second, (there, yours)) in itertools.combinations(enumerate(ranks), 2):
            kind = "pair:node" if here != there else "pair:l3"
            value = 2.0 * (1.5 if here != there and "b" in (here, there) else 1.0) * math.exp(draw.normal(0, 0.005))
            one["measurements"].append(pair(value, kind, first, second, here, there, mine, yours))
    return settle(made)


def test_ends_between_nodes_are_nodes(capsys):
    keep(nodes_record(ranks_per_node=1))
    assert plumb_outliers("last", "--json") == 1
    (line,) = lines(capsys)
    assert line["class"] == "latency pair:node openmpi"
    assert line["members"] == {"node": 6, "link": 15}
    assert [(one["kind"], one["name"]) for one in line["findings"]] == [("node", "b")]


def test_links_inside_nodes_are_of_cores_with_the_nodes_names():
    inside, between = samples.matrices(convert(nodes_record(ranks_per_node=4)))
    assert (inside.name, between.name) == ("latency pair:l3 openmpi", "latency pair:node openmpi")
    assert (inside.ends, between.ends) == ("core", "node")
    assert len(inside.values) == 6 * 6
    assert ("a:0", "a:1") in inside.values
    assert len(between.values) == 15
    first = [value for launched, value in between.values["a", "b"] if launched == 0]
    assert len(first) == 16, "every core of the one with every core of the other"


def test_superseded_launches_are_not_in_the_matrix(capsys):
    """The first launch was disturbed and measured again; link 0 – 7 was slow in it, and in it only."""
    made = matrix_record()
    made["launches"] = made["launches"][:1]
    for row in made["launches"][0]["measurements"]:
        if (row["params"].get("first"), row["params"].get("second")) == (0, 7):
            row["value"] *= 3
    again = matrix_record()["launches"]
    made["launches"] += [{**one, "index": one["index"] + 1, "order": one["order"] + 1} for one in again]
    made["launches"][0]["superseded"] = True
    settle(made)
    (small, _) = samples.matrices(convert(made))
    assert small.launches() == 4
    assert max(map(len, small.values.values())) == 4
    assert max(value for values in small.values.values() for _, value in values) < 3
    keep(made)
    assert plumb_outliers("last", "--json") == 1
    assert lines(capsys)[0]["launches"] == 4


@pytest.mark.parametrize(("made", "message"), [
    (record(), "no pair was measured"),
    (matrix_record(verified=False, reasons=["launch 0: rank 1 elsewhere"]), "rank 1 elsewhere"),
    (matrix_record(state="interrupted"), "it is interrupted"),
])  # fmt: skip
def test_a_record_without_a_matrix_is_refused(capsys, made, message):
    keep(made)
    assert plumb_outliers("last") == 3
    assert message in capsys.readouterr().err


def test_many_classes_with_one_reason_for_no_verdict_are_a_line(tmp_path, capsys):
    """After a first campaign on one node there is nothing to compare."""
    rows = [f"n1,class {number},{launch}" for number in range(9) for launch in (10, 11, 12)]
    (tmp_path / "nodes.csv").write_text("\n".join(["node,class,value", *rows]))
    assert plumb_outliers("--members", str(tmp_path / "nodes.csv"), "--better", "lower") == 2
    assert len(lines(capsys)) == 10  # a file's are JSON; one is of all classes together
    verdicts = outliers.decide(list(from_csv.nodes(tmp_path / "nodes.csv", "lower")), Margins(0.02, 0.1))
    command.show_outliers(verdicts)
    shown = capsys.readouterr().out
    assert " classes are INCONCLUSIVE: 1 node: at least 5 are needed" in shown
    assert "class 3" not in shown
