"""``plumb launch``: every launch of one variant, or of several in turn, in one session, with its record.

Nothing measured depends on who called: the record is on disk after every launch.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import random
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import parsers, paths, provenance, schemas, site, witness
from plumbline.errors import PlumbError
from plumbline.launch import figures, hosts, launchers, process, srun
from plumbline.records import store, suite
from plumbline.references import References
from plumbline.stacks import manifest as manifests
from plumbline.topology import machine, plan
from plumbline.witness import disturbance
from plumbline.witness.compare_nodes import compare_nodes

#: characters of a failed launch's output that its record keeps
TAIL = 2000


@dataclass
class Job:
    """One variant, resolved on this machine."""

    variant: dict[str, Any]
    manifest: dict[str, Any]
    facts: dict[str, Any]
    host: machine.Machine
    plan: dict[str, Any]
    launcher: dict[str, Any]
    layout: launchers.Layout
    #: names of the variables that ranks on other nodes must get too
    exported: tuple[str, ...]
    command: list[str]
    environment: dict[str, str]
    record: dict[str, Any]


def run(
    variants: list[dict[str, Any]],
    folder: Path,
    seed: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Path, list[dict[str, Any]]]:
    """Run all launches of ``variants``, in random order if there are several, with ``folder`` as work space.

    Returns the session file and its records. ``seed`` makes the order repeatable; it is kept in the record. Raises
    :class:`PlumbError` for a variant that cannot be run here, and :class:`process.Interrupted` (the record, with the
    launches finished so far, is written) on SIGINT or SIGTERM.
    """
    for variant in variants:
        schemas.check("variant", variant, "variant description")
    session = new_session()
    jobs = [prepare(variant, session) for variant in variants]
    expected = References.load(variants[0]["site"])
    file = store.session_file(variants[0]["site"], session)
    seed = secrets.randbits(32) if seed is None else seed
    records = [job.record for job in jobs]
    for record in records:
        record["environment"]["PLUMB_SEED"] = str(seed)
    order = schedule([job.variant["launches"] for job in jobs], seed)
    store.write(file, records)
    try:
        for position, (which, index) in enumerate(order):
            job = jobs[which]
            began = time.monotonic()
            launch = launch_once(job, index, position, folder / f"launch-{position}")
            job.record["launches"].append(launch)
            figures.settle(job.record, job.facts, job.host, expected)
            store.write(file, records)
            say(_progress(job, launch, position + 1, len(order), time.monotonic() - began))
    except process.Interrupted:
        _close(file, records, "interrupted")
        raise
    except OSError as error:
        _close(file, records, "interrupted")
        cure = "launches that had finished are recorded"
        raise PlumbError(f"a launch could not be started: {error}", str(folder), cure) from error
    _close(file, records, "complete")
    return file, records


def stack_sha256(manifest: dict[str, Any]) -> str:
    """What tells two states of a stack apart: SHA-256 of its manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def new_session() -> str:
    """A name that sorts by time and never repeats: UTC time, host, random."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{now:%Y%m%dT%H%M%SZ}-{provenance.host_name().split('.')[0]}-{secrets.token_hex(3)}"


def schedule(launches: list[int], seed: int) -> list[tuple[int, int]]:
    """The order of launches as (variant, index) pairs: round by round, each round in an order drawn from ``seed``."""
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    order: list[tuple[int, int]] = []
    for index in range(max(launches)):
        row = [which for which, count in enumerate(launches) if index < count]
        draw.shuffle(row)
        order += [(which, index) for which in row]
    return order


def prepare(variant: dict[str, Any], session: str) -> Job:
    """Resolve stack, plan and command of ``variant``; raises :class:`PlumbError` when it cannot run here."""
    manifest = manifests.load(variant["stack"])
    manifests.check(manifest)
    if variant["benchmark"] not in manifest["benchmarks"]:
        offered = ", ".join(sorted(manifest["benchmarks"]))
        raise PlumbError(
            f"stack {variant['stack']} has no benchmark '{variant['benchmark']}'", "its manifest", f"it has {offered}"
        )
    benchmark = manifest["benchmarks"][variant["benchmark"]]
    resolved = plan.resolve(
        variant["placement"], threads=variant["threads"], memory=variant["memory"], ranks=variant["ranks_per_node"]
    )
    partition = site.partition(site.load(variant["site"]), variant["partition"])
    named = hosts.chosen(partition, variant["nodes"])
    layout = launchers.Layout(
        nodes=variant["nodes"],
        ranks_per_node=variant["ranks_per_node"] or len(resolved["ranks"]),
        hosts=named or hosts.share(variant["nodes"], os.environ),
        round_robin=variant["placement"] == "roundrobin",
        ssh=bool(named),
    )
    launcher: dict[str, Any] = manifest["launcher"]
    needs: dict[str, str] = {}
    given = {**partition.get("environment", {}), **variant["environment"]}
    stack = manifests.environment(manifest, dict(os.environ))
    if partition.get("launcher") == "srun":
        launcher, needs = srun.launcher(manifest, partition, {**os.environ, **stack, **given})
    exported = tuple({**stack, **needs, **given})
    start = launchers.prefix(launcher, layout, variant["placement"] != "none", exported)
    binder = [str(paths.binder()), "--placement", variant["placement"], "--threads", str(resolved["threads"])]
    binder += ["--memory", resolved["memory"], "--witness", "witness", "--output", "output", "--"]
    command = [*start.arguments, *binder, *benchmark["command"], *variant["arguments"]]
    changes = {**stack, **start.environment, **needs, **given}
    inherited = {name: value for name, value in os.environ.items() if name not in start.removed}
    record = _new_record(variant, session, manifest, benchmark, resolved, layout, command, changes)
    return Job(
        variant,
        manifest,
        partition.get("facts", {}),
        machine.load(),
        resolved,
        launcher,
        layout,
        exported,
        command,
        {**inherited, **changes},
        record,
    )


def _new_record(
    variant: dict[str, Any],
    session: str,
    manifest: dict[str, Any],
    benchmark: dict[str, Any],
    resolved: dict[str, Any],
    layout: launchers.Layout,
    command: list[str],
    environment: dict[str, str],
) -> dict[str, Any]:
    name = json.dumps([session, variant["stack"], variant["name"], secrets.token_hex(4)])
    return {
        "schema": 1,
        "id": hashlib.sha256(name.encode()).hexdigest()[:12],
        "session": session,
        "campaign": os.environ.get("PLUMB_CAMPAIGN"),
        "time": _now(),
        "state": "running",
        "site": variant["site"],
        "partition": variant["partition"],
        "nodes": [provenance.host_name()],
        "suite": suite.describe(),
        "stack": {
            **{key: manifest[key] for key in ("name", "provider", "mpi", "compiler", "sources")},
            "sha256": stack_sha256(manifest),
        },
        "variant": variant,
        "benchmark": benchmark,
        "placement": {
            "name": variant["placement"],
            "memory": resolved["memory"],
            "threads": resolved["threads"],
            "ranks_per_node": layout.ranks_per_node,
            "nodes": layout.nodes,
        },
        "plan": resolved,
        "launches": [],
        "verified": False,
        "reasons": ["no launch finished"],
        "figures": [],
        "verdict": "invalid",
        "host": provenance.collect(),
        "command": command,
        "environment": environment,
    }


def launch_once(job: Job, index: int, position: int, folder: Path) -> dict[str, Any]:
    """Start ``job`` once, as launch ``index`` of its variant and ``position`` of the session, in ``folder``.

    Returns the record's element. Raises :class:`process.Interrupted`, and OSError when it cannot be started.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("witness", "output"):
        (folder / name).mkdir(parents=True)
    if job.layout.nodes > 1 and "hosts" not in job.record:
        about = folder.with_name(f"{folder.name}-hosts")
        job.record["hosts"] = hosts.collect(job.launcher, job.layout, job.exported, job.environment, about)
    cpus = sorted({cpu for rank in job.plan["ranks"] for cpu in rank["cpus"]})
    start = _now()
    before = disturbance.snapshot(cpus)
    ended = process.run(job.command, job.environment, folder, job.variant["time_limit_s"])
    after = disturbance.snapshot(cpus)
    seen, reasons = witness.read(folder / "witness")
    judged = disturbance.judge(before, after, seen, cpus, ended.wall_s)
    reasons = [*_ending(job, ended, folder), *reasons, *_compare(job, seen)]
    measurements: list[dict[str, Any]] = []
    if ended.status == "ok":
        try:
            measurements = [item.to_dict() for item in _parse(job, folder)]
        except PlumbError as error:
            reasons.append(str(error))
    launch: dict[str, Any] = {
        "index": index,
        "order": position,
        "start": start,
        "wall_s": round(ended.wall_s, 4),
        "status": ended.status,
        "exit_code": ended.exit_code,
        "verified": not reasons,
        "reasons": reasons,
        "disturbed": judged["disturbed"],
        "disturbance": judged,
        "measurements": measurements,
        "ranks": [_rank(item) for item in sorted(seen, key=lambda item: item["rank"])],
    }
    if reasons:
        launch["output_tail"] = _tail(folder)
    if ended.waiting:
        launch["waiting"] = ended.waiting
    if ended.status == "ok" and not reasons:
        shutil.rmtree(folder)
    job.record["nodes"] = sorted({item["host"] for item in seen}) or job.record["nodes"]
    return launch


def _ending(job: Job, ended: process.Ended, folder: Path) -> list[str]:
    if ended.status == "timeout":
        waiting = f"; waiting: {'; '.join(ended.waiting[:8])}" if ended.waiting else ""
        return [f"ended by its time limit of {job.variant['time_limit_s']:g} s{waiting}"]
    if ended.status == "failed":
        code = ended.exit_code or 0
        refused = _refusal(folder, job.variant["context"].get("kernel", "plumb-bind"))
        if refused:
            return [refused]
        return [f"the launcher ended with {f'signal {-code}' if code < 0 else f'exit status {code}'}"]
    return []


def _refusal(folder: Path, program: str) -> str | None:
    """What plumb-bind said when it did not start a rank (a launcher left too few CPUs, say), our kernel, or srun."""
    lines = (folder / "stderr").read_text(encoding="utf-8", errors="replace").splitlines()
    names = ("plumb-bind: ", f"{program}: ", "srun: error: ")
    return next((line[line.index(name) :] for name in names for line in lines if name in line), None)


def _compare(job: Job, seen: list[dict[str, Any]]) -> list[str]:
    """Why the witnesses do not prove the plan: on one node, or on each of several by the map of ranks to nodes."""
    here = provenance.host_name()
    layout = job.layout
    if layout.nodes == 1:
        found = sorted({item["host"] for item in seen}) or [here]
        return witness.compare(job.plan, seen, dict.fromkeys(found, layout.ranks_per_node))
    known = tuple(item["hostname"] for item in job.record["hosts"] if item["hostname"])
    spread = (layout.nodes, layout.ranks_per_node, layout.round_robin)
    return compare_nodes(job.plan, seen, *spread, here, known)


def _parse(job: Job, folder: Path) -> list[parsers.Measurement]:
    """Measurements of one launch. STREAM is no MPI program: each rank prints its own table, and their rates add up."""
    kind, context = job.variant["parser"], dict(job.variant["context"])
    outputs = sorted((folder / "output").iterdir())
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in outputs]
    if kind == "stream":
        benchmark = job.manifest["benchmarks"][job.variant["benchmark"]]
        figures.check_stream_rule(benchmark, job.host)
        context |= {"threads": job.plan["threads"], "array_elements": benchmark["facts"]["array_elements"]}
        return parsers.stream.combine([parsers.parse(kind, text, context) for text in texts])
    if kind == "kernel":
        context["threads"] = job.plan["threads"]
    return parsers.parse(kind, "".join(texts), {**context, "ranks": job.layout.ranks})


def _rank(item: dict[str, Any]) -> dict[str, Any]:
    """The row of the rank map that a record keeps of a witness."""
    return {
        "host": item["host"],
        "rank": item["rank"],
        "local_rank": item["local_rank"],
        "threads": [{"name": t["name"], "affinity": t["affinity"], "last_cpu": t["last_cpu"]} for t in item["threads"]],
        "memory": item["memory"],
        "usage": item["usage"],
    }


def _tail(folder: Path) -> str:
    files = [*sorted((folder / "output").iterdir()), folder / "stdout", folder / "stderr"]
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files if file.stat().st_size)
    return text[-TAIL:]


def _close(file: Path, records: list[dict[str, Any]], state: str) -> None:
    for record in records:
        record["state"] = state
    store.write(file, records)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _progress(job: Job, launch: dict[str, Any], done: int, total: int, took: float) -> str:
    state = "verified" if launch["verified"] else f"NOT VERIFIED: {launch['reasons'][0]}"
    if launch["disturbed"]:
        state += f" (disturbed: {'; '.join(launch['disturbance']['causes'])})"
    return f"launch {done}/{total}  {job.variant['name']} on {job.variant['stack']}  {took:.1f} s  {state}"
