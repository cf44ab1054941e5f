"""Measure how often `plumb check` calls a healthy node bad, and which slowdowns it finds, on simulated classes.

    python tests/rates/check.py [--full]

Ends with status 1 if a rate is worse than promised.

Each class is made of simulated rounds, as `plumb calibrate --nodes` makes one, and then judged exactly: the
probability that most rounds of the next check of one of its nodes lie beyond the limit is worked out from the
distribution that the rounds were drawn from, not by drawing. So a rate of 1e-5 is seen without 1e7 checks.

Log times of a round: normal: 1 %. tails: 1 %, one in ten with a tail of Exp(10 %). student: Student's t with three
degrees of freedom, scale 1 %. bimodal: 1 %, one in five 8 % slower. alike: 1 %, and 0.5 % that all rounds of a check
share. bursts: 1 %, one check in twenty with all its rounds 5 % slower. rough, rougher: 1 %, in one check in ten 5 and
10 %. mixed: 1 %, in one check in twenty half of the rounds 10 % slower. Nodes differ by 0.5 %, normal.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from promises import Promises, command_line, show
from scipy import special, stats

from plumbline.extras.nodes import classes
from plumbline.statistics import majority

#: of the checks of a healthy node: called bad, and in doubt, over all figures together
RATE, DOUBT = 1e-5, 1e-3
FIGURES, TOLERANCE = 12, 0.05
#: nodes, checks of each, rounds of a check
SHAPES = ((1, 20), (4, 8), (10, 4), (40, 4))
ROUNDS = (5, 13, 31)
NODES = 0.005
MODELS = ("normal", "tails", "student", "bimodal", "alike", "bursts", "rough", "rougher", "mixed")
#: noise of a round in one check in ten
ROUGH = {"rough": 0.05, "rougher": 0.10}
#: a rate of fewer of the classes says little
LEAST_PROMISED = 0.5
#: where a check's own part is drawn from, to average over it
GRID = stats.norm.ppf((np.arange(200) + 0.5) / 200)


def draw(model: str, nodes: int, checks: int, rounds: int, random: np.random.Generator) -> classes.Sample:
    """The rounds that a class is made of."""
    shape = (nodes, checks, rounds)
    noise = random.normal(0, 0.01, shape)
    if model == "tails":
        noise += np.where(random.random(shape) < 0.1, random.exponential(0.1, shape), 0.0)
    elif model == "student":
        noise = 0.01 * random.standard_t(3, shape)
    elif model == "bimodal":
        noise += np.where(random.random(shape) < 0.2, 0.08, 0.0)
    elif model == "alike":
        noise += random.normal(0, 0.005, (nodes, checks, 1))
    elif model == "bursts":
        noise += np.where(random.random((nodes, checks, 1)) < 0.05, 0.05, 0.0)
    elif model in ROUGH:
        noise *= np.where(random.random((nodes, checks, 1)) < 0.1, ROUGH[model] / 0.01, 1.0)
    elif model == "mixed":
        noise += np.where((random.random((nodes, checks, 1)) < 0.05) & (random.random(shape) < 0.5), 0.1, 0.0)
    logs = noise + random.normal(0, NODES, (nodes, 1, 1))
    place = np.arange(nodes * checks).reshape(nodes, checks, 1)
    checks_of = np.broadcast_to(place, shape).ravel()
    return classes.Sample(logs.ravel(), checks_of // checks, checks_of)


def beyond(model: str, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that a round exceeds its node's level by ``gap``, by the part of its check (last axis), and the
    weights of these."""
    normal = special.ndtr
    if model == "student":
        return stats.t.sf(gap / 0.01, 3)[..., None], np.ones(1)
    if model == "tails":  # a normal plus an exponential: the exponentially modified normal distribution
        return 0.9 * normal(-gap / 0.01)[..., None] + 0.1 * stats.exponnorm.sf(gap, 10, 0, 0.01)[..., None], np.ones(1)
    if model == "bimodal":
        return (0.8 * normal(-gap / 0.01) + 0.2 * normal((0.08 - gap) / 0.01))[..., None], np.ones(1)
    if model == "alike":
        return normal((0.005 * GRID - gap[..., None]) / 0.01), np.full(GRID.size, 1 / GRID.size)
    if model == "bursts":
        return normal((np.array([0.0, 0.05]) - gap[..., None]) / 0.01), np.array([0.95, 0.05])
    if model in ROUGH:
        return normal(-gap[..., None] / np.array([0.01, ROUGH[model]])), np.array([0.9, 0.1])
    if model == "mixed":
        usual = normal(-gap / 0.01)
        return np.stack([usual, (usual + normal((0.1 - gap) / 0.01)) / 2], axis=-1), np.array([0.95, 0.05])
    return normal(-gap / 0.01)[..., None], np.ones(1)


def most(model: str, gap: np.ndarray, rounds: int) -> np.ndarray:
    """The probability that most rounds of a check exceed their node's level by ``gap``."""
    p, weights = beyond(model, gap)
    half = (rounds + 1) / 2
    return special.betainc(half, rounds + 1 - half, p) @ weights


@dataclass(frozen=True)
class Found:
    """Of some classes: the share that makes a promise; over those, the mean rate of false drains of one figure (for
    the nodes of the class), the share of classes above the rate that is allowed, the slowdown that is found, the share
    of nodes with this slowdown that are in fact found, and the mean rate of healthy checks beyond the limit of doubt.
    """

    promised: float
    rate: float
    above: float
    found: float
    seen: float
    doubt: float


def simulate(model: str, nodes: int, checks: int, rounds: int, number: int, seed: int = 1) -> Found:
    """Make and judge ``number`` classes."""
    random = np.random.default_rng([seed, nodes, checks, rounds, MODELS.index(model)])
    allowed = RATE / FIGURES
    rates, found, seen, doubts = [], [], [], []
    for _ in range(number):
        sample = draw(model, nodes, checks, rounds, random)
        limit = classes.limit(sample, rounds, allowed, DOUBT / FIGURES, TOLERANCE)
        if limit.member is None or limit.detectable is None:
            continue
        levels = np.array([np.median(sample.logs[sample.nodes == node]) for node in range(nodes)])
        rates.append(float(most(model, limit.member - levels, rounds).mean()))
        doubts.append(float(most(model, limit.doubt - levels, rounds).mean()))
        found.append(limit.detectable)
        gap = np.array([limit.member - float(np.median(levels)) - np.log1p(limit.detectable)])
        seen.append(float(most(model, gap, rounds)[0]))
    if not rates:
        return Found(0.0, *[float("nan")] * 5)
    above = np.mean(np.array(rates) > allowed)
    means = (np.mean(rates), above, np.median(found), np.mean(seen), np.mean(doubts))
    return Found(len(rates) / number, *map(float, means))


def keep(model: str, kind: str, rounds: int, rates: Found, promises: Promises) -> None:
    """Healthy nodes are hardly ever called bad or doubtful; what is said to be found is, and lies near the tolerance.

    Nothing is promised where few checks are unlike the others, of which a class of as few cannot know.
    """
    many = model in ROUGH and kind.startswith(f"{model}, 40 nodes") and rates.promised >= LEAST_PROMISED
    if rates.promised and (many or model not in (*ROUGH, "bursts", "mixed")):
        promises.keep(f"{kind}: {rates.rate:.1e} false drains", is_kept=rates.rate <= RATE / FIGURES)
        promises.keep(f"{kind}: {rates.doubt:.1e} in doubt", is_kept=rates.doubt <= DOUBT / FIGURES)
        promises.keep(f"{kind}: {rates.seen:.0%} found", is_kept=rates.seen >= 0.8)
    if model in ("normal", "student") and rounds == 31:
        promises.keep(f"{kind}: {rates.promised:.0%} promise anything", is_kept=rates.promised == 1)
        is_near = TOLERANCE <= rates.found <= TOLERANCE + 0.03
        promises.keep(f"{kind}: found from {rates.found:.1%}", is_kept=is_near)


def rows(classes: int, promises: Promises) -> Iterator[tuple[str, ...]]:
    """The table."""
    for model in MODELS:
        for nodes, checks in SHAPES:
            for rounds in ROUNDS:
                one = simulate(model, nodes, checks, rounds, classes)
                keep(model, f"{model}, {nodes} nodes, {checks} checks, {rounds} rounds", rounds, one, promises)
                shown = (f"{one.rate:.1e}", f"{one.above:.1%}", f"{one.found:.1%}", f"{one.seen:.0%}")
                yield (model, str(nodes), str(checks), str(rounds), f"{one.promised:.0%}",
                       *(shown if one.promised else ("–",) * 4))  # fmt: skip


HEADER = ("noise", "nodes", "checks", "rounds", "promised", "false", "above", "found from", "found")


def main() -> int:
    """Print the table."""
    args = command_line(__doc__, "1,000 classes each, not 200").parse_args()
    print(f"false drains allowed, each of {FIGURES} figures: {RATE / FIGURES:.1e}; round needs of a class: "
          + ", ".join(f"{n} rounds: {majority.needed(majority.share(n, RATE / FIGURES), classes.CONFIDENCE)}"
                      for n in ROUNDS))  # fmt: skip
    promises = Promises()
    show(HEADER, rows(1000 if args.full else 200, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
