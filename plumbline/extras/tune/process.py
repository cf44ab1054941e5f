"""Settings of the process: allocator, huge pages, OpenMP, placement, ranks x threads; raced by a program's figures.

The costs that its profile shows (:data:`plumbline.launch.conclusions.COSTS`) choose them. Names and values are those of
the table below and of this machine: no file says what is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ctypes.util import find_library

from msgspec.structs import replace

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.host import binder
from plumbline.launch.conclusions import FAULTS, IDLE, RANK_LOAD, SPINS, THREAD_LOAD, WAITS
from plumbline.mpi.loading import ALLOCATORS, PRELOAD
from plumbline.mpi.settings import Configuration, Knob
from plumbline.records.variant import Variant

PLACEMENT, LAYOUT = "placement", "ranks x threads"
#: glibc takes memory in huge pages (since 2.35); it keeps what is given back, and takes more at once
HUGE = "glibc.malloc.hugetlb=1"
KEEP = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=9999999999:glibc.malloc.top_pad=64000000"
#: a setting, the costs against which it may help, and its values; without any, those that this machine has
TABLE: dict[str, tuple[set[str], tuple[str, ...]]] = {
    "GLIBC_TUNABLES": ({FAULTS}, (HUGE, KEEP, f"{HUGE}:{KEEP}")),
    PRELOAD: ({FAULTS}, ()),
    "OMP_WAIT_POLICY": ({SPINS, WAITS, IDLE}, ("active", "passive")),
    "OMP_SCHEDULE": ({THREAD_LOAD}, ("guided", "dynamic")),
    PLACEMENT: ({SPINS, IDLE, THREAD_LOAD, RANK_LOAD}, ()),
    LAYOUT: ({IDLE, THREAD_LOAD, RANK_LOAD}, ()),
}
#: placements that keep the number of ranks and threads
PLACEMENTS = ("compact", "scatter", "spread")


def knobs(costs: Collection[str], program: Sequence[Variant]) -> list[Knob]:
    """The settings that may help ``program`` against ``costs`` on this machine; OpenMP's only where it has threads."""
    here = {PRELOAD: allocators, PLACEMENT: lambda: placements(program), LAYOUT: lambda: layouts(program)}
    threaded = any(variant.threads != 1 for variant in program)
    wanted = [(name, values or here[name]()) for name, (kinds, values) in TABLE.items() if kinds.intersection(costs)]
    return [
        Knob(name, values, "start", "both") for name, values in wanted if values and (threaded or "OMP" not in name)
    ]


def allocators() -> tuple[str, ...]:
    """The allocators of this machine, as its loader knows them."""
    return tuple(file for name in ALLOCATORS if (file := find_library(name)))


def placements(program: Sequence[Variant]) -> tuple[str, ...]:
    """The other :data:`PLACEMENTS` under which all of ``program`` has as many ranks and threads, on other CPUs."""
    plans = [_plan(variant) for variant in program]
    others = {name: [_plan(replace(each, placement=name)) for each in program] for name in PLACEMENTS}
    alike = group(
        (_places(rival), name)
        for name, rival in others.items()
        if [_shape(plan) for plan in rival] == [_shape(plan) for plan in plans] and None not in plans
    )
    return tuple(names[0] for places, names in alike.items() if places != _places(plans))


def _shape(plan: binder.Plan | None) -> tuple[int, int] | None:
    return (len(plan.ranks), plan.threads) if plan else None


def _places(plans: Sequence[binder.Plan | None]) -> str:
    return str([[rank.places for rank in plan.ranks] for plan in plans if plan])


def layouts(program: Sequence[Variant]) -> tuple[str, ...]:
    """Other numbers of ranks and threads on as many CPUs, of an MPI program of one variant: ``4x2``."""
    plan = _plan(program[0])
    if len(program) > 1 or plan is None or not program[0].context.get("mpi"):
        return ()
    now, places = f"{len(plan.ranks)}x{plan.threads}", len(plan.ranks) * plan.threads
    wanted = [f"{places // each}x{each}" for each in range(1, places + 1) if places % each == 0]
    return tuple(each for each in wanted if each != now and _plan(applied(program[0], {LAYOUT: each})))


def _plan(variant: Variant) -> binder.Plan | None:
    """Where its ranks go; None where there is no room for them."""
    try:
        return binder.resolve(
            variant.placement, threads=variant.threads, memory=variant.memory, ranks=variant.ranks_per_node
        )
    except PlumbError:
        return None


def settings(configuration: Configuration) -> dict[str, str]:
    """The settings of the process that ``configuration`` has."""
    return {setting.name: setting.value for setting in configuration.settings if setting.name in TABLE}


def of_library(configuration: Configuration) -> Configuration:
    """``configuration`` without them: what an MPI library is given."""
    return replace(configuration, settings=tuple(each for each in configuration.settings if each.name not in TABLE))


def applied(variant: Variant, chosen: dict[str, str]) -> Variant:
    """``variant`` with :func:`settings` that were ``chosen``."""
    variables = {name: value for name, value in chosen.items() if name not in (PLACEMENT, LAYOUT)}
    ranks, _, threads = chosen.get(LAYOUT, "").partition("x")
    return replace(
        variant,
        placement=chosen.get(PLACEMENT, variant.placement),
        ranks_per_node=int(ranks) if ranks else variant.ranks_per_node,
        threads=int(threads) if threads else variant.threads,
        environment={**variant.environment, **variables},
    )


def lines(chosen: dict[str, str]) -> list[str]:
    """Lines of a job script."""
    comments = [f"# {name}: {chosen[name]} (docs/placements.md)" for name in (PLACEMENT, LAYOUT) if name in chosen]
    return comments + [f"export {name}={value}" for name, value in chosen.items() if name not in (PLACEMENT, LAYOUT)]
