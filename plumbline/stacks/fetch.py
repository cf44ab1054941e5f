"""Programs that a provider runs, and archives that it takes from the Python registry by lock and hash."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.base import paths, programs, surroundings
from plumbline.base.errors import PlumbError
from plumbline.stacks import archive

LOCKS = Path(__file__).parent / "wheels"
#: How compilers and build tools begin an error, the cause before its consequences; the first line of the first kind
#: that is there counts.
ERRORS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # gcc, clang, icx, flang, meson: FILE:LINE:; ifx, icc: FILE(LINE):; nvc: "FILE", line LINE:; Cray; nvfortran
        r"^.*(?::\d+|\(\d+\)|, line \d+): *(?:fatal |catastrophic )?(?i:error)\b.*"
        r"|^\S+-\d+ .*: ERROR .*|^NVFORTRAN-[FS]-.*",
        # gfortran, cargo
        r"^(?:Fatal )?Error: .*|^error(?:\[E\d+\])?: (?!could not compile|subprocess-exited|metadata-gen).*",
        r"^CMake Error\b.*|^.*\b(?:configure|mpif\w+): error: .*",
        r"^.*(?:undefined (?:reference to|symbol)|cannot find -l|library not found for).*",
        r"^.*(?:command not found|: not found|No such file or directory|Permission denied|No space left on device)$",
        r"^(?!collect2|ninja: build stopped).*\b(?:(?i:error)|[A-Z]\w*Error): (?!subprocess-exited|metadata-gen).*",
        r"^.*: \*\*\* (?!\[).*|^ninja: .*",  # make has no rule, or cannot read its file
        r"^.*\b(?i:error)s?\b(?![./]).*",
    )
)
#: the place of an error that its compiler prints on another line: gfortran above, rustc below, CMake's text below
_ABOVE, _BELOW = re.compile(r"^(\S.*:\d+:\d+:)\s*$"), re.compile(r"^\s+--> (\S+)$")
#: lines of the code, as compilers show them, and commands that make prints
_QUOTED = re.compile(r"\s*\d+ \| |\s*\S*(?:cc|\+\+|fort|f90|clang|icx|ifx) .* -")


def call(
    command: list[str],
    complaint: str,
    owner: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    cure: str = "",
) -> str:
    """Standard output of a command, run in ``folder``; raises :class:`PlumbError` if the command fails.

    The error quotes :func:`first_error`, and has the ``cure``. The whole output of a command that failed is kept in
    ``OWNER.log`` beside the stacks.
    """
    done = programs.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        log = paths.stacks() / f"{owner}.log"
        log.write_text(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}", encoding="utf-8")
        more = (line for line in done.stdout.splitlines() if "error" in line.lower())
        why = first_error("\n".join([done.stderr, *more])) or f"exit status {done.returncode}"
        raise PlumbError(f"{complaint}: {why}", f"stack {owner}", f"{cure}the whole output is in {log}")
    return done.stdout


def run_line(line: str, folder: Path, around: Mapping[str, str], failing: str, where: str, log: Path) -> None:
    """Run a ``line`` of a build in bash, in ``folder`` with the variables ``around``; its output goes to ``log``.

    Raises :class:`PlumbError` if it fails: ``failing``, its first error, and ``where`` it is written.
    """
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {line}\n")
        stream.flush()
        begin = stream.tell()
        command = ["bash", "-euo", "pipefail", "-c", line]
        done = programs.run(command, cwd=folder, env=around, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    if done.returncode == 0:
        return
    with log.open("rb") as stream:
        stream.seek(begin)
        printed = stream.read().decode(errors="replace")
    why = first_error(printed) or f"exit status {done.returncode}"
    raise PlumbError(f"{failing}: {why}", f"{where}: {line[:80]}", f"the whole output is in {log}")


def first_error(printed: str) -> str:
    r"""The line that names the cause in what a compiler or build tool printed, with its place; else the last line.

    >>> first_error("heat.f90:3:9:\n\n    3 |   call error(x\n      |   1\nError: Syntax error at (1)")
    'heat.f90:3:9: Error: Syntax error at (1)'
    >>> first_error("gcc -Werror -c error.c\nmake: *** [Makefile:2: all] Error 1\n")
    'make: *** [Makefile:2: all] Error 1'
    """
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    text = "\n".join(line for line in lines if not _QUOTED.match(line))
    match = next((match for kind in ERRORS if (match := kind.search(text))), None)
    if match is None:
        return lines[-1].strip()[:200] if lines else ""
    above = [line for line in text[: match.start()].splitlines()[-3:] if _ABOVE.match(line)]
    below = text[match.end() :].splitlines()[1:3]
    error = match[0].strip()
    if error.startswith("CMake Error at"):
        error = " ".join([error, *(line.strip() for line in below[:1])])
    elif above and re.match("(?:Fatal )?Error: ", error):
        error = f"{above[-1].strip()} {error}"
    elif place := next(filter(None, map(_BELOW.match, below)), None):
        error = f"{place[1]}: {error}"
    return error[:200]


def mark(file: Path) -> dict[str, Any]:
    """What ``file``, the mark of a folder that was built, says of the build; empty for one that is not complete."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def pip(arguments: list[str], lock: str, owner: str) -> None:
    """Run pip on a lock of :data:`LOCKS`: exactly the pinned files, each with its hash.

    They come from the unpacked archive where there is one, unless ``arguments`` say ``--no-index``.
    """
    file = LOCKS / f"{lock}.txt"
    source = [] if "--no-index" in arguments else archive.pip_options(file)
    locked = ["--no-deps", "--require-hashes", "--quiet", "-r", str(file)]
    command = [*paths.python(), "-m", "pip", *arguments, *source, *locked]
    around = surroundings.for_pip(sys.executable, os.environ)
    call(command, f"pip cannot get the packages of {file.name}", owner, around)


def venv(place: Path, owner: str) -> None:
    """Make a virtual environment without pip."""
    call([*paths.python(), "-m", "venv", "--without-pip", str(place)], "cannot make a virtual environment", owner)


def download(lock: str, folder: Path, owner: str, *, binary: bool, options: Sequence[str] = ()) -> dict[str, Path]:
    """Fetch the archives of a lock into ``folder`` without installing them; returns package -> file.

    ``options`` are added to those of pip.
    """
    kind = ["--only-binary", ":all:"] if binary else ["--no-binary", ":all:", "--no-build-isolation"]
    pip(["download", *kind, *options, "--dest", str(folder)], lock, owner)
    names = {file: file.name.removesuffix(".tar.gz").split("-")[0].replace("_", "-") for file in folder.iterdir()}
    return {names[file]: file for file in sorted(names)}


def extract(archive: Path, member: str, target: Path) -> None:
    """Copy one file out of a source archive, whose members all lie below one folder."""
    with tarfile.open(archive) as tar:
        top = tar.getnames()[0].split("/")[0]
        content = tar.extractfile(f"{top}/{member}") if f"{top}/{member}" in tar.getnames() else None
        if content is None:
            raise PlumbError(f"no {member} in the source archive", archive.name, "the lock names another archive")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read())


def unpack(wheel: Path, ending: str, target: Path) -> None:
    """Copy the member of a wheel whose name ends in ``ending``; raises :class:`PlumbError` unless there is just one."""
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith(ending)]
        if len(members) != 1:
            raise PlumbError(f"{len(members)} members end in '{ending}'", wheel.name, "the lock names another wheel")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(members[0]))
