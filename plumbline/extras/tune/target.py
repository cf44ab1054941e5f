"""The program that a tuning is for: its calls choose the raced settings, its figures decide on a gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.extras.tune import weights
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.curves import Row
from plumbline.extras.tune.programs import Point
from plumbline.extras.tune.race import DEFAULT
from plumbline.judge.decide import Verdict
from plumbline.launch.profiles import read, sums
from plumbline.mpi.settings import Configuration
from plumbline.records.variant import Variant

#: A rank's share of time in MPI from which its settings may matter: a gain has to be above 1 %
LEAST = 0.01


@dataclass(frozen=True)
class Calls:
    """The program's number of calls of each row, and the largest share of time that a rank spends in MPI."""

    counts: Mapping[Row, int]
    share: float


def calls(bench: TuningBench) -> Calls:
    """The calls in profiles of the program, one under each placement; profiles with little MPI are not counted.

    Raises :class:`PlumbError` for a launch that is not verified, and where no call is one that the tuner measures.
    """
    counted: Counter[Row] = Counter()
    most = 0.0
    for record in bench.profiles():
        if not record.verified:
            raise PlumbError(f"the program cannot be profiled: {record.reasons[0]}", record.variant.name, "plumb run")
        profile = read.load(read.file_of(record.site, record.id))
        share = max(map(sums.mpi_share, profile.ranks), default=0.0)
        if share >= LEAST:
            counted.update(weights.counts(profile, bench.request.sizes))
        most = max(most, share)
    return Calls(counted, most)


def couples(bench: TuningBench, configuration: Configuration) -> tuple[list[list[Variant]], list[tuple[str, Point]]]:
    """The program under the default and under ``configuration``, each variant; and the key of each figure."""
    both = [bench.settings(side) for side in (DEFAULT, configuration)]
    wanted = [
        replace(variant, figures=[each for each in variant.figures if not each.optional])
        for variant in bench.request.program
    ]
    pairs = [
        [replace(variant, settings={**variant.settings, **each}, launches=1) for each in both] for variant in wanted
    ]
    keys = [
        (variant.placement, Point(variant.name, Row(figure.name, 0)))
        for variant in wanted
        for figure in variant.figures
    ]
    return pairs, keys


def improvement(verdict: Verdict) -> str:
    """How much better the candidate is, in per cent with the interval: ``7.1 % less (6.2 % to 8.0 %)``."""
    if verdict.ratio is None or verdict.interval is None:
        return verdict.state
    sign = 1 if verdict.pairs.better == "higher" else -1
    low, high = sorted(sign * (ratio - 1) for ratio in verdict.interval)
    word = "more" if sign > 0 else "less"
    return f"{percent(sign * (verdict.ratio - 1))} {word} ({percent(low)} to {percent(high)})"
