"""Errors of msgspec in words: where a document is not as its type says, and why."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from plumbline.base.errors import suggest

#: ends patterns of types, as an error has it: Python's ``$`` alone also passes over a line's end
END_OF_TEXT = r"$(?!\\n)"
#: an index, a name, or a key that msgspec does not name
_STEP = re.compile(r"\[(\d+)\]|\.([^.\[`]+)|\[\.\.\.\]")

Path = list[str | int]


def split(error: msgspec.ValidationError) -> tuple[str, str]:
    """Message and path of an error, each as msgspec writes it."""
    message, separator, path = str(error).replace(END_OF_TEXT, "$").rpartition(" - at `")
    return (message, path) if separator else (path, "")


def locate(error: msgspec.ValidationError, document: Any, kind: Any) -> tuple[Path, str]:
    """Path and message of the error by which ``document`` is not converted to ``kind``."""
    message, text = split(error)
    path: Path = []
    for step in _STEP.finditer(text):
        index, name = step.groups()
        path.append(int(index) if index else name or _failing_key(document, path, kind, error))
    if text.startswith("key`"):
        key = _failing_key(document, path, kind, error)
        return [*path, key], f"{message}, not {key!r:.200}"
    if unknown := re.fullmatch("Object contains unknown field `(.+)`", message, re.DOTALL):
        return [*path, unknown[1][:80]], f"there is no such key: {suggest(unknown[1], _known_keys(kind, path))}"
    if message.startswith("Expected") and ", got " not in message:
        message = f"{message}, not {_value_at(document, path)!r:.200}"
    return path, message


def sentence(path: Sequence[str | int], message: str) -> str:
    """``KEY: MESSAGE``."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{place.removeprefix('.') or 'top level'}: {message}"


def every(document: Any, kind: Any) -> Iterator[str]:
    """``KEY: MESSAGE`` for each part of ``document`` that is not as ``kind`` says; of a list only the first."""
    document, removed = copy.deepcopy(document), list[Path]()
    while True:
        try:
            msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            path, message = locate(error, document, kind)
        else:
            return
        missing = re.fullmatch("Object missing required field `(.+)`", message)
        by_removal = [*path, missing[1]] in removed if missing else path in [part[:-1] for part in removed]
        if not by_removal:
            yield sentence(path, message)
        index = next((number for number, step in enumerate(path) if isinstance(step, int)), len(path))
        removed.append(path[:index])
        if not path[:index]:
            return
        del _value_at(document, path[: index - 1])[path[index - 1]]


def _failing_key(document: Any, path: Path, kind: Any, error: msgspec.ValidationError) -> str:
    """The key of the mapping at ``path`` with which alone there is the same error."""
    for key in _value_at(document, path):
        try:
            msgspec.convert(_with_one_key(document, path, key), kind)
        except msgspec.ValidationError as again:
            if str(again) == str(error):
                return str(key)
    return "..."


def _with_one_key(document: Any, path: Path, key: str) -> Any:
    """``document`` with a single key in the mapping at ``path``."""
    if not path:
        return {key: document[key]}
    changed = document.copy()
    changed[path[0]] = _with_one_key(document[path[0]], path[1:], key)
    return changed


def _value_at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _known_keys(kind: Any, path: Path) -> list[str]:
    """The keys that ``kind`` has at ``path``."""
    from msgspec import inspect  # not above: only errors need it

    kinds = [inspect.type_info(kind)]
    for step in path:
        kinds = [inner for outer in kinds for inner in _inner(outer, step)]
    objects = [option for kind in kinds for option in getattr(kind, "types", [kind])]
    return [field.encode_name for object_ in objects for field in getattr(object_, "fields", ())]


def _inner(kind: Any, step: str | int) -> list[Any]:
    """The types that a member or an element of ``kind`` has."""
    if options := getattr(kind, "types", None):
        return [inner for option in options for inner in _inner(option, step)]
    if fields := getattr(kind, "fields", None):
        return [field.type for field in fields if field.encode_name == step]
    return [getattr(kind, name) for name in ("value_type", "item_type") if hasattr(kind, name)]
