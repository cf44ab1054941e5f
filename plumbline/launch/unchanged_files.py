"""Whether the files that a launch runs are still those that the session began with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.base import files


@dataclass
class Files:
    """Files that must stay as they are: path → SHA-256, and how each of them looked when it was read last."""

    recorded: dict[Path, str]
    states: dict[Path, tuple[int, int, int, int]]

    @classmethod
    def of(cls, ours: Iterable[Path], recorded: Mapping[Path, str | None]) -> Files:
        """``ours`` and those ``recorded`` by a stack, as they are now; the SHA-256 of those without one is taken.

        Take it before the recorded ones are compared with what they should be: what changes meanwhile is noticed.
        """
        known = {**dict.fromkeys(ours), **recorded}
        present = {file: digest for file, digest in known.items() if file.is_file()}
        states = {file: files.state(file) for file in present}
        return cls({file: digest or files.sha256_once(file) for file, digest in present.items()}, states)

    def changes(self) -> list[str]:
        """A line for each file that has changed; a file is read again only if its inode, size or times have changed."""
        return [found for file in self.recorded if (found := self._change(file))]

    def _change(self, file: Path) -> str | None:
        try:
            state = files.state(file)
            if state == self.states[file]:
                return None
            if files.sha256(file) != self.recorded[file]:
                return f"{file} was changed since the session began"
        except OSError as error:
            return f"{file} was there when the session began: {error.strerror}"
        self.states[file] = state
        return None
