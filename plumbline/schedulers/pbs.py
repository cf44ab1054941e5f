"""OpenPBS and PBS Professional: qsub(1B), qdel(1B), pbsnodes(8B), pbsdsh(1B). https://openpbs.org/"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.base import group
from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import WHERE_STATES, Job, Node, Scheduler, clock_seconds, joined, whole_json
from plumbline.schedulers.program import answer

#: The PATH of a job has the system's folders only, without that of OpenPBS. The file is the one that its daemons read.
PBSDSH = ("/bin/sh", "-c", '. "${PBS_CONF_FILE:-/etc/pbs.conf}"; exec "$PBS_EXEC/bin/pbsdsh" -- "$@"', "pbsdsh")
#: one chunk of a job on each node, and no other job beside it; the default puts all chunks on one node if it has room
WHOLE_NODES = ("-l", "place=scatter:excl")
SHELL = ("-S", "/bin/bash")
WHERE_LIMIT = "qstat -Q"
#: how a node begins in the answer of pbsnodes, and a text with the place where it ends
NODE = re.compile(r'"([^"\s]+)"\s*:\s*\{(?=\s*"Mom"\s*:)')
VALUE = re.compile(r':(\s*)("(?:\\.|[^\\])*?")(?=\s*(?:,\s*"|[}\]]))', re.DOTALL)
#: of two members of one name the first counts: a comment, which comes later, cannot be the state
READER = json.JSONDecoder(strict=False, object_pairs_hook=lambda pairs: {**dict(pairs), **dict(pairs[::-1])})
USABLE = {"free", "busy", "job-busy", "job-exclusive", "job-sharing", "<various>"}


class Pbs(Scheduler):
    """OpenPBS."""

    name = "pbs"
    health = "pbs"
    programs = ("qsub", "qstat", "pbsnodes")
    no_restart = ("-r", "n")
    job_variable = "PBS_JOBID"
    job_variables = ("PBS_",)
    hosts_variable = "PBS_NODEFILE"
    #: ``4711.server``, of an array ``4711[].server``
    id_line = r"^(\d+(?:\[\])?\.[\w.-]+)$"
    id_at_once = True
    open_mpi = ("pbs", "tm")
    cancel_command = ("qdel",)

    def submit(self, job: Job, script: Path) -> list[str]:
        """``block=true`` waits for the job and ends with its exit status; the login shell may be another than bash."""
        options = [*self.no_restart, "-W", "block=true", *SHELL, "-N", job.name]
        options += ["-j", "oe", "-o", str(job.log)]
        select = "+".join(f"1:host={name}" for name in job.hosts) or str(job.nodes)
        return ["qsub", *options, "-l", f"select={select}", *WHOLE_NODES, *job.access, str(script)]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """pbsdsh starts the command on every element of the selection; its exit status is 0 even if that fails."""
        select = "+".join(f"1:ncpus=1:host={name}" for name in job.hosts) or f"{job.nodes}:ncpus=1"
        shape = ["-l", f"select={select}", *WHOLE_NODES, "-l", f"walltime=00:{job.minutes:02d}:00"]
        ask = ["qsub", "-W", "block=true", "-N", job.name, "-j", "oe", "-o", str(job.log), *shape]
        return [[*ask, *self.in_queue(job.queue), *joined(job.access), "--", *PBSDSH, *command]]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """A job that qsub waits for."""
        options = ["-N", "plumb-preflight", "-j", "oe", "-o", "/dev/null", "-W", "block=true"]
        return ["qsub", *options, *access, "--", *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """By pbsnodes."""
        return read_nodes(answer(["pbsnodes", "-a", "-F", "json"], WHERE_STATES), queue)

    def longest_job(self, queue: str | None) -> int | None:
        """``resources_max.walltime`` of the queue, or of the server's default one; None on a host that has no qstat."""
        if shutil.which("qstat") is None:
            return None
        query = ["qstat", "-Q", "-f", "-F", "json"]
        queue = queue or read_default(answer(["qstat", "-B", "-f", "-F", "json"], WHERE_LIMIT))
        return None if queue is None else read_limit(answer([*query, queue], WHERE_LIMIT), queue)

    def reframe_options(self, access: Sequence[str], nodes: int) -> list[str]:
        """ReFrame's backend leaves ``exclusive_access`` out, and says nothing of where the chunks go."""
        return [" ".join(WHOLE_NODES) if nodes > 1 else "-l place=excl"]

    def reframe_partition(self, access: Sequence[str], hosts: Sequence[str], node: str | None) -> dict[str, Any]:
        """Its job scripts are for bash, and PBS starts them with the login shell of the user."""
        partition = super().reframe_partition(access, hosts, node)
        return {**partition, "access": [" ".join(SHELL), *partition["access"]]}


def read_nodes(text: str, queue: str | None) -> list[Node]:
    """``pbsnodes -a -F json``: ``nodes`` -> name -> ``state`` (a list joined by commas), ``comment``, ``queue``.

    With a queue, nodes tied to another one are left out: by their attribute ``queue``, or by
    ``resources_available.Qlist``, as many sites configure it. A node tied to none is in every queue.
    Virtual nodes (``n1[0]``) are those of the host in ``resources_available.host``, which is usable if all of them are;
    the one that stands for the host has no CPUs then.
    """
    hosts = group(
        (names.host(str(_resources(node).get("host") or name.partition("[")[0]), "pbsnodes"), (name, node))
        for name, node in _nodes(text).items()
    )
    nodes = []
    for host, parts in hosts.items():
        with_cpus = [part for part in parts if str(_resources(part[1]).get("ncpus")) != "0"] or parts
        states = [_state(host, *part) for part in with_cpus if queue is None or _in_queue(part[1], queue)]
        nodes += sorted(states, key=lambda node: node.usable)[:1]
    return nodes


def _state(host: str, name: str, node: Mapping[str, Any]) -> Node:
    parts = [part.strip() for part in str(node.get("state", "state-unknown")).split(",")]
    if set(parts) <= USABLE:
        return Node(host, ",".join(parts), usable=True)
    comment = " ".join(str(node.get("comment") or "").split())
    return Node(host, ",".join(parts), False, comment if host == name else f"{name}: {comment}".strip(": "))


def _in_queue(node: Mapping[str, Any], queue: str) -> bool:
    tied = str(node.get("queue") or _resources(node).get("Qlist") or "").split(",")
    return tied == [""] or queue in [word.strip() for word in tied]


def _resources(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return node.get("resources_available") or {}


def _nodes(text: str) -> dict[str, dict[str, Any]]:
    """The members of ``nodes``; where all of it cannot be read, one by one: one that cannot has no usable state."""
    pieces = NODE.split(text)
    try:
        return READER.decode(text).get("nodes") or {}
    except (ValueError, RecursionError, AttributeError):
        if len(pieces) == 1:
            return _json(text, "pbsnodes").get("nodes") or {}
    nodes = {}
    for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        try:
            nodes[name] = READER.raw_decode(VALUE.sub(_quoted, "{" + piece))[0]
        except ValueError:
            nodes[name] = {"state": "unreadable", "comment": "pbsnodes printed no valid JSON for it"}
    return nodes


def _json(text: str, program: str) -> dict[str, Any]:
    """The JSON object that ``program`` printed; PBS up to 19 writes texts as they are, with quotes and newlines."""
    try:
        return whole_json(text, program)
    except PlumbError:
        return whole_json(VALUE.sub(_quoted, text), program)


def _quoted(value: re.Match[str]) -> str:
    """A text that may be no valid string of JSON as one that is: a stray backslash is left out, a quote is escaped."""
    try:
        text = READER.decode(value[2])
    except ValueError:
        text = re.sub(r"\\(.)", r"\1", value[2][1:-1], flags=re.DOTALL)
    return f":{value[1]}{json.dumps(text)}"


def read_default(text: str) -> str | None:
    """``qstat -B -f -F json``: the queue of jobs that name none."""
    servers = (_json(text, "qstat").get("Server") or {}).values()
    return next((server["default_queue"] for server in servers if server.get("default_queue")), None)


def read_limit(text: str, queue: str) -> int | None:
    """``qstat -Q -f -F json QUEUE``: seconds of ``resources_max.walltime``, ``HH:MM:SS`` or seconds; None without."""
    attributes = (_json(text, "qstat").get("Queue") or {}).get(queue) or {}
    limit = (attributes.get("resources_max") or {}).get("walltime")
    return None if limit is None else clock_seconds(str(limit), WHERE_LIMIT, "qstat")
