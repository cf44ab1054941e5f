"""The sealed archive of an acceptance test: contract, records, nodes, verdict and page, with the SHA-256 of each.

Whoever has it works the verdict out again. A record that was changed is told by its own seal, a file by the list, and
both together, with a new list, by the archive's SHA-256 alone, which both parties write down.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.base import files, schemas, sealed
from plumbline.base.errors import PlumbError
from plumbline.extras.accept import forms, model, verdict
from plumbline.extras.accept.model import Contract
from plumbline.extras.accept.verdict import Judged
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.show.pages.page import render

CONTRACT, RECORDS, NODES, VERDICT, PAGE = "contract.yaml", "records.jsonl", "nodes.txt", "verdict.json", "page.html"
CURE = "plumb accept CONTRACT.yaml --archive FILE makes one"


@dataclass(frozen=True)
class Sealed:
    """The content of an archive, with the verdict on the contract worked out again from the records."""

    contract: Contract
    digest: str
    records: Sequence[Record]
    judged: Sequence[Judged]


def write(
    target: Path,
    file: Path,
    contract: Contract,
    records: Sequence[Record],
    judged: Sequence[Judged],
    nodes: Sequence[str],
) -> str:
    """Make the archive ``target`` of the contract in ``file``; returns its SHA-256."""
    digest = files.sha256(file)
    with files.writing("the archive", target), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / CONTRACT).write_bytes(file.read_bytes())
        store.write(folder / RECORDS, records)
        (folder / NODES).write_text("".join(f"{name}\n" for name in nodes), encoding="utf-8")
        (folder / VERDICT).write_text(forms.as_json(contract, judged, digest), encoding="utf-8")
        (folder / PAGE).write_text(render(forms.page(contract, judged, digest)), encoding="utf-8")
        return sealed.write(folder, target)


def read(source: Path, digest: str | None = None) -> Sealed:
    """Check an archive and judge its records again.

    Raises :class:`PlumbError` for one that is damaged or was changed, and where its verdict is another one.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        listed = sealed.sums(sealed.read(source, CURE, digest, folder)[sealed.SUMS])
        if missing := {CONTRACT, RECORDS, NODES, VERDICT, PAGE} - listed.keys():
            raise PlumbError(f"no {min(missing)} in the archive", str(source), CURE)
        contract = model.load(folder / CONTRACT)
        records = store.whole(folder / RECORDS, "do not use it")
        nodes = (folder / NODES).read_text(encoding="utf-8", errors="replace").split()
        judged = verdict.judge(contract, records, nodes)
        try:
            document = schemas.parse_json((folder / VERDICT).read_bytes())
        except ValueError as error:
            raise PlumbError(f"its verdict cannot be read: {error}", str(source), "do not use it") from None
        stored = document if isinstance(document, dict) else {}
        now = forms.document(contract, judged, listed[CONTRACT])
        differing = [name for name in now if name != forms.VERSION and stored.get(name) != now[name]]
        if differing:
            value = json.dumps(now[differing[0]])
            short = value if len(value) < 80 else f"{value[:80]}…"
            fault = f"its records do not give its verdict: {differing[0]} is {short}"
            raise PlumbError(fault, str(source), "do not use it")
        page = render(forms.page(contract, judged, listed[CONTRACT])).encode()
        if stored.get(forms.VERSION) == now[forms.VERSION] and (folder / PAGE).read_bytes() != page:
            raise PlumbError("its page is not that of its records", str(source), "do not use it")
        return Sealed(contract, listed[CONTRACT], records, judged)
