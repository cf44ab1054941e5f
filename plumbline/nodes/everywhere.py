"""Runs the collector once on each node, as one job of the scheduler, and waits for it."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline import files, paths
from plumbline.errors import PlumbError
from plumbline.nodes import collector, names, ssh
from plumbline.nodes.process import Done, start
from plumbline.provenance import host_name

WHERE = "plumb nodes facts"
#: what was asked and when, beside the answers
JOB = ".job.json"
#: minutes that the job asks the scheduler for: the collector takes seconds
MINUTES = 5
#: words that a scheduler's command line carries unchanged
PLAIN = re.compile(r"/[A-Za-z0-9_./+=-]*")


@dataclass(frozen=True)
class Request:
    """Which nodes of which scheduler: by name, or any ``count`` of them."""

    scheduler: str
    output: Path
    queue: str | None = None
    access: Sequence[str] = ()
    nodes: Sequence[str] = ()
    count: int = 1
    python: str = "python3"
    #: seconds until the job is given up, waiting in the queue included
    limit: float = 900.0
    job: str = field(default_factory=lambda: secrets.token_hex(8))

    def size(self) -> int:
        """How many nodes are asked."""
        return len(self.nodes) or self.count


def program(request: Request, host: str | None = None) -> list[str]:
    """The collector as a command, for ``host`` under another name than its own if given."""
    words = [request.python, str(Path(collector.__file__).resolve()), "--output", str(request.output), "--job"]
    words.append(request.job)
    if paths.binder().exists():
        words += ["--topology-program", str(paths.binder().resolve())]
    return [*words, "--host", host] if host else words


def commands(request: Request) -> list[list[str]]:
    """What starts the collector on all nodes; one command, but under SGE one for each node.

    Whole nodes are asked for: in a share of one, the topology would be that of the share.
    """
    size, work = request.size(), program(request)
    log = str(request.output / ".job.log")
    options = names.access(request.access)
    if request.scheduler == "local":
        return [program(request, host_name())]
    for word in [*work, log]:
        if word.startswith("/") and not PLAIN.fullmatch(word):
            raise PlumbError(f"path {word!r} holds letters that {request.scheduler} changes", WHERE, "use plain names")
    if request.scheduler in ("slurm", "squeue"):
        where = [f"--nodelist={names.fold(request.nodes)}"] if request.nodes else []
        queue = [f"--partition={request.queue}"] if request.queue else []
        shape = [f"--nodes={size}", f"--ntasks={size}", "--ntasks-per-node=1"]
        job = ["--quiet", *shape, "--exclusive", f"--time={MINUTES}", "--job-name=plumb-facts"]
        # a step of its own job: srun alone would give each task one CPU of the whole node that it asked for
        step = ["srun", *shape, "--cpu-bind=none", "--mpi=none"]
        return [["salloc", *job, *where, *queue, *_joined(options), *step, *work]]
    queue = ["-q", request.queue] if request.queue else []
    if request.scheduler == "pbs":
        select = "+".join(f"1:ncpus=1:host={name}" for name in request.nodes) or f"{size}:ncpus=1"
        shape = ["-l", f"select={select}", "-l", "place=scatter:excl", "-l", f"walltime=00:{MINUTES:02d}:00"]
        return [["qsub", "-W", "block=true", "-N", "plumb-facts", "-j", "oe", "-o", log, *shape, *queue,
                 *_joined(options), "--", "pbsdsh", "--", *work]]  # fmt: skip
    if request.scheduler == "lsf":
        where = ["-m", " ".join(request.nodes)] if request.nodes else []
        shape = ["-n", str(size), "-R", "span[ptile=1]", "-x", "-W", str(MINUTES)]
        # bsub makes one shell line of the words of its command
        return [["bsub", "-K", "-J", "plumb-facts", "-o", log, *shape, *where, *queue, *options, "blaunch",
                 *map(shlex.quote, work)]]  # fmt: skip
    if request.scheduler == "flux":
        where = [f"--requires=host:{names.fold(request.nodes)}"] if request.nodes else []
        queue = [f"--queue={request.queue}"] if request.queue else []
        shape = ["-N", str(size), "-n", str(size), "--exclusive", "-t", f"{MINUTES}m"]
        return [["flux", "run", *shape, *where, *queue, *_joined(options), *work]]
    if request.scheduler == "sge":
        if not request.nodes:
            raise PlumbError("under sge the nodes have to be named", WHERE, "give --node A for each")
        begin = ["qsub", "-sync", "y", "-b", "y", "-N", "plumb-facts", "-j", "y", "-o", log]
        return [[*begin, "-l", f"hostname={name}", *queue, *options, *work] for name in request.nodes]
    raise PlumbError(f"scheduler {request.scheduler} starts no job", WHERE, "use one of the schedulers of a site")


def collect(request: Request) -> Done:
    """Run the collection and write ``DIR/.job.json``; what the scheduler's command said is returned.

    The answers are in the folder; who did not answer is for :mod:`plumbline.nodes.read` to say.
    """
    for name in request.nodes:
        names.host(name, "--node")
    try:
        request.output.mkdir(parents=True, exist_ok=True, mode=0o750)
    except OSError as error:
        raise PlumbError(f"cannot make the folder: {error.strerror}", str(request.output), "name another") from None
    began = time.time()
    if request.scheduler == "ssh":
        answers = ssh.each({name: program(request, name) for name in request.nodes}, request.limit)
        failed = [(name, done) for name, done in answers.items() if done.status != 0]
        lines = [f"{name}: {done.last()}" for name, done in failed]
        done = Done(1 if failed else 0, "", "\n".join(lines))
    else:
        done = Done(0, "", "")
        for command in commands(request):
            try:
                told = start(command, request.limit)
                done = told if done.status == 0 else done
            except FileNotFoundError:
                cure = "run this on a login host, or name another --scheduler"
                raise PlumbError(f"{command[0]} is not on PATH", WHERE, cure) from None
    note = {
        "job": request.job, "scheduler": request.scheduler, "queue": request.queue, "asked": list(request.nodes),
        "size": request.size(), "began": began, "ended": time.time(),
    }  # fmt: skip
    try:
        files.replace(request.output / JOB, json.dumps(note, indent=1) + "\n")
        (request.output / JOB).chmod(0o640)
    except OSError as error:
        raise PlumbError(f"cannot write: {error.strerror}", str(request.output), "free space") from None
    return done


def _joined(options: Sequence[str]) -> list[str]:
    """``-p main`` as ``-pmain``, so that no word can be taken for the program to start."""
    words: list[str] = []
    for word in options:
        if word.startswith("-"):
            words.append(word)
        else:
            words[-1] += word
    return words
