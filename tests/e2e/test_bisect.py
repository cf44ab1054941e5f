"""``plumb bisect`` and ``git bisect run plumb gate`` on a repository of four changes, one of which does more work.

The figure is a count that the program prints, so the answer does not depend on how busy the machine is; margins are
wide, so few pairs decide. Disturbed launches may leave a commit open: then it is skipped, and the true one must be
among those that remain.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import own_code
import processes
import pytest
from processes import ended

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

#: changes after the first commit; the one that does half as much again; the one that does not build
CHANGES, SLOWER, BROKEN = 4, 3, 1
#: what the process id may add to a count (see the program), and to an interval that is rounded
MOST = 1.011
PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
/* change NUMBER */
int main(void) {
    long count = 0, most = WORKL + getpid() % 97 * WORKL / 10000;
    volatile double sum = 0;
    for (; count < most; count++) sum += 1.0;
    printf("Steps: %ld\n", count);
    return 0;
}
"""
MARGINS = ("--tolerance", "0.05", "--must-detect", "0.3")
TOY = {"command": "./toy", "mpi": False, "threads": 1, "ranks": 1}
TOY |= {"figures": {"steps": {"pattern": r"Steps: (\d+)", "unit": "steps"}}}
DESCRIBED = {"application": "toy", "build": ["mpicc -o toy toy.c"], "programs": {"toy": TOY}}


@pytest.fixture(scope="module")
def code(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """The repository, each commit tagged with its number, and the variables of commands there."""
    folder = tmp_path_factory.mktemp("bisect") / "code"
    folder.mkdir()
    for number in range(CHANGES + 1):
        work = 1_500_000 if number >= SLOWER else 1_000_000
        text = PROGRAM.replace("NUMBER", str(number)).replace("WORK", str(work))
        (folder / "toy.c").write_text("#error no\n" if number == BROKEN else text)
        own_code.commit(folder, DESCRIBED, str(number))
    return folder, own_code.variables(folder.parent)


def commit(folder: Path, name: int) -> str:
    return own_code.git(folder, "rev-parse", str(name)).strip()


def requires_the_right_one(code: tuple[Path, dict[str, str]], status: int, output: str, found: Path) -> None:
    """Nothing but the change is named; it may be one of several, or stay unconfirmed, where launches were disturbed."""
    document = json.loads(found.read_text())
    right = commit(code[0], SLOWER)
    if status == 1:
        assert document["ends"]["state"] == "INCONCLUSIVE", output
        return
    assert status in (0, 2), output
    assert all(right in culprit["candidates"] for culprit in document["culprits"]), output
    assert document["culprits"] or document["unknown"], output
    if status == 0:
        (culprit,) = document["culprits"]
        assert culprit["commit"] == right
        low, high = culprit["interval"]
        assert 1.5 / MOST < low <= high < 1.5 * MOST  # process ids of a pair may differ by the same number each time
        assert re.match(
            rf"{right[:12]} \({SLOWER}, \S+\) makes toy %placement=core: steps slower by ", document["answer"]
        )


def test_the_change_is_found_by_a_bisection_that_was_killed(code, tmp_path):
    """kill -9 in the second gate: the first is read, the second goes on; a second process is kept out meanwhile."""
    folder, around = code
    work, found = tmp_path / "work", tmp_path / "found.json"
    command = [str(Path(sys.executable).parent / "plumb"), "bisect", "0", str(CHANGES), "--stack", "mpich"]
    command += ["--work", str(work), *MARGINS]
    with (tmp_path / "out").open("w") as out:
        child = subprocess.Popen(command, cwd=folder, env=around, stdout=out, stderr=out, start_new_session=True)
        try:
            processes.wait_until(
                lambda: child.poll() is not None or [*work.glob("gates/001*/pairs/0.jsonl")], "a second gate", 600
            )
            if child.poll() is None:
                status, output = own_code.plumb(folder, around, "bisect", "--resume", str(work))
                assert (status, "another bisection runs in this folder" in output) == (3, True), output
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    kept = json.loads((work / "bisect.json").read_text())["comparisons"]
    status, output = own_code.plumb(folder, around, "bisect", "--resume", str(work), "--output", str(found))
    requires_the_right_one(code, status, output, found)
    assert json.loads((work / "bisect.json").read_text())["comparisons"][: len(kept)] == kept
    steps = {step["commit"]: step for step in json.loads(found.read_text())["steps"]}
    if broken := steps.get(commit(folder, BROKEN)):
        assert broken["said"] == "skip"
        assert "error: #error no" in broken["reason"]
    assert own_code.git(folder, "status", "--porcelain", "--ignored") == ""
    assert own_code.git(folder, "for-each-ref", "refs/bisect") == ""
    if steps:
        assert (work / "bisect-1.log").read_text().startswith("git bisect start\n")


@pytest.mark.long
def test_git_bisect_run_takes_the_gate_as_its_judge(code, tmp_path):
    folder, around = code
    copy = tmp_path / "copy"
    own_code.git(folder, "clone", "-q", str(folder), str(copy))
    own_code.git(copy, "bisect", "start", str(CHANGES), "0")
    gate = ["plumb", "gate", "--baseline", "0", "--candidate", "HEAD", "--stack", "mpich", "--for-git-bisect"]
    around = {**around, "PATH": f"{Path(sys.executable).parent}:{around['PATH']}"}
    command = ["git", "bisect", "run", *gate, *MARGINS]
    done = ended(command, cwd=copy, env=around, timeout=900)
    log = own_code.git(copy, "bisect", "log")
    right = commit(folder, SLOWER)
    if "only skipped commits left" in log:
        assert f"possible first bad commit: [{right}]" in log, done.stdout
    else:
        assert f"# first bad commit: [{right}]" in log, done.stdout + done.stderr
    assert done.returncode in (0, 2), done
    if commit(folder, BROKEN) in log:
        assert f"git bisect skip {commit(folder, BROKEN)}" in log


def test_a_commit_that_does_not_build_is_to_be_skipped(code):
    folder, around = code
    words = ("--baseline", "0", "--candidate", str(BROKEN), "--stack", "mpich")
    status, output = own_code.plumb(folder, around, "gate", *words, "--for-git-bisect")
    assert (status, "error: #error no" in output) == (125, True), output
    assert own_code.plumb(folder, around, "gate", *words)[0] == 3
    assert own_code.plumb(folder, around, "gate", *words[:-1], "absent", "--for-git-bisect")[0] == 128


@pytest.mark.long
def test_a_gate_that_fails_looks_for_the_commit(code, tmp_path):
    folder, around = code
    found, note = tmp_path / "gate.json", tmp_path / "gate.md"
    asked = ("--baseline", str(SLOWER - 1), "--candidate", str(CHANGES), "--stack", "mpich", "--cause-minutes", "3")
    outputs = ("--output", str(found), "--output", str(note))
    status, output = own_code.plumb(folder, around, "gate", *asked, *MARGINS, *outputs)
    facts = {fact["name"]: fact["text"] for fact in json.loads(found.read_text())["facts"]}
    if status == 2:  # disturbed launches
        assert "cause" not in facts
        return
    assert status == 1, output
    assert facts["why"].startswith(f"plumb bisect {commit(folder, SLOWER - 1)} {commit(folder, CHANGES)} ")
    assert facts["cause"].startswith("bisect: "), output
    assert "- bisect: " in note.read_text()
    if "makes toy" in facts["cause"]:
        assert commit(folder, SLOWER)[:12] in facts["cause"]
