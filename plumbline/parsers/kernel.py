"""Parser of our own kernels' ``--json`` output, one document of the schema ``kernel``:

    {"schema":1,"kernel":"pi","ranks":2,…,"passed":true,"measurements":[
    {"metric":"time","value":7656.6,"unit":"us","better":"lower","params":{"intervals":1048576},"samples":5,"limit":null}]}

The metrics are the kernel's figures, the params those of its rows. A result that is not correct is not a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbline import schemas
from plumbline.base.errors import PlumbError
from plumbline.parsers.measurement import Measurement, ParseError, measured
from plumbline.parsers.text import context_int, context_str, lines_of, quote, require_alive


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """Every figure of one launch. Context: ``kernel``, ``ranks`` and ``threads``, checked if given."""
    document = _document(text)
    kernel = document["kernel"]
    for key, seen, wanted in (
        ("kernel", kernel, context_str(context, "kernel")),
        ("ranks", document["ranks"], context_int(context, "ranks")),
        ("threads", document["threads"], context_int(context, "threads")),
    ):
        if wanted is not None and wanted != seen:
            raise ParseError(f"kernel: ran with {key} = {seen}, {wanted} was asked for")
    wrong = [check["what"] for check in document["checks"] if not check["passed"]]
    if wrong or not document["passed"]:
        raise ParseError(f"{kernel}: the answer is wrong: {', '.join(wrong) or 'it says so without a reason'}")
    found = [
        measured(
            item["metric"], item["value"], item["unit"], item["better"], item["params"], item["samples"], item["limit"]
        )
        for item in document["measurements"]
    ]
    places = {(item.metric, tuple(sorted(item.params.items()))) for item in found}
    if len(places) != len(found):
        raise ParseError(f"{kernel}: two figures have the same name and parameters")
    return found


def remarks(text: str) -> list[str]:
    """What the kernel printed about a run that :func:`parse` has accepted: what a reader of its figures must know."""
    return list(schemas.parse_json(text).get("remarks", []))


def work(text: str) -> dict[str, Any] | None:
    """What the kernel did in everything that it timed, as its schema says; None if its model counts no work."""
    found: dict[str, Any] | None = schemas.parse_json(text).get("work")
    return found


def _document(text: str) -> dict[str, Any]:
    lines = lines_of(text)
    require_alive(lines)
    if not any(lines):
        raise ParseError("kernel: no output")
    try:
        document = schemas.parse_json(text)
    except ValueError as error:
        first = next(line for line in lines if line)
        raise ParseError(f"kernel: not one JSON document ({error}): {quote(first)}") from None
    try:
        schemas.check("kernel", document, "output of the kernel")
    except PlumbError as error:
        raise ParseError(f"kernel: {error.what}", error.where) from None
    return dict(document)
