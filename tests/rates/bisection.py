"""Measure how often ``plumb bisect`` names the right commit, on simulated launches of 64 commits with known truth.

    python tests/rates/bisection.py [--full]

Ends with status 1 if a rate is worse than promised.

git chooses the commits of a real repository, the rule of the gate judges simulated pairs (simulate.py has the models of
noise). Beside it stands plain bisection: the middle commit is launched a fixed number of times, and is bad if its
median is nearer to that of the last commit than to that of the first; a commit that does not build is skipped too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import simulate
from promises import Promises, at_most, command_line, show

from plumbline.extras.search.bisect.commits import Commits, Term
from plumbline.extras.search.bisect.search import (
    MUST_DETECT,
    SCREENED,
    TOLERANCE,
    BisectionFindings,
    Comparison,
    Search,
    decided,
    screened,
)  # fmt: skip
from plumbline.statistics import paired
from plumbline.statistics.paired import CAP, SCALE, PairedRule

#: commits after the good one
COMMITS = 64
NAMES = {paired.FAIL: "FAIL", paired.GAIN: "GAIN", paired.PASS: "PASS", paired.GO_ON: "INCONCLUSIVE"}
#: margins of plumb bisect
RULE = PairedRule(TOLERANCE, MUST_DETECT)
#: launches of each commit in plain bisection
PLAIN = (5, 15)


@dataclass(frozen=True)
class Kind:
    """What changes in the range: ``steps`` of the time as fractions, each at a commit that is drawn.

    ``broken`` is the probability that a commit does not build.
    """

    name: str
    steps: tuple[float, ...]
    broken: float = 0.0


KINDS = (
    Kind("one step of 3 %", (0.03,)),
    Kind("one step of 5 %", (0.05,)),
    Kind("one step of 10 %", (0.10,)),
    Kind("10 %, one commit in ten does not build", (0.10,), 0.1),
    Kind("10 %, and a gain of 5 % that hides half of it", (0.10, -0.05)),
    Kind("two steps of 5 %", (0.05, 0.05)),
)
MODELS = ("quiet", "bimodal", "drift", "noisy", "2 %")
#: less than bisect looks for: under noise it is not named, and nor is any other commit
HIDDEN = Kind("one step of 1 %", (0.01,))


@dataclass
class World:
    """64 commits with a known time each: log ratios to the first; ``broken`` ones do not build."""

    names: list[str]
    levels: np.ndarray
    changed: list[int]
    broken: set[int]
    model: str
    draw: np.random.Generator
    launches: int = 0
    gates: int = 0
    is_right: bool = False
    places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.places = {name: place for place, name in enumerate(self.names)}

    @classmethod
    def drawn(cls, names: list[str], kind: Kind, model: str, draw: np.random.Generator) -> World:
        """Steps and broken commits at places of their own."""
        changed = [int(place) for place in draw.choice(np.arange(1, len(names)), len(kind.steps), replace=False)]
        levels = np.zeros(len(names))
        for place, step in zip(changed, kind.steps, strict=True):
            levels[place:] += np.log1p(step)
        broken = {int(place) for place in np.flatnonzero(draw.random(len(names)) < kind.broken)}
        return cls(names, levels, changed, broken - {0, len(names) - 1}, model, draw)

    def compare(
        self, baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        """Gates of simulated pairs, as many as plumb bisect makes; each has pairs of its own, ``again`` or not."""
        ends = (baseline, candidate) == (self.names[0], self.names[-1])
        return decided(lambda _: self.gate(baseline, candidate, rule, screen=screen), ends=ends)

    def gate(self, baseline: str, candidate: str, rule: PairedRule, *, screen: bool = False) -> Comparison:
        """One gate of simulated pairs; ``screen``: its first ones may decide."""
        margins = {"tolerance": rule.tolerance, "must_detect": rule.must_detect}
        both = {"baseline": baseline, "candidate": candidate}
        unusable = tuple(name for name in (baseline, candidate) if self.places[name] in self.broken)
        if unusable:
            return Comparison(**both, **margins, state="INVALID", reason="does not build", unusable=unusable)
        slowdown = float(np.expm1(self.levels[self.places[candidate]] - self.levels[self.places[baseline]]))
        logs = simulate.pairs(self.model, slowdown, 1, self.draw)
        found = paired.decisions(logs, np.array([CAP]), rule)
        pairs = int(found.pairs[0])
        state = int(simulate.steady(logs[:, :pairs], found.state, rule)[0])
        if screen and (early := screened(logs[0], rule)):
            pairs, state = SCREENED, early
        estimates = paired.estimate(logs[:, :pairs])
        ratio, low, high = (
            float(np.exp(part[0] / SCALE)) for part in (estimates.centre, estimates.low, estimates.high)
        )
        self.launches += 2 * pairs
        self.gates += 1
        return Comparison(
            **both, **margins, state=NAMES[state], pairs=pairs, launches=2 * pairs, ratio=ratio, interval=(low, high)
        )

    def median(self, name: str, count: int) -> float:
        """Log of the median time of ``count`` launches in a row, in a session of their own."""
        self.launches += count
        noise = simulate.launches(self.model, 1, self.draw)[0].ravel()[:count]
        return float(self.levels[self.places[name]] + np.median(noise))

    def acceptable(self, place: int) -> set[str]:
        """The commits that cannot be told apart from the one that changed at ``place``, which is one of them."""
        start, end = place, place
        while start - 1 in self.broken:
            start -= 1
        while end in self.broken:
            end += 1
        return set(self.names[start : end + 1])


def bisected(world: World, commits: Commits) -> list[tuple[str, ...]]:
    """What ``plumb bisect`` names: the candidates of each change."""
    found = BisectionFindings()
    search = Search(commits, world.compare, RULE, lambda line: None, lambda: "figure")
    search.run(found, world.names[0], world.names[-1])
    return [one.candidates for one in found.culprits if one.state != "INCONCLUSIVE"]


def by_program(
    draw: np.random.Generator, most: int, every: bool, model: str, commits: Commits, names: list[str]
) -> World:
    """A search of a step of 10 % at one of ``most`` commits that change the program; ``every`` commit is measured.

    The launches that show which programs are the same count too.
    """
    changed = np.sort(draw.choice(np.arange(1, len(names)), most, replace=False))
    slower = int(changed[draw.integers(most)])
    levels = np.where(np.arange(len(names)) >= slower, np.log1p(0.10), 0.0)
    searched = World(names, levels, [slower], set(), model, draw)
    first: dict[int, str] = {}
    looked: set[str] = set()
    known: dict[tuple[str, str, PairedRule, bool], Comparison] = {}

    def program(name: str) -> str:
        looked.add(name)
        return first.setdefault(int((changed <= searched.places[name]).sum()), name)

    def compare(
        baseline: str, candidate: str, rule: PairedRule, *, again: bool = False, screen: bool = False
    ) -> Comparison:
        key = baseline, candidate, rule, again
        known[key] = known.get(key) or searched.compare(baseline, candidate, rule, screen=screen)
        return known[key]

    found = BisectionFindings()
    own = () if every else (program,)
    Search(commits, compare, RULE, lambda line: None, lambda: "figure", *own).run(found, names[0], names[-1])
    searched.launches += len(looked)
    searched.is_right = [one.candidates for one in found.culprits if one.is_confirmed] == [(names[slower],)]
    return searched


def of_programs(searches: int, seed: int, promises: Promises) -> Iterator[list[str]]:
    """Launches of a search among 24 commits, of which some change the program."""
    with tempfile.TemporaryDirectory() as place:
        commits, names = repository(Path(place))
        for most in (1, 6, 24):
            for model in ("quiet", "noisy"):
                cells = [str(most), model]
                for every in (False, True):
                    draws = (np.random.default_rng([seed, number, most]) for number in range(searches))
                    worlds = [by_program(draw, most, every, model, commits, names[:25]) for draw in draws]
                    right = sum(one.is_right for one in worlds)
                    is_kept = right >= 0.95 * searches
                    promises.keep(f"{most} programs, {model}: {right} of {searches} right", is_kept=is_kept)
                    cells += [f"{right / searches:.0%}", f"{sum(one.launches for one in worlds) / searches:.0f}"]
                yield cells


def plain(count: int) -> Callable[[World, Commits], list[tuple[str, ...]]]:
    """Bisection with ``count`` launches of each commit."""

    def run(world: World, commits: Commits) -> list[tuple[str, ...]]:
        good, bad = world.names[0], world.names[-1]
        middle = (world.median(good, count) + world.median(bad, count)) / 2
        judged: list[tuple[str, Term]] = []
        while (said := commits.ask(good, bad, judged)).commit:
            if world.places[said.commit] in world.broken:
                judged.append((said.commit, "skip"))
            else:
                judged.append((said.commit, "bad" if world.median(said.commit, count) > middle else "good"))
        return [said.left]

    return run


@dataclass(frozen=True)
class Rate:
    """Of ``searches``: how many named all changes and nothing else, and how many named a commit that changes
    nothing."""

    kind: Kind
    model: str
    searches: int
    right: int
    wrong: int
    launches: float
    gates: float


def world(kind: Kind, model: str, number: int, seed: int, names: list[str]) -> World:
    """The same one whatever the way that it is searched."""
    return World.drawn(names, kind, model, np.random.default_rng([seed, number, *kind.name.encode(), *model.encode()]))


def measure(
    kind: Kind, model: str, searches: int, seed: int, commits: Commits, names: list[str],
    way: Callable[[World, Commits], list[tuple[str, ...]]] = bisected,
) -> Rate:  # fmt: skip
    """Search ``searches`` times."""
    right = wrong = launches = gates = 0
    for number in range(searches):
        searched = world(kind, model, number, seed, names)
        named = [set(one) for one in way(searched, commits)]
        true = [searched.acceptable(place) for place in searched.changed]
        is_right = sorted(map(sorted, named)) == sorted(map(sorted, true))
        right += is_right
        wrong += any(not any(one & each for each in true) for one in named)
        launches += searched.launches
        gates += searched.gates
    return Rate(kind, model, searches, right, wrong, launches / searches, gates / searches)


def repository(folder: Path) -> tuple[Commits, list[str]]:
    """A repository of a first commit and 64 after it, and their names, the oldest first."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    commits = "".join(
        f"commit refs/heads/main\ncommitter x <x@example.org> {1_767_225_600 + number} +0000\ndata 0\n"
        for number in range(COMMITS + 1)
    )
    subprocess.run([*git, "fast-import", "--quiet"], input=commits, text=True, check=True)
    done = subprocess.run([*git, "rev-list", "--reverse", "HEAD"], check=True, capture_output=True, text=True)
    return Commits(folder, folder / "clone"), done.stdout.split()


def keep(rate: Rate, promises: Promises) -> None:
    """Never another commit; nearly all that change something, in few gates and launches."""
    search = f"{rate.kind.name}, {rate.model}"
    promises.keep(f"{search}: {rate.wrong} named another commit", is_kept=rate.wrong == 0)
    if rate.kind == HIDDEN:
        return
    # a second change may be too little to search on, by the noise of two gates
    least = 0.95 if rate.model == "noisy" or len(rate.kind.steps) > 1 else 0.98
    promises.keep(f"{search}: {rate.right} of {rate.searches} right", is_kept=rate.right >= least * rate.searches)
    if rate.model == "quiet":
        steps = len(rate.kind.steps)
        promises.keep(f"{search}: {rate.gates:.1f} gates", is_kept=rate.gates <= 11 * steps)
        promises.keep(f"{search}: {rate.launches:.0f} launches", is_kept=rate.launches <= 420 * steps)


def rows(searches: int, seed: int, promises: Promises) -> Iterator[list[str]]:
    """A row of each kind and noise; shares in percent, the lower 95 % bound in brackets."""
    with tempfile.TemporaryDirectory() as place:
        commits, names = repository(Path(place))
        for kind in KINDS:
            for model in MODELS:
                found = measure(kind, model, searches, seed, commits, names)
                keep(found, promises)
                cells = [kind.name, model, str(searches)]
                least = 100 - 100 * at_most(searches - found.right, searches)
                cells += [f"{100 * found.right / searches:.1f} (≥ {least:.1f})"]
                cells += [f"{100 * found.wrong / searches:.1f}", f"{found.gates:.1f}", f"{found.launches:.0f}"]
                for count in PLAIN:
                    other = measure(kind, model, searches, seed, commits, names, plain(count))
                    cells.append(f"{100 * other.right / searches:.1f}, {other.launches:.0f}")
                yield cells
        keep(measure(HIDDEN, "noisy", searches, seed, commits, names), promises)


def main() -> int:
    parser = command_line(__doc__, "200 searches a line instead of 100")
    parser.add_argument("--programs", action="store_true", help="only the searches among commits with equal programs")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    promises = Promises()
    searches = 200 if args.full else 100
    header = ("commits of 24 that change the program", "noise", "right", "launches")
    show((*header, "`--measure-equal`: right", "launches"), of_programs(searches, args.seed, promises))
    if not args.programs:
        print()
        header = ("what changes in 64 commits", "noise", "searches", "right %", "another commit %", "gates", "launches")
        plain_ones = (f"{count} launches each: right %, launches" for count in PLAIN)
        show((*header, *plain_ones), rows(searches, args.seed, promises))
    return promises.status()


if __name__ == "__main__":
    sys.exit(main())
