"""Measure how often healthy clusters are reported and slow nodes and links are missed, on simulated records.

    python tests/rates/outliers.py [--full]

Ends with status 1 if a rate is worse than promised.

A cluster has 3 to 200 nodes with 3, 5 or 10 launches each, the nodes measured one after another, or round by round
(burst). Log times: quiet: launches 1 %, one in 20 with a tail of Exp(10 %), nodes 0.5 %. bimodal: launches 1 %, one in
four 6 % slower, nodes 0.5 %. drift: launches 0.8 % on a level that wanders from node to node (AR(1), 0.6, 2 %). burst:
launches 2 %, a tenth of the time everything that runs is 10 % slower, for five launches on average, nodes 1 %. noisy:
launches 4 %, correlated 0.5 within a node, one in ten with a tail of Exp(15 %), nodes 1.5 %. spread: launches 0.3 %,
nodes 2 %. rounded: launches 1 % of 0.2 us printed with two decimals, nodes 0.5 %.

Several figures: 2, 8 or 24 classes of the same nodes, measured apart (each with noise and differences of its own) or
alike (all of the same launches, so that they repeat each other).

A matrix has the links of 4 to 32 nodes in one class, with the same noise; instead of the nodes its ends differ.
"""

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from promises import Promises, bounded, command_line
from simulate import wander

from plumbline.judge.members import Matrix, Nodes
from plumbline.judge.outliers import Margins, Verdict, decide

MODELS = ("quiet", "bimodal", "drift", "burst", "noisy", "spread", "rounded")
SIZES = (3, 5, 8, 16, 32, 64, 128, 200)
ENDS = (4, 6, 8, 16, 32)
LAUNCHES = (3, 5, 10)
#: clusters in which several figures are measured, and how many figures
SEVERAL_SIZES = (8, 16, 64)
SEVERAL_LAUNCHES = (3, 5)
FIGURES = (2, 8, 24)
#: probability of a report where nothing is slow; and the share of the clusters in which more than what is slow may be
#: reported
WRONG, MORE = 0.01, 0.05
#: model: standard deviation from member to member
BETWEEN = {"drift": 0.0, "burst": 0.01, "noisy": 0.015, "spread": 0.02}  # all others: 0.005


def noise(model: str, members: int, launches: int, draw: np.random.Generator) -> np.ndarray:
    """Log times of healthy members without their own differences: shape (members, launches)."""
    shape = (members, launches)

    def tail(share: float, scale: float) -> np.ndarray:
        return np.where(draw.random(shape) < share, draw.exponential(scale, shape), 0.0)

    if model == "quiet":
        return draw.normal(0, 0.01, shape) + tail(0.05, 0.10)
    if model == "bimodal":
        return draw.normal(0, 0.01, shape) + np.where(draw.random(shape) < 0.25, 0.06, 0.0)
    if model == "drift":
        return draw.normal(0, 0.008, shape) + wander(draw, (1, members), 0.6, 0.02).T
    if model == "burst":
        return draw.normal(0, 0.02, shape) + 0.10 * bursts(members * launches, draw).reshape(launches, members).T
    if model == "noisy":
        return wander(draw, shape, 0.5, 0.04) + tail(0.10, 0.15)
    if model == "spread":
        return draw.normal(0, 0.003, shape)
    if model == "rounded":
        return draw.normal(0, 0.01, shape)
    return draw.normal(0, float(model.split()[0]) / 100, shape)


def bursts(count: int, draw: np.random.Generator) -> np.ndarray:
    """0 or 1 in the order measured: a tenth of the time in bursts of five on average."""
    state, found = float(draw.random() < 0.1), np.empty(count)
    for place, change in enumerate(draw.random(count)):
        state = 1 - state if change < (0.2 if state else 0.2 / 9) else state
        found[place] = state
    return found


def nodes(model: str, members: int, launches: int, draw: np.random.Generator, slow: dict[int, float]) -> Nodes:
    """A class of nodes, those in ``slow`` slower by the fraction."""
    logs = noise(model, members, launches, draw) + draw.normal(0, BETWEEN.get(model, 0.005), (members, 1))
    for member, size in slow.items():
        logs[member] += math.log1p(size)
    made = Nodes("simulated", "lower", step=0.01 if model == "rounded" else 0.0)
    for member, launch in itertools.product(range(members), range(launches)):
        value = 0.2 * math.exp(logs[member, launch])
        made.add(
            f"n{member:03d}", round(value, 2) if model == "rounded" else value, launch if model == "burst" else None
        )
    return made


def several(
    model: str,
    members: int,
    launches: int,
    draw: np.random.Generator,
    slow: dict[int, float],
    figures: int,
    alike: bool,
) -> list[Nodes]:
    """Classes of the same nodes: measured apart, or ``alike``: of the same launches, each in a unit of its own."""
    made = [nodes(model, members, launches, draw, slow) for _ in range(1 if alike else figures)]
    found = []
    for number in range(figures):
        source = made[0 if alike else number]
        one = Nodes(f"figure{number}", "lower", step=source.step * (number + 1))
        for node, values in source.values.items():
            for together, value in values:
                one.add(node, value * (number + 1), together)
        found.append(one)
    return found


def matrix(
    model: str, ends: int, launches: int, draw: np.random.Generator, slow: dict[tuple[int, ...], float]
) -> Matrix:
    """All links of ``ends`` nodes; ``slow`` has ends (one number) and links (two) that are slower by the fraction."""
    links = list(itertools.combinations(range(ends), 2))
    own = draw.normal(0, BETWEEN.get(model, 0.005), ends)
    logs = noise(model, len(links), launches, draw) + draw.normal(0, 0.01, launches)
    made = Matrix("simulated", "lower", step=0.01 if model == "rounded" else 0.0)
    for row, (first, second) in enumerate(links):
        shift = own[first] + own[second]
        shift += sum(math.log1p(size) for who, size in slow.items() if set(who) <= {first, second})
        for launch in range(launches):
            value = 2.0 * math.exp(logs[row, launch] + shift)
            made.add(f"n{first:02d}", f"n{second:02d}", round(value, 2) if model == "rounded" else value, launch)
    return made


@dataclass
class Healthy:
    """Counts over healthy clusters of one model."""

    model: str
    kind: str
    clusters: int = 0
    reported: int = 0
    undecided: int = 0

    def row(self) -> str:
        """Its line of a table."""
        shares = f"{bounded(self.reported, self.clusters)} | {100 * self.undecided / self.clusters:.1f}"
        return f"| {self.model} | {self.kind} | {self.clusters} | {shares} |"


def healthy(model: str, kind: str, each: int, seed: int) -> Healthy:
    """Judge ``each`` healthy clusters of every size and number of launches."""
    draw = np.random.default_rng([seed, *model.encode(), *kind.encode()])
    found = Healthy(model, kind)
    for size, launches in itertools.product(SIZES if kind == "nodes" else ENDS, LAUNCHES):
        for _ in range(each):
            one = nodes(model, size, launches, draw, {}) if kind == "nodes" else matrix(model, size, launches, draw, {})
            (verdict,) = decide([one], Margins())
            found.clusters += 1
            found.reported += verdict.state == "FAIL"
            found.undecided += verdict.state == "INCONCLUSIVE"
    return found


@dataclass(frozen=True)
class Fault:
    """Something slow in a cluster: which members, how much, and what the report has to name."""

    what: str
    kind: str
    model: str
    size: int
    launches: int
    slow: dict[tuple[int, ...], float]
    #: in at least this share of the clusters exactly that is reported
    least: float = field(default=0.0, repr=False)


def faults() -> Iterator[Fault]:
    """The faults of the table."""
    for model, size, launches in itertools.product(("1 %", "2 %", "quiet", "noisy"), (16, 64), (3, 5)):
        least = 0.9 if (model, launches) == ("1 %", 5) else 0.0
        yield Fault("node 5 %", "nodes", model, size, launches, {(3,): 0.05}, least)
    for model, least in (("1 %", 0.9), ("2 %", 0.0)):
        yield Fault("4 nodes 5 %", "nodes", model, 32, 5, {(k,): 0.05 for k in (3, 9, 11, 30)}, least)
        yield Fault("node 10 %", "nodes", model, 6, 5, {(3,): 0.10})
    for model, size, launches in itertools.product(("1 %", "2 %", "quiet"), (8, 16), (3, 5)):
        yield Fault("link 10 %", "matrix", model, size, launches, {(2, 5): 0.10}, 0.9 if launches == 5 else 0.0)
        yield Fault("node 5 %", "matrix", model, size, launches, {(3,): 0.05}, 0.9 if size == 16 else 0.0)
    yield Fault("node 5 % and link 20 %", "matrix", "1 %", 16, 5, {(3,): 0.05, (6, 9): 0.20}, 0.85)
    yield Fault("2 nodes 5 %", "matrix", "1 %", 16, 3, {(3,): 0.05, (8,): 0.05}, 0.9)


def named(who: tuple[int, ...], kind: str) -> str:
    return f"n{who[0]:03d}" if kind == "nodes" else " – ".join(f"n{end:02d}" for end in who)


@dataclass
class Found:
    """Of so many clusters with a fault: exactly what is slow reported; something else as well; median detectable."""

    fault: Fault
    clusters: int
    exact: int = 0
    more: int = 0
    detectable: float = math.nan


def cluster(fault: Fault, draw: np.random.Generator) -> Nodes | Matrix:
    """A cluster with ``fault``."""
    if fault.kind == "nodes":
        slow = {who[0]: size for who, size in fault.slow.items()}
        return nodes(fault.model, fault.size, fault.launches, draw, slow)
    return matrix(fault.model, fault.size, fault.launches, draw, fault.slow)


def find(fault: Fault, clusters: int, seed: int) -> Found:
    """Judge ``clusters`` clusters with ``fault``."""
    draw = np.random.default_rng([seed, *repr(fault).encode()])
    wanted = {named(who, fault.kind) for who in fault.slow}
    found, smallest = Found(fault, clusters), []
    for _ in range(clusters):
        (verdict,) = decide([cluster(fault, draw)], Margins())
        names = {finding.name for finding in verdict.findings}
        found.exact += names == wanted
        found.more += bool(names - wanted)
        smallest += [promised(verdict, fault)]
    found.detectable = float(np.median(smallest))
    return found


def promised(verdict: Verdict, fault: Fault) -> float:
    """The detectable slowdown of the kind of member that is slow; infinite where there is none."""
    kind = "link" if any(len(who) == 2 for who in fault.slow) else "node"
    value = verdict.seen.get(kind)
    return math.inf if value is None else value


def kept(kind: str, clusters: int, seed: int) -> tuple[int, int]:
    """The promise of ``detectable``: members of healthy clusters made slower by it, and how many were reported."""
    draw = np.random.default_rng([seed, *kind.encode()])
    tried = hits = 0
    for number in range(clusters):
        model = MODELS[number % len(MODELS)]
        state = draw.bit_generator.state
        (before,) = decide([_one(kind, model, draw, {})], Margins())
        promise = before.seen.get("node" if kind == "nodes" else "link")
        if promise is None or before.findings or model == "rounded":
            continue
        draw.bit_generator.state = state
        (after,) = decide([_one(kind, model, draw, {(3,) if kind == "nodes" else (2, 5): promise * 1.0001})], Margins())
        tried += 1
        hits += named((3,) if kind == "nodes" else (2, 5), kind) in {finding.name for finding in after.findings}
    return tried, hits


def _one(kind: str, model: str, draw: np.random.Generator, slow: dict[tuple[int, ...], float]) -> Nodes | Matrix:
    if kind == "nodes":
        return nodes(model, 16, 5, draw, {who[0]: size for who, size in slow.items()})
    return matrix(model, 8, 5, draw, slow)


def healthy_together(model: str, alike: bool, each: int, seed: int) -> Healthy:
    """Judge ``each`` healthy clusters of several figures, of every size, number of launches and of figures."""
    draw = np.random.default_rng([seed, *model.encode(), alike])
    found = Healthy(model, "alike" if alike else "apart")
    for size, launches, figures in itertools.product(SEVERAL_SIZES, SEVERAL_LAUNCHES, FIGURES):
        for _ in range(each):
            verdicts = decide(several(model, size, launches, draw, {}, figures, alike), Margins())
            found.clusters += 1
            found.reported += any(verdict.state == "FAIL" for verdict in verdicts)
            found.undecided += verdicts[-1].state == "INCONCLUSIVE"
    return found


def find_together(fault: Fault, figures: int, clusters: int, seed: int) -> tuple[Found, int]:
    """Judge clusters of several figures with slow nodes; also in how many some single figure was reported."""
    draw = np.random.default_rng([seed, *repr(fault).encode(), figures])
    wanted = {named(who, fault.kind) for who in fault.slow}
    found, smallest, single = Found(fault, clusters), [], 0
    slow = {who[0]: size for who, size in fault.slow.items()}
    for _ in range(clusters):
        verdicts = decide(several(fault.model, fault.size, fault.launches, draw, slow, figures, False), Margins())
        names = {finding.name for verdict in verdicts for finding in verdict.findings}
        found.exact += names == wanted
        found.more += bool(names - wanted)
        single += any(verdict.findings for verdict in verdicts[:-1])
        smallest.append(promised(verdicts[-1], fault))
    found.detectable = float(np.median(smallest))
    return found, single


def report_together(each: int, clusters: int, seed: int, promises: Promises) -> Iterator[str]:
    """The tables of several figures."""
    yield "| healthy clusters | figures | number | reported % | together INCONCLUSIVE % |"
    yield "|---|---|--:|--:|--:|"
    for alike, model in itertools.product((False, True), MODELS):
        one = healthy_together(model, alike, each, seed)
        promises.rare(f"report of healthy clusters, {model}, figures {one.kind}", one.reported, one.clusters, WRONG)
        yield one.row()
    yield ""
    yield "| slow | noise | launches | figures | clusters | exactly that % | in one figure % | anything else % | seen |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for model, launches, figures in itertools.product(("1 %", "2 %", "quiet", "noisy"), SEVERAL_LAUNCHES, FIGURES):
        fault = Fault("node 5 %", "nodes", model, 16, launches, {(3,): 0.05})
        got, single = find_together(fault, figures, clusters, seed)
        keep(got, promises)
        if (model, launches, figures) == ("2 %", 3, 8):
            promises.keep(f"{single} of {clusters} nodes show in one of 8 figures", is_kept=single == 0)
            promises.keep(f"{got.exact} of {clusters} show in 8 together", is_kept=got.exact >= 0.9 * clusters)
        counts = " | ".join(f"{100 * count / clusters:.1f}" for count in (got.exact, single, got.more))
        least = "–" if math.isinf(got.detectable) else f"{100 * got.detectable:.1f} %"
        yield f"| {fault.what} | {model} | {launches} | {figures} | {clusters} | {counts} | {least} |"


def keep(got: Found, promises: Promises) -> None:
    """What is slow is reported, and nothing else."""
    fault = got.fault
    cluster = f"{fault.what} of {fault.size}, {fault.kind}, {fault.model}, {fault.launches} launches"
    promises.rare(f"more reported than {cluster}", got.more, got.clusters, MORE)
    is_kept = got.exact >= fault.least * got.clusters
    promises.keep(f"{got.exact} of {got.clusters} reported exactly: {cluster}", is_kept=is_kept)


def report(each: int, clusters: int, seed: int, promises: Promises) -> Iterator[str]:
    """The tables in Markdown, line by line."""
    yield "| healthy clusters | of | number | reported % | INCONCLUSIVE % |"
    yield "|---|---|--:|--:|--:|"
    for kind, model in itertools.product(("nodes", "matrix"), MODELS):
        one = healthy(model, kind, each if kind == "nodes" else max(each // 2, 1), seed)
        promises.rare(f"report of healthy {kind}, {model}", one.reported, one.clusters, WRONG)
        yield one.row()
    yield ""
    yield "| slow | among | noise | launches | clusters | exactly that reported % | anything else % | detectable |"
    yield "|---|---|---|--:|--:|--:|--:|--:|"
    for fault in faults():
        got = find(fault, clusters, seed)
        keep(got, promises)
        among = f"{fault.size} nodes" + ("" if fault.kind == "nodes" else ", matrix")
        least = "–" if math.isinf(got.detectable) else f"{100 * got.detectable:.1f} %"
        yield (
            f"| {fault.what} | {among} | {fault.model} | {fault.launches} | {clusters} | "
            f"{100 * got.exact / clusters:.1f} | {100 * got.more / clusters:.1f} | {least} |"
        )
    yield ""
    for kind, what in (("nodes", "nodes"), ("matrix", "links")):
        tried, hits = kept(kind, clusters, seed)
        promises.keep(f"{hits} of {tried} detectable {what} reported", is_kept=hits >= 0.98 * tried > 0)
        yield f"A member made slower by `detectable`, among {what}: reported in {hits} of {tried} clusters."
    yield ""
    yield from report_together(max(each // 8, 1), max(clusters // 3, 1), seed, promises)


def main() -> int:
    parser = command_line(__doc__, "more clusters per line")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    promises = Promises()
    for line in report(*((100, 300) if args.full else (5, 50)), args.seed, promises):
        print(line, flush=True)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
