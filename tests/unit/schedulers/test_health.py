"""Draining nodes and taking them back: only what we drained, by every scheduler that can; and the check on a node.

The programs are fakes that keep a node's state and reason as the real ones do; what they print is of the manuals. The
real Slurm is asked on the test bed.
"""

import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from check_runs import FINE, class_file, rounds

from plumbline import schedulers
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli

#: program -> a shell script; `state`, `reason` and `jobs` are files with what is known of node n1, `calls` has changes
PROGRAMS = {
    "slurm": {
        "squeue": 'case " $* " in *" -w n1 "*) cat jobs ;; *) exit 1 ;; esac',
        "sinfo": 'case " $* " in *" -n n1 "*) echo "$(cat state)|$(cat reason)" ;; esac',
        "scontrol": (
            'echo "$*" >>calls; for word; do case $word in state=drain) echo "drained*" >state ;; '
            "state=resume) echo idle >state; echo none >reason ;; "
            'reason=*) echo "${word#reason=}" >reason ;; esac; done'
        ),
    },
    "pbs": {
        "pbsnodes": (
            '[ "$1" != n1 ] || { printf "n1\\n     state = %s\\n" "$(cat state)"; [ ! -s reason ] || '
            'echo "     comment = $(cat reason)"; [ ! -s jobs ] || echo "     jobs = $(cat jobs)/0"; exit; }\n'
            '[ $# -gt 1 ] || exit 1; echo "$*" >>calls; case $1 in -o) echo offline >state; echo "$3" >reason ;; '
            "-r) echo free >state; : >reason ;; esac"
        )
    },
    "flux": {
        "flux": (
            'case "$1 $2" in "jobs -A") cat jobs ;; "getattr rank") echo 3 ;; "hostlist --nth=3") echo n1 ;; '
            '"resource undrain") echo "$*" >>calls; : >state; : >reason ;; '
            '"resource drain") if [ "$3" = -n ]; then [ ! -s state ] || echo "$(cat state)|$(cat reason)"; else '
            'echo "$*" >>calls; echo drained >state; echo "$4" >reason; fi ;; *) exit 1 ;; esac'
        )
    },
    "sge": {
        "qselect": (
            'case " $* " in *"@n1 "*) ;; *) exit 1 ;; esac; [ "$3" = -qs ] && { echo own@n1; '
            "[ ! -s state ] || echo main@n1; exit; }; echo main@n1; echo own@n1"
        ),
        "qstat": "[ ! -s jobs ] || { echo job-ID; echo ---; cat jobs; }",
        "qmod": 'echo "$*" >>calls; case $1 in -d) echo d >state ;; -e) : >state ;; esac',
    },
}
#: what the state is of a node that takes jobs, and of one that somebody else took out of work
STATES = {"slurm": ("idle", "drained"), "pbs": ("free", "offline"), "flux": ("", "drained"), "sge": ("", "d")}
SUBMISSIONS = "plumb-check: memory is 70 GB/s"
SLOW, GOOD = [{"memory": 70.0}] * 5, [FINE] * 5


@dataclass
class Fake:
    """Programs of a scheduler with one node."""

    name: str
    folder: Path

    def set(self, state: str, reason: str = "", jobs: str = "") -> None:
        for name, text in (("state", state), ("reason", reason), ("jobs", jobs)):
            (self.folder / name).write_text(text and f"{text}\n")

    def get(self, name: str) -> str:
        file = self.folder / name
        return file.read_text().strip() if file.exists() else ""

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(schedulers.base.HEALTH / "health.sh"), self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(params=PROGRAMS)
def fake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in PROGRAMS[request.param].items():
        (programs / name).write_text(f"#!/bin/sh\ncd {tmp_path} || exit 1\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SGE_ROOT", str(tmp_path / "sge"))
    made = Fake(request.param, tmp_path)
    made.set(STATES[request.param][0])
    return made


def test_what_was_drained_is_resumed(fake):
    scheduler = schedulers.named(fake.name)
    assert scheduler.drain("n1", "memory is 70 GB/s") == f"n1 is drained: {SUBMISSIONS}"
    assert fake.get("state").rstrip("*") == STATES[fake.name][1]
    if fake.name != "sge":
        assert fake.get("reason") == SUBMISSIONS
    assert "left as it is" in scheduler.drain("n1", "something else")
    assert scheduler.resume("n1") == "n1 takes jobs again"
    assert fake.get("state") == STATES[fake.name][0]
    assert scheduler.resume("n1") == ""
    assert len(fake.get("calls").splitlines()) == 2


def test_what_somebody_else_has_drained_is_left_alone(fake):
    fake.set(STATES[fake.name][1], "DIMM is replaced on Monday")
    scheduler = schedulers.named(fake.name)
    assert "left as it is" in scheduler.drain("n1", "memory is 70 GB/s")
    assert scheduler.resume("n1") == ""
    assert (fake.get("state"), fake.get("reason")) == (STATES[fake.name][1], "DIMM is replaced on Monday")
    assert fake.get("calls") == ""


def test_jobs_are_seen(fake):
    assert fake.ask("jobs", "n1").returncode == 0
    fake.set(STATES[fake.name][0], jobs="4711")
    found = fake.ask("jobs", "n1")
    assert (found.returncode, found.stdout) == (1, "job 4711\n")


def test_nobody_can_say(fake):
    for program in (fake.folder / "bin").iterdir():
        program.write_text("#!/bin/sh\nexit 1\n")
    assert fake.ask("jobs", "n1").returncode == 2
    with pytest.raises(PlumbError, match="failed"):
        schedulers.named(fake.name).drain("n1", "slow")


@pytest.mark.parametrize("words", [["drain", "n1"], ["resume"], ["jobs", "a", "b"], ["burn", "n1"], []])
def test_other_words_are_refused(fake, words):
    done = fake.ask(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert fake.get("calls") == ""


def test_by_the_command(fake, capsys, output_of):
    own = ["--scheduler", fake.name, "--node", "n1"]
    assert cli.main(["nodes", "drain", *own, "--reason", "memory is 70 GB/s"]) == 0
    assert cli.main(["nodes", "resume", *own]) == 0
    said = output_of(0, "nodes", "resume", *own)
    assert said == f"n1 is drained: {SUBMISSIONS}\nn1 takes jobs again\nn1 is left as it is\n"
    assert cli.main(["nodes", "drain", "--scheduler", "local", "--node", "n1", "--reason", "slow"]) == 2
    assert "scheduler local cannot drain nodes" in capsys.readouterr().err


@pytest.mark.parametrize("fake", ["slurm"], indirect=True)
def test_headings_of_clusters_are_neither_jobs_nor_states(fake):
    """Where SLURM_CLUSTERS is set, squeue and sinfo begin with ``CLUSTER: name``, with -h too."""
    for name in ("squeue", "sinfo"):
        program = fake.folder / "bin" / name
        program.write_text(program.read_text().replace("#!/bin/sh\n", '#!/bin/sh\necho "CLUSTER: east"\n'))
    assert (fake.ask("jobs", "n1").returncode, fake.ask("jobs", "n1").stdout) == (0, "")
    fake.set("idle", jobs="4711")
    assert fake.ask("jobs", "n1").stdout == "job 4711\n"
    assert fake.ask("drain", "n1", "slow").stdout == "n1 is drained: plumb-check: slow\n"
    assert fake.ask("resume", "n1").stdout == "n1 takes jobs again\n"


class TestTheCheckOnANode:
    """health.sh as a node has it, with rounds that are given."""

    def installed(self, fake: Fake, *given: dict[str, float]) -> None:
        for file in schedulers.base.HEALTH.iterdir():
            shutil.copy(file, fake.folder)
        jobs = f"jobs /usr/local/lib/plumbline/health.sh {fake.name} jobs"
        class_file(fake.folder, jobs, "member n1")
        runner = fake.folder / "plumb-check"
        file = rounds(fake.folder, *given)
        shutil.copy(paths.checker(), fake.folder / "real")
        runner.write_text(f'#!/bin/sh\nexec {fake.folder}/real "$@" --measured {file}\n')
        runner.chmod(0o755)
        (fake.folder / "health.sh").chmod(0o755)

    def check(self, fake: Fake, *words: str, every: str = "0") -> str:
        """What a call says; it must end with 0, or Slurm would start no slurmd."""
        own = {**os.environ, "PLUMB_CHECK_STATE": str(fake.folder / "kept"), "PLUMB_CHECK_EVERY": every}
        command = [str(fake.folder / "health.sh"), fake.name, *(words or ("check",))]
        node = {"SLURMD_NODENAME": "n1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=own | node, timeout=120)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    def test_twice_slow_is_drained_and_fine_again_is_resumed(self, fake):
        self.installed(fake, *SLOW)
        assert "found once: memory is 70 GB/s" in self.check(fake)
        assert fake.get("calls") == ""
        assert "n1 is bad: memory is 70 GB/s" in self.check(fake, every="86400")
        assert fake.get("state").rstrip("*") == STATES[fake.name][1]
        self.installed(fake, *GOOD)
        assert self.check(fake, every="86400") == "n1 takes jobs again\n"
        assert fake.get("state") == STATES[fake.name][0]

    def test_slow_fine_slow_is_not_twice(self, fake):
        for given in ({"memory": 70.0}, FINE, {"memory": 70.0}):
            self.installed(fake, *[given] * 5)
            self.check(fake)
        assert fake.get("calls") == ""

    def test_a_doubt_changes_nothing(self, fake):
        fake.set(STATES[fake.name][1], "somebody's note")
        self.installed(fake, FINE)
        for _ in range(2):
            assert "there are 1 of 5 rounds" in self.check(fake)
        assert (fake.get("calls"), fake.get("reason")) == ("", "somebody's note")

    def test_beside_a_job_nothing_is_measured_or_changed(self, fake):
        self.installed(fake, *SLOW)
        self.check(fake)
        fake.set(STATES[fake.name][0], jobs="4711")
        for _ in range(3):
            assert self.check(fake) == ""
        assert fake.get("calls") == ""

    @pytest.mark.parametrize(
        ("later", "every", "again"), [(0, "86400", False), (-1000, "900", True), (315360000, "86400", True)]
    )
    def test_a_fine_node_is_measured_again_when_its_time_is_over_or_of_the_future(self, fake, later, every, again):
        self.installed(fake, *GOOD)
        self.check(fake)
        kept = fake.folder / "kept" / "last"
        word = kept.read_text().split()[2]
        kept.write_text(first := kept.read_text().replace(word, str(float(word) + later), 1))
        self.check(fake, every=every)
        assert (kept.read_text() != first) is again

    def test_without_a_runner_nothing_is_drained(self, fake):
        self.installed(fake, FINE)
        for text in ("exit 1", "kill -9 $$", "echo nonsense; exit 1"):
            (fake.folder / "plumb-check").write_text(f"#!/bin/sh\n{text}\n")
            assert "plumb-check said nothing" in self.check(fake)
            assert "plumb-check said nothing" in self.check(fake)
        assert fake.get("calls") == ""


@pytest.mark.parametrize("fake", ["pbs"], indirect=True)
def test_the_hook_of_pbs_changes_what_a_node_may_not(fake, monkeypatch):
    """On the node pbsnodes may only read (OpenPBS 23.06.06: "Unauthorized Request"): the hook is told what to do."""
    program = fake.folder / "bin" / "pbsnodes"
    program.write_text(program.read_text().replace("#!/bin/sh\n", "#!/bin/sh\ncase $1 in -[or]) exit 1 ;; esac\n"))
    check = TestTheCheckOnANode()
    check.installed(fake, *SLOW)
    assert "found once: memory is 70 GB/s" in check.check(fake, "hook", "n1")
    told, _, logged = check.check(fake, "hook", "n1").partition("\n")
    assert told.startswith("offline plumb-check: memory is 70 GB/s")
    assert logged.startswith("plumb health: n1 is bad: memory is 70 GB/s")
    node = hooked(monkeypatch, told)
    assert (node.state, node.comment) == ("ND_OFFLINE", told.removeprefix("offline ").strip())
    fake.set("offline", node.comment)
    assert check.check(fake, "hook", "n1") == f"{logged}n1 is offline: left as it is\n"
    check.installed(fake, *GOOD)
    assert check.check(fake, "hook", "n1") == "free\n"
    node = hooked(monkeypatch, "free\n")
    assert (node.state, node.comment) == ("ND_FREE", None)
    fake.set("offline", "DIMM is replaced on Monday")
    assert check.check(fake, "hook", "n1") == ""
    assert vars(hooked(monkeypatch, "")) == {}


def hooked(monkeypatch: pytest.MonkeyPatch, told: str) -> SimpleNamespace:
    """What the role's hook sets of its node, where the check told it so."""
    node = SimpleNamespace()
    states = {name: name for name in ("ND_OFFLINE", "ND_FREE")}
    event = SimpleNamespace(vnode_list={"n1": node})
    pbs = SimpleNamespace(**states, get_local_nodename=lambda: "n1", event=lambda: event)
    done = subprocess.CompletedProcess([], 0, told.encode(), b"")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pbs", pbs)
        patch.setattr(subprocess, "run", lambda *_, **__: done)
        runpy.run_path(str(paths.root() / "playbooks/roles/plumb_health/files/pbs_hook.py"))
    return node


def test_grid_engines_load_sensor(tmp_path):
    """A report for each line that is read; bad after two measurements in a row."""
    fake = Fake("sge", tmp_path)
    TestTheCheckOnANode().installed(fake, *SLOW)
    class_file(tmp_path, f"member {os.uname().nodename.split('.')[0]}")
    own = {**os.environ, "PLUMB_CHECK_STATE": str(tmp_path / "kept")}
    command = [str(tmp_path / "health.sh"), "sge", "sensor", "--seconds", "25"]
    done = subprocess.run(
        command, capture_output=True, text=True, input="\n\nquit\n", check=False, env=own, timeout=120
    )
    name = os.uname().nodename
    assert done.stdout == f"begin\n{name}:plumb_bad:0\nend\nbegin\n{name}:plumb_bad:1\nend\n"
