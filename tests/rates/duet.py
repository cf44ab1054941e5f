"""Verdicts of the gate with both sides at the same time (``--order duet``), against pairs in turn.

    python tests/rates/duet.py [--full]                       # simulated; status 1 if a rate is worse than promised
    python tests/rates/duet.py --gates 40 [--total 20]        # real gates for 20 minutes, quiet and busy

Simulated: the log of a launch's time has noise of the host, which both halves share at one time and which stays with
KEPT from launch to launch, of its half at that time, and of the launch itself. WAITED of the noise of host and half is
waiting for a CPU, which the witness sees. A slower program takes 5 % more time alone. What it shares with the other
side changes both by the slowdowns of a table: some hide a part of the step, some all of it. None of these programs was
used to choose a constant of the rule. A turn is the time of one launch: a round takes two, and two more as long as it
is not known how much the sides slow one another.

Real: commands that compute, wait for memory and call the system, each against itself and against 5 % more of it, by
the real gate in both orders in turn. Busy: beside a program of this script that computes or copies memory for 0.5 to
3 s, and sleeps as long. Finished gates stay in ``build/rates/duet.jsonl``; a new start continues with them.
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from commands import LOOPS, PLUMB
from promises import Kept, Promises, at_most, command_line, show

from plumbline.judge import slowing
from plumbline.statistics import Flags, Floats, Ints, paired
from plumbline.statistics.paired import CAP, FAIL, GO_ON, LOOKS, PASS, SCALE, PairedRule

KEPT, WAITED = 0.5, 0.85
#: standard deviations: of the host, of a half, of a launch
MACHINES = {"quiet": (0.003, 0.002, 0.007), "shared": (0.08, 0.02, 0.01), "busy": (0.15, 0.05, 0.015),
            "one half": (0.02, 0.12, 0.01)}  # fmt: skip
#: logs of the slowdowns of baseline and candidate by one another, and of the candidate's step alone
STEP = float(np.log(1.05))
PROGRAMS = {
    "equal": (0.0, 0.0, 0.0),
    "equal, share a cache": (0.08, 0.08, 0.0),
    "5 %, compute": (0.0, 0.0, STEP),
    "5 %, bandwidth at 51 %": (float(np.log(1.02)), float(np.log((1.02 + 0.05) / 1.05)), STEP),
    "5 %, bandwidth at 80 %": (float(np.log(1.6)), float(np.log((1.6 + 0.05) / 1.05)), STEP),
    "5 %, cache: a third is hidden": (STEP / 3, 0.0, STEP),
    "5 %, cache: half is hidden": (STEP / 2, 0.0, STEP),
    "5 %, cache: all is hidden": (STEP, 0.0, STEP),
    "5 %, cache: both lose, all is hidden": (0.2, 0.2 - STEP, STEP),
}
ORDERS = ("turns", "duet")
STATES = ("PASS", "INCONCLUSIVE", "FAIL")


def slots(draw: np.random.Generator, series: int, host: float, half: float, number: int) -> Floats:
    """Noise of ``number`` launches one after the other on both halves: shape (series, number, halves)."""
    shocks = draw.normal(0, host, (series, number)) * (1 - KEPT**2) ** 0.5
    common = np.empty((series, number))
    common[:, 0] = draw.normal(0, host, series)
    for slot in range(1, number):
        common[:, slot] = KEPT * common[:, slot - 1] + shocks[:, slot]
    return common[:, :, None] + draw.normal(0, half, (series, number, 2))


def in_turn(draw: np.random.Generator, machine: str, step: float, series: int) -> tuple[Ints, Ints]:
    """States and turns of pairs in turn, on the whole machine."""
    host, half, own = MACHINES[machine]
    times = slots(draw, series, host, half, 2 * CAP).mean(axis=2) + draw.normal(0, own, (series, 2 * CAP))
    logs = np.rint((times[:, 1::2] - times[:, ::2] + step) * SCALE).astype(np.int64)
    decided = paired.decisions(logs, np.full(series, CAP), PairedRule())
    return decided.state, 2 * decided.pairs


def side_by_side(draw: np.random.Generator, machine: str, program: str, series: int) -> tuple[Ints, Ints]:
    """States and turns of rounds; a time of two launches side by side is one turn of the machine, as one launch is."""
    host, half, own = MACHINES[machine]
    (slowed_b, slowed_c, step), rule = PROGRAMS[program], PairedRule()
    noise = slots(draw, series, host, half, 4 * CAP).reshape(series, CAP, 4, 2)
    launch = draw.normal(0, own, (series, CAP, 4, 2))
    both = noise[:, :, :2] + launch[:, :, :2]
    ratio = (both[:, :, 0, 1] - both[:, :, 0, 0] + both[:, :, 1, 0] - both[:, :, 1, 1]) / 2
    logs = np.rint((ratio + step + slowed_c - slowed_b) * SCALE).astype(np.int64)
    rest = (1 - WAITED) * noise + launch  # of the time without waits
    mine = [(rest[:, :, 0, side] + rest[:, :, 1, 1 - side]) / 2 for side in (0, 1)]
    slowed = (mine[0] - rest[:, :, 2, 0] + slowed_b, mine[1] - rest[:, :, 3, 0] + slowed_c)
    state, rounds = np.full(series, GO_ON), np.full(series, CAP)
    bound, parts, ended = np.full(series, slowing.UNKNOWN), np.full(series, 0), np.zeros(series, dtype=np.bool_)
    for look in (slowing.FEWEST, *LOOKS):
        open_ones: Flags = slowing.ENOUGH * bound > rule.detected
        known = [slowing.bounds(side[:, :look]) for side in slowed]
        lows, highs = (np.maximum(known[0][end], known[1][end]) for end in (0, 1))
        bound[open_ones] = np.maximum(np.rint(highs[open_ones]), 1).astype(np.int64)
        parts[open_ones & ~ended] = 2 * look
        now = paired.decisions(logs[:, :look], np.full(series, look), rule, bound).state
        if look == slowing.FEWEST:
            continue
        state = np.where(ended, state, now)
        rounds[~ended & ((now != GO_ON) | (lows > rule.detected))] = look
        ended |= (now != GO_ON) | (lows > rule.detected)  # no PASS can come any more
    return state, 2 * rounds + parts


def simulate(series: int, seed: int, promises: Promises) -> Iterator[tuple[str, ...]]:
    """A row of each machine, program and order."""
    for machine, (number, program), order in itertools.product(MACHINES, enumerate(PROGRAMS), ORDERS):
        step = PROGRAMS[program][2]
        if order == "turns" and program not in ("equal", "5 %, compute"):
            continue  # in turn nothing is shared
        draw = np.random.default_rng([seed, list(MACHINES).index(machine), number, ORDERS.index(order)])
        state, turns = (
            in_turn(draw, machine, step, series) if order == "turns" else side_by_side(draw, machine, program, series)
        )
        shares = [int((state == kind).sum()) for kind in (PASS, FAIL, GO_ON)]
        shown = (f"{100 * share / series:.2f}" for share in shares)
        yield machine, program, order, *shown, f"{np.median(turns):.0f}", f"{np.quantile(turns, 0.95):.0f}"
        if step:
            promises.rare(f"PASS of {program}, {machine}, {order}", shares[0], series, 0.01)
        else:
            promises.rare(f"FAIL of {program}, {machine}, {order}", shares[1], series, 0.001)


#: turns of each loop in a second, about
KINDS = {"COMPUTE": 250_000_000, "MEMORY": 253_000_000, "CALLS": 4_000_000}


def compete() -> None:
    """Compute or copy memory for a while, and sleep for a while, without an end."""
    block = bytearray(64 << 20)
    draw = random.Random()  # noqa: S311 - no secret
    while True:
        until, is_copy = time.monotonic() + draw.uniform(0.5, 3), draw.random() < 0.5
        while time.monotonic() < until:
            block[: 32 << 20] = block[32 << 20 :] if is_copy else block[: 32 << 20]
            if not is_copy:
                sum(range(200_000))
        time.sleep(draw.uniform(0.5, 3))


def real_gate(program: Path, turns: tuple[int, int], order: str, seed: int, minutes: float) -> dict[str, Any]:
    """The series of one real gate, and the minutes that it took."""
    begin = time.monotonic()
    words = ["--baseline", f"command:{program} {turns[0]}", "--candidate", f"command:{program} {turns[1]}"]
    options = ["--json", "--measure-equal", "--order", order, "--seed", str(seed), "--minutes", str(minutes)]
    done = subprocess.run([PLUMB, "gate", *options, *words], stdout=subprocess.PIPE, text=True, check=False)
    (series,) = json.loads(done.stdout)["series"]
    return {**series, "minutes": (time.monotonic() - begin) / 60}


def measure(gates: int, seconds: float, minutes: float, total: float) -> None:
    """Measure gates that are missing until ``total`` minutes have passed, and print the table of all so far.

    Of 5 % there are half as many as of equal programs. A gate that is interrupted is measured anew.
    """
    folder = Path("build/rates").resolve()
    kept, until = Kept(folder / "duet.jsonl"), time.monotonic() + 60 * total
    under = {"seconds": seconds, "minutes": minutes}
    mine = {tuple(line["cell"]): line for line in kept.lines if line["under"] == under}
    for kind in KINDS:
        subprocess.run(["gcc", "-O1", f"-D{kind}", "-o", folder / f"duet-{kind}", LOOPS], check=True)
    sides = {"equal": 1.0, "5 % slower": 1.05}
    cells = itertools.product(range(gates), ("quiet", "busy"), KINDS, sides, ORDERS)
    wanted = [cell for cell in cells if cell not in mine and (cell[3] == "equal" or cell[0] < (gates + 1) // 2)]
    for number, machine, kind, side, order in wanted:
        if time.monotonic() >= until:
            break
        aggressor = None
        if machine == "busy":
            aggressor = subprocess.Popen([sys.executable, __file__, "--compete"])
        try:
            turns = (round(KINDS[kind] * seconds), round(KINDS[kind] * seconds * sides[side]))
            series = real_gate(folder / f"duet-{kind}", turns, order, number, minutes)
        finally:
            if aggressor:
                aggressor.kill()
                aggressor.wait()
        cell = (number, machine, kind, side, order)
        mine[cell] = {"cell": cell, "under": under, **series}
        kept.add(mine[cell])
        print(*cell, series["verdict"], series["pairs"], f"{series['minutes']:.1f} min", flush=True)
    left = sum(cell not in mine for cell in wanted)
    print(f"\n{len(mine)} gates so far, {left} are missing: the same command goes on\n")
    header = ("machine", "kind", "candidate", "order", "gates", *STATES, "wrong, 95 %", "pairs", "minutes")
    rows = itertools.product(("quiet", "busy"), KINDS, sides, ORDERS)
    show(header, (of_row(row, seen) for row in rows if (seen := [mine[cell] for cell in mine if cell[1:] == row])))


def of_row(row: tuple[str, ...], gates: list[dict[str, Any]]) -> list[object]:
    """The cells of these gates."""
    counts = Counter(line["verdict"] for line in gates)
    wrong = at_most(counts["FAIL" if row[2] == "equal" else "PASS"], len(gates))
    pairs, took = (statistics.median(line[name] for line in gates) for name in ("pairs", "minutes"))
    shown = (counts[state] for state in STATES)
    return [*map(str.lower, row), len(gates), *shown, f"≤ {wrong:.0%}", f"{pairs:.0f}", f"{took:.2f}"]


def main() -> int:
    parser = command_line(__doc__, "10,000 series a row instead of 1,000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gates", type=int, help="measure so many real gates of each row")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a launch, about")
    parser.add_argument("--minutes", type=float, default=3, help="most minutes of a gate")
    parser.add_argument("--total", type=float, default=20, help="start no real gate after so many minutes")
    parser.add_argument("--compete", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.compete:
        compete()
    if args.gates:
        measure(args.gates, args.seconds, args.minutes, args.total)
        return 0
    promises = Promises()
    header = ("machine", "candidate", "order", "PASS %", "FAIL %", "INCONCLUSIVE %", "turns, median", "95 %")
    show(header, simulate(10_000 if args.full else 1_000, args.seed, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
