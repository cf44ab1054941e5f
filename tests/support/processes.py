"""Processes that a test started, wherever they went, and waiting for what they do."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

_Answer = TypeVar("_Answer")


def ended(command: Iterable[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """How a command ended, with all that it printed; ``options`` are those of ``subprocess.run``."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def succeeded(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """``done``, which must have succeeded."""
    assert done.returncode == 0, f"{done.args}\n{done.stdout}{done.stderr}"
    return done


def wait_until(
    condition: Callable[[], _Answer], why: object, seconds: float = 120, of: subprocess.Popen[Any] | None = None
) -> _Answer:
    """What ``condition()`` returns as soon as it is true.

    Raises AssertionError with ``why``, or what it returns, if it is not so after ``seconds``, or when the process
    ``of`` has ended, with all that this printed into pipes.
    """
    deadline = time.monotonic() + seconds
    while True:
        over = "before the end" if of and of.poll() is not None else None
        if answer := condition():
            return answer
        if over or time.monotonic() > deadline:
            text = str(why() if callable(why) else why)
            raise AssertionError(f"not {over or f'within {seconds:g} s'}: {text}{printed(of) if of else ''}")
        time.sleep(0.02)


def printed(process: subprocess.Popen[Any]) -> str:
    """The exit status of a process, and what it printed into pipes; it is killed if it has not ended."""
    process.kill()
    try:
        streams = process.communicate(timeout=60)
    except subprocess.TimeoutExpired as error:  # its children have the pipes
        streams = error.stdout, error.stderr
    return "\n".join([f"; exit status {process.returncode}", *(str(text) for text in streams if text)])


def wait_for(file: Path, of: subprocess.Popen[Any] | None = None) -> str:
    """The text of ``file`` as soon as it has some."""
    return wait_until(lambda: file.exists() and file.read_text(), f"text in {file}", of=of) or ""


def runs(pid: int) -> bool:
    """Whether ``pid`` is a process that has not ended: one that its parent has not asked for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def limit_begins_after(patch: pytest.MonkeyPatch, event: Callable[[subprocess.Popen[Any]], object]) -> None:
    """The time limit of a launch of this process begins when ``event`` of what it started has returned."""
    from plumbline.launch import process  # not above: most who wait launch nothing

    wait = process._wait

    def late(child: subprocess.Popen[Any], *limits: Any) -> str:
        event(child)
        return wait(child, *limits)

    patch.setattr(process, "_wait", late)


def carriers(marker: str) -> dict[int, str]:
    """Process id and command line of the other live processes that carry ``marker`` in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def carrying(marker: str) -> list[str]:
    """Their command lines."""
    return list(carriers(marker).values())


def wait_gone(marker: str) -> None:
    """Return when no process carries ``marker`` any more."""
    wait_until(lambda: not carriers(marker), lambda: f"the end of {carrying(marker)}")


def wait_asleep(pid: int, threads: int = 1) -> None:
    """Return when a process has ``threads`` threads that all sleep, and no signal that it has not taken yet."""
    wait_until(lambda: _asleep(pid, threads), lambda: f"sleep of process {pid}: {_threads(pid)}")


def _asleep(pid: int, threads: int) -> bool:
    fields = _threads(pid)
    return len(fields) == threads and all(
        one["State"].startswith("S") and int(one["SigPnd"], 16) == int(one["ShdPnd"], 16) == 0 for one in fields
    )


def _threads(pid: int) -> list[dict[str, str]]:
    threads = []
    for file in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # it has ended
            threads.append(dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line))
    return threads
