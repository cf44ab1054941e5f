"""The live gate with a bench that makes its numbers up: order, stopping, disturbed pairs, interruptions."""

import json
import math
import re
import signal
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
import samples
import stack_manifest
from fake_bench import FakeBench

from plumbline.base import programs
from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted
from plumbline.base.verdicts import worst
from plumbline.commands import cli
from plumbline.extras.search.why import command as why
from plumbline.gate import live, progress, rules, run, setup, sides
from plumbline.gate import variants as gate_variants
from plumbline.judge import decide, disturbed
from plumbline.judge.pairs import measured, pairs_of_records, read_pairs
from plumbline.measure import driver, jobs, session
from plumbline.records import model, store
from plumbline.statistics.paired import CAP, LOOKS, PairedRule


class Crash(Exception):
    """What nothing catches."""


CIRCUMSTANCES = {"commit": "c", "stacks": {"old": "1", "new": "2"}, "nodes": "node1", "environment": "e"}


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """``gate(variants=…, resume=…, …)`` runs one in ``tmp_path/work``; returns outcome, bench and lines said."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(session, "circumstances", lambda stacks: dict(CIRCUMSTANCES))

    def call(
        variants=1, resume=False, minutes=None, first_fail=False, folder="work",
        seed=1, by_itself=False, measure_equal=False, grown=(), **bench
    ):  # fmt: skip
        made, lines = [], []

        def make(begun, place):
            made.append(FakeBench(begun, place, **bench))
            return made[0]

        where = tmp_path / folder
        if not resume:
            where.mkdir(exist_ok=True)
            couples = []
            for number in range(variants):
                variant = samples.asked(name=f"stream_threads %n={number}", params={"n": number})
                variant = rules.settle(variant, [], "", PairedRule())
                couples.append([msgspec.structs.replace(variant, stack=stack) for stack in ("old", "new")])
            settings = {"by_itself": by_itself, "measure_equal": measure_equal, "grown": grown}
            terms = setup.Terms(seed=seed, command=("plumb", "gate"), **settings)
            name = f"20260101T000000Z-n-{folder}"
            setup.GATE.begin(where, setup.Session(name, "old", "new", couples, terms, dict(CIRCUMSTANCES)))
        outcome = run.resume(where, live.Stop(minutes, first_fail), lines.append, make)
        return outcome, made[0], lines

    return call


def states(outcome):
    return [item.state for item in outcome.verdicts]


def recorded(tmp_path):
    (file,) = (tmp_path / "results" / "local").glob("*.jsonl")
    return file


def test_an_equal_candidate_passes_and_stops_at_the_first_look(gate):
    outcome, bench, _ = gate(noise=0.002)
    assert (states(outcome), len(bench.started)) == (["PASS"], 2 * LOOKS[0])


def test_a_slower_candidate_fails_and_a_faster_one_passes(gate):
    assert states(gate(ratio=1.06)[0]) == ["FAIL"]
    assert states(gate(ratio=0.94, folder="other")[0]) == ["PASS"]


def test_a_curve_has_efficiencies_which_are_series_of_the_gate(gate):
    """They are candidate / baseline of T(1) / T(n); the first point is measured as long as another one needs it."""
    outcome, _, lines = gate(variants=3, ratio=[1.0, 1.0, 1.06], noise=0.004, grown=(1, 2, 4))
    names = [item.subject.partition("%n=")[2] for item in outcome.verdicts]
    assert names == ["0: triad", "1: triad", "1: efficiency", "2: triad", "2: efficiency"]
    assert states(outcome) == ["PASS", "PASS", "PASS", "FAIL", "FAIL"]
    assert outcome.verdicts[4].ratio == pytest.approx(1 / 1.06, rel=0.01)
    assert outcome.verdicts[2].pairs.baseline.values[0] == pytest.approx(0.5, rel=0.1)
    assert "5 figures" in lines[0]
    assert states(gate(resume=True)[0]) == states(outcome)


def test_a_first_point_that_fails_leaves_no_efficiency(gate):
    spoil = {(0, 1, 3): {"verified": False, "reasons": ["rank 0 on CPU 3"]}}
    assert states(gate(variants=2, noise=0.002, spoil=spoil, grown=(1, 2))[0]) == ["INVALID", "PASS", "INVALID"]


def test_the_records_judged_later_give_the_same_verdicts(gate, tmp_path):
    outcome, _, _ = gate(variants=3, ratio=[1.0, 1.06, 1.03], disturbed=lambda order: order % 10 == 4)
    later = decide.decide(read_pairs(recorded(tmp_path)), PairedRule(0.3, 0.5))  # its own margins count
    assert later == outcome.verdicts
    assert [item.state for item in later[:2]] == ["PASS", "FAIL"]
    assert any(item.pairs.baseline.superseded for item in outcome.verdicts)


def test_a_pair_is_two_launches_in_a_row_in_random_order(gate):
    _, bench, _ = gate(variants=3, noise=0.05)
    firsts = []
    for one, two in zip(bench.started[::2], bench.started[1::2], strict=True):
        assert (one[0], one[2], one[3] + 1, one[1] + two[1]) == (two[0], two[2], two[3], 1)
        firsts.append(one[1])
    assert 0.35 < sum(firsts) / len(firsts) < 0.65


def test_variants_take_turns_while_they_are_undecided(gate):
    _, bench, _ = gate(variants=4, noise=0.002)
    counts = [0] * 4
    for position, *_ in bench.started[::2]:
        counts[position] += 1
        assert max(counts) - min(counts) <= 1
    rounds = [tuple(item[0] for item in bench.started[start : start + 8 : 2]) for start in range(0, 80, 8)]
    assert len(set(rounds)) > 3


def test_the_seed_makes_the_order_repeatable(gate):
    first, again, other = (gate(variants=2, seed=seed, folder=f"w{n}")[1].started for n, seed in enumerate((5, 5, 6)))
    assert first == again
    assert first != other


def test_a_decided_variant_is_measured_no_more(gate):
    _, bench, _ = gate(variants=2, ratio=[0.9, 1.027], noise=0.02)
    counts = [sum(item[0] == position for item in bench.started) for position in (0, 1)]
    assert counts[0] < counts[1]
    assert counts[1] <= 2 * CAP


def test_too_much_noise_ends_as_inconclusive_where_more_pairs_would_not_decide(gate):
    outcome, bench, _ = gate(ratio=1.03, noise=0.2)
    assert states(outcome) == ["INCONCLUSIVE"]
    assert 2 * LOOKS[0] < len(bench.started) < 2 * CAP
    assert outcome.verdicts[0].reason.endswith(" pairs, and more would decide it in fewer than 1 of 100 cases")
    assert outcome.open == frozenset()


def test_a_fail_among_many_is_measured_until_it_is_certain_for_all(gate):
    """p of 13 pairs would not survive Holm over 21 series."""
    outcome, bench, lines = gate(variants=21, ratio=[1.0] * 20 + [1.2], noise=0.002)
    assert states(outcome) == ["PASS"] * 20 + ["FAIL"]
    assert sum(item[0] == 20 for item in bench.started) == 2 * LOOKS[1]
    assert any(" slower" in line for line in lines)


def test_disturbed_pairs_are_measured_again_and_kept(gate, tmp_path):
    outcome, _, lines = gate(noise=0.002, disturbed=lambda order: order in (3, 10))
    baseline, candidate = store.read(recorded(tmp_path))
    for record in (baseline, candidate):
        assert [launch.index for launch in record.launches if launch.superseded] == [1, 5]
    assert len(baseline.launches) == LOOKS[0] + 2
    assert outcome.verdicts[0].count == LOOKS[0]
    assert sum("; again: " in line for line in lines) == 2
    assert "2 of them measured again; disturbed launches:" in "\n".join(lines)


def test_a_host_that_is_always_disturbed_gets_no_verdict_and_stops_at_the_first_look(gate, tmp_path):
    outcome, bench, _ = gate(noise=0.002, disturbed=lambda order: True)
    assert states(outcome) == ["INCONCLUSIVE"]
    assert "13 of the 13 pairs that count were disturbed" in outcome.verdicts[0].reason
    assert len(bench.started) == 2 * (LOOKS[0] + disturbed.AHEAD + (LOOKS[0] - 1) // 2)
    outcome, noisy, lines = gate(ratio=1.03, noise=0.2, disturbed=lambda order: True, folder="other")
    assert len(noisy.started) == len(bench.started), "more pairs cannot help"
    assert "13 of the 13 pairs that count were disturbed: measure on a quiet host" in outcome.verdicts[0].reason
    assert [line for line in lines if "INCONCLUSIVE: 13 of the 13 pairs that count were disturbed" in line]
    written = max((tmp_path / "results" / "local").glob("*-other.jsonl"))
    assert decide.decide(read_pairs(written), PairedRule()) == outcome.verdicts


def test_pairs_measured_again_cost_half_as_much_again_at_most(gate):
    flags = {"flag": lambda side, index: side == 1, "by_itself": True}
    _, bench, _ = gate(ratio=1.03, noise=0.2, **flags)
    assert len(bench.started) == 2 * (CAP + disturbed.MOST_AGAIN)


def test_an_open_figure_beyond_the_tolerance_says_why_it_is_not_failed_yet(gate):
    """At the first look the interval, right with 99 %, excludes 1 %; FAIL needs 99.9 %."""
    _, _, lines = gate(ratio=1.05, noise=0.02)
    open_lines = [line for line in lines if "a FAIL needs 99.9 %, the next look is at " in line]
    assert open_lines
    for line in open_lines:
        high = float(line.partition(" to ")[2].split(")")[0])
        assert high < 1 / 1.01  # of a rate
        assert " open: " in line
    assert not any("a FAIL needs" in line for line in lines if " open  " in line)


def test_the_live_gate_says_so_and_so_do_its_records(gate, tmp_path):
    """Each candidate of the first seven pairs in a row would be chance, and of ten is not."""
    outcome, _, _ = gate(ratio=1.3, noise=0.002, flag=lambda side, index: side == 1 and index < 10)
    assert states(outcome) == ["INCONCLUSIVE"]
    assert "10 times the candidate alone was disturbed, 0 times the baseline" in outcome.verdicts[0].reason
    assert decide.decide(read_pairs(recorded(tmp_path)), PairedRule()) == outcome.verdicts
    claimed = decide.decide(read_pairs(recorded(tmp_path), by_itself=True), PairedRule())
    assert [item.state for item in claimed] == ["FAIL"]
    outcome, _, _ = gate(ratio=1.3, noise=0.002, flag=lambda side, index: side == 1, by_itself=True, folder="claimed")
    assert states(outcome) == ["FAIL"]


def test_which_pairs_are_measured_again_does_not_depend_on_values(gate):
    def flags(order):
        return order % 7 == 0

    marks = []
    for number, (ratio, noise) in enumerate(((1.0, 0.2), (3.0, 0.2), (1.0, 0.4))):
        _, bench, _ = gate(ratio=ratio, noise=noise, disturbed=flags, folder=f"w{number}")
        launches = bench.all_records[0].launches
        marks.append([launch.superseded for launch in launches][: 2 * LOOKS[0]])
    count = min(map(len, marks))
    assert marks[0][:count] == marks[1][:count] == marks[2][:count]
    assert sum(marks[0]) > 0


@pytest.mark.parametrize(("index", "sides"), [(0, 2), (1, 2), (6, 2), (1, 1)])
def test_marks_that_the_rule_does_not_give_are_invalid(gate, tmp_path, index, sides):
    gate(noise=0.002, disturbed=lambda order: order in (3, 10))
    records = list(store.read(recorded(tmp_path)))
    for record in records[-sides:]:
        launch = record.launches[index]
        launch.superseded = not launch.superseded
    found = decide.decide(pairs_of_records(*records), PairedRule())[0]
    assert found.state == "INVALID"
    assert sides == 1 or "against the rule" in found.reason


def test_an_unverified_launch_makes_its_variant_invalid_at_once(gate):
    spoil = {(0, 1, 2): {"verified": False, "reasons": ["rank 0 elsewhere"], "disturbed": True}}
    outcome, bench, _ = gate(variants=2, noise=0.002, spoil=spoil)
    assert states(outcome) == ["INVALID", "PASS"]
    assert "rank 0 elsewhere" in outcome.verdicts[0].reason
    assert sum(item[0] == 0 for item in bench.started) == 6


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -5.0])
def test_a_value_that_is_no_positive_number_is_invalid_at_once(gate, value, monkeypatch):
    monkeypatch.setattr(store, "write", lambda file, records: None)  # JSON has no NaN: the driver refuses it before
    spoil = {(0, 0, 3): {"measurements": [dict(samples.launch(0, value)["measurements"][0])]}}
    outcome, bench, _ = gate(spoil=spoil)
    assert states(outcome) == ["INVALID"]
    assert len(bench.started) == 8


def test_a_clock_that_steps_back_between_launches_changes_nothing(gate):
    spoil = {(0, 0, 3): {"start": "1999-01-01T00:00:00.000Z"}}
    assert states(gate(noise=0.002, spoil=spoil)[0]) == ["PASS"]


@pytest.mark.parametrize("ratio", [1.0, 1.06])
@pytest.mark.parametrize("order", [0, 1, 7, 20])
def test_interrupted_and_resumed_is_the_same_as_whole(gate, tmp_path, order, ratio):
    whole, bench, _ = gate(variants=2, ratio=ratio, folder="whole")
    (tmp_path / "results" / "local" / f"{bench.begun.name}.jsonl").unlink()
    with pytest.raises(Interrupted):
        gate(variants=2, ratio=ratio, stop=(order, Interrupted(signal.SIGTERM)))
    if order > 1:
        records = list(store.read(recorded(tmp_path)))
        assert {record.state for record in records} == {"interrupted"}
        assert sum(len(record.launches) for record in records) == order // 2 * 2
    outcome, rest, lines = gate(resume=True, ratio=ratio)
    assert outcome.verdicts == whole.verdicts
    assert rest.started == bench.started[order // 2 * 2 :]
    assert decide.decide(read_pairs(recorded(tmp_path)), PairedRule()) == whole.verdicts
    if order > 1:
        assert f"{order // 2} pairs so far" in lines[0]


def test_a_crash_loses_the_pair_in_flight_only(gate):
    with pytest.raises(Crash):
        gate(stop=(9, Crash()))
    _, bench, _ = gate(resume=True)
    assert bench.started[0][2:] == (4, 8)


def test_a_launch_that_cannot_start_keeps_the_pairs_before_it(gate, tmp_path):
    with pytest.raises(PlumbError, match="no program"):
        gate(stop=(9, PlumbError("no program")))
    assert len(next(store.read(recorded(tmp_path))).launches) == 4
    assert states(gate(resume=True)[0]) == ["PASS"]


def test_resuming_what_is_decided_tells_the_same_again(gate):
    outcome, _, _ = gate()
    again_, bench, _ = gate(resume=True)
    assert again_.verdicts == outcome.verdicts
    assert bench.started == []


@pytest.mark.parametrize("pairs", [0, 1, 4])
def test_a_gate_goes_on_after_its_folder_was_full(gate, tmp_path, monkeypatch, pairs):
    """The results are on another disk: they must not have the pair that the folder could not take."""
    whole, bench, _ = gate(folder="whole")
    (tmp_path / "results" / "local" / f"{bench.begun.name}.jsonl").unlink()
    write, left = store.write, [pairs]

    def full(file, records):
        if file.parent.name == "pairs":
            left[0] -= 1
            if left[0] < 0:
                raise PlumbError("cannot write: No space left on device", str(file))
        write(file, records)

    with monkeypatch.context() as patch:
        patch.setattr(live.store, "write", full)
        with pytest.raises(PlumbError, match="No space left"):
            gate()
    if pairs:
        assert [len(record.launches) for record in store.read(recorded(tmp_path))] == [pairs] * 2
    outcome, rest, _ = gate(resume=True)
    assert outcome.verdicts == whole.verdicts
    assert rest.started == bench.started[2 * pairs :]


@pytest.mark.parametrize("error", [TypeError("an error of ours"), PlumbError("a disk that is full")])
def test_whatever_ends_a_gate_its_pairs_are_recorded(gate, tmp_path, error):
    with pytest.raises(type(error)):
        gate(stop=(9, error))
    records = list(store.read(recorded(tmp_path)))
    assert [(record.state, len(record.launches)) for record in records] == [("interrupted", 4)] * 2


@pytest.mark.parametrize("name", list(CIRCUMSTANCES))
def test_resume_refuses_when_something_changed(gate, monkeypatch, name):
    with pytest.raises(Interrupted):
        gate(stop=(9, Interrupted(signal.SIGINT)))
    monkeypatch.setattr(session, "circumstances", lambda stacks: {**CIRCUMSTANCES, name: "other"})
    with pytest.raises(PlumbError, match=f"{name} changed"):
        gate(resume=True)


def test_a_gate_begun_before_its_job_takes_the_nodes_of_the_first_job_and_keeps_them(gate, monkeypatch, tmp_path):
    with pytest.raises(Interrupted):
        gate(stop=(9, Interrupted(signal.SIGINT)))
    (state,) = tmp_path.glob("*/state.json")
    begun = json.loads(state.read_text())
    begun["circumstances"] = session.before_a_job(begun["circumstances"])
    state.write_text(json.dumps(begun))
    job = {**CIRCUMSTANCES, "nodes": "node[1-2]", "environment": "of a compute node"}
    monkeypatch.setattr(session, "circumstances", lambda stacks: dict(job))
    gate(resume=True)
    assert json.loads(state.read_text())["circumstances"] == job
    monkeypatch.setattr(session, "circumstances", lambda stacks: {**job, "nodes": "node[3-4]"})
    with pytest.raises(PlumbError, match="nodes changed"):
        gate(resume=True)


def fewer_launches(text):
    first, second = map(json.loads, text.splitlines())
    del second["launches"][-1]
    return json.dumps(first) + "\n" + json.dumps(second) + "\n"


def another_value(text):
    return text.replace('"wall_s":1.0', '"wall_s":2.0', 1)


@pytest.mark.parametrize(("name", "spoil"), [
    ("work/state.json", lambda text: "{"),
    ("work/state.json", None),
    ("work/pairs/0.jsonl", lambda text: text[:-30]),
    ("work/pairs/0.jsonl", lambda text: text.splitlines()[0] + "\n"),
    ("work/pairs/0.jsonl", fewer_launches),
    ("work/pairs/0.jsonl", another_value),
    ("work/pairs/0.jsonl", lambda text: re.sub(r',"seal":"[0-9a-f]+"', "", text)),
    ("work/pairs/0.jsonl", None),
    ("results/local/20260101T000000Z-n-work.jsonl", another_value),
])  # fmt: skip
def test_resume_refuses_a_damaged_folder_and_leaves_the_results(gate, tmp_path, name, spoil):
    with pytest.raises(Interrupted):
        gate(stop=(9, Interrupted(signal.SIGINT)))
    file = tmp_path / name
    if spoil is None:
        file.unlink()
    else:
        file.write_text(spoil(file.read_text()))
    before = recorded(tmp_path).read_bytes()
    with pytest.raises(PlumbError):
        gate(resume=True)
    assert recorded(tmp_path).read_bytes() == before


def test_resume_refuses_an_earlier_state_of_a_file_whole_and_sealed(gate, tmp_path):
    with pytest.raises(Interrupted):
        gate(stop=(9, Interrupted(signal.SIGINT)))
    file = live.pairs_file(tmp_path / "work", 0)
    records = list(store.read(file))
    for record in records:
        del record.launches[-1]
    store.write(file, records)
    with pytest.raises(PlumbError):
        gate(resume=True)


def test_one_gate_at_a_time_in_a_folder(gate, tmp_path):
    with pytest.raises(Interrupted):
        gate(stop=(9, Interrupted(signal.SIGINT)))
    with setup.GATE.locked(tmp_path / "work"), pytest.raises(PlumbError, match="another gate runs"):
        gate(resume=True)
    with pytest.raises(PlumbError, match="holds a gate already"):
        gate()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PlumbError, match="cannot write"), setup.GATE.locked(tmp_path / "file" / "work"):
        pass


def test_no_pair_is_begun_after_the_time(gate):
    outcome, bench, lines = gate(minutes=1e-9)
    assert bench.started == []
    assert states(outcome) == ["INVALID"]
    assert any("time is up: plumb gate --resume" in line for line in lines)
    assert states(gate(resume=True)[0]) == ["PASS"]


def test_the_first_certain_fail_ends_a_gate_that_is_told_so(gate):
    noisy = {"variants": 2, "ratio": [2.0, 1.0], "noise": 0.05}
    whole, measured, _ = gate(**noisy, folder="whole")
    outcome, bench, lines = gate(**noisy, first_fail=True)
    assert states(outcome) == ["FAIL", "INCONCLUSIVE"]
    assert worst(states(outcome)) == "FAIL"
    assert len(bench.started) < len(measured.started) / 2
    assert any("a figure failed: plumb gate --resume" in line for line in lines)
    resumed = {"ratio": [2.0, 1.0], "noise": 0.05, "resume": True}
    again, bench, _ = gate(**resumed, first_fail=True)
    assert (states(again), bench.started) == (states(outcome), [])
    assert gate(**resumed)[0].verdicts == whole.verdicts


def test_a_signal_between_launches_is_an_interruption():
    with programs.interruptible(), pytest.raises(Interrupted):
        signal.raise_signal(signal.SIGTERM)


def test_signals_wait_while_files_are_written():
    seen = []

    def write():
        with programs.interruptible(), programs.held_back():
            signal.raise_signal(signal.SIGINT)
            seen.append("written")

    with pytest.raises(Interrupted):
        write()
    assert seen == ["written"]


def test_lines_are_aligned_and_the_table_has_every_figure(gate):
    _, _, lines = gate(variants=2, ratio=[1.0, 1.06])
    pairs = [line for line in lines if line.startswith("pair ")]
    assert len({line.index("  triad") for line in pairs}) == 1
    assert "0/2 decided  ≤ " in pairs[0]
    assert "2/2 decided   " in pairs[-1]
    table = next(line for line in lines if "margins" in line)
    assert "PASS" in table
    assert "FAIL" in table
    assert lines[-1].endswith("repeat:  plumb gate --seed 1")


def test_a_fail_of_an_mpi_program_names_the_command_that_compares_profiles(gate):
    seen = {"mpi": True, "host": "node1", "rank": 0, "local_rank": 0, "threads": [], "memory": {}, "usage": {}}
    of_mpi = {(position, side, 0): {"ranks": [seen]} for position in (0, 1) for side in (0, 1)}
    outcome, _, lines = gate(variants=3, ratio=[1.0, 1.06, 1.06], spoil=of_mpi)
    assert states(outcome) == ["PASS", "FAIL", "FAIL"]  # the last calls no MPI
    command = "plumb profile --compare 000000000002 000000000003"
    assert lines[-1].endswith(f"repeat:  plumb gate --seed 1\nexplain: {command}")
    assert [text for name, text in outcome.facts if name == "explain"] == [command]


def contest(placement="core"):
    """One with a pair, as progress shows it."""
    record = SimpleNamespace(variant=model.convert(samples.record()).variant, placement=SimpleNamespace(name=placement))
    return SimpleNamespace(
        position=0, name="v", kept=1, records=[record, record], figure_states=list, series=["triad"], launches=[]
    )


OPEN = [live.FigureState("triad", "open", 1, 1.0)]


def test_what_is_left_is_no_more_than_the_time_it_was_given():
    def left(minutes, took):
        line = progress.Progress([contest()], live.Stop(minutes)).line(contest(), OPEN, 1, False, took)[1]
        return line.partition("≤ ")[2][:8].strip()

    assert left(1.0, 10.0) == "50 s"
    assert left(1.0, 70.0) == "0 s"
    assert left(None, 10.0) == f"{(CAP - 1) * 10 // 60} min {(CAP - 1) * 10 % 60:02} s"[:8].strip()


@pytest.mark.parametrize(
    ("minutes", "said"), [(1.0, "about 2 min 10 s in all, --minutes gives 1 min 00 s"), (3.0, ""), (None, "")]
)
def test_a_time_that_is_too_short_is_said_once_and_at_once(minutes, said):
    shown = progress.Progress([contest()], live.Stop(minutes))
    assert shown.warning() == ""
    shown.line(contest(), OPEN, 1, False, 10.0)
    warning = shown.warning()
    assert (said in warning, bool(warning)) == (True, bool(said)), warning
    assert shown.warning() == ""


def test_a_line_of_progress_fits_the_terminal(monkeypatch):
    long = contest("compact" * 9)
    figures = [live.FigureState(name, "slower", 13, 1.1, (1.08, 1.12), reason="why " * 20) for name in ("triad", "b")]
    shown = progress.Progress([long], live.Stop(None))
    assert "\n" not in shown.line(long, figures, 1, False, 1.0)[1]
    monkeypatch.setattr(progress.terminal, "width", lambda: 80)
    lines = shown.line(long, figures, 2, False, 1.0)[1].splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80


def test_two_variants_with_the_same_short_name_are_told_apart():
    names = ["a %memory=local", "a %memory=node:1"]
    records = [model.convert(samples.record(variant=samples.variant(name=name))) for name in names]
    contests = [live.Contest(position, [record, record], 1, PairedRule()) for position, record in enumerate(records)]
    assert progress.short_names(contests) == names


@pytest.fixture
def driver_bench(tmp_path, monkeypatch):
    """A bench of the real driver whose jobs are made up; ``nodes`` says where each launch ran."""
    nodes = iter([["node1"], ["node1"], ["node2"]])

    def prepare(variant, name):
        made = samples.record(session=name, variant=model.document(variant), launches=[])
        return SimpleNamespace(record=model.convert(made))

    def launch(job, index, order, folder):
        job.record.nodes = next(nodes)
        return model.convert(samples.record(launches=[samples.launch(order, 1.0, index=index)])).launches[0]

    monkeypatch.setattr(driver, "prepare", prepare)
    monkeypatch.setattr(driver.pipeline, "launch", launch)
    couple = [samples.asked(stack="old"), samples.asked(stack="new")]
    return live.GateBench(SimpleNamespace(couples=[couple], name="s", terms=SimpleNamespace(seed=7)), tmp_path)


def test_a_gate_stays_on_its_nodes(driver_bench):
    (baseline, _) = driver_bench.couple(0)
    assert baseline.seed == 7
    for index in range(2):
        baseline.launches.append(driver_bench.launch(0, index, index))
    with pytest.raises(PlumbError, match="ran on node2, before on node1"):
        driver_bench.launch(0, 2, 2)
    assert baseline.nodes == ["node1"]


@pytest.mark.parametrize("part", ["plan", "command", "benchmark"])
def test_what_is_resumed_must_be_the_same_program_and_plan(driver_bench, part):
    found = [model.convert(samples.record()) for _ in range(2)]
    store.write(live.pairs_file(driver_bench.folder, 0), found)
    assert [item.id for item in driver_bench.couple(0)] == [item.id for item in found]
    benchmark = {**samples.record()["benchmark"], "sha256": "0" * 64}
    other = {"plan": samples.plan(placement="scatter"), "command": ["another"], "benchmark": benchmark}
    spoiled = [model.convert(samples.record(**changes)) for changes in ({}, {part: other[part]})]
    store.write(live.pairs_file(driver_bench.folder, 0), spoiled)
    with pytest.raises(PlumbError, match=f"the {part} of .* is another one now"):
        driver_bench.couple(0)


def test_a_session_of_several_variants_is_read_in_twos(gate, tmp_path):
    gate(variants=2, noise=0.002)
    file = recorded(tmp_path)
    assert len(read_pairs(file)) == 2
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[1], lines[0], lines[2], lines[3]]))
    with pytest.raises(PlumbError, match="comes before its baseline"):
        read_pairs(file)
    file.write_text("".join([lines[0], lines[2], lines[1], lines[3]]))
    with pytest.raises(PlumbError, match="are not the two sides of one variant"):
        read_pairs(file)
    with pytest.raises(PlumbError, match="names 1 of the records"):
        read_pairs(file, json.loads(lines[0])["id"])


@pytest.fixture
def command_line(tmp_path, monkeypatch):
    """Runs ``plumb gate`` with made-up sides and numbers; a job gets the words of its command and nothing else."""
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(session, "circumstances", lambda stacks: dict(CIRCUMSTANCES))
    monkeypatch.setattr(sides, "resolve", lambda role, given, stack, file: sides.Side(role, given))
    offered = {"stream": {**stack_manifest.LEAST["benchmarks"]["pi"], "suite": "stream"}}
    monkeypatch.setattr(sides, "install_side", lambda side, build=None: stack_manifest.made(benchmarks=offered))
    found = gate_variants.Listing({name: {"v": samples.asked(name="v", stack=name)} for name in ("old", "new")})
    monkeypatch.setattr(gate_variants, "list_variants", lambda *_: found)
    monkeypatch.setattr(rules, "load", lambda given, name: ([], ""))
    monkeypatch.setattr(setup, "partition_of", lambda begun: {"name": "default", "scheduler": "slurm"})
    monkeypatch.setattr(live, "GateBench", lambda begun, folder: FakeBench(begun, folder, noise=0.002))
    in_a_job = []

    def call(*options):
        both = () if "--resume" in options else ("--baseline", "old", "--candidate", "new", "--work", tmp_path / "work")
        return cli.main(["gate", *map(str, both), *map(str, options)])

    def submit(job, say):
        in_a_job.append(job)
        words = list(job.command)
        return cli.main(words[words.index("gate") :])

    monkeypatch.setattr(jobs, "needed", lambda part: not in_a_job)
    monkeypatch.setattr(jobs, "run", submit)
    return call


def test_a_gate_that_submits_itself_reports_the_rule_that_it_was_given(command_line, tmp_path, capsys):
    files = {name: tmp_path / f"gate.{name}" for name in ("json", "xml", "md", "html")}
    options = [word for file in files.values() for word in ("--output", file)]
    assert command_line("--json", "--tolerance", 0.02, "--must-detect", 0.08, *options) == 0
    document = json.loads(files["json"].read_text())
    assert document["rule"] == {"tolerance": 0.02, "must_detect": 0.08}
    assert [(item["tolerance"], item["must_detect"]) for item in document["series"]] == [(0.02, 0.08)]
    for name in ("xml", "md", "html"):
        assert "2.0 % tolerated, 8.0 % must be seen" in files[name].read_text()
    assert json.loads(capsys.readouterr().out)["rule"] == document["rule"]  # printed, once


def test_the_cause_is_looked_for_with_the_application_in_a_job_too(command_line, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "GateBench", lambda begun, folder: FakeBench(begun, folder, noise=0.002, ratio=1.1))
    prepare, asked = setup.prepare, []  # without the application, whose programs would be built
    monkeypatch.setattr(setup, "prepare", lambda request, say: prepare(replace(request, application=None), say))
    monkeypatch.setattr(why, "cause_command", lambda first, second, plan: f"plumb why --application {plan}")
    monkeypatch.setattr(why, "cause_search", lambda command, *_, **__: asked.append(command) or "found")
    (tmp_path / "plumb.yaml").write_text("")
    assert command_line("--application", tmp_path / "plumb.yaml", "--stack", "s", "--cause-minutes", 5) == 1
    assert asked == [f"plumb why --application {tmp_path / 'plumb.yaml'}"]


@pytest.mark.parametrize("option", ["--tolerance", "--must-detect"])
def test_margins_are_refused_when_a_gate_goes_on(gate, command_line, tmp_path, capsys, option):
    gate(minutes=1e-9)
    assert command_line("--resume", tmp_path / "work", option, 0.05) == 3
    err = capsys.readouterr().err
    assert err.startswith("plumb: --resume continues a gate that was started")
    assert err.count("\n") == 1


BROKEN = {"verified": False, "reasons": ["wrong answer: 3, 4 expected"]}


@pytest.mark.parametrize(("bench", "status"), [
    ({"noise": 0.002}, 0),
    ({"noise": 0.002, "ratio": 1.1}, 1),
    ({"noise": 0.2, "ratio": 1.03}, 125),
    ({"spoil": {(0, 1, 3): BROKEN}}, 125),
    ({"spoil": {(0, 0, 3): BROKEN}}, 128),
])  # fmt: skip
def test_git_bisect_run_is_told_what_to_skip(command_line, tmp_path, monkeypatch, bench, status):
    """git calls a commit bad for any other status from 1 to 127, and ends at 128."""
    monkeypatch.setattr(live, "GateBench", lambda begun, folder: FakeBench(begun, folder, **bench))
    assert command_line("--for-git-bisect") == status


@pytest.mark.parametrize(("role", "status"), [("candidate", 125), ("baseline", 128)])
def test_git_bisect_skips_a_candidate_that_does_not_build(command_line, tmp_path, monkeypatch, capsys, role, status):
    def install(side, build=None):
        if side.role == role:
            raise PlumbError("error: expected ';'", "kernel.c", "correct it")
        return stack_manifest.made()

    monkeypatch.setattr(sides, "install_side", install)
    assert command_line("--for-git-bisect") == status
    name = {"baseline": "old", "candidate": "new"}[role]
    assert capsys.readouterr().err == f"plumb: {role} {name}: error: expected ';' (kernel.c): correct it\n"


@pytest.mark.parametrize("words", [["--tests", "x"], ["--baseline", "old"], ["--resume", "absent"], ["--stack", "x"]])
def test_a_mistake_on_the_line_ends_git_bisect_run(words, capsys):
    for option in ("--for-git-bisect", "--for-git"):
        try:
            status = cli.main(["gate", option, *words])
        except SystemExit as ended:
            status = ended.code
        assert status == 128
    capsys.readouterr()


def test_its_records_and_a_folder_of_an_earlier_version_are_those_of_a_gate(gate, tmp_path):
    gate(ratio=1.0, noise=0.002)
    assert {item.experiment for item in store.read(recorded(tmp_path))} == {"gate"}
    file = tmp_path / "work" / setup.GATE.file
    state = json.loads(file.read_text())
    state["terms"].pop("purpose")
    file.write_text(json.dumps(state))
    assert setup.GATE.peek(tmp_path / "work").terms.purpose == "gate"


def test_the_same_program_is_not_measured_unless_that_is_wanted(gate):
    outcome, bench, _ = gate(variants=2, noise=0.002, equal=(0,))
    assert states(outcome) == ["PASS", "PASS"]
    assert [item.reason for item in outcome.verdicts] == [decide.SAME, None]
    assert {position for position, *_ in bench.started} == {1}
    assert "that was measured" in decide.closing(outcome.verdicts)
    assert states(gate(equal=(0,), noise=0.002, measure_equal=True, folder="w")[0]) == ["PASS"]
    assert not any(name == "records" for name, _ in gate(equal=(0,), folder="all")[0].facts)


def test_a_figure_of_few_digits_is_measured_no_more_and_says_so(gate):
    printed = {**samples.launch(0, 7000)["measurements"][0], "step": 700}
    spoil = {(0, side, index): {"measurements": [printed]} for side in (0, 1) for index in range(CAP)}
    outcome, bench, lines = gate(spoil=spoil)
    assert states(outcome) == ["INCONCLUSIVE"]
    assert len(bench.started) == 2 * LOOKS[0]
    (line,) = [line for line in lines if "no gate of" in line and "pair" not in line]
    assert line.endswith("triad: printed in steps of 10 %: no gate of 5.0 %; print more digits, or take another figure")
    assert outcome.verdicts[0].reason in line
    assert outcome.open == frozenset()


def test_a_pass_that_is_slower_for_certain_says_so(gate):
    outcome, _, _ = gate(ratio=1.008, noise=0.002)
    (verdict,) = outcome.verdicts
    assert verdict.state == "PASS"
    assert re.match(r"slower for certain, by 0\.\d+ % \(.*\): less than the 5\.0 % that must be seen", verdict.reason)
    assert verdict.reason in decide.closing(outcome.verdicts)


def test_a_record_shows_which_figure_is_too_coarse_for_a_gate():
    def printed(metric, value, step):
        return {**samples.launch(0, value)["measurements"][0], "metric": metric, "step": step}

    wanted = [{"name": name, "metric": name, "where": {}} for name in ("time", "fom")]
    launch = samples.launch(0, 1.0, measurements=[printed("time", 0.15, 0.01), printed("fom", 812.5, 0.1)])
    record = model.convert(samples.record(variant=samples.variant(figures=wanted), launches=[launch], figures=[]))
    lines = decide.too_coarse(measured(record), PairedRule())
    assert lines == ["stream_threads: time: printed in steps of 6.7 %: no gate of 5.0 %; take fom instead"]
    assert decide.too_coarse(measured(record), PairedRule(must_detect=0.2)) == []
