"""Settings that only root can change: set, set back, and set back by another process after a kill."""

import subprocess
import sys

import pytest

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.host import change

THP = "sys/kernel/mm/transparent_hugepage/enabled"


@pytest.fixture
def root(tmp_path):
    for name, text in ((THP, "always [madvise] never\n"), ("proc/sys/kernel/numa_balancing", "1\n")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "run").mkdir()
    return tmp_path


def test_what_was_set_is_set_back(root):
    with change.changing(root) as host:
        host.set({"thp": "never", "numa_balancing": "False"})
        assert (root / THP).read_text() == "never"
        assert (root / "proc/sys/kernel/numa_balancing").read_text() == "0"
        host.set({"thp": "always"})
        assert host.journal.exists()
    assert (root / THP).read_text() == "madvise"
    assert (root / "proc/sys/kernel/numa_balancing").read_text() == "1"
    assert not host.journal.exists()


def test_an_error_sets_back_too(root):
    def spoiled():
        with change.changing(root) as host:
            host.set({"thp": "never"})
            (root / "absent").read_text()

    with pytest.raises(FileNotFoundError):
        spoiled()
    assert (root / THP).read_text() == "madvise"


def test_nothing_is_written_where_nothing_changes(root):
    with change.changing(root) as host:
        host.set({"thp": "madvise"})
        assert not host.journal.exists()


def test_a_process_that_is_killed_leaves_what_the_next_sets_back(root):
    code = (
        f"import time, pathlib; from plumbline.host import change; host = change.Host(pathlib.Path({str(root)!r})); "
        "host.set({'thp': 'never'}); print('set', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "set\n"
        assert change.restore_left(root) == []  # it still runs
        with pytest.raises(PlumbError, match="has changed settings"), change.changing(root):
            pass
        child.kill()
        child.wait()
    assert (root / THP).read_text() == "never"
    assert change.restore_left(root) == [str(root / THP)]
    assert (root / THP).read_text() == "madvise"
    assert change.restore_left(root) == []


def test_only_what_can_be_written_can_be_set(root):
    assert change.can_set("thp", root)
    assert not change.can_set("governor", root)  # there is none
    assert not change.can_set("kernel", root)


def test_the_journal_lies_where_commands_look_for_it():
    assert change.Host().journal == paths.HOST_SETTINGS


def test_who_changed_nothing_leaves_the_journal_of_another(root):
    with change.changing(root) as first, change.changing(root) as second:
        second.set({"thp": "never"})
        first.restore()
        assert second.journal.exists()
    assert not first.journal.exists()
