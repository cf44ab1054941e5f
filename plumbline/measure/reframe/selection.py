"""Which files of the suite a selection of tests needs: ReFrame takes seconds to load all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError, suggest

_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
#: of a regular expression: a literal, a set, or one character
_PART = re.compile(r"\\.|\[\^?\]?[^]]*\]|.", re.DOTALL)


def files(test: str | None) -> list[Path]:
    """The files with tests whose names may begin with what the regular expression ``test`` matches.

    It is the whole folder without ``test``; raises :class:`PlumbError` where no file has such a test.

    >>> [file.name for file in files("osu_pair.*(latency|bw)|stream")]
    ['osu.py', 'stream.py']
    """
    folder = paths.suite() / "reframe-tests"
    if not test:
        return [folder]
    wanted = list(beginnings(test))

    def may_be(name: str) -> bool:
        return any(name.startswith(begin) or begin.startswith(name) for begin in wanted)

    names_by_file = classes(folder)
    chosen = [file for file, names in names_by_file.items() if any(map(may_be, names))]
    if not chosen:
        tests = sorted(name for names in names_by_file.values() for name in names if name.islower())
        raise PlumbError(f"no test begins with '{test}'", str(folder), suggest(test, tests))
    return chosen


def words(chosen: Iterable[Path]) -> list[str]:
    """ReFrame's options for files, or a folder."""
    return [word for file in chosen for word in ("-c", str(file))]


def classes(folder: Path) -> dict[Path, list[str]]:
    """The names of the classes in each file of a folder: every test is one."""
    return {file: _CLASS.findall(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.py"))}


def beginnings(pattern: str) -> Iterator[str]:
    """The beginnings of the texts that a regular expression matches from their start: one for each alternative.

    A text may be shorter than it could be, and empty.

    >>> list(beginnings("^osu_pair.*(latency|bw)|pi?_sum|(a|b)c"))
    ['osu_pair', 'p', '']
    """
    for branch in (branch.removeprefix("^") for branch in _branches(pattern)):
        letters = re.match(r"\w*", branch)
        prefix = letters[0] if letters else ""
        yield prefix[:-1] if branch[len(prefix) : len(prefix) + 1] in ("?", "*", "{") else prefix


def _branches(pattern: str) -> Iterator[str]:
    """The alternatives of a regular expression, by the ``|`` outside groups and sets."""
    depth, branch = 0, ""
    for part in _PART.findall(pattern):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            yield branch
            branch = ""
        else:
            branch += part
    yield branch
