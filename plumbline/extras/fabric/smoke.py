"""A ping-pong between two ranks, small and large, and its evidence: witnesses, and the library's own messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi, parsers
from plumbline.base import surroundings
from plumbline.base.schemas.site import Partition
from plumbline.launch import pipeline, process
from plumbline.launch.prepare import prepare
from plumbline.launch.witness.model import RankWitness, Transports, sent_between
from plumbline.mpi import settings
from plumbline.records.variant import Variant, WantedFigure
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Manifest

KERNEL = "pairs"
#: has the witness count the memory that is in huge pages
PAGES = "PLUMB_WITNESS_PAGES"
BATCHES, TRIPS, LARGE_TRIPS = 3, 1000, 4
SMALL_BYTES = 8
#: bytes of all small messages one way: more than libraries send over a connection that they only make
SMALL_VOLUME = SMALL_BYTES * TRIPS * BATCHES
#: large messages, both ways: a rank copies each by one call at least
LARGE_MESSAGES = 2 * LARGE_TRIPS * BATCHES
#: a launcher that ends its ranks may do so before they have said why
STARTS = 2
#: s of a launch on each node; one that waits for a peer that cannot be reached is ended then
TIME_LIMIT_S = 30


@dataclass(frozen=True)
class Smoke:
    """The evidence of a launch over ``nodes`` nodes. ``failed``: why it did not end well, empty if it did.

    ``late``: its time limit ended it. ``beside``: its disturbance, empty if nothing did. ``lines`` are all that it
    printed; ``variables`` those of its ranks, ``refused`` those that it did not inherit.
    """

    nodes: int
    failed: str
    late: bool
    beside: str
    seen: list[RankWitness]
    lines: list[str]
    variables: Mapping[str, str]
    refused: Mapping[str, str]
    figures: Mapping[str, float]

    @property
    def transports(self) -> list[Transports]:
        """Those of all ranks."""
        return [rank.transports for rank in self.seen if rank.transports]

    @property
    def copied_once(self) -> bool:
        """Whether ranks copied the large messages from one another's memory, by calls that the witness sees."""
        return sum(rank.copies for rank in self.transports) >= LARGE_MESSAGES

    @property
    def by_tcp(self) -> dict[str, int]:
        """The addresses by which messages went over TCP -> bytes; empty if none did."""
        return {address: size for address, size in sent_between(self.seen).items() if size >= SMALL_VOLUME}

    def opened(self, prefix: str) -> list[str]:
        """The device files that all ranks have open, whose names begin so."""
        names = [set(rank.devices) for rank in self.transports]
        return sorted(name for name in set.intersection(*names) if name.startswith(prefix)) if names else []


def run(stack: Manifest, site: str, partition: Partition, nodes: int, folder: Path) -> Smoke:
    """Launch the ranks and read their output; ``folder`` is for the launch.

    Raises :class:`PlumbError` for a stack or a partition that cannot be launched on.
    """
    reports = folder / f"told-{nodes}"
    reports.mkdir()
    variables = {**stack.family.reports, "UCX_LOG_FILE": f"{reports}/%h.%p", PAGES: "1"}
    job = prepare(_variant(stack, site, partition.name, nodes, variables), "stack check")
    texts: list[str] = []
    for _ in range(STARTS):
        ran = pipeline.start(job, 0, 0, folder / f"launch-{nodes}")
        files = (ran.output.folder / name for name in ("stderr", "stdout"))
        texts += [*map(process.printed, files), *ran.output.of_ranks()]
        if ran.ended.status != "failed":
            break
    pipeline.observe(ran)
    texts += map(process.printed, sorted(reports.iterdir()))
    failed, around = "; ".join(ran.why_ended()), surroundings.of_user()
    return Smoke(
        nodes, failed, ran.ended.status == "timeout", ran.launch.disturbance.short(), ran.seen,
        [line for text in texts for line in text.splitlines()],
        {name: value for name, value in job.ranks.environment.items() if name not in variables},
        {name: around[name] for name in job.record.removed_variables or [] if name.startswith(mpi.VARIABLES)},
        {} if failed else _figures(ran.output.of_ranks()),
    )  # fmt: skip


def _variant(stack: Manifest, site: str, partition: str, nodes: int, variables: dict[str, str]) -> Variant:
    trips = ("--batches", str(BATCHES), "--latency-trips", str(TRIPS), "--bandwidth-trips", str(LARGE_TRIPS))
    small = ("--mode", "serial", "--latency-bytes", str(SMALL_BYTES), "--warm-up", "0")
    figures = [WantedFigure(name=name, metric=name, where={}) for name in ("latency", "bandwidth")]
    return Variant.create(
        test="stack_check", name=f"stack check over {nodes} nodes", site=site, partition=partition, stack=stack.name,
        benchmark=KERNEL, arguments=[*small, *trips, "--json"], placement="compact", threads=1,
        ranks_per_node=2 // nodes, nodes=nodes, figures=figures, time_limit_s=TIME_LIMIT_S * nodes,
        environment=variables,
    )  # fmt: skip


def _figures(texts: list[str]) -> dict[str, float]:
    """Latency in us and bandwidth in MB/s; the library may have printed something around the document."""
    text = "".join(texts)
    document, _ = json.JSONDecoder().raw_decode(text[text.index('{"schema"') :])
    measurements = parsers.parse("kernel", json.dumps(document), {"kernel": KERNEL, "ranks": 2, "threads": 1})
    return {item.metric: float(item.value) for item in measurements if item.metric in ("latency", "bandwidth")}


def sources(stack: Manifest, partition: Partition, smoke: Smoke, root: Path = Path("/")) -> dict[str, tuple[str, str]]:
    """The variable of each setting -> its value and where it is set; variables go before files, as in the libraries."""
    family = stack.family
    origins: dict[str, tuple[str, str]] = {}
    for name, value, file in settings.of_files(family.settings_files(Path(stack.prefix), smoke.variables, root)):
        origins[name if name.startswith(mpi.VARIABLES) else family.setting_variable(name)] = value, str(file)
    declared = manifests.environment(stack, {})
    for name, value in smoke.variables.items():
        where = f"the manifest of stack {stack.name}" if name in declared else "the launch"
        of_site = f"environment of partition {partition.name} in site.yaml"
        origins[name] = value, of_site if name in partition.environment else where
    return origins
