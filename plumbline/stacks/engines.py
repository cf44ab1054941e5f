"""Container engines: how each starts a program in an image, and how the image is checked.

An engine is given an argument list and never a text for a shell. Of the host a program sees :data:`MOUNTS`.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from msgspec import Struct

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError

#: where the mounts are in the container
INSIDE = Path("/plumb")
#: the folder of a launch there, and its name: paths of the launch below it are in the ranks' environment
LAUNCH = INSIDE / "launch"
#: in a command, the folder of the launch on the host, which is known when it is started
FOLDER = "{launch}"
#: the variable by which the processes of a launch are found on the host
VARIABLE = "PLUMB_LAUNCH"
#: mount of the host in a container -> whether it may write there: the launch; the C tools; their libraries; the
#: loader with its libraries, so that plumb-bind needs none of the image; the host's MPI library
MOUNTS = {"launch": True, "tools": False, "lib": False, "bin": False, "host": False}
LOADER = "ld.so"
#: the magic bytes of a SIF file, and where they are
SIF_AT, SIF = 32, b"SIF_MAGIC"


class Engine(NamedTuple):
    """How ``program`` runs words in an image: with ``options``, for so many ranks of a node, mounts, and the ``image``.

    A mount is ``MOUNT=SOURCE:TARGET``, with ``read_only`` at the end where nothing may be written. ``inherits``: its
    processes have the file descriptors of the launcher; else they reach it by a port.
    """

    program: str
    options: Callable[[int], list[str]]
    image: tuple[str, ...]
    mount: str = "--bind"
    read_only: str = ":ro"
    inherits: bool = True
    sif: bool = False


def _podman(ranks: int) -> list[str]:
    """podman-run(1). The host's namespaces but for files: ranks share memory and are seen from the host.

    Docker's filter of system calls would refuse memory policies and CMA.
    """
    shared = [f"--{name}=host" for name in ("network", "ipc", "pid", "uts")]
    quiet = ["--log-driver=none", "--security-opt=seccomp=unconfined", "--security-opt=label=disable"]
    hard = {"nofile": _most(resource.RLIMIT_NOFILE, 1 << 20), "nproc": _most(resource.RLIMIT_NPROC, 1 << 15)}
    limits = [f"--ulimit={name}={limit}:{limit}" for name, limit in hard.items()]
    run = ["--cgroup-manager=cgroupfs", "run", "--rm", "--read-only"]
    return [*run, *limits, *shared, *quiet, "--env-host", f"--workdir={LAUNCH}"]


def _most(kind: int, default: int) -> int:
    """The hard limit of this process, up to podman's ``default``: raising it takes a capability that root may lack."""
    hard = resource.getrlimit(kind)[1]
    return default if hard == resource.RLIM_INFINITY else min(hard, default)


#: ``:O``: podman writes nothing to the image; ch-run has no mounts that are only read
ENGINES = {
    # ch-run(1). Ranks of a node join one container: between user namespaces there is no copy by CMA
    "charliecloud": Engine(
        "ch-run",
        lambda ranks: [*([f"--join-ct={ranks}"] if ranks > 1 else []), f"--cd={LAUNCH}"],
        ("{}", "--"),
        read_only="",
    ),
    "podman": Engine("podman", _podman, ("--rootfs", "{}:O"), mount="--volume", inherits=False),
    # https://apptainer.org/docs/user/latest/cli/apptainer_exec.html; never run
    "apptainer": Engine("apptainer", lambda _: ["exec", "--no-home", f"--pwd={LAUNCH}"], ("{}",), sif=True),
}


def start(engine: str, root: str, mounts: Iterable[tuple[str, Path, bool]], ranks: int) -> list[str]:
    """The words before those that run in the image ``root``; ``mounts``: source, target, and whether it is written."""
    line = ENGINES[engine]
    binds = [f"{line.mount}={source}:{target}{'' if written else line.read_only}" for source, target, written in mounts]
    return [line.program, *line.options(ranks), *binds, *(word.replace("{}", root) for word in line.image)]


def lacking(engine: str) -> str:
    """Why ``engine`` cannot be used on this machine; empty where it is installed."""
    program = ENGINES[engine].program
    return "" if shutil.which(program) else f"the engine {engine} is not installed: no program {program}"


class Container(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The image whose programs a stack has, and how they are started.

    ``image`` is what was given, with its :func:`digest`; ``root`` is the folder or file that is run. ``mode``: the
    programs get the MPI library of the ``host``, whose folder is ``library``, or the image's ``own``. ``launcher``: the
    host's stack whose launcher starts each rank in a container; None: the image's own launcher starts all ranks in one.
    ``variables`` are those of the programs, ``hidden`` the host's that they must not see.
    """

    engine: Annotated[str, schemas.one_of(ENGINES)]
    mode: Literal["host", "own"]
    image: str
    sha256: str
    root: str
    root_sha256: str
    loader: str
    launcher: str | None = None
    library: str | None = None
    variables: dict[str, str]
    hidden: list[str] = []

    @property
    def inherits(self) -> bool:
        """Whether a rank has the file descriptors of its launcher."""
        return self.launcher is None or ENGINES[self.engine].inherits

    def check(self, nodes: int) -> None:
        """Raise :class:`PlumbError` if ranks on ``nodes`` nodes cannot be started."""
        if self.launcher is None and nodes > 1:
            raise PlumbError(
                f"the image's own launcher starts ranks of one node, this needs {nodes}",
                self.image,
                "install it with --stack NAME, whose launcher starts a container a rank",
            )

    def command(self, start: Sequence[str], words: Sequence[str], ranks: int) -> list[str]:
        """The command that runs ``words`` in ``ranks`` processes of this node, started by the launcher ``start``."""
        exported = {**self.variables, "HOME": str(LAUNCH), VARIABLE: FOLDER}
        hidden = [word for name in self.hidden for word in ("-u", name)]
        variables = ["/usr/bin/env", *hidden, *(f"{name}={value}" for name, value in exported.items())]
        if self.launcher is None:
            return [*self._enter(1), *variables, *start, *words]
        return [*start, *self._enter(ranks), *variables, *words]

    def _enter(self, ranks: int) -> list[str]:
        tools = paths.tools().resolve()
        sources = {
            **{"launch": FOLDER, "tools": str(tools), "lib": str(tools / "lib"), "bin": self.loader},
            **({"host": self.library} if self.library else {}),
        }
        for source in sources.values():
            if set(source) & set(":,"):
                raise PlumbError("a folder's path has ':' or ',', where mounts end", source, "name another folder")
        mounts = ((source, INSIDE / name, MOUNTS[name]) for name, source in sources.items())
        return start(self.engine, self.root, mounts, ranks)

    def outside(self, path: str) -> str:
        """The host's name of the file that a program in the container sees as ``path``."""
        for mount, source in (("host", self.library), ("tools", paths.tools())):
            if source and Path(path).is_relative_to(INSIDE / mount):
                return str(Path(source) / Path(path).relative_to(INSIDE / mount))
        return self.root + path if Path(self.root).is_dir() else self.root

    def faults(self) -> list[str]:
        """Why its programs cannot be run, or are not those that were recorded."""
        if absent := lacking(self.engine):
            return [absent]
        try:
            same = digest(Path(self.root)) == self.root_sha256
        except OSError as error:
            return [f"the image cannot be read: {error}"]
        return [] if same else [f"the image was changed (SHA-256 differs): {self.root}"]


def binder() -> list[str]:
    """The words that start plumb-bind in a container, with the loader and the libraries of the host."""
    return [str(INSIDE / "bin" / LOADER), "--library-path", str(INSIDE / "bin"), str(INSIDE / "tools/bin/plumb-bind")]


def user() -> dict[str, str]:
    """The variable without which ch-run does not start."""
    return {"USER": getpass.getuser()}


def on_host(path: str, folder: Path) -> Path:
    """A ``path`` in the environment of a rank, which may be in a container, whose launch runs in ``folder``."""
    return folder / (Path(path).relative_to(LAUNCH) if Path(path).is_relative_to(LAUNCH) else path)


def digest(image: Path) -> str:
    """SHA-256 of an image: of the file, or of the list of all that is in a folder.

    The list has a line for each entry below the folder, sorted by path, as bytes: kind and permissions in octal digits
    (``st_mode``), path, and the SHA-256 of a file, or where a link points, or nothing; NUL between the three. Owners
    and times do not count. Raises OSError.
    """
    if not image.is_dir():
        return files.sha256_once(image)
    whole = hashlib.sha256()
    for path, mode in sorted(_entries(image), key=lambda entry: os.fsencode(entry[0])):
        content = b""
        if stat.S_ISLNK(mode):
            content = os.fsencode(os.readlink(image / path))  # noqa: PTH115 - Path changes the text
        elif stat.S_ISREG(mode):
            content = files.sha256_once(image / path).encode()
        whole.update(b"%o\0%b\0%b\n" % (mode, os.fsencode(path), content))
    return whole.hexdigest()


def _entries(folder: Path, below: str = "") -> Iterator[tuple[str, int]]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            mode = entry.stat(follow_symlinks=False).st_mode
            yield path, mode
            if stat.S_ISDIR(mode):
                yield from _entries(folder, f"{path}/")


def is_sif(image: Path) -> bool:
    """Whether a file is an image of Apptainer."""
    with image.open("rb") as stream:
        return stream.read(SIF_AT + len(SIF))[SIF_AT:] == SIF
