"""The steps of the rendered pipelines, taken from the YAML and run in a scratch checkout with a stub for plumb."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from plumbline.base import paths
from plumbline.commands import cli
from plumbline.extras.ci import pipelines

#: notes its arguments, writes what the real one writes, and ends as the test says
STUB = """#!{python} -SI
import json, os, sys
said = json.loads(os.environ.get("STUB", "{{}}"))
with open("calls.jsonl", "a") as stream:
    stream.write(json.dumps({{"argv": sys.argv[1:]}}) + "\\n")
command = next(word for word in sys.argv[1:] if not word.startswith("--results="))
if command == "gate" and not said.get("silent"):
    for place, option in enumerate(sys.argv):
        if option == "--output":
            with open(sys.argv[place + 1], "w") as stream:
                stream.write(os.path.basename(sys.argv[place + 1]) + " of the gate\\n")
if command == "history" and not said.get("silent"):
    print('{{"series": "a"}}')
if command == "publish" and not said.get("silent"):
    os.makedirs(sys.argv[-1])
    with open(os.path.join(sys.argv[-1], "index.html"), "w") as stream:
        stream.write("pages")
sys.exit(said.get(command, 0))
"""
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "x; touch pwned",
    "x' ; touch pwned; '",
    'x" ; touch pwned; "',
    "${HOME}",
    "$CI_JOB_TOKEN",
    "-rf",
    "--baseline=other",
    "a b  c",
    "!reference [a]",
    "&a *a",
    "# no comment",
    "a: b",
    "[x, y]",
    "yes",
    "1e3",
    "*",
    "\\n",
    "Größe",
    "stream|osu.*%size=[0-9]+",
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone with this project's job.sh and activate, an empty set-up, and a branch ahead of main."""
    folder = tmp_path_factory.mktemp("clone")
    top, remote = folder / "clone", folder / "remote"
    remote.mkdir()
    for name in ("plumbline/extras/ci/job.sh", "plumbline/extras/ci/comment.py", "activate"):
        (remote / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.root() / name, remote / name)
    (remote / "Makefile").write_text("setup:\n\t@echo set up >> calls.setup\n\t@test ! -e broken\n")
    git(remote, "init", "--quiet", "--initial-branch=main")
    git(remote, "add", ".")
    git(remote, "commit", "--quiet", "-m", "one")
    git(folder, "clone", "--quiet", str(remote), str(top))
    git(top, "checkout", "--quiet", "-b", "change")
    git(top, "commit", "--quiet", "--allow-empty", "-m", "two")
    (top / ".venv/bin").mkdir(parents=True)
    (top / ".venv/bin/python").symlink_to(sys.executable)
    plumb = top / ".venv/bin/plumb"
    plumb.write_text(STUB.format(python=sys.executable))
    plumb.chmod(0o755)
    return top


@pytest.fixture
def checkout(clone, tmp_path):
    return shutil.copytree(clone, tmp_path / "clone", symlinks=True)


def git(folder, *arguments):
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    around = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=True).stdout.strip()


def gitlab(values, job):
    """Commands and variables of a GitLab job, as its runner gives them to the shell."""
    document = yaml.safe_load(pipelines.gitlab(values))
    variables = document[".plumb"]["variables"].items()
    return document[job]["script"], {name: one["value"] if isinstance(one, dict) else one for name, one in variables}


def github(values, job):
    """The same of a GitHub job: its first own step."""
    one = yaml.safe_load(pipelines.github(values))["jobs"][job]
    return [next(step["run"] for step in one["steps"] if "run" in step)], {**one["env"], "GITHUB_ACTIONS": "true"}


HOSTS = pytest.mark.parametrize("host", [gitlab, github], ids=["gitlab", "github"])


def run(host, checkout, values, job="plumb-gate", said=None, **more):
    """Exit status and error text of the job's steps."""
    commands, variables = host(values, job if host is gitlab else job.removeprefix("plumb-"))
    here = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git(checkout, "rev-parse", "main")} if host is gitlab else {}
    there = {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(checkout / "summary")} if host is github else {}
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    answer = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join(commands)], cwd=checkout,
        env={**kept, **here, **there, **variables, "STUB": json.dumps(said or {}), **more}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    return answer.returncode, answer.stdout + answer.stderr


def calls(checkout):
    return [json.loads(line) for line in (checkout / "calls.jsonl").read_text().splitlines()]


def values(**changes):
    return pipelines.Values(**{"tags": ("hpc",), **changes})


@HOSTS
def test_a_gate_is_asked_for_what_the_site_says(host, checkout):
    asked = values(site="here", partition="cpu", stack="openmpi", test="stream|osu", minutes=30)
    status, said = run(host, checkout, asked)
    assert status == 0, said
    (call,) = calls(checkout)
    assert call["argv"] == [
        "gate", f"--baseline={git(checkout, 'rev-parse', 'main')}",
        f"--candidate={git(checkout, 'rev-parse', 'change')}", "--stack=openmpi", "--test=stream|osu", "--site=here",
        "--partition=cpu", "--minutes=30",
        *("--work", "plumb-ci/work", "--output", "plumb-ci/gate.json", "--output", "plumb-ci/gate.xml"),
        *("--output", "plumb-ci/gate.md", "--output", "plumb-ci/gate.html"),
    ]  # fmt: skip
    cli._parser(call["argv"]).parse_args(call["argv"])  # the real command knows these options
    published = {file.name for file in (checkout / "plumb-ci").iterdir()}
    assert published == {"gate.json", "gate.xml", "gate.md", "gate.html"}
    assert (checkout / "calls.setup").exists()
    if host is github:
        assert (checkout / "summary").read_text() == "gate.md of the gate\n"


@HOSTS
@pytest.mark.parametrize("verdict", [0, 1, 2, 3])
@pytest.mark.parametrize("inconclusive", ["warn", "fail"])
def test_the_verdict_is_the_jobs(host, checkout, verdict, inconclusive):
    status, said = run(host, checkout, values(inconclusive=inconclusive), said={"gate": verdict})
    tolerated = verdict == 2 and inconclusive == "warn"
    assert status == (0 if tolerated and host is github else verdict)
    assert ("::warning" in said) == (tolerated and host is github)
    job = yaml.safe_load(pipelines.gitlab(values(inconclusive=inconclusive)))[".plumb"]
    assert job["allow_failure"] == ({"exit_codes": [2]} if inconclusive == "warn" else False)


@HOSTS
@pytest.mark.parametrize("verdict", [0, 1, 2])
def test_a_gate_without_results_is_no_verdict(host, checkout, verdict):
    """argparse ends with 2 as well: a wrong option must not be tolerated as INCONCLUSIVE."""
    status, said = run(host, checkout, values(), said={"gate": verdict, "silent": True})
    assert status == 3
    assert "wrote no plumb-ci/gate.json" in said


@HOSTS
def test_results_of_an_earlier_job_are_not_published_again(host, checkout):
    (checkout / "plumb-ci").mkdir()
    for name in ("gate.json", "gate.xml", "gate.md"):
        (checkout / "plumb-ci" / name).write_text("of yesterday")
    assert run(host, checkout, values(), said={"gate": 0, "silent": True})[0] == 3
    assert not list((checkout / "plumb-ci").iterdir())


@HOSTS
def test_a_broken_set_up_is_invalid(host, checkout):
    (checkout / "broken").touch()
    status, said = run(host, checkout, values())
    assert status == 3
    assert "make setup failed" in said
    assert not (checkout / "calls.jsonl").exists()


@HOSTS
def test_a_baseline_can_be_named(host, checkout):
    assert run(host, checkout, values(baseline="mpich"))[0] == 0
    assert calls(checkout)[0]["argv"][1] == "--baseline=mpich"


@HOSTS
def test_without_anything_to_compare_with_it_stops(host, checkout):
    empty = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "", "GITHUB_BASE_REF": ""}
    status, said = run(host, checkout, values(), **empty)
    assert status == 3
    assert "nothing to hold the change against" in said


@HOSTS
@pytest.mark.parametrize("hostile", HOSTILE)
def test_values_arrive_as_they_are(host, checkout, hostile):
    """Every value is data from the command line of plumb ci to that of plumb gate."""
    status, said = run(host, checkout, values(test=hostile, stack=hostile, site=hostile, baseline=hostile))
    assert status == 0, said
    argv = calls(checkout)[0]["argv"]
    for option in ("test", "stack", "site", "baseline"):
        assert f"--{option}={hostile}" in argv
    assert not list(checkout.rglob("pwned"))


@HOSTS
def test_causes_are_looked_for_if_asked(host, checkout):
    asked = values(cause_minutes=20, inconclusive="fail")
    assert run(host, checkout, asked)[0] == 0
    assert "--cause-minutes=20" in calls(checkout)[-1]["argv"]
    for status in (0, 1, 2, 3):
        assert run(host, checkout, asked, "plumb-nightly", {"history": status})[0] == status
        argv = calls(checkout)[-1]["argv"]
        assert argv == ["history", "--json", "--confirm", "--cause-minutes=20"]
        cli._parser(argv).parse_args(argv)


def test_the_night_of_an_application_measures_what_the_gate_does(checkout):
    (checkout / ".plumbline").symlink_to(".venv")
    night = values(site="here", partition="cpu", stack="module:mpi", application="code/plumb.yaml", cause_minutes=20)
    job = ["bash", "plumbline/extras/ci/job.sh", "nightly"]
    assert subprocess.run(job, cwd=checkout, env={**os.environ, **night.variables()}, check=False).returncode == 0
    _, measured, followed = (call["argv"] for call in calls(checkout))
    where = ["--application=code/plumb.yaml", "--site=here", "--partition=cpu"]
    assert measured == ["run", "--stack=mpi", *where]
    assert followed == ["history", "--json", "--confirm", "--cause-minutes=20", where[0]]
    for argv in (measured, followed):
        cli._parser(argv).parse_args(argv)


@HOSTS
def test_the_night_measures_and_follows(host, checkout, tmp_path):
    results = str(tmp_path / "kept")
    found = run(host, checkout, values(site="here", partition="cpu", profile="full", results=results), "plumb-nightly")
    assert found[0] == 0, found[1]
    assert [call["argv"] for call in calls(checkout)] == [
        [f"--results={results}", "campaign", "--profile", "full", "--", "--system=here:cpu"],
        [f"--results={results}", "history", "--json"],
    ]
    for call in calls(checkout):
        cli._parser(call["argv"]).parse_args(call["argv"])
    assert (checkout / "plumb-ci/history.jsonl").read_text() == '{"series": "a"}\n'


@HOSTS
@pytest.mark.parametrize(("said", "status"), [
    ({"history": 1}, 2), ({"campaign": 1}, 1), ({"campaign": 1, "history": 1}, 1), ({"history": 3}, 3),
    ({"silent": True}, 3),
])  # fmt: skip
def test_the_status_of_a_night(host, checkout, said, status):
    assert run(host, checkout, values(inconclusive="fail"), "plumb-nightly", said)[0] == status
    if status == 2:
        tolerated = run(host, checkout, values(), "plumb-nightly", said)[0]
        assert tolerated == (0 if host is github else 2)


@HOSTS
@pytest.mark.parametrize(
    ("said", "status"), [({}, 0), ({"publish": 1}, 0), ({"history": 1}, 2), ({"campaign": 1}, 1), ({"publish": 2}, 3)]
)
def test_a_night_publishes_whatever_it_found(host, checkout, tmp_path, said, status):
    results = str(tmp_path / "kept")
    night = values(results=results, pages=True, inconclusive="fail")
    assert run(host, checkout, night, "plumb-nightly", said)[0] == status
    argv = calls(checkout)[-1]["argv"]
    assert argv == [f"--results={results}", "publish", "plumb-ci/pages"]
    cli._parser(argv).parse_args(argv)
    if host is gitlab and status != 3:
        assert run(host, checkout, night, "pages") == (0, "")
        assert (checkout / "public" / "index.html").read_text() == "pages"


def test_nothing_to_publish_is_no_empty_site(checkout):
    status, said = run(gitlab, checkout, values(pages=True), "pages")
    assert status == 3
    assert "the nightly job made none" in said
    assert not (checkout / "public").exists()


def test_an_unknown_job_is_refused(checkout):
    words = ["bash", "plumbline/extras/ci/job.sh", "deploy"]
    answer = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)
    assert (answer.returncode, "usage" in answer.stderr) == (3, True)
