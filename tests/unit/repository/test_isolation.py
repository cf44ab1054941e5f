"""What a user's shell exports leads no script and no Python of ours elsewhere: CDPATH, PYTHONPATH, modules here."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from plumbline.base import git, paths

ROOT = paths.root()
SHEBANG = re.compile(r"#!.*\b(ba|da|z)?sh\b")
#: where a shell script changes its folder, and not as a word of a sentence
CHANGE = re.compile(r"(?<![\w-])cd(?= +(?:-- +)?[\"'${])")
#: our own Python as the first word of a command that does not take it from :func:`plumbline.base.paths.python`
STARTED = re.compile(r'sys\.executable, "(?!-I")')


def shell_scripts() -> list[Path]:
    """The tracked shell scripts, but for those that golden tests compare with."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in tracked.splitlines() if not name.startswith("tests/golden/")]
    texts = [file for file in files if file.suffix in ("", ".sh", ".j2") and file.is_file()]
    return [file for file in texts if file.name == "activate" or SHEBANG.match(file.read_text(encoding="utf-8"))]


@pytest.mark.skipif(git.top(ROOT) is None, reason="needs the list of tracked files")
def test_no_shell_script_follows_the_search_path_of_cd():
    scripts = shell_scripts()
    assert {"activate", "job.sh", "run", "bootstrap.sh", "health.sh"} <= {file.name for file in scripts}
    wrong = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in scripts
        for line in file.read_text(encoding="utf-8").splitlines()
        if not line.lstrip().startswith("#") and CHANGE.search(line.replace("CDPATH='' cd -- ", ""))
    ]
    assert not wrong


def test_a_script_finds_its_folder_whatever_cdpath_is(tmp_path):
    script = tmp_path / "here" / "plumbline" / "schedulers" / "health" / "health.sh"
    script.parent.mkdir(parents=True)
    script.write_text((paths.package() / "schedulers/health/health.sh").read_text(encoding="utf-8"))
    (tmp_path / "elsewhere" / "plumbline" / "schedulers" / "health").mkdir(parents=True)
    (script.parent / "scheduler-toy.sh").write_text('busy_jobs() { :; }\necho "found by $folder"\n')
    around = {**os.environ, "CDPATH": str(tmp_path / "elsewhere")}
    command = ["sh", script.relative_to(tmp_path / "here"), "toy", "jobs", "n1"]
    done = subprocess.run(command, cwd=tmp_path / "here", env=around, capture_output=True, text=True, check=False)
    assert f"found by {script.parent}\n" in done.stdout, done.stderr


def test_our_own_python_is_started_isolated():
    wrong = [
        f"{file.relative_to(ROOT)}: {found.group()}"
        for file in sorted(paths.package().rglob("*.py"))
        for found in STARTED.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not wrong
