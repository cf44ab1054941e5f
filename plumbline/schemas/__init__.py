"""JSON Schemas of every file that two parts of Plumbline exchange, and the functions that read and check such files."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import yaml

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
        raise PlumbError(f"not a valid {name}: {key}: {error.message[:200]}", where, "fix or regenerate it")


def read_yaml(file: Path, what: str, cure: str) -> dict[str, Any]:
    """A YAML mapping, or an error that names the line."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlumbError(f"{what} does not exist", str(file), cure) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"cannot read {what}: {error}", str(file), "fix the file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or str(error)
        raise PlumbError(f"{what} is not YAML: {problem}", place, "fix that line") from None
    if not isinstance(document, dict):
        raise PlumbError(f"{what} is not a mapping of keys", str(file), "fix the file")
    return document
