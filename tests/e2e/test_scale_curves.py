"""``plumb scale`` on real programs: threads placed by us, ranks of their own launcher, holes, resuming."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.stacks import manifest

pytestmark = [
    pytest.mark.e2e, pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has no curve"),
]  # fmt: skip
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    long steps = atol(words[1]);
    double sum = 0;
    if (count > 2 && atoi(getenv("OMP_NUM_THREADS")) == atoi(words[2]))
        return 3;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < steps; i++)
        sum += 1.0 / (1.0 + (double)i);
    printf("sum: %g rate: %.4f\n", sum, 2.0 * atoi(getenv("OMP_NUM_THREADS")));
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose rate is exactly proportional to its threads; it fails with the number of its second argument."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-fopenmp", "p.c", "-o", "p"], cwd=folder, check=True)
    return folder / "p"


def scale(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLUMB_BUILD": str(folder / "build")}
    return ended([paths.program("plumb"), "scale", *words], env=environment, cwd=folder)


FIGURE = ("--figure", "rate: (\\S+)", "--better", "higher")


def test_a_curve_over_threads_is_measured_and_shown_again(program, tmp_path):
    file, page = tmp_path / "curve.json", tmp_path / "curve.html"
    words = ("--counts", "1,2", *FIGURE, "--work", "here", "--output", str(file), "--output", str(page))
    done = succeeded(scale(tmp_path, *words, "--", str(program), "1000000"))
    assert "best for time: 2 threads; for core hours (efficiency 0.7 or more): 2" in done.stdout.splitlines()[-1]
    assert json.loads(file.read_text())["points"][1]["speedup"] == pytest.approx([2.0, 2.0, 2.0], rel=0.01)
    assert "Why it bends" in page.read_text()
    again = succeeded(scale(tmp_path, "--resume", "here"))
    assert "round" not in again.stdout.split("\n\n")[0].splitlines()[-1]
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]


def test_a_program_that_ignores_its_threads_is_told_so(tmp_path):
    """A second thread that does not exist is no point at which the program is twice as slow per core for no reason."""
    few = ("--counts", "1,2", "--rounds", "3", "--minutes", "0.01")
    done = succeeded(scale(tmp_path, *few, "--", "python3", "-c", "sum(range(10**7))"))
    assert "does not use the threads that it is given; best: 1 thread" in done.stdout.splitlines()[-1]


def test_the_work_of_processes_counts(tmp_path):
    """Nothing claims that the threads are not used, or that the work takes half of its CPU time."""
    page = tmp_path / "curve.txt"
    count = "i=0; while test $i -lt $((600000/{threads})); do i=$((i+1)); done"
    work = f"for each in $(seq {{threads}}); do sh -c '{count}' & done; wait"
    done = succeeded(scale(tmp_path, "--counts", "1,2", "--rounds", "3", "--output", str(page), "--", "sh", "-c", work))
    assert "does not use the threads" not in " ".join(done.stdout.split())
    (row,) = (line for line in page.read_text().splitlines() if line.lstrip().startswith("2 "))
    assert float(row.split()[-1]) > 0.7


@pytest.mark.alone
def test_an_interrupt_ends_it_and_is_no_launch(tmp_path):
    """It goes on from there until its minutes are over, and is then shown only. Its values never agree within 2 %."""
    interrupt = "echo >> starts; test $(wc -l < starts) = 3 && kill -INT $PPID && exec sleep 9; "
    words = ("--counts", "1,2", *FIGURE, "--minutes", "0.001", "--work", "here")
    done = scale(tmp_path, *words, "--", "sh", "-c", interrupt + "echo rate: $(wc -l < starts)")
    assert done.returncode not in (0, 1)
    assert "interrupted by SIGINT" in done.stderr
    for launches, more in ((2, ()), (6, ()), (6, ("--rounds", "4", "--minutes", "1")), (8, ())):
        assert len(json.loads((tmp_path / "here" / "launches.json").read_text())) == launches
        done = succeeded(scale(tmp_path, "--resume", "here", *more))


def test_a_point_that_fails_stays_in_the_table_with_its_reason(program, tmp_path):
    done = scale(tmp_path, "--counts", "1,2", *FIGURE, "--", str(program), "1000", "2")
    assert done.returncode == 1
    assert "exit status 3" in done.stdout
    slow = "test $OMP_NUM_THREADS = 1 || sleep 9"
    done = scale(tmp_path, "--counts", "1,2", "--", "timeout", "1", "sh", "-c", slow)
    assert "its time limit is over" in done.stdout
    done = scale(tmp_path, "--counts", "1,2", "--", str(program))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "no point has a value"


def test_ranks_of_the_commands_own_launcher(tmp_path):
    """Bound ranks are points of a curve; ranks that nothing binds are not, and the line says the option to write."""
    stack = manifest.load("openmpi")
    around = manifest.environment(stack, os.environ)
    start = ["env", *(f"{name}={around[name]}" for name in around.keys() - os.environ.keys()), "OMP_NUM_THREADS=1"]
    launch = [*start, stack.launcher.command, "-n", "{ranks}", "--allow-run-as-root"]
    pi, *end = [*stack.benchmarks["pi"].command, "--intervals", "10M", "--repetitions", "5"]
    words = ("--counts", "1,2", "--minutes", "0.01", "--rounds", "3")
    done = succeeded(scale(tmp_path, *words, "--", *launch, "--bind-to", "core", pi, *end))
    assert "strong scaling over ranks" in done.stdout
    assert_filled(scale(tmp_path, *words, "--fill", "compute", "--", *launch, "--bind-to", "core", pi, *end))
    ranks = [word.replace("{ranks}", "2") for word in launch]
    done = scale(tmp_path, *words, "--", *ranks, "--bind-to", "core", pi, *end)
    assert "it started 2 ranks: over threads it is one process" in done.stdout
    done = scale(tmp_path, *words, "--", *launch, "--bind-to", "none", pi, *end)
    assert done.returncode == 1
    assert "may run on every CPU of the command" in done.stdout


def test_the_other_cores_are_filled_by_a_neighbour(tmp_path):
    words = ("--counts", "1,2", "--rounds", "3", "--minutes", "0.01", "--fill", "compute")
    assert_filled(scale(tmp_path, *words, "--", "python3", "-c", "sum(range(2 * 10**7))"))


def assert_filled(done: subprocess.CompletedProcess[str]) -> None:
    assert "other cores: plumb-neighbour compute" in done.stdout.splitlines(), done.stderr
    idle = "the neighbour worked for" in done.stdout  # where others have the CPUs
    assert done.returncode == int(idle), done.stdout


@pytest.mark.parametrize(("words", "fault"), [
    ([], "no command is named"),
    (["--counts", "1,1", "--", "true"], "1 stands there twice"),
    (["--counts", "1,2", "--", "./nosuch"], "there is no program ./nosuch"),
    (["--counts", "1,2", "--figure", "x (\\S+)", "--", "true"], "--figure without a direction"),
    (["--resume", "nosuch"], "no such folder"),
    (["--baseline", "command:true"], "--baseline needs both sides"),
    (["--baseline", "x", "--candidate", "command:true"], "'x' is no command (plumb scale --baseline)"),
    (["--baseline", "command:true", "--candidate", "command:true", "--counts", "1,1"], "1 stands there twice"),
    (["--split", "0", "--", "mpirun", "-n", "{ranks}"], "0 cores cannot be split"),
    (["--split", "4", "--", "mpirun", "-n", "{ranks}"], "a split needs {threads} in the command"),
    (["--split", "4", "--counts", "1,2", "--", "true"], "--split has its own points"),
    (["--baseline", "command:true", "--candidate", "command:true", "--output", "x.csv"], ".csv of two curves"),
    (["--counts", "1,2", "--placement", "nosuch", "--", "true"], "plumb scale --placement"),
    (["--placement", "core", "--", "mpirun", "-n", "{ranks}"], "their launcher places them"),
    (["--fill", "compute", "--counts", "1,2", "--", "env", "{nodes}"], "--fill on 2 nodes (plumb scale)"),
    (["--fill", "compute", "--placement", "none", "--counts", "1,2", "--", "env"], "--fill with placement none"),
    (["--over", "ranks", "--", "true"], "--over is for programs of plumb.yaml and tests"),
    (["--test", "stream", "--weak"], "--weak needs a command"),
    (["--resume", "nosuch", "--counts", "1,2"], "--resume has its own command"),
    (["--efficiency", "2", "--", "true"], "2 is no efficiency"),
])  # fmt: skip
def test_bad_input_is_one_line(tmp_path, words, fault):
    done = scale(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr
    assert done.stderr.count("\n") <= 2


def test_two_curves_are_a_gate_that_goes_on(program, tmp_path):
    """Equal commands are not measured; of others each point is a couple, and the second one has an efficiency."""
    both = [f"command:{program} {steps}" for steps in (1000, 1000, 2000)]
    done = scale(tmp_path, "--counts", "1,2", "--baseline", both[0], "--candidate", both[1])
    assert (done.returncode, "nothing was measured" in done.stdout) == (0, True), done.stderr
    words = ("--counts", "1,2", "--minutes", "0.001", "--work", "here")
    done = scale(tmp_path, *words, "--baseline", both[0], "--candidate", both[2])
    assert "2 variants, 3 figures" in done.stdout
    assert "p %threads=2 efficiency" in done.stdout
    again = scale(tmp_path, "--resume", "here", "--minutes", "0.001")
    assert (done.returncode, again.returncode) == (3, 3), again.stderr
    assert "pairs so far" in again.stdout


def test_a_program_of_a_plumb_yaml_is_scaled_by_its_name(program, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "p.c").write_text(PROGRAM)
    figure = "{pattern: 'rate: (\\S+)', unit: x, better: higher}"
    (code / "plumb.yaml").write_text(
        "application: heat\nbuild: ['cc -O1 -fopenmp p.c -o p']\n"
        f"programs: {{heat: {{command: ./p 1000000, mpi: false, figures: {{rate: {figure}}}}}}}\n"
    )
    words = ("--application", str(code / "plumb.yaml"), "--counts", "1,2", "--stack", "openmpi")
    few = (*words, "--rounds", "3", "--minutes", "0.01", "--weak", "--fill", "compute")
    assert_filled(scale(tmp_path, *few, "--", "heat", "{1000000*threads}"))
    words = ("heat", *words)
    done = succeeded(scale(tmp_path, *words, "--output", "curve.json"))
    curve = json.loads((tmp_path / "curve.json").read_text())
    assert curve["points"][1]["speedup"] == pytest.approx([2.0, 2.0, 2.0], rel=0.01)
    done = scale(tmp_path, *words, "--figure", "ratio")
    assert "heat has no figure 'ratio' (plumb scale --figure): did you mean 'rate'" in done.stderr


def test_a_dry_run_starts_nothing(program, tmp_path):
    done = succeeded(scale(tmp_path, "--counts", "1,2", "--weak", "--dry-run", "--", str(program), "{1000*threads}"))
    assert f"{program} 2000" in done.stdout
    assert "6 to 60 launches" in done.stdout
    assert "core hours of 1 node" in done.stdout
    assert not (tmp_path / "build").exists()
