"""Repositories whose commits have made-up times, and searches in them."""

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.extras.search.bisect.commits import Commits
from plumbline.extras.search.bisect.search import MUST_DETECT, TOLERANCE, BisectionFindings, Comparison, Search
from plumbline.statistics.paired import PairedRule

RULE = PairedRule(TOLERANCE, MUST_DETECT)


@dataclass
class History:
    """A repository below ``folder``; ``names`` has each commit by its subject."""

    folder: Path
    names: dict[str, str] = field(default_factory=dict)
    clones: dict[bool, Commits] = field(default_factory=dict)

    def git(self, *words: str, text: str | None = None) -> str:
        """What git prints when it reads ``text``."""
        command = ["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout.strip()

    def commit(self, subject: str, *words: str) -> str:
        """A commit (of no files) on what is checked out."""
        self.git(*(words or ("commit", "--allow-empty")), "-qm", subject)
        self.names[subject] = self.git("rev-parse", "HEAD")
        return self.names[subject]

    def commits(self, first_parent: bool = False) -> Commits:
        """What searches ask git, which is asked the same question once."""
        if first_parent not in self.clones:
            place = self.folder.with_name(f"{self.folder.name}-clone{first_parent:d}")
            self.clones[first_parent] = Commits(self.folder, place, (), first_parent)
        return self.clones[first_parent]

    @property
    def subjects(self) -> dict[str, str]:
        """The subject of each commit."""
        return {commit: subject for subject, commit in self.names.items()}


def linear(folder: Path, number: int) -> History:
    """Commits ``0`` to ``number``, one after the other."""
    folder.mkdir()
    made = History(folder)
    made.git("init", "-q", "-b", "main")
    commits = "".join(
        f"commit refs/heads/main\ncommitter a <a@b> {1_767_225_600 + place} +0000\ndata {len(str(place))}\n{place}\n"
        for place in range(number + 1)
    )
    made.git("fast-import", "--quiet", text=commits)
    made.names = dict(zip(map(str, range(number + 1)), made.git("rev-list", "--reverse", "main").split(), strict=True))
    return made


@dataclass
class Judge:
    """Gates that are always right: ``times`` by subject, ``broken`` ones do not build.

    ``open_``: pairs of subjects whose gate is INCONCLUSIVE. ``missed``: how many gates of a pair find nothing before
    they are right. ``asked`` has every gate that was made.
    """

    history: History
    times: Mapping[str, float]
    broken: Iterable[str] = ()
    open_: Iterable[tuple[str, str]] = ()
    missed: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    known: dict[tuple[object, ...], Comparison] = field(default_factory=dict)

    def compare(
        self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        """As :data:`plumbline.extras.search.bisect.search.Compare`."""
        known = self.history.subjects
        both = known[baseline], known[candidate]
        key = (*both, rule.tolerance, rule.must_detect, again)
        if key in self.known:
            return self.known[key]  # as plumb bisect
        self.asked.append(both)
        unusable = tuple(self.history.names[name] for name in both if name in self.broken)
        ratio = self.times[both[1]] / self.times[both[0]]
        state = "FAIL" if ratio > 1 + rule.tolerance else "PASS"
        if unusable:
            state = "INVALID"
        elif both in self.open_:
            state = "INCONCLUSIVE"
        elif self.missed.get(both):
            self.missed[both] -= 1
            state = "PASS"
        self.known[key] = Comparison(
            baseline=baseline,
            candidate=candidate,
            tolerance=rule.tolerance,
            must_detect=rule.must_detect,
            state=state,
            pairs=13,
            launches=26,
            ratio=ratio,
            interval=(ratio * 0.999, ratio * 1.001),
            detectable=rule.must_detect,
            reason=None if state in ("PASS", "FAIL") else f"{state.lower()} because of a test",
            unusable=unusable,
        )
        return self.known[key]

    def search(self, good: str, bad: str, first_parent: bool = False) -> BisectionFindings:
        """What a search between two subjects finds."""
        found = BisectionFindings()
        search = Search(self.history.commits(first_parent), self.compare, RULE, lambda line: None, lambda: "heat: time")
        search.run(found, self.history.names[good], self.history.names[bad])
        return found


def stepped(number: int, steps: Mapping[int, float]) -> dict[str, float]:
    """The times of commits ``0`` to ``number``: at each of ``steps`` the time changes by a factor."""
    times, now = {}, 1.0
    for place in range(number + 1):
        now *= steps.get(place, 1.0)
        times[str(place)] = now
    return times
