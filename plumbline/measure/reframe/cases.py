"""Test cases: the files of the suite that a selection needs, and ReFrame's words about cases, known here alone.

ReFrame takes seconds to load the whole suite.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError, suggest
from plumbline.records.outcome import WITHOUT_FIGURES
from plumbline.schedulers.program import last_line

#: ``[       OK ] (12/80) stream_threads %threads=2 /1a2b3c4d @local:default+mpich``
_DONE = re.compile(r"\[\s*(OK|FAIL|SKIP|ABORT)\s*\]\s*\(\s*(\d+)/(\d+)\)\s*(.*)")
#: in the line before the first case: the tests are loaded
LOADED = "start processing checks"
#: ReFrame's closing report of a case that failed: its name, partition, environment, stage folder and the reason
_FAILURE = re.compile(
    r"^FAILURE INFO for ([^\n]*) \(run: .*?^  \* System partition: (\S+)$.*?^  \* Environment: (\S+)$"
    r".*?^  \* Stage directory: (.*?)$.*?^  \* Reason: (.*?)(?=^-{40}|\Z)",
    re.MULTILINE | re.DOTALL,
)
#: the lines below that of a case that failed, printed at once: an interrupted ReFrame has no closing report
_FAILED = re.compile(
    r"\[ +FAIL \] \( *\d+/\d+\) (.*)\n(?:P: .*\n)*==> test failed during '(.*)': test staged in '(.*)'$", re.MULTILINE
)
#: in a reason: a program that failed, and its stderr
_SPAWNED = re.compile(r"command '(.*?)' failed with exit code.*?^--- stderr ---$(.*?)^--- stderr ---$", re.M | re.S)
#: how ReFrame says that a function of ours raised: the reason follows
_RAISED = re.compile(r"^(?:sanity|performance) error: ")
#: why ReFrame ran nothing, where it gives no reason
NONE_SELECTED = "none was selected"
#: the cure of an error that quotes ReFrame
WHOLE = "ReFrame's whole output is there"
#: how ReFrame or Python begins the error that ended a run: one of ours that a site or a test raised, then any other
_OURS = re.compile(r"(?:.*(?:PlumbError|plumb error)|plumb): ")
_THEIRS = re.compile(r"(?:reframe: |.*: )?error: |[\w.]*(?:Error|Exception|Interrupt|Exit)(?:: |$)", re.IGNORECASE)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
#: of a regular expression: a literal, a set, or one character
_PART = re.compile(r"\\.|\[\^?\]?[^]]*\]|.", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """A test case that ended: OK, FAIL, SKIP or ABORT, and why if it has no figures.

    ``label`` is ``TEST %PARAMETERS /HASH @SYSTEM:PARTITION+STACK``; ``stage`` is the folder of a failed one's job,
    ``seconds`` the time since the end of the case before.
    """

    state: str
    label: str
    reason: str | None = None
    stage: str | None = None
    seconds: float = 0.0

    @property
    def test(self) -> str:
        """The name of its test, without parameters."""
        return self.label.partition(" ")[0]

    @property
    def failed(self) -> bool:
        """Whether it was to run and has no figures."""
        return self.state in WITHOUT_FIGURES and self.state != "SKIP"

    @property
    def names(self) -> tuple[str, str, str]:
        """The test with its parameters, the stack's environment, and the partition."""
        test, _, where = self.label.rpartition(" @")
        partition, _, environment = where.partition("+")
        return re.sub(r" /[0-9a-f]+$", "", test), environment, partition.rpartition(":")[2]

    def describe(self) -> str:
        """Test, stack and partition, for people."""
        return "{} on {} ({})".format(*self.names)


def ended(line: str) -> tuple[Case, int, int] | None:
    """The case of which ``line`` says that it ended, its number and how many there are; None for any other line."""
    if not (match := _DONE.search(line)):
        return None
    label, _, reason = match[4].partition(" [")
    return Case(match[1], label, reason.removesuffix("]") or None), int(match[2]), int(match[3])


def explained(cases: Iterable[Case], output: str) -> list[Case]:
    """``cases``, those that failed with the reason and the stage folder, from ReFrame's whole ``output``.

    The reasons are at its end; without them (it was interrupted) the phase of the test case has to do.
    """
    failures = {
        re.sub(r" /[0-9a-f]+ @", " @", label): (f"it failed in ReFrame's phase {phase}", stage)
        for label, phase, stage in _FAILED.findall(output)
    } | {
        f"{name} @{partition}+{stack}": (_reason(text), stage)
        for name, partition, stack, stage, text in _FAILURE.findall(output)
    }
    explained_cases = []
    for case in cases:
        ended_early = "interrupted before it ended" if case.state == "ABORT" else None
        reason, stage = failures.get(re.sub(r" /[0-9a-f]+ @", " @", case.label), (ended_early, None))
        explained_cases.append(replace(case, reason=reason, stage=stage) if case.failed else case)
    return explained_cases


def _reason(text: str) -> str:
    """One line: the last message of a failed program, else the first line of ReFrame's reason without its own words."""
    spawned = _SPAWNED.search(text)
    message = last_line(spawned[2]) if spawned else ""
    return f"{spawned[1]}: {message}" if spawned and message else _RAISED.sub("", text.splitlines()[0])


def last_words(output: str) -> str:
    """Why ReFrame ran nothing, from its output: an error of ours that a site or a test raised, or one of its own.

    One of its own is whole, with the indented lines that belong to it.
    """
    lines = output.splitlines()
    ours = [line[match.end() :].strip() for line in lines if (match := _OURS.match(line))]
    theirs = [at for at, line in enumerate(lines) if _THEIRS.match(line)]
    if ours or not theirs:
        return (ours or [NONE_SELECTED])[-1]
    first, *rest = lines[theirs[-1] :]
    return " ".join(line.strip() for line in (first, *itertools.takewhile(lambda line: line[:1].isspace(), rest)))


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
