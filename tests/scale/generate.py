"""Session files as a cluster's nightly campaign leaves them, as many as wanted, with records of realistic size.

Each session alternates one test variant on two stacks: two records of five launches with ten measurements each, so a
hundred measurements a file. Variants take turns night by night. Everything is drawn from a seed.
"""

import copy
import datetime
import json
import random
import re
import statistics
from pathlib import Path
from typing import Any

import samples

from plumbline.records.model import seal

#: measurements of one session file
PER_FILE = 100
LAUNCHES = 5
SIZES = (0, 8, 1024, 65536, 1048576)
STACKS = ("openmpi", "mpich")
#: test variants that take turns
VARIANTS = 100
#: about what plumbline.host.provenance finds on a server
HOST = {
    "hostname": "node001", "machine": "x86_64", "kernel": "6.1.0-18-amd64", "cpu": "AMD EPYC 7763 64-Core Processor",
    "microcode": "0xa0011d1", "virtual": "no", "firmware": "2.12.4", "product": "PowerEdge R6525",
    "governor": "performance", "frequency_driver": "acpi-cpufreq", "turbo": True, "smt": False, "thp": "madvise",
    "thp_defrag": "madvise", "numa_balancing": False, "zone_reclaim": 0, "swappiness": 60, "clocksource": "tsc",
    "kernel_command_line": " ".join(f"option{number}=value{number}" for number in range(25)),
    "load": [1.64, 1.83, 1.8], "cpus_online": "0-127", "memlock_bytes": 8388608, "stack_bytes": 8388608,
    "cgroup": {"cpu_quota": None, "memory_limit_bytes": None, "cpus_allowed": "0-127"}, "memory_bytes": 270_000_000_000,
}  # fmt: skip
RANK = {
    "host": "node001", "rank": 0, "local_rank": 0,
    "threads": [{"name": "IMB-MPI1", "affinity": [0], "last_cpu": 0}],
    "memory": {
        "page_bytes": 4096, "grain_bytes": 2097152, "threshold_bytes": 1048576, "source": "numa_maps", "nodes": {},
        "freed_nodes": {"0": 1031}, "freed_blocks": 5, "freed_blocks_skipped": 0, "untracked_mappings": 0,
    },
    "usage": {
        "wall_s": 0.382846, "user_s": 0.124436, "system_s": 0.0, "voluntary_switches": 65, "involuntary_switches": 10,
        "minor_faults": 2363, "major_faults": 0,
    },
}  # fmt: skip
DISTURBANCE = {
    "steal_fraction": 0.0, "cpu_resolution": 0.047105, "other_cpu_fraction": 0.023552, "load_before": 1.64,
    "cpu_pressure_fraction": 0.040753, "load": 1.64, "involuntary_switches_per_s": 0.0, "major_faults": 0,
}  # fmt: skip
_ID, _CAMPAIGN = re.compile(r'"id":"[0-9a-f]{12}"'), re.compile(r'("campaign":"[^"]*-)[0-9a-f]{6}')
KINDS = {"time": {"unit": "us", "better": "lower"}, "bandwidth": {"unit": "MB/s", "better": "higher"}}
FIGURES = (
    {"name": "time_8B", "metric": "time", "where": {"bytes": 8}},
    {"name": "bandwidth", "metric": "bandwidth", "where": {}},
)


def write(results: Path, measurements: int, seed: int = 1, site: str = "local") -> int:
    """Write ``measurements`` / :data:`PER_FILE` session files below ``results`` and return how many."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    templates = {(number, stack): _template(number, stack, site) for number in range(VARIANTS) for stack in STACKS}
    folder = results / site
    folder.mkdir(parents=True, exist_ok=True)
    files = measurements // PER_FILE
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    for number in range(files):
        time = begin + datetime.timedelta(days=number // VARIANTS, seconds=300 * (number % VARIANTS))
        session = f"{time:%Y%m%dT%H%M%SZ}-node001-{draw.getrandbits(24):06x}"
        couple = [templates[number % VARIANTS, stack] for stack in STACKS]
        lines = _couple(couple, session, f"{time:%Y-%m-%dT%H:%M:%S}.000Z", draw)
        (folder / f"{session}.jsonl").write_text("".join(lines), encoding="utf-8")
    return files


def write_gate(results: Path, variants: int = 70, launches: int = 90, seed: int = 1, site: str = "local") -> Path:
    """Write one session file as a long gate leaves it, two records of each of ``variants``; its name."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    file = results / site / "20260101T000000Z-node001-gate.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    couples = ([_template(number, stack, site, launches) for stack in STACKS] for number in range(variants))
    lines = (line for couple in couples for line in _couple(couple, file.stem, "2026-01-01T00:00:00.000Z", draw))
    file.write_text("".join(lines), encoding="utf-8")
    return file


def write_campaigns(results: Path, campaigns: int, variants: int = 72, seed: int = 1, site: str = "local") -> None:
    """Write ``campaigns``, one a day, each of ``variants`` records in sessions of two stacks."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    couples = [[_template(number, stack, site) for stack in STACKS] for number in range(variants // len(STACKS))]
    (results / site).mkdir(parents=True, exist_ok=True)
    for day in range(campaigns):
        begin = datetime.datetime(2023, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(days=day)
        name = f"{begin:%Y%m%dT%H%M%SZ}-{draw.getrandbits(24):06x}"
        for number, couple in enumerate(couples):
            time = begin + datetime.timedelta(seconds=60 * number)
            session = f"{time:%Y%m%dT%H%M%SZ}-node001-{draw.getrandbits(24):06x}"
            for record in couple:
                record["campaign"] = name
            lines = _couple(couple, session, f"{time:%Y-%m-%dT%H:%M:%S}.000Z", draw)
            (results / site / f"{session}.jsonl").write_text("".join(lines), encoding="utf-8")


def copy_site(results: Path, site: str, other: str, seed: int) -> None:
    """Write the sessions of ``site`` for the site ``other``, with new ids and seals, in a tenth of the time."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    (results / other).mkdir()
    for file in sorted((results / site).glob("*.jsonl")):
        text = file.read_text(encoding="utf-8").replace(f'"{site}"', f'"{other}"')
        text = _CAMPAIGN.sub(rf"\g<1>{seed:06x}", text)
        bodies = (line.rpartition(',"seal"')[0] for line in text.splitlines())
        new = (_ID.sub(f'"id":"{draw.getrandbits(48):012x}"', body, count=1) for body in bodies)
        (results / other / file.name).write_text("".join(seal(body + "}") + "\n" for body in new), encoding="utf-8")


def _couple(records: list[dict[str, Any]], session: str, time: str, draw: random.Random) -> list[str]:
    """The lines of two records whose launches alternate, with values drawn."""
    order = [draw.sample(range(2), 2) for _ in records[0]["launches"]]
    lines = []
    for side, record in enumerate(records):
        record["id"] = f"{draw.getrandbits(48):012x}"
        record["session"], record["time"] = session, time
        record["host"]["load"] = [round(draw.uniform(0, 4), 2) for _ in range(3)]
        _measure(record, side, order, draw)
        lines.append(seal(json.dumps(record, separators=(",", ":"))) + "\n")
    return lines


def _template(number: int, stack: str, site: str, launches: int = LAUNCHES) -> dict[str, Any]:
    params = {"operation": f"PingPong{number // 10}", "placement": f"pair:{number % 10},{number % 10 + 10}"}
    name = "imb_pair " + " ".join(f"%{key}={value}" for key, value in params.items())
    record = samples.record(campaign="20260101T000000Z-aaaaaa", site=site, host=copy.deepcopy(HOST))
    record["variant"] = samples.variant(test="imb_pair", name=name, params=params, stack=stack, figures=list(FIGURES))
    record["stack"]["name"] = stack
    record["stack"]["mpi"]["family"] = stack
    record["stack"]["sources"] = [
        {"name": f"part{part}", "version": "1.0", "hash": "sha256:" + f"{part}" * 64} for part in range(5)
    ]
    record["command"] = ["mpirun", "-n", "2", "plumb-bind", *(f"--option{item}" for item in range(20))]
    record["environment"] = {f"VARIABLE_{item}": f"/opt/stacks/{stack}/lib/{item}" for item in range(6)}
    ranks = [{**RANK, "rank": rank, "local_rank": rank} for rank in range(2)]
    measured = [
        {"metric": metric, "value": 0.0, **KINDS[metric], "params": {"bytes": size}, "iterations": 2000}
        for size in SIZES
        for metric in KINDS
    ]
    disturbance = {"disturbed": False, "causes": [], "figures": DISTURBANCE}
    record["launches"] = [
        samples.launch(index, 0.0, ranks=ranks, disturbance=disturbance, measurements=[{**item} for item in measured])
        for index in range(launches)
    ]
    return record


def _measure(record: dict[str, Any], side: int, order: list[list[int]], draw: random.Random) -> None:
    """Fill in the values of all launches, and the figures that follow from them."""
    chosen: dict[str, list[float]] = {"time_8B": [], "bandwidth": []}
    for launch in record["launches"]:
        launch["order"] = 2 * launch["index"] + order[launch["index"]].index(side)
        launch["disturbed"] = draw.random() < 0.1
        for item in launch["measurements"]:
            size = item["params"]["bytes"]
            time = (0.5 + size / 12000) * draw.gauss(1, 0.01)
            item["value"] = round(time if item["metric"] == "time" else size / time, 3)
            if item["metric"] == "time" and size == 8:
                chosen["time_8B"].append(item["value"])
        chosen["bandwidth"].append(max(row["value"] for row in launch["measurements"] if row["metric"] == "bandwidth"))
    record["figures"] = [
        {
            "name": name, "value": statistics.median(values), **KINDS[name.partition("_")[0]], "samples": values,
            "launches": len(values), "limit": None, "reference": None,
        }
        for name, values in chosen.items()
    ]  # fmt: skip
