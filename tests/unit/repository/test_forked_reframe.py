"""ReFrame forked for tests: it serves after a launch of the same process, too, which ends all that runs below."""

import os

import forked_reframe

from plumbline.launch import process


def test_reframe_is_served_after_a_launch_that_ended_all_processes_below(tmp_path):
    first = forked_reframe.run("--version", environment=os.environ, folder=tmp_path)
    assert process.run(["true"], {}, tmp_path, 60).status == "ok"
    assert not process.descendants(os.getpid())
    assert forked_reframe.run("--version", environment=os.environ, folder=tmp_path).stdout == first.stdout != ""
