"""What the gate decides of simulated launches, verdict by verdict. `make rates` measures how often it errs."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from gate_pairs import pairs_of

from plumbline.base import paths
from plumbline.judge.decide import decide
from plumbline.statistics import paired
from plumbline.statistics.paired import CAP, PairedRule

sys.path.insert(0, str(paths.root() / "tests/rates"))
import simulate
from promises import Promises

SEED = 4
LETTERS = {paired.FAIL: "F", paired.PASS: "P", paired.GAIN: "G", paired.GO_ON: "I"}


def draw(name, slowdown):
    return np.random.default_rng([SEED, round(1e4 * abs(slowdown)), *name.encode()])


def letters(states):
    return "".join(LETTERS[state] for state in states.tolist())


def live(model, slowdown, **rule):
    """Verdict and number of pairs of each of 12 series: F13 is a FAIL after 13 pairs, I90 an INCONCLUSIVE."""
    decided = simulate.live(simulate.pairs(model, slowdown, 12, draw(model, slowdown)), PairedRule(**rule))
    return " ".join(map("{}{}".format, letters(decided.state), decided.pairs))


LIVE = {
    ("quiet", 0.0): "P13 P19 P13 P13 P19 P13 P13 P13 P13 P13 P13 P19",
    ("quiet", 0.01): "P19 P19 P13 P19 P13 P13 P13 P13 P19 P13 P13 P13",
    ("quiet", 0.02): "P19 P27 P13 P13 P19 P38 P13 P13 P13 P13 P13 F27",
    ("quiet", 0.05): "F13 F13 F13 F13 F13 F13 F13 F13 F38 F13 F13 F13",
    ("bimodal", 0.0): "P13 P13 P19 P13 P13 P13 P13 P27 P13 P19 P13 P13",
    ("bimodal", 0.01): "P13 P13 P27 P19 P13 P13 P13 P19 P19 P19 P19 P19",
    ("bimodal", 0.02): "P27 P27 P38 F65 P27 P27 P19 P50 P27 P13 P13 P13",
    ("bimodal", 0.05): "F50 F27 F19 F13 F38 F19 F19 F19 F27 F19 F19 F27",
    ("drift", 0.0): "P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13",
    ("drift", 0.01): "P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13",
    ("drift", 0.02): "P13 F13 P13 P13 P13 F13 P13 P13 P13 P13 F13 P13",
    ("drift", 0.05): "F13 F13 F13 F13 F13 F13 F13 F13 F13 F13 F13 F13",
    ("noisy", 0.0): "P13 P27 P27 P13 P27 P27 P13 P27 P19 P38 P19 P27",
    ("noisy", 0.01): "P27 P19 P27 P19 P27 P27 P65 P90 P38 P27 P19 P38",
    ("noisy", 0.02): "P65 P90 P19 P27 P50 P50 P38 P19 P38 P38 P65 P50",
    ("noisy", 0.05): "F50 F38 F90 F90 F65 F50 F27 F90 F90 F27 F65 F38",
    ("1 %", 0.02): "P27 P19 P13 P13 P13 P13 P13 P13 P27 P13 P19 P19",
    ("1 %", 0.05): "F19 F13 F19 F27 F13 F27 F27 F13 F38 F27 F19 F27",
    ("2 %", 0.02): "P50 P13 P19 P19 P38 P38 F38 P13 P19 P13 P27 P27",
    ("2 %", 0.05): "F19 F38 F13 F19 F13 F27 F13 F13 F65 F19 F13 F27",
    ("3 %", 0.02): "P65 P38 P13 P38 P19 F90 P27 P38 P65 P50 P19 P27",
    ("3 %", 0.05): "F27 F27 F19 F27 F19 F65 F27 F19 F13 F27 F13 F38",
    ("6 %", 0.02): "P90 I90 P65 P90 I90 P90 P90 I90 P90 I90 P90 P90",
    ("6 %", 0.05): "I90 F90 F90 I90 F65 I90 F90 I90 I90 F27 I90 F90",
}


@pytest.mark.parametrize(("model", "slowdown"), LIVE)
def test_a_live_gate(model, slowdown):
    """No FAIL up to the tolerance of 1 %, no PASS from 5 % on, however noisy; too much noise ends open."""
    assert live(model, slowdown) == LIVE[model, slowdown]


GAIN = {
    ("quiet", 0.0): "P13 P19 P13 P13 P19 P13 P13 P13 P13 P13 P13 P19",
    ("quiet", -0.0099): "P19 P13 P13 P13 P13 P13 P13 P13 P27 P13 P13 P27",
    ("quiet", -0.05): "P27 G13 P19 G13 G13 G13 P19 G13 G13 G13 G13 P13",
    ("quiet", -0.2): "G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13",
    ("bimodal", 0.0): "P13 P13 P19 P13 P13 P13 P13 P27 P13 P19 P13 P13",
    ("bimodal", -0.0099): "P19 P13 P19 P19 P13 P13 P19 P13 P13 P13 P13 P13",
    ("bimodal", -0.05): "P13 P13 P19 G13 P13 P13 P13 P13 P13 P13 P19 P13",
    ("bimodal", -0.2): "G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13",
    ("drift", 0.0): "P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13",
    ("drift", -0.0099): "P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13 P13",
    ("drift", -0.05): "G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13",
    ("drift", -0.2): "G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13 G13",
    ("noisy", 0.0): "P13 P27 P27 P13 P27 P27 P13 P27 P19 P38 P19 P27",
    ("noisy", -0.0099): "P13 P13 P13 P27 P19 P27 P19 P19 P19 P13 P19 P13",
    ("noisy", -0.05): "P13 P13 P27 P13 G13 P13 P19 G13 P27 P27 P50 G13",
    ("noisy", -0.2): "G19 G13 G13 G19 G13 G13 G13 G13 G13 G13 G13 G13",
}


@pytest.mark.parametrize(("model", "slowdown"), GAIN)
def test_a_gain_is_named_where_it_is_asked_for(model, slowdown):
    """Only beyond the tolerance; to ask costs no pair."""
    verdicts = live(model, slowdown, gain=True)
    assert verdicts == GAIN[model, slowdown]
    plain = live(model, slowdown)
    assert "G" not in plain
    pairs = zip(verdicts.split(), plain.split(), strict=True)
    assert all(int(with_gain[1:]) <= int(without[1:]) for with_gain, without in pairs)


#: of 12 series at a slowdown of 0, 1, 2 and 5 %
FIXED = {
    ("quiet", 13): "PPPPPPPPPPPP IIPIPPPPIPPP IIPPPIPPPPPI FFFFFFFFIFFF",
    ("quiet", 30): "PPPPPPPPPPPP PPPPPPPPPPPP PPPPPFFPPFFF FFFFFFFFFFFF",
    ("quiet", 90): "PPPPPPPPPPPP PPPPPPPPPPPP FFFFFFFFFFFF FFFFFFFFFFFF",
    ("bimodal", 13): "PPIPPPPIPPPP PPPPPPPIPPPI IIIIPIPIIPPP IFIFIFIFIFII",
    ("bimodal", 30): "PPPPPPPPPPPP PPPPPPPPPPPP PPPIPPPPPPPP IFFFFFFFFFFF",
    ("bimodal", 90): "PPPPPPPPPPPP PPPPPPPPPPPP FFFFFPFPPPPP FFFFFFFFFFFF",
    ("drift", 13): "PPPPPPPPPPPP PPPPPPPPPPPP PFFPPFPPPPFF FFFFFFFFFFFF",
    ("drift", 30): "PPPPPPPPPPPP PPPPPPPPPPPP PFFFFFFPFFFF FFFFFFFFFFFF",
    ("drift", 90): "PPPPPPPPPPPP PPPPPPPPPPPP FFFFFFFFFFFF FFFFFFFFFFFF",
    ("noisy", 13): "PIIPIIPPPIPI IPIIIIIIPIIP IIPIIIIIIIII IIFIIIIIIIII",
    ("noisy", 30): "PPPPPPPPPPPP PPPPPPIPPPPP IIPPPPPPIPPP IIIFFFFIIFIF",
    ("noisy", 90): "PPPPPPPPPPPP PPPPPPPPPPPP PPPPPPPPPPPP FFFFFFFFFFFF",
}


@pytest.mark.parametrize(("model", "count"), FIXED)
def test_a_fixed_number_of_pairs(model, count):
    drawn = [simulate.pairs(model, slowdown, 12, draw(model, slowdown)) for slowdown in (0.0, 0.01, 0.02, 0.05)]
    assert " ".join(letters(simulate.given(logs[:, :count])) for logs in drawn) == FIXED[model, count]


#: of 8 series each: 5 % slower live and with 90 pairs given, equal live and with 90 pairs given
PRINTED = {
    "0.1, 1 %": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.1, 5 %": "IIIIIIII IFIIIIII IIIIIIII IIIIIIII",
    "0.11, 1 %": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.11, 3 %": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.11, 5 %": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.127, 4.3 %": "IIFFFIII IIFIIIII IIIPIPII PIIPIPII",
    "0.127, drift": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.13, 1 %": "IIIIIIII IIIIIIII IIIIIIII IIIIIIII",
    "0.13, 4.2 %": "IIIIIIII IIIIIIII IPIPPIII IPIIPIII",
    "0.155, 1 %": "IIIIIIII IIIIIIII PIIIPPII PIIIPPPI",
    "0.155, bimodal": "IIIIIIII IIIIIIII PPPPIPIP PPPPPPIP",
    "0.155, 3.5 %": "IIIIIIIF IIIIIIIF PIIPPIII IIIPPIPI",
    "0.204, 0.5 %": "IIIIFIII IIIIFIII PPPIPPIP PPPIPPIP",
    "0.204, drift": "FFFIFFFF IFFIFFFF PPPIPIPI PPPIPIPI",
    "0.204, 4 %": "IIFFIIIF IIFIFIIF PPPPPPPP PPPPPPPP",
    "0.23, 0.5 %": "IIIIIIII IIIIIIII PPPPPPPP PPPPPPPP",
    "0.23, 2 %": "FIFIIIFI FFFIIIFI PIIPPPIP PIPPPPPI",
    "0.23, bimodal": "IIIIIIII IIIIIIII PPIPPPPP PPIPPPPP",
    "0.23, 4.3 %": "IIIIIIII IIIIFFII PPPPPPPP PPPPPPPP",
    "0.263, 1 %": "FFFFIFIF FFFFIFIF PPIPPPPP PPIPPPII",
    "0.263, 2.5 %": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "0.3, quiet": "IFIFFFFF IFIFFFFF PPPPPPPP PPPPPPPP",
    "0.3, bimodal": "IFIIIFII IFIIIFII IPPIPPIP IPPIIPIP",
    "0.3, noisy": "IIFFFFIF FFFFFFIF PPPPPPPP PPPPPPPP",
    "1.02, quiet": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "1.02, 4 %": "FFIFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "30, quiet": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "30, noisy": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "0.155 (a rate), 2 %": "IIIIIIII IIIIIIII IIIPPPIP IIIPPPPP",
    "0.155 (a rate), bimodal": "IIIIIIII IIIIIIII PPIPIIPP PPIPPPPP",
    "0.23, quiet, candidate in steps of 0.0001": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
    "0.23, 4 %, candidate in steps of 0.0001": "FFFFFFFF FFFFFFFF PPPPPPPP PPPPPPPP",
}


@pytest.mark.parametrize("item", simulate.PRINTED, ids=lambda item: item.name)
def test_few_digits_hide_no_slowdown_and_make_none(item):
    """From 0.263 on the digits suffice for most verdicts."""
    drawn = [simulate.printed(item, slowdown, 8, draw(item.name, slowdown)) for slowdown in (0.05, 0.0)]
    verdicts = [letters(simulate.judged(item, values, count)[0]) for values in drawn for count in (None, CAP)]
    assert " ".join(verdicts) == PRINTED[item.name]


@pytest.mark.parametrize("count", [None, 90])
def test_printed_values_are_simulated_as_the_gate_judges_them(count):
    item = simulate.Printed(0.263, "1 %")
    values = simulate.printed(item, 0.05, 15, np.random.default_rng(11))
    state, used = simulate.judged(item, values, count)
    names = {paired.FAIL: "FAIL", paired.PASS: "PASS", paired.GO_ON: "INCONCLUSIVE"}
    assert len(set(state)) == 2
    for n in range(15):
        sides = values[:, n, : used[n]].tolist()
        pairs = pairs_of("s", *sides, item.better, item.steps, fixed=count is not None)
        assert decide([pairs], PairedRule())[0].state == names[state[n]]


@pytest.mark.parametrize(("state", "parts"), [
    (paired.PASS, {2197: -27, 2349: -19, 2436: -19}),
    (paired.FAIL, {1557: 13, 2375: -13}),
    (paired.GAIN, {878: 27, 1428: 38, 1970: 50}),
])  # fmt: skip
def test_a_part_seldom_contradicts_a_steady_series(state, parts):
    """Of 3000 at the margins themselves, where chance is likeliest: rows, and the first or last pairs that do."""
    every = simulate.contradictions(state, simulate.AT_MARGINS[state], 3000, SEED)
    assert {int(row): int(every[row]) for row in np.flatnonzero(every)} == parts


@pytest.mark.parametrize(("share", "doubts"), [(0.02, 0), (0.2, 1), (0.3, 2), (0.4, 34), (0.6, 100)])
def test_launches_disturbed_alike_are_in_doubt_only_where_most_pairs_are_disturbed(share, doubts):
    assert simulate.in_doubt(share, 27, 100, SEED) == doubts


@pytest.mark.parametrize("sign", [1, -1], ids=["slower", "faster"])
def test_campaigns_without_a_false_alarm(sign):
    assert simulate.campaigns(2, 100, SEED, sign) == 0


def test_a_rule_that_errs_breaks_its_promise():
    """As much slower as is tolerated, judged with no tolerance, and by the rule as it is."""
    promises = Promises()
    for rule in (PairedRule(), PairedRule(0.0, 0.05)):
        simulate.keep_errors([simulate.measure("quiet", 0.01, 100, SEED, rule)], promises)
    (broken,) = promises.broken
    assert broken.startswith("FAIL of quiet, 1 % slower, ")


EQUAL = simulate.Rate("quiet", 0.0, 1000, 0, 1000, 15.0, 27.0)
SLOWER = simulate.Rate("3 %", 0.05, 1000, 995, 5, 33.0, 65.0)
FASTER = simulate.Rate("noisy", -0.2, 1000, 0, 5, 14.0, 19.0, gained=995)


@pytest.mark.parametrize(("rate", "changes", "broken"), [
    (EQUAL, {"failed": 1}, "1 FAIL, 0 GAIN"),
    (EQUAL, {"gained": 1}, "0 FAIL, 1 GAIN"),
    (EQUAL, {"mean_pairs": 17.0}, "17.0 pairs on average"),
    (SLOWER, {"model": "quiet", "failed": 980}, "980 FAIL"),
    (SLOWER, {"mean_pairs": 36.0}, "36.0 pairs on average"),
    (SLOWER, {"model": "6 %"}, "hardly any is open"),
    (FASTER, {"gained": 960}, "960 GAIN"),
])  # fmt: skip
def test_what_a_live_gate_promises(rate, changes, broken):
    promises = Promises()
    simulate.keep_live([rate], promises)
    assert promises.broken == []
    simulate.keep_live([replace(rate, **changes)], promises)
    assert [line.partition(": ")[2] for line in promises.broken] == [broken]


def test_what_few_digits_promise():
    item = simulate.SUFFICIENT[0]
    slow, equal = replace(SLOWER, failed=500, passed=0), EQUAL
    promises = Promises()
    simulate.keep_printed(item, [slow], [equal], promises)
    assert promises.broken == []
    slow, equal = replace(slow, passed=11, failed=390), replace(equal, failed=7, passed=890)
    simulate.keep_printed(item, [slow], [equal], promises)
    assert len(promises.broken) == 4


def test_broken_promises_are_the_exit_status(capsys):
    promises = Promises()
    promises.rare("error", 5, 1000, 0.001)
    promises.keep("enough is found", is_kept=True)
    assert promises.status() == 0
    promises.rare("error", 6, 1000, 0.001)
    promises.keep("less is found", is_kept=False)
    assert promises.status() == 1
    assert capsys.readouterr().err == "broken: error: 6 of 1000, at most 0.1 % are promised\nbroken: less is found\n"
