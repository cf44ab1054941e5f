"""Tests read nothing of the host that they did not declare."""

import os
import subprocess
import sys
from pathlib import Path

import surroundings

from plumbline.base import paths

#: what modules, shells, users and schedulers set
FOREIGN = (
    *("CFLAGS", "CC", "CPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOADEDMODULES", "MODULEPATH", "PYTHONPATH"),
    *("HWLOC_XMLFILE", "I_MPI_DEBUG", "MPICH_VERSION", "OMPI_MCA_btl", "OMP_NUM_THREADS", "SLURM_JOB_ID", "UCX_TLS"),
    *("PIP_TARGET", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "RFM_PREFIX", "PLUMB_RESULTS", "PLUMB_SITES", "PLUMB_HOME"),
)


def test_what_is_not_declared_does_not_reach_a_test():
    kept = surroundings.declared({**dict.fromkeys(FOREIGN, "x"), "PATH": "/bin", "LC_ALL": "C", "PIP_INDEX_URL": "y"})
    assert kept == {"PATH": "/bin", "LC_ALL": "C", "PIP_INDEX_URL": "y"}


def test_this_process_has_an_empty_home_and_nothing_undeclared():
    assert Path(os.environ["HOME"]).name.startswith("plumbline-home-")
    # by conftest.py, readline and ReFrame
    more = """ANSIBLE_ASYNC_DIR COLUMNS GIT_TEMPLATE_DIR HOME LINES PLUMB_RESULTS PLUMB_SITES PYTHONPATH
        RFM_INSTALL_PREFIX _RJEM_MALLOC_CONF"""
    assert set(os.environ) - set(surroundings.declared(os.environ)) <= {*more.split()}


def test_caches_and_registries_stay_those_of_the_user(tmp_path):
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").touch()
    known = surroundings.at_home(tmp_path / "new", tmp_path)
    assert known["HOME"] == str(tmp_path / "new")
    assert known["PIP_CONFIG_FILE"] == str(tmp_path / ".config/pip/pip.conf")
    assert "npm_config_userconfig" not in known
    caches = {
        known[name].removeprefix(str(tmp_path)) for name in ("XDG_CACHE_HOME", "PIP_CACHE_DIR", "npm_config_cache")
    }
    assert caches == {"/.cache", "/.cache/pip", "/.npm"}


def test_modules_of_a_foreign_python_path_cannot_be_imported(tmp_path):
    (tmp_path / "foreign.py").touch()
    code = "import surroundings, pathlib; surroundings.enter(pathlib.Path('/tmp')); import foreign"
    around = {**os.environ, "PYTHONPATH": f"{tmp_path}:{paths.root() / 'tests/support'}"}
    ended = subprocess.run([sys.executable, "-c", code], env=around, capture_output=True, text=True, check=False)
    assert "No module named 'foreign'" in ended.stderr
