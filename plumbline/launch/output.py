"""The output of a launch: a file for each rank, two for its launcher, and the files that the program writes itself.

Of a launch that failed, the line of its output that names the cause. Of a program's files, those that the launch wrote,
and no older one.
"""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline import mpi
from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.base.units import human_bytes
from plumbline.launch.process import MOST_PRINTED, SHARED_MEMORY, Ended, printed, shared_free
from plumbline.parsers.application import Rules
from plumbline.parsers.measurement import ParseError

#: characters of a failed launch's output that its record keeps
TAIL = 2000
#: how the binder begins its errors
BINDER = "plumb-bind: "
#: messages of the system; the first such line names the cause
_SYSTEM = re.compile(
    r"No space left|not enough space|Cannot allocate|[Oo]ut of memory|quota exceeded|Permission denied|not permitted|"
    r"Too many open files|temporarily unavailable|No such file|command not found|shared object|Text file busy|"
    r"Read-only file|Stale file|Input/output error|Connection (?:refused|reset|timed out)|No route to host|"
    r"Address already in use|Host key verification|Bus error|Illegal instruction|Segmentation fault"
)
#: messages of programs; the last such line is the summary
_PROGRAM = re.compile(
    r"(?:\b|(?<=[a-z]))(?:error|exception)\b|"
    r"\b(?:fatal|abort(?:ed|ing)?|fail(?:ed|ure|s)?|cannot|could not|unable|denied|invalid)\b",
    re.I,
)
#: Open MPI and PRRTE put their messages, wrapped at 75 characters, between such lines
_RULE = re.compile(r"-{60,}")
#: such a message that says no more than the exit status does
_ENDED = re.compile(r"exited with non-zero status|exited on signal|job to be terminated")
#: lines of MPICH's launcher below the signal that ended a rank
_ADVICE = re.compile(r"typically refers to a problem|see the FAQ page")
#: how launchers name the signal of a rank that was killed: ``signal 9 (Killed)``, ``Killed (signal 9)``
_KILLED = re.compile(r"\bsignal:? 9\b", re.I)
#: their exit statuses then
_KILLED_STATUS = (9, 137)
#: words of Open MPI's message about a rank that ended without MPI_Finalize
IMPROPERLY = "exiting improperly"
#: lines of PRRTE's daemon about ranks that it could not reach because they had ended
_LOST = re.compile(r"PMIX ERROR: \w+_(?:UNREACH|LOST_CONNECTION)\b")
#: characters of a line that are shown
WIDTH = 200
#: bytes: an MPI library that finds less in /dev/shm fails, or dies by SIGBUS when it writes
LEAST_SHARED = 4 << 20
#: seconds by which the clocks of two file systems or of two nodes may differ
SKEW_S = 2.0
WRITE = "let the program write it in each launch, best in the folder where it runs"


@dataclass(frozen=True)
class Output:
    """The output of the launch in ``folder``, whose MPI library is of ``family``."""

    folder: Path
    family: mpi.Family

    def of_ranks(self) -> list[str]:
        """The output of each rank."""
        texts = sorted((self.folder / "output").iterdir())
        most = MOST_PRINTED // len(texts) if self._size() > MOST_PRINTED else MOST_PRINTED
        return [printed(file, most) for file in texts]

    def _size(self) -> int:
        return sum(file.stat().st_size for file in (self.folder / "output").iterdir())

    def refuse_excess(self) -> None:
        """Raise :class:`PlumbError` if the ranks printed more than is read: a figure could be missing."""
        if (size := self._size()) > MOST_PRINTED:
            message = f"it printed {human_bytes(size)}, more than the {human_bytes(MOST_PRINTED)} that are read"
            raise PlumbError(message, "the standard output", "let it print less, or write what is not read to a file")

    def of_all(self) -> list[str]:
        """The output of each rank, and both of the launcher."""
        return [*self.of_ranks(), *(printed(self.folder / name) for name in ("stdout", "stderr"))]

    def tail(self) -> str:
        """The end of all output, from the start of a line on."""
        whole = "\n".join(filter(None, self.of_all()))
        return whole if len(whole) <= TAIL else whole[-TAIL:].partition("\n")[2] or whole[-TAIL:]

    def cause(self, ended: Ended, kernel: str | None, who: str = "the launcher") -> str:
        """Why it failed: an error of plumb-bind (too few CPUs), our ``kernel`` or a scheduler's launcher, or a line."""
        names = [BINDER, *([f"{kernel}: "] if kernel else []), *mpi.ERRORS]
        return self.line(*names) or cause_of(ended, self.of_all(), who=who)

    def stderr(self) -> list[str]:
        """The lines of standard error."""
        return printed(self.folder / "stderr").splitlines()

    @property
    def degraded(self) -> list[str]:
        """The MPI library's own report that it does without something and is slower for it."""
        lines = self.stderr()
        reports = [line for pattern in self.family.degraded for line in lines if re.match(pattern, line)]
        return [f"{self.family.name} reports: {report.strip()}" for report in reports[:1]]

    def line(self, *names: str) -> str | None:
        """The first line of stderr that has one of ``names``, from the name on; earlier names have priority."""
        lines = self.stderr()
        return next((line[line.index(name) :] for name in names for line in lines if name in line), None)


def cause_of(ended: Ended, texts: Iterable[str], folder: Path = SHARED_MEMORY, who: str = "the launcher") -> str:
    """How a launch that failed ended, and why, as far as ``texts`` (its output and its launcher's) say."""
    code, left = ended.exit_code or 0, shared_free(folder)
    lines, messages = _sorted_out(texts)
    killed = (line for line in [*messages, *lines] if code in _KILLED_STATUS and _KILLED.search(line))
    line = next(killed, None) or cause_line(lines, messages) or ""
    illegal = code in (-4, 132) or "Illegal instruction" in line
    parts = {
        f"{who} ended with {f'signal {-code}' if code < 0 else f'exit status {code}'}": True,
        f": {_sentence(line)}": line,
        "; it was compiled for another processor than that of a node: PLUMB_CPU, or -march of your build": illegal,
        f"; {folder} has {(left or 0) // 1024} KiB left": left is not None and left < LEAST_SHARED,
    }
    return "".join(part for part, holds in parts.items() if holds)


def cause_line(lines: Sequence[str], messages: Sequence[str] = ()) -> str | None:
    """The line with a cause: the system's first, a program's last, a launcher's message, else the last with a word.

    ``messages`` are the launcher's own, each on one line; one that only says that a process ended comes last.

    >>> cause_line(["starting", "open: No space left on device", "rank 1 failed"])
    'open: No space left on device'
    >>> cause_line(["starting", "error: no peer", "rank 1 failed", "-----"])
    'rank 1 failed'
    >>> cause_line(["a lattice of side 7 has no checkerboard", "[vm:30964] PMIX ERROR: PMIX_ERR_UNREACH in file x.c"])
    'a lattice of side 7 has no checkerboard'
    """
    lines = [line for line in lines if not _LOST.search(line)] or lines
    system = (line for line in [*lines, *messages] if _SYSTEM.search(line))
    program = (line for line in reversed(lines) if _PROGRAM.search(line))
    telling = (line for line in messages if not _ENDED.search(line))
    any_word = (line for line in [*messages, *lines][::-1] if re.search(r"\w", line) and not _ADVICE.search(line))
    return next(system, None) or next(program, None) or next(telling, None) or next(any_word, None)


def complaint(lines: Sequence[str]) -> str:
    """The one of ``lines``, as of standard error, that names a cause; empty if none has a word of error."""
    words = (_SYSTEM, lines), (_PROGRAM, reversed(lines))
    return next((_sentence(line.strip()) for known, order in words for line in order if known.search(line)), "")


def _sorted_out(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """The lines of ``texts``, and the first paragraph of each of the launcher's messages among them, on one line."""
    lines: list[str] = []
    messages: list[list[str]] = []
    for text in texts:
        inside = False
        for line in (line.strip("= \t\r") for line in text.splitlines()):
            if _RULE.fullmatch(line):
                inside = not inside
                messages += [[]] if inside else []
            else:
                (messages[-1] if inside else lines).append(line)
    return lines, [_first_paragraph(message) for message in messages if any(message)]


def _first_paragraph(message: Sequence[str]) -> str:
    """The text before the first empty line, with the paragraph that its colon announces; no list of reasons."""
    paragraphs = [" ".join(part.split()) for part in "\n".join(message).strip().split("\n\n")]
    if any(part.startswith("1. ") for part in paragraphs[1:2]):
        return paragraphs[0].rpartition(". ")[0]
    return " ".join(paragraphs[: 2 if paragraphs[0].endswith(":") else 1])


def _sentence(line: str) -> str:
    """The beginning of ``line`` that fits: whole sentences if the first one does, else whole words."""
    if len(line) <= WIDTH:
        return line
    begin, stop, _ = line[: WIDTH + 1].rpartition(". ")
    return begin + stop.rstrip() if stop else line[:WIDTH].rpartition(" ")[0] + " …"


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
                raise ParseError(message, str(there[0]), WRITE)
            if fresh:
                texts[name] = self._text(fresh[0], headed=name in tables)
        return texts

    def _matches(self, name: str) -> list[Path]:
        if (exact := self._folder / name).is_file():
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
            raise ParseError(f"the file cannot be read: {error.strerror}", str(file), WRITE) from None

    def _kept(self, file: Path) -> int:
        state, digest = self._earlier.get(file, (None, ""))
        size = state[1] if state else 0
        return size if size < file.stat().st_size and digest == _digest(file, size) else 0


def _digest(file: Path, size: int | None = None) -> str:
    try:
        if size is None:
            return files.sha256(file)
        with file.open("rb") as stream:
            return files.sha256_of(io.BytesIO(stream.read(size)))
    except OSError:
        return ""
