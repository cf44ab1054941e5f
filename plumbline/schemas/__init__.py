"""JSON Schemas of every file that two parts of Plumbline exchange, and the one function that checks against them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from plumbline.errors import PlumbError

NAMES = (
    "gate",
    "kernel",
    "manifest",
    "module-stacks",
    "node",
    "plan",
    "record",
    "references",
    "site",
    "spack-versions",
    "variant",
    "witness",
)


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The compiled validator of schema ``name`` (one of :data:`NAMES`)."""
    text = (Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def check(name: str, document: Any, where: str) -> None:
    """Raise :class:`PlumbError` naming the first offending key unless ``document`` obeys schema ``name``."""
    error = jsonschema.exceptions.best_match(validator(name).iter_errors(document))
    if error is not None:
        key = ".".join(str(part) for part in error.absolute_path) or "top level"
        raise PlumbError(f"not a valid {name}: {key}: {error.message[:200]}", where, "mend or regenerate it")
