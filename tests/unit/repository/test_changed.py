"""``make check CHANGED=…`` leaves out no test that a change can break."""

import subprocess
from pathlib import Path

import changed
import pytest
from own_code import git

from plumbline.base import paths


@pytest.fixture(scope="module")
def selection():
    return changed.Selection()


@pytest.mark.parametrize(("path", "chosen", "left"), [
    ("plumbline/gate/live.py", "tests/unit/gate/test_gate_measure.py", "tests/unit/parsers/test_parsers_imb.py"),
    (
        "plumbline/judge/compare.py",
        "tests/unit/show/compare/test_compare.py",
        "tests/unit/host/topology/test_bind_exec.py",
    ),
    ("plumbline/judge/compare.py", "tests/golden/test_commands.py", "tests/golden/test_plans.py"),
    ("plumbline/extras/accept/verdict.py", "tests/golden/test_commands.py", "tests/golden/test_plans.py"),
    ("plumbline/base/units.py", "tests/unit/judge/test_outliers.py", "tests/unit/repository/test_untouched.py"),
    (
        "plumbline/extras/labs/declared/R8.yaml",
        "tests/unit/extras/labs/test_labs.py",
        "tests/unit/gate/test_gate_fixed.py",
    ),
    ("plumbline/gate/gone.py", "tests/unit/gate/test_gate_setup.py", "tests/unit/parsers/test_parsers_imb.py"),
    (
        "custom-kernels/check/judge.c",
        "tests/unit/extras/nodes/health/test_check_runs.py",
        "tests/unit/gate/test_gate_fixed.py",
    ),
    ("custom-kernels/bind/plan.c", "tests/unit/host/topology/test_bind_exec.py", "tests/unit/base/test_csv_input.py"),
    ("tests/support/samples.py", "tests/unit/judge/test_outliers.py", "tests/unit/repository/test_untouched.py"),
    ("tests/unit/gate/test_gate_fixed.py", "tests/unit/gate/test_gate_fixed.py", "tests/golden/test_commands.py"),
    ("reframe-tests/osu.py", "tests/golden", "tests/unit/gate/test_gate_fixed.py"),
    ("spack-env/versions.yaml", "tests/unit/extras/spack", "tests/unit/gate/test_gate_fixed.py"),
])  # fmt: skip
def test_a_change_runs_the_tests_of_what_uses_it_and_no_others(selection, path, chosen, left):
    tests = selection.tests([path])
    assert chosen in tests
    assert left not in tests


def test_a_slow_file_is_chosen_by_what_it_uses_itself(selection):
    name = "tests/unit/gate/test_gate_commands.py"
    assert name in selection.tests(["plumbline/gate/commands.py"])
    assert name in selection.tests([name])
    assert name not in selection.tests(["plumbline/statistics/basic.py"])
    assert name in selection.tests(["plumbline/statistics/basic.py"], every=True)


def test_what_everything_depends_on_runs_everything(selection):
    assert selection.tests(["docs/gate.md", "pyproject.toml"]) == list(changed.TESTED)


def test_only_files_of_the_top_folder_have_no_owner():
    command = ["git", "-C", paths.root(), "ls-files"]
    tracked = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    starts = [*(start for start, _ in changed.OWNERS), *changed.EVERYTHING, *changed.TESTED]
    starts += ["plumbline/", "custom-kernels/", "tests/data/", "tests/support/"]
    assert [path for path in tracked if "/" in path and not path.startswith(tuple(starts))] == [
        "tests/bare", "tests/lint.sh", "tests/mutants.py", "tests/nightly.sh", "tests/two-nodes",
    ]  # fmt: skip


def test_owners_are_there():
    for start, tests in changed.OWNERS:
        assert [path for path in (start, *tests) if not (paths.root() / path).exists()] == [], start


def test_every_test_is_chosen_by_a_change_of_something(selection):
    """It imports what is tested, directly or by its helpers, or is one that an owner names."""
    owned = tuple({test for _, tests in changed.OWNERS for test in tests})
    free = [
        name
        for name in selection.files
        if Path(name).name.startswith("test_") and not name.startswith(owned)
        if not any(module.startswith("plumbline") for module in selection.uses(name))
    ]
    assert [name for name in free if "custom-kernels" not in (paths.root() / name).read_text(encoding="utf-8")] == []


def test_no_commit_and_a_wrong_one(monkeypatch, tmp_path):
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "a")
    with pytest.raises(subprocess.CalledProcessError):
        changed.changes("nosuch")
    (tmp_path / "new").touch()
    assert changed.changes("yes") == ["new"]


def test_modules_of_the_tests_have_names_of_their_own():
    """Tests put folders on the path of modules: of two with one name, the order of tests would choose."""
    others = {"testbed", "foreign", "data"}  # a package, and programs
    files = [file for file in (paths.root() / "tests").rglob("*.py") if not others & set(file.parts)]
    names = [file.stem for file in files if file.stem not in ("conftest", "__init__")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
