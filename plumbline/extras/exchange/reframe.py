"""Figures in ReFrame's own files: its performance logs, run reports and results databases.

A log has lines of values under a header, which is written again where it changes. A report has a document of a session,
of version 4 (ReFrame 4.7 and newer), and a database one for each. All three are read.

A database is written, too, so that ReFrame's ``--performance-compare`` and ``--list-stored-…`` read our figures: the
tables of version 1.0 of its schema, the document of a session of version 4.2. One of our campaigns is one of its
sessions; a record is a test case, its stack the environment.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field, structs

from plumbline import __version__
from plumbline.base import csv_input, files, group, units
from plumbline.base.errors import PlumbError
from plumbline.extras.exchange.rows import Exported

#: columns that a log must have, the first name of each that is there counts
NEEDED = {
    "time": ("job_completion_time_unix", "job_completion_time"),
    "name": ("name", "display_name"),
    "system": ("system",),
    "partition": ("partition",),
    "environment": ("environ",),
}
#: how the column of a figure ends, and the members that have columns of its name
VALUE = "_value"
MEMBERS = ("value", "ref", "lower_thres", "upper_thres", "unit")
#: how a database begins
DATABASE = b"SQLite format 3\0"
_CURE = "give a results database, a run report or a performance log of ReFrame 4"
#: versions of the files that are written
SCHEMA, DATA = "1.0", "4.2"
_TABLES = """
    CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, session_end_unix REAL, json_blob TEXT,
        report_file TEXT);
    CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, environ TEXT, job_completion_time_unix REAL,
        session_uuid TEXT, uuid TEXT, FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE);
    CREATE INDEX index_testcases_time ON testcases(job_completion_time_unix);
    CREATE INDEX index_sessions_time ON sessions(session_start_unix);
    CREATE TABLE metadata(schema_version TEXT)"""


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
    """The facts of a session."""

    data_version: str
    uuid: str = "unknown"


class Session(Struct):
    """A session of ReFrame, as far as figures go."""

    session_info: Information
    runs: list[Run]


def runs(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Where each run of ``file`` stands, and its values by the names of ReFrame's logs; oldest session first.

    The beginning of the file says whether it is a database, a report or a log. Raises :class:`PlumbError` for a file
    that is none of these, with the place of the fault.
    """
    # only regular files are read twice; csv_input says why a file cannot be read
    with contextlib.suppress(OSError), file.open("rb") if file.is_file() else io.BytesIO() as stream:
        if stream.read(len(DATABASE)) == DATABASE:
            return _of_database(file)
    text = csv_input.text(file, "performance log")
    return _of_session(text, file) if text.lstrip().startswith("{") else _of_log(text, file)


def _of_log(text: str, file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    header: list[str] = []
    separator = "|"
    lines = ((f"{file}:{number}", line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
    for where, line in lines:
        if not header or line.startswith(f"{header[0]}{separator}{header[1]}{separator}"):
            separator = max("|,;\t", key=line.count)
            header = line.split(separator)
            missing = [
                *(" or ".join(known) for known in NEEDED.values() if not set(known) & set(header)),
                *([] if any(name.endswith(VALUE) for name in header) else ["FIGURE_value"]),
            ]
            if missing:
                raise PlumbError(
                    f"no column {', '.join(missing)}", where, "a log needs a header, as ReFrame's default format has it"
                )
            continue
        cells = line.split(separator)
        if len(cells) != len(header):
            raise PlumbError(f"{len(cells)} cells under {len(header)} columns", where, "correct or remove the line")
        else:
            yield where, dict(zip(header, cells, strict=True))


def _of_database(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            texts = database.execute("SELECT json_blob FROM sessions ORDER BY session_start_unix").fetchall()
    except sqlite3.Error as error:
        raise PlumbError(f"no results database of ReFrame: {error}", str(file), _CURE) from None
    for (text,) in texts:
        yield from _of_session(text, file)


def _of_session(text: object, file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        session = _DECODER.decode(text if isinstance(text, str | bytes) else b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlumbError(f"no session of ReFrame: {error}", str(file), _CURE) from None
    known = session.session_info
    if not known.data_version.startswith("4."):
        raise PlumbError(f"a session of version {known.data_version[:20]}", str(file), _CURE)
    cases = enumerate((case for run in session.runs for case in run.testcases), start=1)
    timed = ((number, case) for number, case in cases if case.job_completion_time_unix is not None)
    yield from ((f"{file}: session {known.uuid[:40]}: case {number}", _cells(case)) for number, case in timed)


def _cells(case: Case) -> dict[str, str]:
    """The values of a test case as a performance log would have them."""
    known = structs.asdict(case)
    nodes, figures = known["job_nodelist"], known.pop("perfvalues")
    known["job_nodelist"] = ",".join(nodes) if isinstance(nodes, list) else nodes
    known |= {
        f"{name.rpartition(':')[2]}_{part}": value
        for name, values in figures.items()
        for part, value in zip(MEMBERS, values, strict=False)
    }
    return {name: "" if value is None else str(value) for name, value in known.items()}


_DECODER = msgspec.json.Decoder(Session)


def write(figures: Sequence[Exported], target: Path) -> None:
    """Replace ``target`` by a database of ``figures``."""
    with (
        files.writing("the figures", target),
        files.replacing(target) as temporary,
        contextlib.closing(sqlite3.connect(temporary)) as database,
    ):
        database.executescript(_TABLES)
        database.execute("INSERT INTO metadata VALUES(?)", (SCHEMA,))
        for name, members in group((item.row.campaign or item.row.session, item) for item in figures).items():
            report = _report(name, members)
            known = report["session_info"]
            session = (known["uuid"], known["time_start_unix"], known["time_end_unix"], json.dumps(report), "")
            database.execute("INSERT INTO sessions VALUES(?,?,?,?,?)", session)
            names = ("name", "system", "partition", "environ", "job_completion_time_unix", "session_uuid", "uuid")
            cases = ([case[name] for name in names] for case in report["runs"][0]["testcases"])
            database.executemany("INSERT INTO testcases VALUES(?,?,?,?,?,?,?)", cases)
        database.commit()


def _report(name: str, exported: list[Exported]) -> dict[str, Any]:
    """The run report of a campaign: ReFrame looks for ``session_info`` by a pattern that admits no object inside."""
    first = exported[0].columns
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"plumbline:{first['site']}:{name}"))
    by_record = group((item.row.id, item.columns) for item in exported)
    cases = [_case(session, number, figures) for number, figures in enumerate(by_record.values())]
    times = [case["job_completion_time_unix"] for case in cases]
    run = {"num_cases": len(cases), "num_failures": 0, "num_aborted": 0, "num_skipped": 0}
    information = {
        "data_version": DATA,
        "hostname": first["nodes"].split(" ")[0],
        "uuid": session,
        "time_start": _shown(min(times)),
        "time_start_unix": min(times),
        "time_end": _shown(max(times)),
        "time_end_unix": max(times),
        "time_elapsed": max(times) - min(times),
        "plumbline": __version__,
        "plumbline_campaign": name,
        **run,
    }
    return {"session_info": information, "runs": [{**run, "run_index": 0, "testcases": cases}], "restored_cases": []}


def _case(session: str, number: int, figures: list[dict[str, Any]]) -> dict[str, Any]:
    first = figures[0]
    at = units.moment(first["time"]).timestamp()
    return {
        "name": first["variant"],
        "system": first["site"],
        "partition": first["partition"],
        "environ": first["stack"],
        "result": "pass",
        "job_nodelist": first["nodes"].split(" "),
        "job_completion_time": _shown(at),
        "job_completion_time_unix": at,
        # value, reference, its thresholds as fractions, unit, result; ReFrame writes 0 where there is no reference
        "perfvalues": {
            f"{first['site']}:{first['partition']}:{item['figure']}":
                [item["value"], item["reference"] or 0.0, item["lower"], item["upper"], item["unit"], "pass"]
            for item in figures
        },
        "run_index": 0,
        "session_uuid": session,
        "uuid": f"{session}:0:{number}",
        "plumbline_record": first["id"],
        "plumbline_application": first["application"] or "",
        "plumbline_commit": first["commit"] or "",
    }  # fmt: skip


def _shown(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y%m%dT%H%M%S%z")
