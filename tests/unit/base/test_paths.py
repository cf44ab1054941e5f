"""The folders of a job: named by options, whatever the environment and the working directory."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import cli, records
from plumbline.gate.setup import GATE
from plumbline.measure import jobs, session

FOLDERS = (paths.results, paths.sites, paths.stacks, paths.tools, paths.build)


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders of the test by variables, one of them relative."""
    monkeypatch.chdir(tmp_path)
    for name in paths.FOLDERS:
        monkeypatch.setenv(f"PLUMB_{name.upper()}", name if name == "results" else str(tmp_path / name))
    return [tmp_path / name for name in paths.FOLDERS]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a scheduler does to variables and folder of the submitter."""
    for name in paths.FOLDERS:
        monkeypatch.delenv(f"PLUMB_{name.upper()}")
    monkeypatch.chdir("/")


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], dict[str, str]]:
    """The folders that ``plumb OPTIONS list`` uses while it runs."""

    def ask(options: list[str]) -> dict[str, str]:
        seen: list[dict[str, str]] = []
        monkeypatch.setattr(records.run_list, "run", lambda _: seen.append(paths.variables()) or 0)
        assert cli.main([*options, "list"]) == 0
        return seen[0]

    return ask


def test_options_name_the_folders_that_variables_chose(chosen, monkeypatch, used):
    options = paths.options()
    forget(monkeypatch)
    assert paths.results() == paths.root() / "results"
    assert list(used(options).values()) == [str(folder) for folder in chosen]
    assert paths.results() == paths.root() / "results"


def test_an_option_counts_before_the_variable(chosen, tmp_path, used):
    assert used(["--results", str(tmp_path / "other")])["PLUMB_RESULTS"] == str(tmp_path / "other")
    assert used([])["PLUMB_RESULTS"] == str(chosen[0])
    assert paths.results() == Path("results")


def test_the_job_of_a_gate_gets_the_folders(chosen, tmp_path, monkeypatch):
    begun = SimpleNamespace(circumstances={"nodes": None})
    monkeypatch.setattr(session.Kind, "peek", lambda kind, folder: begun)
    part = {"name": "cpu", "scheduler": "pbs"}
    seen: list[list[str]] = []
    monkeypatch.setattr(jobs, "run", lambda submission, say: seen.append(submission.command) or 0)
    assert GATE.in_job(tmp_path / "work", part, 2, ["--minutes", "5"], print) == 0
    options = [word for name, folder in zip(paths.FOLDERS, chosen, strict=True) for word in (f"--{name}", str(folder))]
    assert seen[0][1:] == [*options, "gate", "--resume", str(tmp_path / "work"), "--minutes", "5"]


def test_the_package_of_another_checkout_uses_its_own_folders(tmp_path):
    """As ``. A/activate; B/.venv/bin/plumb …`` does."""
    other = tmp_path / "other"
    (other / "plumbline" / "base").mkdir(parents=True)
    for name in ("__init__.py", "base/__init__.py", "base/errors.py", "base/paths.py"):
        shutil.copy(paths.root() / "plumbline" / name, other / "plumbline" / name)
    show = "from plumbline.base import paths; print(paths.root(), paths.results(), paths.binder())"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PLUMB_")}
    done = subprocess.run(
        ["bash", "-c", f". '{paths.root()}/activate'; '{sys.executable}' -c '{show}'"],
        env={**clean, "PYTHONPATH": str(other)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(other), str(other / "results"), str(other / "build/tools/bin/plumb-bind")]


def test_a_wheel_has_its_folders_in_plumb_home_and_a_checkout_does_not_read_it(tmp_path, monkeypatch):
    for name in paths.FOLDERS:
        monkeypatch.delenv(f"PLUMB_{name.upper()}", raising=False)
    monkeypatch.setenv("PLUMB_HOME", str(tmp_path / "own"))
    assert paths.home() == paths.suite() == paths.root()
    package = tmp_path / "plumbline"
    (package / "suite").mkdir(parents=True)
    monkeypatch.setattr(paths, "package", lambda: package)
    assert [found() for found in FOLDERS if found != paths.tools] == [
        tmp_path / "own" / name for name in ("results", "site-configs", "stacks", "build")
    ]
    assert paths.suite() == package / "suite"
    assert paths.tools() == package / "tools"
    assert paths.setup() == "plumb setup"
    monkeypatch.delenv("PLUMB_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert paths.home() == tmp_path / "data" / "plumbline"


def test_a_second_user_of_an_installation_is_told_what_to_set(tmp_path, monkeypatch):
    for name in paths.FOLDERS:
        monkeypatch.delenv(f"PLUMB_{name.upper()}", raising=False)
    root = paths.root()
    monkeypatch.setattr(paths, "_may_write", lambda folder: not folder.is_relative_to(root))
    own = "PLUMB_BUILD=$HOME/plumbline/build PLUMB_RESULTS=$HOME/plumbline/results"
    assert paths.to_name(root / "build/reframe/lock").endswith(f": export {own}")
    assert paths.to_name(root / "stacks/.mpich.lock").endswith(f": export PLUMB_STACKS=$HOME/plumbline/stacks {own}")
    assert paths.to_name(tmp_path) == ""
    monkeypatch.setenv("PLUMB_BUILD", str(tmp_path / "build"))
    assert paths.to_name(root / "results/local").endswith(": export PLUMB_RESULTS=$HOME/plumbline/results")
    assert paths.tools() == root / "build/tools"  # those of the installation
    (tmp_path / "build/tools").mkdir(parents=True)
    assert paths.tools() == tmp_path / "build/tools"


def test_a_folder_that_cannot_be_written_is_one_line_with_the_variables(monkeypatch):
    """By whatever a command writes first: a lock, a file, a folder."""
    monkeypatch.setattr(paths, "_may_write", lambda folder: False)
    place = paths.build() / "reframe" / "lock"

    def refuse(*_: object, **__: object) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(place))

    for name in ("lock", "replace"):
        monkeypatch.setattr(files, name, refuse)
    with pytest.raises(PlumbError, match="export PLUMB_"), files.reserved(place, "another", "wait"):
        pass
    with pytest.raises(PlumbError, match="export PLUMB_"):
        files.write("the page", place, "text")
    with pytest.raises(PlumbError, match="export PLUMB_"), files.writing("the stage", place):
        refuse()
    assert "export PLUMB_" in str(cli._unexpected(PermissionError(13, "Permission denied", str(place))))


@pytest.mark.parametrize(
    ("data", "home"), [("relative", "/home/u/.local/share/plumbline"), ("/data", "/data/plumbline")]
)
def test_a_relative_data_folder_is_ignored(data, home, monkeypatch):
    monkeypatch.setattr(paths, "is_installed", lambda: True)
    monkeypatch.delenv("PLUMB_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", data)
    monkeypatch.setenv("HOME", "/home/u")
    assert str(paths.home()) == home


def test_a_wheel_of_a_user_without_a_home_asks_for_a_folder(monkeypatch):
    def refuse() -> NoReturn:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(paths, "is_installed", lambda: True)
    for name in ("PLUMB_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(paths.Path, "home", refuse)
    with pytest.raises(PlumbError, match="export PLUMB_HOME=FOLDER"):
        paths.home()


@pytest.mark.parametrize(("folder", "home", "place"), [
    ("/state", "/home/u", "/state"), ("", "/home/u", "/home/u/.local/state"), ("x", "/home/u", "/home/u/.local/state"),
    ("", None, f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state"),
])  # fmt: skip
def test_a_folder_of_the_user_is_never_the_systems(folder, home, place, monkeypatch):
    """cron and services of systemd start without HOME."""
    monkeypatch.setenv("XDG_STATE_HOME", folder)
    if home:
        monkeypatch.setenv("HOME", home)
    else:
        monkeypatch.delenv("HOME")
    assert str(paths.of_user("XDG_STATE_HOME", ".local/state")) == place
