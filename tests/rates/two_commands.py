"""Real gates of two commands: the same program twice, and one that computes 5 % more.

    python tests/rates/two_commands.py [--gates 20] [--slower 20] [--seconds 0.5] [--memory] [--ahead]

Each gate is the real ``plumb gate --baseline command:… --candidate command:…``. Finished ones stay in
``build/rates/two-commands.jsonl``; a new start continues with them. With ``--memory`` they wait for memory; with
``--ahead`` (as root) they go before all others of a host that works for others too.
"""

import argparse
import json
import os
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commands import LOOPS, PLUMB
from promises import Kept, at_most, show

#: turns of the loop in a second, about
TURNS = 250_000_000
KINDS = {"equal": 1.0, "5 % slower": 1.05}


def main() -> None:
    """Measure what is missing, and print a row of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=20)
    parser.add_argument("--slower", type=int, help="gates of a slower program (default: as many)")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--ahead", action="store_true")
    args = parser.parse_args()
    folder = Path("build/rates").resolve()
    kept = Kept(folder / "two-commands.jsonl")
    program = folder / ("stream" if args.memory else "loop")
    subprocess.run(["gcc", "-O1", *(["-DMEMORY"] if args.memory else []), "-o", program, LOOPS], check=True)
    circumstances = {"seconds": args.seconds, "ahead": args.ahead, **({"memory": True} if args.memory else {})}
    counts_of = {"equal": args.gates, "5 % slower": args.gates if args.slower is None else args.slower}
    mine = [line for line in kept.lines if line["under"] == circumstances]
    for number in range(args.gates):
        for kind, factor in KINDS.items():
            if number >= counts_of[kind] or any((line["number"], line["kind"]) == (number, kind) for line in mine):
                continue
            both = [f"command:{program} {round(TURNS * args.seconds * times)}" for times in (1, factor)]
            old, new = (f"{text} ahead" if args.ahead else text for text in both)
            words = ["gate", "--json", "--measure-equal", "--baseline", old, "--candidate", new, "--seed", str(number)]
            done = subprocess.run([PLUMB, *words], stdout=subprocess.PIPE, text=True, check=False, env=os.environ)
            (series,) = json.loads(done.stdout)["series"]
            mine.append({"number": number, "kind": kind, "under": circumstances, **series})
            kept.add(mine[-1])
            print(kind, number, series["verdict"], series["pairs"], series["ratio"], flush=True)
    show(("candidate", "gates", "PASS", "INCONCLUSIVE", "FAIL", "mean pairs", "median ratio"), rows(mine))
    wrong = sum(line["verdict"] == "FAIL" for line in mine if line["kind"] == "equal")
    print(f"FAIL of equal commands: {wrong} of {args.gates}, at most {at_most(wrong, args.gates):.1%} (95 %)")


def rows(gates: list[dict[str, Any]]) -> Iterator[list[object]]:
    """A row of each kind."""
    for kind in KINDS:
        mine = [line for line in gates if line["kind"] == kind]
        counts = Counter(line["verdict"] for line in mine)
        states = (counts[state] for state in ("PASS", "INCONCLUSIVE", "FAIL"))
        pairs, ratio = ([line[name] for line in mine] for name in ("pairs", "ratio"))
        yield [kind, len(mine), *states, f"{statistics.mean(pairs):.1f}", f"{statistics.median(ratio):.3f}"]


if __name__ == "__main__":
    main()
