"""A gate that is killed while it prepares: its folder holds a whole state, or is begun anew; one line says which."""

import os
import signal
import sys
from pathlib import Path

import pytest

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.gate.setup import GATE, Session, Terms

STATE = Session("s", "a", "b", [], Terms(), {"stacks": {}, "nodes": None}, [])
#: what the interpreter reports before it changes something on the disk
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "fcntl.flock")


def prepare(folder: Path) -> None:
    """What a gate does to its folder before the first pair."""
    with GATE.new(folder):
        files.make_anew(folder / "reframe")
        (folder / "reframe.out").write_text("listing")
        GATE.save(folder, STATE)


def killed_at(change: int, folder: Path) -> bool:
    """Whether a process that prepares ``folder`` came to its change of this number, at which it is killed."""
    child = os.fork()
    if child == 0:
        left = change

        def kill(event: str, _: object) -> None:
            nonlocal left
            if event in CHANGES:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        prepare(folder)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_whenever_it_is_killed_the_folder_can_be_used(tmp_path, refused):
    change = 0
    while killed_at(change, folder := tmp_path / str(change)):
        if (folder / GATE.file).exists():
            assert GATE.peek(folder).name == STATE.name
        elif (folder / "lock").exists():
            assert refused(3, "gate", "--resume", str(folder)) == (
                f"plumb: this gate was ended while it was prepared, or is being prepared ({folder}): "
                f"begin it again: plumb gate … --work {folder}\n"
            )
            prepare(folder)
            assert GATE.peek(folder).name == STATE.name
        change += 1
    assert change > 8


@pytest.mark.parametrize("name", [".notes.12", ".thesis.new"])
def test_a_folder_of_somebody_is_not_taken_for_what_a_kill_left(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").touch()
    with pytest.raises(PlumbError, match="is not empty"):
        prepare(tmp_path)
