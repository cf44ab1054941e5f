"""Figures as a results database of ReFrame, so that its ``--performance-compare`` and ``--list-stored-…`` read them.

The tables are those of version 1.0 of its schema, a session's document that of version 4.2 of its run report. One of
our campaigns is one of its sessions; a record is a test case, its stack the environment.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sqlite3
import uuid
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from plumbline import __version__, files, units
from plumbline.exchange.rows import Exported

SCHEMA, DATA = "1.0", "4.2"
_TABLES = """
    CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, session_end_unix REAL, json_blob TEXT,
        report_file TEXT);
    CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, environ TEXT, job_completion_time_unix REAL,
        session_uuid TEXT, uuid TEXT, FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE);
    CREATE INDEX index_testcases_time ON testcases(job_completion_time_unix);
    CREATE INDEX index_sessions_time ON sessions(session_start_unix);
    CREATE TABLE metadata(schema_version TEXT)"""


def write(found: Sequence[Exported], target: Path) -> None:
    """Replace ``target`` by a database of the figures ``found``."""
    sessions: dict[str, list[Exported]] = {}
    for one in found:
        sessions.setdefault(one.campaign or one.session, []).append(one)
    with (
        files.writing("the figures", target),
        files.replacing(target) as temporary,
        contextlib.closing(sqlite3.connect(temporary)) as database,
    ):
        database.executescript(_TABLES)
        database.execute("INSERT INTO metadata VALUES(?)", (SCHEMA,))
        for name, own in sessions.items():
            _store(database, _report(name, own))
        database.commit()


def _store(database: sqlite3.Connection, report: dict[str, Any]) -> None:
    known = report["session_info"]
    times = (known["time_start_unix"], known["time_end_unix"])
    database.execute("INSERT INTO sessions VALUES(?,?,?,?,?)", (known["uuid"], *times, json.dumps(report), ""))
    names = ("name", "system", "partition", "environ", "job_completion_time_unix", "session_uuid", "uuid")
    for case in report["runs"][0]["testcases"]:
        database.execute("INSERT INTO testcases VALUES(?,?,?,?,?,?,?)", [case[name] for name in names])


def _report(name: str, own: list[Exported]) -> dict[str, Any]:
    """The run report of a campaign: ReFrame looks for ``session_info`` by a pattern that admits no object inside."""
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"plumbline:{own[0].site}:{name}"))
    by_record = [list(group) for _, group in groupby(own, key=lambda one: one.id)]
    cases = [_case(session, number, group) for number, group in enumerate(by_record)]
    times = [case["job_completion_time_unix"] for case in cases]
    run = {"num_cases": len(cases), "num_failures": 0, "num_aborted": 0, "num_skipped": 0}
    information = {
        "data_version": DATA,
        "hostname": own[0].nodes.split(" ")[0],
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


def _case(session: str, number: int, group: list[Exported]) -> dict[str, Any]:
    first = group[0]
    at = units.moment(first.time).timestamp()
    return {
        "name": first.variant,
        "system": first.site,
        "partition": first.partition,
        "environ": first.stack,
        "result": "pass",
        "job_nodelist": first.nodes.split(" "),
        "job_completion_time": _shown(at),
        "job_completion_time_unix": at,
        "perfvalues": {f"{one.site}:{one.partition}:{one.figure}": _value(one) for one in group},
        "run_index": 0,
        "session_uuid": session,
        "uuid": f"{session}:0:{number}",
        "plumbline_record": first.id,
    }


def _value(one: Exported) -> list[Any]:
    """Value, reference, its lower and upper threshold (fractions), unit, result; ReFrame writes 0 for no reference."""
    return [one.value, one.reference or 0.0, one.lower, one.upper, one.unit, "pass"]


def _shown(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y%m%dT%H%M%S%z")
