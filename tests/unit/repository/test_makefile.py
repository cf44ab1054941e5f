"""Set-up files: Makefile, bootstrap, locks."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import slow

ROOT = Path(__file__).resolve().parents[3]
LOCKS = [
    ROOT / "requirements.txt",
    ROOT / "requirements-dev.txt",
    ROOT / "requirements-ptx.txt",
    ROOT / "requirements-zig.txt",
    *sorted((ROOT / "plumbline/stacks/wheels").glob("*.txt")),
]


def entries(lock):
    """Requirement lines with their hashes: (line, hashes)."""
    text = re.sub(r"^\s*#.*$", "", lock.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip():
            yield line.split("--hash=")[0].strip(), re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks_are_pinned_by_hash_and_name_no_place(lock):
    found = list(entries(lock))
    assert found
    for requirement, hashes in found:
        assert re.match(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+( ;.*)?$", requirement)
        assert hashes, requirement
    assert "://" not in lock.read_text()
    assert "index" not in lock.read_text()
    assert not re.search(r"(^|\s)/", lock.read_text())


def test_dev_lock_has_the_same_versions():
    dev = dict(entries(LOCKS[1]))
    assert {requirement.split(" ;")[0] for requirement, _ in entries(LOCKS[0])} <= {name.split(" ;")[0] for name in dev}


def test_source_archives_have_one_hash_each():
    found = dict(entries(ROOT / "plumbline/stacks/wheels/sources.txt"))
    assert {name.split("==")[0]: len(hashes) for name, hashes in found.items()} == {"mpi4py": 1, "reframe-hpc": 1}


def test_help_names_every_target():
    done = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    for target in phony:
        assert re.search(rf"^make {target}\s+\S", done.stdout, re.MULTILINE), target


def test_set_up_measures_ceilings_unless_told_otherwise():
    for words, value in ((), "yes"), (("CEILINGS=no",), "no"):
        command = ["make", "-C", str(ROOT), "-n", "-o", "venv", "setup", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"-e 'plumb_ceilings_measure={value}'" in done.stdout


def test_targets_do_not_run_beside_one_another(tmp_path):
    """What measures ceilings, and what changes the virtual environment, ends before the next begins."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    log = "#!/bin/sh\necho begin >>log; sleep 0.3; echo end >>log\n"
    for name in ("tests/lint.sh", ".venv/bin/mkdocs", ".venv/.stamp", ".venv/.stamp-dev"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(log)
        (tmp_path / name).chmod(0o755)
    words = ["make", "-j2", "-o", ".venv/.stamp-dev", "lint", "docs"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert (tmp_path / "log").read_text().split() == ["begin", "end"] * 2


def test_a_check_that_is_not_installed_is_no_success(tmp_path):
    """But shellcheck, which has no wheel for aarch64."""
    for name in ("bash", "env", "dirname", "find", "grep", "mktemp", "rm", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    command = [str(ROOT / "tests/lint.sh")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split(": ")[:2]) == (1, ["lint", "failed"]), done.stderr
    assert "mypy" in done.stderr
    assert "shellcheck" not in done.stderr


def bootstrap(tmp_path, version):
    """Run bootstrap.sh with a Python that claims to be ``version``."""
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *platform*) echo {version};; *) exit 1;; esac\n')
    fake.chmod(0o755)
    script = tmp_path / "playbooks" / "bootstrap.sh"
    script.parent.mkdir()
    script.write_text((ROOT / "playbooks/bootstrap.sh").read_text())
    words, around = ["bash", str(script), "requirements.txt"], {**os.environ, "PYTHON": str(fake)}
    return subprocess.run(words, capture_output=True, text=True, env=around, check=False)


def test_old_python_is_refused_in_one_line(tmp_path):
    done = bootstrap(tmp_path, "3.9.2")
    assert done.returncode == 2, done
    assert "3.9.2" in done.stderr
    assert "3.10 or newer" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("name", ["with blank", "with\ttab", "with:colon", "with\nline"])
def test_a_path_that_nothing_can_be_installed_in_is_refused_in_one_line(tmp_path, name):
    (tmp_path / name).mkdir()
    done = bootstrap(tmp_path / name, "3.11.0")
    assert done.returncode == 2, done
    assert done.stderr.startswith("plumb: the path of this checkout has a blank or a colon (")
    assert not (tmp_path / name / ".venv").exists()


def test_missing_python_is_one_line(tmp_path):
    environment = {**os.environ, "PYTHON": "no-such-python"}
    script = ROOT / "playbooks/bootstrap.sh"
    done = subprocess.run(["bash", str(script), "x"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2, done
    assert "no-such-python" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_make_check_leaves_out_is_there_and_a_change_of_it_runs_it():
    """The name of a file that was renamed would mark nothing."""
    assert [name for name in slow.FILES if not (ROOT / name).is_file()] == []
    for words, marks in ((), "not long and not slow"), (("CHANGED=HEAD",), "not long"):
        done = subprocess.run(["make", "-n", "check", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        assert f" -m '{marks}' " in done.stdout
