"""The variables that reach us from people, modules and schedulers: one table has the effect of each, and is the filter.

Programs that we start for ourselves (ReFrame, git, pip, compilers, plumb-bind) get what :func:`isolated` leaves in this
process. A launch gets what :mod:`plumbline.launch.environment` hands on. What a person wrote, such as the lines of a
build, gets :func:`of_user`. ``python -I surroundings.py PROGRAM ARG…`` starts a program of ours; no package is needed.
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple


class Row(NamedTuple):
    """Variables, and their treatment in programs that we start for ourselves, and in launches.

    ``names``: patterns; one that ends in ``_`` is a prefix. The first row that has a name holds. ``refused``: ReFrame
    gets another value from us, so whoever sets one is told. ``stated``: records have the value. ``named``: a launch
    does not get it, and records say so, because it changes figures; ``dropped``: it changes none.
    """

    names: tuple[str, ...]
    programs: Literal["kept", "removed", "refused"]
    launches: Literal["kept", "stated", "named", "dropped"]
    does: str


#: variables in which a scheduler names a job's GPUs: plumb-bind refuses to choose one if they are not all of a node's
DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
#: Those of MPI libraries and schedulers are in :data:`plumbline.launch.environment.TABLE`; any other is kept for
#: programs, and dropped for launches.
TABLE = (
    Row(("PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_", "TZ", "XDG_RUNTIME_DIR"), "kept", "kept",
        "user, search path, locale, time zone, temporary files"),
    Row((*DEVICES, "PLUMB_WITNESS_LIB"), "kept", "stated", "GPUs of a job; library of the witness"),
    Row(("HOME", "XDG_"), "kept", "dropped", "settings and data of the user; a launch gets an empty HOME"),
    Row(("PYTHON*",), "removed", "named", "Python modules that replace ours"),
    Row(("PIP_CACHE_DIR", "PIP_NO_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT",
         "PIP_FIND_LINKS", "PIP_*INDEX*", "PIP_KEYRING_PROVIDER", "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT",
         "PIP_TRUSTED_HOST", "PIP_USE_"), "kept", "dropped", "access to the package registry, also set in pip.conf"),
    Row(("PIP_",), "removed", "dropped", "packages and install folder of pip, also set in pip.conf"),
    Row(("HWLOC_",), "removed", "named", "topology of another machine"),
    Row(("RFM_CHECK_SEARCH_PATH", "RFM_CONFIG_PATH", "RFM_PREFIX", "RFM_STAGE_DIR"), "refused", "dropped",
        "tests and folders of ReFrame, set by Plumbline"),
    Row(("RFM_",), "kept", "dropped", "other settings of ReFrame; its configuration files are read after Plumbline's"),
    Row(("GIT_ASKPASS", "GIT_CONFIG_", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_PROXY_", "GIT_SSH*", "GIT_SSL_",
         "GIT_TEMPLATE_DIR", "GIT_TERMINAL_PROMPT"), "kept", "dropped", "access of git to repositories"),
    Row(("GIT_",), "removed", "dropped", "repository that replaces the one of the folder"),
    Row(("CC", "CXX", "CMAKE_PREFIX_PATH"), "kept", "dropped", "compilers of the C tools; kernels and STREAM use gcc"),
    Row(("*FLAGS", "CPP", "DESTDIR", "MAKELEVEL", "GCC_EXEC_PREFIX", "COMPILER_PATH", "LD_RUN_PATH", "CMAKE_",
         "SOURCE_DATE_EPOCH"),
        "removed", "dropped", "compiler flags, dates and install folders that contradict manifests"),
    Row(("SPACK_",), "kept", "dropped", "Spack installation to use (SPACK_ROOT); removed for the commands of Spack"),
    Row(("SINFO_", "SQUEUE_", "SACCT_"), "removed", "dropped", "output format and filters of scheduler queries"),
    Row(("LD_", "GLIBC_TUNABLES", "MALLOC_"), "kept", "named", "loaded libraries, memory allocator"),
    Row(("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_"), "kept", "named", "threads, math libraries"),
    Row(("MPI4PY_",), "kept", "named", "MPI library of Python programs"),
)  # fmt: skip
#: the variables that :func:`isolated` took away
_withheld: dict[str, str] = {}


def among(name: str, patterns: Iterable[str]) -> bool:
    """Whether ``name`` is one of ``patterns``, as :class:`Row` has them."""
    return any(fnmatch.fnmatchcase(name, f"{text}*" if text.endswith("_") else text) for text in patterns)


def row(name: str, table: Iterable[Row] = TABLE) -> Row | None:
    """The row of ``table`` that holds for a variable; None for one that nobody knows."""
    return next((item for item in table if among(name, item.names)), None)


def for_programs(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of ``variables`` that programs of ours get.

    Of PYTHONPATH it is a folder in which this package lies (``pip install --target``).
    """
    kept = {name: value for name, value in variables.items() if (known := row(name)) is None or known[1] != "removed"}
    package = [text for text in variables.get("PYTHONPATH", "").split(":") if text and _is_ours(text)]
    return {**kept, **({"PYTHONPATH": package[0]} if package else {})}


def _is_ours(folder: str) -> bool:
    return Path(folder).resolve() == Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Remove the variables that the table removes, from this process and from all that it starts."""
    kept = for_programs(os.environ)
    removed = {name: value for name, value in os.environ.items() if kept.get(name) != value}
    for name in removed:
        del os.environ[name]
    os.environ.update(kept)
    _withheld.update(removed)
    try:
        yield
    finally:
        os.environ.update(removed)
        for name in removed:
            del _withheld[name]


def of_user() -> dict[str, str]:
    """The variables of this process with those that :func:`isolated` took away, for lines that a person wrote."""
    return {**os.environ, **_withheld}


def leave_python_path() -> None:
    """Import nothing from folders of PYTHONPATH but from the one in which this package lies."""
    foreign = {str(Path(text).absolute()) for text in os.environ.get("PYTHONPATH", "").split(":") if text}
    if not sys.flags.ignore_environment:
        sys.path[:] = [folder for folder in sys.path if folder not in foreign or _is_ours(folder)]


def for_pip(python: str, variables: Mapping[str, str]) -> dict[str, str]:
    """``variables`` for pip of an interpreter, quiet: of its settings files it gets what the table keeps, reads none.

    A variable goes before a file, and in a file a command's section before the one for all.
    """
    around = for_programs(variables)
    command = [str(Path(python).absolute()), "-m", "pip", "config", "list"]
    # in a folder without modules
    listing = subprocess.run(command, env=around, cwd="/", capture_output=True, text=True, check=False).stdout
    lines = (line.partition("=") for line in listing.splitlines())
    pairs = [(key.partition("."), value) for key, equals, value in lines if equals]
    named = [
        ("PIP_" + name.upper().replace("-", "_"), str(ast.literal_eval(value)))
        for section in ("global", "download", "install")
        for (of, _, name), value in pairs
        if of == section
    ]
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}
    return {**for_programs(dict(named)), **around, **quiet, "PIP_CONFIG_FILE": os.devnull}


def main(words: list[str]) -> None:
    """Become the program ``words``, with the variables of programs of ours; of pip if it is Python's module pip."""
    around = for_pip(words[0], os.environ) if "pip" in words[1:4] else for_programs(os.environ)
    os.execvpe(words[0], words, around)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
