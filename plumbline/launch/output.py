"""The output of a launch: a file for each rank, two for its launcher."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi
from plumbline.base.errors import PlumbError
from plumbline.base.units import human_bytes
from plumbline.launch import cause, process

#: characters of a failed launch's output that its record keeps
TAIL = 2000
#: how the binder begins its errors
BINDER = "plumb-bind: "


@dataclass(frozen=True)
class Output:
    """The output of the launch in ``folder``, whose MPI library is of ``family``."""

    folder: Path
    family: mpi.Family

    def of_ranks(self) -> list[str]:
        """The output of each rank."""
        files = sorted((self.folder / "output").iterdir())
        most = process.MOST_PRINTED // len(files) if self._size() > process.MOST_PRINTED else process.MOST_PRINTED
        return [process.printed(file, most) for file in files]

    def _size(self) -> int:
        return sum(file.stat().st_size for file in (self.folder / "output").iterdir())

    def refuse_excess(self) -> None:
        """Raise :class:`PlumbError` if the ranks printed more than is read: a figure could be missing."""
        if (size := self._size()) > process.MOST_PRINTED:
            message = f"it printed {human_bytes(size)}, more than the {human_bytes(process.MOST_PRINTED)} that are read"
            raise PlumbError(message, "the standard output", "let it print less, or write what is not read to a file")

    def _of_all(self) -> list[str]:
        """The output of the ranks, then that of the launcher."""
        return [*self.of_ranks(), *(process.printed(self.folder / name) for name in ("stdout", "stderr"))]

    def tail(self) -> str:
        """The end of all output, from the start of a line on."""
        whole = "\n".join(text for text in self._of_all() if text)
        return whole if len(whole) <= TAIL else whole[-TAIL:].partition("\n")[2] or whole[-TAIL:]

    def cause(self, ended: process.Ended, kernel: str | None) -> str:
        """Why it failed: an error of plumb-bind (too few CPUs), our ``kernel`` or a scheduler's launcher, or a line."""
        names = [BINDER, *([f"{kernel}: "] if kernel else []), *mpi.ERRORS]
        return self.line(*names) or cause.of(ended, self._of_all())

    def complaint(self) -> str:
        """The line of stderr that names a cause, of a launch that ended well; empty if there is none."""
        return cause.complaint(process.printed(self.folder / "stderr"))

    def degraded(self) -> list[str]:
        """The MPI library's own report that it does without something and is slower for it."""
        lines = process.printed(self.folder / "stderr").splitlines()
        for pattern in self.family.degraded:
            if report := next((line for line in lines if re.match(pattern, line)), None):
                return [f"{self.family.name} reports: {report.strip()}"]
        return []

    def line(self, *names: str) -> str | None:
        """The first line of stderr that has one of ``names``, from the name on; earlier names have priority."""
        lines = process.printed(self.folder / "stderr").splitlines()
        return next((line[line.index(name) :] for name in names for line in lines if name in line), None)
