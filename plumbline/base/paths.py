"""Where things lie. Every path is taken from here, so that a checkout can live anywhere.

A folder is, in this order: what an option of ``plumb`` names, what its variable names, the default, which is in the
checkout or, for an installed wheel, in ``PLUMB_HOME``. Jobs get the options (:func:`options`), because many schedulers
start a job without the variables of whoever submitted it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from plumbline.base.errors import PlumbError

#: the folders that have an option, and the content of each
FOLDERS = {
    "results": "records",
    "sites": "site folders",
    "stacks": "installed stacks",
    "tools": "C tools",
    "build": "builds",
}
#: the cure for a package that only campaigns need
CAMPAIGN = "install the wheel with its extra, pip install 'WHEEL[campaign]'; in a checkout, make venv"
_named: dict[str, Path] = {}


#: the settings that a process has changed on this host, and sets back (:mod:`plumbline.host.change`)
HOST_SETTINGS = Path("/run/plumbline-host-settings.json")


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
    folders = (results(), sites(), stacks(), tools(), build())
    return {name: str(folder.absolute()) for name, folder in zip(FOLDERS, folders, strict=True)}


def _folder(name: str, default: Path) -> Path:
    return _named.get(name) or Path(os.environ.get(f"PLUMB_{name.upper()}") or default)


def package() -> Path:
    """This package."""
    return Path(__file__).resolve().parents[1]


def root() -> Path:
    """The folder that holds this package: the checkout, if there is one."""
    return package().parent


def is_installed() -> bool:
    """Whether this is the package of a wheel, which no command writes to, so that there is no checkout."""
    return (package() / "suite").is_dir()


def suite() -> Path:
    """The folder with tests, sources of the kernels, ReFrame's settings and Spack's: the checkout, or in the wheel."""
    return package() / "suite" if is_installed() else root()


def setup() -> str:
    """The command that sets this host up."""
    return "plumb setup" if is_installed() else "make setup"


def home() -> Path:
    """The parent of the default folders: the checkout, without one ``PLUMB_HOME`` or the user's data folder (XDG)."""
    if not is_installed():
        return root()
    if named := os.environ.get("PLUMB_HOME"):
        return Path(named).absolute()
    if not (data := of_user("XDG_DATA_HOME", ".local/share")):
        message = "this user has no home folder for records, sites and stacks"
        raise PlumbError(message, "HOME is not set", "export PLUMB_HOME=FOLDER")
    return data / "plumbline"


def of_user(variable: str, usual: str) -> Path | None:
    """A folder of the user: that of XDG's ``variable``, else the ``usual`` one at home; None: this user has none.

    https://specifications.freedesktop.org/basedir-spec: a relative one is ignored.
    """
    if (folder := os.environ.get(variable, "")).startswith("/"):
        return Path(folder)
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


def configuration() -> Path:
    """A person's own file, for all checkouts: ``plumbline/config.yaml`` in the configuration folder (XDG)."""
    return (of_user("XDG_CONFIG_HOME", ".config") or Path("/")) / "plumbline" / "config.yaml"


def build() -> Path:
    """The folder of all builds, where campaigns and gates work too: ``PLUMB_BUILD`` or ``build/``."""
    return _folder("build", home() / "build")


def reframe() -> Path:
    """The folder where ReFrame works and keeps its files: a user may have no home folder that can be written."""
    return build() / "reframe"


def tools() -> Path:
    """Prefix of the C tools (``bin/plumb-bind``, ``lib/libplumbwitness.so``): ``PLUMB_TOOLS`` or ``build/tools/``.

    A wheel has them itself. Whoever works in a folder of his own has those of the checkout.
    """
    if is_installed():
        return _folder("tools", package() / "tools")
    shared = home() / "build" / "tools"
    return _folder("tools", shared if shared.is_dir() and not (build() / "tools").is_dir() else build() / "tools")


def to_name(place: Path) -> str:
    """The variables to set for a user who may not write ``place``, because it is of another user's installation.

    Empty if it is in no folder of it.
    """
    inside = [name for name, folder in _in_use().items() if place.absolute().is_relative_to(folder)]
    wanted = dict.fromkeys((*inside[:1], "build", "results"))
    refused = [name for name in wanted if not _may_write(Path(_in_use()[name]))]
    if not inside or not refused:
        return ""
    words = " ".join(f"PLUMB_{name.upper()}=$HOME/plumbline/{name}" for name in refused)
    return f"this installation is another user's: export {words}"


def _may_write(folder: Path) -> bool:
    return os.access(next(path for path in (folder, *folder.parents) if path.exists()), os.W_OK)


def stacks() -> Path:
    """Folder of the installed stacks: ``PLUMB_STACKS`` or ``stacks/``."""
    return _folder("stacks", home() / "stacks")


def sites() -> Path:
    """Folder of the site folders: ``PLUMB_SITES`` or ``site-configs/``."""
    return _folder("sites", home() / "site-configs")


def results() -> Path:
    """Folder of the records: ``PLUMB_RESULTS`` or ``results/``."""
    return _folder("results", home() / "results")


def suite_program(name: str) -> str:
    """The program ``name`` of the suite's Python environment, which a ReFrame of another one starts too."""
    return program(name) if is_installed() else str(root() / ".venv" / "bin" / name)


def python() -> list[str]:
    """This interpreter, for which no variable and no module of the present folder counts.

    Without an environment of its own it may need what pip installed for this user, which ``-I`` leaves out.
    """
    return [sys.executable, *(["-I"] if sys.prefix != sys.base_prefix else [])]


def program(name: str) -> str:
    """The program ``name`` of the Python environment that runs; without one, of what pip installed for this user."""
    folders = Path(sys.executable).parent, Path(sysconfig.get_path("scripts", "posix_user"))
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    raise PlumbError(f"{name} is not installed", str(folders[0]), CAMPAIGN)


def binder() -> Path:
    """The ``plumb-bind`` program."""
    return tools() / "bin" / "plumb-bind"


def checker() -> Path:
    """The ``plumb-check`` program, which nodes in production run."""
    return tools() / "bin" / "plumb-check"


def library(name: Literal["witness", "profile", "yields"]) -> Path:
    """A preloaded library: the witness, that of profiles, or the one that counts an MPI library's sched_yield calls."""
    return tools() / "lib" / f"libplumb{name}.so"
