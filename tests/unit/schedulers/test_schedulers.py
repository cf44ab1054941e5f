"""What every scheduler must do, tried on fakes that behave like the real ones where it hurts."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_scheduler
import processes
import pytest
import samples
from reframe.core.backends import getscheduler

from plumbline import mpi, schedulers
from plumbline.base.errors import PlumbError
from plumbline.launch import hosts
from plumbline.measure import jobs
from plumbline.schedulers import flux, pbs, sge, slurm
from plumbline.schedulers.base import Job

ROOT = Path(__file__).resolve().parents[3]
WITH_JOBS = [name for name, scheduler in schedulers.TABLE.items() if scheduler.has_jobs]


@pytest.fixture
def fake(request, tmp_path, monkeypatch):
    """The scheduler of the test's parameter, with a variable of the submitter's that no job sees."""
    monkeypatch.setenv("OF_THE_SUBMITTER", "1")
    monkeypatch.setattr(jobs, "LOOK_S", 0.02)
    monkeypatch.setattr(jobs, "CANCEL_S", 600)
    return fake_scheduler.install(request.param, tmp_path, monkeypatch)


every = pytest.mark.parametrize("fake", [*WITH_JOBS, "ssh"], indirect=True)
with_jobs = pytest.mark.parametrize("fake", WITH_JOBS, indirect=True)


def scheduler(fake):
    return schedulers.named(fake.name)


def submission(fake, *command, nodes=2, folder="work", **changes):
    part = samples.partition(name="main", scheduler=fake.name, access=fake.case.get("access", []), **changes)
    return jobs.Submission(part, command, nodes, fake.folder / folder)


def python(code):
    return sys.executable, "-c", code


# --- what a job is


@with_jobs
def test_a_job_needs_nothing_of_the_submitter(fake, tmp_path, monkeypatch, capsys):
    """Neither its variables nor its folder; output and exit status are those of the command."""
    monkeypatch.chdir(tmp_path)
    code = "import os, sys; print(os.getcwd(), 'OF_THE_SUBMITTER' in os.environ, os.environ['HOME']); sys.exit(3)"
    assert jobs.run(submission(fake, *python(code), folder="it's work; $HOME"), print) == 3
    assert f"{tmp_path} False {fake.state / 'home'}\n" in capsys.readouterr().out
    assert fake.words("cancel") is None


@with_jobs
def test_a_process_knows_its_job(fake):
    environment = fake_scheduler.job_environment(fake)
    found = schedulers.current(environment)
    assert type(found) is type(scheduler(fake))
    assert scheduler(fake).inside(environment)
    assert list(found.hosts(environment)) == fake.case["hosts"]
    assert found.host_name(environment) == fake.case.get("host_name", os.uname().nodename)


def test_flux_inside_a_job_of_slurm_is_the_scheduler():
    environment = {"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "FLUX_URI": "local:///tmp/flux", "FLUX_TASK_RANK": "3"}
    assert schedulers.current(environment).name == "flux"


@every
def test_outside_of_jobs_there_is_none(fake):
    outside = {"PATH": "/usr/bin:/bin", "HOME": "/root"}
    assert not scheduler(fake).inside(outside)
    assert scheduler(fake).hosts(outside) == ()
    assert schedulers.current(outside).name == "local"
    assert jobs.needed(samples.partition(scheduler=fake.name)) == scheduler(fake).has_jobs


@pytest.mark.parametrize("fake", ["ssh"], indirect=True)
def test_a_command_for_hosts_reached_by_ssh_starts_on_the_first(fake, tmp_path, capsys):
    here = os.uname().nodename
    assert jobs.needed(samples.partition(scheduler="ssh", hosts=["n1", "n2"]))
    assert not jobs.needed(samples.partition(scheduler="ssh", hosts=["n1", here]))
    assert not jobs.needed(samples.partition(hosts=["n1"]))
    code = "import os, sys; print('OF_THE_SUBMITTER' in os.environ); sys.exit(3)"
    assert jobs.run(submission(fake, *python(code), hosts=["n1", "n2"]), print) == 3
    told = capsys.readouterr().out
    assert "job: ssh -tt -o BatchMode=yes -o StrictHostKeyChecking=yes n1 " in told
    assert "False\n" in told


MANY = [f"node{number}" for number in range(1, 1001)]


@with_jobs
def test_a_job_of_a_thousand_nodes_is_planned(fake, tmp_path, monkeypatch):
    """Its hosts, and the command of every launcher for all of them; the kernel takes 128 KiB in a word."""
    environment = fake_scheduler.environment_of_many(fake, MANY)
    assert list(scheduler(fake).hosts(environment)) == MANY
    monkeypatch.setattr(hosts.socket, "gethostname", lambda: "node500")
    with_own_first = ("node500", *MANY[:499], *MANY[500:])
    assert hosts.of_job(1000, environment) == with_own_first
    assert hosts.share(400, environment) == with_own_first[:400]
    layout = mpi.Layout(1000, 64, hosts.of_job(1000, environment))
    for kind in ("prrte", "orte", "hydra", "intel-hydra"):
        family = {"hydra": "mpich", "intel-hydra": "intelmpi"}.get(kind, "openmpi")
        launcher = mpi.Launcher(mpi.TABLE[family], kind, "mpiexec")
        start = launcher.command(layout, bound=True, exported=(), environment=environment)
        named = max(start.arguments, key=len)
        assert [name.split(":")[0] for name in named.split(",")] == list(with_own_first)
        assert len(named) < 128 * 1024
    job = Job("plumb-facts", 1000, tmp_path / "log", hosts=MANY, minutes=5)
    for command in scheduler(fake).on_every_node(job, ["true"]):
        assert max(map(len, command)) < 128 * 1024, "a word that the kernel refuses"


def test_hosts_are_reached_by_the_options_of_their_partition(tmp_path, monkeypatch):
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = schedulers.named("ssh")
    schedulers.nodes(found, None, ["n1", "n2"], ["-p 2222", "-o ProxyJump=a"])
    job = Job("plumb-facts", 1, tmp_path / "log", ["-p", "2222"], ["n3"])
    found.run_on_every_node(job, lambda host: ["true"], 60)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 3
    assert all(" -p 2222 " in line for line in asked)
    assert sum(" -o ProxyJump=a " in line for line in asked) == 2


def test_hundreds_of_hosts_are_asked_by_ssh(tmp_path, monkeypatch):
    """Each by its own connection; one that cannot be reached is one node that is out of work."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\ncase "$*" in *node50\\ *) echo "ssh: no route" >&2; exit 255 ;; esac\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = schedulers.named("ssh").nodes(None, MANY[:300])
    assert [node.name for node in found] == MANY[:300]
    assert [(node.name, node.reason) for node in found if not node.usable] == [
        ("node50", "ssh: no route (exit status 255)")
    ]


# --- ids


@with_jobs
def test_an_id_is_a_line_of_the_schedulers_own_form(fake):
    banner = (fake_scheduler.DATA / "banner.txt").read_text()
    assert scheduler(fake).job_id("") is None
    assert scheduler(fake).job_id(banner) is None
    assert scheduler(fake).job_id(fake.case["refused"][0]) is None
    for job_id, text in fake.case["submitted"].items():
        assert scheduler(fake).job_id(banner + text) == job_id
        assert scheduler(fake).job_id(text + banner) == job_id
        assert scheduler(fake).cancel(job_id)[-len(fake.case["cancel"][job_id]) :] == fake.case["cancel"][job_id]


# --- what goes wrong


@with_jobs
def test_a_refused_job_is_told_in_the_schedulers_words(fake, monkeypatch):
    fake.have("refuse")
    monkeypatch.setattr(jobs, "_wait_for", lambda _: pytest.fail("there is no job to wait for"))
    last = next(line for line in reversed(fake.case["refused"][0].splitlines()) if line != "Exiting.").strip(".")
    with pytest.raises(PlumbError) as error:
        jobs.run(submission(fake, "true"), print)
    assert last in str(error.value)
    assert fake.words("cancel") is None


@with_jobs
def test_a_node_that_dies_is_no_verdict(fake, monkeypatch):
    """What the scheduler says of it comes late: the clock stands still until it is there."""
    clock, log = time.monotonic, submission(fake).log
    monkeypatch.setattr(jobs.time, "monotonic", lambda: clock() if log.exists() else 0.0)
    monkeypatch.setattr(jobs, "LATE_S", 1.0)
    fake.have("lose")
    with pytest.raises(PlumbError, match="the job did not reach its end") as error:
        jobs.run(submission(fake, "sleep", "600"), print)
    assert fake.case["lost"].strip() in str(error.value)


def interrupted(fake, until):
    """Start a long job in a process of its own, interrupt that when ``until()`` holds, and return what it printed."""
    code = (
        "import pathlib; from plumbline.measure import jobs; from plumbline.base.schemas.site import Partition\n"
        f"made = {{'scheduler': {fake.name!r}, 'access': {fake.case.get('access', [])!r}}}\n"
        "part = Partition(name='main', topology='t.xml', stacks=[], **made)\n"
        f"folder = pathlib.Path({str(fake.folder / 'work')!r})\n"
        "jobs.CANCEL_S = 600\n"
        "jobs.run(jobs.Submission(part, ['sleep', '600'], 2, folder), print)\n"
    )
    child = subprocess.Popen(python(code), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes.wait_until(until, "the job", of=child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode != 0, out + err
    assert "KeyboardInterrupt" in err
    return out


@with_jobs
def test_an_interrupt_cancels_the_job_and_no_other(fake):
    out = interrupted(fake, (fake.state / "job.pid").exists)
    first = next(iter(fake.case["cancel"].values()))
    assert fake.words("cancel") == first
    assert "could not be cancelled" not in out
    processes.wait_for(fake.state / "ended")


@with_jobs
def test_a_job_that_is_late_is_cancelled(fake, monkeypatch):
    """The limit is over as soon as the job runs, whatever that takes here."""
    clock, runs = time.monotonic, fake.state / "job.pid"
    monkeypatch.setattr(jobs.time, "monotonic", lambda: clock() + 2e6 * runs.exists())
    late = dataclasses.replace(submission(fake, "sleep", "600"), limit=1e6)
    with pytest.raises(PlumbError, match="the job did not end in time"):
        jobs.run(late, print)
    assert fake.words("cancel") == next(iter(fake.case["cancel"].values()))


@with_jobs
def test_without_an_id_nothing_is_cancelled(fake):
    """The program that submits is ended itself; what it printed are banners, whose digits are not an id."""
    fake.have("slow")
    interrupted(fake, lambda: fake.words("submit"))
    assert fake.words("cancel") is None


@with_jobs
def test_a_job_that_was_made_meanwhile_is_cancelled(fake):
    fake.have("slow-but-done")
    interrupted(fake, lambda: fake.words("submit"))
    assert fake.words("cancel") == next(iter(fake.case["cancel"].values()))


@pytest.mark.parametrize("fake", [name for name in WITH_JOBS if schedulers.TABLE[name].id_at_once], indirect=True)
@pytest.mark.parametrize("late", ["slow", "slow-but-done"])
def test_a_scheduler_that_does_not_answer_is_one_line(fake, late, monkeypatch):
    """The limit is over as soon as it has been asked; it may have made a job by the time that it is ended."""
    clock, called = time.monotonic, fake.state / "submit.called"
    monkeypatch.setattr(jobs.time, "monotonic", lambda: clock() + 2e6 * called.exists())
    monkeypatch.setattr(jobs, "ANSWER_S", 1e6)
    fake.have(late)
    with pytest.raises(PlumbError, match=re.escape(f"{fake.name} has named no job within 1e+06 s")):
        jobs.run(submission(fake, "sleep", "600"), print)
    assert fake.words("cancel") == (next(iter(fake.case["cancel"].values())) if late == "slow-but-done" else None)


@with_jobs
def test_without_the_scheduler_one_line_says_so(fake, monkeypatch):
    monkeypatch.setenv("PATH", str(fake.state))
    with pytest.raises(PlumbError, match="cannot submit: No such file"):
        jobs.run(submission(fake, "true"), print)


# --- nodes


@every
def test_nodes_that_are_down_are_not_used(fake):
    if not fake.case["usable"]:
        with pytest.raises(PlumbError, match="cannot be read"):
            schedulers.nodes(scheduler(fake), None)
        return
    found = schedulers.nodes(scheduler(fake), None, ["n1", "n2", "n3"])
    assert [node.name for node in found if node.usable] == fake.case["usable"]
    reasons = {node.name: node.reason for node in found}
    assert {name: reasons[name] for name in fake.case["reasons"]} == fake.case["reasons"]


@every
def test_one_task_runs_on_every_node(fake, tmp_path):
    script = tmp_path / "task.py"
    script.write_text("import os, sys\nprint('OF_THE_SUBMITTER' in os.environ, file=open(sys.argv[1], 'a'))\n")
    job = Job("plumb-facts", 2, tmp_path / "log", hosts=("n1", "n2"), minutes=1)

    done = scheduler(fake).run_on_every_node(job, lambda _: [sys.executable, str(script), str(tmp_path / "told")], 30)
    assert (done.status, (tmp_path / "told").read_text()) == (0, "False\n" * 2)


@every
def test_one_task_runs_on_one_node(fake, tmp_path):
    words = scheduler(fake).on_one_node([], ["n1"], [sys.executable, "-c", "print('$HOME;', 4)"])
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "$HOME; 4\n"


def test_grid_engine_has_no_whole_nodes_without_a_parallel_environment():
    found = schedulers.named("sge")
    assert found.shares_nodes(["-q main"])
    assert not found.shares_nodes(["-q main", "-pe mpi 64"])
    assert not schedulers.named("slurm").shares_nodes(["-p main"])


@every
def test_a_job_is_put_on_a_node_or_cannot_be(fake):
    found = scheduler(fake).reframe_partition(["-A x"], ["n1", "n2"], "n2")
    if scheduler(fake).can_pin:
        assert any("n2" in word for word in found["access"])
    else:
        assert found == scheduler(fake).reframe_partition(["-A x"], ["n1", "n2"], None)
    assert "-A x" in found["access"]


@with_jobs
def test_a_job_is_not_started_again_on_other_nodes(fake):
    job = Job("plumb", 1, Path("/log"), access=("-A", "x"))
    once = scheduler(fake).no_restart
    asked = scheduler(fake).submit(job, Path("/job.sh"))
    assert all(word in asked for word in once)
    assert not once or " ".join(once) in scheduler(fake).reframe_partition([], [], None)["access"]
    assert asked[asked.index("-A") + 1] == "x"


def test_slurm_is_understood_as_it_answered(tmp_path):
    """What Slurm 22.05 printed on the test bed, and that the fake's refusal is the real one."""
    told = json.loads((fake_scheduler.DATA / "slurm" / "recorded.json").read_text())
    answers = {item["command"]: item for item in told}
    slurm_ = schedulers.named("squeue")
    assert slurm_.job_id(answers["sbatch --parsable --hold j.sh"]["stdout"]) == "2"
    refused = answers["sbatch --parsable --partition=nope j.sh"]
    assert slurm_.job_id(refused["stdout"]) is None
    assert [refused["stderr"], refused["status"]] == fake_scheduler.Fake("slurm", tmp_path).case["refused"]
    assert slurm.seconds(answers["sinfo -h -o %l"]["stdout"].strip()) == 3600
    states = [slurm.read_nodes(item["stdout"]) for item in told if item["command"].startswith("sinfo -N")]
    assert [[node.usable for node in nodes] for nodes in states] == [[True, True], [True, False]]
    assert states[1][1] == schedulers.Node("node2", "drained", False, "bad DIMM | see ticket")
    hosts = answers["scontrol show hostnames node[1-2]"]["stdout"].split()
    assert list(slurm_.hosts({"SLURM_JOB_NODELIST": "node[1-2]"})) == hosts


class TestPbs:
    """What OpenPBS 23.06.06 printed, two nodes; ``JOB`` stands for an id."""

    def told(self, command):
        told = json.loads((fake_scheduler.DATA / "pbs" / "recorded.json").read_text())
        return next(item for item in told if item["command"] == command)

    def test_its_nodes(self):
        listings = ["pbsnodes -a -F json", "pbsnodes -a -F json (a job of both)", "pbsnodes -a -F json (n2 dead)"]
        found = [pbs.read_nodes(self.told(command)["stdout"], "workq") for command in listings]
        assert [[node.usable for node in nodes] for nodes in found] == [[True, True], [True, True], [False, False]]
        assert found[1][0].state == "job-exclusive"
        assert found[2] == [
            schedulers.Node("n1", "offline", False, "bad DIMM, see ticket"),
            schedulers.Node("n2", "down", False, "node down: communication closed"),
        ]

    def test_its_limits(self):
        limited, unlimited = (self.told(f"qstat -Q -f -F json {name}")["stdout"] for name in ("short", "workq"))
        assert pbs.read_limit(limited, "short") == 600
        assert pbs.read_limit(unlimited, "workq") is None
        assert pbs.read_limit(json.dumps({"Queue": {"q": {"resources_max": {"walltime": 90}}}}), "q") == 90
        assert pbs.read_default(self.told("qstat -B -f -F json")["stdout"]) == "workq"
        with pytest.raises(PlumbError, match="'soon' is not a time limit"):
            pbs.read_limit(json.dumps({"Queue": {"q": {"resources_max": {"walltime": "soon"}}}}), "q")

    def test_its_ids_and_refusals(self, tmp_path):
        found = schedulers.named("pbs")
        assert found.job_id(self.told("qsub -J 1-2 -- /bin/true")["stdout"]) == "46[].ctl"
        assert found.job_id(self.told("timeout --signal=INT 3 qsub -W block=true j.sh")["stdout"]) == "45.ctl"
        case = fake_scheduler.Fake("pbs", tmp_path).case
        refused, unknown = self.told("qsub -q nowhere j.sh"), self.told("qdel 99999.ctl")
        assert [refused["stderr"], refused["status"]] == case["refused"]
        assert [unknown["stderr"].replace("99999.ctl", "3.head"), unknown["status"]] == case["unknown_job"]

    def test_nodes_of_a_job_are_not_packed_on_one(self):
        """ReFrame's backend leaves ``exclusive_access`` out."""
        found = schedulers.named("pbs")
        assert found.reframe_options([], 2) == ["-l place=scatter:excl"]
        assert found.reframe_options([], 1) == ["-l place=excl"]
        assert "-S /bin/bash" in found.reframe_partition([], [], None)["access"]

    def test_without_a_queue_the_servers_default_is_asked(self, tmp_path, monkeypatch):
        server, queue = (
            self.told(f"qstat {words} -f -F json{name}")["stdout"] for words, name in (("-B", ""), ("-Q", " short"))
        )
        (tmp_path / "server").write_text(server.replace('"workq"', '"short"'))
        (tmp_path / "queue").write_text(queue)
        qstat = tmp_path / "qstat"
        lines = [f'[ "$1" = -B ] && exec cat {tmp_path}/server', f'[ "$5" = short ] && exec cat {tmp_path}/queue']
        qstat.write_text("\n".join(["#!/bin/sh", *lines, "exit 170", ""]))
        qstat.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert schedulers.named("pbs").longest_job(None) == schedulers.named("pbs").longest_job("short") == 600
        with pytest.raises(PlumbError, match="exit status 170"):
            schedulers.named("pbs").longest_job("nowhere")
        monkeypatch.setenv("PATH", str(tmp_path / "none"))
        assert schedulers.named("pbs").longest_job(None) is None


class TestFlux:
    """What Flux 0.88.0 printed, two brokers on two nodes."""

    def told(self, command):
        told = json.loads((fake_scheduler.DATA / "flux" / "recorded.json").read_text(encoding="utf-8"))
        return next(item for item in told if item["command"] == command)

    def test_its_nodes(self):
        ask = "flux resource status -n -o '{state}|{nodelist}|{reason}'"
        found = [flux.read_nodes(self.told(ask + when)["stdout"]) for when in ("", " (a job of both)", " (n2 drained)")]
        assert [[node.usable for node in nodes] for nodes in found] == [[True, True], [True, True], [True, False]]
        assert found[2][1] == schedulers.Node("n2", "drained", False, "bad DIMM | see ticket")

    def test_its_ids_and_refusals(self, tmp_path):
        printed = self.told("flux batch --nodes=2 --exclusive --output=o --error=e s.sh")["stdout"]
        assert schedulers.named("flux").job_id(printed) == printed.strip()
        case = fake_scheduler.Fake("flux", tmp_path).case
        refused, unknown = self.told("flux batch --nodes=1 --queue=nope s.sh"), self.told("flux cancel f3")
        assert [refused["stderr"], refused["status"]] == case["refused"]
        assert [unknown["stderr"], unknown["status"]] == case["unknown_job"]
        assert self.told("flux getattr hostlist")["stdout"] == case["host_list"]

    def test_its_limits(self):
        ask = "flux queue list -n -o '{queuem}|{limits.timelimit}'"
        without, three = (self.told(ask + which)["stdout"] for which in ("", " (three queues)"))
        assert flux.read_limit(without, None) is None
        assert [flux.read_limit(three, queue) for queue in ("debug", "batch", None)] == [600, None, None]
        assert flux.read_limit(three.replace("batch*|inf", "batch*|90.5"), None) == 90
        with pytest.raises(PlumbError, match="Flux has no queue nowhere"):
            flux.read_limit(three, "nowhere")
        with pytest.raises(PlumbError, match="'soon' is not a time limit"):
            flux.read_limit(three.replace("600.0", "soon"), "debug")

    def test_a_job_that_does_not_answer_is_one_line(self, tmp_path):
        said = self.told("FLUX_URI=local:///nowhere flux getattr hostlist")
        program = tmp_path / "flux"
        program.write_text(f"#!/bin/sh\necho {said['stderr']!r} >&2\nexit {said['status']}\n")
        program.chmod(0o755)
        with pytest.raises(PlumbError, match="flux failed: flux: flux_open: No such file or directory"):
            schedulers.named("flux").hosts({"FLUX_URI": "local:///nowhere", "PATH": str(tmp_path)})


class TestGridEngine:
    """What its listings say; ``sge/nodes.out`` has the form that 8.1.9 printed on the test bed."""

    def nodes(self, queue):
        return sge.read_nodes((fake_scheduler.DATA / "sge" / "nodes.out").read_text(), queue)

    def test_a_node_counts_by_the_queue_that_is_asked_for(self):
        states = {node.name: (node.state, node.usable, node.reason) for node in self.nodes("main")}
        down = "unknown: its execution daemon does not answer"
        assert states == {"n1": ("free", True, ""), "n2": ("a", True, ""), "n3": ("au", False, down)}
        assert [(node.name, node.reason) for node in self.nodes("short")] == [("n2", "disabled"), ("n4", "disabled")]
        assert [node.name for node in self.nodes(None) if node.usable] == ["n1", "n2"]

    def test_what_is_no_listing_is_one_line(self):
        with pytest.raises(PlumbError, match="qhost printed no valid XML"):
            sge.read_nodes("error: commlib error: got select error (Connection refused)", None)

    def test_slots_are_those_of_a_node(self):
        found = schedulers.named("sge")
        assert found.reframe_options(["-q main", "-pe mpi 64"], 3) == ["-q main -pe mpi 192"]
        assert found.reframe_options(["-q main"], 1) == ["-q main"]
        for access, what in ((["-q main"], "needs a parallel environment"), (["-pe mpi 4-8"], "no number of slots")):
            with pytest.raises(PlumbError, match=what):
                found.reframe_options(access, 2)


# --- the table


def test_the_table_is_one_of_reframes_schedulers():
    for name, found in schedulers.TABLE.items():
        assert found.name == name
        assert getscheduler(found.reframe_backend())


def test_every_scheduler_has_recorded_outputs():
    known = {folder.name for folder in fake_scheduler.DATA.iterdir() if folder.is_dir()}
    assert known == set(schedulers.TABLE) - {"local", "squeue"}
