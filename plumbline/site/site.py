"""Reading a site folder: ``site.yaml``, the topologies and the references."""

from __future__ import annotations

import difflib
import re
import socket
from pathlib import Path
from typing import Any

import yaml

from plumbline import paths, schemas
from plumbline.errors import PlumbError
from plumbline.site.tests import family

FILE = "site.yaml"


def folder(name: str) -> Path:
    """The folder of site ``name``."""
    return paths.sites() / name


def names() -> list[str]:
    """The sites that have a ``site.yaml``, sorted."""
    return sorted(entry.parent.name for entry in paths.sites().glob(f"*/{FILE}"))


def references_file(name: str, test: str) -> Path:
    """Where the references of ``test``'s family stand in site ``name``."""
    return folder(name) / "references" / f"{family(test)}.yaml"


def load(name: str) -> dict[str, Any]:
    """``site.yaml`` of site ``name``, valid by its schema, with every topology file there."""
    file = folder(name) / FILE
    document = read_yaml(file, f"site '{name}'", f"plumb site init --name {name}")
    check(document, str(file))
    if document["name"] != name:
        raise PlumbError(f"the site calls itself '{document['name']}'", str(file), f"its folder is called '{name}'")
    for part in document["partitions"]:
        topology = file.parent / part["topology"]
        if not topology.is_file():
            raise PlumbError(
                f"partition {part['name']} has no topology file {part['topology']}",
                str(file),
                f"plumb site init --name {name} captures this host's",
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
    """The name of the site that claims this host."""
    documents = load_all()
    claimed = claiming(documents)
    if claimed is None:
        known = ", ".join(document["name"] for document in documents) or "none: plumb site init makes one"
        raise PlumbError(f"no site claims this host, {socket.gethostname()}", str(paths.sites()), f"known: {known}")
    return str(claimed["name"])


def partition(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The element of ``partitions`` that is called ``name``."""
    for part in document["partitions"]:
        if part["name"] == name:
            return dict(part)
    known = [part["name"] for part in document["partitions"]]
    raise PlumbError(
        f"site {document['name']} has no partition '{name}'",
        str(folder(document["name"]) / FILE),
        _suggest(name, known),
    )


def references(name: str) -> dict[str, list[dict[str, Any]]]:
    """What ``references/*.yaml`` expects: test -> list of references (empty until something was calibrated)."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((folder(name) / "references").glob("*.yaml")):
        document = read_yaml(file, "references", "restore the file")
        wanted = {"schema": int, "test": str, "references": list}
        unknown = sorted(set(document) - set(wanted))
        if unknown:
            raise PlumbError(f"unknown key '{unknown[0]}'", str(file), _suggest(unknown[0], list(wanted)))
        for key, kind in wanted.items():
            if not isinstance(document.get(key), kind):
                raise PlumbError(f"key '{key}' is missing or not a {kind.__name__}", str(file), "mend it")
        found[document["test"]] = document["references"]
    return found


def read_yaml(file: Path, what: str, cure: str) -> dict[str, Any]:
    """A YAML mapping, or an error that names the line."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlumbError(f"{what} does not exist", str(file), cure) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"cannot read {what}: {error}", str(file), "mend the file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or str(error)
        raise PlumbError(f"{what} is not YAML: {problem}", place, "mend that line") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{what} is not a mapping of keys", str(file), "mend the file")
    return document


def check(document: dict[str, Any], where: str) -> None:
    """Raise :class:`PlumbError` for the first key that is unknown, with the one that was meant, or else wrong."""
    schema: Any = schemas.validator("site").schema
    for key, known in _unknown(document, schema, ""):
        raise PlumbError(f"unknown key '{key}'", where, _suggest(key.rsplit(".", 1)[-1], known))
    schemas.check("site", document, where)
    seen: set[str] = set()
    for part in document["partitions"]:
        if part["name"] in seen:
            raise PlumbError(f"two partitions are called '{part['name']}'", where, "rename one")
        seen.add(part["name"])


def _unknown(value: Any, schema: dict[str, Any], path: str) -> list[tuple[str, list[str]]]:
    """Keys that the schema does not know, each with those it knows at that place."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [found for index, item in enumerate(value) for found in _unknown(item, items, f"{path}[{index}]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    found = []
    for key, item in value.items():
        place = f"{path}.{key}" if path else str(key)
        if key not in known:
            found.append((place, list(known)))
        else:
            found += _unknown(item, known[key], place)
    return found


def _suggest(word: str, known: list[str]) -> str:
    """``did you mean X?`` or the list of what there is."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"
