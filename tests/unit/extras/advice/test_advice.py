"""Observed jobs: what is set, kept, read and said, and what a job, another user or a full disk cannot do to it."""

import functools
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from witness_helper import compile_c
from witnesses import typed

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.extras.advice import command, lint, spool, steps
from plumbline.launch.witness.model import Witness
from plumbline.proof.judged import Place

WITNESS = paths.library("witness")
OBSERVE = paths.package() / "extras/advice/observe.sh"
SPIN = """
#include <time.h>
int main(void) {
    struct timespec t = {0, 0};
    while (t.tv_nsec < 200000000 && t.tv_sec == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 0;
}
"""
USER = str(os.getuid())
NODE = "\n".join([
    "allowed=0-3", "counts=4", "name=heat", "account=lab", "partition=main",
    *(f"cpu/cpu{cpu}/topology/thread_siblings_list:{cpu}" for cpu in range(8)),
    "node/node0/cpulist:0-3", "node/node1/cpulist:4-7", "/sys/bus/pci/drivers/nvidia/0000:41:00.0/local_cpulist:4-7",
    *(f"/sys/class/infiniband/{name}/ports/1/{text}" for name, *texts in (
        ("mlx5_0", "state:4: ACTIVE", "link_layer:InfiniBand"), ("mlx5_1", "state:1: DOWN", "link_layer:InfiniBand"),
        ("mlx5_2", "state:4: ACTIVE", "link_layer:Ethernet"),
    ) for text in texts),
])  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A spool, and no variables of a job or of another spool."""
    for name in os.environ:
        if name.startswith(
            ("SLURM_", "PBS_", "PLUMB_", "FLUX_", "LD_PRELOAD", "JOB_", "LSB_", "SGE_", "APPTAINERENV_", "SINGU")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o700)
    return folder


def observe(place, *program, mode="task", library=None, **variables):
    words = ["sh", OBSERVE, library or WITNESS, place, mode, *(["--", *program] if program else [])]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def test_it_sets_only_what_the_witness_needs(place):
    done = observe(place, mode="on", LD_PRELOAD="/lib/own.so")
    lines = [line.removeprefix("export ") for line in done.stdout.splitlines()]
    assert lines == [
        f"LD_PRELOAD={WITNESS}:/lib/own.so", f"PLUMB_WITNESS_DIR={place}/{USER}/7",
        "PLUMB_WITNESS_MOST=10000", "APPTAINERENV_LD_PRELOAD=/lib/own.so", "SINGULARITYENV_LD_PRELOAD=/lib/own.so",
    ]  # fmt: skip
    assert (place / USER / "7").stat().st_mode & 0o777 == 0o700
    observe(place, mode="task", SLURM_JOB_ID="8")
    (described,) = (place / USER / "8").glob("*.node")
    assert steps.node(described.read_bytes()).place is None, "a task may be bound: it does not know the job's CPUs"


@pytest.mark.parametrize("fault", ["linked", "no spool", "off", "a blank", "no library", "relative"])
def test_where_anything_is_unsafe_the_job_runs_as_without_it(place, fault):
    if fault == "linked":
        (place / USER).symlink_to("/tmp")
    elif fault == "no spool":
        place.rmdir()
    spool_of = {"a blank": f"{place} x", "relative": "spool"}.get(fault, place)
    library = "/none.so" if fault == "no library" else None
    more = {"PLUMB_ADVICE": "off"} if fault == "off" else {}
    done = observe(spool_of, "sh", "-c", 'echo "$LD_PRELOAD"; exit 5', library=library, **more)
    assert (done.returncode, done.stdout, done.stderr) == (5, "\n", "")


def test_a_program_keeps_its_status_output_and_signals(place):
    assert observe(place, "sh", "-c", "echo out; echo err >&2; exit 3").returncode == 3
    mask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True, check=True).stdout
    assert observe(place, "sh", "-c", "umask", mode="on").stdout == mask
    done = observe(place, "sh", "-c", "echo out; kill -9 $$")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "out\n", "")


def test_short_processes_leave_nothing_and_others_up_to_a_cap(place, tmp_path):
    spin = compile_c(tmp_path, SPIN)
    assert observe(place, "sh", "-c", f"for i in 1 2 3; do /bin/true; done; {spin}; {spin}; exit 0").returncode == 0
    assert len(list((place / USER / "7").glob("*.json"))) == 3, "two that worked, and the shell that waited for them"
    env = {**os.environ, "LD_PRELOAD": str(WITNESS), "PLUMB_WITNESS_DIR": str(tmp_path)}
    for _ in range(3):
        subprocess.run([spin], check=True, env={**env, "PLUMB_WITNESS_MOST": "2"})
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("limit", ["unlimited", "0"])
def test_no_room_for_files_is_silent(place, tmp_path, limit):
    """On a full disk, or by a limit on the size of files, which otherwise ends the program by SIGXFSZ."""
    if limit == "unlimited":
        (tmp_path / ".count").symlink_to("/dev/full")
    own = {"LD_PRELOAD": str(WITNESS), "PLUMB_WITNESS_DIR": str(tmp_path), "PLUMB_WITNESS_MOST": "9"}
    command = ["sh", "-c", f'ulimit -f {limit}; exec "$@"', "sh", compile_c(tmp_path, SPIN)]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, check=False)
    assert (done.returncode, done.stderr, list(tmp_path.glob("*.json*"))) == (0, b"", [])


@functools.cache
def documents(count, hosts=80):
    """Ranks on hosts, each a core of its own."""
    per = count // hosts
    ranks = [
        {"host": f"n{number // per:03}", "pid": number % per + 10, "rank": number, "size": count, "root": 0,
         "program": "/x/heat", "ancestors": [1], "threads": [{"affinity": [number % per], "cpu_s": 1}],
         "usage": {"wall_s": 1, "user_s": 1}}
        for number in range(count)
    ]  # fmt: skip
    made = [msgspec.convert(msgspec.to_builtins(typed(each), str_keys=True), Witness, strict=False) for each in ranks]
    return made, {f"{each.host}.{each.pid}": 100.0 for each in made}


def whole(cpus, launcher="srun", counts="counts"):
    text = "\n".join(f"cpu/cpu{cpu}/topology/thread_siblings_list:{cpu}" for cpu in range(cpus))
    lines = f"allowed=0-{cpus - 1}\n{counts}={cpus}\nlauncher={launcher}\n{text}\nnode/node0/cpulist:0-{cpus - 1}\n"
    return steps.node(lines.encode())


@pytest.mark.parametrize("alike", [True, False])
def test_ten_thousand_ranks_are_a_document_of_64_kib(alike):
    made, ends = documents(10_000)
    if not alike:
        made = [msgspec.structs.replace(each, program=f"/x/{'y' * 99}{number}") for number, each in enumerate(made)]
    (step,) = steps.steps("1", made, ends, {f"n{host:03}": whole(125) for host in range(80)}, [])
    assert len(msgspec.json.encode(step)) <= 64 << 10
    assert step.verdict == "right"
    assert sum(each.count for each in step.groups) + step.left_out == step.ranks == 10_000
    assert step.groups[0].count == (80 if alike else 1)


@pytest.mark.parametrize(("launcher", "cure"), [
    ("srun", "srun --cpus-per-task=1 --cpu-bind=cores"),
    ("flux run", "flux run --cores-per-task=1 -o cpu-affinity=per-task"), ("rm -rf", "1 core for 1 thread"),
])  # fmt: skip
def test_advice_is_one_of_each_kind_with_its_hosts_and_the_launcher_s_words(launcher, cure):
    made, ends = documents(8, hosts=2)
    threads = [msgspec.structs.replace(made[0].threads[0], affinity=list(range(8)), migrations=3)]
    made = [msgspec.structs.replace(each, threads=threads) for each in made]
    node = whole(8, launcher, "counts" if launcher == "srun" else "cores")
    (step,) = steps.steps("1", made, ends, {"n000": node, "n001": node}, [])
    (advice,) = step.advice
    assert (advice.kind, advice.hosts) == ("no binding", 2)
    assert f": {cure}; " in advice.cure


def test_nothing_is_advised_where_something_was_not_seen():
    made, ends = documents(8, hosts=2)
    nodes = {"n000": whole(8), "n001": whole(8)}
    made = [msgspec.structs.replace(each, threads=made[0].threads) for each in made]
    assert next(steps.steps("1", made, ends, nodes, [])).verdict == "wrong"
    (step,) = steps.steps("1", made[:-1], ends, nodes, [])
    assert (step.verdict, step.doubts) == ("not known", ["rank 7 of 8 left no account"])
    (step,) = steps.steps("1", made, ends, {}, [])
    assert (step.verdict, step.advice) == ("not known", [])


def test_modules_are_kept_by_name_and_never_by_file():
    made, ends = documents(8, hosts=2)
    loaded = ("", "gcc/12.2:openmpi/4.1.5:/home/me/mine", f"gcc/12.2::../up:a b:{'x' * 101}:\x1b[31m", "fftw/3.3")
    made = [msgspec.structs.replace(each, modules=loaded[number % 4]) for number, each in enumerate(made)]
    (step,) = steps.steps("1", made, ends, {}, [])
    assert step.modules == ["fftw/3.3", "gcc/12.2", "openmpi/4.1.5"]
    made = [msgspec.structs.replace(each, modules=":".join(f"m{number:099}" for number in range(999))) for each in made]
    (step,) = steps.steps("1", made, ends, {}, [])
    assert len(step.modules) == 100


def ran(users, wrong, modules=(), partition="main"):
    """Launches of users, of which the first ones are wrong in most of their core hours."""
    ones = dict.fromkeys(("schema", "began", "wall_s", "hosts", "ranks", "cpus"), 1)
    of = {"partition": partition, "modules": ["gcc/12", *modules], **ones}
    return [(user, steps.Step(job="1", verdict=verdict, core_hours=hours, **of)) for place, user in enumerate(users)
            for verdict, hours in (("wrong" if place < wrong else "right", 8.0), ("right", 2.0))]  # fmt: skip


def test_a_module_is_named_where_its_users_are_wrong_beyond_chance():
    others = ran("ABCDEFGHIJ", 1)
    slow = ran("STUVW", 5, ["openmpi/4", "hwloc/2"])
    assert command.suspects([*others, *slow]) == [("hwloc/2, openmpi/4", 5, 5, pytest.approx(0.8), pytest.approx(0.08))]
    assert command.suspects([*others, *ran("STUVW", 2, ["openmpi/4"])]) == []
    assert command.suspects([*others, *(20 * ran("S", 1, ["openmpi/4"]))]) == [], "the habit of a user"
    assert command.suspects(slow) == [], "nothing to compare with"
    assert [row[0] for row in command.suspects([*others, *ran("STUVW", 5, partition="gpu")])] == ["partition gpu"]
    assert command.suspects([]) == []


def test_launches_of_a_job_are_told_apart_by_time():
    made, _ = documents(4, hosts=1)
    script = msgspec.structs.replace(made[0], pid=5, rank=-1, usage=msgspec.structs.replace(made[0].usage, user_s=0.0))
    made = [msgspec.structs.replace(each, ancestors=[5, 1]) for each in made]
    ends = {"n000.10": 10.0, "n000.11": 10.2, "n000.12": 20.0, "n000.13": 20.1, "n000.5": 21.0}
    known = steps.launches([script, *made], ends)
    assert [sorted(each.pid for each in one) for one in known] == [[5, 10, 11], [5, 12, 13]]


def test_a_node_is_read_strictly():
    node = steps.node(NODE.encode())
    assert isinstance(node.place, Place)
    assert node.place.allowed == frozenset(range(4))
    assert node.place.gpus == {"0000:41:00.0": frozenset(range(4, 8))}
    assert node.place.fabric == ["mlx5_0"]
    assert [each.cpus for each in node.place.machine.numa_nodes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert steps.node(NODE.replace("counts=4", "counts=2(x3)").encode()).place is None, "CPUs of other jobs too"
    for fault in (
        "allowed=0-99999999999",
        "cpu/cpu0/topology/thread_siblings_list:0-999999999",
        "node/node0/cpulist:3--1",
    ):
        with pytest.raises(ValueError, match="CPUs"):
            steps.node(fault.encode())
    many = "\n".join(f"cpu/cpu{cpu}/topology/thread_siblings_list:0-99999" for cpu in range(99))
    with pytest.raises(ValueError, match="too many CPUs"):
        steps.node(many.encode())
    assert steps.node(b"name=\x1b[31mred").names["name"] == "?[31mred"


def test_an_end_that_was_interrupted_keeps_no_launch_twice(place, monkeypatch):
    ones = dict.fromkeys(("schema", "wall_s", "hosts", "ranks", "cpus", "core_hours"), 1)
    launches = [steps.Step(job="1", verdict="right", began=began, **ones) for began in (1, 2)]
    (place / USER).mkdir(mode=0o700)
    for seen in (launches[:1], launches, launches):
        monkeypatch.setattr(spool, "running", lambda *_, seen=seen: seen)
        spool.keep(place, "1", 90)
    assert spool.kept(place, USER) == (launches, 0)


def test_what_is_no_plain_file_of_the_user_is_not_read(place):
    ones = dict.fromkeys(("schema", "began", "wall_s", "hosts", "ranks", "cpus", "core_hours"), 1)
    good = msgspec.json.encode(steps.Step(job="1", verdict="right", **ones))
    mine = place / USER
    mine.mkdir(mode=0o700)
    (mine / "1.0.json").write_bytes(good)
    (mine / "2.0.json").symlink_to(mine / "1.0.json")
    os.mkfifo(mine / "3.0.json")
    (mine / "4.0.json").write_bytes(good.replace(b'"schema":1', b'"schema":1,"more":2'))
    (mine / "5.0.json").write_bytes(good + b" " * (64 << 10))
    (mine / "6.0.json").write_bytes(b"[" * 60_000)
    (mine / "7.0.json").write_bytes(good.replace(b'"1"', json.dumps("\x1b").encode()))
    known, damaged = spool.kept(place, USER)
    assert ([step.job for step in known], damaged) == (["1"], 6)
    (mine / "8.0.json").hardlink_to(mine / "1.0.json")
    assert spool.kept(place, USER)[0] == []
    mine.chmod(0o777)
    assert spool.kept(place, USER) == ([], 0)


def test_a_witness_under_another_name_is_damaged(place, tmp_path):
    spin = compile_c(tmp_path, SPIN)
    observe(place, spin, mode="on")
    folder = place / USER / "7"
    (document,) = folder.glob("*.json")
    document.rename(folder / "other.5.json")
    (folder / "9.json").write_text("{")
    assert spool.running(place, USER, "7") == []


def test_a_job_from_its_variables_to_the_report(place, tmp_path, capsys, monkeypatch):
    spin = compile_c(tmp_path, SPIN)
    monkeypatch.setenv("LOADEDMODULES", "gcc/12.2:/home/me/mine")
    assert observe(place, "taskset", "-c", "0", "sh", "-c", f"{spin} & {spin} & wait", mode="on").returncode == 0
    # the CPUs of the test's own group may be others than those of this job
    next((place / USER / "7").glob("*.node")).write_text(NODE)
    work = ["--work", str(place)]
    assert cli.main(["advice", "show", "7", "--json", *work]) == 0
    (step,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (step["name"], step["account"], step["cpus"], step["modules"]) == ("heat", "lab", 4, ["gcc/12.2"])
    assert step["groups"][0]["cpus"] == "0"
    assert str(tmp_path) not in json.dumps(step), "no names of files"
    assert cli.main(["advice", "end", "7", *work]) == 0
    line = capsys.readouterr().out
    assert line == "plumb: job 7: 1 of 1 launch wrong: shared cores: plumb advice show 7\n"
    assert [entry.name for entry in (place / USER).iterdir()] == ["7.0.json"]
    assert cli.main(["advice", "show", "7", *work]) == 0
    assert capsys.readouterr().out.endswith(line)
    files = [str(tmp_path / f"r{ending}") for ending in (".html", ".json", ".md", ".prom")]
    assert cli.main(["advice", "report", *work, *(word for file in files for word in ("--output", file))]) == 0
    assert "shared cores" in capsys.readouterr().out
    assert 'plumb_advice_core_hours{account="lab",partition="main",kind="shared cores"}' in Path(files[3]).read_text()
    monkeypatch.setattr(spool.time, "time", lambda: 1e12)
    spool.keep(place, "8", 30)
    assert list((place / USER).iterdir()) == []


PAGE = """
    $ srun -n 4 -c2 --cpu-bind=cores ./app --input "x y"
`mpirun -np 2 --map-by slot:PE=1 \\
   ./app`
OMP_NUM_THREADS=2 mpiexec -n 1 ./omp
LD_PRELOAD=/x.so srun -n1 ./app
srun -n1 --task-prolog=./evil ./app
mpirun --mca plm_rsh_agent ./evil -n 1 app
mpirun -x LD_PRELOAD=/x.so -n 1 app
srun -n $NODES ./app
srun -n "2 ./app
salloc -n 2 srun ./app
flux run -n 2 -c1 -o cpu-affinity=per-task ./app
flux run -n 2 -o userrc=./evil.lua ./app
"""


def test_only_the_launcher_and_its_options_are_run_of_a_page():
    known = list(lint.lines(PAGE))
    assert [(line.number, line.words) for line in known if not line.fault] == [
        (2, ["srun", "-n", "4", "-c2", "--cpu-bind=cores"]), (3, ["mpirun", "-np", "2", "--map-by", "slot:PE=1"]),
        (5, ["mpiexec", "-n", "1"]),
        (13, ["flux", "run", "-n", "2", "-c1", "-o", "cpu-affinity=per-task"]),
    ]  # fmt: skip
    assert known[2].variables == ["OMP_NUM_THREADS=2"]
    assert len([line for line in known if line.fault]) == 7


def test_a_page_is_run_only_with_consent(tmp_path, capsys, monkeypatch):
    (tmp_path / "mpirun").write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ] && [ "${1#-}" != "$1" ]; do shift 2; done\nexec "$@"\n'
    )
    (tmp_path / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    page = tmp_path / "guide.md"
    page.write_text("OMP_NUM_THREADS=2 mpirun -n 1 ./evil\n")
    assert cli.main(["advice", "lint", str(page)]) == 0
    assert "would run: OMP_NUM_THREADS=2 mpirun -n 1" in capsys.readouterr().out
    cli.main(["advice", "lint", str(page), "--run", "--work", str(tmp_path)])
    said = capsys.readouterr().out
    assert "evil" not in said.replace("./evil\n", "")
    assert "1 rank, threads of each: " in said
    assert "1 run" in said


def test_wrong_advice_is_rare():
    rates = runpy.run_path(str(paths.root() / "tests/rates/advice.py"))
    noise = random.Random(1)  # noqa: S311
    assert len({*rates["COMBINATIONS"]}) >= 60
    for combination in rates["COMBINATIONS"]:
        assert rates["judged"](rates["right"](*combination, noise)).verdict == "right", combination
    for kind, (plant, line, nodes) in rates["FAULTS"].items():
        step = rates["judged"](plant(rates["faulty"](line, nodes[0], noise), noise))
        step = steps.with_history(step, rates["before"](step, 4 * step.cpus) if kind == steps.FEWER_CPUS else [])
        assert kind.partition(" (")[0] in {advice.kind for advice in step.advice}


NAMES = {
    "7": {"SLURM_JOB_ID": "7", "JOB_ID": "8"},
    "fAbC": {"FLUX_JOB_ID": "\u0192AbC"},
    "fOut": {"FLUX_JOB_ID_PATH": "/\u0192Out/\u0192AbC", "FLUX_JOB_ID": "\u0192AbC"},
    "12": {"PBS_JOBID": "12.server.site"},
    "12_3": {"PBS_JOBID": "12[3].server.site"},
    "5_2": {"JOB_ID": "5", "SGE_TASK_ID": "2"},
    "5": {"JOB_ID": "5", "SGE_TASK_ID": "undefined"},
    "9_4": {"LSB_JOBID": "9", "LSB_JOBINDEX": "4"},
}


@pytest.mark.parametrize(("name", "variables"), NAMES.items())
def test_each_scheduler_s_job_has_its_name(place, monkeypatch, name, variables):
    monkeypatch.delenv("SLURM_JOB_ID")
    assert f"PLUMB_WITNESS_DIR={place}/{USER}/{name}\n" in observe(place, **variables).stdout
    (described,) = (place / USER / name).glob("*.node")
    launchers = {"SLURM_JOB_ID": "srun", "FLUX_JOB_ID": "flux run"}
    assert steps.node(described.read_bytes()).launcher == "".join(launchers.get(each, "") for each in variables)


def test_a_share_is_of_jobs_and_starts_every_program(place):
    done = [observe(place, "sh", "-c", "echo $PLUMB_WITNESS_DIR", mode="on:50", SLURM_JOB_ID=f"f{job}")
            for job in range(20)]  # fmt: skip
    assert {each.returncode for each in done} == {0}
    assert 0 < sum(bool(each.stdout.strip()) for each in done) < 20


def test_variables_of_another_job_are_replaced(place):
    done = observe(place, LD_PRELOAD=str(WITNESS), PLUMB_WITNESS_DIR=f"{place}/{USER}/6")
    assert done.stdout == f"export PLUMB_WITNESS_DIR={place}/{USER}/7\nexport PLUMB_WITNESS_MOST=10000\n"


def test_a_job_s_own_spool_is_the_default(place, monkeypatch):
    monkeypatch.setenv("PLUMB_WITNESS_DIR", f"{place}/{USER}/7")
    monkeypatch.setenv("PLUMB_ADVICE", "off")
    assert spool.folder(None) == place
    monkeypatch.setenv("PLUMB_ADVICE", "/shared")
    assert spool.folder(None) == Path("/shared")


def test_a_link_of_another_user_costs_no_file(place, tmp_path):
    precious = tmp_path / "home/7/thesis"
    precious.mkdir(parents=True)
    (place / USER).symlink_to(precious.parents[1])
    assert spool.keep(place, "7", 0.0) == []
    assert precious.is_dir()


@pytest.mark.skipif(USER != "0", reason="only root gives files away")
def test_files_and_folders_of_others_are_not_used(place):
    observe(place, mode="on")
    node = next((place / USER / "7").glob("*.node"))
    os.chown(node, 65534, -1)
    assert list(spool._read_all(place, USER, "7", node=steps.node)) == [(node.stem, None, 0.0)]
    os.chown(place, 65534, -1)
    place.chmod(0o777)
    assert observe(place).stdout == "", "its owner could move the user's folder away"
    place.chmod(0o1777)
    assert "PLUMB_WITNESS_DIR" in observe(place).stdout


def test_giant_files_cost_root_neither_memory_nor_time(place, monkeypatch):
    with pytest.raises(ValueError, match="CPUs"):
        steps.node(b"allowed=999999\n" + b"x" * (4 << 20))
    folder = place / USER / "7"
    folder.mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    for name in ("a", "b", "c"):
        (folder / f"{name}.node").write_text(NODE)
    monkeypatch.setattr(spool, "ALL", 2 * len(NODE))
    read = [item is not None for _, item, _ in spool._read_all(place, USER, "7", node=steps.node)]
    assert read == [True, True, False]


@pytest.mark.parametrize("text", ["\x9b31m", "\u202egpj.exe"])
def test_no_text_of_a_user_commands_a_terminal(text):
    assert steps.cut(text).startswith("?")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, steps.Text)


POOL = """
import multiprocessing, sys, time
def work(_):
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(work, range(2), chunksize=1)
        pool.close()
        pool.join()
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_of_python_are_threads_of_one_rank(place, tmp_path, way):
    (tmp_path / "pool.py").write_text(POOL)
    done = observe(place, "taskset", "-c", "0", sys.executable, tmp_path / "pool.py", way, mode="on")
    assert (done.returncode, done.stderr) == (0, "")
    next((place / USER / "7").glob("*.node")).write_text(NODE)
    (step,) = spool.running(place, USER, "7")
    assert [advice.kind for advice in step.advice] == ["shared cores"], step


def test_a_library_that_the_job_preloads_stays(place, tmp_path):
    code = '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts("mine"); }\n'
    mine = compile_c(tmp_path, code, "-shared", "-fPIC", name="mine.so")
    done = observe(place, compile_c(tmp_path, SPIN), LD_PRELOAD=str(mine))
    assert (done.returncode, set(done.stdout.split()), done.stderr) == (0, {"mine"}, "")
    assert list((place / USER / "7").glob("*.json"))


@pytest.mark.skipif(USER != "0", reason="only root makes such a program")
def test_a_program_with_more_rights_runs_as_without_it(place, tmp_path):
    spin = Path(compile_c(tmp_path, SPIN))
    os.chown(spin, 65534, -1)
    spin.chmod(0o4755)
    tmp_path.chmod(0o755)
    done = observe(place, spin)
    assert (done.returncode, done.stdout, done.stderr, list((place / USER / "7").glob("*.json"))) == (0, "", "", [])


def observer(capsys, place, name, share=100):
    assert cli.main(["advice", "on", "--scheduler", name, "--share", str(share), "--work", str(place)]) == 0
    return capsys.readouterr().out


def test_slurm_s_file_prints_variables(place, capsys):
    text = observer(capsys, place, "slurm")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert f"export PLUMB_WITNESS_DIR={place}/{USER}/7\n" in done.stdout
    assert cli.main(["advice", "on", "--scheduler", "ssh", "--work", str(place)]) == 2
    assert cli.main(["advice", "on", "--scheduler", "slurm", "--share", "-3", "--work", str(place)]) == 2


@pytest.mark.parametrize("system", ["modules", "lmod/lmod"])
def test_a_module_observes_a_job_until_it_is_unloaded(place, tmp_path, capsys, system):
    if not (init := Path(f"/usr/share/{system}/init/sh")).exists():
        pytest.skip("not installed")
    assert cli.main(["advice", "on", "--module", "--work", str(place)]) == 0
    (tmp_path / "mod").mkdir()
    (tmp_path / "mod/plumb-advice").write_text(capsys.readouterr().out)
    variables = "env | grep -E '^[A-Z]+_(LD_)?PRELOAD|^PLUMB_W' | sort"
    script = f". {init}; module load plumb-advice; {variables}; module unload plumb-advice; echo; {variables}"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MODULEPATH": str(tmp_path / "mod"),
           "SINGULARITYENV_LD_PRELOAD": "/mine"}  # fmt: skip
    run = functools.partial(subprocess.run, ["sh", "-c", script], capture_output=True, text=True, check=False)
    mine = "SINGULARITYENV_LD_PRELOAD=/mine\n"
    assert run(env={**env, "PBS_JOBID": "12.server"}).stdout == (
        f"APPTAINERENV_LD_PRELOAD=\nLD_PRELOAD={WITNESS}\nPLUMB_WITNESS_DIR={place}/{USER}/12\n"
        f"PLUMB_WITNESS_MOST=10000\n{mine}\n{mine}"
    )
    done = run(env=env)
    assert done.stdout == f"{mine}\n{mine}"
    assert "plumb-advice: no job here: load it in the script of a job" in done.stderr


@pytest.mark.parametrize(("shell", "mode", "login", "expected"), [
    ("/bin/sh", "posix_compliant", "false", "script: a b"),
    ("/bin/sh", "posix_compliant", "true", "script: a b"),
    ("/none", "unix_behavior", "false", "script: a b"),
    ("", "", "", "script: a b"),
])  # fmt: skip
def test_grid_engine_s_file_starts_what_the_queue_would(place, tmp_path, capsys, shell, mode, login, expected):
    starter, script = tmp_path / "starter", tmp_path / "job_scripts/9"
    starter.write_text(observer(capsys, place, "sge"))
    script.parent.mkdir()
    script.write_text('#!/bin/sh\necho "script: $1"; echo $PLUMB_WITNESS_DIR; exit 4\n')
    for file in (starter, script):
        file.chmod(0o755)
    env = {**os.environ, "JOB_ID": "9", "SGE_STARTER_SHELL_PATH": shell, "SGE_STARTER_SHELL_START_MODE": mode,
           "SGE_STARTER_USE_LOGIN_SHELL": login}  # fmt: skip
    del env["SLURM_JOB_ID"]
    done = subprocess.run([starter, script, "a b"], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout.splitlines()) == (4, [expected, f"{place}/{USER}/9"])
    done = subprocess.run([starter, "sh", "-c", "exit 5"], check=False, env=env)
    assert done.returncode == 5, "a program, without a shell"


@pytest.mark.parametrize(("words", "expected"), [
    (["{job}"], "script:  in /"), (["cd /tmp && A=1 {job} 'a b'"], "script: a b in /tmp"),
    (["{job}", "a b"], "script: a b in /"),
])  # fmt: skip
def test_lsf_s_file_starts_a_job_s_file_or_line(place, tmp_path, capsys, monkeypatch, words, expected):
    monkeypatch.delenv("SLURM_JOB_ID")
    starter, job = tmp_path / "starter", tmp_path / "1764500000.9.shell"
    starter.write_text(observer(capsys, place, "lsf"))
    job.write_text('#!/bin/sh\necho "script: $1 in $PWD"; echo $PLUMB_WITNESS_DIR; exit 4\n')
    for file in (starter, job):
        file.chmod(0o755)
    line = [starter, *(word.format(job=job) for word in words)]
    env = {**os.environ, "LSB_JOBID": "9", "LSB_JOBINDEX": "0"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=env, cwd="/")
    assert (done.returncode, done.stdout.splitlines()) == (4, [expected, f"{place}/{USER}/9"])


PBS = """
import os, types
class Job:
    id, euser = "12[3].server", __import__("pwd").getpwuid(os.getuid()).pw_name
class Event:
    job, env = Job, {"NCPUS": "4", "PBS_JOBNAME": "heat; rm", "LD_PRELOAD": "/mine.so"}
    accept = staticmethod(lambda: print("accepted", Event.env))
event, LOG_WARNING = (lambda: Event), 4
def logmsg(level, text): print("logged", text)
"""


def test_pbs_s_hook_sets_variables_and_accepts_every_job(place, tmp_path, capsys):
    (tmp_path / "pbs.py").write_text(PBS)
    hook = observer(capsys, place, "pbs")
    run = [sys.executable, "-c", hook]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    if USER == "0":
        assert f"'LD_PRELOAD': '{WITNESS}:/mine.so'" in done.stdout
        assert f"'PLUMB_WITNESS_DIR': '{place}/0/12_3'" in done.stdout
        assert "'APPTAINERENV_LD_PRELOAD': '/mine.so'" in done.stdout
        (described,) = (place / USER / "12_3").glob("*.node")
        assert steps.node(described.read_bytes()).names["name"] == "heat; rm"
    run[2] = hook.replace("/bin/sh", "/none")
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    assert "logged plumb_advice: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("accepted")


@pytest.mark.skipif(shutil.which("flux") is None, reason="no Flux here")
def test_flux_s_file_observes_each_job(place, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID")
    (tmp_path / "lua.d").mkdir()
    (tmp_path / "lua.d/advice.lua").write_text(observer(capsys, place, "flux"))
    line = "flux run -n2 env; flux run -n1 sh -c 'exit 3'"
    env = {**os.environ, "FLUX_SHELL_RC_PATH": str(tmp_path)}
    done = subprocess.run(["flux", "start", "sh", "-c", line], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout.count(f"PLUMB_WITNESS_DIR={place}/{USER}/f")) == (3, 2)
    assert len(list((place / USER).glob("f*/*.node"))) == 2
