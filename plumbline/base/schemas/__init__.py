"""JSON Schemas of every file that two parts of Plumbline exchange, and the functions that read and check such files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import yaml

from plumbline.base import yaml_text
from plumbline.base.errors import PlumbError
from plumbline.base.schemas import errors

T = TypeVar("T")
#: most values in a YAML file; those that an alias repeats count each time
MOST_VALUES = 1_000_000


def is_text(value: Any) -> bool:
    """Whether files can hold it and programs be given it: no NUL, no half of a surrogate pair."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


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


def faults(document: Any, kind: Any) -> list[str]:
    """``KEY: MESSAGE`` for all parts of ``document`` that are not as the type ``kind`` says."""
    sentences: list[str] = []
    try:
        sentences += sorted(errors.every(document, kind))
        check_values(document)
    except (ValueError, RecursionError) as error:
        sentences.append(errors.sentence([], "nested too deeply" if isinstance(error, RecursionError) else str(error)))
    return sentences


def convert(name: str, document: Any, kind: type[T], where: str) -> T:
    """``document``, of :func:`parse_json` or :func:`read_yaml`, as the type that schema ``name`` is made from.

    Raises :class:`PlumbError` naming the first offending key, and for what no file or program can be given.
    """
    try:
        converted = msgspec.convert(document, kind)
        check_values(document)
    except msgspec.ValidationError as error:
        reason = errors.sentence(*errors.locate(error, document, kind))
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    else:
        return converted
    raise PlumbError(f"not a valid {name}: {reason}", where, "fix or regenerate it")


def fault(name: str, error: msgspec.ValidationError) -> str:
    """Where and what is wrong in a document ``name`` that a type does not take."""
    message, path = errors.split(error)
    place = path.strip("`").replace("` in `", " in ").replace("$.", "") or "top level"
    return f"not a valid {name}: {place}: {message}"


def read_yaml(file: Path, label: str, cure: str) -> dict[str, Any]:
    """A YAML mapping whose keys are texts; otherwise raises :class:`PlumbError`, with the line if it is known.

    ``label`` names the file in errors; ``cure`` is what to do if it does not exist.
    """
    try:
        document = yaml_text.load(file.read_text(encoding="utf-8"))
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
        elif isinstance(value, str) and not is_text(value):
            raise ValueError(f"{value[:40]!r} has a character that no text has")
