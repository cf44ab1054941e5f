"""JSON Schemas of every file that two parts of Plumbline exchange, and the functions that read and check such files."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from plumbline.base.errors import PlumbError, suggest

T = TypeVar("T")
#: where an error is in a document: keys and indices
Steps = list[str | int]
#: ends patterns of types, as an error has it: Python's ``$`` alone also passes over a line's end
END_OF_TEXT = r"$(?!\\n)"
#: an index, a name, or a key that msgspec does not name
_STEP = re.compile(r"\[(\d+)\]|\.([^.\[`]+)|\[\.\.\.\]")
#: most values in a YAML file; those that an alias repeats count each time
MOST_VALUES = 1_000_000


def whole(pattern: str) -> msgspec.Meta:
    """The constraint of texts that ``pattern`` matches from beginning to end."""
    return msgspec.Meta(pattern=f"^({pattern})$(?!\\n)")


def one_of(names: Iterable[str]) -> msgspec.Meta:
    """The constraint of texts that are one of ``names``, which consist of letters, digits and hyphens."""
    return whole("|".join(names))


def parse_json(text: str | bytes) -> Any:
    """A JSON document. Raises ValueError for everything else, NaN and nesting without end included.

    >>> parse_json("[1, 2.5]")
    [1, 2.5]
    """

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(file: Path, unread: str, wrong: str, cure: str, again: str = "", kind: Any = Any) -> Any:
    """The JSON document in ``file``, as the type ``kind``.

    Raises :class:`PlumbError`: ``unread`` and why, with ``cure``; or ``wrong`` and why, with the cure ``again`` if any.
    """
    try:
        return msgspec.convert(parse_json(file.read_text(encoding="utf-8")), kind)
    except OSError as error:
        raise PlumbError(f"{unread}: {error.strerror}", str(file), cure) from error
    except (ValueError, PlumbError) as error:
        raise PlumbError(f"{wrong}: {error}", str(file), again or cure) from error


def parse_yaml(text: str) -> Any:
    """The document that ``text`` is, of YAML's plain types.

    Raises YAMLError in the words of PyYAML, RecursionError for what is nested too deeply, and ValueError, LookupError,
    AttributeError or TypeError for values and tags that cannot be read.
    """
    from plumbline.base.schemas import bounded_yaml  # plans and witnesses are read without PyYAML

    return bounded_yaml.load(text)


def faults(document: Any, kind: Any) -> list[str]:
    """``KEY: MESSAGE`` for all parts of ``document`` that are not as the type ``kind`` says."""
    sentences: list[str] = []
    try:
        sentences += sorted(_every(document, kind))
        check_values(document)
    except (ValueError, RecursionError) as error:
        sentences.append(_sentence([], "nested too deeply" if isinstance(error, RecursionError) else str(error)))
    return sentences


def convert(name: str, document: Any, kind: type[T], where: str) -> T:
    """``document``, of :func:`parse_json` or :func:`read_yaml`, as the type that schema ``name`` is made from.

    Raises :class:`PlumbError` naming the first offending key, and for what no file or program can be given.
    """
    try:
        converted = msgspec.convert(document, kind)
        check_values(document)
    except msgspec.ValidationError as error:
        reason = _sentence(*_locate(error, document, kind))
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    else:
        return converted
    raise PlumbError(f"not a valid {name}: {reason}", where, "fix or regenerate it")


def fault(name: str, error: msgspec.ValidationError) -> str:
    """Where and what is wrong in a document ``name`` that a type does not take."""
    message, path = _split(error)
    place = path.strip("`").replace("` in `", " in ").replace("$.", "") or "top level"
    return f"not a valid {name}: {place}: {message}"


def read_yaml(file: Path, label: str, cure: str) -> dict[str, Any]:
    """A YAML mapping whose keys are texts; otherwise raises :class:`PlumbError`, with the line if it is known.

    ``label`` names the file in errors; ``cure`` is what to do if it does not exist.
    """
    import yaml  # not above: see parse_yaml

    try:
        document = parse_yaml(file.read_text(encoding="utf-8"))
        check_values(document, finite=False)
    except FileNotFoundError:
        raise PlumbError(f"{label} does not exist", str(file), cure) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"cannot read {label}: {error}", str(file), "fix the file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or str(error)
        raise PlumbError(f"{label} is not YAML: {problem}", place, "fix that line") from None
    except RecursionError:
        raise PlumbError(f"{label} is nested too deeply", str(file), "fix the file") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # PyYAML's own, of dates and tags
        raise PlumbError(f"{label} has a value that cannot be read: {error}", str(file), "fix the file") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{label} is not a mapping of keys", str(file), "fix the file")
    return document


def load(name: str, file: Path, kind: type[T], label: str, cure: str) -> T:
    """The YAML of ``file`` by :func:`read_yaml`, with its ``label`` and ``cure``, and :func:`convert`."""
    return convert(name, read_yaml(file, label, cure), kind, str(file))


def check_values(document: Any, finite: bool = True) -> None:
    """Raise ValueError for a key or text that is not text, and for aliases that repeat values without end.

    Without ``finite`` also numbers that are not finite pass: the schema may say it with their place.
    """
    stack, seen = [document], 0
    while stack:
        value = stack.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values")
        if isinstance(value, dict):
            odd = next((key for key in value if not isinstance(key, str)), None)
            if odd is not None:
                raise ValueError(f"the key {odd!r} is not text: quote it")
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif finite and isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        elif isinstance(value, str) and any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value):
            raise ValueError(f"{value[:40]!r} has a character that no text has")


def _split(error: msgspec.ValidationError) -> tuple[str, str]:
    """Message and path of an error, each as msgspec writes it."""
    message, separator, path = str(error).replace(END_OF_TEXT, "$").rpartition(" - at `")
    return (message, path) if separator else (path, "")


def _locate(error: msgspec.ValidationError, document: Any, kind: Any) -> tuple[Steps, str]:
    """Steps and message of the error by which ``document`` is not converted to ``kind``."""
    message, text = _split(error)
    path: Steps = []
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


def _sentence(path: Sequence[str | int], message: str) -> str:
    """``KEY: MESSAGE``."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{place.removeprefix('.') or 'top level'}: {message}"


def _every(document: Any, kind: Any) -> Iterator[str]:
    """``KEY: MESSAGE`` for each part of ``document`` that is not as ``kind`` says; of a list only the first."""
    document, removed = copy.deepcopy(document), list[Steps]()
    while True:
        try:
            msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            path, message = _locate(error, document, kind)
        else:
            return
        missing = re.fullmatch("Object missing required field `(.+)`", message)
        by_removal = [*path, missing[1]] in removed if missing else path in [part[:-1] for part in removed]
        if not by_removal:
            yield _sentence(path, message)
        index = next((number for number, step in enumerate(path) if isinstance(step, int)), len(path))
        removed.append(path[:index])
        if not path[:index]:
            return
        del _value_at(document, path[: index - 1])[path[index - 1]]


def _failing_key(document: Any, path: Steps, kind: Any, error: msgspec.ValidationError) -> str:
    """The key of the mapping at ``path`` with which alone there is the same error."""
    for key in _value_at(document, path):
        try:
            msgspec.convert(_with_one_key(document, path, key), kind)
        except msgspec.ValidationError as again:
            if str(again) == str(error):
                return str(key)
    return "..."


def _with_one_key(document: Any, path: Steps, key: str) -> Any:
    """``document`` with a single key in the mapping at ``path``."""
    changed = copy.copy(document) if path else {key: document[key]}
    if path:
        changed[path[0]] = _with_one_key(document[path[0]], path[1:], key)
    return changed


def _value_at(document: Any, path: Steps) -> Any:
    return functools.reduce(operator.getitem, path, document)


def _known_keys(kind: Any, path: Steps) -> list[str]:
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
