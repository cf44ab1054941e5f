"""Codes that others wrote, as Debian has them, by the plumb.yaml of docs/examples and a stack of modules.

Debian 12: apt-get install lammps quantum-espresso quantum-espresso-data hpcc openmpi-bin
"""

import os
import shutil
import subprocess
from pathlib import Path

import own_code
import own_site
import pytest
import yaml

from plumbline.base import paths
from plumbline.mpi import TABLE
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e

#: folder of docs/examples -> its program
PROGRAMS = {"lammps": "lmp", "quantum-espresso": "pw.x", "hpcc": "hpcc"}


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of commands with the site of docs/real-codes.md: Debian's Open MPI is its only stack."""
    if not Path("/usr/bin/mpirun.openmpi").exists():
        pytest.skip("not run: the system has no Open MPI of its own (Debian: openmpi-bin)")
    folder = tmp_path_factory.mktemp("real")
    sites = own_site.copy(folder, stacks=["debian-openmpi"])
    text = (paths.root() / "docs" / "real-codes.md").read_text().partition("<!-- stacks.yaml -->\n```yaml\n")[2]
    (sites / "local" / "stacks.yaml").write_text(text.partition("```")[0])
    found = own_code.variables(folder) | {"PLUMB_SITES": str(sites), "PLUMB_STACKS": str(folder / "stacks")}
    own_code.succeeds(folder, found, "stack", "install", "module:debian-openmpi")
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_code_of_others_is_verified_under_every_placement(around, tmp_path, name):
    if shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"not run: no {PROGRAMS[name]} (Debian: {name})")
    folder = tmp_path / name
    shutil.copytree(paths.root() / "docs" / "examples" / name, folder)
    own_code.commit(folder, yaml.safe_load((folder / "plumb.yaml").read_text()))
    said = own_code.succeeds(folder, around, "run", "--launches", "1")
    assert " verified, " in said
    assert "invalid" not in said


def test_the_library_of_such_a_stack_is_the_one_that_programs_load(around):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_STACKS", around["PLUMB_STACKS"])
        stack = manifest.load("debian-openmpi")
    assert stack.loads
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True, env=os.environ).stdout
    known = [line.split()[-1] for line in listed.splitlines() if TABLE["openmpi"].library in line]
    assert stack.loads.library in {str(Path(file).resolve()) for file in known}
