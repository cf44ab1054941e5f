"""Rate of wrong advice of ``plumb advice``: jobs that are placed right, and jobs with a planted fault of eleven kinds.

``python tests/rates/advice.py [--full]`` prints a row for each kind, and fails if advice is given to more than 1 in 300
right jobs, or to fewer than 9 in 10 wrong ones of a kind. A job is the documents of its processes: on topologies of
real and made-up nodes, with the noise of real ones (threads of libraries, waiting, migrations, a few pages elsewhere).
"""

import functools
import itertools
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]

from witnesses import typed  # noqa: E402 - its folder is not on the path before

from plumbline.base.table import markdown  # noqa: E402
from plumbline.extras.advice import steps  # noqa: E402
from plumbline.extras.advice.steps import Node, Step  # noqa: E402
from plumbline.host import binder, machine  # noqa: E402
from plumbline.host.machine import Machine  # noqa: E402
from plumbline.launch import observed  # noqa: E402
from plumbline.launch.witness.model import Witness  # noqa: E402
from plumbline.proof.judged import Place  # noqa: E402

DATA = ROOT / "tests/data/topologies"
#: nodes: real ones, and hwloc's synthetic descriptions
TOPOLOGIES = (
    "epyc-2x64-smt2.xml", "skylake-2x20-snc2.xml", "grace-2x72.xml", "a64fx-4x12.xml", "rrze-nehalem.xml",
    "ranger-4x4.xml", "package:2 l3:4 core:8 pu:2", "package:1 core:4 pu:2", "one-socket-8-l3.xml",
)  # fmt: skip
#: program -> the gigabytes of a rank, whether its threads work at once, and whether it uses MPI
PROGRAMS = {"stencil": (2.0, True, True), "ping": (0.01, True, True), "omp": (1.0, True, False),
            "python": (0.3, False, False)}  # fmt: skip
#: launch line -> placement, threads of a rank, and the part of the node's ranks that it starts; that binds as srun and
#: mpirun do with these options
LINES = {
    "srun -c1 --cpu-bind=cores": ("core", None, 1.0),
    "mpirun --map-by numa:PE=2": ("scatter", 2, 1.0),
    "mpirun --map-by numa --bind-to numa": ("numa", None, 1.0),
    "srun --ntasks-per-socket=1": ("socket", None, 1.0),
    "OMP_PLACES=cores ./omp": ("node", None, 1.0),
    "mpirun --map-by slot:PE=4": ("compact", 4, 1.0),
    "OMP_PROC_BIND=spread srun -n2": ("spread", 2, 1.0),
    "srun --distribution=block:cyclic, half": ("scatter", 1, 0.5),
    "./serial": ("none", None, 0.0),
}
#: every combination of program, launch line and node, fixed before the rules were
COMBINATIONS = tuple(
    (program, line, topology)
    for place, (line, topology) in enumerate(itertools.product(LINES, TOPOLOGIES))
    for program in [tuple(PROGRAMS)[place % len(PROGRAMS)]]
)
#: right jobs by the documents, and most of them that may get advice
RIGHT, WRONG, MOST_WRONG = 900, 10, 1 / 300
HEADER = ("jobs", "number", "with advice", "of that kind")


@functools.cache
def node(topology: str) -> tuple[Machine, dict[int, str]]:
    """The machine, and each CPU's core."""
    this = machine.load(DATA / topology if topology.endswith("xml") else topology)
    return this, {cpu: str(core.cpus) for core in this.cores for cpu in core.cpus}


@functools.cache
def plan(topology: str, placement: str, threads: int | None, part: float) -> list[Any]:
    """The planned ranks of a launch line."""
    name = DATA / topology if topology.endswith("xml") else topology
    whole = binder.resolve(placement, threads=threads, topology=str(name)).ranks
    if part == 1.0:
        return list(whole)
    return list(
        binder.resolve(placement, threads=threads, ranks=max(1, int(len(whole) * part)), topology=str(name)).ranks
    )


class Job(NamedTuple):
    """The documents of a job, before they are witnesses, and the CPUs that it has."""

    topology: str
    ranks: list[dict[str, Any]]
    allowed: frozenset[int]
    gpus: dict[str, frozenset[int]]


def right(program: str, line: str, topology: str, noise: random.Random) -> Job:
    """A job that runs as its launch line should."""
    this, _ = node(topology)
    gigabytes, at_once, mpi = PROGRAMS[program]
    threads_of = {cpu: core.cpus for core in this.cores for cpu in core.cpus}
    ranks = []
    planned = plan(topology, *LINES[line])
    for number, each in enumerate(planned):
        places = each.places or ([list(each.cpus)] if line == "./serial" else [[cpu] for cpu in each.cpus])
        wall = noise.uniform(1, 100)
        loads = [wall * noise.uniform(0.85, 1.0) for _ in places]
        loads = loads if at_once else [load / len(loads) for load in loads]
        # a launcher binds to cores, with all hardware threads, or a thread may be anywhere on its rank's
        wide = noise.random() < 0.5
        threads = [
            {"tid": 10 + place, "affinity": sorted({t for cpu in cpus for t in (threads_of[cpu] if wide else [cpu])}),
             "cpu_s": load, "migrations": noise.randrange(3)}
            for place, (cpus, load) in enumerate(zip(places, loads, strict=True))
        ]  # fmt: skip
        helper = {"tid": 9, "affinity": list(this.cpus), "cpu_s": noise.uniform(0, 0.02) * wall / len(loads)}
        homes = [home.index for thread in threads for cpu in thread["affinity"] if (home := this.home_node(cpu))]
        size = gigabytes * noise.uniform(0.3, 1.5) * 2**30
        pages: dict[int, int] = {}
        for home in homes:
            pages[home] = pages.get(home, 0) + int(size / 4096 / len(homes))
        far = noise.choice([home.index for home in this.with_memory])
        pages[far] = pages.get(far, 0) + int(noise.uniform(0, 0.03) * size / 4096)
        ranks.append({
            "rank": number if len(planned) > 1 else -1, "local_rank": number, "size": len(planned), "pid": 100 + number,
            "root": 0, "ancestors": [1], "program": f"/opt/{program}", "mpi": mpi,
            "world": len(planned) if mpi and len(planned) > 1 else None,
            "threads": [*threads, *([helper] if mpi else [])], "memory": {"nodes": pages},
            "usage": {"wall_s": wall, "user_s": sum(loads)},
            "window": {"wall_s": wall, "cpu_s": sum(loads), "delay_s": wall * noise.uniform(0, 0.02)},
            "transports": {"shm_bytes": 1 << 26, "sysv_bytes": 0, "file_bytes": 0, "file": "", "copies": 9,
                           "connections": 1, "tcp": [("n1:1", "n9:9")], "tcp_sent": [noise.randrange(1 << 31)],
                           "devices": []},
        })  # fmt: skip
    used = {t for rank in planned for cpu in rank.cpus for t in threads_of[cpu]}
    # the whole node, or the job has its cores only; one node, or two
    allowed = frozenset(used if noise.random() < 0.3 and line != "./serial" else this.cpus)
    if len(ranks) > 1 and noise.random() < 0.3:
        more = len(ranks)
        ranks += [{**rank, "host": "n2", "rank": rank["rank"] + more} for rank in ranks]
        ranks = [{**rank, "size": 2 * more, "world": rank["world"] and 2 * more} for rank in ranks]
    return Job(topology, ranks, allowed, {})


def faulty(line: str, topology: str, noise: random.Random) -> Job:
    """A right job on one whole node, to plant a fault in."""
    this, _ = node(topology)
    ranks = [rank for rank in right("stencil", line, topology, noise).ranks if rank.get("host", "n1") == "n1"]
    ranks = [{**rank, "size": len(ranks), "world": rank["world"] and len(ranks)} for rank in ranks]
    return Job(topology, ranks, frozenset(this.cpus), {})


def _all_on(job: Job, cpus: list[int]) -> Job:
    for rank in job.ranks:
        for thread in rank["threads"]:
            thread["affinity"] = cpus
    return job


def _unbound(job: Job, noise: random.Random) -> Job:
    job.ranks[0]["threads"][0]["migrations"] = noise.randrange(1, 20)
    return _all_on(job, list(node(job.topology)[0].cpus))


def _crowded(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    for rank in job.ranks:
        rank["window"]["delay_s"] = rank["window"]["wall_s"] * 0.7
    return _all_on(job, [this.cores[0].cpus[0]])


def _few_cpus(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    cpus = [core.cpus[0] for core in this.cores[: max(1, len(job.ranks) // 2)]]
    for rank in job.ranks:
        rank["window"]["delay_s"] = rank["window"]["wall_s"] * 0.6
    return _all_on(job, cpus)._replace(allowed=frozenset(cpus))


def _far_memory(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    for rank in job.ranks:
        near = {home.index for t in rank["threads"] for cpu in t["affinity"] if (home := this.home_node(cpu))}
        rank["threads"] = rank["threads"][:-1] if rank["mpi"] else rank["threads"]
        near = {home.index for t in rank["threads"] for cpu in t["affinity"] if (home := this.home_node(cpu))}
        others = [each.index for each in this.with_memory if each.index not in near]
        rank["memory"] = {"nodes": {others[0]: noise.randrange(1 << 17, 1 << 19)}}
    return job


def _one_sided(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    for rank in job.ranks:
        rank["memory"] = {"nodes": {this.with_memory[0].index: noise.randrange(1 << 17, 1 << 20)}}
    return job


def _packed(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    first = [core for core in this.cores if set(core.cpus) <= set(this.numa_nodes[0].cpus)]
    count = max(2, len(first) * noise.choice([2, 4]) // 4)
    ranks = job.ranks[:count]
    for number, (rank, core) in enumerate(zip(ranks, first, strict=False)):
        thread = {**rank["threads"][0], "affinity": list(core.cpus)}
        rank |= {"threads": [thread], "world": len(ranks), "size": len(ranks), "rank": number}
        rank["window"] |= {"cpu_s": thread["cpu_s"]}
        rank["memory"] = {"nodes": {this.numa_nodes[0].index: 1 << 18}}
    return job._replace(ranks=ranks)


def _tcp(job: Job, noise: random.Random) -> Job:
    ends = [f"10.0.0.1:{1000 + number}" for number in range(len(job.ranks))]
    for number, rank in enumerate(job.ranks):
        peers = [end for end in ends if end != ends[number]]
        rank["transports"] |= {"tcp": [(ends[number], peer) for peer in peers],
                               "tcp_sent": [noise.randrange(1 << 28, 1 << 31)] * len(peers)}  # fmt: skip
    return job


def _past_fabric(job: Job, noise: random.Random) -> Job:
    count = len(job.ranks)
    ranks = [*job.ranks, *({**rank, "host": "n2", "rank": rank["rank"] + count} for rank in job.ranks)]
    for number, rank in enumerate(ranks):
        ends = tuple(f"10.0.0.{at // count}:{1000 + at}" for at in (number, (number + count) % (2 * count)))
        sent = {"tcp": [ends], "tcp_sent": [noise.randrange(1 << 28, 1 << 31)]}
        rank |= {"size": 2 * count, "world": 2 * count, "transports": rank["transports"] | sent}
    return job._replace(ranks=ranks)


def _far_gpu(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    gpus = {}
    for number, rank in enumerate(job.ranks):
        mine = {cpu for thread in rank["threads"][:-1] for cpu in thread["affinity"]}
        rank["threads"] = rank["threads"][:-1]
        gpus[f"0000:{number:02x}:00.0"] = frozenset(this.cpus) - mine
        rank["gpu_address"] = f"0000:{number:02X}:00.0"
    return job._replace(gpus=gpus)


def _hardware_threads(job: Job, noise: random.Random) -> Job:
    this, _ = node(job.topology)
    cpus = [cpu for core in this.cores for cpu in core.cpus][: len(job.ranks) // 2 * 2]
    for rank, cpu in zip(job.ranks, cpus, strict=False):
        rank["threads"] = [{**rank["threads"][0], "affinity": [cpu]}]
    return job


#: kind of advice -> what plants the fault, and the launch line and nodes that can have it
FAULTS = {
    observed.SHARED: (_crowded, "srun -c1 --cpu-bind=cores", TOPOLOGIES),
    observed.SHORT: (_few_cpus, "srun -c1 --cpu-bind=cores", TOPOLOGIES),
    observed.UNBOUND: (_unbound, "mpirun --map-by numa:PE=2", TOPOLOGIES),
    observed.FAR_MEMORY: (_far_memory, "srun -c1 --cpu-bind=cores", TOPOLOGIES[:6]),
    observed.ONE_SIDED: (_one_sided, "OMP_PLACES=cores ./omp", TOPOLOGIES[:6]),
    observed.UNEVEN: (_packed, "srun -c1 --cpu-bind=cores", TOPOLOGIES[:6]),
    observed.BY_TCP: (_tcp, "mpirun --map-by numa --bind-to numa", TOPOLOGIES[:6]),
    observed.PAST_FABRIC: (_past_fabric, "srun -c1 --cpu-bind=cores", TOPOLOGIES[:6]),
    observed.FAR_GPU: (_far_gpu, "srun --ntasks-per-socket=1", ("epyc-2x64-smt2.xml", "skylake-2x20-snc2.xml")),
    f"{observed.SHARED} (hardware threads)": (_hardware_threads, "srun --distribution=block:cyclic, half",
                                              ("epyc-2x64-smt2.xml", "rrze-nehalem.xml")),
    steps.FEWER_CPUS: (lambda job, noise: job, "srun -c1 --cpu-bind=cores", TOPOLOGIES),
}  # fmt: skip


def judged(job: Job) -> Step:
    """The document of the job's launch."""
    this, siblings = node(job.topology)
    documents = [msgspec.convert(msgspec.to_builtins(typed(rank), str_keys=True), Witness, strict=False)
                 for rank in job.ranks]  # fmt: skip
    place = Place(this, job.allowed, siblings, job.gpus, ["mlx5_0"])
    ends = {f"{each.host}.{each.pid}": 1000.0 for each in documents}
    (step,) = steps.steps("9", documents, ends, dict.fromkeys(("n1", "n2"), Node(place, "srun", {"name": "heat"})), [])
    return step


def before(step: Step, cpus: int) -> list[Step]:
    """Earlier jobs of its name."""
    more = {"began": 1.0, "cpus": cpus}
    return [msgspec.structs.replace(step, job=str(number), **more) for number in range(3)]


def main() -> int:
    """Print the rates; 1 if they are worse than promised."""
    is_full = "--full" in sys.argv
    noise = random.Random(64)  # noqa: S311
    count, rows, worse = (RIGHT if is_full else len(COMBINATIONS)), [], []
    advised, kinds = 0, set()
    for number in range(count):
        step = judged(right(*COMBINATIONS[number % len(COMBINATIONS)], noise))
        step = steps.with_history(step, before(step, step.cpus))
        if step.verdict != "right":
            kinds.add(f"{COMBINATIONS[number % len(COMBINATIONS)]}: {step.advice or step.doubts}")
        advised += bool(step.advice)
    rows.append(("right", str(count), str(advised), "–"))
    if advised > MOST_WRONG * count:
        worse.append(f"{advised} of {count} right jobs got advice")
    for kind, (plant, line, nodes) in FAULTS.items():
        hits = given = 0
        for number in range(WRONG if is_full else 3):
            job = plant(faulty(line, nodes[number % len(nodes)], noise), noise)
            step = judged(job)
            step = steps.with_history(step, before(step, 4 * step.cpus) if kind == steps.FEWER_CPUS else [])
            given += bool(step.advice)
            hits += any(advice.kind == kind.partition(" (")[0] for advice in step.advice)
        rows.append((kind, str(number + 1), str(given), str(hits)))
        if hits < 0.9 * (number + 1):
            worse.append(f"{kind}: {hits} of {number + 1}")
    print(markdown(HEADER, rows, right=HEADER[1:]))
    for text in (*sorted(kinds), *worse):
        print(text, file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
