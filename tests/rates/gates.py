"""Gates of a small code of one's own: how often equal commits FAIL, how often a slower one is found, what one costs.

Run as ``python tests/rates/gates.py [--equal N] [--slower M] [--searches S] [--causes C] [--every N | --twice N]
[--stack NAME]`` in a checkout that is set up. The code is docs/examples/heat; the slower commit is that of
docs/tutorial-code.md, or with ``--twice 20`` one that does 5 % more work, of the same kind. Every gate is the real
one. A search of ``plumb why`` has five differences: the commit, and four variables that the code does not
read; with ``--causes`` the commit is the slower one.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from commands import found, git, summed

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


def plumb(folder: Path, *words: str) -> dict[str, Any]:
    """What a command finds of the code on one placement."""
    return found(folder, *words, "--test", "heat%placement=core")


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
    words = ("--measure-equal", "--baseline", "main", "--candidate", candidate, "--stack", stack)
    document = plumb(folder, "gate", *words)
    (series,) = document["series"]
    return series, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=200, metavar="N", help="gates of equal commits (default: 200)")
    parser.add_argument("--slower", type=int, default=50, metavar="M", help="gates of a slower commit (default: 50)")
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
        for measured, equal, slower in ((gates, args.equal, args.slower), (searches, args.searches, args.causes)):
            for candidate, number in (("equal", equal), ("slower", slower)):
                if number:
                    measured(folder, candidate, args.stack, number)


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
    print(
        f"{candidate}: {number} gates: {summed(said)}; median ratio {statistics.median(ratios):.4f}, "
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
    print(f"{candidate}: {number} searches: {summed(answers)}; median time {statistics.median(seconds):.0f} s\n")


if __name__ == "__main__":
    main()
