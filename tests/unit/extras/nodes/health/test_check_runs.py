"""How plumb-check is started, answers and ends: its forms, jobs, budget, and what may be broken around it."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import processes
import pytest
from check_runs import CPU, FINE, class_file, judged, rounds, run

from plumbline.base import paths
from plumbline.commands import cli

SLOW = {"memory": 70.0}
JOBS = "jobs /usr/local/lib/plumbline/health.sh slurm jobs"
#: more rounds than there is time for
ENDLESS = 1001


def program(folder, text):
    """A health script that answers whether jobs are on a node, and a plumb-check beside it."""
    file = folder / "health.sh"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    shutil.copy(paths.checker(), folder)
    return JOBS


class TestForms:
    """One result in every form."""

    def said(self, folder, given, form):
        words = ["--class", class_file(folder), "--node", "here", "--measured", rounds(folder, *given)]
        return run(*words, "--form", form, "--state", folder / "state")

    def test_nhc_is_silent_or_one_line(self, tmp_path):
        for given, status, lines in (([FINE] * 5, 0, 0), ([FINE], 0, 0), ([SLOW] * 5, 1, 1)):
            done = self.said(tmp_path, given, "nhc")
            assert (done.returncode, done.stdout.count("\n"), done.stderr) == (status, lines, "")
        assert done.stdout.startswith("plumb-check: memory is 70 GB/s (limit 90 GB/s, 5 of 5 rounds)")

    def test_nagios(self, tmp_path):
        for given, status, word in (([FINE] * 5, 0, "OK"), ([FINE], 1, "WARNING"), ([SLOW] * 5, 2, "CRITICAL")):
            done = self.said(tmp_path, given, "nagios")
            assert done.returncode == status
            text, _, data = done.stdout.partition("|")
            assert text.startswith(f"PLUMB {word} - ")
            assert re.fullmatch(r"age=0s( [\w.]+=[\d.]+[\w/]+(;;[\d.]+:?)?)+\n", data), data
        assert "memory=70GB/s;;90:" in data
        assert "handover=100ns;;110" in data

    def test_bad_input_is_unknown_to_nagios(self, tmp_path):
        for words in (["--class", tmp_path / "none"], ["--class", class_file(tmp_path), "--seconds", "7"], ["--wrong"]):
            done = run(*words, "--form", "nagios", "--node", "here")
            assert (done.returncode, done.stderr.count("\n")) == (3, 1)
            assert done.stdout.startswith("PLUMB UNKNOWN - ")

    def test_openmetrics_is_read_by_a_reader(self, tmp_path):
        done = self.said(tmp_path, [SLOW] * 5, "openmetrics")
        lines = done.stdout.splitlines()
        assert done.returncode == 1
        assert lines[-1] == "# EOF"
        sample = re.compile(r'plumb_check_\w+\{(\w+="[^"]*",?)+\} -?[\d.e+]+')
        assert all(line.startswith("# TYPE ") or sample.fullmatch(line) for line in lines[:-1]), lines
        assert 'plumb_check_state{node="here",class="test",state="bad"} 1' in lines
        assert 'plumb_check_figure{node="here",figure="memory",unit="GB/s"} 70' in lines

    def test_a_result_is_written_in_one_step(self, tmp_path):
        words = ["--class", class_file(tmp_path), "--measured", rounds(tmp_path, *[FINE] * 5)]
        done = run(*words, "--form", "openmetrics", "--output", tmp_path / "plumb.prom", status=0)
        assert done.stdout == ""
        assert (tmp_path / "plumb.prom").read_text().endswith("# EOF\n")
        assert sorted(item.name for item in tmp_path.iterdir()) == ["node.class", "plumb.prom", "rounds"]
        done = run(*words, "--output", tmp_path / "absent" / "plumb.prom", status=2)
        assert "cannot be written" in done.stderr

    def test_what_a_killed_check_of_the_same_number_left_is_replaced(self, tmp_path):
        output = tmp_path / "plumb.prom"
        words = [paths.checker(), "--class", class_file(tmp_path), "--measured", rounds(tmp_path, *[FINE] * 5)]
        left = ["sh", "-c", 'touch "$0.$$"; exec "$@"', output, *words, "--form", "openmetrics", "--output", output]
        assert subprocess.run(left, capture_output=True, text=True, check=True).stderr == ""
        assert output.read_text().endswith("# EOF\n")

    def test_what_a_class_finds_is_printed(self, tmp_path):
        done = run("--class", class_file(tmp_path, "fact cpu.online 0-1", "room /tmp 1e9"), "--plan", status=0)
        assert re.search(r"^ +25 +5 memory +GB/s +90 +80 +10$", done.stdout, re.MULTILINE)
        assert "equal: cpu.online 0-1\n" in done.stdout


class TestLast:
    """The last result at once."""

    def last(self, folder, form, *more):
        words = ["--class", folder / "node.class", "--state", folder / "state", "--form", form]
        beside = folder / "plumb-check"
        return run(*words, *more, program=beside if beside.exists() else None)

    def test_neither_it_nor_the_plan_needs_a_budget(self, tmp_path):
        """They measure nothing: the default of 25 s need not be in the class."""
        assert judged(tmp_path, *[SLOW] * 5)["state"] == "bad"
        class_file(tmp_path, budgets=("55 33",), limits=("limit 55 memory 90 80 95 0.1",))
        assert self.last(tmp_path, "nhc", "--last").stdout.startswith("plumb-check: memory is 70 GB/s")
        plan = self.last(tmp_path, "nhc", "--plan")
        assert plan.returncode == 0
        assert re.search(r"^ +55 +33 memory +GB/s +90 +80 +10$", plan.stdout, re.MULTILINE)
        done = self.last(tmp_path, "nhc", "--detach")
        assert (done.returncode, done.stderr) == (2, "plumb-check: --seconds 25: the class has budgets of 55 seconds\n")

    def test_in_every_form_with_its_age(self, tmp_path):
        assert judged(tmp_path, *[SLOW] * 5)["state"] == "bad"
        kept = tmp_path / "state" / "last"
        text = kept.read_text()
        first = text.splitlines()[0].split()
        kept.write_text(text.replace(first[2], str(float(first[2]) - 1000), 1))
        for form, status in (("nhc", 1), ("nagios", 2), ("json", 1), ("openmetrics", 1), ("text", 1)):
            done = self.last(tmp_path, form, "--last")
            assert done.returncode == status
            assert ("\x01" in done.stdout, done.stderr) == (False, "")
            assert form == "openmetrics" or re.search(r"\b10\d\d", done.stdout)
        assert json.loads(self.last(tmp_path, "json", "--last").stdout)["age"] >= 1000

    @pytest.mark.parametrize(("later", "kept"), [(-1000, True), (30, True), (120, False), (315360000, False)])
    def test_one_from_the_future_is_none(self, tmp_path, later, kept):
        """A node may boot with a wrong clock, be checked, and get the time: nobody knows how old that is."""
        assert judged(tmp_path, *[SLOW] * 5)["state"] == "bad"
        file = tmp_path / "state" / "last"
        text = file.read_text()
        time = text.split()[2]
        for word in (str(float(time) + later), "nan" if not kept else time):
            file.write_text(text.replace(time, word, 1))
            assert json.loads(self.last(tmp_path, "json", "--last").stdout)["state"] == ("bad" if kept else "doubt")

    def test_without_one_nothing_is_bad(self, tmp_path):
        class_file(tmp_path)
        assert self.last(tmp_path, "nhc", "--last").returncode == 0
        assert json.loads(self.last(tmp_path, "json", "--last").stdout)["state"] == "doubt"
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "last").write_text("plumb-check 1 17.0 3\n5\nab")
        assert json.loads(self.last(tmp_path, "json", "--last").stdout)["state"] == "doubt"

    def test_a_check_in_the_background(self, tmp_path):
        """It holds no file of whoever started it, so this does not wait for it; another one is not begun."""
        class_file(tmp_path, program(tmp_path, f"echo $$ >> {tmp_path}/asked"), limits=(), budgets=("900 5",))
        text = rounds(tmp_path, *[FINE] * 5).read_text()
        os.mkfifo(tmp_path / "later")
        more = ["--measured", str(tmp_path / "later"), "--detach", "--seconds", "900"]
        assert self.last(tmp_path, "json", *more).returncode == 0
        processes.wait_for(tmp_path / "asked")
        assert not (tmp_path / "state" / "last").exists()
        self.last(tmp_path, "json", *more)
        (tmp_path / "later").write_text(text)
        processes.wait_for(tmp_path / "state" / "last")
        assert json.loads(self.last(tmp_path, "json", "--last").stdout)["rounds"] == 5
        assert len((tmp_path / "asked").read_text().splitlines()) == 1


class TestBadInput:
    """One line, and not the status of a node that is fine."""

    @pytest.mark.parametrize(("words", "said"), [
        (["--measured", "/tmp"], "plumb-check: /tmp: Is a directory\n"),
        (["--detach", "--state", "/nowhere/x"],
         "plumb-check: /nowhere/x cannot be made: No such file or directory: give --state\n"),
    ])  # fmt: skip
    def test_a_folder_that_cannot_be(self, tmp_path, words, said):
        done = run("--class", class_file(tmp_path), *words, status=2)
        assert (done.stdout, done.stderr) == ("", said)


class TestJobs:
    """Never beside a job."""

    def said(self, folder, answer, *more):
        return judged(folder, *[SLOW] * 5, lines=[program(folder, answer)], more=more, program=folder / "plumb-check")

    def test_a_job_on_the_node(self, tmp_path):
        found = self.said(tmp_path, "echo job 4711; exit 1")
        assert (found["state"], found["rounds"], found["bad"]) == ("busy", 0, [])
        assert found["line"] == "a job is on the node: nothing was measured: job 4711"

    def test_no_job_and_told_to_measure_beside_one(self, tmp_path):
        assert self.said(tmp_path, "exit 0")["state"] == "bad"
        assert self.said(tmp_path, "exit 1", "--beside-jobs")["state"] == "bad"

    @pytest.mark.parametrize("answer", ["exit 3", "kill -9 $$", "sleep 100"])
    def test_nobody_can_say(self, tmp_path, answer):
        found = self.said(tmp_path, answer)
        assert (found["state"], found["rounds"]) == ("doubt", 0)
        assert str(found["line"]).startswith("nobody can say whether jobs are on the node")

    def test_no_such_program(self, tmp_path):
        assert judged(tmp_path, *[SLOW] * 5, lines=[JOBS])["state"] == "doubt"

    @pytest.mark.parametrize("line", [
        "jobs CANARY",
        "jobs CANARY slurm jobs",
        "jobs /usr/local/lib/plumbline/../../../../CANARY slurm jobs",
        "jobs /usr/local/lib/plumbline/health.sh slurm drain",
        "jobs /usr/local/lib/plumbline/health.sh ../../evil jobs",
        "jobs /usr/local/lib/plumbline/health.sh slurm jobs other",
        "jobs /usr/local/lib/plumbline/health.sh slurm",
        "jobs /bin/sh -c true",
    ])  # fmt: skip
    def test_a_class_names_no_program(self, tmp_path, line):
        canary = tmp_path / "canary"
        canary.write_text(f"#!/bin/sh\ntouch {tmp_path}/written\n")
        canary.chmod(0o755)
        file = class_file(tmp_path, line.replace("CANARY", str(canary)))
        done = run("--class", file, "--node", "here", "--measured", rounds(tmp_path, *[FINE] * 5), status=2)
        assert "SCHEDULER jobs' is asked for jobs" in done.stderr or "a word is missing" in done.stderr
        assert not (tmp_path / "written").exists()

    def test_a_job_that_began_meanwhile(self, tmp_path):
        found = self.said(tmp_path, f"[ -e {tmp_path}/once ] && exit 1; touch {tmp_path}/once")
        assert (found["state"], found["bad"]) == ("doubt", [])
        assert any("a job may have begun" in line for line in found["doubts"])


@pytest.fixture
def other_work():
    """Another process that uses a CPU."""
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    yield
    other.kill()
    other.wait()


class TestOthers:
    """Other work on the node. These measure; what they find is not looked at."""

    def test_measuring_ends_before_the_next_round(self, tmp_path, other_work):
        """The second answer is that a job has begun; it stops what measures, which so ends no other round.

        The budget is long, because a round takes seconds on a busy machine.
        """
        children = "/proc/$PPID/task/$PPID/children"
        stop = f"for child in $(cat {children}); do [ $child = $$ ] || kill -STOP $child; done"
        answer = program(tmp_path, f"[ -e {tmp_path}/once ] || exec touch {tmp_path}/once; {stop}; exit 1")
        file = class_file(tmp_path, answer, budgets=("100 1001",), limits=())
        words = ["--class", file, "--seconds", "100", "--form", "json"]
        found = json.loads(run(*words, status=0, program=tmp_path / "plumb-check").stdout)
        assert found["rounds"] == 1
        assert found["state"] == "doubt"
        assert "a job has begun: measuring was ended" in found["doubts"]

    def test_a_process_with_a_large_pid_is_named(self, tmp_path):
        if os.geteuid() != 0:
            pytest.skip("no root")
        words = f"--class {class_file(tmp_path, budgets=('100 1',), limits=())} --seconds 100 --form json"
        shell = (
            "echo 100000 >/proc/sys/kernel/ns_last_pid || exit 77; "
            f"sh -c 'while :; do :; done' & {paths.checker()} {words} --state {tmp_path}/state; kill $!"
        )
        command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", shell]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip(f"no namespace of processes can be made here: {done.stderr.strip()}")
        assert re.search(r"other work: sh \(100001\), [\d.]+ CPUs", str(json.loads(done.stdout)["doubts"]))


class TestBudget:
    """The time is over when it is over. These measure; what they find is not looked at."""

    def begin(self, folder, seconds):
        file = class_file(folder, budgets=(f"{seconds} {ENDLESS}",), limits=())
        words = ["--class", file, "--seconds", seconds, "--form", "json"]
        command = [str(paths.checker()), *map(str, words), "--state", str(folder / "state")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def measuring(self, check):
        """The process that measures, once there is one."""
        children = Path(f"/proc/{check.pid}/task/{check.pid}/children")
        return int(processes.wait_until(lambda: children.exists() and children.read_text(), "a child", of=check) or 0)

    def end(self, check):
        out = check.communicate(timeout=300)[0]
        assert check.returncode == 0, out
        return dict(json.loads(out))

    def test_it_ends_and_says_what_is_left_out(self, tmp_path):
        found = self.end(self.begin(tmp_path, 4))
        assert found["state"] == "doubt"
        assert f"the time was over after {found['rounds']} of 1001 rounds" in str(found["doubts"])

    @pytest.mark.parametrize(
        ("number", "seconds", "said"),
        [(signal.SIGSTOP, 4, "the time was over"), (signal.SIGBUS, 100, "measuring was ended by signal 7 (Bus error)")],
    )
    def test_measuring_that_hangs_or_dies(self, tmp_path, number, seconds, said):
        check = self.begin(tmp_path, seconds)
        os.kill(self.measuring(check), number)
        found = self.end(check)
        assert (found["state"], found["bad"]) == ("doubt", [])
        assert said in str(found["doubts"])

    def test_a_system_that_does_not_answer(self, tmp_path):
        """The question for jobs hangs in a program that keeps its output open and cannot be waited for."""
        check = self.begin(tmp_path, 100)
        self.measuring(check)
        os.kill(check.pid, signal.SIGALRM)
        assert str(self.end(check)["line"]).startswith("the system did not answer")

    def test_who_is_killed_leaves_nothing_behind(self, tmp_path):
        check = self.begin(tmp_path, 100)
        child = self.measuring(check)
        check.kill()
        check.communicate()
        processes.wait_until(lambda: not processes.runs(child), "the end of what measures")


class TestSurroundings:
    """What a node may be like."""

    def test_a_cpu_that_may_not_be_used(self, tmp_path):
        file = class_file(tmp_path, "cpu 4095 0", limits=())
        found = json.loads(run("--class", file, "--form", "json", status=0).stdout)
        assert (found["state"], found["rounds"]) == ("doubt", 0)
        assert "may not use CPU 4095: start it without taskset and outside of a cpuset" in found["doubts"][0]

    def test_by_taskset(self, tmp_path):
        others = sorted(os.sched_getaffinity(0) - {CPU})
        if not others:
            pytest.skip("one CPU only")
        shell = ["taskset", "-c", str(others[0]), str(paths.checker()), "--class", str(class_file(tmp_path))]
        done = subprocess.run([*shell, "--form", "text"], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0
        assert f"this process may not use CPU {CPU}" in done.stdout

    def test_a_quota_of_cpu_time(self, tmp_path):
        """In a control group of version 1 with half a CPU."""
        group = Path("/sys/fs/cgroup/cpu") / f"plumb-check-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            pytest.skip(f"no control group of version 1 can be made: {error.strerror}")
        try:
            (group / "cpu.cfs_quota_us").write_text("50000")
            line = f"echo $$ > {group}/tasks; exec {paths.checker()} --class {class_file(tmp_path)} --form text"
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=120)
        finally:
            group.rmdir()
        assert done.returncode == 0
        assert "this process may use 0.5 CPUs of 1: its control group has a quota" in done.stdout

    def test_a_file_system_that_is_read_only(self, tmp_path):
        if os.geteuid() != 0:
            pytest.skip("no root")
        words = f"--class {class_file(tmp_path)} --node here --measured {rounds(tmp_path, *[SLOW] * 5)}"
        shell = f"mount -t tmpfs -o ro none /run; exec {paths.checker()} {words}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", shell], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("plumb-check: memory is 70 GB/s")

    def test_a_user_without_a_folder_of_the_session(self, tmp_path):
        own = {name: text for name, text in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        as_user = {"user": 65534} if os.geteuid() == 0 else {}
        folder = Path("/tmp") / f"plumb-check-{os.getpid()}"
        folder.mkdir()
        try:
            words = ["--class", class_file(folder), "--node", "here"]
            given = ["--measured", rounds(folder, *[SLOW] * 5)]
            folder.chmod(0o755)
            copy = folder / "plumb-check"  # the checkout may be a folder that others may not enter
            copy.write_bytes(paths.checker().read_bytes())
            copy.chmod(0o755)
            nowhere = "plumb-check: nowhere to keep the last result: give --state FOLDER\n"
            for more, status, err in ((given, 1, ""), (["--last"], 2, nowhere)):
                command = [str(copy), *map(str, [*words, *more])]
                done = subprocess.run(command, env=own, capture_output=True, text=True, check=False, **as_user)
                assert (done.returncode, done.stderr) == (status, err)
        finally:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def test_it_needs_no_library_where_the_host_has_a_static_one(self):
        if not any(Path("/usr/lib").rglob("libc.a")):
            pytest.skip("there is no static C library here")
        done = subprocess.run(["readelf", "-d", paths.checker()], capture_output=True, text=True, check=False)
        assert "NEEDED" not in done.stdout


class TestCollect:
    """Rounds for a class."""

    def test_each_check_is_a_line_with_facts_and_rounds(self, tmp_path):
        file = class_file(tmp_path, limits=())
        given = rounds(tmp_path, FINE, SLOW, FINE, FINE, FINE)
        run("--class", file, "--collect", tmp_path, "--checks", 3, "--node", "n1", "--measured", given, status=0)
        lines = [json.loads(line) for line in (tmp_path / "n1.jsonl").read_text().splitlines()]
        assert [line["node"] for line in lines] == ["n1"] * 3
        (memory,) = [figure for figure in lines[0]["figures"] if figure["name"] == "memory"]
        assert memory["rounds"] == [100, 70, 100, 100, 100]
        assert lines[0]["facts"]["cpu.online"]

    def test_a_node_cannot_be_a_path(self, tmp_path):
        run("--class", class_file(tmp_path), "--collect", tmp_path, "--node", "../n1", status=2)


def test_a_check_that_a_signal_ended_has_the_status_of_a_shell(tmp_path, monkeypatch):
    checker = tmp_path / "plumb-check"
    checker.write_text("#!/bin/sh\nkill -KILL $$\n")
    checker.chmod(0o755)
    monkeypatch.setattr(paths, "checker", lambda: checker)
    assert cli.main(["check", "--class", str(class_file(tmp_path))]) == 128 + signal.SIGKILL
