"""Figures as OpenMetrics text, for Prometheus: a gauge per unit, in base units, with the time of each session.

https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from plumbline.base import units
from plumbline.extras.exchange.rows import Exported

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


def shown(figures: Sequence[Exported]) -> list[Exported]:
    """Those that the exposition can hold.

    Of two figures of one series and moment the later one counts: OpenMetrics has no place for both. A figure that is
    not finite, or whose unit is not in :data:`BASE`, is left out.
    """
    able = (figure for figure in figures if figure.unit in BASE and math.isfinite(figure.value))
    return list({(BASE[figure.unit][0], _labels(figure), _seconds(figure.time)): figure for figure in able}.values())


def text(figures: Sequence[Exported]) -> str:
    """The exposition of what :func:`shown` gives; the figures of a series are in the order of their times."""
    families: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for figure in figures:
        unit, factor = BASE[figure.unit]
        families[unit][_labels(figure)][_seconds(figure.time)] = figure.value * factor
    lines = []
    for unit, series in sorted(families.items()):
        name = f"{PREFIX}_{unit}"
        lines += [f"# TYPE {name} gauge", f"# UNIT {name} {unit}"]
        lines += [f"# HELP {name} Median over the launches of a verified record, in {unit.replace('_', ' ')}."]
        for labels, points in sorted(series.items()):
            lines += [f"{name}{{{labels}}} {value!r} {at:.3f}" for at, value in sorted(points.items())]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(figure: Exported) -> str:
    return ",".join(f'{name}="{getattr(figure, name).translate(_ESCAPES)}"' for name in LABELS)


def _seconds(time: str) -> float:
    return units.moment(time).timestamp()
