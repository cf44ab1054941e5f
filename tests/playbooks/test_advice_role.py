"""The role plumb_advice: its scripts with fakes of Grid Engine, LSF, OpenPBS and sendmail, which take no more than real
ones do. Slurm and Grid Engine are on the test bed."""

import email
import email.policy
import os
import sys
from pathlib import Path

import pytest
from jinja2 import Environment
from processes import ended
from test_health_role import QMGR

ROLES = Path(__file__).resolve().parents[2] / "playbooks/roles"
ROLE = ROLES / "plumb_advice"
OURS = "/usr/local/lib/plumbline-advice"
LINE = "plumb: job 5: 1 of 1 launch wrong: shared cores: plumb advice show 5"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts a program of a shell, with its text, before all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    for name in ("JOB_ID", "SGE_TASK_ID", "LSB_JOBID", "LSB_JOBINDEX"):
        monkeypatch.delenv(name, raising=False)

    def put(name, text):
        (folder / name).write_text(f"#!/bin/bash\ncd {tmp_path} || exit 1\n{text}\n")
        (folder / name).chmod(0o755)

    return put


def rendered(name, **variables):
    environment = Environment(trim_blocks=True, autoescape=False)  # noqa: S701 - scripts
    return environment.from_string((ROLE / f"templates/{name}.j2").read_text()).render(variables)


@pytest.fixture
def end(programs, tmp_path):
    """Runs the program of a job's end, by a user of a name; sendmail and plumb take only what they are to be given."""
    programs("plumb", f'[ "$*" = "advice end $(cat job) --work {tmp_path}/spool" ] && cat line')
    programs("sendmail", '[ "$*" = "-i -t" ] && cat >mail')

    def run(delivery, *words, job="5", line=LINE, user="guest", **variables):
        programs("id", "case $1 in -u) echo 77 ;; -un) cat user ;; esac")
        for name, text in (("job", job), ("line", line), ("user", user)):
            (tmp_path / name).write_text(text)
        (tmp_path / "spool/77" / job).mkdir(parents=True, exist_ok=True)
        values = {"spool": tmp_path / "spool", "plumb": tmp_path / "bin/plumb", "delivery": delivery}
        script = rendered("end", **{f"plumb_advice_{name}": value for name, value in values.items()})
        done = ended(["sh", "-c", script, "end", *words], env={**os.environ, **variables})
        assert (done.returncode, done.stderr) == (0, ""), "Slurm would drain the node, Grid Engine close the queue"
        return done.stdout

    return run


def test_a_mail_has_its_headers_and_the_line(end, tmp_path):
    assert end("mail", "5") == ""
    mail = email.message_from_string((tmp_path / "mail").read_text(), policy=email.policy.default)
    assert dict(mail) == {"To": "guest", "Subject": "Advice on job 5", "Auto-Submitted": "auto-generated"}
    assert mail.get_content() == f"{LINE}\n"


@pytest.mark.parametrize("user", ["-oQ/tmp", "guest\nBcc: root", "guest root", "guest;id", "g\u00fcst", ""])
def test_a_name_that_a_mailer_could_take_for_more_gets_no_mail(end, tmp_path, user):
    end("mail", "5", user=user)
    assert not (tmp_path / "mail").exists()


def test_right_jobs_and_a_plumb_that_fails_are_silent(end, tmp_path, programs):
    assert end("output", line=LINE.replace("1 of 1 launch wrong", "1 of 1 launch right"), JOB_ID="5") == ""
    programs("plumb", "cat line; exit 3")
    programs("sendmail", "exit 75")
    end("mail", "5")


@pytest.mark.parametrize(("job", "words", "variables"), [
    ("4712", ["4712", ""], {}), ("12_3", ["12[3].server", ""], {}), ("12", ["12.server", ""], {}),
    ("5_2", [], {"JOB_ID": "5", "SGE_TASK_ID": "2"}), ("5", [], {"JOB_ID": "5", "SGE_TASK_ID": "undefined"}),
    ("9_4", [], {"LSB_JOBID": "9", "LSB_JOBINDEX": "4"}), ("9", [], {"LSB_JOBID": "9", "LSB_JOBINDEX": "0"}),
])  # fmt: skip
def test_the_job_is_that_of_each_scheduler(end, tmp_path, job, words, variables):
    end("mail", *words, job=job, **variables)
    assert f"Subject: Advice on job {job}\n" in (tmp_path / "mail").read_text()


def test_the_line_is_in_a_plain_file_or_grid_engine_s_output(end, tmp_path):
    (tmp_path / "out").write_text("before\n")
    os.mkfifo(tmp_path / "pipe")
    for name in ("out", "pipe", "none"):
        assert end("output", "5", str(tmp_path / name)) == ""
    assert (tmp_path / "out").read_text() == f"before\n{LINE}\n"
    assert not (tmp_path / "none").exists()
    assert end("output", JOB_ID="5") == f"{LINE}\n"


@pytest.mark.parametrize(("here", "ranks", "status"), [
    ("2", "2,5-7", 0), ("2", "2-3", 0), ("5", "2,5-7", 0), ("12", "1,12", 0), ("2", "2", 1),
])  # fmt: skip
def test_flux_s_end_is_the_user_s_on_the_first_node_and_never_fails(programs, tmp_path, here, ranks, status):
    programs("flux", f'case $* in "job id --to=f58plain 8219") echo fAbC ;; "getattr rank") echo {here} ;; esac')
    programs("id", '[ "$*" = "-nu 77" ] && echo guest')
    programs("runuser", f"printf '%s\\n' \"$*\" >words; exit {status}")
    (tmp_path / "spool/77/fAbC").mkdir(parents=True)
    own = {"scheduler": "flux", "spool": tmp_path / "spool", "folder": OURS, "delivery": "output"}
    script = rendered("epilog", **{f"plumb_advice_{name}": value for name, value in own.items()})
    script = script.replace("/usr/local/bin", str(tmp_path / "bin"))
    job = {"FLUX_JOB_ID": "8219", "FLUX_JOB_USERID": "77", "FLUX_JOB_RANKS": ranks}
    done = ended(["sh", "-c", script], env={**os.environ, **job})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = tmp_path / "words"
    expected = f"-u guest -- timeout 120 {OURS}/end fAbC \n"
    assert (words.read_text() if words.exists() else None) == (expected if ranks.startswith(here) else None)


#: as the manual has it: long lines are folded unless SGE_SINGLE_LINE is set
QCONF = """
case $1 in
-sq) [ -f "queue.$2" ] || { echo "No cluster queue or queue instance matches \\"$2\\"" >&2; exit 1; }
    if [ -n "$SGE_SINGLE_LINE" ]; then cat "queue.$2"; else sed 's/  */&\\\\\\n/' "queue.$2"; fi ;;
-mattr) [ "$#" = 5 ] && [ "$2" = queue ] && grep -q "^$3 " "queue.$5" || exit 1
    sed -i "s|^$3 .*|$3          $4|" "queue.$5"; echo "root@n1 modified \\"$5\\" in cluster queue list" ;;
*) exit 1 ;;
esac
"""
QUEUE = "qname                 {}\nprolog                NONE\nepilog                NONE\nstarter_method        NONE\n"


class TestGridEngine:
    """Starter method and epilog of queues."""

    @pytest.fixture(autouse=True)
    def queues(self, programs, tmp_path):
        programs("qconf", QCONF)
        for name in ("a.q", "b.q"):
            (tmp_path / f"queue.{name}").write_text(QUEUE.format(name))

    def call(self, *words):
        return ended(["bash", str(ROLE / "files/sge.sh"), OURS, *words])

    def test_they_are_set_once_and_taken_away(self, tmp_path):
        before = (tmp_path / "queue.a.q").read_text()
        both = ("present", "present", "a.q", "b.q")
        assert self.call(*both).stdout == "changed\n" * 4
        assert f"starter_method          {OURS}/starter\n" in (tmp_path / "queue.b.q").read_text()
        assert self.call(*both).stdout == ""
        assert self.call("present", "absent", "a.q", "b.q").stdout == "changed\n" * 2
        assert self.call("absent", "absent", "a.q", "b.q").stdout == "changed\n" * 2
        assert (tmp_path / "queue.a.q").read_text().split() == before.split()

    @pytest.mark.parametrize("name", ["starter_method", "epilog"])
    @pytest.mark.parametrize("value", ["/opt/own.sh", "NONE,[n1=/opt/own.sh]"])
    def test_those_of_the_site_stay_and_nothing_is_changed(self, tmp_path, name, value):
        queue = tmp_path / "queue.b.q"
        queue.write_text(queue.read_text().replace(f"{name:22}NONE", f"{name:22}{value}"))
        done = self.call("present", "present", "a.q", "b.q")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"queue b.q has a {name} of its own, which stays: {value}" in done.stderr
        assert OURS not in (tmp_path / "queue.a.q").read_text()
        assert self.call("absent", "absent", "a.q", "b.q").returncode == 0
        assert value in queue.read_text()

    def test_a_queue_that_is_not_there(self):
        assert "No cluster queue" in self.call("present", "absent", "c.q").stderr


QUEUES = """# of the site
Begin Queue
QUEUE_NAME   = normal   # the default
PRIORITY     = 30
HOSTS        = n1 \\
               n2
End Queue

Begin Queue
QUEUE_NAME   = night
{}
End Queue
"""
BADMIN = """
[ "$*" = "reconfig -f" ] && [ ! -e down ] || exit 1
awk '/^Begin/ { split("", has) } / = / && has[$1]++ { exit 1 }' lsb.queues && cp lsb.queues known
"""


class TestLsf:
    """Job starter and post-execution command of queues."""

    @pytest.fixture(autouse=True)
    def queues(self, programs, tmp_path):
        programs("badmin", BADMIN)
        programs("bqueues", '[ "$1" = -l ] && [ -e known ] && sed -n "s/ *= */:  /p" known')
        (tmp_path / "lsb.queues").write_text(QUEUES.format("NICE = 5"))

    def call(self, tmp_path, *words):
        return ended(["bash", str(ROLE / "files/lsf.sh"), OURS, *words[:2], str(tmp_path / "lsb.queues"), *words[2:]])

    def test_they_are_set_once_and_taken_away(self, tmp_path):
        file, before = tmp_path / "lsb.queues", (tmp_path / "lsb.queues").read_text()
        assert self.call(tmp_path, "present", "present", "normal").stdout == "changed\n"
        both = f"JOB_STARTER = {OURS}/starter\nPOST_EXEC = {OURS}/end\n"
        assert file.read_text() == before.replace("n2\n", f"n2\n{both}")
        assert (tmp_path / "known").read_text() == file.read_text()
        assert self.call(tmp_path, "present", "present", "normal").stdout == ""
        assert self.call(tmp_path, "absent", "absent", "normal").stdout == "changed\n"
        assert file.read_text() == (tmp_path / "known").read_text() == before
        assert self.call(tmp_path, "absent", "absent", "normal").stdout == ""

    def test_a_run_that_lsf_did_not_hear_of_is_made_up_for(self, tmp_path):
        (tmp_path / "down").touch()
        assert self.call(tmp_path, "present", "absent", "normal").returncode == 1
        (tmp_path / "down").unlink()
        assert self.call(tmp_path, "present", "absent", "normal").stdout == "changed\n"
        assert f"{OURS}/starter" in (tmp_path / "known").read_text()

    @pytest.mark.parametrize(("line", "queue", "expected"), [
        ("job_starter = /opt/own", "night", "queue night has a JOB_STARTER of its own, which stays: /opt/own"),
        ("POST_EXEC=/opt/own", "night", "queue night has a POST_EXEC of its own, which stays: /opt/own"),
        ("NICE = 5", "nite", "there is no queue nite"),
    ])  # fmt: skip
    def test_what_the_site_has_stays(self, tmp_path, line, queue, expected):
        (tmp_path / "lsb.queues").write_text(QUEUES.format(line))
        done = self.call(tmp_path, "present", "present", "normal", queue)
        assert (done.returncode, done.stdout) == (1, "")
        assert expected in done.stderr
        assert (tmp_path / "lsb.queues").read_text() == QUEUES.format(line)


class TestOpenPbs:
    """Two hooks, by the script of plumb_health; what that of a job's end starts."""

    def test_hooks_are_made_once_and_removed(self, programs, tmp_path):
        programs("qmgr", QMGR.replace("{folder}", str(tmp_path)).replace("plumb_check", "plumb_advice"))
        (tmp_path / "pbs.conf").write_text(f"PBS_EXEC={tmp_path}\n")
        script = ["bash", str(ROLES / "plumb_health/files/pbs.sh")]
        own = {**os.environ, "PBS_CONF_FILE": str(tmp_path / "pbs.conf")}

        def call(state):
            words = [*script, state, "plumb_advice", "event = execjob_launch", "alarm = 90"]
            return ended(words, input="body\n", env=own).stdout

        assert call("present") == "changed\n" * 4
        assert (tmp_path / "hook").read_text() == "event = execjob_launch\nalarm = 90\n"
        assert [call("present"), call("absent"), call("absent")] == ["", "changed\n", ""]

    @pytest.mark.parametrize(("first", "program", "expected"), [
        (True, "printf '%s\\n' \"$@\" >words", f"-u\nguest\n--\n{OURS}/end\n12[3].server\n\n"),
        (False, "printf '%s\\n' \"$@\" >words", None), (True, "sleep 99", None),
    ])  # fmt: skip
    def test_the_end_is_the_user_s_on_one_host_and_never_in_the_way(self, programs, tmp_path, first, program, expected):
        programs("runuser", program)
        (tmp_path / "pbs.py").write_text(
            "class job: id, euser, in_ms_mom = '12[3].server', 'guest', staticmethod(lambda: " + str(first) + ")\n"
            "class event: job, accept = job, staticmethod(lambda: print('accepted'))\n"
            "LOG_WARNING = 4\ndef logmsg(level, text): print('logged', text)\n"
        )
        hook = rendered("pbs_end", plumb_advice_folder=OURS).replace("/usr/local/bin", str(tmp_path / "bin"))
        hook = hook.replace("timeout=60", "timeout=1")
        done = ended([sys.executable, "-c", hook], env={**os.environ, "PYTHONPATH": str(tmp_path)})
        assert done.stdout.splitlines()[-1] == "accepted"
        assert ("logged plumb_advice_end: " in done.stdout) is ("sleep" in program)
        words = tmp_path / "words"
        assert (words.read_text() if words.exists() else None) == expected
