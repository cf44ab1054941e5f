"""Starting a program of the scheduler: without a shell, with a time limit, and with its own message in the error."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.base.errors import PlumbError

#: last lines without information, of Grid Engine
EMPTY = ("Exiting.",)
#: seconds that a program gets to end its job after SIGTERM, before SIGKILL
GRACE = 20
#: seconds that the log of a job may come after its end
LOG_S = 10.0


@dataclass(frozen=True)
class Done:
    """The output of a program; ``status`` is None if it was ended at its time limit."""

    status: int | None
    stdout: str
    stderr: str

    def last(self) -> str:
        """The last line of its stderr, or else of its stdout, with its status; without one its status alone."""
        message = last_line(self.stderr) or last_line(self.stdout)
        status = "ended at the time limit" if self.status is None else f"exit status {self.status}"
        return f"{message} ({status})" if message else status


def last_line(text: str) -> str:
    """The last line that says something, shortened; empty where there is none."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line[:300] for line in reversed(lines) if line and line not in EMPTY), "")


def run(command: Sequence[str], limit: float, environment: Mapping[str, str] | None = None, where: str = "") -> Done:
    """Run ``command`` for at most ``limit`` seconds; SIGTERM comes first, at which programs cancel their job.

    ``environment``: None for this process's own. Raises :class:`PlumbError`, with ``where``, without the program.
    """
    try:
        started = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", env=environment,
        )  # fmt: skip
    except (FileNotFoundError, PermissionError):
        cure = "run this on a login host, or name another --scheduler"
        raise PlumbError(f"{command[0]} is not on PATH", where, cure) from None
    with started as process:
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                stdout, stderr = process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
            return Done(None, stdout, stderr)
        except BaseException:
            process.terminate()
            raise
    return Done(process.returncode, stdout, stderr)


def late(log: Path) -> str:
    """The log of a job that failed; empty if it does not come within :data:`LOG_S`."""
    deadline = time.monotonic() + LOG_S
    while not log.is_file() and time.monotonic() < deadline:
        time.sleep(0.2)
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def answer(command: Sequence[str], where: str, limit: float = 60, environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a query to the scheduler, or a :class:`PlumbError` with its message."""
    done = run(command, limit, environment, where)
    if done.status != 0:
        raise PlumbError(f"{command[0]} failed: {done.last()}", where, "run it yourself: " + " ".join(command))
    return done.stdout
