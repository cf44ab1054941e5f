"""Where things lie. Every path is taken from here, so that a checkout can live anywhere.

A folder is, in this order: what an option of ``plumb`` names, what its variable names, the default, which is in the
checkout or, for a package that pip installed, in the user's data folder. Jobs get the options (:func:`options`),
because many schedulers start a job without the variables of whoever submitted it.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path

#: the folders that have an option, and what each holds
FOLDERS = {
    "results": "records",
    "sites": "site folders",
    "stacks": "installed stacks",
    "tools": "C tools",
}
_named: dict[str, Path] = {}


def use(named: Mapping[str, Path | None]) -> None:
    """Use the folders that options name, by the keys of :data:`FOLDERS`; None leaves the choice to the variable."""
    _named.clear()
    _named.update({name: folder.absolute() for name, folder in named.items() if folder})


def options() -> list[str]:
    """The options of ``plumb`` that make a job use the same folders."""
    return [word for name, folder in _in_use().items() for word in (f"--{name}", folder)]


def variables() -> dict[str, str]:
    """The variables that make a child process on this host, such as ReFrame, use the same folders."""
    return {f"PLUMB_{name.upper()}": folder for name, folder in _in_use().items()}


def _in_use() -> dict[str, str]:
    folders = {"results": results(), "sites": sites(), "stacks": stacks(), "tools": tools()}
    return {name: str(folder.absolute()) for name, folder in folders.items()}


def _folder(name: str, default: Path) -> Path:
    return _named.get(name) or Path(os.environ.get(f"PLUMB_{name.upper()}") or default)


def root() -> Path:
    """The checkout: the folder that holds this package."""
    return Path(__file__).resolve().parents[2]


@functools.cache
def is_installed() -> bool:
    """Whether pip copied the package to its own folder, which no command writes to, so that there is no checkout."""
    return any(root().glob("plumbline-*.dist-info"))


def _home() -> Path:
    """The checkout; without one the user's data folder (XDG Base Directory Specification)."""
    if not is_installed():
        return root()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "plumbline"


def build() -> Path:
    """What set-up compiles: ``PLUMB_BUILD`` or ``build/`` in the checkout."""
    return Path(os.environ.get("PLUMB_BUILD") or _home() / "build")


def tools() -> Path:
    """Prefix of the C tools (``bin/plumb-bind``, ``lib/libplumbwitness.so``): ``PLUMB_TOOLS`` or ``build/tools/``."""
    return _folder("tools", build() / "tools")


def stacks() -> Path:
    """Folder of the installed stacks: ``PLUMB_STACKS`` or ``stacks/`` in the checkout."""
    return _folder("stacks", _home() / "stacks")


def sites() -> Path:
    """Folder of the site folders: ``PLUMB_SITES`` or ``site-configs/`` in the checkout."""
    return _folder("sites", _home() / "site-configs")


def results() -> Path:
    """Folder of the records: ``PLUMB_RESULTS`` or ``results/`` in the checkout."""
    return _folder("results", _home() / "results")


def program(name: str) -> str:
    """The program ``name`` of the Python environment that runs."""
    return str(Path(sys.executable).parent / name)


def binder() -> Path:
    """The ``plumb-bind`` program."""
    return tools() / "bin" / "plumb-bind"


def profile_library() -> Path:
    """The preloaded library of profiles."""
    return tools() / "lib" / "libplumbprofile.so"


def yields_library() -> Path:
    """The preloaded library that counts the calls of sched_yield of an MPI library."""
    return tools() / "lib" / "libplumbyields.so"


def witness_library() -> Path:
    """The preloaded witness."""
    return tools() / "lib" / "libplumbwitness.so"
