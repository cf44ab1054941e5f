"""The witness files of one launch. A damaged one is a reason, never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline import schemas
from plumbline.base.errors import PlumbError
from plumbline.witness import processes


def read(folder: Path | str) -> tuple[list[dict[str, Any]], list[str]]:
    """One witness for each rank, ordered by host and rank, from the documents in ``folder`` (every ``*.json``).

    Also returns a reason for each document that is damaged, and for each process that left children's documents only
    (:mod:`plumbline.witness.processes`).
    """
    documents: list[dict[str, Any]] = []
    reasons: list[str] = []
    if not Path(folder).is_dir():
        return [], [f"no witness folder {folder}"]
    for file in sorted(Path(folder).glob("*.json")):
        try:
            documents.append(_load(file))
        except PlumbError as error:
            reasons.append(str(error))
    documents.sort(key=lambda item: (item["host"], item["rank"], item["local_rank"], item["pid"]))
    witnesses, orphans = processes.group(documents)
    return witnesses, reasons + orphans


def _load(file: Path) -> dict[str, Any]:
    cure = "the launch cannot be verified"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(f"unreadable witness file: {error}", str(file), cure) from error
    try:
        document: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlumbError(f"damaged witness file: {error}", str(file), cure) from error
    if isinstance(document, dict) and "ancestors" not in document:
        raise PlumbError(
            "witness file of an earlier libplumbwitness.so", str(file), "build the tools again: make setup"
        )
    schemas.check("witness", document, str(file))
    return document
