"""Gates of a small code of one's own: how often equal commits FAIL, how often a slower one is found, what one costs.

Run as ``python tests/rates/own_code.py [--equal N] [--slower M] [--bisections B] [--searches S] [--causes C]
[--every N | --twice N] [--stack NAME]`` in a checkout that is set up. The code is docs/examples/heat; the slower commit
is that of docs/tutorial-code.md, or with ``--twice 20`` one that does 5 % more work, of the same kind. Every gate is
the real one. A bisection has a history of 16 commits, one of which, at random, is the slower one; the others change
nothing. A search of ``plumb why`` has five differences: the commit, and four variables that the code does not read;
with ``--causes`` the commit is the slower one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from commands import found, git

#: commits of a history after the first
COMMITS = 16
#: differences that make nothing
HARMLESS = ",".join(f"variable:{name}=1" for name in ("COLOUR", "LEVEL", "SHAPE", "TASTE"))
ROOT = Path(__file__).resolve().parents[2]


#: a change of the source: the text before and after
Change = tuple[str, str]


def repository(folder: Path, slower: Change) -> None:
    """The code, with the branches ``equal`` and ``slower``."""
    changes = {"equal": ("cools", "is cooling"), "slower": slower}
    shutil.copytree(ROOT / "docs" / "examples" / "heat", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    source = folder / "heat.c"
    text = source.read_text()
    for name, (old, new) in changes.items():
        git(folder, "switch", "--quiet", "--create", name, "main")
        source.write_text(text.replace(old, new))
        git(folder, "commit", "--quiet", "--all", "--message", name)


def looks(every: int) -> Change:
    """It looks at the plate ``every`` so many steps."""
    return "CHECK_EVERY 1000", f"CHECK_EVERY {every}"


def repeats(every: int) -> Change:
    """It does ``every`` so many steps a second time, from the same plate, so the result stays the same."""
    once = "        exchange(rank, size);\n        step();\n"
    again = "double *swapped = plate; plate = next; next = swapped; exchange(rank, size); step();"
    return once, f"{once}        if (number % {every} == 0) {{ {again} }}\n"


def history(folder: Path, change: Change, slower: int) -> str:
    """Branch ``history``: commits on main, of which number ``slower`` is the slower one; returns its hash."""
    git(folder, "switch", "--quiet", "--force-create", "history", "main")
    source = folder / "heat.c"
    for number in range(1, COMMITS + 1):
        text = source.read_text()
        source.write_text(text.replace(*change) if number == slower else f"{text}/* change {number} */\n")
        git(folder, "commit", "--quiet", "--all", "--message", f"change {number}")
    return git(folder, "rev-parse", f"history~{COMMITS - slower}")


def plumb(folder: Path, *words: str) -> dict[str, Any]:
    """What a command finds of the code on one placement."""
    return found(folder, *words, "--test", "heat%placement=core")


def bisection(folder: Path, right: str, stack: str) -> str:
    """What one bisection says: ``found``, ``among N`` candidates, ``open`` or ``wrong``."""
    document = plumb(folder, "bisect", "main", "history", "--stack", stack)
    candidates = [culprit["candidates"] for culprit in document["culprits"]]
    if any(right not in one for one in candidates):
        return "wrong"
    if not candidates:
        return "open"
    return "found" if len(candidates[0]) == 1 else f"among {len(candidates[0])}"


def search(folder: Path, candidate: str, stack: str) -> str:
    """What one search of causes says: ``none named``, ``the code`` alone, or ``wrong``."""
    document = plumb(folder, "why", "main", f"{candidate},{HARMLESS}", "--stack", stack)
    named = [one["cause"] for one in document["causes"] if one["state"] in ("FAIL", "GAIN")]
    if any(name != "code" for name in named) or (named and candidate == "equal"):
        return f"wrong: {', '.join(named)}"
    return "the code" if named else f"none named: {document['answer']}"


def gate(folder: Path, candidate: str, stack: str) -> tuple[dict[str, Any], float]:
    """What one gate says of its only series, and the seconds that it took."""
    begin = time.monotonic()
    document = plumb(folder, "gate", "--baseline", "main", "--candidate", candidate, "--stack", stack)
    (series,) = document["series"]
    return series, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=200, metavar="N", help="gates of equal commits (default: 200)")
    parser.add_argument("--slower", type=int, default=50, metavar="M", help="gates of a slower commit (default: 50)")
    text = "histories of 16 commits that are bisected (default: 0)"
    parser.add_argument("--bisections", type=int, default=0, metavar="B", help=text)
    text = "searches of a cause between equal commits (default: 0)"
    parser.add_argument("--searches", type=int, default=0, metavar="S", help=text)
    text = "searches of a cause with a slower commit (default: 0)"
    parser.add_argument("--causes", type=int, default=0, metavar="C", help=text)
    text = "the slower commit looks at the plate every N steps (default: 20, 7 to 10 % more time here; 50: 3.6 %)"
    parser.add_argument("--every", type=int, default=20, metavar="N", help=text.replace("%", "%%"))
    text = "instead, it does every Nth step twice: 20 is 5 % more work"
    parser.add_argument("--twice", type=int, metavar="N", help=text.replace("%", "%%"))
    parser.add_argument("--stack", default="mpich")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "heat"
        change = repeats(args.twice) if args.twice else looks(args.every)
        repository(folder, change)
        for candidate, number in (("equal", args.equal), ("slower", args.slower)):
            if number:
                gates(folder, candidate, args.stack, number)
        if args.bisections:
            bisections(folder, change, args.stack, args.bisections)
        for candidate, number in (("equal", args.searches), ("slower", args.causes)):
            if number:
                searches(folder, candidate, args.stack, number)


def gates(folder: Path, candidate: str, stack: str, number: int) -> None:
    """Print what each of ``number`` gates says, and the sum of them."""
    said, seconds, ratios = Counter[str](), [], []
    for count in range(1, number + 1):
        series, took = gate(folder, candidate, stack)
        said[str(series["verdict"])] += 1
        seconds.append(took)
        ratios.append(float(str(series["ratio"])))
        why = f": {series['reason']}" if series["verdict"] == "INCONCLUSIVE" else ""
        line = f"{candidate} {count:3}  {series['verdict']:12} {series['ratio']:.4f}  {series['pairs']} pairs"
        print(f"{line}  {took:.0f} s{why}", flush=True)
    verdicts = ", ".join(f"{many} {name}" for name, many in said.most_common())
    print(
        f"{candidate}: {number} gates: {verdicts}; median ratio {statistics.median(ratios):.4f}, "
        f"median time {statistics.median(seconds):.0f} s\n"
    )


def searches(folder: Path, candidate: str, stack: str, number: int) -> None:
    """Print what each of ``number`` searches says, and the sum of them."""
    answers, seconds = Counter[str](), []
    for count in range(1, number + 1):
        begin = time.monotonic()
        answer = search(folder, candidate, stack)
        seconds.append(time.monotonic() - begin)
        answers[answer] += 1
        print(f"{candidate} search {count:3}  {answer}  {seconds[-1]:.0f} s", flush=True)
    said = ", ".join(f"{many} {name}" for name, many in answers.most_common())
    print(f"{candidate}: {number} searches: {said}; median time {statistics.median(seconds):.0f} s\n")


def bisections(folder: Path, change: Change, stack: str, number: int) -> None:
    """Print what each of ``number`` bisections says, and the sum of them."""
    answers = Counter[str]()
    for count in range(number):
        slower = random.Random(count).randint(1, COMMITS)  # noqa: S311 - a design, not a secret
        begin = time.monotonic()
        answer = bisection(folder, history(folder, change, slower), stack)
        answers[answer] += 1
        print(f"bisection {count + 1:3}  change {slower:2}  {answer}  {time.monotonic() - begin:.0f} s", flush=True)
    print(f"bisections: {', '.join(f'{many} {name}' for name, many in answers.most_common())}")


if __name__ == "__main__":
    main()
