"""What plumb-check says of rounds, facts and file systems, on measurements that are given to it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from check_runs import FINE, class_file, judged, rounds, run

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/rates"))
import caution

SLOW = {"memory": 70.0}
LATE = {"handover": 140.0}


class TestFigures:
    """Most of the planned rounds decide."""

    @pytest.mark.parametrize(("slow", "state"), [(0, "ok"), (2, "ok"), (3, "bad"), (5, "bad")])
    @pytest.mark.parametrize(("how", "name"), [(SLOW, "memory"), (LATE, "handover")])
    def test_most_rounds_decide(self, tmp_path, slow, state, how, name):
        found = judged(tmp_path, *[how] * slow, *[FINE] * (5 - slow))
        assert found["state"] == state
        assert [line.startswith(f"{name} is ") for line in found["bad"]] == [True] * (state == "bad")

    def test_rounds_beside_other_work_are_no_evidence(self, tmp_path):
        beside = {**SLOW, "others": 0.9}
        assert judged(tmp_path, *[SLOW] * 3, beside, FINE)["state"] == "bad"
        found = judged(tmp_path, *[SLOW] * 2, *[beside] * 3)
        assert (found["state"], found["bad"]) == ("doubt", [])
        assert "beside other work" in found["doubts"][0]

    @pytest.mark.parametrize(("others", "memory", "state"), [
        (0.3, 18.0, "bad"), (0.5, 18.0, "doubt"), (0.5, 10.0, "bad"), (0.3, 25.0, "doubt"), (1.5, 1.0, "doubt"),
    ])  # fmt: skip
    def test_other_work_explains_only_as_much_as_it_can(self, tmp_path, others, memory, state):
        """A fifth of the limit beside a third of a CPU is not its work; beside more than a CPU all may be."""
        found = judged(tmp_path, *[{"memory": memory, "others": others}] * 5)
        assert found["state"] == state

    @pytest.mark.parametrize(("count", "state"), [(2, "doubt"), (3, "bad")])
    def test_a_node_at_a_fifth_gets_through_few_rounds(self, tmp_path, count, state):
        file = class_file(tmp_path, budgets=["25 13"])
        given = rounds(tmp_path, *[{"memory": 18.0, "others": 0.1}] * count)
        words = ["--class", file, "--measured", given, "--form", "json", "--state", tmp_path, "--node", "here"]
        assert json.loads(run(*words).stdout)["state"] == state

    @pytest.mark.parametrize(("speed", "times"), [(1.0, 0), (0.2, 5)])
    def test_bursts_of_other_work_are_no_slow_node(self, tmp_path, speed, times):
        random = np.random.default_rng(1)
        assert sum(caution.is_bad(caution.CHECK[1], speed, random, tmp_path) for _ in range(5)) == times

    def test_a_check_that_was_cut_short(self, tmp_path):
        """Rounds that are missing cannot undo what most of the planned ones have shown, and cannot be guessed."""
        assert judged(tmp_path, *[SLOW] * 3)["state"] == "bad"
        for given in ([SLOW] * 2, [FINE] * 4, []):
            found = judged(tmp_path, *given)
            assert found["state"] == "doubt"
            assert f"there are {len(given)} of 5 rounds" in found["doubts"]

    def test_between_usual_and_slow_a_longer_check_is_asked_for(self, tmp_path):
        found = judged(tmp_path, *[{"memory": 92.0}] * 5)
        assert found["state"] == "doubt"
        assert found["doubts"] == ["memory is 92 GB/s, usual is up to 95 GB/s: needs a longer check"]

    def test_a_node_that_the_class_was_not_made_of_has_its_own_limit(self, tmp_path):
        between = [{"memory": 85.0}] * 5
        assert judged(tmp_path, *between)["state"] == "bad"
        found = judged(tmp_path, *between, node="elsewhere")
        assert (found["state"], found["member"]) == ("doubt", False)
        assert judged(tmp_path, *[SLOW] * 5, node="elsewhere")["state"] == "bad"

    def test_what_the_class_cannot_promise_is_bad_only_far_beyond_doubt(self, tmp_path):
        file = class_file(tmp_path, limits=["limit 25 memory none none 95 none"])
        done = run("--class", file, "--measured", rounds(tmp_path, *[SLOW] * 5), "--form", "json", status=0)
        found = json.loads(done.stdout)
        assert (found["state"], found["bad"]) == ("doubt", [])
        assert "the class cannot judge it in this time" in found["doubts"][0]
        far = run("--class", file, "--measured", rounds(tmp_path, *[{"memory": 30.0}] * 5), "--form", "json", status=1)
        line = "memory is 30 GB/s, usual is up to 95 GB/s: far too slow in 5 of 5 rounds"
        assert json.loads(far.stdout)["bad"] == [line]

    def test_a_figure_with_a_limit_that_was_not_measured_is_a_doubt(self, tmp_path):
        file = class_file(tmp_path, limits=["limit 25 cache.core 1 1 1 0.1"])
        done = run("--class", file, "--measured", rounds(tmp_path, *[FINE] * 5), "--form", "json", status=0)
        assert json.loads(done.stdout)["doubts"] == ["cache.core was not measured"]


class TestFacts:
    """What has to be equal, and what has to be free."""

    def fact(self, folder, line):
        found = judged(folder, *[FINE] * 5, lines=[line])
        assert found["state"] == ("bad" if found["bad"] else "ok")
        return list(found["bad"])

    def test_a_core_that_is_missing(self, tmp_path):
        online = Path("/sys/devices/system/cpu/online").read_text().strip()
        assert self.fact(tmp_path, f"fact cpu.online {online}") == []
        assert self.fact(tmp_path, "fact cpu.online 0-4095") == [f"cpu.online is '{online}', not '0-4095'"]

    def test_a_setting_that_differs(self, tmp_path):
        (bad,) = self.fact(tmp_path, "fact memory.thp sometimes")
        assert re.fullmatch(r"memory\.thp is '\w+', not 'sometimes'", bad)

    def test_something_that_is_not_there(self, tmp_path):
        assert self.fact(tmp_path, "fact link.hsn9 200000 Mbit/s") == ["link.hsn9 is not there, not '200000 Mbit/s'"]

    def test_memory_may_differ_by_what_a_kernel_keeps(self, tmp_path):
        kib = int(re.findall(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())[0])
        assert self.fact(tmp_path, f"fact memory.mib {int(kib / 1024 * 1.005)}") == []
        assert self.fact(tmp_path, f"fact memory.mib {int(kib / 1024 * 1.05)}") != []

    def test_too_little_room(self, tmp_path):
        assert self.fact(tmp_path, f"room {tmp_path} 1") == []
        (bad,) = self.fact(tmp_path, f"room {tmp_path} 1e18")
        assert bad.startswith(f"{tmp_path} has ")
        assert self.fact(tmp_path, "room /nowhere 1") == ["/nowhere: No such file or directory"]

    def test_a_full_shared_memory(self, tmp_path):
        """A file system of its own in the place of /dev/shm, full but for a page."""
        if os.geteuid() != 0:
            pytest.skip("no root")
        file = class_file(tmp_path, "room /dev/shm 1048576")
        words = f"--class {file} --node here --measured {rounds(tmp_path, *[FINE] * 5)}"
        line = "mount -t tmpfs -o size=2m none /dev/shm; head -c 2000000 /dev/zero > /dev/shm/left"
        shell = ["unshare", "-m", "sh", "-c", f"{line}; exec {paths.checker()} {words}"]
        done = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1, done
        assert re.match(r"plumb-check: /dev/shm has \S+ GiB free, \S+ GiB are needed", done.stdout)


class TestClasses:
    """A class that is damaged is one line, and never a verdict."""

    @pytest.mark.parametrize(("line", "what"), [
        ("cpu x 0", "a number is missing"),
        ("cpu 1.5 0", "a whole number is missing"),
        ("limit 25 speed 1 1 1 1", "no such budget or figure"),
        ("limit 30 memory 1 1 1 1", "no such budget or figure"),
        ("limit 25 memory 1 1", "a word is missing"),
        ("limit 25 memory 1 1 nan 1", "a number is missing"),
        ("budget 10 4", "not an odd number of rounds"),
        ("pair 0 4095", "a pair names a CPU that is not measured"),
        ("fortune 1", "it is not known here"),
    ])  # fmt: skip
    def test_a_line_that_is_wrong(self, tmp_path, line, what):
        done = run("--class", class_file(tmp_path, line), status=2)
        assert (done.stdout, done.stderr.count("\n")) == ("", 1)
        assert what in done.stderr

    def test_a_class_that_is_not_whole(self, tmp_path):
        whole = class_file(tmp_path).read_text()
        file = tmp_path / "part"
        for length in range(0, len(whole) - 1, 7):
            file.write_text(whole[:length])
            done = run("--class", file, "--plan")
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), whole[:length]

    def test_a_budget_that_there_is_not(self, tmp_path):
        done = run("--class", class_file(tmp_path), "--seconds", 30, status=2)
        assert done.stderr == "plumb-check: --seconds 30: the class has budgets of 25 seconds\n"
