"""A campaign whose jobs start in an empty environment and in the home folder, as with PBS, Grid Engine and ssh."""

import os
import re
import socket
import subprocess
from pathlib import Path

import own_site
import pytest
import stored
from processes import ended, succeeded

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
    own_site.copy(tmp_path, scheduler="ssh", hosts=[socket.gethostname()], stacks=["mpich"])
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
    return ended([paths.program("plumb"), "campaign", "--test", test, "--", "-S", "launches=1"], timeout=300)


def test_records_of_jobs_without_an_environment_are_found(elsewhere):
    done = succeeded(campaign("osu_barrier.*placement=core"))
    assert "1 variant, 1 verified" in done.stdout
    (record,) = stored.sound()
    assert f"campaign {record['campaign']}: " in done.stdout
    assert record["stack"]["name"] == "mpich"
    assert list((elsewhere / "results" / "local").glob("*.jsonl"))


def test_a_record_that_is_not_found_is_a_failure_with_the_reason(elsewhere, monkeypatch):
    """A node that has a results folder of its own under the same name."""
    monkeypatch.setenv("LOSE", str(elsewhere / "results" / "local"))
    done = campaign("osu_barrier.*placement=core")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    why = r"^failed osu_barrier .*: record [0-9a-f]{12} is not in .*: does the job's node see"
    assert re.search(why, done.stdout, re.MULTILINE)
