"""Measure how often the gate errs, on simulated launches with known truth.

    python tests/rates/simulate.py [--full]

Ends with status 1 if a rate is worse than promised.

A launch is log-normal noise by one of four models; a pair is two launches in random order in one session. quiet: 1 %,
one launch in 20 has a tail of Exp(10 %). bimodal: 1 %, one launch in four is 6 % slower. drift: 0.8 % on a session that
wanders (AR(1), 0.6 from pair to pair, 2 %). noisy: 4 %, correlated 0.5 from launch to launch, one launch in ten has a
tail of Exp(15 %). And independent launches of 1, 2, 3, 4 and 6 % with the tail of quiet's.

Printed values are such launches around a value, rounded: most to two decimals, as OSU and IMB print microseconds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from promises import Promises, bounded, command_line, show

from plumbline.base.units import Better
from plumbline.judge import disturbed
from plumbline.judge.decide import CAMPAIGN_ERROR
from plumbline.judge.disturbed import Disturbed
from plumbline.statistics import basic, paired
from plumbline.statistics.basic import holm
from plumbline.statistics.paired import CAP, FAIL, GAIN, GO_ON, LOOKS, PASS, SCALE, Decisions, PairedRule

MODELS = ("quiet", "bimodal", "drift", "noisy")
PLAIN = ("1 %", "2 %", "3 %", "4 %", "6 %")
SLOWDOWNS = (0.0, 0.02, 0.05)
#: of candidates that are faster, where a gain is asked for: 1 % is the tolerance, which GAIN has to exceed
SPEEDUPS = (0.0, -0.01, -0.02, -0.05, -0.2)
#: the margins, and how often a FAIL (or GAIN) and a PASS may be wrong at them
TOLERANCE, MUST_DETECT = 0.01, 0.05
WRONG_FAIL, WRONG_PASS = 0.001, 0.01
#: verdict: the slowdown at which a part of a series is likeliest to contradict it by chance
AT_MARGINS = {PASS: MUST_DETECT, FAIL: TOLERANCE, GAIN: 1 / (1 + TOLERANCE) - 1}
#: model: pairs that an equal candidate takes on average, at most; and one that is 5 % slower
EQUAL_PAIRS = {"quiet": 16.0, "bimodal": 16.0, "drift": 16.0, "noisy": 30.0}
SLOWER_PAIRS = {"1 %": 19.0, "2 %": 22.5, "3 %": 35.0}
#: numbers of pairs that are given
FIXED = (13, 30, 90)
#: of launches that are flagged
SHARES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.6)
CHUNK = 2000


@dataclass(frozen=True)
class Printed:
    """A figure as a program prints it: its ``value``, the noise of its launches, and the steps of both sides."""

    value: float
    model: str
    steps: tuple[float, float] = (0.01, 0.01)
    better: Better = "lower"

    @property
    def name(self) -> str:
        """Value, noise in percent and what else differs from the others."""
        finer = f", candidate in steps of {self.steps[1]:g}" if self.steps[1] != self.steps[0] else ""
        return f"{self.value:.4g}{' (a rate)' if self.better == 'higher' else ''}, {self.model}{finer}"


#: values from 10 to 3000 steps, the spread of their launches from 0.1 to 4 steps
PRINTED = (
    *(Printed(0.1, model) for model in ("1 %", "5 %")),
    *(Printed(0.11, model) for model in ("1 %", "3 %", "5 %")),
    *(Printed(0.127, model) for model in ("4.3 %", "drift")),
    *(Printed(0.13, model) for model in ("1 %", "4.2 %")),
    *(Printed(0.155, model) for model in ("1 %", "bimodal", "3.5 %")),
    *(Printed(0.204, model) for model in ("0.5 %", "drift", "4 %")),
    *(Printed(0.23, model) for model in ("0.5 %", "2 %", "bimodal", "4.3 %")),
    *(Printed(0.263, model) for model in ("1 %", "2.5 %")),
    *(Printed(0.3, model) for model in ("quiet", "bimodal", "noisy")),
    *(Printed(1.02, model) for model in ("quiet", "4 %")),
    *(Printed(30.0, model) for model in ("quiet", "noisy")),
    *(Printed(0.155, model, better="higher") for model in ("2 %", "bimodal")),
    *(Printed(0.23, model, (0.01, 0.0001)) for model in ("quiet", "4 %")),
)
#: of these the digits suffice for most verdicts
SUFFICIENT = (Printed(0.3, "quiet"), Printed(0.263, "2.5 %"), Printed(1.02, "4 %"), Printed(30.0, "noisy"))


def launches(model: str, series: int, draw: np.random.Generator) -> np.ndarray:
    """Log times of ``series`` sessions of 90 pairs: shape (series, 90, 2), in the order started."""
    shape = (series, 2 * CAP)

    def tail(share: float, scale: float) -> np.ndarray:
        return np.where(draw.random(shape) < share, draw.exponential(scale, shape), 0.0)

    if model == "quiet":
        values = draw.normal(0, 0.01, shape) + tail(0.05, 0.10)
    elif model == "bimodal":
        values = draw.normal(0, 0.01, shape) + np.where(draw.random(shape) < 0.25, 0.06, 0.0)
    elif model == "drift":
        values = draw.normal(0, 0.008, shape) + np.repeat(wander(draw, (series, CAP), 0.6, 0.02), 2, axis=1)
    elif model == "noisy":
        values = wander(draw, shape, 0.5, 0.04) + tail(0.10, 0.15)
    else:
        values = draw.normal(0, float(model.split()[0]) / 100, shape) + tail(0.05, 0.10)
    return values.reshape(series, CAP, 2)


def wander(draw: np.random.Generator, shape: tuple[int, int], rho: float, sd: float) -> np.ndarray:
    """Stationary AR(1) along the rows."""
    fresh = draw.normal(0, sd, shape)
    fresh[:, 1:] *= np.sqrt(1 - rho**2)
    for column in range(1, shape[1]):
        fresh[:, column] += rho * fresh[:, column - 1]
    return fresh


def pairs(model: str, slowdown: float, series: int, draw: np.random.Generator) -> np.ndarray:
    """Log ratios (1e-9) of a candidate slower by ``slowdown``, the order inside each pair drawn."""
    times = launches(model, series, draw)
    differences = times[:, :, 1] - times[:, :, 0]
    differences *= np.where(draw.random(differences.shape) < 0.5, 1, -1)
    return np.rint((differences + np.log1p(slowdown)) * SCALE).astype(np.int64)


def printed(item: Printed, slowdown: float, series: int, draw: np.random.Generator) -> np.ndarray:
    """The values of baseline and candidate as printed: shape (2, series, 90)."""
    noise = launches(item.model, series, draw)
    noise = np.where(draw.random((series, CAP, 1)) < 0.5, noise, noise[:, :, ::-1])
    worse = (1.0, 1 + slowdown if item.better == "lower" else 1 / (1 + slowdown))
    return np.stack([
        np.maximum(1, np.rint(item.value * worse[side] * np.exp(noise[:, :, side]) / step)) * step
        for side, step in enumerate(item.steps)
    ])  # fmt: skip


def judged(item: Printed, values: np.ndarray, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """State and number of pairs of each series of ``values``: live, or the first ``count`` pairs that are given."""
    sign = 1 if item.better == "lower" else -1
    logs = np.rint(sign * np.log(values[1] / values[0]) * SCALE).astype(np.int64)
    state, used = np.zeros(len(logs), dtype=np.int64), np.full(len(logs), count or CAP)
    for n in [count] if count else LOOKS:
        rows = np.flatnonzero(state == GO_ON)
        sides = values[:, rows, :n].swapaxes(0, 1)
        hidden = [basic.hidden(baseline, candidate, item.steps) for baseline, candidate in sides]
        blur = np.array([round(log * SCALE) for log in hidden], dtype=np.int64)
        if count:
            found = paired.look(logs[:, :n], PairedRule(), blur, paired.FIXED)
        else:  # a live gate judges all that it has so far, with what rounding hides of that
            found = paired.decisions(logs[rows, :n], np.full(rows.size, n), PairedRule(), blur).state
        state[rows], used[rows] = steady(logs[rows, :n], found, PairedRule(), blur), n
    return state, used


def measure_printed(item: Printed, slowdown: float, series: int, seed: int, count: int | None = None) -> Rate:
    """Judge ``series`` simulated series of printed values as :func:`judged` does."""
    draw = np.random.default_rng([seed, round(1e4 * slowdown), *item.name.encode()])
    state, used = judged(item, printed(item, slowdown, series, draw), count)
    failed, passed = int((state == FAIL).sum()), int((state == PASS).sum())
    return Rate(item.name, slowdown, series, failed, passed, float(used.mean()), float(np.percentile(used, 95)))


@dataclass(frozen=True)
class Rate:
    """Counts of one model at one slowdown."""

    model: str
    slowdown: float
    series: int
    failed: int
    passed: int
    mean_pairs: float
    p95_pairs: float
    gained: int = 0

    def share(self, count: int) -> float:
        return count / self.series


def measure(model: str, slowdown: float, series: int, seed: int, rule: PairedRule | None = None) -> Rate:
    """Judge ``series`` simulated series."""
    draw = np.random.default_rng([seed, round(1e4 * slowdown) % 2**32, *model.encode()])
    failed = passed = gained = 0
    used = []
    for start in range(0, series, CHUNK):
        decided = live(pairs(model, slowdown, min(CHUNK, series - start), draw), rule or PairedRule())
        failed += int((decided.state == FAIL).sum())
        passed += int((decided.state == PASS).sum())
        gained += int((decided.state == GAIN).sum())
        used.append(decided.pairs)
    every = np.concatenate(used)
    return Rate(model, slowdown, series, failed, passed, float(every.mean()), float(np.percentile(every, 95)), gained)


def live(logs: np.ndarray, rule: PairedRule) -> Decisions:
    """What a gate that measures pair by pair says of rows of log ratios, and after how many pairs."""
    decided = paired.decisions(logs, np.full(len(logs), CAP), rule)
    for n in np.unique(decided.pairs):
        rows = np.flatnonzero(decided.pairs == n)
        decided.state[rows] = steady(logs[rows, :n], decided.state[rows], rule)
    return decided


def measure_fixed(model: str, slowdown: float, count: int, series: int, seed: int) -> Rate:
    """Judge ``series`` simulated series of ``count`` pairs each, as pairs that were given are judged."""
    draw = np.random.default_rng([seed, count, round(1e4 * slowdown), *model.encode()])
    state = np.concatenate(
        [
            given(pairs(model, slowdown, min(CHUNK, series - start), draw)[:, :count])
            for start in range(0, series, CHUNK)
        ]
    )
    return Rate(model, slowdown, series, int((state == FAIL).sum()), int((state == PASS).sum()), count, count)


def given(logs: np.ndarray) -> np.ndarray:
    """The states of rows of log ratios whose number was fixed."""
    return steady(
        logs, paired.look(logs, PairedRule(), np.zeros(len(logs), dtype=np.int64), paired.FIXED), PairedRule()
    )


def steady(logs: np.ndarray, state: np.ndarray, rule: PairedRule, blur: np.ndarray | None = None) -> np.ndarray:
    """``state`` of each row, but undecided where the row contradicts itself."""
    against = paired.contradicting(logs, state, rule, np.zeros(len(logs), dtype=np.int64) if blur is None else blur)
    return np.where(against != 0, paired.GO_ON, state)


def contradictions(state: int, slowdown: float, series: int, seed: int) -> np.ndarray:
    """By which part each of ``series`` steady ones with that ``slowdown`` contradicts its ``state``; 0 for none."""
    draw = np.random.default_rng([seed, state])
    logs = np.rint(draw.normal(np.log1p(slowdown) * SCALE, 0.02 * SCALE, (series, CAP))).astype(np.int64)
    return paired.contradicting(logs, np.full(series, state), PairedRule(), np.zeros(series, dtype=np.int64))


def in_doubt(share: float, kept: int, gates: int, seed: int) -> int:
    """Of ``gates`` with ``kept`` pairs that count, each launch flagged with probability ``share``: how many in doubt.

    Both sides alike, so every doubt is by chance. Pairs are measured again by the gate's rule.
    """
    draw = np.random.default_rng([seed, kept, round(1e4 * share)])
    found = 0
    for _ in range(gates):
        counting: list[tuple[bool, bool]] = []
        again: list[tuple[bool, bool]] = []
        while len(counting) < kept:
            pair = (bool(draw.random() < share), bool(draw.random() < share))
            (again if disturbed.is_due(True, any(pair), len(counting), len(again)) else counting).append(pair)
        every = counting + again
        alone = every.count((True, False)), every.count((False, True))
        sums = sum(one for one, _ in every), sum(two for _, two in every)
        found += Disturbed(len(every), sums, alone, kept, sum(map(any, counting))).doubt() is not None
    return found


def campaigns(count: int, metrics: int, seed: int, sign: int = 1) -> int:
    """Of ``count`` A/A campaigns of ``metrics`` series (the four models in turn): how many have a FAIL after Holm.

    ``sign`` -1: how many have a GAIN.
    """
    draw = np.random.default_rng(seed)
    bad = 0
    for _ in range(count):
        logs = sign * np.concatenate([pairs(model, 0.0, metrics // len(MODELS), draw) for model in MODELS])
        full = np.full(len(logs), CAP)
        rows = np.flatnonzero(paired.decisions(logs, full, PairedRule()).state == FAIL)
        bad += bool(holm(paired.evidence(logs[rows], PairedRule()), len(logs), CAMPAIGN_ERROR).any())
    return bad


def table(rates: list[Rate]) -> None:
    """Shares in percent, the upper 95 % bound in brackets."""
    header = ("noise of launches", "slowdown", "series", "FAIL %", "PASS %", "INCONCLUSIVE %", "pairs, mean", "95 %")
    show(header, ([
        item.model, f"{item.slowdown:.0%}", item.series, *(bounded(n, item.series) for n in (item.failed, item.passed)),
        f"{100 * item.share(item.series - item.failed - item.passed):.2f}", f"{item.mean_pairs:.1f}",
        f"{item.p95_pairs:.0f}",
    ] for item in rates))  # fmt: skip


def table_of_gains(rates: list[Rate]) -> None:
    """As :func:`table`, of series whose gain was asked for."""
    show(("noise of launches", "candidate", "series", "GAIN %", "PASS %", "FAIL %", "pairs, mean"), ([
        item.model, f"{-item.slowdown:.0%} less time" if item.slowdown else "equal", item.series,
        *(bounded(n, item.series) for n in (item.gained, item.passed, item.failed)), f"{item.mean_pairs:.1f}",
    ] for item in rates))  # fmt: skip


def rows_of_printed(series: int, seed: int, promises: Promises) -> Iterator[list[str]]:
    """Each of :data:`PRINTED`, live and 90 pairs given, at 5 % slower and equal."""
    for item in PRINTED:
        slow, equal = ([measure_printed(item, s, series, seed, n) for n in (None, CAP)] for s in (MUST_DETECT, 0.0))
        keep_printed(item, slow, equal, promises)
        wrong = [bounded(one.passed, one.series) for one in slow]
        found = [f"{100 * one.share(one.failed):.0f}" for one in slow]
        wrong_equal = [bounded(one.failed, one.series) for one in equal]
        passed = [f"{100 * one.share(one.passed):.0f}" for one in equal]
        yield [item.name, *wrong, *found, *wrong_equal, *passed]


def keep_errors(rates: Iterable[Rate], promises: Promises) -> None:
    """Wrong verdicts are as rare as declared."""
    for rate in rates:
        series = f"{rate.model}, {100 * rate.slowdown:g} % slower, {rate.mean_pairs:.1f} pairs"
        if rate.slowdown <= TOLERANCE:
            promises.rare(f"FAIL of {series}", rate.failed, rate.series, WRONG_FAIL)
        if rate.slowdown >= -TOLERANCE:
            promises.rare(f"GAIN of {series}", rate.gained, rate.series, WRONG_FAIL)
        if rate.slowdown >= MUST_DETECT:
            promises.rare(f"PASS of {series}", rate.passed, rate.series, WRONG_PASS)


def keep_live(rates: Iterable[Rate], promises: Promises) -> None:
    """What a live gate finds, and with how few pairs: it never calls equal candidates slower or faster."""
    for rate in rates:
        series = f"{rate.model}, {100 * rate.slowdown:g} % slower"
        pairs = f"{series}: {rate.mean_pairs:.1f} pairs on average"
        if rate.slowdown == 0 and rate.model in EQUAL_PAIRS:
            promises.keep(f"{series}: {rate.failed} FAIL, {rate.gained} GAIN", is_kept=not rate.failed + rate.gained)
            promises.keep(pairs, is_kept=rate.mean_pairs <= EQUAL_PAIRS[rate.model])
        if rate.slowdown == MUST_DETECT:
            if rate.model in MODELS:
                promises.keep(f"{series}: {rate.failed} FAIL", is_kept=rate.share(rate.failed) >= 0.985)
            if rate.model in SLOWER_PAIRS:
                promises.keep(pairs, is_kept=rate.mean_pairs <= SLOWER_PAIRS[rate.model])
            if rate.model == "6 %":  # too much noise for a verdict
                promises.keep(f"{series}: hardly any is open", is_kept=rate.failed + rate.passed < 0.9 * rate.series)
        if rate.slowdown == SPEEDUPS[-1]:
            promises.keep(f"{series}: {rate.gained} GAIN", is_kept=rate.share(rate.gained) >= 0.97)


def keep_printed(item: Printed, slow: list[Rate], equal: list[Rate], promises: Promises) -> None:
    """Few digits hide no slowdown and make none; where they suffice, there are verdicts."""
    for rate in slow:
        promises.keep(f"{item.name}: {rate.passed} slower ones PASS", is_kept=rate.share(rate.passed) <= WRONG_PASS)
    for rate in equal:
        promises.rare(f"FAIL of equal ones, {item.name}", rate.failed, rate.series, WRONG_FAIL)
    if item in SUFFICIENT:
        passed, failed = equal[0].share(equal[0].passed), slow[0].share(slow[0].failed)
        promises.keep(f"{item.name}: {passed:.0%} of equal ones PASS", is_kept=passed >= 0.9)
        promises.keep(f"{item.name}: {failed:.0%} of slower ones FAIL", is_kept=failed >= 0.4)


def main() -> int:
    parser = command_line(__doc__, "10,000 series per line instead of 1,000")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    series, count = (10_000, 200) if args.full else (1_000, 20)
    promises = Promises()
    rates = [measure(m, s, series, args.seed) for m in (*MODELS, *PLAIN) for s in SLOWDOWNS]
    keep_errors(rates, promises)
    keep_live(rates, promises)
    table(rates)
    print("\nAll pairs given, their number fixed beforehand:\n")
    rates = [measure_fixed(m, s, n, series, args.seed) for m in MODELS for n in FIXED for s in SLOWDOWNS]
    keep_errors(rates, promises)
    table(rates)
    print("\nAs much slower as is tolerated, live and with pairs given:\n")
    rates = [measure(m, TOLERANCE, series, args.seed) for m in MODELS]
    rates += [measure_fixed(m, TOLERANCE, n, series, args.seed) for m in MODELS for n in FIXED]
    keep_errors(rates, promises)
    table(rates)
    print("\nPrinted with few digits:\n")
    header = [f"{kind} {pairs}" for kind in ("5 %: PASS %", "5 %: FAIL %", "equal: FAIL %", "equal: PASS %")
              for pairs in ("live", "90 given")]  # fmt: skip
    show(("value, noise of launches", *header), rows_of_printed(series // 5, args.seed, promises))
    print("\nA gain asked for:\n")
    rates = [measure(m, s, series, args.seed, PairedRule(gain=True)) for m in MODELS for s in SPEEDUPS]
    keep_errors(rates, promises)
    keep_live(rates, promises)
    table_of_gains(rates)
    for state, slowdown in AT_MARGINS.items():
        chance = np.count_nonzero(contradictions(state, slowdown, series, args.seed))
        promises.rare(f"a steady series, {slowdown:.1%} slower, contradicts its verdict", chance, series, WRONG_FAIL)
    print("\nOf gates whose launches are disturbed alike on both sides, INCONCLUSIVE for that:\n")
    print("| launches disturbed | pairs that count | gates | INCONCLUSIVE % |\n|--:|--:|--:|--:|")
    for share, kept in itertools.product(SHARES, (13, 90)):
        doubts = in_doubt(share, kept, series, args.seed)
        print(f"| {share:.0%} | {kept} | {series} | {100 * doubts / series:.2f} |")
        if share <= 0.2:
            promises.rare(f"doubt, {share:.0%} disturbed, {kept} pairs", doubts, series, 0.001 if share < 0.1 else 0.02)
    for verdict, sign in (("FAIL", 1), ("GAIN", -1)):
        wrong = campaigns(count, 100, args.seed, sign)
        print(f"\nA/A campaigns of 100 series with a {verdict}: {wrong} of {count}")
        promises.keep(f"{wrong} A/A campaigns with a {verdict}", is_kept=wrong == 0)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
