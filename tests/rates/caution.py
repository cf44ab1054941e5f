"""Measure three rules by which caution is no larger than the effect, on simulated measurements beside other work.

    python tests/rates/caution.py [--full]

Ends with status 1 if a rate is worse than promised.

accept: a member is shown by disturbed launches too (:mod:`plumbline.extras.accept.verdict`). Launches have 2 % noise,
and the disturbed ones lose an exponential amount. wrong pass: the undisturbed median just misses the limit. passes: it
is so much better than the limit.

check: a figure that other work cannot explain is bad (custom-kernels/check/judge.c). A round has parts of 0.2 s, one
for each figure; bursts of three other programs, of exponential length, take three quarters of one core, which all
others wait for, and a third of the bandwidth. false: a healthy node is called bad. found: a node that
reaches a fifth is.

why: a search ends after three disturbed pairs (:class:`plumbline.gate.live.Stop`), unless its sides differ far. ends:
of sides that differ by 5 %; far ends: of sides that differ 3 times.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from promises import Promises, command_line, show

from plumbline.base import paths
from plumbline.extras.accept import verdict
from plumbline.extras.accept.model import Clause, Contract
from plumbline.extras.accept.verdict import Evidence, Member
from plumbline.gate import live
from plumbline.statistics.paired import PairedRule

LIMIT, CONFIDENCE, NOISE = 100.0, 0.95, 0.02
#: share of launches disturbed, their mean loss, nodes, launches of each
ACCEPT = [
    (share, loss, nodes, count) for share in (0.6, 1.0) for loss in (0.02, 0.3) for nodes, count in ((1, 6), (8, 8))
]
#: launches are measured until so many times those of the contract are there
MEASURED = 6
#: how much better than the limit the medians are
BETTER = 2.0
#: CPUs of other work in all, and the mean seconds of its bursts
CHECK = [(others, burst) for others in (0.3, 0.5, 0.7) for burst in (0.02, 0.2, 2.0)]
PART, FIGURES, ROUNDS, TAKEN = 0.2, 5, 13, 0.75
#: usual values of the example class, in which more is better
USUAL = {"memory": 100.0, "fma": 500.0}
#: share of launches that are disturbed, and their mean loss
WHY = [(share, 0.1) for share in (0.05, 0.1, 0.2, 0.5, 0.9, 1.0)]


def word(cell: tuple[float, float, int, int], level: float, random: np.random.Generator) -> str:
    """The word of an acceptance test of a machine whose first member is at ``level``, the others clearly better."""
    share, loss, nodes, count = cell
    clause = Clause(
        name="c", test="stream_threads", stack="s", figure="triad", over="each node", at_least=LIMIT, unit="GB/s",
        confidence=CONFIDENCE, launches=count,
    )  # fmt: skip
    contract = Contract(schema=1, machine="m", vendor="v", offer="", nodes=nodes, clauses=[clause])
    members = {}
    for number in range(nodes):
        flags = random.random(MEASURED * count) < share
        centre = level if number == 0 else LIMIT * (1 + BETTER)
        lost = flags * random.exponential(loss, flags.size)
        values = centre * np.exp(random.normal(0, NOISE, flags.size)) / (1 + lost)
        every = [(float(value), bool(flag)) for value, flag in zip(values, flags, strict=True)]
        quiet = [value for value, flag in every if not flag]
        members[f"n{number}"] = Member(f"n{number}", quiet, every=every)
    return verdict.of_evidence(clause, contract, Evidence(members, [], [], [], 0, None, None)).word


def rounds(cell: tuple[float, float], speed: float, random: np.random.Generator) -> str:
    """The rounds of a check, as lines for ``plumb-check --measured``, of a node of this speed (1: usual)."""
    others, burst = cell
    length = PART * FIGURES * ROUNDS
    share = others / TAKEN
    busy, now = [], float(random.exponential(burst * (1 - share) / share))
    while now < length:
        busy.append((now, now + float(random.exponential(burst))))
        now = busy[-1][1] + float(random.exponential(burst * (1 - share) / share))
    lines = []
    for number in range(ROUNDS):
        begin, parts = number * PART * FIGURES, []
        for part in range(FIGURES):
            first = begin + part * PART
            parts.append(sum(max(0.0, min(end, first + PART) - max(start, first)) for start, end in busy) / PART)
        noise = np.exp(random.normal(0, 0.01, 2))
        memory = USUAL["memory"] * speed * noise[0] * (1 - parts[0] * TAKEN) * (1 - parts[0] / 3)
        fma = USUAL["fma"] * speed * noise[1] * (1 - parts[1] * TAKEN)
        lines.append(f"memory {memory:.6g} fma {fma:.6g} handover 80 others {TAKEN * sum(parts) / FIGURES:.4g}\n")
    return "".join(lines)


def is_bad(cell: tuple[float, float], speed: float, random: np.random.Generator, folder: Path) -> bool:
    """Whether plumb-check calls it bad, by the example class."""
    file = folder / "rounds"
    file.write_text(rounds(cell, speed, random))
    words = ["--class", Path(__file__).with_name("example.class"), "--node", "n1", "--seconds", "25", "--beside-jobs"]
    command = [paths.checker(), *words, "--measured", file, "--state", folder / "state"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 1


def ends(cell: tuple[float, float], times: float, random: np.random.Generator) -> bool:
    """Whether a search ends after its first pairs, of sides of which B takes so many times as long."""
    share, loss = cell
    number = live.RESTLESS
    flags = random.random((number, 2)) < share
    values = np.exp(random.normal(0, NOISE, flags.shape)) * (1 + flags * random.exponential(loss, flags.shape))
    return live.hopeless(flags.any(axis=1), np.log(times * values[:, 1] / values[:, 0])[None, :], PairedRule())


def of_accept(machines: int, promises: Promises) -> Iterator[tuple[object, ...]]:
    """A row for each cell."""
    for cell in ACCEPT:
        random = np.random.default_rng([1, *(int(100 * number) for number in cell)])
        wrong = [word(cell, LIMIT * (1 - 1e-12), random) for _ in range(machines)].count("pass")
        right = [word(cell, LIMIT * (1 + BETTER), random) for _ in range(machines)].count("pass")
        promises.rare(f"accept: wrong pass, {cell}", wrong, machines, 1 - CONFIDENCE)
        promises.keep(f"accept: passes, {cell}: {right}", is_kept=right >= 0.9 * machines)
        yield *cell, f"{wrong / machines:.1%}", f"{right / machines:.1%}"


def of_check(checks: int, promises: Promises) -> Iterator[tuple[object, ...]]:
    """A row for each cell."""
    with tempfile.TemporaryDirectory() as folder:
        for cell in CHECK:
            random = np.random.default_rng([2, *(int(100 * number) for number in cell)])
            false, seen = (sum(is_bad(cell, speed, random, Path(folder)) for _ in range(checks)) for speed in (1, 0.2))
            promises.rare(f"check: false, {cell}", false, checks, 0.01)
            promises.keep(f"check: found, {cell}: {seen}", is_kept=cell[0] > 0.3 or seen >= 0.9 * checks)
            yield *cell, f"{false / checks:.1%}", f"{seen / checks:.1%}"


def of_why(searches: int, promises: Promises) -> Iterator[tuple[object, ...]]:
    """A row for each cell."""
    for cell in WHY:
        random = np.random.default_rng([3, *(int(100 * number) for number in cell)])
        near, far = (sum(ends(cell, times, random) for _ in range(searches)) for times in (1.05, 3.0))
        promises.rare(f"why: ends, {cell}", near if cell[0] <= 0.1 else 0, searches, 0.01)
        promises.keep(f"why: ends, {cell}: {near}", is_kept=cell[0] < 1 or near >= 0.99 * searches)
        promises.rare(f"why: far ends, {cell}", far, searches, 0.001)
        yield *cell, f"{near / searches:.1%}", f"{far / searches:.1%}"


def main() -> int:
    """Print the tables."""
    args = command_line(__doc__, "1,000 of each in place of 100, of searches 10,000").parse_args()
    number, promises = 1000 if args.full else 100, Promises()
    for header, rows in (
        ("disturbed, mean loss, nodes, launches, wrong pass, passes", of_accept(number, promises)),
        ("CPUs of others, seconds of bursts, false, found", of_check(number, promises)),
        ("disturbed, mean loss, ends, far ends", of_why(10 * number, promises)),
    ):
        show(header.split(", "), rows)
        print()
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
