"""Whether the suite is whole: every test loads, every reference file is there.

ReFrame drops a test file that does not load with a warning, and a run of no tests is a success to it. The test
``suite_integrity`` runs this module; ``python -m plumbline.measure.reframe.integrity SITE`` prints a line per fault
and exits with 1 if there is one.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import machine
from plumbline.host.binder import resolve
from plumbline.measure.reframe import cases, settings

#: the list of test classes that must load, one per line
EXPECTED = "expected.txt"
#: two packages that share a memory or have one each or four, with and without shared caches and hardware threads
MACHINES = (
    "package:2 core:2 pu:1",
    "package:2 numa:1 l3:1 core:4 pu:2",
    "package:2 numa:1 l3:1 core:72 pu:1",
    "package:2 numa:2 l3:1 core:10 pu:1",
    "package:2 numa:4 l3:2 core:8 pu:2",
)


def faults(tests: Path, site_name: str) -> list[str]:
    """The faults of the suite, a line each.

    Expected tests that did not load, unexpected ones, those that no selection would load, absent reference files,
    placements that never differ.
    """
    expected = set((tests / EXPECTED).read_text(encoding="utf-8").split())
    described = describe(tests, site_name)
    loaded = {test["@class"] for test in described}
    written = {name for names in cases.classes(tests).values() for name in names}
    return [
        *(f"test {name} was dropped: 'reframe -c {tests} -l -v' says why" for name in sorted(expected - loaded)),
        *(f"test {name} is not in {tests / EXPECTED}: add it" for name in sorted(loaded - expected)),
        *(f"test {name} is not a class of a file: no selection would load it" for name in sorted(loaded - written)),
        *filter(None, (site.references_missing(site_name, family) for family in site.families(expected))),
        *equal_arms(described, two_packages()),
    ]


def two_packages() -> list[str]:
    """Machines with two packages of as many cores each, as files of hwloc or its synthetic descriptions.

    They are :data:`MACHINES` and those of the sites. On any others all placements differ somewhere.
    """
    stored = sorted(map(str, paths.sites().glob("*/topology/*.xml")))
    return [*MACHINES, *(file for file in stored if is_twice_the_same(machine.load(file)))]


def is_twice_the_same(node: machine.Machine) -> bool:
    """Whether ``node`` has two packages of as many cores each."""
    cores = [machine.cores_in(node, package.cpus) for package in node.packages]
    return len(cores) == 2 and cores[0] == cores[1]


def equal_arms(described: Iterable[dict[str, Any]], topologies: Sequence[str]) -> list[str]:
    """A line for two placements of a test whose plans are equal for all its variants on all of ``topologies``."""
    tests: dict[str, dict[str, dict[Any, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for test in described:
        _, *words = test["name"].split()
        for placement in (word for word in words if word.startswith("%placement=")):
            others = tuple(word for word in words if word != placement and not word.startswith("%threads="))
            tests[test["@class"]][test["placement"]][others] = test
    return [
        f"test {name}: placements {left} and {right} are equal on every stored machine with two packages: drop one"
        for name, arms in sorted(tests.items())
        for left, right in itertools.combinations(arms, 2)
        if _equal(arms[left], arms[right], topologies)
    ]


def _equal(left: dict[Any, dict[str, Any]], right: dict[Any, dict[str, Any]], topologies: Sequence[str]) -> bool:
    """Whether the plans of two arms, variants by their other parameters, are equal wherever both have one."""
    plans = itertools.chain.from_iterable(_plans(left, right, topology) for topology in topologies)
    same = (first == second for first, second in plans if first and second)
    return next(same, False) and all(same)


def _plans(
    left: dict[Any, dict[str, Any]], right: dict[Any, dict[str, Any]], topology: str
) -> Iterator[tuple[str, str]]:
    """The plans of the variants that differ in their placement only, with each number of threads that a test tries."""
    for others in left.keys() & right.keys():
        for threads in _thread_counts(topology) if "%threads=" in left[others]["name"] else [None]:
            first, second = (
                _plan(
                    test["placement"], threads or test.get("threads") or None, test["ranks_per_node"] or None, topology
                )
                for test in (left[others], right[others])
            )
            yield first, second


@functools.cache
def _thread_counts(topology: str) -> list[int]:
    return machine.node_threads([machine.load(topology)])


@functools.cache
def _plan(placement: str, threads: int | None, ranks: int | None, topology: str) -> str:
    """The plan of a variant on a machine, without its name; empty if the machine cannot hold it."""
    try:
        plan = resolve(placement, threads=threads, ranks=ranks, topology=topology, memory="firsttouch")
    except PlumbError:
        return ""
    return repr((plan.bound, plan.map, plan.nodes, plan.threads, plan.ranks))


def describe(tests: Path, site_name: str) -> list[dict[str, Any]]:
    """The variants that ReFrame loads from ``tests`` for a site, as ``--describe`` says them."""
    command = [paths.program("reframe"), "-C", str(settings.file()), "--system", site_name, "-c", str(tests)]
    # with a job's own variables ReFrame would write its log over the one of the run that started this
    environment = {**os.environ, "RFM_SAVE_LOG_FILES": "no", "RFM_PREFIX": str(paths.build() / "reframe-integrity")}
    answer = subprocess.run(
        [*command, "--describe"], capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    try:
        variants: list[dict[str, Any]] = json.loads(answer.stdout)
    except ValueError:
        return []
    return variants


def main() -> int:
    """Check the suite of this checkout against site ``argv[1]``."""
    lines = faults(paths.suite() / "reframe-tests", sys.argv[1])
    for fault in lines:
        print(f"FAULT {fault}")
    print("suite is whole" if not lines else f"{len(lines)} faults")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
