"""The states of a repository that people have: the files as they lie there are one commit, and a copy has them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.base import git
from plumbline.base.errors import PlumbError
from plumbline.measure.application import model


def of_git(folder: Path, *words: str, refused: bool = False) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=not refused, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)
    of_git(folder, "add", "-A")
    of_git(folder, "commit", "-qm", "as it is")


@pytest.fixture
def code(tmp_path) -> Path:
    """A repository with two commits of ``file`` and of a folder."""
    folder = tmp_path / "code"
    (folder / "part").mkdir(parents=True)
    of_git(folder, "init", "-q", "-b", "main")
    (folder / "part" / "one").write_text("1")
    commit(folder, file="first\n")
    commit(folder, file="second\n")
    return folder


def copied(folder: Path, target: Path) -> str:
    """The text of ``file`` in a copy of ``folder`` as it is; nothing in ``folder`` changes."""
    asked = [("status", "--porcelain"), ("show-ref",), ("diff",)]
    before = [of_git(folder, *words) for words in asked]
    git.check_out(folder, git.present(folder), target)
    assert [of_git(folder, *words) for words in asked] == before
    return (target / "file").read_text()


def touched(folder: Path) -> None:
    os.utime(folder / "file", (1, 1))


def detached(folder: Path) -> None:
    of_git(folder, "checkout", "-q", "--detach", "HEAD~1")


def test_a_touched_file_is_no_change(code):
    touched(code)
    head = git.commit("HEAD", code)
    assert git.present(code) == head
    (code / "plumb.yaml").write_text("application: code\nprograms: {code: {command: a, figures: {t: {wall: true}}}}")
    state = model.present_code(code / "plumb.yaml")
    assert (state.commit, state.changed) == (head, False)


def test_changes_are_one_commit_of_no_branch_whoever_asks(code, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # no user.name there
    (code / "file").write_text("third\n")
    assert copied(code, tmp_path / "copy") == "third\n"
    state = git.present(code)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "another")
    assert git.present(code) == state != git.commit("HEAD", code)


def test_a_change_of_the_same_size_in_the_second_of_the_commit_counts(code, tmp_path):
    of_git(code, "config", "core.trustctime", "false")
    touched(code)
    of_git(code, "update-index", "--refresh")
    (code / "file").write_text("SECOND\n")
    touched(code)
    os.utime(code / ".git" / "index", (1, 1))
    git.check_out(code, git.present(code), tmp_path / "copy")
    assert (tmp_path / "copy" / "file").read_text() == "SECOND\n"


def test_a_detached_head(code, tmp_path):
    detached(code)
    touched(code)
    assert copied(code, tmp_path / "copy") == "first\n"


def test_a_merge_with_a_conflict_is_measured_as_its_files_are(code, tmp_path):
    of_git(code, "checkout", "-qb", "side", "HEAD~1")
    commit(code, file="side\n")
    of_git(code, "merge", "main", refused=True)
    assert copied(code, tmp_path / "conflict").startswith("<<<<<<<")
    (code / "file").write_text("merged\n")
    assert copied(code, tmp_path / "copy") == "merged\n"


def test_a_file_that_is_only_intended_to_be_added_counts(code, tmp_path):
    (code / "new").write_text("new")
    of_git(code, "add", "--intent-to-add", "new")
    copied(code, tmp_path / "copy")
    assert (tmp_path / "copy" / "new").read_text() == "new"


@pytest.mark.parametrize("change", ["first\n", "third\n"])
def test_a_shallow_clone(code, tmp_path, change):
    of_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{code}", "shallow")
    (tmp_path / "shallow" / "file").write_text(change)
    assert copied(tmp_path / "shallow", tmp_path / "copy") == change


def test_a_worktree(code, tmp_path):
    of_git(code, "worktree", "add", "-q", str(tmp_path / "tree"), "HEAD~1")
    (tmp_path / "tree" / "file").write_text("third\n")
    assert copied(tmp_path / "tree", tmp_path / "copy") == "third\n"


def test_a_sparse_clone_without_all_files(code, tmp_path):
    of_git(code, "config", "uploadpack.allowFilter", "true")
    of_git(tmp_path, "clone", "-q", "--filter=blob:none", "--sparse", f"file://{code}", "sparse")
    assert copied(tmp_path / "sparse", tmp_path / "copy") == "second\n"
    assert not (tmp_path / "copy" / "part").exists()
    git.check_out(tmp_path / "sparse", str(git.commit("HEAD~1", tmp_path / "sparse")), tmp_path / "older")
    assert (tmp_path / "older" / "file").read_text() == "first\n"


def test_a_filter_that_is_not_installed_is_named_with_the_cure(code):
    (code / "file").write_text("third\n")
    (code / ".gitattributes").write_text("file filter=lfs")
    for name, value in (("clean", "no-such-lfs"), ("required", "true")):
        of_git(code, "config", f"filter.lfs.{name}", value)
    with pytest.raises(PlumbError, match=r"cannot run no-such-lfs.*install the program of this filter"):
        git.present(code)


def with_library(code: Path) -> Path:
    """``code`` with a submodule; returns the folder of its origin."""
    library = code.with_name("library")
    library.mkdir()
    of_git(library, "init", "-q")
    commit(library, text="first\n")
    of_git(code, "submodule", "--quiet", "add", str(library), "lib")
    of_git(code, "commit", "-qm", "with a library")
    return library


def test_changes_in_a_submodule_count_and_its_origin_is_not_needed(code, tmp_path):
    shutil.rmtree(with_library(code))
    (code / "lib" / "text").write_text("second\n")
    copied(code, tmp_path / "copy")
    assert (tmp_path / "copy" / "lib" / "text").read_text() == "second\n"
    assert of_git(code / "lib", "status", "--porcelain") == "M text"


def test_a_submodule_that_nobody_has_is_named_with_both_cures(code, tmp_path):
    shutil.rmtree(with_library(code))
    of_git(code, "submodule", "--quiet", "deinit", "--force", "lib")
    shutil.rmtree(code / ".git" / "modules")
    with pytest.raises(
        PlumbError, match=r"library.*submodule update --init, or git config submodule\.NAME\.update none"
    ):
        copied(code, tmp_path / "copy")
    of_git(code, "config", "submodule.lib.update", "none")
    assert copied(code, tmp_path / "without") == "second\n"


def test_no_hook_and_no_signature_of_the_user_comes_between(code, tmp_path, monkeypatch):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "post-checkout").chmod(0o755)
    settings = {"core.hooksPath": hooks, "log.showSignature": "true", "clone.defaultRemoteName": "theirs"}
    (tmp_path / "settings").write_text("")
    for name, value in settings.items():
        of_git(code, "config", "--file", str(tmp_path / "settings"), name, str(value))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    assert copied(code, tmp_path / "copy") == "second\n"


def test_a_repository_without_a_commit(tmp_path):
    of_git(tmp_path, "init", "-q")
    with pytest.raises(PlumbError, match=r"has no commit.*git commit what is to be measured"):
        git.present(tmp_path)


def test_of_another_owner_the_cure_names_the_repository_and_not_a_folder_in_it(code, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(PlumbError) as raised:
        git.top(code / "part")
    assert str(raised.value).endswith(f"git config --global --add safe.directory {code}")


def test_a_touched_file_of_a_repository_that_cannot_be_written_is_no_change(code, monkeypatch):
    touched(code)
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/proc/self")  # where not even root can write
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(code / ".git" / "objects"))
    head = of_git(code, "rev-parse", "HEAD")
    assert git.present(code) == head
    (code / "file").write_text("third\n")
    with pytest.raises(PlumbError, match="git refuses"):
        git.present(code)
