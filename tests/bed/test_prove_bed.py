"""``plumb prove`` over several nodes of a batch system: launch lines as people write them, right and wrong ones."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from testbed.client import Bed

from plumbline.base import paths

pytestmark = pytest.mark.e2e

#: each thread works for 0.3 s of CPU time
SPIN = """
#include <time.h>
static double now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void) {
#pragma omp parallel
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.3; now(CLOCK_THREAD_CPUTIME_ID) < end;) ;
    return 0;
}
"""
FILES = {
    "crowded.conf": "0-1 taskset -c 0 ./spin\n",
    "static.conf": "0 ./spin\n1 ./static\n",
    "part1.conf": "0-1 ./spin\n",
    "part2.conf": "0 ./spin\n1 env OMP_NUM_THREADS=2 ./spin\n",
    "steps.sh": "for step in 1 2; do srun --overlap -n1 --cpu-bind=map_cpu:0 ./spin & done; wait",
}
#: launch line below ``plumb prove --json`` -> verdict, what the reasons or cures say
LINES = {
    "srun -N2 -n4 --cpu-bind=cores ./spin": ("right", ""),
    "srun -N2 -n4 --cpu-bind=none ./spin": ("wrong", "no binding"),
    "srun -n2 --multi-prog crowded.conf": ("wrong", "share 1 core"),
    "srun -n2 --multi-prog static.conf": ("not known", "rank 1 of 2 left no account"),
    "srun --export=NONE -N2 -n2 ./spin": ("not known", "srun --export=ALL"),
    "salloc -Q -N1 -n2 --exclusive bash steps.sh": ("wrong", "share 1 core"),
    "salloc -Q -N1 -n1 -c2 : -N1 -n1 -c2 srun -n1 ./spin : -n1 taskset -c 0 env OMP_NUM_THREADS=2 ./spin": (
        "wrong", "2 threads of rank 1",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def prove(bed: Bed) -> Callable[..., tuple[str, str]]:
    """What ``plumb prove`` says of a launch line on the bed: its verdict, its reasons and cures."""
    python = ".".join(map(str, sys.version_info[:2]))
    if int(bed.out("ctl", "nproc")) < 2 or python not in bed.out("ctl", "python3 -V"):
        pytest.skip(f"the nodes need two CPUs and Python {python}, for which this host has msgspec")
    home = bed.shared / "prove"
    shutil.rmtree(home, ignore_errors=True)
    for source, name in ((paths.package(), "plumbline"), (Path(msgspec.__file__).parent, "msgspec")):
        shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.tools(), home / "build/tools")
    for name, text in {**FILES, "spin.c": SPIN}.items():
        (home / name).write_text(text)
    bed.out("root@ctl", "chown -R bench: /shared/prove")
    bed.out("ctl", "cd /shared/prove && gcc -O1 -fopenmp spin.c -o spin && gcc -O1 -static spin.c -o static")
    main = "import sys; sys.argv[0] = 'plumb'; from plumbline.commands import cli; sys.exit(cli.main())"
    plumb = f"python3 -c {shlex.quote(main)} prove --json -- "

    def call(line: str, job: str = "") -> tuple[str, str]:
        command = f"{job} {shlex.quote(plumb + line)} && cat part.out" if job else plumb + line
        done = bed.ssh("ctl", f"cd /shared/prove && export OMP_NUM_THREADS=1; {command}")
        seen = json.loads(done.stdout.splitlines()[-1])
        return seen["verdict"], "; ".join([*seen.get("reasons", []), *seen.get("cures", [])])

    return call


@pytest.mark.parametrize(("line", "expected"), LINES.items())
def test_launch_lines_of_slurm(prove, line, expected):
    verdict, said = prove(line)
    assert verdict == expected[0], said
    assert expected[1] in said


@pytest.mark.parametrize(("threads", "verdict"), [(1, "right"), (2, "wrong")])
def test_a_job_that_has_a_part_of_each_node(prove, threads, verdict):
    """Its second rank, elsewhere, has its threads on one CPU."""
    line = f"srun -n2 --multi-prog part{threads}.conf"
    found, said = prove(line, "sbatch -Q --wait -N2 -n2 -c1 --output=part.out --wrap")
    assert found == verdict, said
    assert ("rank 1 on node2" in said) == (verdict == "wrong")
