"""Real searches of ``plumb tune --for`` where nothing is to be gained: programs that only compute.

    python tests/rates/tune_real.py [--searches 10] [--seconds 0.3]

Every second program has two threads with equal work. Finished searches stay in ``build/rates/tune-real.jsonl``; a new
start continues with them. Ends with status 1 if one claimed a gain.
"""

from __future__ import annotations

import argparse
import json
import sys

from commands import git, timed
from two_commands import TURNS

from plumbline.base import paths

#: each thread computes by itself, in registers
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>
int main(int count, char **words) {
    const double begin = omp_get_wtime();
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        volatile double value = 1;
        for (long left = atol(words[1]); left; left--) value = value * 1.0000001 + 1e-9;
        sum += value;
    }
    printf("sum of %d: %.9e\\ntime: %.6f s\\n", omp_get_max_threads(), sum, omp_get_wtime() - begin);
    return count != 2;
}
"""
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
    folder, kept = top / "tune-real" / "code", top / "tune-real.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"compute{number}" for number in range(args.searches)]
    described = [
        ONE.format(name=name, threads=1 + number % 2, turns=round(TURNS * args.seconds * (1 + number / args.searches)))
        for number, name in enumerate(names)
    ]
    (folder / "compute.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "plumb.yaml").write_text(DESCRIBED + "".join(described), encoding="utf-8")
    if not (folder / ".git").is_dir():
        git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "The programs")
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
    for number, name in enumerate(names):
        if any((line["name"], line["seconds"]) == (name, args.seconds) for line in lines):
            continue
        document, minutes = timed(folder, "tune", "--for", name, "--minutes", "1", "--seed", str(number), "--all")
        lines.append({"name": name, "seconds": args.seconds, "minutes": minutes, "result": document["result"]})
        lines[-1]["gain"] = bool(document["tuned"] or document["process"])
        with kept.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(lines[-1]) + "\n")
        print(f"{name}: {minutes:.1f} min: {document['result']}", flush=True)
    gains = [line["name"] for line in lines if line["gain"]]
    print(f"{len(gains)} of {len(lines)} searches claimed a gain")
    return int(bool(gains))


if __name__ == "__main__":
    sys.exit(main())
