"""The runner of GitLab's pipelines that others wrote (gitlab-ci-local; tests/data/npm has its lock), as fixtures."""

import hashlib
import shutil
import subprocess

import pytest

from plumbline.base import paths

NPM = paths.root() / "tests/data/npm"


@pytest.fixture(scope="session")
def modules():
    """The folder of the programs, installed once for each lock."""
    for program in ("npm", "node"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    lock = (NPM / "package-lock.json").read_bytes()
    place = paths.build() / "gitlab-ci-local" / hashlib.sha256(lock).hexdigest()[:16]
    found = place / "node_modules"
    if not (found / ".bin/gitlab-ci-local").exists():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(NPM, place)
        install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress"]
        done = subprocess.run(install, cwd=place, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            shutil.rmtree(place)
            pytest.skip(f"the programs cannot be installed: {done.stderr.strip().splitlines()[0]}")
    return found


def variables(source, base, host):
    """Those that GitLab gives a pipeline for the merge request on the commit ``base``."""
    return {
        "CI_PIPELINE_SOURCE": source, "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_MERGE_REQUEST_IID": "12",
        "CI_PROJECT_ID": "7", "CI_API_V4_URL": f"http://127.0.0.1:{host.server_port}/api/v4",
    }  # fmt: skip


def for_the_comment(home, token):
    """Give the job that posts comments the ``token``, as a project's settings do by the scope of a variable."""
    file = home / ".gitlab-ci-local" / "variables.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"global: {{PLUMB_COMMENT_TOKEN: {{type: variable, values: {{plumb-comment: {token}}}}}}}\n")


@pytest.fixture(scope="session")
def runner(modules):
    """The runner of GitLab's pipelines."""
    for program in ("rsync", "gawk"):
        if shutil.which(program) is None and not (program == "gawk" and shutil.which("awk")):
            pytest.skip(f"{program} is not installed")
    return modules / ".bin/gitlab-ci-local"
