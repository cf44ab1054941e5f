"""How often `plumb screen --links` names a good node, and finds a bad one, on simulated machines.

    python tests/rates/screening.py [--full]

Ends with status 1 if a rate is worse than promised.

A group has the bandwidth of its slowest node or link; launches and groups vary. Disturbed: all launches of one
measurement in twenty are 15 % slower. The search and the rule are those of
the command. `named`: searches in which a good node was named; `found`: bad nodes that were named; `rounds`: the most
after the first.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from promises import Promises, command_line, show

from plumbline.extras.nodes import links
from plumbline.extras.nodes.links import Answer, Group, SearchReport, search

#: log of a launch's bandwidth: the standard deviation of launches, and that of groups
NOISE, SPREAD = 0.01, 0.005
SLOW = 0.2
#: probability that a search names a good node
WRONG = 0.01
HEADER = ("groups", "of", "bad nodes", "launches vary by", "named", "found", "rounds")
#: number of groups, their size
SHAPES = ((8, 2), (16, 2), (32, 2), (8, 8), (16, 8), (16, 32))


class Machine:
    """A machine on which some nodes or links (sets of two) are slower by a fraction."""

    def __init__(
        self, size: int, slow: Mapping[object, float], seed: int, noise: float = NOISE, disturbed: float = 0.0
    ) -> None:
        self.slow, self.noise, self.disturbed = slow, noise, disturbed
        self.random = np.random.default_rng(seed)
        self.values: dict[frozenset[str], list[float]] = {}
        self.pool = links.Pool(size, 0.05, self.values)
        self.rounds: list[list[Group]] = []

    def measure(self, groups: Sequence[Group]) -> list[Answer]:
        """What the records of ``groups`` would say."""
        self.rounds.append(list(groups))
        for group in groups:
            self.values[frozenset(group.nodes)] = self.launches(frozenset(group.nodes))
        return self.pool.judge(groups)

    def launches(self, nodes: frozenset[str]) -> list[float]:
        """The bandwidths of a group's launches."""
        lost = max((by for what, by in self.slow.items() if what in nodes or what == nodes), default=0.0)
        level = self.random.normal(0, SPREAD) - math.log1p(lost)
        level -= 0.15 if self.disturbed and self.random.random() < self.disturbed else 0.0
        return [float(value) for value in 100 * np.exp(level + self.random.normal(0, self.noise, links.LAUNCHES))]


def names(count: int) -> list[str]:
    """The nodes."""
    return [f"n{number:03}" for number in range(count)]


def groups(count: int, size: int) -> list[tuple[str, ...]]:
    """The groups of the first round."""
    nodes = names(count)
    return [tuple(nodes[first : first + size]) for first in range(0, count, size)]


def searched(machine: Machine, count: int) -> SearchReport:
    """A search among ``count`` nodes."""
    return search(groups(count, machine.pool.size), machine.measure)


def rows(searches: int, promises: Promises) -> Iterator[tuple[str, ...]]:
    """A row for each shape, set of bad nodes and noise."""
    for number, size in SHAPES:
        for what, bad in {"none": (), "one": (0,), "two of a group": (0, 1), "two": (0, size)}.items():
            for noise, disturbed in ((0.01, 0.0), (0.02, 0.0), (0.01, 0.05)):
                nodes = [names(number * size)[place] for place in bad]
                found = [
                    searched(Machine(size, dict.fromkeys(nodes, SLOW), seed, noise, disturbed), number * size)
                    for seed in range(searches)
                ]
                wrong = sum(any(node not in nodes for node in one.nodes) for one in found)
                right = sum(len(set(nodes) & set(one.nodes)) for one in found)
                launches = f"{noise:.0%}{', disturbed' if disturbed else ''}"
                kind = f"{number} groups of {size}, {what}, {launches}"
                promises.rare(f"a good node is named: {kind}", wrong, searches, WRONG)
                if (number, size) == (16, 2) and not disturbed:
                    bad_nodes = len(nodes) * searches
                    promises.keep(f"{right} of {bad_nodes} bad nodes named: {kind}", is_kept=right >= 0.9 * bad_nodes)
                share = f"{right / (len(nodes) * searches):.0%}" if nodes else "–"
                most = max(one.rounds for one in found)
                yield str(number), str(size), what, launches, f"{wrong / searches:.1%}", share, str(most)


def main() -> int:
    """Print the table."""
    args = command_line(__doc__, "400 searches each, not 20").parse_args()
    promises = Promises()
    show(HEADER, rows(400 if args.full else 20, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
