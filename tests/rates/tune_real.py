"""Real searches of ``plumb tune --for`` where nothing is to be gained: programs that only compute.

    python tests/rates/tune_real.py [--searches 10] [--seconds 0.3]

Every second program has two threads with equal work. Finished searches stay in ``build/rates/tune-real.jsonl``; a new
start continues with them. Ends with status 1 if one claimed a gain.
"""

import argparse
import shutil
import sys
from pathlib import Path

from commands import git, timed
from promises import Kept
from two_commands import TURNS

from plumbline.base import paths

DESCRIBED = """application: compute
build: ["gcc -O1 -fopenmp -o compute compute.c"]
programs:
"""
#: of one search; its placement is that of its threads
ONE = """  {name}:
    command: ./compute {turns}
    mpi: false
    threads: {threads}
    placements: [compact]
    figures:
      time: {{pattern: '^time: (\\S+)', unit: s, better: lower}}
    checks: [{{pattern: '^sum of {threads}:'}}]
"""


def main() -> int:
    """Search where it is missing, and print how each search ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.3)
    args = parser.parse_args()
    top = paths.build() / "rates"
    folder, kept = top / "tune-real" / "code", Kept(top / "tune-real.jsonl")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"compute{number}" for number in range(args.searches)]
    described = [
        ONE.format(name=name, threads=1 + number % 2, turns=round(TURNS * args.seconds * (1 + number / args.searches)))
        for number, name in enumerate(names)
    ]
    shutil.copy(Path(__file__).with_suffix(".c"), folder / "compute.c")
    (folder / "plumb.yaml").write_text(DESCRIBED + "".join(described), encoding="utf-8")
    if not (folder / ".git").is_dir():
        git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "The programs")
    for number, name in enumerate(names):
        if any((line["name"], line["seconds"]) == (name, args.seconds) for line in kept.lines):
            continue
        document, minutes = timed(folder, "tune", "--for", name, "--minutes", "1", "--seed", str(number), "--all")
        answer = {"result": document["result"], "gain": bool(document["tuned"] or document["process"])}
        kept.add({"name": name, "seconds": args.seconds, "minutes": minutes, **answer})
        print(f"{name}: {minutes:.1f} min: {document['result']}", flush=True)
    gains = [line["name"] for line in kept.lines if line["gain"]]
    print(f"{len(gains)} of {len(kept.lines)} searches claimed a gain")
    return int(bool(gains))


if __name__ == "__main__":
    sys.exit(main())
