"""Where the processes of a launch wait: the MPI call of every rank, and the kernel's report on every process.

A measured process is asked by a signal; the witness library in it answers with the MPI function that each of its
threads is in (``custom-kernels/witness/waiting.c``), and with its peer and tag where it waits for one other rank
(``calls.c``). Ranks on other hosts cannot be asked: they answer when their launcher ends them.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

from plumbline import mpi
from plumbline.base.units import numbered
from plumbline.host import proc
from plumbline.stacks import engines

#: WITNESS_ASK of custom-kernels/witness/witness.h
ASK = signal.SIGRTMIN + 12
#: seconds that the processes together have for their answers
PATIENCE_S = 1.0
#: waits that a line names with peer and tag; the ranks of a large job all wait in the same way
SHOWN = 8
STATES = {"R": "running", "S": "sleeping", "D": "in uninterruptible wait", "T": "stopped"}


class Process:
    """Process ``pid`` of this host by /proc, whose launch runs in ``folder``, described in a ``line``.

    ``answer``: the file that its witness answers in, if it has one, a line for each thread. Raises OSError for one that
    has ended.
    """

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid = pid
        directory = proc.PROC / str(pid)
        seen = proc.stat(directory)
        channel = (directory / "wchan").read_text(encoding="utf-8", errors="replace").strip("\0\n 0")
        self.threads = len(list((directory / "task").iterdir()))
        items = (directory / "environ").read_bytes().decode(errors="replace").split("\0")
        environment = dict(item.split("=", 1) for item in items if "=" in item)
        place = engines.on_host(environment.get("PLUMB_WITNESS_DIR", ""), folder)
        can_answer = environment.get("PLUMB_WITNESS_PID") == str(pid) and _answers(directory)
        self.answer = place / f"{os.uname().nodename}.{pid}.waiting" if can_answer else None
        rank = mpi.rank(environment)
        named = f"{seen.name}{'' if rank is None else f' (rank {rank})'}"
        where = f" in {channel}" if channel else ""
        self.line = f"pid {pid} {named}: {STATES.get(seen.state, seen.state)}{where}"

    def answered(self) -> bool:
        """Whether every thread has answered; True for a process that cannot be asked."""
        try:
            return self.answer is None or len(_lines(self.answer)) >= self.threads
        except FileNotFoundError:
            return False


def ask(pids: list[int], folder: Path) -> list[str]:
    """Make the witnesses of ``pids`` answer, and describe each process in a line.

    ``folder`` is that of the launch; a relative witness folder lies below it.
    """
    processes = []
    for pid in pids:
        with contextlib.suppress(OSError):
            processes.append(Process(pid, folder))
    for pid in (process.pid for process in processes if process.answer is not None):
        with contextlib.suppress(ProcessLookupError):  # one that has ended meanwhile has nothing to say
            os.kill(pid, ASK)
    deadline = time.monotonic() + PATIENCE_S
    while not all(process.answered() for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [process.line for process in processes]


def calls(folder: Path) -> list[str]:
    """Which ranks are in which MPI call (``ranks 0-1 in MPI_Ssend (0 to 1 tag 7, 1 to 0 tag 7)``), by the answers.

    All witnesses below ``folder`` that answered count. A peer is a rank of the call's communicator. Threads of a rank
    may wait in different calls: there is one line for each set of them.
    """
    ranks: dict[str, list[int]] = {}
    peers: dict[str, list[tuple[int, str]]] = {}
    for file in folder.rglob("*.waiting"):
        lines = [line.split(" ", 2) for line in _lines(file)]
        pending = sorted({call for _, _, call in lines if call != "-"})
        where = " and ".join(dict.fromkeys(call.split(" ")[0] for call in pending)) or "no MPI call"
        if lines and lines[0][0] != "-":
            rank = int(lines[0][0])
            ranks.setdefault(where, []).append(rank)
            peers.setdefault(where, []).extend((rank, call.split(" ", 1)[1]) for call in pending if " " in call)
    ordered = sorted(ranks, key=lambda where: min(ranks[where]))
    return [f"{numbered('rank', sorted(ranks[where]))} in {where}{_listed(sorted(peers[where]))}" for where in ordered]


def _listed(peers: list[tuple[int, str]]) -> str:
    more = f", and {len(peers) - SHOWN} more" if len(peers) > SHOWN else ""
    return f" ({', '.join(f'{rank} {peer}' for rank, peer in peers[:SHOWN])}{more})" if peers else ""


def _lines(answer: Path) -> list[str]:
    """The whole lines ``RANK THREAD CALL [to PEER tag TAG] [from PEER tag TAG]`` of an answer."""
    return answer.read_text(encoding="utf-8").split("\n")[:-1]


def _answers(folder: Path) -> bool:
    """Whether the process catches the signal: one that does not would be ended by it."""
    status = (folder / "status").read_text(encoding="utf-8", errors="replace")
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(caught and int(caught[1], 16) >> (ASK - 1) & 1)
