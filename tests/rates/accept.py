"""Measure how often `plumb accept` passes a bad machine and fails a good one, on simulated machines.

    python tests/rates/accept.py [--full]

Ends with status 1 if a rate is worse than promised.

Each machine is judged by the code that judges records. Wrong pass: one bad member more than the contract allows, whose
median just misses the limit, among members that clearly meet it. Wrong fail: the medians of all members just meet the
limit. Both are declared to be at most 5 %. Pass, 2 % worse: as wrong pass, but the bad members miss the limit by 2 %.
Passes: all members are 3 % better than the limit. Finds: so many members as the rule needs are 5 % worse, the others
clearly meet it.

Log values of a launch: normal: 1 %. tails: 1 %, one in ten with a tail of Exp(10 %). student: Student's t with three
degrees of freedom, scale 1 %. bimodal: 1 %, one in five 8 % slower. alike: 1 %, and 0.5 % that all launches of a member
share: what a session adds to a node, which no number of launches in it shows.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from promises import Promises, command_line, show

from plumbline.base.units import percent
from plumbline.extras.accept import verdict
from plumbline.extras.accept.model import Clause, Contract, Retests
from plumbline.extras.accept.verdict import Evidence, Member

MODELS = ("normal", "tails", "student", "bimodal", "alike")
#: nodes, share, launches, and of how many nodes a retest is allowed
SHAPES = ((1, 1.0, 6, 0), (8, 1.0, 8, 0), (8, 1.0, 9, 1), (100, 0.98, 8, 0), (100, 0.98, 12, 2))
CONFIDENCE, LIMIT, CLEARLY = 0.95, 100.0, 0.5
HEADER = ("noise", "nodes", "share", "launches", "retests")
HEADER += ("wrong pass", "wrong fail", "pass, 2 % worse", "passes", "finds")


def draw(model: str, shape: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Logarithms of launches (members, launches) with the median 0; positive is better."""
    noise = random.normal(0, 0.01, shape)
    if model == "tails":
        noise -= np.where(random.random(shape) < 0.1, random.exponential(0.1, shape), 0.0)
    elif model == "student":
        noise = 0.01 * random.standard_t(3, shape)
    elif model == "bimodal":
        noise -= np.where(random.random(shape) < 0.2, 0.08, 0.0)
    elif model == "alike":
        noise += random.normal(0, 0.005, (shape[0], 1))
    return noise


def median(model: str) -> float:
    """The median of the noise, by drawing."""
    return float(np.median(draw(model, (1, 400_001), np.random.default_rng(2))))


def contract(nodes: int, share: float, launches: int, again: int) -> Contract:
    """A contract of one clause over each node."""
    clause = Clause(
        name="c", test="stream_threads", stack="s", figure="triad", over="each node", at_least=LIMIT, unit="GB/s",
        share=share, confidence=CONFIDENCE, launches=launches, retests=Retests(share=again / nodes) if again else None,
    )  # fmt: skip
    return Contract(schema=1, machine="m", vendor="v", offer="", nodes=nodes, clauses=[clause])


def judge(made: Contract, levels: np.ndarray, model: str, middle: float, random: np.random.Generator) -> str:
    """The word for a machine whose members have these levels (logarithms over the limit); retests are all made."""
    (clause,) = made.clauses
    tests = 1 + (clause.retests.times if clause.retests else 0)
    noise = np.hstack([draw(model, (levels.size, clause.launches), random) for _ in range(tests)])
    logs = levels[:, None] + noise - middle
    members = {f"n{number}": Member(f"n{number}", list(LIMIT * np.exp(row))) for number, row in enumerate(logs)}
    found = Evidence(members, [], [], [], 0, None, None)
    return verdict.of_evidence(clause, made, found).word


@dataclass(frozen=True)
class Rates:
    """How often each happened, as shares of the machines."""

    wrong_pass: float
    wrong_fail: float
    worse: float
    passes: float
    finds: float


def words(model: str, shape: tuple[int, float, int, int], machines: int, seed: int = 1) -> list[list[str]]:
    """What is said of ``machines`` of each kind, in the order of :class:`Rates`."""
    made = contract(*shape)
    rule, middle = made.clauses[0].rule(made.node_count), median(model)
    random = np.random.default_rng([seed, MODELS.index(model), SHAPES.index(shape)])

    def judged(bad: int, level: float, others: float) -> list[str]:
        levels = np.full(made.node_count, others)
        levels[:bad] = level
        return [judge(made, levels, model, middle, random) for _ in range(machines)]

    just = 1e-12  # on the side of the limit that is meant
    return [
        judged(rule.allowed + 1, -just, CLEARLY),
        judged(0, 0.0, just),
        judged(rule.allowed + 1, np.log(0.98), CLEARLY),
        judged(0, 0.0, np.log(1.03)),
        judged(rule.failing or 0, np.log(0.95), CLEARLY),
    ]


def simulate(model: str, shape: tuple[int, float, int, int], machines: int, seed: int = 1) -> Rates:
    """Judge ``machines`` of each kind."""
    counted = zip(words(model, shape, machines, seed), ("pass", "fail", "pass", "pass", "fail"), strict=True)
    return Rates(*(kind.count(word) / machines for kind, word in counted))


def keep(model: str, shape: tuple[int, float, int, int], rates: Rates, machines: int, promises: Promises) -> None:
    """Wrong verdicts are as rare as declared, and clear machines are decided.

    Of `alike` a machine passes that misses its limit by less than sessions vary, but not one that misses it by more.
    """
    wrongly = {"pass, 2 % worse": rates.worse}
    if model != "alike":
        wrongly |= {"wrong pass": rates.wrong_pass, "wrong fail": rates.wrong_fail}
    for event, rate in wrongly.items():
        promises.rare(f"{event}, {model}, {shape}", round(rate * machines), machines, 1 - CONFIDENCE)
    if model == "normal" and shape[1] == 1.0:
        promises.keep(f"{model}, {shape}: clear machines are decided", is_kept=min(rates.passes, rates.finds) > 0.95)


def rows(machines: int, promises: Promises) -> Iterator[tuple[str, ...]]:
    """A row for each noise and shape."""
    for model in MODELS:
        for shape in SHAPES:
            found = simulate(model, shape, machines)
            keep(model, shape, found, machines, promises)
            rates = (found.wrong_pass, found.wrong_fail, found.worse, found.passes, found.finds)
            nodes, of_nodes, launches, again = shape
            yield (model, str(nodes), f"{of_nodes:g}", str(launches), str(again), *map(percent, rates))


def main() -> int:
    """Print the table."""
    args = command_line(__doc__, "1,000 machines of each kind in place of 100").parse_args()
    promises = Promises()
    show(HEADER, rows(1000 if args.full else 100, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
