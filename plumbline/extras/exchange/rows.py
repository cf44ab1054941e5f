"""A row per figure of a record, of which every form of export is made: as CSV, and as OpenMetrics text for Prometheus.

OpenMetrics has a gauge per unit, in base units, with the time of each session:
https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from plumbline.base import table, units
from plumbline.records import naming
from plumbline.records.figure import Figure
from plumbline.records.model import Row

#: our unit: the base unit as OpenMetrics writes it, and the factor to it
BASE = {
    units.US: ("seconds", 1e-6),
    units.NS: ("seconds", 1e-9),
    units.MB_S: ("bytes_per_second", 1e6),
    units.MSG_S: ("messages_per_second", 1.0),
    units.PERCENT: ("ratio", 0.01),
    units.RATIO: ("ratio", 1.0),
    units.CYCLES: ("cycles", 1.0),
    units.GFLOP_S: ("floating_point_operations_per_second", 1e9),
    units.MLUP_S: ("lattice_updates_per_second", 1e6),
    units.BYTES: ("bytes", 1.0),
}
PREFIX = "plumbline_figure"
LABELS = ("site", "partition", "nodes", "stack", "test", "variant", "placement", "figure", "better")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True)
class Exported:
    """A figure, and the record that it is of."""

    row: Row
    figure: Figure

    @cached_property
    def columns(self) -> dict[str, Any]:
        """What is known of the figure.

        ``value``, ``smallest``, ``largest``, ``limit`` and ``reference`` are in ``unit``; ``lower`` and ``upper`` are
        the reference's thresholds as fractions. ``application`` and ``commit`` are of a program of one's own, of files
        in no repository their digest. None: there is none.
        """
        row, figure, code = self.row, self.figure, self.row.variant.application
        limit, known = figure.limit, figure.reference
        return {
            "id": row.id,
            "time": row.time,
            "site": row.site,
            "partition": row.partition,
            "nodes": " ".join(row.nodes),
            "campaign": row.campaign,
            "session": row.session,
            "test": row.variant.test,
            "variant": row.variant.name,
            "stack": row.stack.name,
            "mpi": f"{row.stack.mpi.family} {row.stack.mpi.version}",
            "placement": naming.placement(row.placement),
            "figure": figure.name,
            "value": float(figure.value),
            "unit": figure.unit,
            "better": figure.better,
            "launches": figure.launches,
            "smallest": float(min(figure.samples)),
            "largest": float(max(figure.samples)),
            "limit": float(limit.value) if limit else None,
            "reference": float(known.value) if known else None,
            "lower": None if known is None or known.lower is None else float(known.lower),
            "upper": None if known is None or known.upper is None else float(known.upper),
            "disturbed": row.disturbed_count,
            "state": row.state,
            "verified": row.is_verified,
            "verdict": row.final_verdict,
            "valid": row.is_valid,
            "provenance": row.provenance,
            "application": code.name if code else None,
            "commit": (code.commit or code.digest) if code else None,
        }

    @property
    def labels(self) -> str:
        """The labels of its series in OpenMetrics."""
        return ",".join(f'{name}="{self.columns[name].translate(_ESCAPES)}"' for name in LABELS)


def figures(records: Iterable[Row]) -> Iterator[Exported]:
    """All figures of ``records``, in their order."""
    return (Exported(row, figure) for row in records for figure in row.figures)


def as_csv(figures: Iterable[Exported]) -> Iterator[str]:
    """The lines of the table of ``figures``, of which there is one at least."""
    rest = iter(figures)
    first = next(rest)
    return table.csv_lines(first.columns, (item.columns.values() for item in itertools.chain([first], rest)))


def in_openmetrics(figures: Sequence[Exported]) -> list[Exported]:
    """Those that OpenMetrics can hold.

    Of two figures of one series and moment the later one counts: OpenMetrics has no place for both. A figure that is
    not finite, or whose unit is not in :data:`BASE`, is left out.
    """
    able = (item for item in figures if item.figure.unit in BASE and math.isfinite(item.figure.value))
    return list({(BASE[item.figure.unit][0], item.labels, units.moment(item.row.time)): item for item in able}.values())


def as_openmetrics(figures: Iterable[Exported]) -> str:
    """The exposition of :func:`in_openmetrics`; the figures of a series are in the order of their times."""
    families: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for item in figures:
        unit, factor = BASE[item.figure.unit]
        families[unit][item.labels][units.moment(item.row.time).timestamp()] = item.figure.value * factor
    lines = []
    for unit, series in sorted(families.items()):
        name = f"{PREFIX}_{unit}"
        lines += [
            f"# TYPE {name} gauge",
            f"# UNIT {name} {unit}",
            f"# HELP {name} Median over the launches of a verified record, in {unit.replace('_', ' ')}.",
            *(
                f"{name}{{{labels}}} {value!r} {at:.3f}"
                for labels, points in sorted(series.items())
                for at, value in sorted(points.items())
            ),
        ]
    return "\n".join([*lines, "# EOF"]) + "\n"
