"""Tests that measure the same quantity on the same cores, and whether they agree.

A quantity is half of a ping-pong between two ranks by MPI_Send and MPI_Recv of the C interface: its time for 8 bytes,
its bandwidth for 2 MiB. The port of the OSU benchmarks to Python has Python's own time in it: it does not measure this.
Collective operations have no quantity here, because their tests measure different things: ``collective`` from a common
start to the last exit, IMB one call after the other, OSU each call after a barrier.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.base import group
from plumbline.judge.samples import Samples, of_launches
from plumbline.parsers.measurement import Measurement
from plumbline.records import query
from plumbline.records.model import AnyRecord, Record
from plumbline.records.variant import PROGRAM
from plumbline.statistics import unpaired


@dataclass(frozen=True)
class Quantity:
    """``metric`` of messages of ``size`` bytes; ``figures`` are the names that it has in records."""

    name: str
    size: int
    metric: str
    figures: frozenset[str]


LATENCY = Quantity("half a round trip of 8 B", 8, "latency", frozenset({"time_8B", "class_latency", "worst_latency"}))
QUANTITIES = (
    LATENCY,
    Quantity(
        "bandwidth of 2 MiB", 2 << 20, "bandwidth", frozenset({"bandwidth", "class_bandwidth", "worst_bandwidth"})
    ),
)
#: operations of the tests of IMB and OSU that measure them
OPERATIONS = {"imb_pair": "PingPong", "osu_pair": "latency"}
#: the test of our own that does
PAIRS = "pairs_cores"


@dataclass(frozen=True)
class Claim:
    """The values of a quantity in one record, of the ranks on two ``cpus``."""

    record: Record
    quantity: Quantity
    cpus: tuple[int, ...]
    samples: Samples

    @property
    def value(self) -> float:
        """The median over the launches."""
        return statistics.median(self.samples.values)


def disagreements(records: Sequence[Record]) -> list[tuple[Claim, Claim]]:
    """Claims of two tests on the same CPUs, nodes and stack in one campaign that differ by more than their errors.

    The worst are first. Records of several campaigns do not disagree: the machine may have changed between them.

    No launches overlap, three or more of each, and the values are 25 % apart. That asks the reader to look, and claims
    no cause: a comparison of sides, which does, demands more of a campaign's few launches.
    """
    groups = group(
        (
            (record.campaign or record.session, record.site, record.partition, tuple(record.nodes), record.stack.name,
             claim.cpus, claim.quantity),
            claim,
        )
        for record in records
        for claim in claims(record)
    )  # fmt: skip
    disagreeing = [
        (first, second)
        for claims in groups.values()
        for first, second in itertools.combinations(claims, 2)
        if first.record.variant.test != second.record.variant.test and _apart(first.samples, second.samples)
    ]
    return sorted(disagreeing, key=lambda pair: -max(pair[0].value, pair[1].value) / min(pair[0].value, pair[1].value))


def doubtful(disagreeing: Sequence[tuple[Claim, Claim]]) -> frozenset[tuple[str, str]]:
    """The ids of the records that make such claims, each with the names of the figures that are in doubt."""
    return frozenset(
        (claim.record.id, figure) for pair in disagreeing for claim in pair for figure in claim.quantity.figures
    )


def doubtful_of(rows: Sequence[AnyRecord]) -> frozenset[tuple[str, str]]:
    """:func:`doubtful` of valid rows, whose whole records are read."""
    wanted = [row for row in rows if row.variant.test in (*OPERATIONS, PAIRS)]
    several = len({row.variant.test for row in wanted}) > 1
    return doubtful(disagreements(query.of_rows(wanted)[0])) if several else frozenset()


def _apart(first: Samples, second: Samples) -> bool:
    difference = unpaired.compare([first.values], [second.values], (first.step, second.step))
    overlap = difference.low is None or difference.high is None or difference.low <= 1 <= difference.high
    return not overlap and unpaired.exceeds_sessions(difference.ratio)


def claims(record: Record) -> Iterator[Claim]:
    """The quantities that ``record`` measured on two CPUs of a node."""
    if record.placement.nodes > 1:
        return
    for quantity in QUANTITIES:
        for cpus, samples in of_launches(record, functools.partial(_cpus, record, quantity)).items():
            if all(value > 0 for value in samples.values):
                yield Claim(record, quantity, cpus, samples)


def _cpus(record: Record, quantity: Quantity, item: Measurement) -> tuple[int, ...] | None:
    """The CPUs of the two ranks whose messages are measured; None if it is not ``quantity`` that is measured.

    In ``pairs`` other pairs talk at the same time, unless it takes one at a time or has one only; its sizes are 8 B and
    what its arguments say.
    """
    if item.metric != quantity.metric:
        return None
    variant, ranks = record.variant, record.plan.ranks
    if variant.test == PAIRS:
        alone = len(ranks) == 2 or variant.params.get("operation") == "serial"
        sizes = "2M" in variant.arguments and "--latency-bytes" not in variant.arguments
        pair = [int(item.params[name]) for name in ("first_cpu", "second_cpu") if name in item.params]
        return (tuple(sorted(pair)) if alone and sizes else ()) or None
    operation, size = variant.params.get("operation", ""), item.params.get("bytes")
    single = len(ranks) == 2 and all(len(rank.cpus) == 1 for rank in ranks)
    if PROGRAM in variant.params or OPERATIONS.get(variant.test) != operation or size != quantity.size or not single:
        return None
    return tuple(sorted(rank.cpus[0] for rank in ranks))
