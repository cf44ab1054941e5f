"""What another user may put into a folder that is shared: no FIFO stops a command, and no link is written through."""

import os
import subprocess
import sys

import pytest
import samples

from plumbline.base import files
from plumbline.records import store

NOTES = "notes.ndjson"
#: of ReFrame
LOG = (
    "result|job_completion_time|name|environ|job_nodelist|num_tasks|partition|rate_value|rate_unit|rate_ref|"
    "rate_lower_thres|rate_upper_thres|system\n"
    "pass|2026-01-01T00:00:00|T|gnu|n1|4|default|12.5|GB/s|12|-0.1|None|local\n"
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_RESULTS", str(tmp_path / "results"))
    store.write(store.session_file("local", "s1"), [samples.record()])
    return tmp_path / "results"


@pytest.mark.parametrize(("name", "words"), [
    (".notes.lock", ["note", "text", "--site", "local"]),
    (NOTES, ["note", "text", "--site", "local"]),
    (NOTES, ["history", "--site", "local"]),
    (NOTES, ["publish", "PAGES"]),
    (".compact.lock", ["compact"]),
    (".import.lock", ["import", "given.log", "--site", "local"]),
    ("profiles/0123456789ab.json", ["profile", "--show", "0123456789ab"]),
])  # fmt: skip
def test_a_fifo_is_named_and_waited_for_by_nobody(results, tmp_path, name, words):
    (results / "local" / name).parent.mkdir(exist_ok=True)
    os.mkfifo(results / "local" / name)
    (tmp_path / "given.log").write_text(LOG)
    words = [word.replace("PAGES", str(tmp_path / "pages")).replace("given", str(tmp_path / "given")) for word in words]
    command = [sys.executable, "-m", "plumbline.commands.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (1, 2, 3)
    assert "not a regular file" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_link_is_written_through(tmp_path):
    victim = tmp_path / "victim"
    (tmp_path / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"), files.lock(tmp_path / ".lock"):
        pass
    assert not victim.exists()
    victim.write_text("mine")
    (tmp_path / f".out.{os.getpid()}").symlink_to(victim)
    files.replace(tmp_path / "out", "text")
    assert (victim.read_text(), (tmp_path / "out").read_text()) == ("mine", "text")


def test_a_device_is_no_lock(tmp_path):
    with pytest.raises(OSError, match="not a regular file"), files.lock(files.Path("/dev/null")):
        pass
