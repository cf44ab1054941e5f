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

    @property
    def lives(self) -> bool:
        """Whether its process still runs."""
        return _began(self.pid) == self.began


def can_set(name: str, root: Path = Path("/")) -> bool:
    """Whether this process may change the fact ``name`` of this host."""
    setting_files = sorted(root.glob(TABLE[name])) if name in TABLE else []
    return bool(setting_files) and all(os.access(file, os.W_OK) for file in setting_files)


@contextlib.contextmanager
def changing(root: Path = Path("/")) -> Iterator[Host]:
    """A host whose settings may be changed within the block; after it they are as they were before.

    Raises :class:`PlumbError` where another process has changed settings.
    """
    host = Host(root)
    changed = _read(host.journal)
    if changed and changed.lives:
        cure = "wait for it, or end it"
        raise PlumbError(f"process {changed.pid} has changed settings of this host", str(host.journal), cure)
    restore_left(root)
    try:
        yield host
    finally:
        host.restore()


class Host:
    """The settings of the host below ``root``; ``journal`` is the file of the changes."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root, self._before = root, dict[str, str]()
        self.journal = root / paths.HOST_SETTINGS.relative_to("/")

    def set(self, values: Mapping[str, str]) -> None:
        """Make the facts named in ``values`` so. Raises :class:`PlumbError` where the host refuses."""
        for name, value in values.items():
            for file in sorted(self.root.glob(TABLE[name])):
                text, wanted = file.read_text(encoding="utf-8"), _FLAGS.get(value, value)
                now = text.partition("[")[2].partition("]")[0] or text.strip()  # of always [madvise] never
                if now == wanted:
                    continue
                if str(file) not in self._before:
                    self._before[str(file)] = now
                    changed = Changed(os.getpid(), _began(os.getpid()) or 0, self._before)
                    files.write("the settings before a change", self.journal, msgspec.json.encode(changed).decode())
                _write(file, wanted)

    def restore(self) -> None:
        """Set everything back. The journal of another process stays: it may have changed something meanwhile."""
        if self._before:
            _restore(self._before, self.journal)
            self._before = {}


def restore_left(root: Path = Path("/")) -> list[str]:
    """Set back the changes of a process that was killed; returns the files, none where there was nothing to do.

    Only who may write the files can; for others this does nothing.
    """
    journal = Host(root).journal
    changed = _read(journal)
    if changed is None or changed.lives or not os.access(journal, os.W_OK):
        return []
    _restore(changed.before, journal)
    return list(changed.before)


def _restore(before: Mapping[str, str], journal: Path) -> None:
    for file, value in ((Path(name), value) for name, value in before.items()):
        if file.exists():
            _write(file, value)
    journal.unlink(missing_ok=True)


def _write(file: Path, value: str) -> None:
    try:
        file.write_text(value, encoding="utf-8")
    except OSError as error:
        raise PlumbError(f"the host rejects '{value}': {error.strerror}", str(file), "run it as root") from error


def _read(journal: Path) -> Changed | None:
    try:
        return msgspec.json.decode(journal.read_bytes(), type=Changed)
    except (OSError, msgspec.DecodeError):
        return None


def _began(pid: int) -> int | None:
    try:
        return proc.stat(proc.PROC / str(pid)).began
    except OSError:
        return None
