"""A measuring session: a folder of launches that can be resumed, here or in a job.

The folder has a state: what was asked, and the circumstances, which must be the same when it continues. What was
measured is there too, and written whole, so that a crash loses no more than the launch, pair or stage in flight.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from plumbline import schedulers
from plumbline.base import files, git, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.base.programs import interruptible
from plumbline.base.schemas.site import Partition
from plumbline.host import provenance
from plumbline.measure import jobs
from plumbline.schedulers import names
from plumbline.stacks import manifest as manifests

#: shows a line
Say = Callable[[str], None]
#: seconds of a launch that a plan assumes where no record tells
USUAL_LAUNCH_S = 3.0
#: the file that is locked by the process that measures
LOCK = "lock"
#: files that a session that failed to begin leaves in its folder, in addition to what Plumbline made
LEFT = re.compile(rf"{LOCK}|reframe\.(out|\w+\.json)")


class SessionState(Protocol):
    """The state of a session."""

    @property
    def circumstances(self) -> dict[str, Any]:
        """The circumstances that must be the same when it continues; None is filled in by the job that measures."""


Kept = TypeVar("Kept", bound=SessionState)


@dataclass(frozen=True)
class Kind(Generic[Kept]):
    """One kind of sessions: its name for people, the words of ``plumb`` that begin one, and its state, in ``file``."""

    name: str
    command: str
    file: str
    type: type[Kept]

    @contextlib.contextmanager
    def locked(self, folder: Path) -> Iterator[None]:
        """Keep a second process out of ``folder``; the lock ends with this process, however it ends."""
        ways = ("wait for it, or take another", "--work FOLDER names a place that can be written")
        with files.reserved(folder / LOCK, f"another {self.name} runs in this folder", *ways), interruptible():
            yield

    @contextlib.contextmanager
    def new(self, folder: Path) -> Iterator[None]:
        """:meth:`locked`, for a new session; raises :class:`PlumbError` for a folder that is used or somebody's."""
        with self.locked(folder):
            if (folder / self.file).exists():
                cure = f"plumb {self.command} --resume {folder}, or another"
                raise PlumbError(f"this folder holds a {self.name} already", str(folder), cure)
            refuse_foreign(folder)
            yield

    def begin(self, folder: Path, state: Kept) -> None:
        """Write the state of a new session."""
        with self.new(folder):
            self.save(folder, state)

    def save(self, folder: Path, state: Kept) -> None:
        """Write the state of a session."""
        text = msgspec.json.format(msgspec.json.encode(state), indent=1).decode()
        files.write(f"the state of the {self.name}", folder / self.file, text + "\n")

    def peek(self, folder: Path) -> Kept:
        """The state of ``folder``, whatever the circumstances; raises :class:`PlumbError` if there is none."""
        file = folder / self.file
        cure = f"give the folder that plumb {self.command} named when it began"
        if not folder.is_dir():
            raise PlumbError("no such folder", str(folder), cure)
        if (folder / LOCK).is_file() and not file.exists():
            fault = f"this {self.name} was ended while it was prepared, or is being prepared"
            raise PlumbError(fault, str(folder), f"begin it again: plumb {self.command} … --work {folder}")
        wrong, again = f"not the state of a {self.name}", f"start a new {self.name}"
        state: Kept = schemas.read_json(file, f"no {self.name} to resume", wrong, cure, again, self.type)
        return state

    def load(self, folder: Path) -> Kept:
        """The state of ``folder``; raises :class:`PlumbError` if there is none or its circumstances have changed."""
        state = self.peek(folder)
        known = state.circumstances
        now = circumstances(list(known["stacks"]))
        for name, then in known.items():
            if then is not None and now[name] != then:
                fault = f"{name} changed since this {self.name} began: {_short(then)}, now {_short(now[name])}"
                cure = f"what was measured before and after cannot be mixed: start a new {self.name}"
                raise PlumbError(fault, str(folder), cure)
        if None in known.values():
            known.update(now)
            self.save(folder, state)
        return state

    def in_job(self, folder: Path, part: Partition, nodes: int, options: list[str], say: Say) -> int:
        """Continue the session of ``folder`` in a job of partition ``part``; returns the exit status of its command.

        ``options`` are added to ``--resume``. A session that was measured on some nodes gets them again.
        """
        measured_on = self.peek(folder).circumstances["nodes"]
        hosts = names.expand(measured_on, str(folder)) if measured_on else ()
        words = [self.command, "--resume", str(folder), *options]
        return jobs.run_plumb(words, part, nodes, folder.resolve() / "job", say, hosts)


def circumstances(stacks: list[str], part: Partition | None = None) -> dict[str, Any]:
    """The circumstances that must not change until a session continues: suite, stacks, nodes, settings of the host.

    Where ``part`` is reached by jobs alone, they are those of :func:`before_a_job`.
    """
    now = {
        "commit": git.suite_state(),
        "stacks": {name: manifests.digest(manifests.load(name)) for name in stacks},
        "nodes": names.fold(schedulers.current(os.environ).hosts(os.environ) or [schedulers.host_name()]),
        "environment": provenance.fingerprint(provenance.collect()),
    }
    return before_a_job(now) if part and jobs.needed(part) else now


def before_a_job(known: dict[str, Any]) -> dict[str, Any]:
    """Circumstances of a session that is begun where it is not measured: the job's nodes are filled in by the job."""
    return {**known, "nodes": None, "environment": None}


def refuse_foreign(folder: Path) -> None:
    """Raise :class:`PlumbError` if ``folder`` holds more than a session that failed to begin leaves there."""
    for entry in folder.iterdir():
        if not LEFT.fullmatch(entry.name) and not (entry / files.MARK).is_file() and not files.is_unfinished(entry):
            fault = f"this folder is not empty: it holds {entry.name}"
            raise PlumbError(fault, str(folder), "name an empty or a new one for the work")


@contextlib.contextmanager
def passing_folder(name: str) -> Iterator[Path]:
    """A folder for launches that nobody resumes, which is removed."""
    place = paths.build() / name
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
