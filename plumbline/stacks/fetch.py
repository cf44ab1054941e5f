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

from plumbline.base import paths, surroundings
from plumbline.base.errors import PlumbError
from plumbline.stacks import archive

LOCKS = Path(__file__).parent / "wheels"


def call(
    command: list[str],
    complaint: str,
    owner: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Standard output of a command, run in ``folder``; raises :class:`PlumbError` if the command fails.

    The error quotes the first line with ``error:``, or else the last line of the error output. The whole output of a
    command that failed is kept in ``OWNER.log`` beside the stacks.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    if done.returncode != 0:
        log = paths.stacks() / f"{owner}.log"
        log.write_text(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}", encoding="utf-8")
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        lines += [line for line in done.stdout.strip().splitlines() if "error" in line.lower()]
        errors = [line for line in lines if re.search("error:", line, re.IGNORECASE)]  # a compiler's, CMake's, pip's
        first = (errors or lines[-1:] or [f"exit status {done.returncode}"])[0]
        raise PlumbError(f"{complaint}: {first.strip()[:200]}", f"stack {owner}", f"the whole output is in {log}")
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
        done = subprocess.run(
            command, cwd=folder, env=around, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False
        )
    if done.returncode == 0:
        return
    with log.open("rb") as stream:
        stream.seek(begin)
        printed = stream.read().decode(errors="replace")
    lines = [text.strip() for text in printed.splitlines() if text.strip()]
    errors = [text for text in lines if "error" in text.lower()]
    why = (errors or lines[-1:] or [f"exit status {done.returncode}"])[0][:200]
    raise PlumbError(f"{failing}: {why}", f"{where}: {line[:80]}", f"the whole output is in {log}")


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
