"""The files that a program writes beside its standard output: those that a launch wrote, and no older one."""

from __future__ import annotations

import glob
import io
from pathlib import Path

from plumbline.base import files
from plumbline.base.units import human_bytes
from plumbline.launch.process import MOST_PRINTED
from plumbline.parsers.application import Rules
from plumbline.parsers.measurement import ParseError

#: seconds by which the clocks of two file systems or of two nodes may differ
SKEW_S = 2.0
CURE = "let the program write it in each launch, best in the folder where it runs"


class Written:
    """The files that ``rules`` name, of a launch in ``folder`` whose program has not begun.

    A name is a path from the folder on, or a pattern of such paths (``*``, ``?``). A file counts if it was written
    since, wherever it is: by the clock of the file system, which has just made ``folder``. What is there already is
    remembered.
    """

    def __init__(self, folder: Path, rules: Rules, nodes: int = 1) -> None:
        self._folder, self._rules, self._nodes = folder, rules, nodes
        self._begin = (folder / files.MARK).stat()
        earlier = {file for name in rules.files for file in self._matches(name)}
        self._earlier = {file: (files.state(file), _digest(file)) for file in earlier}

    def texts(self) -> dict[str, str]:
        """The texts that the launch wrote, by name; of a file that grew only the new end. Absent files are left out.

        Raises :class:`ParseError` for a file that the launch did not write, for several that a pattern matches, and for
        one that cannot be read.
        """
        texts: dict[str, str] = {}
        tables = [rule.file for rule in self._rules.figures.values() if rule.csv]
        for name in sorted(self._rules.files):
            there = self._matches(name)
            fresh = [file for file in there if self._is_fresh(file)]
            if len(fresh) > 1:
                named = ", ".join(file.name for file in fresh[:4])
                raise ParseError(f"the launch wrote {len(fresh)} files {name}: {named}", str(self._folder), "name one")
            if there and not fresh:
                message = f"the file {name} is older than the launch, which did not write it"
                raise ParseError(message, str(there[0]), CURE)
            for file in fresh:
                texts[name] = self._text(file, headed=name in tables)
        return texts

    def _matches(self, name: str) -> list[Path]:
        exact = self._folder / name
        if exact.is_file():
            return [exact.resolve()]
        matching = glob.glob(name, root_dir=self._folder)  # noqa: PTH207  # pathlib's takes no absolute pattern
        return sorted({path.resolve() for path in map(self._folder.joinpath, matching) if path.is_file()})

    def _is_fresh(self, file: Path) -> bool:
        state, now = self._earlier.get(file, (None, ""))[0], file.stat()
        one_clock = self._nodes == 1 and now.st_dev == self._begin.st_dev
        begin_ns = self._begin.st_mtime_ns - (0 if one_clock else round(SKEW_S * 1e9))
        return files.state(file) != state and now.st_mtime_ns >= begin_ns

    def _text(self, file: Path, *, headed: bool) -> str:
        """The new text in ``file``, below the line of a table that names its columns."""
        try:
            with file.open("rb") as stream:
                kept = self._kept(file)
                head = stream.readline().decode(errors="replace") if kept and headed else ""
                stream.seek(kept)
                if (size := file.stat().st_size - kept) > MOST_PRINTED:
                    message = f"it has {human_bytes(size)}, more than the {human_bytes(MOST_PRINTED)} that are read"
                    raise ParseError(message, str(file), "let the program write the figures to a file of their own")
                return head + io.TextIOWrapper(stream, encoding="utf-8", errors="replace").read()
        except OSError as error:
            raise ParseError(f"the file cannot be read: {error.strerror}", str(file), CURE) from None

    def _kept(self, file: Path) -> int:
        """How many bytes at the beginning of a file are those of before the launch."""
        if file not in self._earlier:
            return 0
        state, digest = self._earlier[file]
        size = state[1]
        return size if size < file.stat().st_size and digest == _digest(file, size) else 0


def _digest(file: Path, size: int | None = None) -> str:
    """SHA-256 of a file, or of its first ``size`` bytes; empty if it cannot be read."""
    try:
        if size is None:
            return files.sha256(file)
        with file.open("rb") as stream:
            return files.sha256_of(io.BytesIO(stream.read(size)))
    except OSError:
        return ""
