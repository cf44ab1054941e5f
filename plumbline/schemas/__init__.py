"""JSON Schemas of every file that two parts of Plumbline exchange, and the functions that read and check such files."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import yaml

from plumbline.base import yaml_text
from plumbline.base.errors import PlumbError, suggest

T = TypeVar("T")
#: ends patterns of types, as an error has it: Python's ``$`` alone also passes over a line's end
END_OF_TEXT = r"$(?!\\n)"
#: most values in a YAML file; those that an alias repeats count each time
MOST_VALUES = 1_000_000


def is_text(value: Any) -> bool:
    """Whether files can hold it and programs be given it: no NUL, no half of a surrogate pair."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def whole(pattern: str) -> msgspec.Meta:
    """What a type says of texts that ``pattern`` matches from beginning to end."""
    return msgspec.Meta(pattern=f"^({pattern})$(?!\\n)")


def one_of(names: Iterable[str]) -> msgspec.Meta:
    """What a type says of texts that are one of ``names``, which consist of letters, digits and hyphens."""
    return whole("|".join(names))


@functools.cache
def validator(name: str) -> Any:
    """The compiled validator of the schema ``name``, a file of this folder."""
    text = (Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")
    return _rules(json.loads(text))


def _rules(schema: dict[str, Any]) -> Any:
    from plumbline.schemas import rules  # not above: most commands have types that check, and load in half the time

    return rules.Validator(schema)


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


def check(name: str, document: Any, where: str) -> None:
    """Raise :class:`PlumbError` naming the first offending key unless ``document`` obeys schema ``name``."""
    _check(validator(name), name, document, where)


def _check(rules: Any, name: str, document: Any, where: str) -> None:
    try:
        error = rules.first_fault(document)
    except RecursionError:
        raise PlumbError(f"not a valid {name}: nested too deeply", where, "fix or regenerate it") from None
    if error is not None:
        raise PlumbError(f"not a valid {name}: {_said(error)}", where, "fix or regenerate it")


def faults(name: str, document: Any) -> Iterator[str]:
    """``KEY: WHAT`` for all that schema ``name`` finds wrong in ``document``, key by key."""
    try:
        yield from map(_said, validator(name).faults(document))
    except RecursionError:
        yield "top level: nested too deeply"


def _said(error: Any) -> str:
    """``KEY: WHAT``; a key that the schema does not have is named with the one that is probably meant."""
    place = list(error.absolute_path)
    what = error.message.replace(END_OF_TEXT, "$")[:200]
    own, given = error.schema, error.instance
    known = own.get("properties") if error.validator == "additionalProperties" and isinstance(own, dict) else None
    if known and isinstance(given, dict):
        extra = next(str(key) for key in given if key not in known)
        place, what = [*place, extra[:80]], f"there is no such key: {suggest(extra, list(known))}"
    return f"{'.'.join(map(str, place)) or 'top level'}: {what}"


def convert(name: str, document: Any, kind: type[T], where: str) -> T:
    """``document``, of :func:`parse_json` or :func:`read_yaml`, as the type that schema ``name`` is made from.

    Raises :class:`PlumbError` naming the first offending key, and for what no file or program can be given.
    """
    try:
        made = msgspec.convert(document, kind)
        check_values(document)
    except msgspec.ValidationError as error:
        if "[...]" in str(error):
            _check(_rules(msgspec.json.schema(kind)), name, document, where)  # names the key that is left open
        what = fault(name, error, document)
    except (ValueError, RecursionError) as error:
        what = f"not a valid {name}: {'nested too deeply' if isinstance(error, RecursionError) else error}"
    else:
        return made
    raise PlumbError(what, where, "fix or regenerate it")


def fault(name: str, error: msgspec.ValidationError, document: Any = None) -> str:
    """Where and what is wrong in a document ``name`` that a type does not take; with its value in ``document``."""
    what, _, path = str(error).partition(" - at `")
    place = path.strip("`").replace("` in `", " in ").replace("$.", "") or "top level"
    if document is not None and what.startswith("Expected") and ", got " not in what:
        what = f"{what}, not {_at(document, path)!r:.200}"
    return f"not a valid {name}: {place}: {what}".replace(END_OF_TEXT, "$")


def _at(value: Any, path: str) -> Any:
    """What is at a path as msgspec writes it; where it leaves a key open, the mapping that has this key."""
    for index, key in re.findall(r"\[(\d+)\]|\.(\w+)", path.partition("[...]")[0]):
        value = value[int(index)] if index else value[key]
    return value


def read_yaml(file: Path, what: str, cure: str) -> dict[str, Any]:
    """A YAML mapping whose keys are texts; otherwise raises :class:`PlumbError`, with the line if it is known.

    ``what`` names the file in errors; ``cure`` is what to do if it does not exist.
    """
    try:
        document = yaml_text.load(file.read_text(encoding="utf-8"))
        check_values(document, finite=False)
    except FileNotFoundError:
        raise PlumbError(f"{what} does not exist", str(file), cure) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"cannot read {what}: {error}", str(file), "fix the file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or str(error)
        raise PlumbError(f"{what} is not YAML: {problem}", place, "fix that line") from None
    except RecursionError:
        raise PlumbError(f"{what} is nested too deeply", str(file), "fix the file") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # PyYAML's own, of dates and tags
        raise PlumbError(f"{what} has a value that cannot be read: {error}", str(file), "fix the file") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{what} is not a mapping of keys", str(file), "fix the file")
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
