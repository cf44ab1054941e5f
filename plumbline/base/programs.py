"""Programs that end with this process, however that ends."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
#: starts a program, and ends its whole process group when it gets SIGTERM itself
_GROUP = ("bash", "-c", 'trap "trap - TERM; kill 0" TERM; "$@" & wait $!', "bash")


def die_with_parent() -> None:
    """In a new process: have it sent SIGTERM if its parent is killed outright, so that it ends its own processes."""
    LIBC.prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run, for a program with processes of its own: all of them are ended if this process ends.

    So are they where it is interrupted. They do not see the terminal's Ctrl-C themselves.
    """
    with subprocess.Popen(
        [*_GROUP, *command], text=True, start_new_session=True, preexec_fn=die_with_parent, **options
    ) as child:
        try:
            printed = child.communicate()
            return subprocess.CompletedProcess(command, child.returncode, *printed)
        finally:
            child.terminate()  # nothing, where it has ended
