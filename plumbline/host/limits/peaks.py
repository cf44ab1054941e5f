"""Peaks of the hardware from site facts, or None where a fact is absent."""

from __future__ import annotations

from msgspec import Struct

from plumbline.base import units
from plumbline.base.schemas.site import Facts


class Limit(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The physical bound of a figure, the method that gives it, and the percentage of it that the figure reached."""

    value: int | float
    unit: str
    method: str
    percent: int | float | None = None


def dram(facts: Facts, packages: float | None) -> Limit | None:
    """Peak rate in MB/s of the memory channels of ``packages`` packages; a part of one counts as a fraction."""
    channels, rate, width = facts.memory_channels_per_package, facts.memory_mts, facts.memory_bytes_per_transfer
    if not channels or not rate or packages is None:
        return None
    method = f"{packages:g} packages x {channels} channels x {rate:g} MT/s x {width} B"
    return _limit(packages * channels * rate * width, units.MB_S, method)


def partly_cached(memory: Limit | None, working_set: int, cache_bytes: int | None) -> Limit | None:
    """The rate of sweeps over ``working_set`` bytes when the caches keep all they can hold of it from sweep to sweep.

    At least ``working_set - cache_bytes`` of every sweep come from ``memory``. None for what fits the caches.
    """
    if memory is None or cache_bytes is None or working_set <= cache_bytes:
        return None
    value = memory.value * working_set / (working_set - cache_bytes)
    method = f"{memory.method}, {working_set / 1e6:.4g} MB of data over {cache_bytes / 1e6:.4g} MB of cache"
    return _limit(value, memory.unit, method)


def cache(facts: Facts, cores: int | None) -> Limit | None:
    """Peak rate in MB/s of ``cores`` cores to their first-level caches; no other cache is faster."""
    width, clock = facts.cache_bytes_per_cycle, facts.core_ghz
    if not width or not clock or cores is None:
        return None
    method = f"{cores} cores x {width} B x {clock:g} GHz, first-level caches"
    return _limit(cores * width * clock * 1000, units.MB_S, method)


def flops(facts: Facts, cores: int | None) -> Limit | None:
    """Peak of ``cores`` cores in double precision, in GFlop/s; a fused multiply-add counts as two operations."""
    clock = facts.core_ghz
    if not clock or cores is None:
        return None
    if facts.flops_per_cycle:
        each, how = facts.flops_per_cycle, f"{facts.flops_per_cycle} flop/cycle"
    elif facts.fma_units and facts.simd_bits:
        lanes = facts.simd_bits // 64
        each, how = facts.fma_units * lanes * 2, f"{facts.fma_units} FMA units x {lanes} x 2 flop/cycle"
    else:
        return None
    return _limit(cores * each * clock, units.GFLOP_S, f"{cores} cores x {how} x {clock:g} GHz")


def link(facts: Facts, directions: int) -> Limit | None:
    """Peak rate of a node's link in MB/s; ``directions`` is 2 for a figure that adds up both."""
    gbit = facts.link_gbit
    if not gbit:
        return None
    return _limit(gbit * 125.0 * directions, units.MB_S, f"{directions} x link of {gbit:g} Gbit/s")


def whole() -> Limit:
    """The limit of a share: 100 %."""
    return _limit(100.0, units.PERCENT, "the whole")


def _limit(value: float, unit: str, method: str) -> Limit:
    return Limit(value=value, unit=unit, method=method)
