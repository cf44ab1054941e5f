"""Facts of nodes that nobody has here. ``node_facts.py DIR N`` writes N of them, three of which differ."""

import copy
import json
import sys
from pathlib import Path

from plumbline.base import schemas
from plumbline.site.nodes.model import Node

XML = '<?xml version="1.0"?>\n<topology version="2.0">\n</topology>\n'
NODE = {
    "schema": 1,
    "host": "node1",
    "job": "j1",
    "time": 1000.0,
    "monotonic": 5.0,
    "machine": "x86_64",
    "kernel": "6.1.0-20",
    "distribution": "Rocky Linux 9.4",
    "virtual": None,
    "cpu": {"model": "AMD EPYC 9654", "microcode": "0xa101148", "simd": ["avx2", "avx512f"]},
    "packages": 2,
    "cores": 4,
    "threads": 8,
    "smt": True,
    "cpus_online": "0-7",
    "memory_bytes": 252 << 30,
    "numa": [
        {"node": 0, "cpus": "0-1,4-5", "memory_mib": 129024, "distances": [10, 32]},
        {"node": 1, "cpus": "2-3,6-7", "memory_mib": 129024, "distances": [32, 10]},
    ],
    "cgroup": {"cpu_quota": None, "memory_limit_bytes": None, "cpus_allowed": "0-7"},
    "load": [0.0, 0.1, 0.2],
    "nics": [
        {"name": "eth0", "physical": True, "driver": "mlx5_core", "speed_mbit": 25000, "state": "up", "numa": 0},
        {"name": "docker0", "physical": False, "driver": None, "speed_mbit": None, "state": "down", "numa": None},
    ],
    "hcas": [
        {
            "name": "mlx5_0",
            "type": "MT4123",
            "numa": 0,
            "ports": [{"port": 1, "state": "ACTIVE", "rate_gbit": 200.0, "link_layer": "InfiniBand"}],
        }
    ],
    "gpus": [],
    "knobs": {
        "governor": "performance",
        "frequency_driver": "acpi-cpufreq",
        "turbo": False,
        "thp": "always",
        "thp_defrag": "madvise",
        "numa_balancing": False,
        "zone_reclaim": 0,
        "swappiness": 10,
        "perf_event_paranoid": 2,
        "clocksource": "tsc",
        "memlock_bytes": "unlimited",
        "shm_bytes": 128 << 30,
        "ptrace_scope": 0,
        "huge_pages": 0,
        "xpmem": False,
        "knem": False,
    },
    "limits": {"core_ghz": 3.7, "simd_bits": 512, "link_gbit": 200.0},
    "mount": {"path": "/shared", "type": "nfs4", "source": "server:/shared"},
    "tools": {
        name: {"path": f"/usr/bin/{name}", "version": f"{name} 1"}
        for name in ("gcc", "cmake", "numactl", "lstopo-no-graphics")
    },
    "scheduler": {"TaskPlugin": "task/affinity,task/cgroup"},
    "missing": {"limits.memory_mts": "only root may read the firmware's tables (dmidecode)"},
}


def node(host, **changes):
    """Facts of ``host``; ``knobs`` and ``cpu`` are merged into the usual ones."""
    facts = copy.deepcopy(NODE)
    for key, value in changes.items():
        facts[key] = {**facts[key], **value} if key in ("knobs", "cpu") else value
    return {**facts, "host": host}


def typed(host, **changes):
    """The same as readers have it."""
    return schemas.convert("node", node(host, **changes), Node, host)


def write(folder, *nodes, asked=None, size=None, began=999.0, ended=1002.0, job="j1", xml=XML):
    """A folder as a collection leaves it."""
    folder.mkdir(exist_ok=True)
    for facts in nodes:
        (folder / f"{facts['host']}.json").write_text(json.dumps(facts))
        if xml:
            (folder / f"{facts['host']}.xml").write_text(xml)
    names = [facts["host"] for facts in nodes] if asked is None else asked
    note = {"job": job, "asked": names, "size": size or len(names), "began": began, "ended": ended}
    (folder / ".job.json").write_text(json.dumps({**note, "scheduler": "squeue", "queue": "main"}))
    return folder


if __name__ == "__main__":
    odd = {7: {"memory_bytes": 188 << 30}, 8: {"smt": False}, 9: {"kernel": "6.1.0-18"}}
    every = (node(f"node{number:04d}", **odd.get(number, {})) for number in range(1, int(sys.argv[2]) + 1))
    write(Path(sys.argv[1]), *every)
