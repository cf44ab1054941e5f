"""What a launch inherits: nothing that changes a figure is handed on unless the site or the test declares it."""

import ctypes
import functools
import platform
import subprocess
import sys

import pytest
import stack_manifest
from odd_stack import STREAM_OUTPUT, Bench, bench, results  # noqa: F401
from samples import record
from witness_helper import compile_c

from plumbline import mpi, schedulers
from plumbline.base import paths
from plumbline.host import provenance
from plumbline.launch.environment import inherit
from plumbline.measure import driver
from plumbline.records.model import convert
from plumbline.show import diff
from plumbline.show import record as show

PR_SET_TIMERSLACK, PR_SET_THP_DISABLE = 29, 41
IOPRIO_SET, OF_PROCESS, IDLE = {"x86_64": 251}.get(platform.machine(), 30), 1, 3
SET_MEMPOLICY, INTERLEAVE = {"x86_64": 238}.get(platform.machine(), 237), 3
#: runs a program and lets it go on at each stop
TRACER = """
import ctypes, os, sys
ptrace, TRACE_ME, CONTINUE, TRAP = ctypes.CDLL(None).ptrace, 0, 7, 5
if (pid := os.fork()) == 0:
    ptrace(TRACE_ME, 0, None, None) and os._exit(1)
    os.execv("/bin/true", ["true"])
while os.WIFSTOPPED(status := os.waitpid(pid, 0)[1]):
    signal = os.WSTOPSIG(status)
    ptrace(CONTINUE, pid, None, ctypes.c_void_p(0 if signal == TRAP else signal))
sys.exit(os.WEXITSTATUS(status))
"""
#: names every variable that it was given, one a line, and then a valid table
TELL = "import os\nopen('given', 'w').write('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))\n" + STREAM_OUTPUT


@pytest.fixture
def fake_clock(tmp_path):
    return str(compile_c(tmp_path, "slow_clock.c", "-shared", "-fPIC", name="libclock.so"))


def measured(bench, base="mpich", code=TELL, **changes):  # noqa: F811
    """The record of one launch, and the variables that its rank had."""
    bench.stack(code + "\nimport shutil; shutil.copy('given', '../../given')\n", base)
    said = []
    _, records = driver.run([bench.variant(**changes)], bench.folder / "work", say=said.append)
    removed = ", ".join(records[0].removed_variables)
    assert [line for line in said if line.startswith(f"not given to the launches: {removed};")] or not removed
    assert records[0].reasons == [] or "LD_PRELOAD" in changes.get("environment", {})
    lines = (bench.folder / "given").read_text().splitlines()
    return records[0], dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.e2e
def test_a_fake_clock_of_the_user_is_not_preloaded(bench, fake_clock, monkeypatch):  # noqa: F811
    monkeypatch.setenv("LD_PRELOAD", fake_clock)
    record, given = measured(bench)
    assert fake_clock not in given["LD_PRELOAD"]
    assert "LD_PRELOAD" in record.removed_variables
    assert f"not given    {' '.join(record.removed_variables)}\n" in show.text(record)


@pytest.mark.e2e
def test_a_declared_one_is_used_and_the_circumstances_differ(bench, fake_clock):  # noqa: F811
    honest, _ = measured(bench)
    record, given = measured(bench, environment={"LD_PRELOAD": fake_clock})
    assert given["LD_PRELOAD"].endswith(fake_clock)
    assert ("environment.LD_PRELOAD", "absent", fake_clock) in diff.differences(honest, record)
    assert "read a clock that is not the kernel's" in str(record.reasons)


@pytest.fixture
def handicap():
    """Switches huge pages, exact timers and I/O off for this process and what it starts, until the test ends."""
    libc = ctypes.CDLL(None, use_errno=True)

    def set_(off, slack_ns, io_class):
        assert libc.prctl(PR_SET_THP_DISABLE, off, 0, 0, 0) == libc.prctl(PR_SET_TIMERSLACK, slack_ns) == 0
        assert libc.syscall(IOPRIO_SET, OF_PROCESS, 0, io_class << 13) == 0

    yield functools.partial(set_, 1, 1_000_000, IDLE)
    set_(0, 0, 0)


@pytest.mark.e2e
def test_attributes_that_go_from_parent_to_child_are_circumstances(bench, handicap):  # noqa: F811
    honest, _ = measured(bench)
    handicap()
    slow, _ = measured(bench)
    (line,) = [line for line in diff.text(honest, slow).splitlines() if line.startswith("scheduling")]
    assert "transparent huge pages off" in slow.scheduling
    assert "timer slack 1000000 ns" in slow.scheduling
    assert "I/O priority of class 3" in slow.scheduling
    assert honest.scheduling != slow.scheduling
    assert "SCHED_OTHER" in line


def test_a_program_under_a_tracer_says_so(tmp_path):
    """``strace -f plumb run``: each system call takes many times as long."""
    environment = {"LD_PRELOAD": str(paths.library("witness")), "PLUMB_WITNESS_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", TRACER], env=environment, check=False)
    if done.returncode:
        pytest.skip("this host refuses ptrace")
    assert [file for file in tmp_path.glob("*.json") if '"traced by a debugger or strace"' in file.read_text()]


@pytest.mark.e2e
def test_the_memory_policy_of_numactl_is_a_circumstance_where_no_plan_has_one(bench):  # noqa: F811
    libc = ctypes.CDLL(None)
    if libc.syscall(SET_MEMPOLICY, INTERLEAVE, ctypes.byref(ctypes.c_ulong(1)), 64):
        pytest.skip("this container refuses memory policies")
    try:
        free, planned = (measured(bench, placement=placement)[0] for placement in ("none", "core"))
    finally:
        libc.syscall(SET_MEMPOLICY, 0, None, 0)
    assert "memory policy interleave" in free.scheduling
    assert "memory policy" not in planned.scheduling


@pytest.mark.e2e
def test_what_a_stack_refers_to_by_name_is_declared_and_recorded(bench, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HOME", "/home/me")
    document = bench.stack(TELL)
    document["environment"]["LICENCE"] = "${HOME}/licence"
    stack_manifest.save(document)
    _, (made,) = driver.run([bench.variant()], bench.folder / "work")
    assert made.environment["LICENCE"] == "/home/me/licence"


@pytest.mark.e2e
@pytest.mark.parametrize("base", ["openmpi", "mpich", "intelmpi"])
def test_settings_of_the_users_home_are_not_read(bench, base, monkeypatch):  # noqa: F811
    """Open MPI's launcher hands on what stands in ~/.openmpi: HOME is the launch's own folder."""
    home = bench.folder / "home"
    for name in (".openmpi", ".prte", ".pmix"):
        (home / name).mkdir(parents=True)
        (home / name / "mca-params.conf").write_text("btl = self,tcp\nmpi_show_mca_params = all\n")
    monkeypatch.setenv("HOME", str(home))
    _, given = measured(bench, base)
    assert given["HOME"] == str(bench.folder / "work" / "launch-0")
    assert [name for name in given if name.endswith("show_mca_params")] == []
    assert given.get("OMPI_MCA_btl") == ("^ofi" if base == "openmpi" else None)  # our own, not that of the home


def test_settings_of_the_host_are_a_circumstance(tmp_path):
    before = convert(record(host=provenance.collect(tmp_path)))
    assert "mpi_settings" not in before.host
    for name in ("openmpi/openmpi-mca-params.conf", "ucx/ucx.conf", "mpiexec.hydra.conf"):
        file = tmp_path / "etc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("btl = tcp\n")
        after = convert(record(host=provenance.collect(tmp_path)))
        new = [key for key, old, _ in diff.differences(before, after) if old == "absent"]
        assert new == [f"host.mpi_settings.{file}"]
        before = after


def test_settings_of_the_host_that_cannot_be_read_are_said(tmp_path, monkeypatch):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "mpich.conf").write_text("x")

    def refuse(file):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(provenance.files, "sha256", refuse)
    found = provenance.collect(tmp_path)["mpi_settings"]
    assert found == {str(tmp_path / "etc" / "mpich.conf"): "Permission denied"}


CHANGING = [
    "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_BIND_NOW", "OMPI_MCA_btl", "PMIX_MCA_gds", "PRTE_MCA_plm",
    "MPIR_CVAR_NOLOCAL", "MPICH_ASYNC_PROGRESS", "I_MPI_FABRICS", "I_MPI_PIN", "MV2_USE_SHARED_MEM",
    "MVP_USE_CMA", "UCX_TLS", "FI_PROVIDER", "OMP_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY",
    "KMP_BLOCKTIME", "GOMP_SPINCOUNT", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "HYDRA_ENV",
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONPATH", "PYTHONMALLOC", "MPI4PY_RC_THREADS", "PMI_RANK",
    "PSM3_DEVICES",
]  # fmt: skip


@pytest.mark.parametrize("name", CHANGING)
def test_what_changes_figures_is_removed_and_named(name):
    found = inherit({name: "secret", "PATH": "/bin"})
    assert (found.kept, found.removed({})) == ({"PATH": "/bin"}, [name])


def test_what_the_launch_is_given_anyway_is_not_called_removed():
    found = inherit({"LD_LIBRARY_PATH": "/opt/mpi/lib:/opt/ucx/lib", "UCX_TLS": "rc"})
    assert found.removed({"LD_LIBRARY_PATH": "/opt/ucx/lib:/opt/mpi/lib", "UCX_TLS": "rc"}) == []
    assert found.removed({"LD_LIBRARY_PATH": "/opt/mpi/lib", "UCX_TLS": "tcp"}) == ["LD_LIBRARY_PATH", "UCX_TLS"]


def test_what_nobody_knows_is_removed_without_a_word():
    assert inherit({"EDITOR": "ed", "AWS_SECRET_ACCESS_KEY": "x", "LS_COLORS": "1", "PERL5LIB": "2"}) == inherit({})


JOB = [
    "SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_JOB_NODELIST", "PBS_NODEFILE", "PBS_JOBID", "LSB_HOSTS",
    "LSF_BINDIR", "FLUX_URI", "JOB_ID", "PE_HOSTFILE", "SGE_ROOT",
]  # fmt: skip


@pytest.mark.parametrize("name", [*JOB, "PATH", "TMPDIR", "USER", "LC_ALL", "KRB5CCNAME", "SSH_AUTH_SOCK"])
def test_what_a_launcher_needs_is_kept(name):
    assert inherit({name: "x"}).kept == {name: "x"}


def test_every_job_is_still_known_by_its_scheduler():
    for scheduler in schedulers.TABLE.values():
        if scheduler.job_variable:
            assert scheduler.inside(inherit({scheduler.job_variable: "1"}).kept), scheduler.name


def test_settings_of_steps_are_kept_and_stated():
    found = inherit({"SLURM_JOB_ID": "1", "SLURM_CPU_FREQ_REQ": "low"})
    assert found.stated == {"SLURM_CPU_FREQ_REQ": "low"}


def test_settings_of_every_family_are_among_those_that_change_figures():
    for family in mpi.TABLE.values():
        for knob in family.knobs:
            name = family.setting_variable(knob.name)
            assert inherit({name: "1"}).removed({}) == [name], family.name
