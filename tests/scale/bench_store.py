"""How fast the store answers, and how much memory it takes: ``make scale``.

Writes 1,000,000 measurements in 10,000 session files (:mod:`generate`) to a temporary folder, then asks as the commands
do, each in a process of its own and ``--repeat`` times: of the session files, again after ``plumb compact``,
and of one session file of a long gate (70 variants, 90 pairs each). Prints the fastest of the repetitions and the
largest memory (maximum resident set size). The status is 1 if one of them is beyond ``--seconds`` or
``--mebibytes``.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GATE = "a long gate's session"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(Path(__file__).parent)]

import generate  # noqa: E402

from plumbline.base.table import table  # noqa: E402
from plumbline.records import query  # noqa: E402
from plumbline.records.model import Record  # noqa: E402
from plumbline.records.query import Selection  # noqa: E402


def listing() -> str:
    """What ``plumb list`` prints."""
    from plumbline.show import summary

    rows, damages = query.records()
    text = summary.listing(rows)
    return f"{len(text.splitlines()) - 4} lines, {len(damages)} damaged"


def gate() -> str:
    """All pairs of launches of the two stacks of a session, by figure: what a gate is fed with."""
    first, second = generate.STACKS
    found, damages = query.collect(measured, Selection(valid=True))
    sides = {key: values for item in found for key, values in item.items()}
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (session, variant, figure, stack), values in sides.items():
        if stack == first:
            other = sides[session, variant, figure, second]
            pairs.setdefault((variant, figure), []).extend(zip(values, other, strict=True))
    return f"{len(pairs)} series of {sum(map(len, pairs.values()))} pairs, {len(damages)} damaged"


def measured(record: Record) -> dict[tuple[str, str, str, str], list[float]]:
    """What each launch of a record measured, by session, variant, figure and stack."""
    return {
        (record.session, record.variant.name, wanted.name, record.stack.name): [
            launch.measurement(wanted).value for launch in record.launches
        ]
        for wanted in record.variant.figures
    }


def history() -> str:
    """The series that ``plumb history`` follows."""
    from plumbline.judge.history import series_of_records

    rows, damages = query.records(Selection(valid=True))
    found = series_of_records(rows)
    return f"{len(found)} series of {sum(len(item.values) for item in found)} points, {len(damages)} damaged"


def outliers() -> str:
    """The classes that ``plumb outliers`` compares nodes in."""
    from plumbline.judge import samples

    rows, damages = query.records(Selection(valid=True))
    found = samples.nodes(rows)
    count = sum(len(each) for item in found for each in item.values.values())
    return f"{len(found)} classes of {count} values, {len(damages)} damaged"


def calibrate() -> str:
    """The references that ``plumb calibrate`` would write."""
    from plumbline.judge.references import calibrate as references

    rows, damages = query.records(Selection(site="local"))
    found = references.propose(rows, "local")
    refused = dict(sorted(found.refused.items()))
    return f"{sum(map(len, found.changes.values()))} references, refused {refused}, {len(damages)} damaged"


def report() -> str:
    """What a report of the newest campaign needs: all rows, and the whole records of the newest hundred."""
    rows, damages = query.records()
    records, _ = query.full([row.id for row in rows[-100:]])
    return f"{len(rows)} rows, {len(records)} whole records, {len(damages)} damaged"


def show() -> str:
    """The one record of ``plumb show last``."""
    return f"record {query.find('last').id}"


QUESTIONS = {"list": listing, **{one.__name__: one for one in (gate, history, outliers, calibrate, report, show)}}
#: what is asked of the one session file of a long gate
OF_A_GATE = ("list", "show")


def ask(name: str) -> dict[str, object]:
    """Answer one question in this process: seconds since its start, MiB at most, and what was found."""
    found = QUESTIONS[name]()
    seconds = time.time() - float(os.environ["BENCH_BEGAN"])
    return {"seconds": seconds, "mebibytes": peak(), "cpu": time.process_time(), "found": found}


def peak() -> float:
    """The most memory of this process in MiB; getrusage would count what the process that started it held then."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024


def measure(name: str, results: Path) -> dict[str, object]:
    """:func:`ask` in a new process."""
    environment = {**os.environ, "PLUMB_RESULTS": str(results), "BENCH_BEGAN": str(time.time())}
    command = [sys.executable, __file__, "--ask", name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(answer.stdout))


def compact(results: Path) -> str:
    """``plumb compact --remove-sessions`` in a new process; what it took."""
    code = "from plumbline.records import compact; compact.compact('local', remove=True)"
    environment = {**os.environ, "PLUMB_RESULTS": str(results), "PYTHONPATH": str(ROOT)}
    began = time.time()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return f"compacted in {time.time() - began:.0f} s, at most {peak:.0f} MiB of any process so far"


def size(results: Path) -> str:
    """How many files there are, and their bytes."""
    sizes = [file.stat().st_size for file in results.rglob("*") if file.is_file()]
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.0f} MB"


def main() -> int:
    """Generate, measure, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--mebibytes", type=float, default=2048.0)
    parser.add_argument("--ask", choices=QUESTIONS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask:
        print(json.dumps(ask(args.ask)))
        return 0
    results = Path(tempfile.mkdtemp(prefix="plumb-scale-"))
    rows, beyond = [], 0
    try:
        generate.write(results, args.measurements)
        print(f"{args.measurements} measurements; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        for state in ("session files", "compacted", GATE):
            if state == "compacted":
                print(compact(results))
            if state == GATE:
                shutil.rmtree(results)
                generate.write_gate(results)
            print(f"{state}: {size(results)}", flush=True)
            for name in QUESTIONS if state != GATE else OF_A_GATE:
                runs = [measure(name, results) for _ in range(args.repeat)]
                best = min(runs, key=lambda run: run["seconds"])
                memory = max(run["mebibytes"] for run in runs)
                beyond += best["seconds"] > args.seconds or memory > args.mebibytes
                numbers = f"{best['seconds']:.1f}", f"{best['cpu']:.1f}", f"{memory:.0f}"
                rows.append((state, name, *numbers, str(best["found"])))
                print(f"  {name}: {numbers[0]} s, load {os.getloadavg()[0]:.1f}", flush=True)
    finally:
        shutil.rmtree(results)
    header = ("read from", "question", "s", "CPU s", "MiB", "answer")
    print(table(header, rows, right=("s", "CPU s", "MiB")))
    bounds = f"{args.seconds:g} s or {args.mebibytes:g} MiB"
    print(f"\nload now {os.getloadavg()[0]:.1f}; {beyond} of {len(rows)} beyond {bounds}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
