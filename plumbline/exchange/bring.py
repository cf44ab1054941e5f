"""``plumb import``: figures of other programs, beside the records."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Collection, Iterator
from pathlib import Path

from plumbline import csv_input, files
from plumbline.errors import PlumbError
from plumbline.exchange import imported, perflogs, reframe_results
from plumbline.exchange.imported import Log
from plumbline.records import store
from plumbline.records.model import Record
from plumbline.units import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb import``."""
    parser.add_argument(
        "logs",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="performance logs of ReFrame, with headers, its results databases and run reports",
    )
    parser.add_argument("--site", help="the site that they are of (default: the system that the log names)")
    parser.add_argument(
        "--lower", action="append", default=[], metavar="FIGURE", help="less is better in it (times are known)"
    )


def run(args: argparse.Namespace) -> int:
    """Import all logs, or nothing if a line of one is wrong; 0."""
    found = [read(file, args.site, args.lower) for file in args.logs]
    kept: dict[Path, list[Record]] = {}
    for log in found:
        for record in log.records:
            name = imported.file_of(record.site, record.partition, record.variant.test)
            kept.setdefault(store.session_file(record.site, name), []).append(record)
    new = sum(_merge(file, own) for file, own in kept.items())
    total = sum(map(len, kept.values()))
    without = sum(log.without for log in found)
    print(f"{counted(new, 'record')} imported, {total - new} known before, {counted(without, 'run')} without a value")
    print("imported figures are listed and compared; they are never verified, and no verdict is made of them")
    return 0


def read(file: Path, site: str | None = None, lower: Collection[str] = ()) -> Log:
    """The records of ``file``: a results database, a run report or a log; the beginning of the file says which.

    Raises :class:`PlumbError` for a file that is none of these.
    """
    return imported.read(_runs(file), site, lower)


def _runs(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    # what is no file is read once only; csv_input says why a file cannot be read
    with contextlib.suppress(OSError), file.open("rb") if file.is_file() else io.BytesIO() as stream:
        if stream.read(len(reframe_results.DATABASE)) == reframe_results.DATABASE:
            return reframe_results.of_database(file)
    text = csv_input.text(file, "performance log")
    return reframe_results.of_report(file, text) if text.lstrip().startswith("{") else perflogs.runs(file, text)


def _merge(file: Path, records: list[Record]) -> int:
    """Add ``records`` to those of ``file`` and return how many it did not have."""
    with files.writing("the records", file), files.lock(file.parent / ".import.lock"):
        known: dict[str, Record] = {}
        for item in store.read(file) if file.exists() else ():
            if isinstance(item, store.Damage):
                raise PlumbError(f"damaged record: {item.reason}", str(file), "restore the file, or remove it")
            known[item.id] = item
        merged = {**{record.id: record for record in records}, **known}
        store.write(file, sorted(merged.values(), key=lambda record: (record.time, record.id)))
        return len(merged) - len(known)
