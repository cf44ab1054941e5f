"""Why a launch failed, by its files: the line of its output that names the cause, and whether it began at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from plumbline.launch.process import Ended
from plumbline.launch.shared_memory import FOLDER, free

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
SHARED_MEMORY = 4 << 20


def of(ended: Ended, texts: Iterable[str], folder: Path = FOLDER) -> str:
    """How a launch that failed ended, and why, as far as ``texts`` (its output and its launcher's) say."""
    code = ended.exit_code or 0
    parts = [f"the launcher ended with {f'signal {-code}' if code < 0 else f'exit status {code}'}"]
    lines, messages = _sorted_out(texts)
    killed = (line for line in [*messages, *lines] if code in _KILLED_STATUS and _KILLED.search(line))
    line = next(killed, None) or named(lines, messages)
    if line:
        parts.append(f": {_sentence(line)}")
    if code in (-4, 132) or (line and "Illegal instruction" in line):
        parts.append("; it was compiled for another processor than that of a node: PLUMB_CPU, or -march of your build")
    left = free(folder)
    if left is not None and left < SHARED_MEMORY:
        parts.append(f"; {folder} has {left // 1024} KiB left")
    return "".join(parts)


def named(lines: Sequence[str], messages: Sequence[str] = ()) -> str | None:
    """The line with a cause: the system's first, a program's last, a launcher's message, else the last with a word.

    ``messages`` are the launcher's own, each on one line; one that only says that a process ended comes last.

    >>> named(["starting", "open: No space left on device", "rank 1 failed"])
    'open: No space left on device'
    >>> named(["starting", "error: no peer", "rank 1 failed", "-----"])
    'rank 1 failed'
    >>> named(["a lattice of side 7 has no checkerboard", "[vm:30964] PMIX ERROR: PMIX_ERR_UNREACH in file x.c"])
    'a lattice of side 7 has no checkerboard'
    """
    lines = [line for line in lines if not _LOST.search(line)] or lines
    system = (line for line in [*lines, *messages] if _SYSTEM.search(line))
    program = (line for line in reversed(lines) if _PROGRAM.search(line))
    telling = (line for line in messages if not _ENDED.search(line))
    any_word = (line for line in [*messages, *lines][::-1] if re.search(r"\w", line) and not _ADVICE.search(line))
    return next(system, None) or next(program, None) or next(telling, None) or next(any_word, None)


def complaint(text: str) -> str:
    """The line of ``text``, as of standard error, that names a cause; empty if none has a word of error."""
    lines = text.splitlines()
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


def never_began(ended: Ended, folder: Path) -> bool:
    """Whether the launcher ended, or was ended, before it started a rank, so that nothing was measured."""
    return ended.status != "ok" and not any(any((folder / name).iterdir()) for name in ("output", "witness"))
