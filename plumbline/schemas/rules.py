"""What a JSON Schema finds wrong in a document: jsonschema, and stricter where files and programs are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match

from plumbline.schemas import is_text


def _is_number(_: Any, value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    """``$`` matches only at the end of the text, as JSON Schema has it; in Python also before a final newline."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


#: JSON Schema, but a number is finite, an integer is written as one, and a text can be written to files and given to
#: programs (no NUL, no half of a surrogate pair)
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"pattern": _pattern},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer, "string": lambda _, value: is_text(value)}
    ),
)


class Validator:
    """A schema, compiled."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._made = _Validator(schema)

    def is_valid(self, document: Any) -> bool:
        """Whether nothing is wrong."""
        return bool(self._made.is_valid(document))

    def first_fault(self, document: Any) -> jsonschema.ValidationError | None:
        """The most telling fault."""
        return best_match(self._made.iter_errors(document))

    def faults(self, document: Any) -> Iterator[jsonschema.ValidationError]:
        """One for each key that is wrong, key by key."""
        found = self._made.iter_errors(document)
        for error in sorted(found, key=lambda error: list(map(str, error.absolute_path))):
            if (telling := best_match([error])) is not None:
                yield telling
