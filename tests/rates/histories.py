"""Real bisections of histories of a small code: which commit they name, in how many launches and minutes.

Run as ``python tests/rates/histories.py [--only NAME] [--commits N] [--stack NAME]`` in a checkout that is set up, on
an idle machine. The code is that of docs/examples/heat, with one rank and one thread, so that what else runs on the
machine has a core of its own; of every hundred steps of its loop a history repeats some, from the same plate, so the
result stays the same and it is known which commit does how much more work. All other commits change
a comment. In histories with broken commits one in eight does not compile, at random. A bisection is right if it names
each commit that changes the work, and with it only commits that do not compile; wrong if it names one that changes
nothing; else open.
"""

import argparse
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import git, show, timed

ROOT = Path(__file__).resolve().parents[2]
ONE_STEP = "        exchange(rank, size);\n        step();\n"
BACK = "double *back = plate; plate = next; next = back;"
AGAIN = f"        if (number * MORE % 100 < MORE) {{ {BACK} exchange(rank, size); step(); }}\n"
DESCRIBED = r"""
application: heat
build: [mpicc -O3 -fopenmp -o heat heat.c]
programs:
  heat:
    command: ./heat 400 3000
    placements: [core]
    ranks: 1
    threads: 1
    figures:
      rate: {pattern: 'Performance: +([0-9.]+) MLUP/s', unit: MLUP/s, better: higher}
    checks:
      - {pattern: 'Sum: +(\S+)', value: 11237.886458406, tolerance: 1.0e-9}
"""
DOES_NOT_COMPILE = "#error no\n"


@dataclass(frozen=True)
class History:
    """What the first commit repeats of each hundred steps, and how many more or less later commits repeat."""

    first: int
    changes: tuple[int, ...]
    broken: bool = False


#: steps of 3, 5 and 10 %; with commits that do not compile; with a gain that hides a part of the loss
HISTORIES = {
    **{f"{step} %{again}": History(0, (step,)) for step in (3, 5, 10) for again in ("", ", again")},
    "5 %, broken commits": History(0, (5,), broken=True),
    "10 %, broken commits": History(0, (10,), broken=True),
    "10 %, and a gain of 4 %": History(4, (10, -4)),
    "10 %, and a gain of 4 %, again": History(4, (10, -4)),
}


@dataclass(frozen=True)
class Made:
    """A history as it was made: the commits that changed the work, and those that do not compile."""

    changed: Mapping[str, int]
    broken: frozenset[str]


def repository(folder: Path, history: History, commits: int, seed: int) -> Made:
    """A repository whose branch ``main`` has ``commits`` commits after its first, which has the tag ``good``."""
    chance = random.Random(seed)  # noqa: S311 - a design, not a secret
    changed = dict(zip(chance.sample(range(1, commits + 1), len(history.changes)), history.changes, strict=True))
    others = [number for number in range(1, commits) if number not in changed]
    broken = set(chance.sample(others, commits // 8)) if history.broken else set()
    folder.mkdir()
    (folder / "plumb.yaml").write_text(DESCRIBED, encoding="utf-8")
    source = folder / "heat.c"
    shutil.copy(ROOT / "docs" / "examples" / "heat" / source.name, source)
    text = source.read_text(encoding="utf-8")
    assert ONE_STEP in text
    text = text.replace(ONE_STEP, ONE_STEP + AGAIN)
    git(folder, "init", "--quiet", "--initial-branch=main")
    named: dict[int, str] = {}
    more = history.first
    for number in range(commits + 1):
        more += changed.get(number, 0)
        error = DOES_NOT_COMPILE if number in broken else ""
        source.write_text(f"{error}#define MORE {more}\n/* change {number} */\n{text}", encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"change {number}")
        named[number] = git(folder, "rev-parse", "HEAD")
    git(folder, "tag", "good", named[0])
    return Made(
        {named[number]: percent for number, percent in changed.items()}, frozenset(named[number] for number in broken)
    )


def judged(document: Mapping[str, Any], made: Made) -> str:
    """``right``, ``open`` or ``wrong``, with what was named."""
    right: set[str] = set()
    for culprit in document["culprits"]:
        candidates = set(culprit["candidates"])
        acting = candidates & made.changed.keys()
        if culprit["verdict"] not in ("FAIL", "GAIN"):
            continue
        if not acting:
            return f"wrong: {document['answer']}"
        if len(acting) == 1 and candidates - acting <= made.broken:
            right |= acting
    return "right" if right == made.changed.keys() else f"open: {document['answer']}"


def bisections(names: Sequence[str], commits: int, stack: str) -> Iterator[tuple[str, dict[str, Any], float, str]]:
    """What a bisection of each history says, in how many minutes; its seed is its place in the list."""
    for seed, (name, history) in enumerate(HISTORIES.items()):
        if name in names:
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place) / "heat"
                made = repository(folder, history, commits, seed)
                document, minutes = timed(folder, "bisect", "good", "main", "--stack", stack)
            yield name, document, minutes, judged(document, made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=HISTORIES, action="append", help="this history; repeated")
    parser.add_argument("--commits", type=int, default=64, metavar="N", help="commits of each history (default: 64)")
    parser.add_argument("--stack", default="mpich")
    args = parser.parse_args()
    made = bisections(args.only or list(HISTORIES), args.commits, args.stack)
    show("history", ("gates", "launches"), made, "bisections")


if __name__ == "__main__":
    main()
