"""Codes that others wrote, as Debian has them, by the plumb.yaml of docs/examples and a stack of modules.

Debian 12: apt-get install lammps quantum-espresso quantum-espresso-data hpcc openmpi-bin
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import own_code
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
    sites = folder / "sites"
    shutil.copytree(paths.sites() / "local", sites / "local")
    shutil.copy(paths.suite() / "site-configs" / "settings.py", sites)
    text = (paths.root() / "docs" / "real-codes.md").read_text().partition("<!-- stacks.yaml -->\n```yaml\n")[2]
    (sites / "local" / "stacks.yaml").write_text(text.partition("```")[0])
    file = sites / "local" / "site.yaml"
    document = yaml.safe_load(file.read_text())
    for partition in document["partitions"]:
        partition["stacks"] = ["debian-openmpi"]
    file.write_text(yaml.safe_dump(document))
    found = own_code.variables(folder) | {"PLUMB_SITES": str(sites), "PLUMB_STACKS": str(folder / "stacks")}
    status, said = own_code.plumb(folder, found, "stack", "install", "module:debian-openmpi")
    assert status == 0, said
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_code_of_others_is_verified_under_every_placement(around: dict[str, str], tmp_path: Path, name: str) -> None:
    if shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"not run: no {PROGRAMS[name]} (Debian: {name})")
    folder = tmp_path / name
    shutil.copytree(paths.root() / "docs" / "examples" / name, folder)
    own_code.commit(folder, yaml.safe_load((folder / "plumb.yaml").read_text()))
    status, said = own_code.plumb(folder, around, "run", "--launches", "1")
    assert status == 0, said
    assert " verified, " in said
    assert "invalid" not in said


def test_the_library_of_such_a_stack_is_the_one_that_programs_load(around: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_STACKS", around["PLUMB_STACKS"])
        stack = manifest.load("debian-openmpi")
    assert stack.loads
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True, env=os.environ).stdout
    known = [line.split()[-1] for line in listed.splitlines() if TABLE["openmpi"].library in line]
    assert stack.loads.library in {str(Path(file).resolve()) for file in known}
