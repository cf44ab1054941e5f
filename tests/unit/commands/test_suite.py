"""The state of the suite that a record names, and why it is not known."""

import subprocess

import pytest
from samples import record

from plumbline.base import git, paths
from plumbline.base.errors import PlumbError
from plumbline.gate import sides
from plumbline.records.model import convert
from plumbline.show import record as show
from plumbline.site.nodes import findings


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit in place of this checkout."""
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    (tmp_path / "file").write_text("1")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "file"], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    return tmp_path


def test_the_commit_and_changes_are_named(checkout):
    found = git.suite_state()
    assert (len(found["commit"]), found["dirty"], "unknown" in found) == (40, False, False)
    (checkout / "file").write_text("2")
    assert git.suite_state()["dirty"] is True


def test_a_checkout_of_another_owner_is_said_with_the_cure(checkout, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # what git's own tests use
    found = git.suite_state()
    assert (found["commit"], found["dirty"]) == (None, None)
    assert "dubious ownership" in found["unknown"]
    cure = f"git config --global --add safe.directory {checkout}"
    assert found["unknown"].endswith(cure)
    assert cure in show.text(convert(record(suite=found)))
    (finding,) = [item for item in findings.own_checkout() if item.bad]
    assert finding.cure.endswith(cure)


@pytest.mark.parametrize("ask", [lambda: sides.resolve("candidate", "HEAD", None), git.commit])
def test_who_needs_a_commit_is_told_why_git_refuses(checkout, monkeypatch, ask):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(PlumbError, match=r"dubious ownership.*safe\.directory"):
        ask()


def test_a_name_that_is_no_commit_is_none(checkout):
    assert git.commit("nosuch") is None
    assert git.commit("--help") is None
    assert len(git.commit("HEAD") or "") == 40


def test_a_repository_around_the_checkout_is_not_taken_for_it(checkout, monkeypatch):
    below = checkout / "plumbline"
    below.mkdir()
    monkeypatch.setattr(paths, "root", lambda: below)
    assert git.suite_state()["commit"] is None
    assert "unknown" not in git.suite_state()
    assert git.commit() is None


def test_a_host_without_git_is_said(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    assert "is git installed?" in git.suite_state()["unknown"]
