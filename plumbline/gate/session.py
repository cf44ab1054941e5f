"""A live gate on disk: what it was started with, and the pairs so far, so that it can go on after an interruption.

Work folder: ``state.json`` is written once, ``pairs/N.jsonl`` (the two records of variant N) after each of its pairs;
files are replaced whole. A crash therefore loses at most the pair in flight.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from plumbline import files, provenance
from plumbline.errors import PlumbError
from plumbline.history.series import fingerprint
from plumbline.launch import driver
from plumbline.records import store, suite
from plumbline.stacks import manifest as manifests

Record = dict[str, Any]
STATE = "state.json"


@dataclass(frozen=True)
class Session:
    """What does not change while a gate is measured. ``couples``: of each variant the baseline's description and the
    candidate's, with their margins; ``notes``: what is not compared, and why."""

    name: str
    site: str
    seed: int
    baseline: str
    candidate: str
    couples: list[list[dict[str, Any]]]
    notes: list[str]
    command: list[str]
    circumstances: dict[str, Any]


def circumstances(stacks: list[str]) -> dict[str, Any]:
    """What must be the same when a gate goes on: suite, stacks, nodes, and how the host is set."""
    return {
        "commit": suite.describe(),
        "stacks": {name: driver.stack_sha256(manifests.load(name)) for name in stacks},
        "nodes": os.environ.get("SLURM_JOB_NODELIST") or provenance.host_name(),
        "environment": fingerprint(provenance.collect()),
    }


def before_a_job(known: dict[str, Any]) -> dict[str, Any]:
    """Circumstances of a gate that is begun where it is not measured: the job's nodes are filled in by the job."""
    return {**known, "nodes": None, "environment": None}


def save(folder: Path, session: Session) -> None:
    """Write the state of a new gate."""
    refuse_used(folder)
    _replace(folder / STATE, json.dumps(asdict(session), indent=1) + "\n")


def refuse_used(folder: Path) -> None:
    """Raise :class:`PlumbError` if ``folder`` holds a gate already."""
    if (folder / STATE).exists():
        raise PlumbError("this folder holds a gate already", str(folder), f"plumb gate --resume {folder}, or another")


def peek(folder: Path) -> Session:
    """The gate of ``folder``, whatever the circumstances now; raises :class:`PlumbError` if there is none."""
    file = folder / STATE
    if not folder.is_dir():
        raise PlumbError("no such folder", str(folder), "give the folder that plumb gate named when it began")
    try:
        session = Session(**json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        cure = "give the folder that plumb gate named when it began"
        raise PlumbError(f"no gate to resume: {error.strerror}", str(file), cure) from error
    except (ValueError, TypeError) as error:
        raise PlumbError(f"not the state of a gate: {error}", str(file), "start a new gate") from error
    return session


def load(folder: Path) -> Session:
    """The gate of ``folder``; raises :class:`PlumbError` if there is none or its circumstances are others now."""
    session = peek(folder)
    now = circumstances(list(session.circumstances["stacks"]))
    for name, then in session.circumstances.items():
        if then is not None and now[name] != then:
            what = f"{name} changed since this gate began: {_short(then)}, now {_short(now[name])}"
            raise PlumbError(what, str(folder), "pairs from before and after cannot be mixed: start a new gate")
    if None in session.circumstances.values():
        session = replace(session, circumstances=now)
        _replace(folder / STATE, json.dumps(asdict(session), indent=1) + "\n")
    return session


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pairs_file(folder: Path, position: int) -> Path:
    """Where the two records of variant ``position`` are."""
    return folder / "pairs" / f"{position}.jsonl"


def read_pairs(folder: Path, position: int) -> list[Record] | None:
    """The two records of variant ``position``, or None if it has no pair yet."""
    file = pairs_file(folder, position)
    if not file.exists():
        return None
    found = list(store.read_file(file))
    for item in found:
        if isinstance(item, store.Damage):
            raise PlumbError(f"damaged record: {item.reason}", str(file), "start a new gate")
    if len(found) != 2:
        raise PlumbError(f"{len(found)} records instead of two", str(file), "start a new gate")
    counts = {len(item["launches"]) for item in found if not isinstance(item, store.Damage)}
    if len(counts) != 1:
        raise PlumbError("the records do not have equally many launches", str(file), "start a new gate")
    return [item for item in found if not isinstance(item, store.Damage)]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of ``folder``; the lock ends with this process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise PlumbError(f"cannot write: {error.strerror}", str(folder), "name a folder that can be written") from error
    with lock as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PlumbError("another gate runs in this folder", str(folder), "wait for it, or take another") from error
        yield


def _replace(file: Path, text: str) -> None:
    try:
        files.replace(file, text)
    except OSError as error:
        raise PlumbError(f"cannot write: {error.strerror}", str(file), "make room or permission") from error
