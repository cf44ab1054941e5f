"""``plumb prove`` and ``plumbline.proof`` with real programs, without a launcher; how ranks are told from launchers."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from witness_helper import compile_c, cpus
from witnesses import typed

from plumbline import proof
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.launch.observed import Finding
from plumbline.launch.witness import processes
from plumbline.launch.witness.model import Witness
from plumbline.proof import judged

#: of the command, as its own process
MAIN = "from plumbline.commands import cli; sys.exit(cli.main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return SimpleNamespace(
        openmp=compile_c(folder, "openmp_work.c", "-fopenmp", name="openmp"),
        pthreads=compile_c(folder, "thread_work.c", "-pthread", name="pthreads"),
        ends=compile_c(folder, "proven_ends.c", name="ends"),
        static=compile_c(folder, "proven_ends.c", "-DWELL", "-static", name="static"),
    )


def prove(*words, **options):
    """The status of ``plumb prove``, and its streams."""
    command = [sys.executable, "-c", f"import sys; {MAIN}", "prove", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("kind", ["openmp", "pthreads"])
def test_threads_that_share_a_core_are_wrong_and_free_ones_right(kind, programs):
    first, second = cpus(2)
    program = str(getattr(programs, kind))
    assert proof.run(["taskset", "-c", f"{first},{second}", program]).verdict == "right"
    wrong = proof.run(["taskset", "-c", str(first), program])
    assert wrong.verdict == "wrong"
    assert f"2 threads of {kind}" in wrong.reasons[0]
    assert wrong.cures == ["give each thread a core: 2 cores for 2 threads"]
    assert wrong.rank_map == f"-1 {os.uname().nodename} {first}"


def test_a_placement_is_compared_with_where_the_site_put_it(programs):
    first, second = cpus(2)
    away, there = (proof.run(["taskset", "-c", str(cpu), programs.ends, "0"], "core") for cpu in (second, first))
    assert (there.verdict, there.reasons) == ("right", [])
    assert f"outside the rank's CPU {first}" in away.reasons[0]
    assert there.plan.ranks[0].cpus == [first]
    narrow = proof.run(["taskset", "-c", str(first), programs.ends, "0"], "node")
    assert f"cannot use CPU{'s' if len(narrow.plan.ranks[0].cpus) > 2 else ''} {second}" in narrow.reasons[0]


def test_a_placement_that_does_not_exist_starts_nothing(tmp_path):
    with pytest.raises(PlumbError, match="unknown placement 'cores'"):
        proof.run(["touch", str(tmp_path / "x")], "cores")
    assert list(tmp_path.iterdir()) == []


def test_python_is_proven_too():
    assert proof.run([sys.executable, "-c", "pass"]).verified


@pytest.mark.parametrize("words", [["{static}"], ["sh", "-c", "{static}; exit $?"]])
def test_a_static_program_is_not_known(words, programs):
    done = proof.run([word.format(static=programs.static) for word in words])
    assert done.verdict == "not known"
    assert "linked statically" in done.reasons[0] or "left no witness" in done.reasons[0]
    assert len(done.reasons[0]) <= proof.CHARACTERS


WORK = "taskset -c {0} {2} work"


@pytest.mark.parametrize(("script", "verdict", "reason"), [
    (WORK + " & " + WORK + " & wait", "wrong", "2 threads of ends on"),
    (WORK + " & " + WORK.replace("{0}", "{1}") + " & wait", "right", ""),
    (WORK + "; " + WORK, "not known", "1 other working process of the command, at another time"),
], ids=["on the same CPU", "each on its own", "after one another"])  # fmt: skip
def test_every_process_that_worked_is_judged_or_the_verdict_is_not_right(script, verdict, reason, programs):
    done = proof.run(["sh", "-c", script.format(*cpus(2), programs.ends)])
    assert done.verdict == verdict, done.reasons
    assert reason in "".join(done.reasons)


def test_work_that_still_runs_at_the_end_is_not_known():
    done = proof.run(["sh", "-c", "sleep 5 & exit 0"])
    assert done.reasons == ["processes of the command still ran at its end: sleep"]


def test_a_launcher_in_a_job_script_is_none_of_its_ranks(programs, tmp_path, monkeypatch):
    """A job script has the number of a rank, and gives it to srun, which uses more CPU time than its rank."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_PROCID", "0")
    srun = shutil.copy("/bin/sh", tmp_path / "srun")  # the kernel tells the witness this name
    ranks = [f"SLURM_PROCID={rank} taskset -c {cpu} {programs.ends} 0" for rank, cpu in enumerate(cpus(2))]
    done = proof.run([srun, "-c", " & ".join([*ranks, "wait"])])
    assert (done.verdict, [rank.rank for rank in done.ranks]) == ("right", [0, 1]), done.reasons
    assert {Path(rank.program).name for rank in done.ranks} == {"ends"}


def test_hundreds_of_short_processes_leave_no_doubt():
    done = proof.run(["sh", "-c", "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"])
    assert done.verified, done.reasons


def test_a_command_that_failed_is_never_right(programs):
    done = proof.run([str(programs.ends), "3"])
    assert (done.verdict, done.reasons) == ("not known", ["the command failed: exit status 3"])
    assert not done.verified


def test_the_binder_that_refused_is_not_the_program():
    assert proof.run([str(paths.binder()), "--placement", "nope", "--", "true"]).ranks == []


def test_a_user_s_library_that_prints_does_not_break_our_tools(tmp_path, monkeypatch):
    source = '#include <stdio.h>\n__attribute__((constructor)) static void hello(void) { puts("hello"); }\n'
    monkeypatch.setenv("LD_PRELOAD", str(compile_c(tmp_path, source, "-shared", "-fPIC", name="hello.so")))
    assert proof.run(["true"]).verified


def test_exit_status_and_verdict(programs, tmp_path):
    assert prove("--", programs.ends, "7").returncode == 7
    assert prove("--verdict", "--", programs.ends, "7").returncode == 3
    assert prove("--verdict", "--", programs.static).returncode == 3
    assert prove("--verdict", "--", "/nowhere/program").returncode == 3
    assert prove("--", "/nowhere/program").returncode == 127
    assert prove("--", tmp_path).returncode == 126
    refused = prove("--work", "/nowhere", "--", "true")
    assert (refused.returncode, "--work" in refused.stderr) == (2, True)
    assert prove("--verdict", "--", "taskset", "-c", cpus(1)[0], programs.openmp).returncode == 1


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_command_that_was_killed(words):
    done = prove(*words, "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == -signal.SIGKILL
    assert "the command failed: ended by signal 9: Killed" in done.stdout + done.stderr


def test_a_crash_is_the_caller_s_to_see(programs):
    done = prove("--", programs.ends)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.splitlines()[-1] == "plumb: placement: not known (ended by signal 11: Segmentation fault)"


def test_a_fork_is_of_the_same_rank(programs):
    done = proof.run([str(programs.ends), "fork"])
    assert (done.status, len(done.ranks)) == (3, 1)


def test_streams_and_variables_stay_the_user_s(tmp_path):
    around = {**os.environ, "PYTHONPATH": "/nowhere", "PLUMB_WITNESS_PID": "1"}
    done = prove("--json", "--", "sh", "-c", "cat; echo $PYTHONPATH $PLUMB_WITNESS_PID", input="in ", env=around)
    first, second = done.stdout.splitlines()
    assert first == "in /nowhere"
    assert json.loads(second)["verdict"] == "right"
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command_and_are_not_ours(number, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import signal, sys, time\n"
        f"signal.signal({number.value}, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)\n"
    )
    command = [sys.executable, "-c", f"import sys; {MAIN}", "prove", "--", sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout.readline() == b"ready\n"
        os.kill(child.pid, number)
        _, report = child.communicate(timeout=60)
    assert child.returncode == 5
    assert b"placement: not known (1 process of python" in report


def test_a_key_of_the_terminal_reaches_the_command_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import signal, time\ncount = []\nsignal.signal(signal.SIGINT, lambda *_: count.append(1))\n"
        "print('ready', flush=True)\n"
        "while not count: time.sleep(0.1)\n"
        "time.sleep(0.5)\nprint(len(count), flush=True)\n"
    )
    code = f"import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {MAIN}"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, "prove", "--", sys.executable, str(script)]
    pipes = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as child:
        assert child.stdout.readline() == b"ready\n"
        os.write(ours, b"\x03")
        printed, _ = child.communicate(timeout=60)
    assert (child.returncode, printed) == (0, b"1\n")


def test_a_file_has_the_proof_whose_number_is_its_hash(tmp_path, capsys):
    assert cli.main(["prove", "--output", str(tmp_path / "p.json"), "--", "true"]) == 0
    done = msgspec.json.decode((tmp_path / "p.json").read_bytes(), type=proof.Proof)
    assert done.verified
    assert len(done.id) == 12
    assert "placement: right (1 process of true on 1 host)" in capsys.readouterr().err


def test_nothing_stays_behind(tmp_path):
    assert proof.run(["true"], work=tmp_path).verified
    assert list(tmp_path.iterdir()) == []


def test_reasons_are_few_and_short(monkeypatch):
    long = [("a " * 300, "do this"), ("b", ""), ("b", ""), ("c", ""), ("d", "")]
    findings = [Finding("kind", *each) for each in long]
    monkeypatch.setattr(judged, "unplanned", lambda *_, **_more: (findings, []))
    done = proof.run(["true"])
    assert [len(reason) <= proof.CHARACTERS for reason in done.reasons] == [True] * 3
    assert (done.reasons[1:], done.cures) == (["b", "c"], ["do this"])


def test_importing_needs_neither_reframe_nor_yaml():
    code = "import sys, plumbline.proof; print(sorted(sys.modules.keys() & {'reframe', 'yaml', 'numpy', 'tabulate'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.root(), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def process(pid, parents, rank=-1, **more):
    made = typed({"pid": pid, "ancestors": parents, "root": 0, "rank": rank, **more})
    return msgspec.convert(msgspec.to_builtins(made, str_keys=True), Witness, strict=False)


TREES = {
    "mpirun": ([process(1, []), process(2, [1], 0, mpi=True), process(3, [1], 1, mpi=True)], {0: 2, 1: 3}),
    "mpirun in a job script, which has a number of its own": (
        [process(1, [], 0), process(2, [1], 0, mpi=True), process(3, [1], 1, mpi=True)], {0: 2, 1: 3},
    ),
    "srun, which ranks are not below of": (
        [process(1, [], 0), process(2, [9], 0, mpi=True), process(3, [9], 1, mpi=True)], {0: 2, 1: 3},
    ),
    "a script that runs it": ([process(1, []), process(2, [1], usage={"user_s": 2})], {-1: 2}),
    "a wrapper in each rank": ([process(1, [], 0), process(2, [1], 0, mpi=True)], {0: 2}),
    "nested": ([process(1, []), process(2, [1]), process(3, [2, 1], 0), process(4, [2, 1], 1)], {0: 3, 1: 4}),
}  # fmt: skip


@pytest.mark.parametrize(("documents", "expected"), TREES.values(), ids=TREES)
def test_ranks_are_told_from_what_starts_them(documents, expected):
    assert {rank.rank: rank.pid for rank in processes.observed(documents)} == expected


def unknown(launcher, *documents, status=0):
    return list(judged.unknown(processes.observed(list(documents)), [launcher] if launcher else [], status))


def test_variables_that_did_not_arrive_are_named_with_the_launcher_s_option():
    ((reason, cure),) = unknown("prterun", process(2, [1], 0, size=4))
    assert reason == "ranks 1-3 of 4 left no account"
    assert "mpirun -x NAME" in cure
    ((reason, cure),) = unknown("srun")
    assert "no rank left an account" in reason
    assert "srun --export=ALL" in cure


def test_a_program_of_mpi_without_a_launcher_is_its_whole_world():
    assert unknown("", process(1, [], mpi=True, world=1)) == []


def test_a_command_that_failed_without_a_rank_runs_alone_first():
    assert unknown("prterun", status=1) == [
        ("the command failed: exit status 1", "make it run without plumb prove first")
    ]


def test_a_command_in_quotes_names_the_cure():
    with pytest.raises(PlumbError, match="leave out the quotes around mpirun -n 2 ls"):
        proof.run(["mpirun -n 2 ls"])


def test_a_rank_that_crashed_is_no_matter_of_variables():
    assert unknown("prterun", process(2, [1], 0, size=2), status=1) == [
        ("the command failed: exit status 1", ""), ("rank 1 of 2 left no account", ""),
    ]  # fmt: skip


def test_ranks_of_several_launches_and_work_beside_them_are_not_judged():
    def work(pid, rank, host):
        return process(pid, [], rank, host=host, usage={"user_s": 1})

    seen = processes.observed([work(2, 0, "n1"), work(3, 0, "n2"), work(4, -1, "n1")])
    teams, rest = judged.working(seen, [rank for rank in seen if rank.pid == 3], {"mpirun"}, {})
    assert [[each.pid for each in team] for team in teams.values()] == [[3]]
    assert sorted(each.pid for each in rest) == [2, 4]


@pytest.mark.parametrize(
    ("online", "used", "count"),
    [([0, 1], [[0], [1]], (0, 0)), ([0, 1], [[1], [1]], (1, 1)), ([0, 1, 2], [[1], [1]], (0, 1))],
    ids=["each a core of its own", "a core in common", "another machine"],
)
def test_ranks_elsewhere_are_not_judged_by_the_cpus_of_this_host(online, used, count):
    window = {"host": {"busy_s": dict.fromkeys(online, 0), "steal_s": {}}}
    ranks = [
        process(pid, [], pid - 1, host="n1", window=window, threads=[{"tid": pid, "affinity": cpus, "cpu_s": 1}])
        for pid, cpus in enumerate(used, 1)
    ]
    cores = [SimpleNamespace(cpus=(cpu,)) for cpu in (0, 1)]
    this = SimpleNamespace(cpus=(0, 1), cores=cores, home_node=lambda _: None)
    place = judged.Place(this, frozenset([0]), {0: "0", 1: "1"})
    found = judged.unplanned(judged.Seen(processes.observed(ranks), {}, [], [], frozenset()), {"here": place})
    assert tuple(map(len, found)) == count
