"""Proof of where any command's ranks, threads and pages were: nothing of ours but the witness is in it.

The functions and types of this module are stable (docs/api.md). Importing it needs msgspec and no other package;
:class:`Proven`, for tests of ReFrame, needs ReFrame.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import tempfile
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from plumbline import mpi, schedulers
from plumbline.base import group, programs, surroundings
from plumbline.base.errors import PlumbError
from plumbline.base.units import cpu_list, numbered
from plumbline.host import binder, machine, proc
from plumbline.host.binder import Plan
from plumbline.host.machine import Machine
from plumbline.launch.witness import compare, processes
from plumbline.launch.witness.model import RankWitness
from plumbline.proof import judged
from plumbline.proof.judged import Place
from plumbline.records.launch import RankSeen
from plumbline.stacks import manifest

if TYPE_CHECKING:
    from plumbline.proof.reframe import Proven as Proven

#: most reasons of a proof, and most characters of one
REASONS, CHARACTERS = 3, 200
#: signals that go to the command, and those of them that the keys of a terminal send
_KEYS = (signal.SIGINT, signal.SIGQUIT)
_SIGNALS = (*_KEYS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Proof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the ranks of a command ran, and whether that is right.

    ``status`` is the exit status of the command, below 0 the signal that ended it. ``verdict``: ``right``, ``wrong``,
    or ``not known`` where the command failed, or processes left no account or are not judged. ``reasons``, at most
    three of 200 characters, say why it is not right, ``cures`` what to do. ``ranks`` are as in records, CPU and node
    numbers the operating system's; ``plan`` is that of ``placement`` on this host, None where there was none to compare
    with. ``wall_s``: seconds from the start of the command to its end; ``waited_s``: how long a thread that had work
    waited for a CPU, the longest. ``id`` is made from all the rest.
    """

    command: list[str]
    status: int
    verdict: Literal["right", "wrong", "not known"]
    reasons: list[str] = []
    cures: list[str] = []
    placement: str | None = None
    plan: Plan | None = None
    ranks: list[RankSeen] = []
    wall_s: float = 0.0
    waited_s: float = 0.0
    id: str = ""

    @property
    def verified(self) -> bool:
        """Whether the verdict is ``right``."""
        return self.verdict == "right"

    @property
    def rank_map(self) -> str:
        """``RANK HOST CPUS`` of each rank, such as ``0 n1 0-7; 1 n1 8-15``; rank -1 is a program without a launcher."""
        cpus = ({cpu for thread in rank.threads for cpu in thread.affinity} for rank in self.ranks)
        return "; ".join(f"{rank.rank} {rank.host} {cpu_list(on)}" for rank, on in zip(self.ranks, cpus, strict=True))


def __getattr__(name: str) -> Any:
    if name != "Proven":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from plumbline.proof.reframe import Proven

    return Proven


def run(
    command: Sequence[str | os.PathLike[str]],
    placement: str | None = None,
    *,
    threads: int | None = None,
    memory: str | None = None,
    work: Path | None = None,
    output: Path | None = None,
    loose: bool = False,
) -> Proof:
    """Run ``command``, a launch line with its launcher or a program alone, and return the proof of where it ran.

    It has the variables, standard input and output, folder and signals of this process. With ``placement`` (a name of
    docs/placements.md) its ranks are compared with the plan of that; without, only what is wrong under any plan is
    found. ``threads`` per rank, ``memory``: those of the plan, by default the placement's. ``work``: where the witness
    writes, a folder that every node sees; default: the present folder in a job of a scheduler and for a scheduler's
    own programs (``srun``), else that of temporary files. ``output``: a folder for the files ``stdout`` and ``stderr``;
    then the command has no standard input, and a signal is this process's, too. ``loose``: threads may be on any CPU of
    their rank.

    Raises :class:`PlumbError` for a placement that does not exist, a command that cannot be started (from the OSError
    that says why), where ``work`` cannot be written, and without tools.
    """
    if placement and (fault := binder.fault(placement, memory)):
        raise PlumbError(fault)
    this, allowed = machine.load(), frozenset(os.sched_getaffinity(0))
    words = [os.fspath(word) for word in command]
    # srun and sbatch start ranks on other hosts, without a job around them too
    starters = {name for each in schedulers.TABLE.values() if each.has_jobs for name in each.programs}
    submits = schedulers.current(os.environ).has_jobs or {Path(word).name for word in words} & starters
    place = work or (Path.cwd() if submits else None)
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".plumb-prove-", dir=place, ignore_cleanup_errors=True)
    except OSError as error:
        where = f"--work {place}" if place else "TMPDIR"
        raise PlumbError(f"the witness cannot write: {error.strerror}", where, "name another --work folder") from None
    with temporary as folder:
        status, wall_s = _run(words, Path(folder).absolute(), output)
        left = _left(Path(folder).absolute())
        documents, damaged = processes.documents_in(folder)
        # a document is the last that a process writes
        ends = {file.stem: file.stat().st_mtime for file in Path(folder).glob("*.json")}
    seen = judged.seen(documents, ends)
    ranks = seen.ranks
    # in a job script the scheduler's variables tell every process that it is one of many
    doubts = judged.unknown(ranks, seen.launchers, status, seen.rest, sized=mpi.rank(os.environ) is None)
    unknown = [(reason, "") for reason in damaged] or list(doubts)
    plan, differing = (
        _compared(ranks, this, allowed, placement, threads, memory, loose) if ranks and placement else (None, [])
    )
    here = Place(this, allowed, machine.siblings(), machine.gpus(), machine.fabric())
    bound = plan is None or plan.bound is not False
    findings, apart = judged.unplanned(seen, {os.uname().nodename: here}, bound=bound, planned=bool(plan))
    wrong = [(each.reason, each.cure) for each in findings] + [(reason, "") for reason in differing]
    still = f"processes of the command still ran at its end: {', '.join(sorted(left - seen.starters))}"
    unknown += [*(() if plan else apart), *([(still, "wait for them in the command")] if left - seen.starters else [])]
    cut = ((textwrap.shorten(reason, CHARACTERS, placeholder=" …"), cure) for reason, cure in wrong or unknown)
    shown = list(dict.fromkeys(cut))[:REASONS]
    proof = Proof(
        command=words,
        status=status,
        verdict="wrong" if wrong else "not known" if unknown else "right",
        reasons=[reason for reason, _ in shown],
        cures=list(dict.fromkeys(cure for _, cure in shown if cure)),
        placement=placement,
        plan=plan,
        ranks=[processes.rank_seen(rank) for rank in sorted(ranks, key=lambda rank: rank.rank)],
        wall_s=round(wall_s, 6),
        waited_s=round(max((rank.window.delay_s for rank in ranks), default=0.0), 6),
    )
    return replace(proof, id=hashlib.sha256(msgspec.json.encode(proof)).hexdigest()[:12])


def _run(command: Sequence[str], folder: Path, output: Path | None) -> tuple[int, float]:
    """Exit status of the command, below 0 the signal that ended it, and the seconds that it took."""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    came: list[int] = []

    def pass_on(number: int, _: Any) -> None:
        came.append(number)
        if not started:
            early.append(number)
        elif number not in _KEYS or not proc.in_foreground():  # there the command has the terminal's too
            started[0].send_signal(number)

    numbers = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    # before the start: no signal may end this process alone; what is ignored, as by nohup(1), stays so for both
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    try:
        with contextlib.ExitStack() as stack, programs.handling(heard, pass_on):
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL} if output else {}
            for name in ("stdout", "stderr") if output else ():
                streams[name] = stack.enter_context(Path(output or "", name).open("wb"))
            environment, begin = processes.preloaded(surroundings.of_user(), folder), time.monotonic()
            started.append(subprocess.Popen(command, env=environment, **streams))
            for number in early:
                started[0].send_signal(number)
            return started[0].wait(), time.monotonic() - begin
    except OSError as error:
        quoted = f"leave out the quotes around {command[0]}" if " " in command[0] and not command[1:] else None
        cure = quoted or manifest.that_has(command[0]) or "name the program or its path"
        raise PlumbError(f"cannot start {command[0]}: {error.strerror}", None, cure) from error
    finally:
        for number in came if output else ():  # who reads the output goes on, and is interrupted, too
            signal.raise_signal(number)


def _left(folder: Path) -> set[str]:
    """The programs of the command that still run on this host a second after its end."""
    word, end = os.fsencode(f"PLUMB_WITNESS_DIR={folder}"), time.monotonic() + 1
    while (left := {each.name for each, held in proc.environments() if word in held}) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _compared(
    ranks: list[RankWitness],
    this: Machine,
    allowed: frozenset[int],
    placement: str,
    threads: int | None,
    memory: str | None,
    loose: bool,
) -> tuple[Plan | None, list[str]]:
    """The plan of a host, and what differs from it."""
    hosts = group((rank.host, rank) for rank in ranks)
    most = max(map(len, hosts.values()))
    try:
        plan = binder.resolve(placement, threads=threads, memory=memory, ranks=most, allowed=sorted(allowed))
    except binder.Refusal as error:
        return None, [error.message]
    # a launcher that binds to a core gives it whole, a plan names its first hardware thread
    cores = {cpu: core.cpus for core in this.cores for cpu in core.cpus}
    wide = [replace(rank, cpus=sorted({cpu for first in rank.cpus for cpu in cores[first]})) for rank in plan.ranks]
    counts = {host: len(every) for host, every in hosts.items()}
    if all(rank.plan for rank in ranks):  # by plumb-bind
        return plan, compare.compare(plan, ranks, counts, binds="ranks" if loose else "threads")
    reasons = compare.compare(replace(plan, ranks=wide), ranks, counts, binds="site")
    planned = {rank.local_rank: rank.cpus for rank in plan.ranks}
    for rank in () if reasons else ranks:
        seen = (rank.start.affinity, *(thread.affinity for thread in rank.threads))
        bound = {cores[cpu] for cpus in seen for cpu in cpus if cpu in cores}
        wanted = planned.get(rank.rank_on_node, [])
        if missing := [cpu for cpu in wanted if cores[cpu] not in bound]:
            cpus = f"{numbered('CPU', missing)} of its {numbered('CPU', wanted)}"
            reasons.append(f"rank {max(rank.rank, 0)} on {rank.host} cannot use {cpus}: it was bound to fewer")
    return plan, reasons
