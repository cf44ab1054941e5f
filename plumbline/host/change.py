"""Settings of this host that root can change for a while, and that are set back whatever happens.

What they were before is written to a file first. A process that is killed leaves that file, and the next ``plumb``
command on this host sets them back (:func:`restore_left`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.host import proc

#: facts of a host that can be changed, and the files that have them
TABLE = {
    "thp": "sys/kernel/mm/transparent_hugepage/enabled",
    "thp_defrag": "sys/kernel/mm/transparent_hugepage/defrag",
    "numa_balancing": "proc/sys/kernel/numa_balancing",
    "governor": "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
}
#: facts that are true or false, and how a file has them
_FLAGS = {"True": "1", "False": "0"}


class Changed(msgspec.Struct):
    """A change of settings: its process (as :class:`plumbline.host.proc.Stat`), each file with its earlier content."""

    pid: int
    began: int
    before: dict[str, str]


def can_set(name: str, root: Path = Path("/")) -> bool:
    """Whether this process may change the fact ``name`` of this host."""
    setting_files = sorted(root.glob(TABLE[name])) if name in TABLE else []
    return bool(setting_files) and all(os.access(file, os.W_OK) for file in setting_files)


def _selected(text: str) -> str:
    """The word in brackets of ``always [madvise] never``, or all of it."""
    inside = text.partition("[")[2].partition("]")[0]
    return inside or text.strip()


@contextlib.contextmanager
def changing(root: Path = Path("/")) -> Iterator[Host]:
    """A host whose settings may be changed within the block; after it they are as they were before."""
    host = Host(root)
    host.refuse_second()
    try:
        yield host
    finally:
        host.restore()


class Host:
    """The settings of the host below ``root``."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root, self._before = root, dict[str, str]()

    @property
    def journal(self) -> Path:
        """The file of the changes."""
        return self.root / paths.HOST_SETTINGS.relative_to("/")

    def refuse_second(self) -> None:
        """Raise :class:`PlumbError` where another process has changed settings."""
        changed = _read(self.journal)
        if changed and _lives(changed):
            cure = "wait for it, or end it"
            raise PlumbError(f"process {changed.pid} has changed settings of this host", str(self.journal), cure)
        if changed:
            restore_left(self.root)

    def set(self, values: Mapping[str, str]) -> None:
        """Make the facts named in ``values`` so. Raises :class:`PlumbError` where the host refuses."""
        for name, value in values.items():
            for file in sorted(self.root.glob(TABLE[name])):
                now = _selected(file.read_text(encoding="utf-8"))
                wanted = _FLAGS.get(value, value)
                if now == wanted:
                    continue
                if str(file) not in self._before:
                    self._before[str(file)] = now
                    changed = Changed(os.getpid(), _began(os.getpid()) or 0, self._before)
                    files.write("the settings before a change", self.journal, msgspec.json.encode(changed).decode())
                _write(file, wanted)

    def restore(self) -> None:
        """Set everything back. The journal of another process stays: it may have changed something meanwhile."""
        if not self._before:
            return
        _restore(self._before)
        self._before = {}
        self.journal.unlink(missing_ok=True)


def restore_left(root: Path = Path("/")) -> list[str]:
    """Set back the changes of a process that was killed; returns the files, none where there was nothing to do.

    Only who may write the files can; for others this does nothing.
    """
    journal = Host(root).journal
    changed = _read(journal)
    if changed is None or _lives(changed) or not os.access(journal, os.W_OK):
        return []
    _restore(changed.before)
    journal.unlink(missing_ok=True)
    return list(changed.before)


def _restore(before: Mapping[str, str]) -> None:
    for name, value in before.items():
        if Path(name).exists():
            _write(Path(name), value)


def _write(file: Path, value: str) -> None:
    try:
        file.write_text(value, encoding="utf-8")
    except OSError as error:
        raise PlumbError(f"the host does not take '{value}': {error.strerror}", str(file), "run it as root") from error


def _read(journal: Path) -> Changed | None:
    try:
        return msgspec.json.decode(journal.read_bytes(), type=Changed)
    except (OSError, msgspec.DecodeError):
        return None


def _lives(changed: Changed) -> bool:
    return _began(changed.pid) == changed.began


def _began(pid: int) -> int | None:
    try:
        return proc.stat(proc.PROC / str(pid)).began
    except OSError:
        return None
