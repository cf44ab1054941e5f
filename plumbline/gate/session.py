"""A live gate on disk: what it was started with, and the pairs so far, so that it can go on after an interruption.

Work folder: ``state.json`` is written once, ``pairs/N.jsonl`` (the two records of variant N) after each of its pairs;
files are replaced whole. A crash therefore loses at most the pair in flight.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from plumbline import files, schedulers, schemas
from plumbline.errors import PlumbError
from plumbline.host import provenance
from plumbline.records import store, suite
from plumbline.records.model import Record
from plumbline.schedulers import names
from plumbline.stacks import manifest as manifests
from plumbline.statistics.sequential import Rule

STATE = "state.json"


@dataclass(frozen=True)
class Session:
    """What does not change while a gate is measured.

    ``rule`` is that of every figure without margins of its own. ``couples``: of each variant the baseline's description
    and the candidate's, with their margins; ``notes``: what is not compared, and why. ``by_itself`` claims that the
    candidate disturbs itself.
    """

    name: str
    site: str
    seed: int
    rule: Rule
    baseline: str
    candidate: str
    couples: list[list[dict[str, Any]]]
    notes: list[str]
    command: list[str]
    circumstances: dict[str, Any]
    by_itself: bool = False


def circumstances(stacks: list[str]) -> dict[str, Any]:
    """What must be the same when a gate goes on: suite, stacks, nodes, and how the host is set."""
    return {
        "commit": suite.describe(),
        "stacks": {name: manifests.digest(manifests.load(name)) for name in stacks},
        "nodes": names.fold(schedulers.current(os.environ).hosts(os.environ) or [schedulers.host_name()]),
        "environment": provenance.fingerprint(provenance.collect()),
    }


def before_a_job(known: dict[str, Any]) -> dict[str, Any]:
    """Circumstances of a gate that is begun where it is not measured: the job's nodes are filled in by the job."""
    return {**known, "nodes": None, "environment": None}


def save(folder: Path, session: Session) -> None:
    """Write the state of a new gate."""
    refuse_used(folder)
    files.write("the state of the gate", folder / STATE, json.dumps(asdict(session), indent=1) + "\n")


def refuse_used(folder: Path) -> None:
    """Raise :class:`PlumbError` if ``folder`` holds a gate already."""
    if (folder / STATE).exists():
        raise PlumbError("this folder holds a gate already", str(folder), f"plumb gate --resume {folder}, or another")


def refuse_foreign(folder: Path) -> None:
    """Raise :class:`PlumbError` if ``folder`` holds more than what a gate that failed to begin leaves there."""
    ours = ("lock", "reframe.out")
    for entry in folder.iterdir():
        if entry.name not in ours and not (entry / files.MARK).is_file():
            what = f"this folder is not empty: it holds {entry.name}"
            raise PlumbError(what, str(folder), "name an empty or a new one for the work")


def peek(folder: Path) -> Session:
    """The gate of ``folder``, without a check of its circumstances; raises :class:`PlumbError` if there is none."""
    file = folder / STATE
    if not folder.is_dir():
        raise PlumbError("no such folder", str(folder), "give the folder that plumb gate named when it began")
    try:
        document = schemas.parse_json(file.read_text(encoding="utf-8"))
        session = Session(**{**document, "rule": Rule(**document["rule"])})
    except OSError as error:
        cure = "give the folder that plumb gate named when it began"
        raise PlumbError(f"no gate to resume: {error.strerror}", str(file), cure) from error
    except (ValueError, TypeError, KeyError, PlumbError) as error:
        raise PlumbError(f"not the state of a gate: {error}", str(file), "start a new gate") from error
    return session


def load(folder: Path) -> Session:
    """The gate of ``folder``; raises :class:`PlumbError` if there is none or its circumstances have changed."""
    session = peek(folder)
    now = circumstances(list(session.circumstances["stacks"]))
    for name, then in session.circumstances.items():
        if then is not None and now[name] != then:
            what = f"{name} changed since this gate began: {_short(then)}, now {_short(now[name])}"
            raise PlumbError(what, str(folder), "pairs from before and after cannot be mixed: start a new gate")
    if None in session.circumstances.values():
        session = replace(session, circumstances=now)
        files.write("the state of the gate", folder / STATE, json.dumps(asdict(session), indent=1) + "\n")
    return session


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pairs_file(folder: Path, position: int) -> Path:
    """Where the two records of variant ``position`` are."""
    return folder / "pairs" / f"{position}.jsonl"


def read_pairs(folder: Path, position: int) -> list[Record] | None:
    """The two records of variant ``position``, or None if it has no pair yet.

    Raises :class:`PlumbError` for records that are damaged or were changed.
    """
    file = pairs_file(folder, position)
    if not file.exists():
        return None
    found: list[Record] = []
    for item in store.read(file):
        if isinstance(item, store.Damage):
            raise PlumbError(f"damaged record: {item.reason}", str(file), "start a new gate")
        if not item.seal:
            raise PlumbError("changed since it was measured: it has no seal any more", str(file), "start a new gate")
        found.append(item)
    if len(found) != 2:
        raise PlumbError(f"{len(found)} records instead of two", str(file), "start a new gate")
    if len(found[0].launches) != len(found[1].launches):
        raise PlumbError("the records do not have equally many launches", str(file), "start a new gate")
    return found


def refuse_loss(results: Path, records: Iterable[Record]) -> None:
    """Raise :class:`PlumbError` unless ``records`` hold every launch of ``results``, which they will replace."""
    held = {record.id: record.launches for record in records}
    for item in store.read(results) if results.exists() else ():
        if isinstance(item, store.Damage):
            raise PlumbError(f"damaged record: {item.reason}", str(results), "move it away, or start a new gate")
        if held.get(item.id, [])[: len(item.launches)] != item.launches:
            what = "the results of this gate have launches that its folder has not"
            raise PlumbError(what, str(results), "bring the folder's pairs back, or start a new gate")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of ``folder``; the lock ends with this process, however it ends."""
    with files.reserved(folder / "lock", "another gate runs in this folder", "wait for it, or take another"):
        yield
