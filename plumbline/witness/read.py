"""The witness files of one launch. A damaged one is a reason, never a crash."""

from __future__ import annotations

from pathlib import Path

import msgspec

from plumbline import schemas
from plumbline.base.errors import PlumbError
from plumbline.witness import processes
from plumbline.witness.model import RankWitness, Witness

_DECODER = msgspec.json.Decoder(Witness)


def read(folder: Path | str) -> tuple[list[RankWitness], list[str]]:
    """One witness for each rank, ordered by host and rank, from the documents in ``folder`` (every ``*.json``).

    Also returns a reason for each document that is damaged, and for each process that left children's documents only
    (:mod:`plumbline.witness.processes`).
    """
    documents: list[Witness] = []
    reasons: list[str] = []
    if not Path(folder).is_dir():
        return [], [f"no witness folder {folder}"]
    for file in sorted(Path(folder).glob("*.json")):
        try:
            documents.append(_load(file))
        except PlumbError as error:
            reasons.append(str(error))
    documents.sort(key=lambda item: (item.host, item.rank, item.local_rank, item.pid))
    witnesses, orphans = processes.group(documents)
    return witnesses, reasons + orphans


def _load(file: Path) -> Witness:
    cure = "the launch cannot be verified"
    try:
        text = file.read_bytes()
        return _DECODER.decode(text)
    except OSError as error:
        raise PlumbError(f"unreadable witness file: {error}", str(file), cure) from error
    except msgspec.ValidationError as error:
        if b'"ancestors"' not in text and b'"schema"' in text:
            cure = "build the tools again: make setup"
            raise PlumbError("witness file of an earlier libplumbwitness.so", str(file), cure) from None
        raise PlumbError(schemas.fault("witness", error), str(file), cure) from None
    except (ValueError, RecursionError) as error:
        raise PlumbError(f"damaged witness file: {error}", str(file), cure) from error
