"""The states of an application's code: the present content of the folder, and the commits of its repository."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from plumbline.base import files, git
from plumbline.base.errors import PlumbError
from plumbline.measure.application.model import FILE

#: of a build: names and values
Variables: TypeAlias = tuple[tuple[str, str], ...]
#: bytes of a folder without git that are copied at most
MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class Source:
    """A state of the code in ``folder``, which has the plumb.yaml.

    ``commit`` is its commit; None where the folder is in no repository: then ``digest`` is that of its files.
    ``changed``: tracked files differ from the commit that is checked out; ``commit`` is then one of its own, of no
    branch, that has the changes. ``repository`` is the folder that has the repository. ``variables`` are for the lines
    of ``build``: name and value.
    """

    folder: Path
    repository: Path | None
    commit: str | None
    changed: bool = False
    digest: str = ""
    variables: Variables = ()

    @property
    def identity(self) -> str:
        """The identity of this state of the code."""
        return self.commit or self.digest

    @property
    def key(self) -> str:
        """The identity of this state and its variables, as a file's name."""
        variables_hash = hashlib.sha256(repr(self.variables).encode()).hexdigest()[:8]
        return f"{self.identity[:12]}{f'-{variables_hash}' if self.variables else ''}"

    @property
    def label(self) -> str:
        """For people: the first digits of the commit, and the variables."""
        changes = " with changes that are not committed" if self.changed else ""
        return ", ".join([f"{self.identity[:12]}{changes}", *(f"{name}={value}" for name, value in self.variables)])


def present(file: Path, variables: Variables = ()) -> Source:
    """The code as it lies beside ``file``, with changes of tracked files that are not committed."""
    folder = file.parent
    repository = git.top(folder)
    if repository is None:
        return Source(folder, None, None, digest=_digest(folder), variables=variables)
    head = git.commit("HEAD", repository)
    if head is None:
        raise PlumbError("the repository has no commit", str(repository), "git commit what is to be measured")
    date = git.run("show", "--no-patch", "--format=%cI", head, at=repository)
    always = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}  # the same changes are the same commit
    stashed = git.run("stash", "create", at=repository, variables=always)
    return Source(folder, repository, stashed or head, bool(stashed), variables=variables)


def of_commit(file: Path, name: str, variables: Variables = ()) -> Source:
    """The code at the commit that ``name`` stands for. Raises :class:`PlumbError` where there is none."""
    repository = git.top(file.parent)
    if repository is None:
        raise PlumbError(f"'{name}' is not a commit: this is not a git repository", str(file.parent), "git init")
    commit = git.commit(name, repository)
    if commit is None:
        raise PlumbError(f"'{name}' is not a commit", str(repository), "git log has them")
    return Source(file.parent, repository, commit, variables=variables)


def check_out(source: Source, target: Path) -> Path:
    """Make a clean copy of the code in ``target``, which is not there yet; returns the folder that has plumb.yaml.

    Of a repository it has what is committed, submodules too, and nothing else. Raises :class:`PlumbError` if git
    refuses, or where that state has no plumb.yaml in this place.
    """
    if source.repository is None:
        shutil.copytree(source.folder, target, symlinks=True)
        return target
    git.check_out(source.repository, str(source.commit), target)
    return target / source.folder.relative_to(source.repository)


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of all files below ``folder``."""
    digest, size = hashlib.sha256(), 0
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.is_symlink():
            continue
        size += file.stat().st_size
        if size > MOST_BYTES:
            cure = f"git init there, or move {FILE} to a folder with what is measured alone"
            raise PlumbError(f"the folder has more than {MOST_BYTES >> 30} GiB of files", str(folder), cure)
        digest.update(f"{file.relative_to(folder)}\0{files.sha256(file)}\0".encode())
    return digest.hexdigest()
