"""Reading a site folder: ``site.yaml``, the topologies and the references."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

from plumbline import schemas
from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.site.tests import family

FILE = "site.yaml"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")


def folder(name: str) -> Path:
    """The folder of site ``name``."""
    return paths.sites() / name


def names() -> list[str]:
    """The sites that have a ``site.yaml``, sorted."""
    return sorted(entry.parent.name for entry in paths.sites().glob(f"*/{FILE}"))


def references_file(name: str, test: str) -> Path:
    """Where the references of ``test``'s family stand in site ``name``."""
    return folder(name) / "references" / f"{family(test)}.yaml"


def references_missing(name: str, test: str) -> str | None:
    """What to do about the reference file that ``test``'s family lacks in site ``name``; None where it has one.

    ``plumb site init`` makes the files of the suite's own tests only.
    """
    file = references_file(name, test)
    if file.is_file():
        return None
    lines = f"'schema: 1', 'test: {family(test)}' and 'references: []'"
    return f"reference file is missing: {file}: write it with the lines {lines}"


def load(name: str) -> dict[str, Any]:
    """``site.yaml`` of site ``name``; raises :class:`PlumbError` unless it is valid and its topology files exist."""
    if not _NAME.fullmatch(name):
        raise PlumbError(
            f"'{name[:40]}' cannot be the name of a site", str(paths.sites()), "plumb site list names them"
        )
    file = folder(name) / FILE
    document = schemas.read_yaml(file, f"site '{name}'", f"plumb site init --site {name}")
    check(document, str(file))
    if document["name"] != name:
        raise PlumbError(f"the site calls itself '{document['name']}'", str(file), f"its folder is called '{name}'")
    for part in document["partitions"]:
        topology = file.parent / part["topology"]
        if not topology.is_file():
            raise PlumbError(
                f"partition {part['name']} has no topology file {part['topology']}",
                str(file),
                f"plumb site init --site {name} captures this host's",
            )
    return document


def load_all() -> list[dict[str, Any]]:
    """Every site, sorted by name."""
    return [load(name) for name in names()]


def is_here(document: dict[str, Any]) -> bool:
    """Whether a site claims this host, as ReFrame decides it: one of its patterns matches the host's name."""
    return any(re.match(pattern, socket.gethostname()) for pattern in document["hostnames"])


def claiming(documents: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The site of ``documents`` that claims this host: the first, as ReFrame chooses; None if none does."""
    return next((document for document in documents if is_here(document)), None)


def here() -> str:
    """The name of the site that claims this host; raises :class:`PlumbError` if none does, or a site is not valid."""
    documents = load_all()
    claimed = claiming(documents)
    if claimed is None:
        known = ", ".join(document["name"] for document in documents) or "none: plumb site init makes one"
        raise PlumbError(f"no site claims this host, {socket.gethostname()}", str(paths.sites()), f"known: {known}")
    return str(claimed["name"])


def partition(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The element of ``partitions`` that is called ``name``; raises :class:`PlumbError` if there is none."""
    for part in document["partitions"]:
        if part["name"] == name:
            return dict(part)
    known = [part["name"] for part in document["partitions"]]
    raise PlumbError(
        f"site {document['name']} has no partition '{name}'",
        str(folder(document["name"]) / FILE),
        suggest(name, known),
    )


def check_values(document: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` for the first value of another type; keys may be missing, and unknown ones stand."""
    for error in schemas.validator("site").iter_errors(document):
        if error.validator == "type":
            raise PlumbError(f"{error.json_path.removeprefix('$.')}: {error.message}", where, "correct or remove it")


def _check_texts(value: Any, where: str, key: str = "") -> None:
    """Raise :class:`PlumbError` for a text that is no single line that can be shown: it would spoil what names it."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        _check_texts(str(name), where, f"{key}.{name}")
        _check_texts(member, where, f"{key}.{name}")
    if isinstance(value, str) and terminal.steers(value):
        raise PlumbError(f"{key.removeprefix('.')} has a character that cannot be shown", where, "write it in one line")


def check(document: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` for the first unknown key, with a suggestion, or else for the first wrong value."""
    for error in schemas.validator("site").iter_errors(document):
        if error.validator == "additionalProperties" and "properties" in error.schema:
            known = list(error.schema["properties"])
            key = next(key for key in error.instance if key not in known)
            place = f"{error.json_path}.{key}".removeprefix("$.")
            raise PlumbError(f"unknown key '{place}'", where, suggest(str(key), known))
    schemas.check("site", document, where)
    _check_texts(document, where)
    for pattern in document["hostnames"]:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            what = f"hostnames: {pattern!r} is not a regular expression: {error}"
            raise PlumbError(what, where, "correct it") from None
    seen: set[str] = set()
    for part in document["partitions"]:
        if part["name"] in seen:
            raise PlumbError(f"two partitions are called '{part['name']}'", where, "rename one")
        seen.add(part["name"])
        topology = Path(part["topology"])
        if topology.is_absolute() or ".." in topology.parts:
            raise PlumbError(f"topology '{topology}' lies outside the site folder", where, "name a file inside it")
