"""git, in this checkout or in the repository of an application. https://git-scm.com/docs/git"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import plumbline
from plumbline.base import paths
from plumbline.base.errors import PlumbError

#: seconds that git may take
PATIENCE_S = 60.0
#: and that of copies, whose submodules may be fetched over a network
COPY_S = 1800.0
#: no hook of the user runs, and the output has nothing but what was asked for
OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
#: words of a refusal -> the cure, after git's own advice
CURES = {
    "submodule path": "git submodule update --init, or git config submodule.NAME.update none where it is not needed",
    "filter": "install the program of this filter (git-lfs), then git -C {where} status",
    "not a git repository": "cd to the repository first",
    "permission": "commit what was changed, or measure a clone of your own",
}
#: what of a repository's settings its copy needs: origins of submodules and missing files, parts that are checked out
KEPT = (
    r"^(remote\..*\.(url|promisor|partialclonefilter)|extensions\.partialclone|core\.sparsecheckout(cone)?"
    r"|submodule\..*\.(url|update|active))$"
)
#: whose commit the changes are that nobody has committed: the same for all, so that the same changes are one commit
NOBODY = {f"GIT_{role}_{kind}": "plumb" for role in ("AUTHOR", "COMMITTER") for kind in ("NAME", "EMAIL")}


def is_checkout() -> bool:
    """Whether the suite lies in a git checkout, and not in an unpacked archive of its files."""
    return (paths.root() / ".git").exists()


def run(
    *arguments: str,
    at: Path | None = None,
    accepted: Collection[int] = (0,),
    variables: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> str:
    """The output of git in the folder ``at`` (default: this checkout) with ``variables``, without the blanks around it.

    Raises :class:`PlumbError` if it refuses (its exit status is not ``accepted``), does not answer or is not there.
    """
    where = at or paths.root()
    # its messages are compared, and the user's own commands are not kept from the index
    plain = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", **(variables or {}), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *OPTIONS, *arguments],
            capture_output=True, text=True, errors="surrogateescape", timeout=patience_s, env=plain,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise PlumbError(f"git does not answer: {error}", f"git {arguments[0]}", "is git installed?") from error
    if done.returncode in accepted:
        return done.stdout.strip()
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    message = next((line for line in lines if re.match("(fatal|error): ", line)), lines[0])
    advice = re.search(r"^\s*(git config --global --add safe\.directory .+)", done.stderr, re.MULTILINE)
    cure = next((cure for words, cure in CURES.items() if words in done.stderr), "git -C {where} status")
    cure = advice[1] if advice else cure.format(where=where)
    raise PlumbError(f"git refuses: {re.sub('^(fatal|error): ', '', message)}", f"git {arguments[0]}", cure)


def top(folder: Path) -> Path | None:
    """The repository's uppermost folder that ``folder`` is in; None if it is in none.

    Raises :class:`PlumbError` if git refuses, as it does in a checkout of another owner.
    """
    try:
        return Path(run("rev-parse", "--show-toplevel", at=folder))
    except PlumbError as error:
        if "not a git repository" in error.message:
            return None
        raise


def commit(name: str = "HEAD", at: Path | None = None) -> str | None:
    """The commit that ``name`` (a branch, a tag, its first digits) stands for in ``at`` (default: this checkout).

    None if there is none of that name, or this is not a checkout. Raises :class:`PlumbError` if git refuses, as it does
    in a checkout of another owner.
    """
    if at is None and not is_checkout():
        return None
    verify = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return run(*verify, at=at, accepted=(0, 1)) or None  # an unknown name is 1, without a word; a refusal is 128


def present(repository: Path) -> str:
    """A commit of the tracked files of ``repository`` as they lie there; HEAD where none was changed.

    It is of no branch. A conflict is as the file shows it, and of a submodule that is there the same holds. Neither
    branches, index nor files are touched. Raises :class:`PlumbError` without a commit, and if git refuses.
    """
    if (head := commit("HEAD", repository)) is None:
        raise PlumbError("the repository has no commit", str(repository), "git commit what is to be measured")
    date = run("show", "--no-patch", "--format=%cI", head, at=repository)
    with tempfile.TemporaryDirectory() as folder:
        index, mine = repository / run("rev-parse", "--git-path", "index", at=repository), Path(folder) / "index"
        if index.exists():
            shutil.copy2(index, mine)  # by its time git knows which files may have changed in the same second
        around = {**NOBODY, "GIT_INDEX_FILE": str(mine), "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        # of a file that was only touched nothing is written, which nobody may in a repository of another owner
        run("update-index", "-q", "--refresh", at=repository, accepted=(0, 1), variables=around, patience_s=COPY_S)
        run("add", "--update", "--", ".", at=repository, variables=around, patience_s=COPY_S)
        for path in submodules(repository):
            listed = run("ls-files", "--stage", "--", path, at=repository, variables=around)
            if listed.startswith("160000") and (repository / path / ".git").exists():
                entry = f"160000,{present(repository / path)},{path}"
                run("update-index", "--cacheinfo", entry, at=repository, variables=around)
        tree = run("write-tree", at=repository, variables=around)
    if tree == run("rev-parse", f"{head}^{{tree}}", at=repository):
        return head
    return run("commit-tree", tree, "-p", head, "-m", "files as they were measured", at=repository, variables=around)


def submodules(repository: Path) -> dict[str, str]:
    """The names of the submodules that the file .gitmodules of ``repository`` lists, by path."""
    words = ("config", "--null", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    listed = run(*words, at=repository, accepted=(0, 1)) if (repository / ".gitmodules").is_file() else ""
    pairs = (line.partition("\n") for line in listed.split("\0") if line)
    return {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in pairs}


def check_out(repository: Path, commit: str, target: Path) -> None:
    """Make a clean copy of ``commit`` in ``target``, which is not there yet: what is committed, submodules too.

    Those that are in ``repository`` come from there, the others from their origin. Of a sparse or partial checkout the
    copy is one too. Raises :class:`PlumbError` if git refuses.
    """
    clone = ("clone", "--quiet", "--shared", "--no-checkout", "--origin", "origin", "--", str(repository), str(target))
    run(*clone, at=target.parent, patience_s=COPY_S)
    objects, patterns = (
        repository / run("rev-parse", "--git-path", name, at=repository) for name in ("objects", "info/sparse-checkout")
    )
    # a clone of a shallow repository has what its branches have, and ``commit`` may be of none
    for name, text in {
        "objects/info/alternates": f"{objects}\n",
        "info/sparse-checkout": patterns.read_text(encoding="utf-8") if patterns.is_file() else "",
    }.items():
        (target / ".git" / name).parent.mkdir(exist_ok=True)
        (target / ".git" / name).write_text(text, encoding="utf-8")
    settings = run("config", "--null", "--get-regexp", KEPT, at=repository, accepted=(0, 1)).split("\0")
    # submodules with relative URLs are beside the origin, which of a copy is the repository here
    for key, _, value in (setting.partition("\n") for setting in settings if setting):
        run("config", "--replace-all", key, value, at=target)
    run("checkout", "--quiet", "--detach", commit, at=target, patience_s=COPY_S)
    fetch_submodules(repository, target)


def fetch_submodules(repository: Path, target: Path) -> None:
    """Check out the submodules of ``target``, a copy of ``repository``, and theirs."""
    for path, name in submodules(target).items():
        local: tuple[str, ...] = ()
        if (repository / path / ".git").exists():
            local = ("-c", "protocol.file.allow=always")
            run("config", f"submodule.{name}.url", str((repository / path).resolve()), at=target)
        run(*local, "submodule", "--quiet", "update", "--init", "--", path, at=target, patience_s=COPY_S)
        if (target / path / ".git").exists():
            fetch_submodules(repository / path, target / path)


def suite_state() -> dict[str, Any]:
    """The state of the suite for a record: version, git commit and whether tracked files were changed.

    Commit and dirty are None outside a git checkout. Where git does not answer for the checkout they are None too, and
    ``unknown`` says why, with the cure.
    """
    state: dict[str, Any] = {"version": plumbline.__version__, "commit": None, "dirty": None}
    if not is_checkout():
        return state
    try:
        state["commit"] = commit()
        state["dirty"] = bool(run("status", "--porcelain", "--untracked-files=no"))
    except PlumbError as error:
        state["unknown"] = str(error)
    return state
