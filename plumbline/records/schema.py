"""``python -m plumbline.records.schema`` writes ``plumbline/schemas/record.json`` from the types of a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from plumbline.records.model import Record

#: characters in a line
WIDTH = 120


def text(kind: type[msgspec.Struct] = Record) -> str:
    """The JSON schema of a document. Descriptions are the docstrings of the types, each on one line."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}
    return _indented(document, "") + "\n"


def _indented(value: Any, margin: str) -> str:
    if isinstance(value, str):
        value = " ".join(value.split())
    line = json.dumps(value)
    if not isinstance(value, dict) or (len(margin) + len(line) <= WIDTH and "description" not in value):
        return line
    inner = margin + "  "
    members = (f"{inner}{json.dumps(name)}: {_indented(item, inner)}" for name, item in value.items())
    return "{\n" + ",\n".join(members) + "\n" + margin + "}"


if __name__ == "__main__":
    (Path(__file__).parents[1] / "schemas" / "record.json").write_text(text(), encoding="utf-8")
