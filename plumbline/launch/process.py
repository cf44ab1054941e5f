"""One launch as a process tree with a time limit: it ends every process that it started.

The files in /dev/shm of a launch that had to be ended are removed, because the next launches would lack their memory,
and only those of that launch. A file that a process of the launch had mapped belongs to the launch. If its processes
are gone, files that appeared since it began, under a name that an MPI library gives, belong to it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import select
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from plumbline import mpi
from plumbline.base import group, programs
from plumbline.base.programs import Interrupted
from plumbline.host import proc
from plumbline.launch import waiting
from plumbline.stacks import engines

#: of prctl(2)
PR_SET_CHILD_SUBREAPER = 36
#: seconds between SIGTERM and SIGKILL
GRACE_S = 1.0
STDOUT = 1
#: most bytes that are read of the output of a launch
MOST_PRINTED = 128 << 20
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where shm_open(3) puts them
#: processes of this one that work beside a launch, which is not to end them
beside: set[int] = set()


@dataclass
class Ended:
    """How a launch ended. ``waiting``: where ranks and processes waited when the time limit ended it.

    ``orphans``: processes of this host that ended after their parent had, with the CPU time that they used.
    ``peak_bytes``: memory of the largest process of those that this one started so far, and that have ended here.
    ``ran_s``: seconds from the start of the program until its process ended; ``wall_s`` has what came before and after.
    """

    status: Literal["ok", "failed", "timeout"]
    exit_code: int | None
    wall_s: float
    waiting: list[str] = field(default_factory=list)
    orphans: list[proc.Stat] = field(default_factory=list)
    peak_bytes: int = 0
    ran_s: float = 0.0


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    time_limit_s: float,
    at: Path | None = None,
    observed: bool = False,
    meet: Callable[[], None] | None = None,
) -> Ended:
    """Run ``command`` in ``folder`` (stdout and stderr to the files of that name there) and leave no process behind.

    The launch is ended after ``time_limit_s`` seconds. If it did not end well, its files of shared memory are removed.
    The program works in the folder ``at`` instead, if there is one. If it is ``observed`` without plumb-bind, it gets
    its own number, which the witness asks for. Its process calls ``meet`` before it becomes the program.

    Raises :class:`Interrupted` after ending the tree when this process gets a signal that interrupts, or nobody is
    left to read its output, and OSError when the program cannot be started or the output files cannot be written.
    """
    # Launcher daemons start sessions of their own; as a subreaper this process inherits those that lose their parent.
    programs.LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _shared_files()
    begin = time.monotonic()
    started = mmap.mmap(-1, 8)  # shared with the child: a fork of this process takes longer than many a program

    def become() -> None:
        programs.die_with_parent()
        if observed:
            os.environ.clear()
            os.environ.update({**environment, "PLUMB_WITNESS_PID": str(os.getpid())})
        if meet:
            meet()
        started[:] = struct.pack("d", time.monotonic())

    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err, _signals() as wakeup:
        child = subprocess.Popen(
            list(command),
            env=None if observed else dict(environment),
            cwd=at or folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=become,
        )
        began, status, ran_s = 0, "interrupted", 0.0
        processes: list[str] = []
        orphans: list[proc.Stat] = []
        try:
            with contextlib.suppress(OSError):  # no /proc
                began = proc.stat(proc.PROC / str(child.pid)).began
            status = _wait(child, time_limit_s, wakeup)
            ran_s = time.monotonic() - struct.unpack("d", started)[0]
            if status == "timeout":
                processes = waiting.ask(descendants(os.getpid()), folder)
        finally:
            mine = set() if status == "exited" else _mapped_files(descendants(os.getpid()))
            _end_tree(child, folder, orphans)
            if child.returncode != 0:
                remove_shared(mine | (_shared_files() - before))
    wall = time.monotonic() - begin
    orphans = [orphan for orphan in orphans if orphan.began >= began]  # the caller may have its own processes
    if status == "timeout":
        return Ended("timeout", None, wall, waiting.calls(folder) + processes, orphans)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Ended("failed" if child.returncode else "ok", child.returncode, wall, [], orphans, peak, ran_s)


def sleep_until_end(pid: int, limit_s: float | None) -> None:
    """Sleep until process ``pid`` has ended, or for ``limit_s`` seconds; whoever started it still has to reap it.

    Raises ProcessLookupError if there is no such process.
    """
    with os.fdopen(os.pidfd_open(pid)) as end:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.poll(None if limit_s is None else limit_s * 1000)


def leave_group() -> None:
    """Leave the process group of the shell that a scheduler started, and get SIGTERM when that shell ends.

    The shell of a cancelled job ends at its SIGTERM, and a scheduler then kills outright what is left of its group: the
    process would have no time to end its ranks and to write its record. With a terminal, whose Ctrl-C goes to the
    group, nothing is done.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        with contextlib.suppress(PermissionError):  # it leads a group already
            os.setsid()
        programs.die_with_parent()


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """A pipe that receives the number of each signal that interrupts: waiting sleeps in poll() and burns no CPU.

    A scheduler may signal the launcher too: it ends first, and the signal comes here a moment later, when nobody waits
    any more. Raises :class:`Interrupted` for it at the end of the block.
    """
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    previous_fd = signal.set_wakeup_fd(writer)
    try:
        try:
            with programs.handling(programs.interrupting(), lambda *_: None):
                yield reader
        finally:
            signal.set_wakeup_fd(previous_fd)
        with contextlib.suppress(BlockingIOError):
            raise Interrupted(os.read(reader, 1)[0])
    finally:
        os.close(reader)
        os.close(writer)


def _wait(child: subprocess.Popen[bytes], time_limit_s: float, wakeup: int) -> str:
    pidfd = os.pidfd_open(child.pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        if signal.SIGHUP in programs.interrupting():
            # ssh sends no signal to its command when it ends: it only closes the command's output
            poll.register(STDOUT, 0)
        ready = dict(poll.poll(time_limit_s * 1000))
    finally:
        os.close(pidfd)
    if wakeup in ready:
        raise Interrupted(os.read(wakeup, 1)[0])
    if ready.get(STDOUT, 0) & (select.POLLERR | select.POLLHUP):
        raise Interrupted(signal.SIGHUP)
    return "exited" if ready else "timeout"


def _end_tree(child: subprocess.Popen[bytes], folder: Path, orphans: list[proc.Stat]) -> None:
    """End and reap everything below this process, and strays: SIGTERM, a grace period, SIGKILL.

    The reaped processes, all but ``child``, are added to ``orphans``.

    A launcher that had to be ended may have been about to start ranks elsewhere: they are waited for.
    """

    def victims_now() -> list[int]:
        below = descendants(os.getpid())
        return below if child.poll() == 0 else [*below, *strays(folder, below)]

    watched = time.monotonic() + (GRACE_S if child.poll() is None or child.returncode < 0 else 0)
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience
        victims = victims_now()
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while (victims or time.monotonic() < watched) and time.monotonic() < deadline:
            _reap(child, orphans)
            victims = victims_now()
            time.sleep(0.01 if victims else 0.05)
    _reap(child, orphans)


def _reap(child: subprocess.Popen[bytes], orphans: list[proc.Stat]) -> None:
    """Reap ended processes, and add them to ``orphans``: /proc has the times of a process until it is reaped."""
    if child.poll() is None:  # never let waitid take the child's own exit status from Popen
        return
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            with contextlib.suppress(OSError):  # no /proc
                orphans.append(proc.stat(proc.PROC / str(ended.si_pid)))
            os.waitpid(ended.si_pid, 0)


def descendants(parent: int) -> list[int]:
    """Live processes below ``parent``: its children, then their children, and so on; none that is :data:`beside`."""
    every = (process for process in proc.every() if process.state != "Z" and process.pid not in beside)
    children = group((process.parent, process.pid) for process in every)
    pids = [parent]
    for pid in pids:  # which grows meanwhile
        pids += children.get(pid, [])
    return pids[1:]


def strays(folder: Path, known: Sequence[int]) -> list[int]:
    """Live processes of this host, except ``known``, whose witness belongs to the launch in ``folder``.

    They are ranks that lost their launcher. Where a scheduler's daemon starts the launcher's proxies (``qrsh -inherit``
    of Grid Engine), ranks are not below this process, and they continue when the proxies die.
    """
    names = ("PLUMB_WITNESS_DIR", engines.VARIABLE)
    marks = [os.fsencode(f"{name}={place}") for name in names for place in (folder.absolute(), folder.resolve())]
    below = tuple(mark + b"/" for mark in marks)
    return [
        process.pid
        for process, variables in proc.environments()
        if process.state != "Z"
        and process.pid not in (os.getpid(), *known)
        and any(variable in marks or variable.startswith(below) for variable in variables)
    ]


def printed(file: Path, most: int = MOST_PRINTED) -> str:
    """The last ``most`` bytes that a process printed into ``file``, as text.

    Invalid UTF-8, and NUL, which a record cannot hold, are replaced.
    """
    with file.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
        text = stream.read(most).decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def shared_free(folder: Path = SHARED_MEMORY) -> int | None:
    """Bytes that are free in ``folder``; None where there is no such file system."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def shared_shortage(family: mpi.Family, ranks: int, free_bytes: int | None) -> list[str]:
    """Why ``ranks`` ranks of a node may run slower than they could; empty where there is room."""
    wanted = family.shared_memory[0] + ranks * family.shared_memory[1]
    if free_bytes is None or free_bytes >= wanted:
        return []
    return [f"{SHARED_MEMORY} has {free_bytes >> 10} KiB free, {ranks} ranks of {family.name} want {wanted >> 10} KiB"]


def _shared_files() -> set[Path]:
    with contextlib.suppress(OSError):
        return {file for file in SHARED_MEMORY.iterdir() if any(map(file.match, mpi.SHARED_FILES))}
    return set()


def _mapped_files(pids: Iterable[int]) -> set[Path]:
    """The files that these processes have mapped; a process that has ended, or may not be looked at, has none."""
    files = set[Path]()
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
            paths = (Path(line.split(maxsplit=5)[-1]) for line in lines)
            files |= {path for path in paths if path.parent == SHARED_MEMORY}
    return files


def remove_shared(left: set[Path]) -> None:
    """Remove those of ``left`` that are this user's and that no process has mapped."""
    if not left:
        return
    for file in left - _mapped_files(process.pid for process in proc.every()):
        with contextlib.suppress(OSError):
            if file.stat().st_uid == os.getuid():
                file.unlink()
