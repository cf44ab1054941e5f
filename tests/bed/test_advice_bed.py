"""``plumb advice`` on a cluster: Slurm starts the observer by a role, two users' jobs, right and wrong ones."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ClusterShell
import msgspec
import pytest
import tabulate
from processes import succeeded
from test_health_bed import run_playbook, unchanged
from test_prove_bed import SPIN
from testbed import inventory
from testbed.client import Bed

from plumbline.base import paths

pytestmark = pytest.mark.e2e

SPOOL, HOME = "/shared/spool", "/shared/advice"
#: launch line -> verdict of its launch, and the kinds of advice
LINES = {
    "srun -N2 -n4 --cpu-bind=cores ./spin": ("right", []),
    "srun -N2 -n4 --cpu-bind=map_cpu:0,0 ./spin": ("wrong", ["shared cores"]),
    "srun -N1 -n2 taskset -c 0 ./spin": ("wrong", ["shared cores"]),
    "salloc -Q -N1 -n2 --exclusive bash steps.sh": ("wrong", ["shared cores"]),
}
STEPS = "for step in 1 2; do srun --overlap -n1 --cpu-bind=map_cpu:0 ./spin & done; wait"


def play(bed: Bed, folder: Path, state: str, **given: object) -> subprocess.CompletedProcess[str]:
    """The playbook advice.yml on all hosts of the bed."""
    own = {"plumb_advice_spool": SPOOL, "plumb_advice_state": state, "plumb_advice_plumb": f"{HOME}/plumb",
           "plumb_advice_delivery": "output", "plumb_advice_modules": "/etc/plumb-modules",
           "plumb_advice_library": str(paths.library("witness")), **given}  # fmt: skip
    return run_playbook("advice.yml", ("ctl", *bed.nodes), folder, own)


@pytest.fixture(scope="module")
def copied(bed: Bed) -> Bed:
    """The bed with this package and a program."""
    python = ".".join(map(str, sys.version_info[:2]))
    if int(bed.out("ctl", "nproc")) < 2 or python not in bed.out("ctl", "python3 -V"):
        pytest.skip(f"the nodes need two CPUs and Python {python}, for which this host has msgspec")
    home = bed.shared / "advice"
    shutil.rmtree(home, ignore_errors=True)
    packages = (Path(package.__file__ or "").parent for package in (msgspec, ClusterShell, tabulate))
    for source in (paths.package(), *packages):
        shutil.copytree(source, home / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.tools(), home / "build/tools")
    main = "import sys; sys.argv[0] = 'plumb'; from plumbline.commands import cli; sys.exit(cli.main())"
    script = f'#!/bin/sh\nPYTHONPATH={HOME} exec python3 -c {shlex.quote(main)} "$@"\n'
    for name, text in {"spin.c": SPIN, "steps.sh": STEPS, "plumb": script}.items():
        (home / name).write_text(text)
    (home / "plumb").chmod(0o755)
    bed.out("root@ctl", "chown -R bench: /shared/advice && chmod 755 /shared/advice")
    bed.out("ctl", f"cd {HOME} && gcc -O1 -fopenmp spin.c -o spin")
    return bed


@pytest.fixture(scope="module")
def cluster(copied: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """The bed with the role, until the end of the tests."""
    bed, folder = copied, tmp_path_factory.mktemp("advice")
    try:
        done = succeeded(play(bed, folder, "present"))
        yield bed
    finally:
        done = play(bed, folder, "absent")
        bed.out("root@ctl", f"rm -rf {SPOOL}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plumbline-advice" not in bed.out("ctl", "cat /etc/slurm/slurm.conf")
    bed.out("ctl", f"cd {HOME} && srun -n1 ./spin && test ! -e {SPOOL}")


def ran(bed: Bed, line: str, user: str = "bench") -> tuple[str, str, subprocess.CompletedProcess[str]]:
    """The number of the job of a launch line, its user's number, and how it ended; waits for the epilog."""
    number = bed.out(user + "@ctl", "id -u").strip()
    before = f"ls {SPOOL}/{number} 2>/dev/null | grep -c json; true"
    count = int(bed.out("root@ctl", before))
    done = bed.ssh(f"{user}@ctl", f"cd {HOME} && export OMP_NUM_THREADS=1; {line}")
    deadline = time.monotonic() + 60
    while int(bed.out("root@ctl", before)) == count and time.monotonic() < deadline:
        time.sleep(1)
    newest = bed.out("root@ctl", f"ls -t {SPOOL}/{number}/*.json | head -n 1").strip()
    return Path(newest).name.split(".")[0], number, done


def shown(bed: Bed, job: str, who: str = "bench", *more: str) -> list[dict[str, Any]]:
    line = f"{HOME}/plumb advice show {job} --json --work {SPOOL} {' '.join(more)}"
    return [json.loads(text) for text in bed.out(f"{who}@ctl", line).splitlines()]


@pytest.mark.long
def test_a_second_play_changes_nothing(cluster, tmp_path):
    unchanged(play(cluster, tmp_path, "present"))


@pytest.mark.parametrize(("line", "expected"), LINES.items())
def test_jobs_get_the_advice_that_they_need(cluster, line, expected):
    job, _, done = ran(cluster, line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (step,) = shown(cluster, job)
    assert (step["verdict"], [advice["kind"] for advice in step.get("advice", [])]) == expected, step
    assert all("srun" in advice["cure"] for advice in step.get("advice", []) if step["ranks"] > 1)


def test_a_job_that_fails_fails_as_without_it(cluster):
    done = cluster.ssh("ctl", f"cd {HOME} && srun -n1 sh -c './spin; echo out; exit 3'")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert cluster.ssh("ctl", f"cd {HOME} && srun -n1 sh -c './spin; kill -9 $$'").returncode == 137


def test_users_see_their_jobs_and_root_sees_all(cluster):
    job, number, _ = ran(cluster, "srun -N1 -n2 taskset -c 0 ./spin", "guest")
    assert cluster.ssh("ctl", f"ls {SPOOL}/{number}").returncode != 0, "another user's folder"
    (step,) = shown(cluster, job, "root", "--user", number)
    assert step["verdict"] == "wrong"
    report = cluster.out("root@ctl", f"{HOME}/plumb advice report --work {SPOOL}")
    mine = cluster.out("ctl", f"{HOME}/plumb advice report --work {SPOOL}")
    assert int(report.split(" launch")[-2].split()[-1]) > int(mine.split(" launch")[-2].split()[-1])


def test_a_wrong_job_of_an_array_says_so_at_the_end_of_its_output(cluster):
    script = "#!/bin/sh\nsrun -n2 taskset -c 0 ./spin"
    batch = f"printf '{script}\n' | sbatch --wait --parsable -N1 -n2 --exclusive --array=3 -o out.%a"
    job, _, done = ran(cluster, batch)
    assert done.returncode == 0, done.stderr
    (step,) = shown(cluster, f"{done.stdout.strip()}_3")
    assert (step["job"], step["verdict"]) == (job, "wrong")
    assert cluster.out("ctl", f"cat {HOME}/out.3").startswith(f"plumb: job {job}: 1 of 1 launch wrong: shared cores")


def test_a_heterogeneous_job_runs_and_gets_no_wrong_advice(cluster):
    _, number, done = ran(cluster, "srun -Q -N1 -n1 ./spin : -N1 -n1 ./spin")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    newest = cluster.out("root@ctl", f"cat $(ls -t {SPOOL}/{number}/*.json | head -n 1)")
    step = json.loads(newest)
    assert (step["ranks"], step["verdict"]) in ((2, "right"), (2, "not known"), (1, "not known")), step


@pytest.mark.long
def test_grid_engine_observes_the_jobs_of_a_queue(copied, tmp_path):
    """The last test: the bed has Grid Engine meanwhile."""
    bed = copied
    own = {"plumb_advice_scheduler": "sge", "plumb_advice_server": "ctl", "plumb_advice_queues": ["main"]}
    succeeded(bed.call("up", "--scheduler", "sge"))
    try:
        before = bed.out("root@ctl", "qconf -sq main")
        succeeded(play(bed, tmp_path, "present", **own))
        unchanged(play(bed, tmp_path, "present", **own))
        script = "#!/bin/sh\nOMP_NUM_THREADS=2 taskset -c 0 ./spin\nexit 3\n"
        submit = f"qsub -cwd -sync y -t 2-2 -pe mpi {inventory.slots()} -j y -o out.sge"
        assert bed.ssh("ctl", f"cd {HOME} && rm -f out.sge && printf '{script}' | {submit}").returncode == 3
        assert re.fullmatch(
            r"plumb: job (\d+_2): 1 of 1 launch wrong: shared cores: plumb advice show \1\n",
            bed.out("ctl", f"cat {HOME}/out.sge"),
        )
        succeeded(play(bed, tmp_path, "absent", **own))
        assert bed.out("root@ctl", "qconf -sq main") == before
    finally:
        succeeded(bed.call("up", "--scheduler", "slurm"))
