"""The commits of a range, and which one is measured next: ``git bisect`` itself says that, in a clone of its own.

Nothing is checked out, and the repository that is asked about keeps its state. https://git-scm.com/docs/git-bisect
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plumbline.base import git
from plumbline.base.errors import PlumbError

#: a mark of a commit for git
Term = Literal["good", "bad", "skip"]
#: exit status of git where only skipped commits remain
ONLY_SKIPPED = 2
#: the last lines of ``git bisect log``: the culprit, or each that remains where the others were skipped
_FIRST = re.compile(r"^# (possible )?first bad commit: \[([0-9a-f]+)\]", re.MULTILINE)
#: of the first line of a log; our clone has no files
_NO_CHECKOUT = " '--no-checkout'"


@dataclass(frozen=True)
class GitAnswer:
    """The answer of git: the ``commit`` to test next; or else ``left``, of which one is the first bad one.

    ``log`` is for ``git bisect replay``.
    """

    commit: str | None
    left: tuple[str, ...]
    log: str


class Commits:
    """The commits of a repository, for one search; ``paths``: only those that change these.

    ``place`` is a folder for the clone, which is made anew. ``first_parent``: of a merge only its first parent is
    followed.
    """

    def __init__(self, repository: Path, place: Path, paths: Sequence[str] = (), first_parent: bool = False) -> None:
        self.place, self.paths = place, tuple(paths)
        self._options = ["--first-parent"] if first_parent else []
        self._known: dict[object, GitAnswer] = {}
        self._labels: dict[str, tuple[str, str]] = {}
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        git.run("clone", "--quiet", "--shared", "--bare", "--", str(repository), str(place), at=place.parent)

    def ask(self, good: str, bad: str, judged: Sequence[tuple[str, Term]]) -> GitAnswer:
        """Which commit is next after these were ``judged``; raises :class:`PlumbError` where git refuses."""
        key = good, bad, tuple(judged)
        if key not in self._known:
            words = ["--no-checkout", *self._options, *(["--", *self.paths] if self.paths else [])]
            start = f"git bisect start {' '.join(map(_quoted, words))}"
            lines = [start, f"git bisect bad {bad}", f"git bisect good {good}"]
            lines += [f"git bisect {term} {commit}" for commit, term in judged]
            log = self.place / "plumb.log"
            log.write_text("\n".join(lines) + "\n", encoding="utf-8")
            git.run("update-ref", "--no-deref", "HEAD", bad, at=self.place)
            git.run("bisect", "replay", str(log), at=self.place, accepted=(0, ONLY_SKIPPED))
            known = git.run("bisect", "log", at=self.place) + "\n"
            left = tuple(commit for _, commit in _FIRST.findall(known))
            following = None if left else git.run("rev-parse", "BISECT_HEAD", at=self.place)
            self._known[key] = GitAnswer(following, left, known.replace(_NO_CHECKOUT, "", 1))
        return self._known[key]

    def between(self, good: str, bad: str) -> list[str]:
        """The commits after ``good`` up to ``bad``, the oldest first."""
        words = ["rev-list", "--topo-order", "--reverse", *self._options, bad, f"^{good}", "--", *self.paths]
        return git.run(*words, at=self.place).splitlines()

    def parent(self, commit: str) -> str | None:
        """The first parent of a commit."""
        return git.commit(f"{commit}^", self.place)

    def is_after(self, commit: str, good: str) -> bool:
        """Whether ``commit`` has ``good`` in its history."""
        return self.base(commit, good) == good

    def base(self, first: str, second: str) -> str | None:
        """The newest commit that both have in their history; None if they have none."""
        ancestors = git.run("merge-base", first, second, at=self.place, accepted=(0, 1))
        return ancestors.splitlines()[0] if ancestors else None

    def subject(self, commit: str) -> tuple[str, str]:
        """Subject and author's date of a commit."""
        if commit not in self._labels:
            date, _, subject = git.run("show", "--no-patch", "--format=%as %s", commit, at=self.place).partition(" ")
            self._labels[commit] = (subject, date)
        return self._labels[commit]

    def label(self, commit: str) -> str:
        """A commit for people: first digits, subject, author's date."""
        return f"{commit[:12]} ({', '.join(filter(None, self.subject(commit)))})"


def require_range(commits: Commits, good: str, bad: str, labels: tuple[str, str]) -> None:
    """Raise :class:`PlumbError` unless ``good`` is in the history of ``bad``, and not equal to it."""
    where = "plumb bisect"
    if good == bad:
        raise PlumbError(f"{labels[0]} and {labels[1]} are the same commit", where, "name an older one first")
    if commits.is_after(good, bad):
        raise PlumbError(f"{labels[1]} is older than {labels[0]}", where, f"plumb bisect {shlex.join(labels[::-1])}")
    if not commits.is_after(bad, good):
        base = commits.base(good, bad)
        raise PlumbError(
            f"{labels[0]} is not in the history of {labels[1]}",
            where,
            f"their common history ends at {base[:12]}: name that as the good one" if base else "name another",
        )
    if not commits.between(good, bad):
        raise PlumbError(
            f"no commit between {labels[0]} and {labels[1]} changes {', '.join(commits.paths)}", where, "name others"
        )


def _quoted(word: str) -> str:
    """As git quotes the words of a log."""
    return "'" + word.replace("'", "'\\''") + "'"
