"""Whether the files that a launch runs are still those that the session began with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from plumbline import files

#: what tells two states of a file apart without reading it; the time of the last change of the inode cannot be set
_State: TypeAlias = tuple[int, int, int, int]


@dataclass
class Files:
    """Files that must stay as they are: path → SHA-256, and how each of them looked when it was read last."""

    recorded: dict[Path, str]
    states: dict[Path, _State]

    @classmethod
    def of(cls, ours: Iterable[Path], recorded: Mapping[Path, str | None]) -> Files:
        """``ours`` and those ``recorded`` by a stack, as they are now; the SHA-256 of those without one is taken.

        Take it before the recorded ones are compared with what they should be: what changes meanwhile is noticed.
        """
        known = {**dict.fromkeys(ours), **recorded}
        present = {file: digest for file, digest in known.items() if file.is_file()}
        states = {file: _state(file) for file in present}
        return cls({file: digest or files.sha256(file) for file, digest in present.items()}, states)

    def changes(self) -> list[str]:
        """Which files are others now, in words; one is read only if it does not look as it did."""
        return [found for file in self.recorded if (found := self._change(file))]

    def _change(self, file: Path) -> str | None:
        try:
            state = _state(file)
            if state == self.states[file]:
                return None
            if files.sha256(file) != self.recorded[file]:
                return f"{file} was changed since the session began"
        except OSError as error:
            return f"{file} was there when the session began: {error.strerror}"
        self.states[file] = state
        return None


def _state(file: Path) -> _State:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
