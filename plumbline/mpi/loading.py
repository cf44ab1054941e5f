"""The variables by which a process loads or starts code: a person may set them, a file that is brought may not.

What reads them: the dynamic loader and the C library (ld.so(8), iconv(3)), shells, interpreters (Python, Perl, …),
tools of OpenMP, OpenACC, CUDA, ROCm and Kokkos, hwloc, libibverbs, libfabric, UCX, and what Open MPI,
PMIx, PRRTE, Hydra and Intel MPI have in their binaries: plugins by path, folders of an installation, and the programs,
with their arguments, that start others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ctypes.util import find_library

from plumbline.base.errors import PlumbError

#: names, as regular expressions of whole names; upper and lower case are one
LOADING = (
    # loader, C library, OpenSSL; a shell finds programs, and all else their settings, by PATH and HOME
    "LD_.*", ".*_PRELOAD", ".*LIBRARY_PATH", "GCONV_PATH", "OPENSSL_(CONF|ENGINES|MODULES)", "PATH", "HOME", "XDG_.*",
    # shells
    "SHELL", "IFS", "ENV", "BASH_.*", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR",
    # interpreters
    "PYTHON.*", "MPI4PY_LIBMPI", "PERL5?(LIB|OPT|DB)", "RUBY(LIB|OPT)", "NODE_(OPTIONS|PATH)", "CLASSPATH",
    "(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS", "LUA_(C?PATH|INIT).*", "TCLLIBPATH", "MATLABPATH",
    "R_(PROFILE|ENVIRON|LIBS).*", "JULIA_(LOAD_PATH|DEPOT_PATH|PROJECT)", "GIT_.*",
    # tools and plugins of compilers' libraries, devices and the topology
    "OMP_TOOL_LIBRARIES", "ACC_PROFLIB", ".*_INJECTION(32|64)_PATH", "(HSA|ROCP|ROCPROFILER)_.*LIB(S|RARY|RARIES)?",
    "KOKKOS_(TOOLS|PROFILE)_.*", "NCCL_.*PLUGIN.*", "(OCL_ICD|OPENCL|VK)_.*", "HWLOC_(PLUGINS_PATH|COMPONENTS)",
    # transports and MPI libraries
    "(IBV|RDMAV)_DRIVERS", "FI_PROVIDER_PATH", "UCX_(MODULE|CONFIG)_DIR", "UCC_COMPONENT_PATH", "OPAL_.*", "OMPIHOME",
    "(PRTE|ORTE|HYDRA|I_MPI_HYDRA|I_MPI_JOB|MPIEXEC)_.*", "I_MPI_GTOOL.*", "PMIX_((EXEC_)?PREFIX|[A-Z]*DIR)",
    "(I_MPI|MPIR_CVAR)_.*(LIB|LIBS|LIBRARY|ROOT|CONFIG_DIR)", "(.*_)?mca_(base|component)_.*",
    "(.*_)?(plm|odls|prte|orte)_.*",
)  # fmt: skip
#: names of them by which nothing is loaded
HARMLESS = (
    "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHONUTF8",
    "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONIOENCODING", "PYTHON_GIL", "LD_BIND_NOW",
)  # fmt: skip
#: libraries that a file may name, never with a path: allocators
ALLOCATORS = ("jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc", "tbbmalloc_proxy", "hoard", "snmallocshim")
PRELOAD = "LD_PRELOAD"
_LOADING = re.compile("|".join(LOADING), re.IGNORECASE)
_ALLOCATOR = re.compile(rf"lib({'|'.join(ALLOCATORS)})\.so[.0-9]*")


def loads(name: str) -> bool:
    """Whether a process loads or starts code by the variable, or by the setting of an MPI library, ``name``."""
    return bool(_LOADING.fullmatch(name)) and name not in HARMLESS


def refuse(variables: Mapping[str, str], where: str, cure: str) -> None:
    """Raise :class:`PlumbError` with ``cure`` for what only a person may set among ``variables``, which a file brought.

    :data:`PRELOAD` may name known allocators, which this machine must have.
    """
    for name, value in variables.items():
        if loads(name) and not (name == PRELOAD and all(map(_is_here, re.split("[: ]+", value)))):
            raise PlumbError(f"a file may not say what code is loaded: {name}={value}", where, cure)


def _is_here(library: str) -> bool:
    known = _ALLOCATOR.fullmatch(library)
    return known is not None and find_library(known[1]) == library
