"""Measure the verdicts that a gate gives although most of its launches were disturbed.

    python tests/rates/disturbed_alike.py [--full]

Ends with status 1 if a rate is worse than promised.

A launch is log-normal noise of 2 %. Other programs run in bursts (a two-state chain from launch to launch; within a
burst they go on with 95 %), and slow each launch that they meet down by an exponential amount of the given mean. Every
such launch has the flag. alike: both sides lose as much, so that one is hit more by chance alone. sensitive: the
candidate, as fast on a quiet host, loses the given factor more than the baseline. A verdict needs the flags of both
sides alike and an interval that lies far beyond the margins (plumbline.judge.decide.FAR).
"""

import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
from promises import Promises, command_line, show

from plumbline.judge import decide, disturbed
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.statistics.paired import LOOKS, PairedRule

NOISE, STAY = 0.02, 0.95
#: share of launches in a burst, mean loss there, how many times as much the candidate loses, and its true slowdown
ALIKE = [(share, loss, 1.0, 0.0) for share in (0.55, 0.8, 1.0) for loss in (0.1, 0.3, 1.0)]
SENSITIVE = [(1.0, 0.1, 2.0, 0.0), (1.0, 0.2, 1.5, 0.0), (1.0, 0.3, 2.0, 0.0), (1.0, 0.3, 4.0, 0.0)]
SLOWER = [(1.0, loss, 1.0, slowdown) for loss in (0.1, 0.3) for slowdown in (0.3, 0.9)]


def gate(cell: tuple[float, float, float, float], draw: np.random.Generator) -> Pairs:
    """A series of as many pairs as the first look has, with the flags of its launches."""
    share, loss, factor, slowdown = cell
    count = 2 * LOOKS[0]
    starts = draw.random(count) < (share if share == 1 else (1 - STAY) * share / (1 - share))
    burst, flags = bool(draw.random() < share), []
    for begins in starts:
        burst = bool(draw.random() < STAY) or share == 1 if burst else bool(begins)
        flags.append(burst)
    sides = np.array([draw.permutation(2) for _ in range(LOOKS[0])]).ravel()  # 1: the candidate's
    lost = np.where(flags, draw.exponential(loss, count) * np.where(sides, factor, 1.0), 0.0)
    times = np.exp(draw.normal(0, NOISE, count)) * (1 + lost) * np.where(sides, 1 + slowdown, 1.0)
    values = [times[sides == side].tolist() for side in (0, 1)]
    of_sides = [np.array(flags)[sides == side] for side in (0, 1)]
    either = of_sides[0] | of_sides[1]
    seen = Disturbed(
        LOOKS[0],
        (int(of_sides[0].sum()), int(of_sides[1].sum())),
        (int((of_sides[0] & ~of_sides[1]).sum()), int((of_sides[1] & ~of_sides[0]).sum())),
        LOOKS[0],
        int(either.sum()),
    )
    return Pairs("made", Column(values[0]), Column(values[1]), "lower", disturbed=seen)


def states(cell: tuple[float, float, float, float], gates: int, seed: int) -> Counter[str]:
    """How many of these gates end as what, GAIN asked for; FAIL and GAIN of mostly disturbed ones are ``marked``."""
    draw = np.random.default_rng([seed, *(int(1000 * number) for number in cell)])
    counts: Counter[str] = Counter()
    for _ in range(gates):
        [verdict] = decide.decide([gate(cell, draw)], PairedRule(gain=True))
        counts[verdict.state] += 1
        counts["marked"] += bool(verdict.notes)
    return counts


def rows(gates: int, seed: int, promises: Promises) -> Iterator[tuple[str, ...]]:
    """A row for each kind of gate."""
    for cell in (*ALIKE, *SENSITIVE, *SLOWER):
        counts = states(cell, gates, seed)
        shares = (f"{100 * counts[name] / gates:.2f}" for name in ("FAIL", "GAIN", "INCONCLUSIVE"))
        yield f"{cell[0]:.0%}", f"{cell[1]:.0%}", f"x {cell[2]:g}", f"{cell[3]:.0%}", *shares
        if cell in ALIKE:
            promises.rare(f"a marked verdict on equal sides, {cell}", counts["marked"], gates, 0.001)
        if cell[3] > 0.5:
            promises.keep(f"{cell}: {counts['FAIL']} of {gates} FAIL", is_kept=counts["FAIL"] >= 0.5 * gates)


def main() -> int:
    parser = command_line(__doc__, "10,000 gates per line instead of 1,000")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    promises = Promises()
    print(f"Far: beyond {PairedRule().detected * decide.FAR / 1e9:.0%} in logs; alike: p > {disturbed.ALIKE}\n")
    header = ("launches disturbed", "mean loss", "candidate's loss", "slower by", "FAIL %", "GAIN %", "INCONCLUSIVE %")
    show(header, rows(10_000 if args.full else 1_000, args.seed, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
