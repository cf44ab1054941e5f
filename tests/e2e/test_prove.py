"""``plumb prove`` before the launchers of real libraries, and the mixin in somebody else's ReFrame suite."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json
from processes import ended

from plumbline import proof
from plumbline.base import paths
from plumbline.host import machine
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e
#: family -> options of its launcher for a core each, in the order of the cores, and for no binding at all
BINDING = {
    "openmpi": (["--bind-to", "core"], ["--bind-to", "none"]),
    "mpich": (["-bind-to", "core"], ["-bind-to", "none"]),
    "intelmpi": (["-genv", "I_MPI_PIN_DOMAIN", "core"], ["-genv", "I_MPI_PIN", "0"]),
}
AS_ROOT = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")


@pytest.fixture
def two_cores():
    if len(machine.load().cores) < 2:
        pytest.skip("this host has one core, the test needs two")


def launch_line(stack, options, ranks=2, program="pi", *words):
    """A launch line of an installed stack as a person writes it, and the variables that the person has."""
    known = manifest.load(stack)
    around = {**os.environ, **manifest.environment(known, os.environ), **AS_ROOT, "OMP_NUM_THREADS": "1"}
    around["PATH"] = f"{Path(known.launcher.command).parent}:{around['PATH']}"
    command = known.benchmarks[program].command
    return [known.launcher.command, "-n", str(ranks), *options, *command, *words], around


#: Intel MPI is a relative of MPICH
EACH = pytest.mark.parametrize(
    "stack", [pytest.param(name, marks=pytest.mark.long if name == "intelmpi" else ()) for name in BINDING]
)


@EACH
def test_right_and_wrong_bindings_of_each_library(stack, two_cores, monkeypatch):
    for options, verdict in zip(BINDING[stack], ("right", "wrong"), strict=True):
        command, around = launch_line(stack, options, 2, "pi", "--intervals", "100M")
        for name in around.keys() - os.environ.keys() | {"PATH", "OMP_NUM_THREADS"}:
            monkeypatch.setenv(name, around[name])
        for placement in (None, "core"):
            done = proof.run(command, placement)
            assert (done.verdict, len(done.ranks)) == (verdict, 2), done.reasons
    assert "rank 0" in " ".join(done.reasons)


def test_nested_a_launcher_in_a_script_with_work_before_and_after(two_cores, monkeypatch):
    command, around = launch_line("openmpi", ["--bind-to", "core"], 2, "pi", "--intervals", "10M")
    for name in around.keys() - os.environ.keys():
        monkeypatch.setenv(name, around[name])
    done = proof.run(["sh", "-c", f"seq 10 > /dev/null; sh -c '{' '.join(command)}'; exit 4"], "core")
    assert (done.reasons, [rank.rank for rank in done.ranks]) == (["the command failed: exit status 4"], [0, 1])


#: a version of ReFrame beside the installed one: that of EESSI's CI
@pytest.mark.parametrize("version", ["", pytest.param("4.8.1", marks=pytest.mark.long)])
def test_somebody_else_s_reframe_tests_by_turns(version, two_cores, tmp_path):
    place = tmp_path / "version"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(place), f"reframe-hpc=={version}"]
    if version and subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("no package registry")
    for name in ("config", "checks"):
        shutil.copy(paths.root() / f"tests/data/reframe/proven_{name}.py", tmp_path / f"{name}.py")
    (program,), around = launch_line("openmpi", [])[0][3:], launch_line("openmpi", [])[1]
    around |= {"PI": program, "AWAY": str(machine.load().cores[1].cpus[0]), "PYTHONPATH": f"{place}:{paths.root()}"}
    command = [sys.executable, paths.program("reframe"), "-C", "config.py", "-c", "checks.py", "-r", "--prefix", "."]
    words = ["--report-file", "report.json"]
    done = ended([*command, *words], cwd=tmp_path, env=around)
    assert version in done.stdout
    (session,) = json.decode((tmp_path / "report.json").read_bytes())["runs"]
    cases = {case["name"].split()[0]: case for case in session["testcases"]}
    assert {name: case["result"] for name, case in cases.items()} == {
        "Right": "pass", "Wrong": "fail", "Ours": "pass", "Hooks": "pass", "WrongAlone": "fail",
    }, done.stdout  # fmt: skip
    assert {cases[name]["fail_phase"] for name in ("Wrong", "WrongAlone")} == {"sanity"}
    assert "no binding" in cases["Wrong"]["fail_reason"]
    kept = (tmp_path / "output/theirs/mpirun/builtin/Hooks").glob("proof.*.json")
    other, run = sorted(
        (json.decode(file.read_bytes(), type=proof.Proof) for file in kept), key=lambda one: len(one.ranks)
    )
    assert (other.placement, run.placement, len(run.ranks)) == (None, "core", 2)
    assert run.command[0] == "env"
    assert "outside the rank's" in cases["WrongAlone"]["fail_reason"]
    logged = (tmp_path / "perflogs/theirs/Right.log").read_text().splitlines()[-1].split("|")
    assert logged[0].lower() == "true"
    (file,) = (tmp_path / "stage/theirs/mpirun/builtin/Wrong").glob("proof.*.json")
    kept = json.decode(file.read_bytes(), type=proof.Proof)
    assert kept.rank_map.startswith("0 ")
    assert sys.executable in (tmp_path / "stage/theirs/mpirun/builtin/Wrong/rfm_job.sh").read_text()


@EACH
def test_an_observed_job_of_each_library(stack, two_cores, tmp_path, monkeypatch):
    """Two launches in one script, the second squeezed onto a CPU: each gets a document, and the second advice."""
    monkeypatch.setenv("PLUMB_ADVICE", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    lines = []
    alone = f"taskset -c {machine.load().cores[0].cpus[0]} "
    for prefix, options in zip(("", alone), BINDING[stack], strict=True):
        command, around = launch_line(stack, options, 2, "pi", "--intervals", "200M")
        lines.append(prefix + shlex.join(command))
    main = "import sys; from plumbline.commands import cli; sys.exit(cli.main())"
    plumb = f"{shlex.quote(sys.executable)} -c {shlex.quote(main)} advice"
    script = "\n".join([f'eval "$({plumb} on)"', *lines, f"{plumb} end", f"{plumb} show 9 --json"])
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **around}
    )
    first, second = (json.decode(line) for line in done.stdout.splitlines()[-2:])
    assert (first["verdict"], first["ranks"], second["verdict"]) == ("right", 2, "wrong"), done.stdout
    assert [advice["kind"] for advice in second["advice"]] == ["shared cores"]
    assert "mpi" in second["advice"][0]["cure"], "the launcher's words"
