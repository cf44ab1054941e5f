"""A made-up campaign with everything that a report shows, on a machine of two sockets that does not exist."""

import copy
import json
import random
import statistics
import zlib
from pathlib import Path
from typing import Any

import profiled
from samples import launch, plan, record, variant

from plumbline.launch.profiles import Profile
from plumbline.records import outcome

CAMPAIGN = "20260105T000000Z-abcdef"
CORES = 16
STACKS = ("intelmpi", "mpich", "openmpi")
#: what must never become markup, style or script
HOSTILE = (
    "</script ><script>window.broken=1</script><!--<script ><img src=x onerror=window.broken=2>\u2028'\"&amp;{{data}}"
)

Record = dict[str, Any]


def make(test: str, stack: str, params: dict[str, Any], launches: list[Record], number: int, **changes: Any) -> Record:
    """A valid record; its figure is the median of the first measurement of each launch."""
    first = [item["measurements"][0] for item in launches]
    samples = [item["value"] for item in first]
    figure = {"name": first[0]["metric"], "value": statistics.median(samples)}
    figure |= {name: first[0][name] for name in ("unit", "better")}
    figure |= {"launches": len(samples), "samples": samples, "limit": None, "reference": None}
    wanted = {"name": first[0]["metric"], "metric": first[0]["metric"], "where": first[0]["params"]}
    name = " ".join([test, *(f"%{key}={value}" for key, value in params.items())])
    base = record(
        id=f"{number:012x}", campaign=CAMPAIGN, launches=launches, figures=[figure],
        time=f"2026-01-05T00:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        variant=variant(test=test, name=name, params=params, stack=stack, figures=[wanted]),
    )  # fmt: skip
    base["stack"] = {**base["stack"], "name": stack}
    base["placement"] = {**base["placement"], "name": str(params.get("placement", f"numa:{params.get('cpu_node', 0)}"))}
    if "memory_node" in params:
        base["placement"]["memory"] = f"node:{params['memory_node']}"
    base["host"] = {**base["host"], "hostname": "node1", "cpus_online": f"0-{CORES - 1}"}
    return {**base, **copy.deepcopy(changes)}


def measured(metric: str, value: float, unit: str = "MB/s", better: str = "higher", **params: Any) -> Record:
    """A measurement."""
    return {"metric": metric, "value": value, "unit": unit, "better": better, "params": params, "iterations": 10}


def some(dice: random.Random, *wanted: tuple[str, float, str, str, dict[str, Any]], count: int = 3) -> list[Record]:
    """Launches of measurements (metric, value, unit, better, params) with 1 % of noise; the second disturbed."""
    found = []
    for order in range(count):
        item = launch(order, 1.0)
        item["measurements"] = [
            measured(metric, round(value * dice.gauss(1, 0.01), 4), unit, better, **params)
            for metric, value, unit, better, params in wanted
        ]
        found.append(item)
    found[1]["disturbed"] = True
    found[1]["disturbance"] = {"disturbed": True, "causes": ["steal 2.0 % of the time"], "figures": {}}
    return found


def stream_matrix(dice: random.Random) -> list[Record]:
    """Threads 1, 4 x four CPU nodes x four memory nodes on each stack, with a limit and a reference."""
    found = []
    for stack in STACKS:
        for threads in (1, 4):
            for cpu in range(4):
                for memory in range(4):
                    far = 1.0 if cpu == memory else 0.8 if cpu // 2 == memory // 2 else 0.55
                    value = far * (21000 if threads == 1 else 61000)
                    params = {"cpu_node": cpu, "memory_node": memory, "threads": threads}
                    launches = some(dice, ("triad", value, "MB/s", "higher", {}))
                    item = make("stream_numa", stack, params, launches, len(found))
                    item["variant"]["slow_on_purpose"] = cpu != memory
                    item["figures"][0]["limit"] = {
                        "value": 76800.0, "unit": "MB/s", "method": "0.5 packages x 6 channels x 3200 MT/s x 8 B",
                        "percent": round(100 * item["figures"][0]["value"] / 76800, 2),
                    }  # fmt: skip
                    found.append(item)
    slow, fast = found[5], found[7]
    for item, verdict, value in ((slow, "below", 90000.0), (fast, "above", 9000.0), (found[8], "within", 11500.0)):
        item["verdict"] = verdict
        item["figures"][0]["reference"] = {
            "value": value, "unit": "MB/s", "method": "calibrated", "file": "local/references/stream.yaml"
        }  # fmt: skip
    return found


def stream_threads(dice: random.Random, begin: int) -> list[Record]:
    """A curve over threads for two placements."""
    found = []
    for stack in STACKS:
        for placement, gain in (("compact", 0.7), ("scatter", 1.0)):
            for threads in (1, 2, 4, 8, 16):
                value = 21000 * min(threads, 7) ** gain
                launches = some(dice, ("triad", value, "MB/s", "higher", {}))
                params = {"placement": placement, "threads": threads}
                found.append(make("stream_threads", stack, params, launches, begin + len(found)))
    return found


def ping_pong(dice: random.Random, begin: int) -> list[Record]:
    """Curves of IMB and OSU for four distances, of launches enough to tell stacks apart."""
    found = []
    sizes = [0, *(2**power for power in range(23))]
    for stack in STACKS:
        for near, placement in enumerate(("pair:l3", "pair:numa", "pair:socket", "pair:xsocket")):
            base = 0.2 * (1 + near) * (1 + 0.3 * STACKS.index(stack))
            rows: list[tuple[str, float, str, str, dict[str, Any]]] = []
            for size in sizes:
                time = base + size / (12000 - 2000 * near)
                rows.append(("latency", time, "us", "lower", {"bytes": size}))
                if size:
                    rows.append(("bandwidth", size / time, "MB/s", "higher", {"bytes": size}))
            launches = some(dice, *rows, count=8)
            params = {"operation": "PingPong", "placement": placement}
            item = make("imb_pair", stack, params, launches, begin + len(found))
            item["benchmark"] = {**item["benchmark"], "suite": "imb", "version": "2021.11"}
            item["variant"]["context"] = {"benchmark": "PingPong"}
            found.append(item)
    return found


def cpu_of(rank: int) -> int:
    """The operating system numbers the cores of the two sockets in turn."""
    return rank % 8 * 2 + rank // 8


def pairs(dice: random.Random, number: int) -> Record:
    """The matrix of all pairs of sixteen cores."""
    rows: list[tuple[str, float, str, str, dict[str, Any]]] = []
    for metric, unit, better in (("latency", "us", "lower"), ("bandwidth", "MB/s", "higher")):
        for first in range(CORES):
            for second in range(first + 1, CORES):
                kind = "l3" if first // 4 == second // 4 else "socket" if first // 8 == second // 8 else "xsocket"
                time = {"l3": 0.05, "socket": 0.11, "xsocket": 0.24}[kind]
                value = time if metric == "latency" else 1500 / time
                ends = {"first": first, "second": second, "first_host": "node1", "second_host": "node1"}
                cpus = {"first_cpu": cpu_of(first), "second_cpu": cpu_of(second)}
                rows.append((metric, value, unit, better, {"mode": "serial", "class": kind, **ends, **cpus}))
        total = {"mode": "serial", "class": "all", "pairs": CORES * (CORES - 1) // 2}
        rows.append((f"worst_{metric}", 1.0, unit, better, total))
    item = make("pairs", "openmpi", {"placement": "core"}, some(dice, *rows), number)
    ranks = [
        {"local_rank": cpu, "cpus": [cpu], "places": [[cpu]], "mem": {"policy": "bind", "nodes": [cpu // 4]}}
        for cpu in range(CORES)
    ]
    return {**item, "plan": plan(placement="core", threads=1, ranks=ranks)}


def collectives(seed: int = 3) -> list[Record]:
    """A broadcast by the kernel, by OSU's port and by IMB, on one stack; and IMB's on another, which has no more."""
    dice = random.Random(seed)  # noqa: S311
    kernel: list[tuple[str, float, str, str, dict[str, Any]]] = []
    for size, way, value in ((8, "no", 0.415), (8, "yes", 0.4), (1 << 20, "no", 130.0)):
        params = {"operation": "bcast", "bytes": size, "in_place": way}
        kernel += [
            ("time", value, "us", "lower", params), ("time_low", value * 0.9, "us", "lower", params),
            ("time_high", value * 1.1, "us", "lower", params), ("invalid", 1.5, "%", "lower", params),
            ("clock_error", 0.02, "us", "lower", params),
        ]  # fmt: skip
    loop = [("latency", value, "us", "lower", {"bytes": size}) for size, value in ((8, 0.107), (1 << 20, 90.0))]
    mean = [("time_avg", value, "us", "lower", {"bytes": size}) for size, value in ((0, 0.05), (8, 0.33))]
    found = []
    for suite, version, benchmark, rows, stack in (
        ("kernels", "1db39be10531", "collective_bcast", kernel, "mpich"),
        ("osu", "mpi4py-4.1.2", "osu_bcast", loop, "mpich"),
        ("imb", "2021.11", "Bcast", mean, "mpich"),
        ("imb", "2021.11", "Bcast", mean, "intelmpi"),
    ):
        item = make(f"{suite}_bcast", stack, {"placement": "core"}, some(dice, *rows), len(found))
        item["benchmark"] = {**item["benchmark"], "suite": suite, "version": version}
        item["variant"]["context"] = {"benchmark": benchmark}
        found.append(item)
    return found


def invalid(number: int) -> list[Record]:
    """One that is not verified, one above its limit, and one whose every word is hostile."""
    bad = launch(0, 1.0, verified=False, status="failed", exit_code=1, reasons=["rank 1 on node1 left no witness"])
    bad["measurements"] = []
    bad["output_tail"] = "stream: out of memory"
    first = make("stream_ranks", "mpich", {"placement": "core"}, [launch(n, 1.0) for n in range(3)], number)
    first |= {"verified": False, "verdict": "invalid", "figures": [], "launches": [bad],
              "reasons": ["launch 0: rank 1 on node1 left no witness"]}  # fmt: skip
    above = make("stream_ranks", "openmpi", {"placement": "core"}, [launch(n, 900000.0) for n in range(3)], number + 1)
    above |= {"verdict": "invalid", "reasons": ["triad 900000 MB/s is above the physical limit 76800 MB/s (facts)"]}
    hostile = make("stream_ranks", "openmpi", {"placement": HOSTILE}, [launch(n, 5.0) for n in range(3)], number + 2)
    hostile |= {"nodes": [HOSTILE], "command": ["mpirun", HOSTILE], "environment": {"A": HOSTILE}}
    hostile |= {"verdict": "invalid", "reasons": [HOSTILE]}
    hostile["launches"][0]["reasons"] = [HOSTILE]
    return [first, above, hostile]


def campaign(seed: int = 1) -> list[Record]:
    """All of the above."""
    dice = random.Random(seed)  # noqa: S311
    found = stream_matrix(dice)
    found += stream_threads(dice, len(found))
    found += ping_pong(dice, len(found))
    found.append(pairs(dice, len(found)))
    return found + invalid(len(found))


def history(seed: int = 2, sessions: int = 40) -> list[Record]:
    """One variant in many earlier sessions: 8 % slower from session 25 on."""
    dice = random.Random(seed)  # noqa: S311
    found = []
    for number in range(sessions):
        value = 33000 * (0.92 if number >= 25 else 1.0)
        rows = ("triad", value * dice.gauss(1, 0.003), "MB/s", "higher", {})
        params = {"placement": "compact", "threads": 4}
        item = make("stream_threads", "mpich", params, some(dice, rows), 0x100000 + number)
        item |= {"campaign": f"old-{number}", "time": f"2025-12-{1 + number // 2:02d}T{number % 2 * 12:02d}:00:00.000Z"}
        found.append(item)
    return found


def write(results: Path, site: str = "local") -> Path:
    """The campaign, its history and its outcome as a results folder; ``PLUMB_RESULTS`` must name it already."""
    folder = results / site
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in (("campaign", campaign()), ("history", history())):
        lines = (json.dumps(item) + "\n" for item in records)
        (folder / f"20260105T000000Z-{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    ended: list[tuple[str, str, str | None]] = [("OK", "stream_numa /1a2b @local:default+mpich", None)] * 3
    ended += [("SKIP", f"imb_pair {HOSTILE} /1a2b @local:default+openmpi", "stack openmpi has no imb-mpi1")]
    ended += [("SKIP", f"imb_pair %n={n} /1a2b @local:default+mpich", "no two cores share a core") for n in range(4)]
    outcome.write(site, CAMPAIGN, "full", ended)
    return folder


def write_other(results: Path, site: str) -> None:
    """The same campaign on another system, with records of its own."""
    own = {"site": site, "session": f"{site}-session"}
    records = [{**item, **own, "id": f"{int(item['id'], 16) + (1 << 40):012x}"} for item in campaign(seed=5)]
    (results / site).mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(item) + "\n" for item in records)
    (results / site / f"{site}-session.jsonl").write_text(text, encoding="utf-8")


def solver(operation: str, placement: str, threads: int, values: list[float]) -> Record:
    """A valid record of a mode of the stencil, whose launches had the rates ``values``."""
    params = {"operation": operation, "placement": placement, "node_count": 1}
    name = " ".join(["jacobi_modes", *(f"%{key}={value}" for key, value in params.items())])
    item = record(id=f"{zlib.crc32(repr((name, values)).encode()):012x}", campaign=CAMPAIGN)
    item["variant"] = variant(test="jacobi_modes", name=name, params=params)
    item["placement"] = {**item["placement"], "name": placement, "ranks_per_node": 8 // threads, "threads": threads}
    figure = {"name": "rate", "unit": "MLUP/s", "samples": values, "value": sorted(values)[len(values) // 2]}
    item["figures"] = [{**item["figures"][0], **figure, "launches": len(values)}]
    return item


def ring(time: int = 400_000) -> Profile:
    """A ring of Sendrecv on 16 ranks whose messages all go to a rank of the other node, as placed in blocks."""
    documents = [
        profiled.rank_document(
            rank, 16,
            [
                profiled.call("Sendrecv", "exchange", profiled.sizes(5, 524288, time + 9000 * rank)),
                profiled.call("Allreduce", "collective", profiled.sizes(20, 8, 90_000), profiled.sizes(2, 64, 60_000)),
            ],
            {rank ^ 8: 524288}, host=f"node{rank // 8}",
        )
        for rank in range(16)
    ]  # fmt: skip
    places = [profiled.place(rank, core=rank % 8, host=f"node{rank // 8}") for rank in range(16)]
    return profiled.profile(*documents, places=places)
