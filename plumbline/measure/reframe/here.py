"""The system that ReFrame runs on: its site's facts, for the parameters of tests."""

from __future__ import annotations

import functools

from reframe.core.runtime import runtime

from plumbline import site
from plumbline.base import paths
from plumbline.base.schemas.site import Partition
from plumbline.host.topology import machine
from plumbline.host.topology.machine import Machine
from plumbline.measure.reframe.settings import FEATURE


def configured() -> bool:
    """Whether ReFrame runs on our settings and they found a site for this host."""
    environments = [e for p in runtime().system.partitions for e in p.environs]
    return any(FEATURE in environment.features for environment in environments)


def partitions() -> list[Partition]:
    """The partitions of the configured site; none if there is no site."""
    if not configured():
        return []
    return site.load(runtime().system.name).partitions


def node_counts() -> list[int]:
    """Counts of nodes for tests over several: powers of two up to the size of the largest partition, and all of it.

    Where no partition offers two nodes it is ``[2]``, so that such tests end as skipped, with the reason.
    """
    most = max((part.nodes_offered for part in partitions()), default=1)
    powers = {1 << power for power in range(1, most.bit_length()) if 1 << power <= most}
    return sorted(powers | ({most} - {1})) or [2]


@functools.cache
def machines() -> tuple[Machine, ...]:
    """The machine of every partition, for parameters that depend on it; none if there is no site."""
    return tuple(machine.load(paths.sites() / runtime().system.name / part.topology) for part in partitions())
