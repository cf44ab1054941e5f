"""Rate of wrong advice of ``plumb advice`` on real launches of this machine: OpenMP, MPI, both, and Python.

``python tests/rates/advice_real.py FILE [--seconds 480]`` launches each line in turn, right and wrong ones, until the
time is over, and appends a line for each launch to FILE; a repeated call goes on there. It prints a row for each line,
and fails if a right one got advice, or a wrong one did not get its own. Lines of stacks that are not installed are
left out; two cores are needed.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from promises import Kept

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from plumbline.base import paths  # noqa: E402 - its folder is not on the path before
from plumbline.base.table import markdown  # noqa: E402
from plumbline.extras.advice import spool  # noqa: E402
from plumbline.host import machine  # noqa: E402
from plumbline.launch import observed  # noqa: E402
from plumbline.stacks import manifest  # noqa: E402

POOL = """
import multiprocessing, time
def work(_):
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
with multiprocessing.Pool(2) as pool:
    pool.map(work, range(2), chunksize=1)
    pool.close()
    pool.join()
"""
SERIAL = "import time\nwhile time.process_time() < 0.4: pass"
#: family -> options of its launcher: a core for each rank, no binding, and all cores for one rank
BINDING = {
    "openmpi": ("--bind-to core", "--bind-to none", "--map-by slot:PE=2 --bind-to core"),
    "mpich": ("-bind-to core", "-bind-to none", "-bind-to core:2"),
    "intelmpi": ("-genv I_MPI_PIN_DOMAIN core", "-genv I_MPI_PIN 0", "-genv I_MPI_PIN_DOMAIN omp"),
}
#: line without a launcher -> the kind of advice that it needs, or none; {first}: the first CPU
LINES = {
    "env OMP_NUM_THREADS=2 OMP_PLACES=cores OMP_PROC_BIND=close ./omp": "",
    "env OMP_NUM_THREADS=2 OMP_PLACES=cores OMP_PROC_BIND=spread ./omp": "",
    "env OMP_NUM_THREADS=1 ./omp": "",
    "taskset -c {first} env OMP_NUM_THREADS=2 ./omp": observed.SHARED,
    "env OMP_NUM_THREADS=2 OMP_PLACES={{{first}}} OMP_PROC_BIND=close ./omp": observed.SHARED,
    f"{sys.executable} serial.py": "",
    f"{sys.executable} pool.py": "",
    f"taskset -c {{first}} {sys.executable} pool.py": observed.SHARED,
}
HEADER = ("line", "advice needed", "launches", "right", "wrong", "not known")


def prepared(folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Every line with the kind of advice that it needs and its variables; their programs are in ``folder``."""
    shutil.copy(Path(__file__).with_suffix(".c"), folder / "program.c")
    (folder / "pool.py").write_text(POOL)
    (folder / "serial.py").write_text(SERIAL)
    subprocess.run(["gcc", "-O1", "-fopenmp", "program.c", "-o", "omp"], cwd=folder, check=True)
    first = min(os.sched_getaffinity(0))
    lines: dict[str, tuple[str, dict[str, str]]] = {
        line.format(first=first): (kind, {}) for line, kind in LINES.items()
    }
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    for name, (core, free, whole) in BINDING.items():
        if not (paths.stacks() / name / "manifest.json").exists():
            continue
        stack = manifest.load(name)
        around = {**stack.environment, **as_root}
        words = [str(Path(stack.prefix) / "bin/mpicc"), "-DRANKS", "-O1", "-fopenmp", "program.c", "-o", name]
        subprocess.run(words, cwd=folder, env={**os.environ, **around}, check=True)
        run = stack.launcher.command
        for line, kind, threads in (
            (f"{run} -n 2 {core} ./{name}", "", 1),
            (f"{run} -n 1 {whole} ./{name}", "", 2),
            (f"{run} -n 2 {free} taskset -c {first} ./{name}", observed.SHARED, 1),
            (f"{run} -n 1 {free} taskset -c {first} ./{name}", observed.SHARED, 2),
        ):
            lines[line] = (kind, {**around, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "false"})
    return lines


def launched(line: str, around: dict[str, str], folder: Path) -> tuple[str, list[str]]:
    """The verdict on a launch, with the kinds of advice, or why it is not known."""
    place, job = folder / "spool", str(time.monotonic_ns())
    place.mkdir(mode=0o700, exist_ok=True)
    observe = paths.package() / "extras/advice/observe.sh"
    words = ["sh", str(observe), str(paths.library("witness")), str(place), "on", "--", *line.split()]
    # a job without a scheduler has the name of the process that started it
    env = {**os.environ, **around, "JOB_ID": job, "NSLOTS": str(len(os.sched_getaffinity(0)))}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise SystemExit(f"{line}: exit status {done.returncode}: {done.stderr[-500:]}")
    every = spool.running(place, str(os.getuid()), job)
    shutil.rmtree(place)
    if len(every) != 1:
        return "not known", [f"{len(every)} launches"]
    return every[0].verdict, [advice.kind for advice in every[0].advice] or every[0].doubts


def main() -> int:
    """Launch and print; 1 if advice is wrong, or missing."""
    parser = argparse.ArgumentParser(description="Rate of wrong advice on real launches.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=480)
    args = parser.parse_args()
    if len(machine.load().cores) < 2 or len(os.sched_getaffinity(0)) < 2:
        parser.error("two cores are needed")
    kept = Kept(args.file)
    known, end = kept.lines, time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory() as scratch:
        lines = prepared(Path(scratch))
        for line in itertools.cycle(lines):
            if time.monotonic() > end:
                break
            verdict, reasons = launched(line, lines[line][1], Path(scratch))
            name = line.replace(f"{paths.stacks()}/", "").replace(sys.executable, "python")
            kept.add([name, lines[line][0], verdict, reasons])
    counts = Counter((line, kind, verdict) for line, kind, verdict, _ in known)
    rows = []
    for line, kind in dict.fromkeys((line, kind) for line, kind, *_ in known):
        number = [counts[line, kind, verdict] for verdict in ("right", "wrong", "not known")]
        rows.append((line, kind or "none", str(sum(number)), *map(str, number)))
    print(markdown(HEADER, rows, right=HEADER[2:]))
    bad = [each for each in known if each[2] != "not known" and each[3] != ([each[1]] if each[1] else [])]
    right = [each for each in known if not each[1]]
    given = sum(each[2] == "wrong" for each in right)
    print(f"\n{given} of {len(right)} right launches got advice; {len(known) - len(right)} wrong ones launched")
    for each in bad:
        print(*each, file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
