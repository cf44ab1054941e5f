"""Times in the JSON files of other benchmark tools: :data:`READERS` has a line for each form."""

from __future__ import annotations

import datetime
import itertools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.base import group, schemas
from plumbline.base.errors import PlumbError
from plumbline.base.units import SECONDS

#: a benchmark, and its times
Times = tuple[str, list[float]]
#: files of asv beside its results
OTHERS = ("benchmarks.json", "machine.json")
CURE = "give files of pytest-benchmark, Google Benchmark, hyperfine, criterion (sample.json), asv or Conbench"


def _pytest(document: Any, _: Path) -> Iterator[Times]:
    for item in document["benchmarks"]:
        yield item["fullname"], item["stats"].get("data") or [item["stats"]["median"]]


def _google(document: Any, _: Path) -> Iterator[Times]:
    measured = [item for item in document["benchmarks"] if item["run_type"] == "iteration"]
    times = ((item["run_name"], item["real_time"] * SECONDS[item["time_unit"]]) for item in measured)
    yield from group(times).items()


def _criterion(document: Any, file: Path) -> Iterator[Times]:
    both = zip(document["times"], document["iters"], strict=True)
    yield "/".join(file.absolute().parts[-3:-2]), [time * SECONDS["ns"] / iterations for time, iterations in both]


def _asv(document: Any, _: Path) -> Iterator[Times]:
    for name, cells in document["results"].items():
        row = dict(zip(document["result_columns"], cells, strict=False))
        for values, seconds in zip(itertools.product(*row["params"]), row["result"] or [], strict=False):
            if name.rpartition(".")[2].startswith("time_") and seconds is not None:
                yield " ".join([name, *values]), [seconds]


def _conbench(document: Any, _: Path) -> Iterator[Times]:
    factor = SECONDS[document["stats"]["unit"]]
    yield " ".join(map(str, document["tags"].values())), [time * factor for time in document["stats"]["data"]]


#: members by which a form is known -> where it has the start, and the function that reads it
READERS: dict[tuple[str, ...], tuple[Callable[[Any], str | None], Callable[[Any, Path], Iterator[Times]]]] = {
    ("benchmarks", "machine_info"): (lambda document: document["datetime"], _pytest),
    ("benchmarks", "context"): (lambda document: document["context"]["date"], _google),
    ("result_columns", "results"): (lambda _: None, _asv),
    ("results",): (
        lambda _: None,
        lambda document, _: ((item["command"], item["times"]) for item in document["results"]),  # hyperfine
    ),
    ("iters", "times"): (lambda _: None, _criterion),
    ("stats", "tags"): (lambda document: document["timestamp"], _conbench),
}


def read(file: Path) -> tuple[float, dict[str, list[float]]]:
    """The run whose results ``file`` has: its start, and the repetitions of each benchmark, all in seconds.

    Without a start it is the last change of the file. Raises :class:`PlumbError` for another file, and for one without
    a time.
    """
    try:
        document = schemas.parse_json(file.read_text(encoding="utf-8"))
        known = next((reader for names, reader in READERS.items() if {*names} <= {*document}), None)
        if known is None:
            raise PlumbError("no results of a tool that is known here", str(file), CURE)
        begun, times = known[0](document), dict(known[1](document, file))
        when = datetime.datetime.fromisoformat(begun).timestamp() if begun else file.stat().st_mtime
        for values in times.values():
            statistics.median(values)  # raises for what has none
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise PlumbError(f"the results cannot be read: {type(error).__name__}: {error}", str(file), CURE) from error
    if not times:
        raise PlumbError("it has no time", str(file), CURE)
    return when, times
