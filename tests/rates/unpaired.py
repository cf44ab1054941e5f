"""Measure how often ``plumb compare`` claims a difference where there is none, and finds one where there is.

    python tests/rates/unpaired.py [--full] [--single]

Ends with status 1 if a rate is worse than promised.

A comparison has 24 figures of two sides. Log times: launches differ by ``launch`` (standard deviation), sessions by
``session``; every tenth launch has a tail of Exp(10 %). A slower side is slower by ``effect`` in every figure.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from promises import Promises, command_line, show

from plumbline.statistics import unpaired
from plumbline.statistics.basic import holm
from plumbline.statistics.unpaired import Difference

FIGURES = 24
#: seven times as slow, as one MPI library can be beside another
MANIFOLD = 6.0
#: probability that a comparison of equal sides claims anything
WRONG = 0.05
#: (launch, session)
MODELS = ((0.005, 0.005), (0.02, 0.01), (0.02, 0.03), (0.05, 0.05))
SESSIONS = ((1, 1), (1, 5), (2, 2), (3, 3), (5, 5), (10, 10), (3, 10), (3, 20), (5, 20))


@dataclass(frozen=True)
class Case:
    """Two sides: ``sessions`` of each, and ``launches`` of a session.

    ``memory``: the sessions of the first side come before those of the second, with this autocorrelation. ``steps``:
    the figures, from 0.2 to 0.3, are printed in these steps by each side. ``known``: the machine has ten other series,
    of eight sessions each. ``in_turn``: both sides were measured in the same sessions, launch by launch.
    """

    sessions: tuple[int, int]
    model: tuple[float, float]
    launches: int = 3
    memory: float = 0.0
    steps: tuple[float, float] = (0.0, 0.0)
    known: bool = False
    in_turn: bool = False

    @property
    def name(self) -> str:
        """As the first two cells of a row."""
        more = f", autocorrelation {self.memory:g}" if self.memory else ""
        steps = sorted(set(self.steps), reverse=True)
        more += f", printed in steps of {' and '.join(f'{step:g}' for step in steps)}" if any(steps) else ""
        more += ", known" if self.known else ""
        more += ", in turn" if self.in_turn else ""
        noise = ", ".join(f"{100 * value:g} %" for value in self.model)
        return f"{noise}{more} | {self.sessions[0]} and {self.sessions[1]}, {self.launches} launches each"


CASES = (
    *(Case(sessions, model) for model, sessions in itertools.product(MODELS, SESSIONS)),
    *(Case((1, 1), model, launches=10) for model in MODELS),
    *(
        Case(sessions, (0.005, 0.005), steps=steps)
        for steps in ((0.01, 0.01), (0.01, 0.0001))
        for sessions in ((3, 3), (10, 10))
    ),
    *(
        Case(sessions, (0.005, session), launches=10, known=True)
        for session in (0.005, 0.03, 0.08, 0.15)
        for sessions in ((1, 1), (1, 20), (2, 20))
    ),
    *(Case((5, 5), (0.02, 0.03), memory=memory) for memory in (0.3, 0.6, 0.8, 0.9)),
)


#: one session a side; of a machine of which nothing is known, but for the last
SINGLE = (
    *(Case((1, 1), (0.02, session), launches) for session in (0.05, 0.08, 0.1, 0.15) for launches in (3, 10)),
    *(Case((1, 1), (launch, 0.15)) for launch in (0.05, 0.2)),
    *(Case((1, 1), (launch, 0.15), launches, in_turn=True) for launch in (0.02, 0.05) for launches in (3, 10)),
    Case((1, 1), (0.05, 0.005), known=True),
)


@dataclass(frozen=True)
class Rate:
    """Of so many comparisons, those with a claim; and the share of figures in which the right side was claimed."""

    comparisons: int
    claiming: int
    found: float


def figure(case: Case, effect: float, draw: np.random.Generator) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
    """Times of both sides, by session and launch."""
    launch, session = case.model
    count = sum(case.sessions)
    levels = draw.normal(0, session, count)
    for place in range(1, count):
        levels[place] = case.memory * levels[place - 1] + math.sqrt(1 - case.memory**2) * levels[place]
    if case.in_turn:
        levels[case.sessions[0] :] = levels[: case.sessions[1]]
    logs = levels[:, None] + draw.normal(0, launch, (count, case.launches))
    logs += np.where(draw.random(logs.shape) < 0.1, draw.exponential(0.1, logs.shape), 0.0)
    logs[case.sessions[0] :] += math.log1p(effect)
    values = np.exp(logs)
    if any(case.steps):
        step = np.repeat(case.steps, case.sessions)[:, None]
        values = np.maximum(np.round(values * draw.uniform(0.2, 0.3) / step), 1) * step
    every = values.tolist()
    return every[: case.sessions[0]], every[case.sessions[0] :]


def compared(case: Case, effect: float, draw: np.random.Generator) -> tuple[list[Difference], Sequence[bool]]:
    """The differences of a comparison's figures, and which of them are claimed."""
    others = np.exp(draw.normal(0, case.model[1], (10, 8))) if case.known else ()
    spread = unpaired.session_spread(others)
    differences = []
    for _ in range(FIGURES):
        first, second = figure(case, effect, draw)
        pairs = np.log(np.divide(second, first)).ravel().tolist() if case.in_turn else ()
        differences.append(unpaired.compare(first, second, case.steps, FIGURES, spread, pairs))
    return differences, holm(np.array([one.p for one in differences]), FIGURES, unpaired.ERROR).tolist()


def measure(case: Case, effect: float, comparisons: int, seed: int) -> Rate:
    """Claims of ``comparisons`` comparisons."""
    draw = np.random.default_rng(seed)
    claiming, found = 0, 0
    for _ in range(comparisons):
        differences, kept = compared(case, effect, draw)
        claiming += any(kept)
        found += sum(one.ratio > 1 for one, is_kept in zip(differences, kept, strict=True) if is_kept)
    return Rate(comparisons, claiming, found / comparisons / FIGURES)


def keep(case: Case, false: Rate, found: float, promises: Promises) -> None:
    """Claims of equal sides are rare, unless their sessions are neighbours in time; of twice the time all are found."""
    if not case.memory:
        promises.rare(f"false claim, {case.name}", false.claiming, false.comparisons, WRONG)
    if min(case.sessions) >= 3 or (case.launches >= 10 and case.model[1] <= unpaired.OF_A_CAMPAIGN):
        promises.keep(f"{found:.1%} of 100 % found: {case.name}", is_kept=found > 0.98)


def keep_single(case: Case, false: Rate, found: float, promises: Promises) -> None:
    """Of one session a side, claims of equal sides are rare; of seven times the time most are found."""
    promises.rare(f"false claim, {case.name}", false.claiming, false.comparisons, WRONG)
    promises.keep(f"{found:.1%} of 7 times found: {case.name}", is_kept=found > 0.9)


def main() -> int:
    """Print the tables."""
    parser = command_line(__doc__, "2,000 comparisons a line instead of 200")
    parser.add_argument("--single", action="store_true", help="only sides of one session")
    options = parser.parse_args()
    count, promises = 2000 if options.full else 200, Promises()

    def rows(cases: Iterable[Case], effects: Sequence[float], kept: Callable[..., None]) -> Iterator[list[str]]:
        for case in cases:
            false = measure(case, 0.0, count, 1)
            found = [measure(case, effect, count // 10, 2).found for effect in effects]
            kept(case, false, found[-1], promises)
            yield [case.name, f"{false.claiming / count:.1%}", *(f"{share:.0%}" for share in found)]

    tables = [(SINGLE, (1.0, 2.0, MANIFOLD), keep_single), (CASES, (0.05, 0.2, 1.0), keep)]
    for cases, effects, kept in tables[:1] if options.single else tables:
        header = ["launches, sessions differ by", "sessions", "comparisons with a false claim"]
        show([*header, *(f"found: {effect:.0%} slower" for effect in effects)], rows(cases, effects, kept))
        print()
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
