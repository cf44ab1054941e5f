"""``.venv/bin/python tests/support/schema_files.py`` writes the files of ``plumbline/base/schemas`` made from types."""

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from plumbline.base import schemas
from plumbline.base.schemas import site
from plumbline.extras.accept import model as contracts
from plumbline.extras.labs import model as labs
from plumbline.extras.spack import environments
from plumbline.gate import rules
from plumbline.host import binder, ceilings
from plumbline.judge.references import match as references
from plumbline.launch import profiles
from plumbline.launch.witness.model import Witness
from plumbline.measure.application import model as applications
from plumbline.parsers import kernel
from plumbline.records import variant
from plumbline.records.model import Record
from plumbline.site.nodes.model import Node
from plumbline.stacks import manifest, module, source

#: name of the file -> what it describes
TYPES: dict[str, type[msgspec.Struct]] = {
    "application": applications.Application,
    "ceilings": ceilings.Document,
    "contract": contracts.Contract,
    "gate": rules.Rules,
    "kernel": kernel.Printed,
    "lab": labs.Lab,
    "manifest": manifest.Manifest,
    "module-stacks": module.Descriptions,
    "node": Node,
    "plan": binder.Printed,
    "profile": profiles.Printed,
    "record": Record,
    "references": references.Document,
    "site": site.Site,
    "sources": source.Descriptions,
    "spack-versions": environments.Versions,
    "variant": variant.VariantRequest,
    "witness": Witness,
}
#: characters in a line
WIDTH = 120


def file(name: str) -> Path:
    """Where the schema of document ``name`` is."""
    return Path(schemas.__file__).with_name(f"{name}.json")


def text(name: str) -> str:
    """The JSON schema of a document. Descriptions are the docstrings of the types, each on one line."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(TYPES[name])}
    return _indented(document, "") + "\n"


def check(name: str, document: Any) -> None:
    """Raise ValueError unless ``document`` obeys the file of schema ``name``."""
    if (error := next(_validator(name).iter_errors(document), None)) is not None:
        raise ValueError(error.message)


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(file(name).read_text(encoding="utf-8")))


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
    for name in TYPES:
        file(name).write_text(text(name), encoding="utf-8")
