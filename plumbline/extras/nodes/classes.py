"""Classes of nodes: from checks of healthy nodes of one kind to the file by which plumb-check judges.

The file's form is in custom-kernels/check/class.h; nothing of it is judged here.

A limit is the threshold of a check for one figure, with the slowdown that it finds. Values there are logarithms, larger
where slower. A round of a healthy node is modelled as the level of its node plus noise that has the same distribution,
of whatever form, on all nodes of a class. The rounds of a check count as fewer independent ones, by an upper bound of
how alike they are within a check (:func:`plumbline.statistics.majority.alike`): their values, or how far these scatter.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.extras.nodes.model import Check, Figure
from plumbline.host.binder import Plan
from plumbline.judge import outliers
from plumbline.judge.members import Nodes
from plumbline.statistics import Floats, Ints, majority, special

#: seconds that a check may be given
BUDGETS = (10, 25, 55, 120, 900)
#: seconds of a budget that are not measured in, and how much longer than usual a round may take
ENDS, SLOWER = 2.0, 1.3
#: more rounds find no smaller slowdowns
MOST_ROUNDS = 401
#: of all checks of a healthy node, how many may end as bad
RATE = 1e-5
#: bytes that have to be free, where nobody says otherwise
ROOM = {"/dev/shm": 1e9, "/tmp": 1e9}  # noqa: S108 - the node's own
#: the fact that no two checks of a node have in common: memory that nothing holds, MiB
AVAILABLE = "memory.available.mib"
#: where the role puts the health script of a node
HEALTH = "/usr/local/lib/plumbline/health.sh"
#: rounds that a check for a class measures, if there is time
COLLECTED = 15


@dataclass(frozen=True)
class Class:
    """A class: limits by seconds and figure, the rounds by seconds, the nodes it was made of and those refused.

    ``outdated`` counts the checks that were left out because facts of their node have changed since.
    """

    figures: Mapping[str, Figure]
    limits: Mapping[int, Mapping[str, Limit]]
    rounds: Mapping[int, int]
    members: Sequence[str]
    refused: Mapping[str, str]
    facts: Mapping[str, str]
    checks: int
    disturbed: int
    outdated: int
    days: int


def plan_lines(name: str, plan: Plan) -> list[str]:
    """The lines of the plan: a core of each rank of ``plan`` (placement ``core``), and pairs of neighbours.

    Neighbours are the cores of a NUMA node by twos, in the plan's order: each core is in one pair at most.
    """
    cores = [(rank.cpus[0], rank.mem.nodes[0] if rank.mem.nodes else 0) for rank in plan.ranks]
    return [
        "plumb-class 1",
        f"name {name}",
        *(f"cpu {cpu} {numa}" for cpu, numa in cores),
        *(
            f"pair {first} {second}"
            for cpus in group((numa, cpu) for cpu, numa in cores).values()
            for first, second in zip(cpus[::2], cpus[1::2], strict=False)
        ),
    ]


def make(checks: Sequence[Check], tolerance: float, rate: float = RATE) -> Class:
    """The class that ``checks`` give; those with other facts than the newest of their node do not count.

    Refused are nodes whose facts differ from most nodes', that were found slower than the others
    (:mod:`plumbline.judge.outliers`), or have too few rounds. Raises :class:`PlumbError` where too little is left.
    """
    newest = {check.node: check.facts for check in sorted(checks, key=lambda check: check.time)}
    current = [check for check in checks if _alike(check.facts, newest[check.node])]
    by_node = group((check.node, check) for check in current if not check.bad)
    refused = {check.node: check.bad[0] for check in current if check.bad}
    rounds_of = {node: sum(check.undisturbed for check in node_checks) for node, node_checks in by_node.items()}
    refused |= {
        node: f"{counted(count, 'round')} without other work, at least {FEWEST_ROUNDS} are needed"
        for node, count in rounds_of.items()
        if count < FEWEST_ROUNDS
    }
    facts, differing = _facts(
        {node: node_checks[-1].facts for node, node_checks in by_node.items() if node not in refused}
    )
    refused |= differing
    members = [node for node in sorted(by_node) if node not in refused]
    figures = common_figures([check for node in members for check in by_node[node]])
    slow = slower({node: by_node[node] for node in members}, figures, tolerance)
    refused |= slow
    members = [node for node in members if node not in slow]
    if not members or not figures:
        why = "; ".join(f"{node}: {reason}" for node, reason in sorted(refused.items())[:3]) or "nothing was measured"
        raise PlumbError(f"no class can be made: {why}", "plumb calibrate --nodes", "measure on idle nodes")
    accepted = [check for node in members for check in by_node[node]]
    if available := [int(mib) for check in accepted if (mib := check.facts.get(AVAILABLE, "")).isdecimal()]:
        facts[AVAILABLE] = str(statistics.median_low(available))
    rounds = _rounds(accepted)
    samples = {name: _sample(accepted, name) for name in figures}
    error, doubt = rate / len(figures), DOUBT / len(figures)
    return Class(
        figures=figures,
        limits={
            seconds: {name: limit(sample, count, error, doubt, tolerance) for name, sample in samples.items()}
            for seconds, count in rounds.items()
        },
        rounds=rounds,
        members=members,
        refused=refused,
        facts=facts,
        checks=len(accepted),
        disturbed=sum(len(check.others) - check.undisturbed for check in accepted),
        outdated=len(checks) - len(current),
        days=len({int(check.time // 86400) for check in accepted}),
    )


def text(node_class: Class, lines: Sequence[str], time: str, tolerance: float, rate: float, jobs: str | None) -> str:
    """The class file. ``lines``: those of :func:`plan_lines`; ``jobs``: the scheduler's name for the health script."""
    content = [
        *lines,
        f"made {time}",
        f"rate {rate:g}",
        f"tolerance {tolerance:g}",
        *([f"jobs {HEALTH} {jobs} jobs"] if jobs else []),
        *(f"member {node}" for node in node_class.members),
        *(f"{'idle' if name == AVAILABLE else f'fact {name}'} {value}" for name, value in node_class.facts.items()),
        *(f"room {path} {room:g}" for path, room in ROOM.items()),
    ]
    for seconds, count in node_class.rounds.items():
        content.append(f"budget {seconds} {count}")
        for name, limit in node_class.limits[seconds].items():
            of = node_class.figures[name].value
            values = [None if log is None else of(log) for log in (limit.member, limit.non_member, limit.doubt)]
            numbers = ["none" if value is None else f"{value:.6g}" for value in (*values, limit.detectable)]
            content.append(f"limit {seconds} {name} {' '.join(numbers)}")
    return "\n".join([*content, "end"]) + "\n"


def _alike(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether the facts of two checks are the same."""
    both = {name: (first.get(name, ""), second.get(name, "")) for name in {**first, **second}}
    return all(here == there or _same_size(name, (here, there)) for name, (here, there) in both.items())


def _facts(of: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """The facts that most nodes have, and why each node that differs in one is refused."""
    usual = {
        name: Counter(facts.get(name, "") for facts in of.values()).most_common(1)[0]
        for name in dict.fromkeys(name for facts in of.values() for name in facts)
    }
    refused: dict[str, str] = {}
    for name, (value, count) in usual.items():
        if _same_size(name, [facts.get(name, "") for facts in of.values()]):
            continue
        if 2 * count <= len(of):
            raise PlumbError(
                f"the nodes are not of one kind: {name} is '{value}' on {count} of {len(of)}",
                "plumb calibrate --nodes",
                "name nodes of one kind by --node",
            )
        for node, facts in of.items():
            if (here := facts.get(name, "")) != value:
                refused.setdefault(node, f"{name} is '{here}', not '{value}'")
    return {name: value for name, (value, _) in usual.items() if value}, refused


def _same_size(name: str, values: Sequence[str]) -> bool:
    """Whether sizes of memory are equal but for the part that kernels keep, as plumb-check compares them, or vary."""
    is_size = name.startswith("memory.") and name.endswith(".mib") and all(value.isdecimal() for value in values)
    return is_size and (name == AVAILABLE or max(map(int, values)) <= 1.01 * min(map(int, values)))


def common_figures(checks: Sequence[Check]) -> dict[str, Figure]:
    """The figures that every check has."""
    counts = Counter(figure.name for check in checks for figure in check.figures)
    return {figure.name: figure for check in checks for figure in check.figures if counts[figure.name] == len(checks)}


def slower(by_node: Mapping[str, Sequence[Check]], figures: Mapping[str, Figure], tolerance: float) -> dict[str, str]:
    """The nodes that are slower than the others, with the figure; none where they are too few to say.

    The probability of naming any where all are alike is :data:`plumbline.judge.outliers.SIDE`.
    """
    if len(by_node) < outliers.FEWEST:
        return {}
    classes = [Nodes(name, figure.better) for name, figure in figures.items()]
    for nodes, figure in zip(classes, figures.values(), strict=True):
        for node, check in ((node, check) for node, node_checks in by_node.items() for check in node_checks):
            if (logs := check.logs(figure.name)).size:
                nodes.add(node, figure.value(float(np.median(logs))))
    measured = [nodes for nodes in classes if nodes.values]  # other work may have disturbed every round
    verdicts = outliers.decide(measured, outliers.Margins(tolerance, max(0.1, 2 * tolerance))) if measured else []
    return {
        finding.name: f"{verdict.subject} is slower by {finding.change:.1%}"
        for verdict in reversed(verdicts)
        for finding in verdict.findings
        if finding.direction == "worse"
    }


def _rounds(checks: Sequence[Check]) -> dict[int, int]:
    """How many rounds, an odd number, a check of each budget takes; budgets without room for one are left out."""
    each = statistics.median(check.seconds / len(check.others) for check in checks if check.others)
    fit = {seconds: int((seconds - ENDS) / (SLOWER * each)) for seconds in BUDGETS}
    odd = {seconds: count - 1 + count % 2 for seconds, count in fit.items()}
    rounds = {seconds: min(count, MOST_ROUNDS) for seconds, count in odd.items() if count > 0}
    if not rounds:
        raise PlumbError(f"a round takes {each:.1f} s", "plumb calibrate --nodes", "measure on idle nodes")
    return rounds


def _sample(checks: Sequence[Check], figure: str) -> Sample:
    """The rounds of ``checks``, those of a node in sequence."""
    logs = [check.logs(figure) for check in checks]
    sizes = [values.size for values in logs]
    _, nodes = np.unique([check.node for check in checks], return_inverse=True)
    return Sample(np.concatenate(logs), np.repeat(nodes, sizes), np.repeat(np.arange(len(checks)), sizes))


#: with which probability, over the samples that classes are made of, a limit keeps its rate
CONFIDENCE = 0.99
#: ... and with which the bound of how alike rounds are holds
ALIKE_CONFIDENCE = 0.9
#: share of the checks of a healthy node that may end in doubt, over all figures together
DOUBT = 1e-3
#: the probability with which a slowdown that is said to be found is found
FOUND = 0.9
#: fewer nodes say nothing about others
FEWEST_NODES = 5
#: fewer rounds of a node do not give its level
FEWEST_ROUNDS = 15


@dataclass(frozen=True)
class Sample:
    """Values of one figure: a logarithm of each round, its node and its check, numbered over all nodes."""

    logs: Floats
    nodes: Ints
    checks: Ints

    def levels(self) -> Floats:
        """The median of each node, in the order of the nodes' numbers."""
        return np.array([float(np.median(self.logs[self.nodes == node])) for node in np.unique(self.nodes)])

    def noise(self) -> Floats:
        """Each value less the level of its node, widened because the level is estimated from it."""
        _, of, sizes = np.unique(self.nodes, return_inverse=True, return_counts=True)
        wide = np.sqrt(sizes / np.maximum(sizes - 1, 1))
        return np.asarray((self.logs - self.levels()[of]) * wide[of], dtype=np.float64)

    def scatter(self) -> Floats:
        """How far each value is from the median of its check: checks may be rougher than others, not only slower."""
        numbers, of = np.unique(self.checks, return_inverse=True)
        medians = np.array([np.median(self.logs[self.checks == number]) for number in numbers])
        return np.asarray(np.abs(self.logs - medians[of]), dtype=np.float64)


@dataclass(frozen=True)
class Limit:
    """Limits of the median of a check's rounds, as logarithms; None: the sample cannot promise it.

    ``member``: on a node of the class; ``non_member``: on a node that the class was not made of; ``doubt``: beyond it a
    longer check is needed. ``detectable``: the slowdown of a usual node that nine checks in ten find, as a fraction.
    ``missing``: rounds that ``member`` lacks. ``rounds``: as how many independent ones the check's count.
    """

    member: float | None
    non_member: float | None
    doubt: float
    detectable: float | None
    missing: int
    rounds: float


def limit(sample: Sample, rounds: int, error: float, doubt: float, tolerance: float) -> Limit:
    """The limits of a check of ``rounds`` rounds.

    ``error`` and ``doubt`` are the probabilities with which a healthy node may exceed them; slowdowns up to
    ``tolerance`` (a fraction) are never beyond one.
    """
    levels, noise = sample.levels(), sample.noise()
    usual, slowest = float(np.median(levels)), float(levels.max())
    alike = max(majority.alike(values, sample.checks, ALIKE_CONFIDENCE) for values in (noise, sample.scatter()))
    counted = majority.independent(rounds, alike)
    least = usual + math.log1p(tolerance)

    def beyond(chance: float) -> float | None:
        return majority.bound(noise, majority.share(counted, chance), CONFIDENCE)

    margin, half = beyond(error), beyond(error / 2)
    member = None if margin is None else max(least, slowest + margin)
    n = levels.size
    spread: float | None = None
    if n >= FEWEST_NODES:  # how far above the usual level that of the next node may lie, if levels are normal
        spread = float(special.stdtrit(n - 1, 1 - error / 2) * np.std(levels, ddof=1) * math.sqrt(1 + 1 / n))
    non_member = None if half is None or spread is None or member is None else max(member, usual + spread + half)
    unsure = beyond(doubt)
    at_most = slowest + (float(noise.max()) if unsure is None else unsure)
    unsure = max(least, at_most) if member is None else min(member, max(least, at_most))
    lacking = majority.needed(majority.share(counted, error), CONFIDENCE) - noise.size if margin is None else 0
    # so many of the rounds of a slow node are beyond the limit that most of a check's are, nine times in ten
    slow = usual + float(np.quantile(noise, 1 - majority.share(counted, FOUND)))
    detectable = None if member is None else math.expm1(member - slow)
    return Limit(member, non_member, unsure, detectable, max(0, lacking), counted)
