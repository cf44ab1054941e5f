"""Measure how often a first campaign is called wrong: a healthy machine not fine, or a fault not named.

    python tests/rates/first.py [--full]

Ends with status 1 if a rate is worse than promised.

Each campaign is a real one (tests/data/first-campaign.jsonl.gz: two cores, three libraries, 72 variants) with other
noise. Log times: the session differs from set-up by ``session`` (standard deviation), its figures by as much again,
launches by ``launch``; every tenth launch has a tail of Exp(10 %). Of a share of the launches time is ``stolen``: by
Exp(30 %), seen as a disturbance in nine of ten.
"""

import gzip
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from promises import Promises, command_line

from plumbline.base import units
from plumbline.judge.expectations import called
from plumbline.records.launch import Launch
from plumbline.records.model import Record, decode
from plumbline.show.report import answer
from plumbline.show.report.findings import Campaign

DATA = Path(__file__).parents[1] / "data" / "first-campaign.jsonl.gz"
LINES = gzip.decompress(DATA.read_bytes()).splitlines()
#: how many times slower a launch of a record is
Slower = Callable[[Record, Launch], float]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of log times, and the share of launches that time is stolen from."""

    launch: float
    session: float
    stolen: float


NOISES = (Noise(0.01, 0.01, 0.02), Noise(0.02, 0.02, 0.1), Noise(0.03, 0.03, 0.2), Noise(0.05, 0.04, 0.35))


def measured(records: list[Record], slower: Slower) -> list[Record]:
    """``records`` whose launches are ``slower``; shares in percent stay as they are."""
    for record in records:
        for launch in record.launches:
            times = slower(record, launch)
            launch.measurements = [
                replace(
                    item,
                    value=item.value
                    * (1 if item.unit == units.PERCENT else times if item.better == "lower" else 1 / times),
                    model=item.model / times if isinstance(item.model, float) else item.model,
                )
                for item in launch.measurements
            ]
        for figure, wanted in zip(record.figures, record.variant.figures, strict=False):
            items = [launch.measurement(wanted) for launch in record.launches]
            figure.samples = [item.value for item in items]
            figure.value = statistics.median(figure.samples)
            if figure.ceiling and figure.ceiling.measured is None:
                figure.ceiling = replace(figure.ceiling, value=statistics.median(item.model for item in items))
    return records


def healthy(noise: Noise, seed: int) -> list[Record]:
    """A first campaign of the same machine."""
    draw = np.random.default_rng(seed)
    whole, figures = draw.normal(0, noise.session), {}

    def slower(record: Record, launch: Launch) -> float:
        log = whole + figures.setdefault(record.id, draw.normal(0, noise.session)) + draw.normal(0, noise.launch)
        log += draw.exponential(0.1) if draw.random() < 0.1 else 0.0
        if draw.random() < noise.stolen:
            log += draw.exponential(0.3)
            launch.disturbed = bool(draw.random() < 0.9)
        return math.exp(log)

    return measured([decode(line) for line in LINES], slower)


def _shares_a_core(record: Record, launch: Launch) -> float:
    if record.stack.name != "mpich" or record.plan.bound is not False:
        return 1.0
    launch.ranks[0].threads[:] = [replace(thread, last_cpu=1) for thread in launch.ranks[0].threads]
    return 2.0


def _without_shared_memory(record: Record, launch: Launch) -> float:
    talks = len(record.plan.ranks) > 1 and record.variant.test != "pi_sum" and not _is_memory(record)
    if record.stack.name != "openmpi" or not talks:
        return 1.0
    launch.transports = ["tcp"]
    return 7.0


def _is_memory(record: Record) -> bool:
    return record.variant.test.startswith(("stream", "membw", "daxpy", "jacobi"))


#: a fault -> how much slower it makes each launch, and the words that name it
FAULTS: dict[str, tuple[Slower, str]] = {
    "memory, one placement: half": (
        lambda r, _: 2.0 if called(r) == "stream_ranks (core 2x1 local)" else 1.0,
        "stream_ranks",
    ),
    "memory, all: 0.6": (lambda r, _: 1 / 0.6 if _is_memory(r) else 1.0, "slow memory"),
    "one library: 7 times": (
        lambda r, _: 7.0 if r.stack.name == "openmpi" and "latency" in r.variant.name else 1.0,
        "openmpi is slow",
    ),
    "shared memory of a library is off": (_without_shared_memory, "its shared memory is off, transports: tcp"),
    "two threads on a core": (_shares_a_core, "mpich without placement (2 threads on CPU 1)"),
    "half of the cores": (lambda r, _: 2.0 if len(r.plan.cpus) > 1 else 1.0, "half of the 2 cores"),
    "clock: 0.7": (lambda r, _: 1 / 0.7 if not _is_memory(r) else 1.1, "slow clock"),
}  # fmt: skip


def said(records: list[Record]) -> str:
    """The sentence of a campaign."""
    return answer.sentence(Campaign([(record, place) for place, record in enumerate(records)]))


def tight(records: list[Record]) -> list[Record]:
    """Those whose first figure must not lose 30 %."""
    campaign = Campaign([(record, place) for place, record in enumerate(records)])
    return [
        each.record
        for each in campaign.first
        if each.kind in ("memory", "program") and each.times / 0.7 > each.limit and each.state == "as expected"
    ]


def main() -> int:
    """Print the tables."""
    count = 200 if command_line(__doc__, "200 campaigns a line instead of 20").parse_args().full else 20
    promises = Promises()
    heads = [f"{100 * n.launch:g} %, {100 * n.session:g} %, {100 * n.stolen:g} %" for n in NOISES]
    print(f"| launches, sessions, stolen | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    false = [sum(not said(healthy(noise, seed)).startswith("Yes") for seed in range(count)) for noise in NOISES]
    print(f"| healthy, not fine | {' | '.join(f'{100 * one / count:g} %' for one in false)} |", flush=True)
    for head, one in zip(heads, false, strict=True):
        promises.rare(f"not fine, {head}", one, count, 0.05)
    for name, (slower, words) in FAULTS.items():
        named = [
            sum(words in said(measured(healthy(noise, seed), slower)) for seed in range(count)) / count
            for noise in NOISES
        ]
        print(f"| {name} | {' | '.join(f'{100 * one:g} %' for one in named)} |", flush=True)
        promises.keep(f"named, {name}: {named}", is_kept=min(named[:2]) >= 0.9)
    known = tight([decode(line) for line in LINES])
    lost = []
    for noise in NOISES:
        seen = 0
        for seed in range(count):
            which = known[seed % len(known)]
            records = measured(healthy(noise, seed), lambda r, _, name=which.id: 1 / 0.7 if r.id == name else 1.0)
            words = which.variant.test if which.plan.bound else f"{which.stack.name} without placement"
            seen += words in said(records)
        lost.append(seen / count)
    print(f"| one of {len(known)} figures: 0.7 | {' | '.join(f'{100 * one:g} %' for one in lost)} |", flush=True)
    promises.keep(f"named, a figure that lost 30 %: {lost}", is_kept=lost[0] >= 0.9)
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
