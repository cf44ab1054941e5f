"""Figures of other programs, beside the records, from what is known, by name, about each run.

Such figures are ``imported``: nothing about them was witnessed, so they are never verified. Unknown members stand as
``unknown`` in the record.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from plumbline import site as sites
from plumbline.base import csv_input, files, group, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better
from plumbline.extras.exchange import reframe
from plumbline.extras.exchange.reframe import NEEDED, VALUE
from plumbline.host.binder import Plan
from plumbline.parsers.measurement import Measurement
from plumbline.records import store
from plumbline.records.figure import Figure
from plumbline.records.launch import Disturbance, Launch
from plumbline.records.model import Benchmark, Mpi, Placement, Record, Stack, Suite
from plumbline.records.variant import Variant, WantedFigure

UNKNOWN, IMPORTED = "unknown", "imported"
#: the Spack spec by which excalibur-tests builds a test: other builds are other variants
SPACK = "spack_spec"
#: figures are 0 or within these: beyond, products and quotients are not numbers any more
LEAST, MOST = 1e-30, 1e30
#: characters of a name; of the name of a variant with its parameters, and of its Spack spec
LONGEST, LONGEST_NAME = 200, 2000
#: the cure for a line that cannot be read
CURE = "correct or remove the line"
#: texts that ReFrame writes where there is no value
NOTHING = ("", "None", "null")


def read(file: Path, site: str | None = None, lower: Collection[str] = ()) -> tuple[list[Record], int]:
    """The records of ``file``, and how many runs have no value: a results database, a run report or a log of ReFrame.

    They are of ``site`` (default: the system that is named). Less is better in figures that ``lower`` names, in times,
    and in what has an upper threshold only. Raises :class:`PlumbError` with the place of what is wrong.
    """
    runs = [(where, cells, _figures(cells, lower, where)) for where, cells in reframe.runs(file)]
    records = [_record(cells, figures, site, where) for where, cells, figures in runs if figures]
    return records, len(runs) - len(records)


def keep(records: Iterable[Record]) -> int:
    """Add ``records`` to those that are kept; returns how many are new."""
    kept = group(
        (store.session_file(record.site, file_of(record.site, record.partition, record.variant.test)), record)
        for record in records
    )
    new = 0
    for file, additions in kept.items():
        with files.writing("the records", file), files.lock(file.parent / ".import.lock"):
            known = store.whole(file, "restore the file, or remove it") if file.exists() else []
            merged = {record.id: record for record in (*additions, *known)}
            store.write(file, sorted(merged.values(), key=lambda record: (record.time, record.id)))
            new += len(merged) - len(known)
    return new


def _figures(cells: dict[str, str], lower: Collection[str], where: str) -> list[Figure]:
    figures = []
    for column, text in cells.items():
        name = column.removesuffix(VALUE)
        if name == column or text in NOTHING:
            continue
        _check(name, "the name of a figure", where)
        if (unit := cells.get(f"{name}_unit", "").strip()) in NOTHING:
            raise PlumbError(f"figure {name} has no unit", where, f"write one as {name}_unit, 1 for a ratio")
        _check(unit, f"the unit of {name}", where)
        below, above = (cells.get(f"{name}_{end}_thres", "") for end in ("lower", "upper"))
        bounded_above = below in NOTHING and above not in NOTHING
        better: Better = "lower" if name in lower or unit in units.TIMES or bounded_above else "higher"
        figures.append(Figure.of(name, [Measurement(name, _number(text, column, where), unit, better, {})]))
    return figures


def _number(text: str, column: str, where: str) -> float:
    value = csv_input.finite(text, column, where, CURE, CURE)
    if value != 0 and not LEAST <= value <= MOST:
        fault = "negative" if value < 0 else f"not from {LEAST:g} to {MOST:g}"
        raise PlumbError(f"{column} '{text[:40]}' is {fault}", where, CURE)
    return value


def _check(text: str, label: str, where: str, most: int = LONGEST) -> None:
    """Refuse what would spoil every table that shows it."""
    if len(text) > most:
        raise PlumbError(f"{label} has {len(text)} characters, {most} at most", where, "shorten it")
    if terminal.steers(text):
        raise PlumbError(f"{label} has characters that cannot be shown", where, "remove them")


def _record(cells: dict[str, str], figures: list[Figure], site: str | None, where: str) -> Record:
    name, stack = _cell(cells, "name"), _cell(cells, "environment")
    place = site or _cell(cells, "system")
    if not sites.NAME.fullmatch(place):
        raise PlumbError(f"'{place[:40]}' cannot be the name of a site", where, "say --site")
    test, params = name.split()[0], dict(re.findall(r"%([^\s=]+)=(\S+)", name))
    built = cells.get(SPACK, "")
    params |= {} if built in NOTHING else {SPACK: built}
    partition, nodes = _cell(cells, "partition"), re.findall(r"[^\s,]+", cells.get("job_nodelist", ""))
    for label, text, most in (
        ("the name of the test", test, LONGEST),
        ("the partition", partition, LONGEST),
        ("the environment", stack, LONGEST),
        *(("the name of a node", node, LONGEST) for node in nodes),
        ("the name", name, LONGEST_NAME),
        (SPACK, built, LONGEST_NAME),
    ):
        _check(text, label, where, most)
    moment = _time(cells, where)
    ranks, threads = (_count(cells, column) for column in ("num_tasks", "num_cpus_per_task"))
    count = max(1, len(nodes))
    placed = Placement(
        name=UNKNOWN, memory=UNKNOWN, threads=threads, ranks_per_node=max(1, ranks // count), nodes=count
    )
    launch = Launch(
        index=0, order=0, start=moment, wall_s=0, status="ok", verified=False,
        reasons=["imported: nothing was witnessed"], disturbed=False, disturbance=Disturbance(),
        measurements=[Measurement(figure.name, figure.value, figure.unit, figure.better, {}) for figure in figures],
        ranks=[],
    )  # fmt: skip
    return Record(
        schema=1,
        id=hashlib.sha256(json.dumps([place, cells], sort_keys=True).encode()).hexdigest()[:12],
        provenance="imported",
        session=f"{file_of(place, partition, test)}-{moment}",
        campaign=None,
        time=moment,
        state="complete",
        site=place,
        partition=partition,
        nodes=nodes,
        suite=Suite(version=IMPORTED, commit=None, dirty=None),
        stack=Stack(
            name=stack, provider=IMPORTED, mpi=Mpi(family=UNKNOWN, version=UNKNOWN), compiler={}, sources=[], sha256=""
        ),
        variant=Variant.create(
            test=test, name=name, site=place, partition=partition, stack=stack, benchmark=test,
            placement=UNKNOWN, threads=threads, ranks_per_node=placed.ranks_per_node, nodes=count,
            figures=[WantedFigure(name=figure.name, metric=figure.name, where={}) for figure in figures],
            time_limit_s=0, parser=IMPORTED, context={}, params=params,
        ),
        placement=placed,
        host={},
        verified=False,
        reasons=[],
        verdict="unreferenced",
        figures=figures,
        benchmark=Benchmark(suite=IMPORTED, version=UNKNOWN, command=[], file="", sha256="", built=UNKNOWN),
        plan=Plan(),
        launches=[launch],
        command=[],
    )  # fmt: skip


def file_of(site: str, partition: str, test: str) -> str:
    """The name of the file of all imported records of a test: a log that has grown adds to it."""
    return f"imported-{hashlib.sha256(json.dumps([site, partition, test]).encode()).hexdigest()[:12]}"


def _cell(cells: dict[str, str], column: str) -> str:
    text = next(cells[name] for name in NEEDED[column] if name in cells)
    return text if text.strip() else UNKNOWN


def _count(cells: dict[str, str], column: str) -> int:
    text = cells.get(column, "")
    return max(1, int(text)) if text.isdecimal() and len(text) < 10 else 1


def _time(cells: dict[str, str], where: str) -> str:
    """The end of the job in UTC; a time that names no zone is taken for UTC."""
    text = _cell(cells, "time")
    try:
        if re.fullmatch(r"\d+(\.\d+)?", text):
            text = datetime.datetime.fromtimestamp(float(text), datetime.timezone.utc).isoformat()
        return units.utc(text)
    except (ValueError, OverflowError, OSError):
        raise PlumbError(f"'{text[:40]}' is not a time", where, CURE) from None
