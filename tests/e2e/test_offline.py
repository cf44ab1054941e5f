"""A checkout without a network: the virtual environment and a stack, from nothing but an archive.

Needs a registry to pack from, and root (or user namespaces) for a network namespace with no interface in it.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from processes import ended, succeeded

from plumbline.base import paths

pytestmark = pytest.mark.e2e
ROOT = paths.root()
PLUMB = Path(sys.executable).parent / "plumb"
ALONE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
#: How pip says that it reaches no registry.
UNREACHABLE = (
    r"NewConnectionError|ConnectTimeoutError|NameResolutionError|Temporary failure|ProxyError|Connection refused"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The archive of one stack."""
    if shutil.which("unshare") is None or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not run: no network namespace can be made here (unshare --net)")
    folder = tmp_path_factory.mktemp("pack")
    environment = {**os.environ, "PLUMB_STACKS": str(folder / "stacks")}
    command = [str(PLUMB), "stack", "pack", str(folder / "all.tar"), "openmpi"]
    done = ended(command, env=environment)
    log = folder / "stacks" / "archive.log"
    if done.returncode and log.exists() and re.search(UNREACHABLE, log.read_text()):
        pytest.skip("not run: no package registry can be reached to pack from")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "all.tar"


@pytest.fixture
def checkout(tmp_path):
    """The files of this checkout that git knows or would take, and nothing that set-up made."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not run: this is not a git checkout")
    for name in map(os.fsdecode, listed.stdout.split(b"\0")[:-1]):
        if (ROOT / name).is_file():
            (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    return tmp_path / "checkout"


def alone(checkout, *command, **variables):
    """Run a command in the checkout, with no network and an empty home."""
    (checkout.parent / "home").mkdir(exist_ok=True)
    environment = {"HOME": str(checkout.parent / "home"), "PATH": "/usr/local/bin:/usr/bin:/bin", **variables}
    return ended([*ALONE, *command], env=environment, cwd=checkout, timeout=600)


@pytest.mark.long
def test_environment_and_stack_come_from_the_archive(packed, checkout):
    given = {"PLUMB_ARCHIVE": str(packed), "PYTHON": os.path.realpath(sys.executable)}
    bootstrap = ("playbooks/bootstrap.sh", "requirements.txt")
    bad = checkout.parent / "bad.tar"
    shutil.copy(packed, bad)
    with tarfile.open(packed) as tar:
        place = next(member.offset_data for member in tar if member.name.endswith(".whl"))
    with bad.open("r+b") as file:
        file.seek(place)
        file.write(b"xx")
    refused = alone(checkout, *bootstrap, **given | {"PLUMB_ARCHIVE": str(bad)})
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "tampered with" in refused.stderr
    assert not (checkout / ".venv").exists()
    done = succeeded(alone(checkout, *bootstrap, **given))
    done = succeeded(alone(checkout, ".venv/bin/plumb", "stack", "install", "openmpi"))
    done = alone(checkout, ".venv/bin/plumb", "stack", "check", "openmpi")
    assert "each is the recorded one" in done.stdout, done.stderr
    done = alone(checkout, ".venv/bin/plumb", "stack", "install", "mpich")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the unpacked archive has nothing for this mpich.txt" in done.stderr
