"""Programs and their processes end with the process that started them."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from plumbline.base import programs

CODE = """
import signal, sys
from plumbline.base import programs
signal.signal(signal.SIGINT, signal.default_int_handler)
programs.run(["bash", "-c", "sleep 3600 & echo $! > written && mv written number; wait; true"])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_processes_of_a_build_end_with_the_command(number, tmp_path):
    with subprocess.Popen([sys.executable, "-c", CODE], cwd=tmp_path, stderr=subprocess.DEVNULL) as command:
        while not (tmp_path / "number").exists():
            assert command.poll() is None
            time.sleep(0.01)
        command.send_signal(number)
    pid = int((tmp_path / "number").read_text())
    with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(pid)) as end:
        assert select.select([end], [], [], 60)[0]


def test_output_and_status_are_the_programs():
    done = programs.run(["sh", "-c", 'echo "$0"; exit 3', "a b'c"], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (3, "a b'c\n")
