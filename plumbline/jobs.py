"""One command inside one job of a partition: submitted, followed, and ended with the command's own exit status.

ReFrame submits tests. This is for what needs the whole allocation itself, such as a gate, whose pairs must share it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.errors import PlumbError
from plumbline.launch.process import Interrupted

#: set inside a job of each scheduler
INSIDE = {
    "slurm": "SLURM_JOB_ID",
    "squeue": "SLURM_JOB_ID",
    "pbs": "PBS_JOBID",
    "sge": "JOB_ID",
    "lsf": "LSB_JOBID",
    "flux": "FLUX_URI",
}
#: A job whose node dies is not started anew: half a session on other nodes would follow the first half.
ONCE = {
    "slurm": ["--no-requeue"],
    "squeue": ["--no-requeue"],
    "pbs": ["-r", "n"],
    "sge": ["-r", "n"],
    "lsf": ["-rn"],
}
#: seconds between two looks at what a job has written
LOOK_S = 0.5
#: seconds that the end of a job may take to be seen: shared file systems are late
LATE_S = 10.0
#: seconds that a cancelled job has to clean up
CANCEL_S = 30.0


@dataclass(frozen=True)
class Job:
    """How a command reaches its nodes. ``nodelist``, in Slurm's own words, asks for these nodes; empty: any."""

    partition: dict[str, Any]
    command: Sequence[str]
    nodes: int
    folder: Path
    nodelist: str = ""

    @property
    def output(self) -> Path:
        """What the command prints."""
        return self.folder / "job.out"

    @property
    def log(self) -> Path:
        """What the scheduler says about the job."""
        return self.folder / "job.log"

    @property
    def status(self) -> Path:
        """Where the exit status of the command is left."""
        return self.folder / "job.status"


def needed(partition: dict[str, Any]) -> bool:
    """Whether ``partition`` (an element of ``site.yaml``) is reached by jobs only, and this process is in none."""
    variable = INSIDE.get(partition["scheduler"])
    return variable is not None and variable not in os.environ


def run(job: Job, say: Callable[[str], None]) -> int:
    """Submit ``job``, print its output as it comes, and return the exit status of its command.

    Raises :class:`PlumbError` when it cannot be submitted. An interrupt ends the job and is raised again.
    """
    scheduler = job.partition["scheduler"]
    if scheduler not in _SUBMIT:
        what = f"plumb cannot submit itself to {scheduler}"
        raise PlumbError(what, f"partition {job.partition['name']}", "run the same command inside a job of yours")
    job.folder.mkdir(parents=True, exist_ok=True)
    job.output.write_text("", encoding="utf-8")
    job.status.unlink(missing_ok=True)
    script = job.folder / "job.sh"
    script.write_text(_script(job), encoding="utf-8")
    submit, cancel = _SUBMIT[scheduler]
    command = [*submit(job), str(script)]
    say(f"job: {shlex.join(command)}")
    with (job.folder / "submit.out").open("w", encoding="utf-8") as stream:
        try:
            child = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise PlumbError(f"cannot submit: {error.strerror}", command[0], "is this a login host?") from error
    try:
        _follow(job, child)
    except (Interrupted, KeyboardInterrupt):
        _cancel(job, child, cancel)
        raise
    if job.status.is_file():
        return int(job.status.read_text(encoding="utf-8"))
    told = f"{_read(job.folder / 'submit.out')}\n{_read(job.log)}\n{_read(job.output)}"
    lines = [line for line in told.splitlines() if line.strip()]
    what = f"the job did not reach its end: {lines[-1][:300] if lines else f'exit status {child.returncode}'}"
    raise PlumbError(what, shlex.join(command), f"its output: {job.output}")


def _script(job: Job) -> str:
    """The job script; every word of the command is quoted, and ``prepare`` is the site's own shell.

    Schedulers differ in when they write a job's output and whether waiting for it ends with its exit status, so the
    script leaves both in files.
    """
    lines = [f"export PLUMB_ROOT={shlex.quote(str(paths.root()))}", *job.partition.get("prepare", [])]
    lines += [f"cd {shlex.quote(str(Path.cwd()))} || exit"]  # some schedulers begin in the home folder
    lines += ["status=0", f"{shlex.join(job.command)} >>{shlex.quote(str(job.output))} 2>&1 || status=$?"]
    lines += [f"echo $status >{shlex.quote(str(job.status))}", "exit $status"]
    return "\n".join(["#!/bin/bash", *lines, ""])


def _follow(job: Job, child: subprocess.Popen[bytes]) -> None:
    """Print what the job writes until the command that waits for it has ended."""
    with job.output.open(encoding="utf-8", errors="replace") as stream:
        ended = None
        while ended is None or (not job.status.is_file() and time.monotonic() < ended + LATE_S):
            text = stream.read()
            sys.stdout.write(text)
            sys.stdout.flush()
            if ended is None and child.poll() is not None:
                ended = time.monotonic()
            if not text:
                time.sleep(LOOK_S)
        sys.stdout.write(stream.read())
        sys.stdout.flush()


def _cancel(job: Job, child: subprocess.Popen[bytes], cancel: tuple[str, ...]) -> None:
    """End the job, and the command that waits for it; the job gets the time that its own clean-up takes."""
    found = re.search(r"\d[\w.\[\]-]*", _read(job.folder / "submit.out"))
    if cancel and found:
        subprocess.run([*cancel, found[0]], check=False, capture_output=True)
    else:
        child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(CANCEL_S)
    if child.poll() is None:
        child.kill()
        child.wait()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _slurm(job: Job) -> list[str]:
    """sbatch(1): ``--wait`` ends with the job's exit status, ``--parsable`` prints the job's number first."""
    options = ["--wait", "--parsable", "--job-name=plumb", f"--nodes={job.nodes}", "--ntasks-per-node=1", "--exclusive"]
    options += [*ONCE["slurm"], f"--output={job.log}", *job.partition.get("access", [])]
    return ["sbatch", *options, *([f"--nodelist={job.nodelist}"] if job.nodelist else [])]


def _pbs(job: Job) -> list[str]:
    """qsub(1B) of OpenPBS: ``block=true`` waits for the job and ends with its exit status."""
    options = [*ONCE["pbs"], "-W", "block=true", "-N", "plumb", "-j", "oe", "-o", str(job.log)]
    return ["qsub", *options, "-l", f"select={job.nodes}", "-l", "place=scatter:excl", *job.partition.get("access", [])]


def _lsf(job: Job) -> list[str]:
    """bsub(1) of LSF: ``-K`` waits for the job and ends with its exit status, ``-x`` takes whole nodes."""
    options = [*ONCE["lsf"], "-K", "-x", "-J", "plumb", "-n", str(job.nodes), "-R", "span[ptile=1]", "-o", str(job.log)]
    return ["bsub", *options, *job.partition.get("access", [])]


def _flux(job: Job) -> list[str]:
    """flux-alloc(1): the script runs in an instance of its own, which ends with it."""
    options = [f"--nodes={job.nodes}", "--exclusive"]
    return ["flux", "alloc", *options, *job.partition.get("access", [])]


#: scheduler -> its command up to the script, and what ends a job by its number (none: ending the command does)
_SUBMIT: dict[str, tuple[Callable[[Job], list[str]], tuple[str, ...]]] = {
    "slurm": (_slurm, ("scancel",)),
    "squeue": (_slurm, ("scancel",)),
    "pbs": (_pbs, ("qdel",)),
    "lsf": (_lsf, ("bkill",)),
    "flux": (_flux, ()),
}
