"""What tests know of the host: a table of variables, and an empty home.

Modules, shells and users set variables that change what compilers, MPI libraries, ReFrame and pip do. Only those in the
table reach the tests; a test that is about another one sets it.
"""

import fnmatch
import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: patterns of the names of variables
DECLARED = (
    *("CI", "LANG", "LC_*", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
    # how the package registries are reached
    *("*_CA_BUNDLE", "*_CA_CERTS", "*_proxy", "*_PROXY", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "SSL_CERT_*"),
    *("PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT", "PIP_FIND_LINKS", "PIP_*INDEX_URL"),
    *("PIP_TRUSTED_HOST", "npm_config_*"),
    # which Python and which kernels of OpenBLAS run on this processor
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYENV_ROOT", "PYTHONUNBUFFERED"),
    # what people say to the tests
    *("NUMA_VM_CACHE", "PLUMB_ATTACKS*", "PLUMB_CHROMIUM", "PLUMB_GOLDEN*", "PLUMB_KEEP_BED", "PLUMB_SPACK_*"),
    *("PLUMB_TEST_*", "PLUMB_TOOLS", "PYTEST_*", "SPACK_ROOT", "XDG_CACHE_HOME"),
)


def declared(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that the tests may know."""
    return {
        name: value
        for name, value in variables.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in DECLARED)
    }


def at_home(home: Path, before: Path) -> dict[str, str]:
    """The variables of an empty home; caches and the configuration of package registries stay in the one ``before``."""
    files = {"PIP_CONFIG_FILE": before / ".config/pip/pip.conf", "npm_config_userconfig": before / ".npmrc"}
    folders = {
        "XDG_CACHE_HOME": before / ".cache",
        "PIP_CACHE_DIR": before / ".cache/pip",
        "npm_config_cache": before / ".npm",
    }
    known = {**folders, **{name: file for name, file in files.items() if file.is_file()}}
    return {"HOME": str(home), "PLUMB_TEST_HOME": str(home), **{name: str(path) for name, path in known.items()}}


def enter(home: Path) -> None:
    """Leave this process, and all that it starts, with what is declared."""
    kept = declared(os.environ)
    kept = {**at_home(home, Path.home()), **kept}
    foreign = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if str(ROOT) in foreign:  # another checkout than the one that the environment was made for
        foreign.remove(str(ROOT))
        kept["PYTHONPATH"] = str(ROOT)
    sys.dont_write_bytecode = False  # the tests start hundreds of commands, which would each be compiled again
    sys.path[:] = [folder for folder in sys.path if folder not in foreign]
    os.environ.clear()
    os.environ.update(kept)
