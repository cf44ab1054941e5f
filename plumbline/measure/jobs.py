"""One command inside one job of a partition: submitted, followed, and ended with the command's own exit status.

ReFrame submits tests. This is for commands that need the whole allocation, such as a gate, whose pairs must share it.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import math
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline import schedulers
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.programs import Interrupted, interruptible
from plumbline.base.schemas.site import Partition
from plumbline.launch.witness.compare import same_host
from plumbline.schedulers import Scheduler, names
from plumbline.schedulers.base import JOB_HOSTS
from plumbline.schedulers.program import answer, last_line

#: seconds between two looks at the output of a job
LOOK_S = 0.5
#: seconds that the end of a job may take to be seen: shared file systems are late
LATE_S = 10.0
#: seconds in which a scheduler that answers at once names the job
ANSWER_S = 60.0
#: seconds that a cancelled job has to clean up
CANCEL_S = 30.0


@dataclass(frozen=True)
class Submission:
    """A command for ``nodes`` whole nodes of ``partition``, and a folder of its own.

    The command runs on the first of the nodes. ``hosts``: on these nodes; empty: on any.
    """

    partition: Partition
    command: Sequence[str]
    nodes: int
    folder: Path
    hosts: Sequence[str] = ()
    #: seconds after which the job is ended, waiting or running
    limit: float = math.inf

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of the partition."""
        return schedulers.named(self.partition.scheduler)

    @property
    def output(self) -> Path:
        """The output of the command."""
        return self.folder / "job.out"

    @property
    def log(self) -> Path:
        """The scheduler's log of the job."""
        return self.folder / "job.log"

    @property
    def status(self) -> Path:
        """Where the exit status of the command is left."""
        return self.folder / "job.status"

    def job(self) -> schedulers.Job:
        """The job as the scheduler takes it."""
        access = names.words_of_all(self.partition.access)
        return schedulers.Job("plumb", self.nodes, self.log, access, self.hosts or self.partition.hosts[: self.nodes])

    def job_id(self) -> str | None:
        """The job's id, once the scheduler has printed it."""
        return self.scheduler.job_id(_read(self.folder / "submit.out"))


def needed(partition: Partition) -> bool:
    """Whether a command for ``partition`` has to be started on its nodes.

    It is reached by jobs only, and this process is in none; or by ssh, and this is none of its hosts.
    """
    scheduler = schedulers.named(partition.scheduler)
    if scheduler.has_jobs:
        return not scheduler.inside(os.environ)
    hosts = [] if scheduler.is_one_host else partition.hosts
    return bool(hosts) and not any(same_host(name, socket.gethostname()) for name in hosts)


def refuse(partition: Partition, command: str) -> None:
    """Raise :class:`PlumbError` where ``command``, which submits no job of its own, has to be started in one."""
    if needed(partition):
        fault = f"partition {partition.name} is reached by jobs, and this is none"
        raise PlumbError(fault, command, "run the same command inside a job on its nodes")


def run(submission: Submission, say: Callable[[str], None]) -> int:
    """Submit a job, print its output as it comes, and return the exit status of its command.

    Raises :class:`PlumbError` when it cannot be submitted or does not reach its end, and for a folder that was not made
    by an earlier job. An interrupt cancels the job and is raised again.
    """
    files.make_anew(submission.folder)
    submission.output.write_text("", encoding="utf-8")
    script = submission.folder / "job.sh"
    script.write_text(_script(submission), encoding="utf-8")
    script.chmod(0o755)  # some schedulers read it, others execute it
    command = submission.scheduler.submit(submission.job(), script)
    say(f"job: {shlex.join(command)}")
    child = _start(command, submission.folder, "submit")
    printer = _Printer(submission.output, time.monotonic() + submission.limit)
    try:
        _require_answer(submission, child)
        status = _wait(child, printer)
        job_id = submission.job_id()
        if waiting := submission.scheduler.follow(job_id) if job_id and status == 0 else None:
            child = _start(waiting, submission.folder, "follow")
            status = _wait(child, printer)
        if job_id or status == 0 or not submission.scheduler.has_jobs:  # else there is no job to wait for
            _wait_for(submission.status)
    except (Interrupted, KeyboardInterrupt, PlumbError):
        _cancel(submission, child, say)
        raise
    printer.print_new()
    if ended := _read(submission.status).strip():
        return int(ended)
    outputs = [submission.folder / name for name in ("submit.out", "submit.err")]
    text = "\n".join(_read(file) for file in (*outputs, submission.log, submission.output))
    fault = f"the job did not reach its end: {last_line(text) or f'exit status {status}'}"
    raise PlumbError(fault, shlex.join(command), f"its output: {submission.output}")


def run_plumb(
    words: Sequence[str],
    partition: Partition,
    nodes: int,
    folder: Path,
    say: Callable[[str], None],
    hosts: Sequence[str] = (),
    limit: float = math.inf,
) -> int:
    """:func:`run` for ``plumb`` with ``words``, which finds the folders of this process; an interrupt ends the job."""
    command = [paths.program("plumb"), *paths.options(), *words]
    with interruptible():
        return run(Submission(partition, command, nodes, folder, hosts, limit), say)


def options(args: argparse.Namespace, *names: str) -> list[str]:
    """The options ``names`` of ``args`` for another run of their command; a file that it writes by its whole path."""
    words: list[str] = []
    for name in names:
        value = getattr(args, name)
        for element in value if isinstance(value, list) else [value]:
            if element is not None and element is not False:
                text = f"{element:g}" if isinstance(element, float) else element
                text = f"{100 * element:g}%" if name in ("tolerance", "must_detect") else text
                text = text.absolute() if isinstance(text, files.Output) else text
                words += [f"--{name.replace('_', '-')}", *([] if element is True else [str(text)])]
    return words


def noted(stage: Path) -> Path:
    """The note of a job that ReFrame submitted from the folder ``stage``."""
    return stage / "plumb.job"


def note(stage: Path, scheduler: str, job_id: str) -> None:
    """Leave a note of a job that ReFrame submitted."""
    noted(stage).write_text(f"{scheduler} {job_id}\n", encoding="utf-8")


def cancel_noted(top: Path, say: Callable[[str], None]) -> None:
    """End every job that has a note below the folder ``top``."""
    for file in noted(top).parent.rglob(noted(top).name):
        scheduler, job_id = file.read_text(encoding="utf-8").split()
        _cancel_job(schedulers.named(scheduler), job_id, say)
        file.unlink(missing_ok=True)


def _script(submission: Submission) -> str:
    """The job script; every word of the command is quoted, and ``prepare`` is the site's own shell.

    Schedulers differ in the variables and the folder that a job begins with, in when they write its output, and in
    whether waiting for it ends with its exit status. Therefore the script sets or writes all of these itself.
    """
    named = [] if submission.scheduler.has_jobs or not submission.hosts else submission.hosts
    lines = [
        "#!/bin/bash",
        *submission.scheduler.script_begins,
        *submission.partition.prepare,
        *([f"export {JOB_HOSTS}={shlex.quote(','.join(named))}"] if named else []),
        f"cd {shlex.quote(str(Path.cwd()))} || exit",
        "status=0",
        f"{shlex.join(submission.command)} >>{shlex.quote(str(submission.output))} 2>&1 || status=$?",
        f"echo $status >{shlex.quote(str(submission.status))}",
        "exit $status\n",
    ]
    return "\n".join(lines)


@dataclass
class _Printer:
    """Prints the new part of a file. It is opened again each time: only then a shared file system shows new content."""

    file: Path
    #: by when the job has to have ended (monotonic)
    until: float = math.inf
    position: int = 0
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def print_new(self) -> None:
        with self.file.open("rb") as stream:
            stream.seek(self.position)
            added = stream.read()
        self.position += len(added)
        sys.stdout.write(self.decoder.decode(added))
        sys.stdout.flush()


def _start(command: list[str], folder: Path, name: str) -> subprocess.Popen[bytes]:
    """A program of the scheduler, with its words in ``name.out`` and ``name.err``."""
    with (folder / f"{name}.out").open("wb") as out, (folder / f"{name}.err").open("wb") as err:
        try:
            return subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise PlumbError(f"cannot submit: {error.strerror}", command[0], "is this a login host?") from error


def _require_answer(submission: Submission, child: subprocess.Popen[bytes]) -> None:
    """Wait for the job's id, or for a failed submission; raises :class:`PlumbError` after :data:`ANSWER_S`."""
    deadline = time.monotonic() + ANSWER_S
    while submission.scheduler.id_at_once and child.poll() is None and submission.job_id() is None:
        if time.monotonic() > deadline:
            fault = f"{submission.scheduler.name} has named no job within {ANSWER_S:g} s"
            raise PlumbError(fault, submission.partition.name, "does it answer? plumb nodes states asks it")
        time.sleep(LOOK_S)


def _wait(child: subprocess.Popen[bytes], printer: _Printer) -> int:
    """The exit status of ``child``; meanwhile the job's output is printed. Raises :class:`PlumbError` if it is late."""
    while time.monotonic() < printer.until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(LOOK_S)
        printer.print_new()
    raise PlumbError("the job did not end in time", str(printer.file), "its nodes may be busy: try again later")


def _wait_for(file: Path) -> None:
    """Wait until ``file`` has content, for :data:`LATE_S` at most."""
    deadline = time.monotonic() + LATE_S
    while not _read(file) and time.monotonic() < deadline:
        time.sleep(LOOK_S)


def _cancel(submission: Submission, child: subprocess.Popen[bytes], say: Callable[[str], None]) -> None:
    """End the job, and the command that waits for it; the job gets the time that its own clean-up takes.

    A command that has not printed the id yet is ended itself, and the job that it may have made meanwhile after it.
    """
    if job_id := submission.job_id():
        _cancel_job(submission.scheduler, job_id, say)
    else:
        child.terminate()
    try:
        child.wait(CANCEL_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if not job_id and (late := submission.job_id()):
        _cancel_job(submission.scheduler, late, say)


def _cancel_job(scheduler: Scheduler, job_id: str, say: Callable[[str], None]) -> None:
    command = scheduler.cancel(job_id)
    try:
        answer(command, f"job {job_id}")
    except PlumbError as error:
        say(f"job {job_id} could not be cancelled: {error.message}: {shlex.join(command)}")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
