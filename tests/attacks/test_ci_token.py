"""The token of the comment is out of reach of a merge request: its code, its files, and the text that it leaves."""

import os
import subprocess
import sys

import pytest
import yaml
from request_host import TOKEN, github, gitlab

from plumbline.base import paths
from plumbline.extras.ci import comment, pipelines

CANARY = "import pathlib, os; pathlib.Path(os.environ['CANARY']).write_text(str(dict(os.environ)))\n"


def posting(kind, tmp_path):
    """The command of the job that posts, as its runner starts it in ``tmp_path``."""
    document = yaml.safe_load(pipelines.RENDER[kind](pipelines.Values(tags=("hpc",), comment=True)))
    if kind == "gitlab":
        return ["bash", "-e", "-c", "\n".join(document["plumb-comment"]["script"])]
    step = document["jobs"]["comment"]["steps"][-1]
    script = tmp_path.parent / "step"
    script.write_text(step["run"])
    return [word.replace("{0}", str(script)) for word in step["shell"].split()]


def run(kind, folder, host):
    path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"  # noqa: PTH120
    around = {
        "PATH": path,
        "HOME": str(folder),
        "CANARY": str(folder / "canary"),
        **{"gitlab": gitlab, "github": github}[kind](host),
    }
    command = posting(kind, folder)
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, timeout=60, check=False)
    assert TOKEN not in done.stdout + done.stderr
    assert not (folder / "canary").exists()
    return done


@pytest.fixture
def left(tmp_path):
    """What a merge request may have left where the comment is posted."""
    folder = tmp_path / "job"
    modules = [f"{name}.py" for name in ("sitecustomize", "usercustomize", "json", "re", "http", "typing", "plumbline")]
    modules += [f"plumbline/{name}.py" for name in ("__init__", "ci/__init__", "ci/__main__", "ci/comment")]
    user = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    modules += [f"{user}/{name}.py" for name in ("sitecustomize", "usercustomize", "json")]
    for name in modules:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CANARY)
    (folder / user / "evil.pth").write_text(CANARY)
    (folder / "plumb-ci").mkdir()
    (folder / comment.FILE).write_text("**PASS** @all\n/merge\n/approve \u202e\n")
    return folder


@pytest.mark.parametrize("kind", ["gitlab", "github"])
def test_no_file_of_a_merge_request_runs_beside_the_token(kind, left, host):
    done = run(kind, left, host)
    assert (done.returncode, done.stdout) == (0, "plumb ci: comment posted\n"), done.stderr
    body = host.asked[-1][3]["body"]
    assert "**PASS**" in body
    assert "@all" not in body
    assert not any(line.startswith("/") for line in body.splitlines())


@pytest.mark.parametrize("kind", ["gitlab", "github"])
@pytest.mark.parametrize("way", ["file", "folder", "fifo", "environ"])
def test_nothing_but_the_gates_text_is_posted(kind, way, left, host, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "gate.md").write_text("a secret of the runner")
    (left / comment.FILE).unlink()
    if way == "folder":
        (left / "plumb-ci").rmdir()
        (left / "plumb-ci").symlink_to(tmp_path / "private")
    elif way == "fifo":
        os.mkfifo(left / comment.FILE)
    else:
        target = {"file": tmp_path / "private" / "gate.md", "environ": "/proc/self/environ"}[way]
        (left / comment.FILE).symlink_to(target)
    done = run(kind, left, host)
    assert (done.returncode, done.stderr) == (3, "plumb ci: plumb-ci/gate.md is not a file of the gate's job\n")
    assert host.asked == []


@pytest.mark.parametrize("job", ["gate", "nightly"])
def test_a_job_that_runs_code_refuses_the_token(job, tmp_path):
    """Whatever it builds could read it."""
    done = subprocess.run(
        ["bash", paths.root() / "plumbline/extras/ci/job.sh", job], cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PLUMB_COMMENT_TOKEN": TOKEN, "PLUMB_CI_APPLICATION": "plumb.yaml"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "PLUMB_COMMENT_TOKEN is in reach of the code that is measured: give it the environment scope" in done.stderr
    assert TOKEN not in done.stderr


@pytest.mark.parametrize("kind", ["gitlab", "github"])
def test_the_job_of_an_application_starts_no_python_of_its_checkout(kind):
    asked = pipelines.Values(tags=("hpc",), application="plumb.yaml", install="file:///x.whl#sha256=0")
    lines = [line for line in pipelines.RENDER[kind](asked).splitlines() if "python" in line and "job.sh" not in line]
    assert len(lines) == 6
    assert [line for line in lines if "python -I" not in line and "python3 -I" not in line] == []
