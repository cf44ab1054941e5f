"""The program that a tuning is for: its calls choose the raced settings, its figures decide on a gain.

How much each row counts for it: how often its profile has the call, times the time of one call.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from plumbline.base.errors import PlumbError
from plumbline.base.units import percent
from plumbline.extras.tune import process
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.curves import BARRIER, MESSAGES, OPERATIONS, Curve, Point, Row
from plumbline.extras.tune.race import DEFAULT
from plumbline.judge.decide import Verdict
from plumbline.launch import profile_files, profiles
from plumbline.launch.profiles import Profile
from plumbline.mpi.settings import Configuration
from plumbline.records.launch import Launch
from plumbline.records.model import Record
from plumbline.records.variant import Variant, WantedFigure

#: A rank's share of time in MPI from which its settings may matter: a gain has to be above 1 %
LEAST = 0.01
#: calls that send a message to one rank; its receive is part of the same row
SENDS = {"send", "ssend", "rsend", "bsend"}


def counts(profile: Profile, sizes: Sequence[int]) -> dict[Row, int]:
    """How often the program makes the call of a row, at the nearest of ``sizes`` (on a logarithmic scale).

    Non-blocking and persistent forms count like the blocking one; calls that no row measures, and those of no bytes,
    are left out. Raises :class:`PlumbError` if nothing is left.
    """
    if not (counted := _counted(profile, sizes)):
        known = ", ".join(sorted({call for call, _ in profiles.by_size(profile)})) or "no call at all"
        raise PlumbError("the profile has no call that the tuner measures", profile.record, f"it has {known}")
    return dict(counted)


def _counted(profile: Profile, sizes: Sequence[int]) -> Counter[Row]:
    counted: Counter[Row] = Counter()
    for (call, _), total in profiles.by_size(profile).items():
        if (name := _operation(call)) == BARRIER:
            counted[Row(BARRIER, 0)] += total.count
        elif name in OPERATIONS and total.bytes:
            mean = total.bytes / total.count
            size = min(sizes, key=lambda size: abs(math.log(size / mean)))
            counted[Row(name, size)] += total.count
    return counted


def _operation(call: str) -> str:
    """``Iallreduce``, ``Allreduce_init`` -> ``allreduce``; a call that sends one message is half of a ping-pong."""
    name = re.sub(r"_init$", "", call.lower())
    if name not in OPERATIONS and name[:1] == "i" and (name[1:] in OPERATIONS or name[1:] in {*SENDS, BARRIER}):
        name = name[1:]
    return MESSAGES[0] if name in SENDS else MESSAGES[1] if name.startswith("sendrecv") else name


def shares(counted: Mapping[Row, int], curve: Curve) -> dict[Row, float]:
    """The share of each row in the time of all that was ``counted``, with the times of ``curve``; the sum is 1."""
    times = {row: count * curve[row] for row, count in counted.items() if row in curve}
    whole = sum(times.values())
    return {row: time / whole for row, time in times.items()}


def calls(bench: TuningBench) -> tuple[Counter[Row], float]:
    """The program's calls of each row, and the largest share of time that a rank spends in MPI.

    They are those of its profiles, one under each placement, without profiles with little MPI. Raises
    :class:`PlumbError` for a launch that is not verified.
    """
    counted: Counter[Row] = Counter()
    most = 0.0
    for record in bench.profiles():
        if not record.verified:
            raise PlumbError(f"the program cannot be profiled: {record.reasons[0]}", record.variant.name, "plumb run")
        profile = profile_files.of_record(record)
        share = max(map(profiles.mpi_share, profile.ranks), default=0.0)
        if share >= LEAST:
            counted.update(_counted(profile, bench.request.sizes))
        most = max(most, share)
    return counted, most


def couples(bench: TuningBench, configuration: Configuration) -> tuple[list[list[Variant]], list[tuple[str, Point]]]:
    """The program under the default and under ``configuration``, each variant; and the key of each figure."""
    both = [(bench.settings(process.of_library(side)), process.settings(side)) for side in (DEFAULT, configuration)]
    wanted = [
        replace(variant, figures=[each for each in variant.figures if not each.optional])
        for variant in bench.request.program
    ]
    pairs = [
        [
            replace(process.applied(variant, chosen), settings={**variant.settings, **library}, launches=1)
            for library, chosen in both
        ]
        for variant in wanted
    ]
    keys = [
        (variant.placement, Point(variant.name, Row(figure.name, 0)))
        for variant in wanted
        for figure in variant.figures
    ]
    return pairs, keys


def curves_of(record: Record) -> list[Curve | None]:
    """The figures of a program in each launch that counts, as times; None for a launch without all of them."""
    return [_curve(launch, record.variant.figures) for launch in record.counting()]


def _curve(launch: Launch, figures: Sequence[WantedFigure]) -> Curve | None:
    values = {Row(figure.name, 0): launch.find(figure) for figure in figures if not figure.optional}
    if not launch.verified or any(item is None or item.value <= 0 for item in values.values()):
        return None
    return {row: item.value if item.better == "lower" else 1 / item.value for row, item in values.items() if item}


def improvement(verdict: Verdict) -> str:
    """How much better the candidate is, in per cent with the interval: ``7.1 % less (6.2 % to 8.0 %)``."""
    if verdict.ratio is None or verdict.interval is None:
        return verdict.state
    sign = 1 if verdict.pairs.better == "higher" else -1
    low, high = sorted(sign * (ratio - 1) for ratio in verdict.interval)
    word = "more" if sign > 0 else "less"
    return f"{percent(sign * (verdict.ratio - 1))} {word} ({percent(low)} to {percent(high)})"
