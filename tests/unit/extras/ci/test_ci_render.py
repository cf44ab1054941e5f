"""``plumb ci``: what the files say, that both hosts would read them, and what is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from plumbline.base.errors import PlumbError
from plumbline.commands import cli
from plumbline.extras.ci import pipelines

SCHEMAS = {"gitlab": "vendor.gitlab-ci", "github": "vendor.github-workflows"}


def plumb_ci(*arguments):
    words = ["ci", *map(str, arguments)]
    args = cli._parser(words).parse_args(words)
    if args.checkout:
        job = args.checkout / "plumbline/extras/ci/job.sh"
        job.parent.mkdir(parents=True, exist_ok=True)
        job.touch()
    return args.run(args)


def values(**changes):
    return pipelines.Values(**{"tags": ("hpc", "bench"), **changes})


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_host_would_read_it(kind, tmp_path):
    pytest.importorskip("check_jsonschema")
    extras = [
        (),
        ("--comment", "--inconclusive", "fail"),
        ("--test", "a: b # c", "--site", "x", "--partition", "y"),
        ("--pages",),
    ]
    files = []
    for number, extra in enumerate(extras):
        plumb_ci(kind, "--tags", "hpc", "--checkout", tmp_path / str(number), *extra)
        files.append(tmp_path / str(number) / pipelines.FILES[kind])
    spoiled = [file.with_name(f"spoiled-{file.name}") for file in files]
    for file, copy in zip(files, spoiled, strict=True):
        copy.write_text(file.read_text().replace("when: always", "when: sometimes").replace("runs-on:", "runs-off:"))
    check = [sys.executable, "-m", "check_jsonschema", "-v", "-o", "json", "--builtin-schema", SCHEMAS[kind]]
    answer = subprocess.run([*check, *files, *spoiled], capture_output=True, text=True, check=False)
    assert answer.returncode == 1, answer.stderr
    report = json.loads(answer.stdout)
    assert {Path(error["filename"]) for error in report["errors"]} == {*spoiled}, answer.stdout
    assert report["parse_errors"] == []
    assert {Path(name) for name in report["successes"]} == {*files}


def test_a_profile_is_no_option_for_an_application(tmp_path, monkeypatch):
    text = "application: toy\nprograms: {p: {command: [/bin/true], figures: {t: {wall: true}}}}\n"
    (tmp_path / "plumb.yaml").write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlumbError, match="--profile is for campaigns of the suite"):
        plumb_ci("gitlab", "--tags", "hpc", "--profile", "full")


def test_actions_are_pinned_by_commit():
    text = pipelines.github(values(comment=True, pages=True))
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert len(uses) == 7
    for action, release in uses:
        assert re.fullmatch(
            r"actions/(checkout|upload-artifact|download-artifact|upload-pages-artifact|deploy-pages)@[0-9a-f]{40}",
            action,
        )
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", release)


def test_the_workflow_may_read_and_nothing_else():
    document = yaml.safe_load(pipelines.github(values()))
    assert document["permissions"] == {}
    assert set(document["on"]) == {"pull_request", "schedule", "workflow_dispatch"}  # never pull_request_target
    for job in document["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
    assert "secrets" not in pipelines.github(values(comment=True))
    assert "head.repo.full_name == github.repository" in document["jobs"]["gate"]["if"]


def test_only_the_comment_has_a_token():
    jobs = yaml.safe_load(pipelines.github(values(comment=True)))["jobs"]
    assert [name for name, job in jobs.items() if "token" in str(job)] == ["comment"]
    assert [name for name, job in jobs.items() if "write" in job["permissions"].values()] == ["comment"]
    job = jobs["comment"]
    assert (job["permissions"], job["needs"]) == ({"pull-requests": "write"}, "gate")
    assert job["runs-on"] == "ubuntu-latest"
    assert [step.get("uses", "own").partition("@")[0] for step in job["steps"]] == ["actions/download-artifact", "own"]
    checkouts = [step["with"] for step in jobs["gate"]["steps"] if "checkout" in step.get("uses", "")]
    assert all(given["persist-credentials"] is False for given in checkouts)
    asked = values(comment=True, comment_tags=("safe",))
    assert yaml.safe_load(pipelines.github(asked))["jobs"]["comment"]["runs-on"] == ["safe"]
    posting = yaml.safe_load(pipelines.gitlab(asked))["plumb-comment"]
    assert (posting["tags"], posting["environment"]["name"]) == (["safe"], "plumb-comment")
    assert posting["variables"] == {"GIT_STRATEGY": "none"}
    assert "extends" not in posting
    for kind in SCHEMAS:
        assert "omment" not in str(yaml.safe_load(pipelines.RENDER[kind](values())))


def test_only_the_job_of_the_pages_may_publish_and_it_runs_nothing_of_ours():
    jobs = yaml.safe_load(pipelines.github(values(pages=True)))["jobs"]
    assert [name for name, job in jobs.items() if "pages" in job["permissions"]] == ["pages"]
    assert [set(step) for step in jobs["pages"]["steps"]] == [{"id", "uses"}]
    assert jobs["nightly"]["steps"][-1]["with"] == {"path": "plumb-ci/pages/"}
    assert "pages" not in yaml.safe_load(pipelines.github(values()))["jobs"]


def test_gitlab_publishes_by_the_job_called_pages():
    document = yaml.safe_load(pipelines.gitlab(values(pages=True)))
    for one in (values(pages=True), values(pages=True, application="plumb.yaml")):
        # the job installs nothing: it has none of the variables that say what
        script = yaml.safe_load(pipelines.gitlab(one))["pages"]["script"]
        assert script[1:] == ["rm -rf public", "mv plumb-ci/pages public"]
    assert document["pages"]["artifacts"] == {"paths": ["public"]}
    assert document["pages"]["needs"] == ["plumb-nightly"]
    assert document["pages"]["rules"] == [{**document["plumb-nightly"]["rules"][0], "when": "always"}]
    assert "pages" not in yaml.safe_load(pipelines.gitlab(values()))


def test_what_runs_is_the_same_for_all_values():
    def scripts(one):
        github, gitlab = yaml.safe_load(pipelines.github(one)), yaml.safe_load(pipelines.gitlab(one))
        steps = [step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step]
        return steps + [line for name in ("plumb-gate", "plumb-nightly") for line in gitlab[name]["script"]]

    assert scripts(values()) == scripts(values(test="x; rm -rf $HOME", stack="`id`", site="$(id)", results="a'\"b"))


def test_gitlab_expands_no_value():
    variables = yaml.safe_load(pipelines.gitlab(values(test="$CI_JOB_TOKEN")))[".plumb"]["variables"]
    assert variables["PLUMB_CI_TEST"] == {"value": "$CI_JOB_TOKEN", "expand": False}
    assert all(value["expand"] is False for name, value in variables.items() if name.startswith("PLUMB_CI"))


@pytest.mark.parametrize(("changes", "message"), [
    ({"tags": ("$(id)",)}, "cannot be a runner's tag"),
    ({"tags": ("${{ x }}",)}, "cannot be a runner's tag"),
    ({"test": "${{ secrets.TOKEN }}"}, "expression of the pipeline"),
    ({"stack": "a\nb"}, "cannot be printed"),
    ({"site": "a\x1b[2J"}, "cannot be printed"),
    ({"results": "a\u202eb"}, "cannot be printed"),
    ({"cron": "17 2 * * *\n- x: y"}, "is not a schedule"),
    ({"minutes": 0}, "minutes"),
])  # fmt: skip
def test_what_a_pipeline_would_expand_is_refused(changes, message):
    with pytest.raises(PlumbError) as error:
        values(**changes)
    assert message in str(error.value)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_only_its_own_file_is_replaced(kind, tmp_path, capsys):
    file = tmp_path / pipelines.FILES[kind]
    assert plumb_ci(kind, "--tags", "hpc", "--checkout", tmp_path) == 0
    assert file.read_text().startswith(pipelines.MARK)
    assert plumb_ci(kind, "--tags", "other", "--checkout", tmp_path) == 0
    assert "other" in file.read_text()
    file.write_text("mine: true\n")
    with pytest.raises(PlumbError, match="did not write"):
        plumb_ci(kind, "--tags", "hpc", "--checkout", tmp_path)
    assert file.read_text() == "mine: true\n"
    assert "written: " in capsys.readouterr().out


def test_a_folder_that_is_no_checkout_gets_no_pipeline(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ci", "gitlab", "--tags", "hpc", "--checkout", str(tmp_path)]) == 2
    assert "this is no checkout of Plumbline, and no repository with a plumb.yaml" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / ".gitlab").write_text("")
    with pytest.raises(PlumbError, match="cannot write"):
        plumb_ci("gitlab", "--tags", "hpc", "--checkout", tmp_path)
