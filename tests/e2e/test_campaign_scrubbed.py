"""A campaign whose jobs start in an empty environment and in the home folder, as with PBS, Grid Engine and ssh."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import stored
import yaml

from plumbline.base import paths

pytestmark = pytest.mark.e2e
#: nothing of the caller's environment and folder is left, and a banner comes first
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do
    case $1 in -o | -l | -p) shift 2 ;; *) shift ;; esac
done
shift
echo "Welcome to node 4711" >&2
cd || exit
env -i HOME="$HOME" PATH=/usr/local/bin:/usr/bin:/bin bash -c "$*"
status=$?
[ -z "$LOSE" ] || rm -rf "$LOSE"
exit $status
"""
SCP = """#!/bin/bash
words=()
while (($#)); do
    case $1 in -o) shift ;; -r) ;; *) words+=("${1#*:}") ;; esac
    shift
done
target=${words[-1]}
unset 'words[-1]'
eval "cp -r ${words[*]} $target"
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All folders are those of the test; an ssh that forwards nothing reaches the partition."""
    shutil.copytree(paths.sites() / "local", tmp_path / "sites" / "local")
    shutil.copy(paths.sites() / "settings.py", tmp_path / "sites")
    file = tmp_path / "sites" / "local" / "site.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    for part in document["partitions"]:
        part |= {"scheduler": "ssh", "hosts": [socket.gethostname()], "stacks": ["mpich"]}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "mpich").symlink_to(paths.stacks() / "mpich")
    (tmp_path / "bin").mkdir()
    for name, text in (("ssh", SSH), ("scp", SCP), ("rsync", "#!/bin/sh\nexit 127\n")):
        (tmp_path / "bin" / name).write_text(text, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PLUMB_TOOLS", str(paths.tools()))
    for name in ("results", "sites", "stacks", "build"):
        monkeypatch.setenv(f"PLUMB_{name.upper()}", str(tmp_path / name))
    return tmp_path


def campaign(test: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).parent / "plumb"),
        "campaign",
        "--test",
        test,
        "--",
        "-S",
        "launches=1",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_records_of_jobs_without_an_environment_are_found(elsewhere: Path) -> None:
    done = campaign("osu_barrier.*placement=core")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 variant, 1 verified" in done.stdout
    (record,), damages = stored.read_all()
    assert damages == []
    assert f"campaign {record['campaign']}: " in done.stdout
    assert record["stack"]["name"] == "mpich"
    assert list((elsewhere / "results" / "local").glob("*.jsonl"))


def test_a_record_that_is_not_found_is_a_failure_with_the_reason(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that has a results folder of its own under the same name."""
    monkeypatch.setenv("LOSE", str(elsewhere / "results" / "local"))
    done = campaign("osu_barrier.*placement=core")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    why = r"^failed osu_barrier .*: record [0-9a-f]{12} is not in .*: does the job's node see"
    assert re.search(why, done.stdout, re.MULTILINE)
