"""Both sides of a gate at the same time on halves of the machine: ``plumb gate --order duet``."""

import math
import os
import sys

import msgspec
import numpy as np
import pytest
import samples
from gate_pairs import pairs_of
from test_gate_commands import FIGURE
from test_gate_commands import gate as commands  # noqa: F401 - a fixture

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.gate import duet, live
from plumbline.host import machine
from plumbline.judge import decide, slowing
from plumbline.launch.witness import processes
from plumbline.records import store
from plumbline.records.launch import Half, Launch, RankSeen, ThreadSeen
from plumbline.records.variant import WantedFigure
from plumbline.statistics.paired import CAP, FAIL, LOOKS, PASS, PairedRule

sys.path.insert(0, str(paths.root() / "tests/rates"))
import duet as rates

TRIAD = WantedFigure(name="triad", metric="triad", where={})


@pytest.fixture
def gate(commands, monkeypatch):  # noqa: F811
    """``gate(option, …)`` of two programs on halves that may be one CPU: status, document, messages."""
    monkeypatch.setattr(duet, "OVERLAP", 0.0)
    cpus = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(machine, "halves", lambda *_: (tuple(cpus[:1]), tuple(cpus[-1:])))

    def call(*words, new="./new 180"):
        sides = ("--baseline", "command:./old 200", "--candidate", f"command:{new}", "--work", "work")
        return commands(*(words if "--resume" in words else (*sides, *FIGURE, *words)))

    return call


def test_rounds_are_in_the_records_and_can_be_resumed_and_repeated(gate, tmp_path, monkeypatch):
    monkeypatch.setattr(duet, "choice", lambda *_: ("duet", "by this test"))
    status, document, shown = gate("--order", "auto", "--minutes", "0.0001")
    assert status == 3
    assert document["series"][0]["pairs"] >= duet.TRIAL  # the rounds by which it chose go on
    assert "order: duet: by this test" in shown
    status, document, shown = gate("--resume", "work")
    assert {"name": "note", "text": "order duet: by this test"} in document["facts"]
    (series,) = document["series"]
    assert (status, series["verdict"]) == (1, "FAIL"), shown
    assert series["ratio"] == pytest.approx(0.9, abs=0.01)
    assert "slow one another by at most" in series["notes"][0]
    assert "--order auto" in next(fact["text"] for fact in document["facts"] if fact["name"] == "repeat")
    both = store.whole(tmp_path / "work" / "records.jsonl", "")
    for record in both:
        parts = [len(launch.parts) for launch in record.launches]
        assert parts == [3] * slowing.FEWEST + [2] * (LOOKS[0] - slowing.FEWEST)
        assert all(part.half and part.half.overlap is not None for part in record.launches[0].parts[:2])
    first = both[0].launches[0]
    values = [part.measurements[0].value for part in first.parts[:2]]
    assert first.measurements[0].value == pytest.approx(math.sqrt(values[0] * values[1]))
    assert cli.main(["gate", "work/records.jsonl"]) == 1


def test_a_side_that_cannot_be_started_ends_the_gate_in_a_line(gate, tmp_path):
    (tmp_path / "broken").write_text("no program\n")
    (tmp_path / "broken").chmod(0o755)
    status, _, shown = gate("--order", "duet", new="./broken")
    assert status == 3
    assert "it cannot be started" in shown
    assert "Traceback" not in shown


def test_without_twins_auto_measures_in_turn_and_says_why(gate, monkeypatch):
    def none(*_):
        raise PlumbError("no two halves of the machine are alike: it has 1 core to use", "here", duet.IN_TURN)

    monkeypatch.setattr(machine, "halves", none)
    status, _, shown = gate("--order", "duet")
    assert (status, "measure in turn: --order turns" in shown) == (3, True)
    shown = gate("--order", "auto", "--work", "another", "--minutes", "0.0001")[2]
    assert "order: turns: no two halves of the machine are alike" in shown


def test_auto_measures_nothing_of_the_same_command(gate):
    status, document, shown = gate("--order", "auto", new="./old 200")
    assert (status, document["series"][0]["pairs"], "order:" in shown) == (0, 0, False)


def test_auto_measures_in_turn_without_a_witness(gate, monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "read", lambda folder: ([], []))
    shown = gate("--order", "auto", "--minutes", "0.0001")[2]
    assert "order: turns: no witness shows when and where it ran" in shown
    assert (tmp_path / "work" / "trial.jsonl").exists()


def launch(value, half=(0,), causes=(), waited=0.0, better="lower"):
    seen = {"disturbed": bool(causes), "causes": list(causes), "figures": {"delay_fraction": waited}}
    made = msgspec.convert(samples.launch(0, float(value), disturbed=bool(causes), disturbance=seen), Launch)
    made.half = Half(cpus=list(half), window=(0.0, 1.0))
    made.measurements = [msgspec.structs.replace(item, better=better) for item in made.measurements]
    return made


def rounds(number, times, alone, **changes):
    """So many rounds of a side: its times on both halves, and ``alone`` unless that is None."""
    parts = [launch(times[place], (place,), better=changes.get("better", "lower")) for place in (0, 1)]
    return [duet.folded([*parts, *([launch(alone, **changes)] if alone else [])]) for _ in range(number)]


def test_the_slowdown_beside_the_other_side_is_bounded():
    even = rounds(13, (1.0, 1.0), 1.0)
    slowed = slowing.slowing([rounds(13, (1.05, 1.05), 1.0), even], TRIAD)
    assert (slowed.low, slowed.high) == (48790164, 48790164)
    assert slowing.slowing([even, even], TRIAD).high == 1  # known
    rate = slowing.slowing([rounds(13, (1.0, 1.0), 1.05, better="higher"), even], TRIAD)
    assert rate.high == 48790164
    assert slowing.slowing([[launch(1.0)], [launch(1.0)]], TRIAD) == slowing.Slowing()


@pytest.mark.parametrize("unknown", [
    rounds(6, (1.0, 1.0), 1.0),
    rounds(13, (1.0, 1.0), None),
    rounds(13, (1.0, 1.0), 1.0, causes=["other processes kept 0.9 CPUs busy on x"]),
])  # fmt: skip
def test_it_is_unknown_without_enough_launches_that_were_alone(unknown):
    assert slowing.slowing([unknown, rounds(13, (1.0, 1.0), 1.0)], TRIAD).high == slowing.UNKNOWN


def test_waits_for_a_cpu_are_no_slowdown_by_the_other_side():
    parts = [launch(2.0, (0,), waited=0.5), launch(2.0, (1,), waited=0.5), launch(1.0)]
    waiting = [duet.folded(parts)] * 13
    assert slowing.slowing([waiting, waiting], TRIAD).high == 1

    def disturbed(cause):
        return duet.folded([launch(1.0, causes=[cause]), launch(1.0)]).disturbed

    assert not disturbed("a thread of rank 0 waited for its CPU 9 % of the time")
    assert disturbed("a planned CPU was throttled for its temperature 2 times")


def series(baseline, candidate):
    """Pairs of 13 rounds with the given times alone and beside one another."""
    sides = [rounds(13, (beside, beside), alone) for beside, alone in (baseline, candidate)]
    columns = [
        [side[0].measurements[0].value * (1 + 1e-4 * n * n) + 1e-7 * place * n for n in range(13)]
        for place, side in enumerate(sides)
    ]
    known = slowing.slowing(sides, TRIAD)
    return decide.decide([pairs_of("x", *columns, "lower", slowing=known)], PairedRule())[0]


def test_a_step_that_hides_in_the_other_side_never_passes():
    hidden = series((1.05, 1.0), (1.05, 1.05))
    assert hidden.state == "INCONCLUSIVE"
    assert hidden.reason.endswith("which may hide a slowdown: measure in turn: --order turns")
    assert "side by side they may slow one another by 5.0 %" in hidden.reason
    assert series((1.0, 1.0), (1.0001, 1.0)).state == "PASS"


def test_a_step_that_hides_in_waits_never_passes():
    """A quota of CPU time for both, or other work that moves: the rest of the slower side runs faster than before."""
    quota = [duet.folded([launch(value, (0,), waited=share), launch(value, (1,), waited=share), launch(alone)])
             for value, share, alone in ((2.0, 0.5, 1.0), (2.05, 1 - 1.05 / 2.05, 1.05))]  # fmt: skip
    known = slowing.slowing([[side] * 13 for side in quota], TRIAD)
    assert (known.high, known.waited) == (1, 500_000_000)
    assert known.swayed == pytest.approx(1e9 * math.log(1.05 / 1.025), abs=2)
    values = [2 * (1 + 1e-4 * number) for number in range(13)]
    waited = slowing.Slowing(high=1, rounds=13, waited=900_000_000)
    pairs = pairs_of("x", values, [1.008 * value for value in values], "lower", slowing=waited)
    verdict = decide.decide([pairs], PairedRule())[0]
    assert (verdict.state, "waits for a CPU" in verdict.reason) == ("INCONCLUSIVE", True)


def test_numbers_that_are_not_positive_stay_so():
    both = [launch(-1.0, (0,)), launch(-2.0, (1,))]
    assert duet.folded(both).measurements[0].value == -2.0
    trial = [(duet.folded([launch(0.0), launch(1.0), launch(1.0)]),) * 2] * 3
    assert duet.choice(trial, TRIAD, PairedRule()) == ("turns", "triad is not always a positive number")


def test_a_verdict_waits_for_launches_that_were_alone():
    values = [1 + 1e-4 * number for number in range(LOOKS[2])]
    reasons = []
    for size in LOOKS[:3]:
        unknown = slowing.Slowing(high=slowing.UNKNOWN, rounds=size)
        pairs = pairs_of("x", values[:size], [1.0002 * value for value in values[:size]], "lower", slowing=unknown)
        reasons.append(live.figure_state(pairs, PairedRule(), 1))
    assert [each.state for each in reasons] == ["open", "open", "INCONCLUSIVE"]
    assert all(each.interval is None and each.reason.startswith(slowing.TOO_FEW) for each in reasons)


def test_halves_that_change_the_sides_differently_give_no_verdict():
    uneven = slowing.slowing([rounds(13, (1.0, 1.1), 1.05), rounds(13, (1.0, 1.0), 1.0)], TRIAD)
    both = slowing.slowing([rounds(13, (1.0, 1.1), 1.05), rounds(13, (1.0, 1.1), 1.05)], TRIAD)
    assert uneven.uneven == pytest.approx(1e9 * math.log(1.1), abs=2)
    assert both.uneven == 0  # a difference of the halves that is the same for both divides out
    values = [1 + 1e-4 * number for number in range(13)]
    pairs = pairs_of("x", values, [1.0002 * value for value in values], "lower", slowing=uneven)
    assert "the halves are no twins" in decide.decide([pairs], PairedRule())[0].reason


def test_a_part_is_proven_in_its_half_and_at_the_time_of_the_other():
    part, other = launch(1.0, (0,)), launch(1.0, (1,))
    for each, cpu in ((part, 0), (other, 1)):
        threads = [ThreadSeen(name="x", affinity=[cpu], last_cpu=cpu)]
        each.ranks = [RankSeen(host="here", rank=0, local_rank=0, threads=threads, memory={}, usage={})]
    other.half.window = (0.5, 1.6)
    duet.prove(part, (0,), other)
    assert (part.verified, part.half.overlap, part.disturbed) == (True, 0.5, True)
    assert "at the same time for 50 %" in part.disturbance.causes[0]
    duet.prove(other, (0,), None)
    unseen = launch(1.0)
    duet.prove(unseen, (0,), None)
    assert unseen.reasons[0].startswith("no witness shows when and where it ran")
    assert other.reasons[0] == "a thread could run on CPUs 1, its part is 0"


def test_the_first_rounds_choose_the_order_that_needs_less_time():
    draw = np.random.default_rng(3)

    def trial(host, own, slowed=1.0):
        def parts(side, now, noise):
            both = [launch(slowed * now[place] * noise[side, place], (place ^ side,)) for place in (0, 1)]
            return duet.folded([*both, launch(noise[side, 2])])

        drawn = [(np.exp(draw.normal(0, host, 2)), np.exp(draw.normal(0, own, (2, 3)))) for _ in range(6)]
        return duet.choice([(parts(0, *each), parts(1, *each)) for each in drawn], TRIAD, PairedRule())

    assert trial(0.001, 0.003)[0] == "turns"
    order, why = trial(0.2, 0.003)
    assert order == "duet"
    assert why.startswith("triad varies by ")
    assert trial(0.2, 0.003, slowed=1.5)[0] == "turns"


@pytest.mark.parametrize(("topology", "first", "second"), [
    ("package:2 l3:2 core:4 pu:2", range(16), range(16, 32)),
    ("package:1 l3:3 core:4 pu:1", range(6), range(6, 12)),
    ("core:2 pu:1", range(1), range(1, 2)),
])  # fmt: skip
def test_halves_are_mirror_images_that_share_as_little_as_can_be(topology, first, second):
    here = machine.load(topology)
    assert machine.halves(here, here.cpus) == (tuple(first), tuple(second))


@pytest.mark.parametrize(("topology", "usable", "why"), [
    ("core:3 pu:2", range(6), "it has 3 cores to use"),
    ("core:1 pu:2", range(2), "it has 1 core to use"),
    ("core:4 pu:2", (0, 1, 2, 3, 4, 6), "the cores, or what they share, are of several kinds"),
    ("package:2 l3:1 core:4 pu:1", (0, 1, 2, 3, 4, 5), "are of several kinds"),
])  # fmt: skip
def test_a_machine_without_twins_is_refused_with_the_reason(topology, usable, why):
    with pytest.raises(PlumbError, match=why):
        machine.halves(machine.load(topology), usable)


def test_simulated_duets_pass_no_slower_side_and_fail_no_equal_one():
    for program, wrong in (("equal", FAIL), ("5 %, compute", PASS), ("5 %, cache: half is hidden", PASS)):
        state, turns = rates.side_by_side(np.random.default_rng(5), "shared", program, 40)
        assert (state == wrong).sum() == 0
        assert turns.max() <= 4 * CAP
