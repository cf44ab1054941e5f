"""What ReFrame keeps of its sessions: its results database, and the report of a run, which the database holds too.

Both have a document per session, of version 4 (ReFrame 4.7 and newer).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from plumbline.errors import PlumbError

#: how a database begins
DATABASE = b"SQLite format 3\0"
_CURE = "give a results database, a run report or a performance log of ReFrame 4"
#: a value that a test may have set to anything
Loose = int | float | str | list[str] | None


class Case(Struct):
    """A test case. ``perfvalues``: by ``SYSTEM:PARTITION:FIGURE`` value, reference, lower and upper threshold, unit."""

    name: str
    system: str
    partition: str
    environ: str
    job_completion_time_unix: float | None = None
    job_nodelist: Loose = None
    num_tasks: Loose = None
    num_cpus_per_task: Loose = None
    spack_spec: Loose = None
    perfvalues: dict[str, list[bool | int | float | str | None]] = field(default_factory=dict)


class Run(Struct):
    """The first run of a session, or one that repeats what failed."""

    testcases: list[Case]


class Information(Struct):
    """What is known of a session."""

    data_version: str
    uuid: str = "unknown"


class Session(Struct):
    """A session of ReFrame, as far as figures go."""

    session_info: Information
    runs: list[Run]


def of_database(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """``FILE: session UUID: case N`` and the values of each test case of a results database, oldest session first.

    Raises :class:`PlumbError` for a file that is no database of ReFrame 4.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            texts = database.execute("SELECT json_blob FROM sessions ORDER BY session_start_unix").fetchall()
    except sqlite3.Error as error:
        raise PlumbError(f"no results database of ReFrame: {error}", str(file), _CURE) from None
    for (text,) in texts:
        yield from _cases(text, file)


def of_report(file: Path, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """``FILE: session UUID: case N`` and the values of each test case of a run report, whose content is ``text``.

    Raises :class:`PlumbError` for a text that is no report of ReFrame 4.
    """
    yield from _cases(text, file)


def _cases(text: object, file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        session = _DECODER.decode(text if isinstance(text, str | bytes) else b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlumbError(f"no session of ReFrame: {error}", str(file), _CURE) from None
    known = session.session_info
    if not known.data_version.startswith("4."):
        raise PlumbError(f"a session of version {known.data_version[:20]}", str(file), _CURE)
    cases = [case for run in session.runs for case in run.testcases]
    for number, case in enumerate(cases, start=1):
        if case.job_completion_time_unix is not None:
            yield f"{file}: session {known.uuid[:40]}: case {number}", _cells(case)


def _cells(case: Case) -> dict[str, str]:
    """The values of a test case as a performance log would have them."""
    nodes = case.job_nodelist
    cells = {
        "job_completion_time_unix": repr(case.job_completion_time_unix),
        "name": case.name,
        "system": case.system,
        "partition": case.partition,
        "environ": case.environ,
        "job_nodelist": ",".join(nodes) if isinstance(nodes, list) else _text(nodes),
        "num_tasks": _text(case.num_tasks),
        "num_cpus_per_task": _text(case.num_cpus_per_task),
        "spack_spec": _text(case.spack_spec),
    }
    for name, members in case.perfvalues.items():
        figure = name.rpartition(":")[2]
        parts = ("value", "ref", "lower_thres", "upper_thres", "unit")
        cells |= {f"{figure}_{part}": _text(member) for part, member in zip(parts, members, strict=False)}
    return cells


def _text(value: object) -> str:
    return "" if value is None else str(value)


_DECODER = msgspec.json.Decoder(Session)
