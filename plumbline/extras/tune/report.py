"""The result of a tuning, as text for a terminal and as a JSON document."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from plumbline.base import group
from plumbline.base.table import table
from plumbline.base.units import counted, human_bytes, human_seconds, percent, significant
from plumbline.base.verdicts import VerdictState
from plumbline.extras.tune import process, target
from plumbline.extras.tune.bench import TuningBench
from plumbline.extras.tune.confirm import Confirmed
from plumbline.extras.tune.curves import BARRIER, IMB, IN_ONE_BUFFER, OPERATIONS, OSU, Curve, Point, Row, sizes_of
from plumbline.extras.tune.race import Score, label, ranked
from plumbline.extras.tune.screen import STEEPER, CurveFinding
from plumbline.extras.tune.stages import Tuning
from plumbline.judge.decide import Verdict
from plumbline.show.columns import Column, Table
from plumbline.stacks.manifest import Fingerprint

#: findings on a terminal; the JSON document has all
SHOWN = 20
#: candidates of a rung on a terminal
RACED = 5
#: columns of the table of a confirmation
STATES: tuple[VerdictState, ...] = ("GAIN", "PASS", "INCONCLUSIVE", "FAIL", "INVALID")
#: operations that the closing line names; more are counted
NAMED = 3
NO_GAIN = "no significant gain: the settings that this stack has now stay"


def _counted(state: str, row: tuple[str, str, Sequence[tuple[int, Verdict]]]) -> str:
    return str(sum(verdict.state == state for _, verdict in row[2]) or "")


FINDINGS = Table[CurveFinding](
    "Findings",
    [
        Column("row", lambda finding: str(finding.row)),
        Column("kind", lambda finding: finding.kind),
        Column("against", lambda finding: finding.against),
        Column("times", lambda finding: f"{finding.factor:.2f}", "number"),
        Column("over launches", lambda finding: f"{finding.low:.2f} to {finding.high:.2f}"),
    ],
)
FIGURES = Table[tuple[Point, Verdict]](
    "Figures of the program",
    [
        Column("program", lambda row: row[0].way),
        Column("figure", lambda row: row[0].row.operation),
        Column("verdict", lambda row: row[1].state),
        Column("tuned, to default", lambda row: target.improvement(row[1])),
        Column("", lambda row: row[1].explanation),
    ],
)
#: an operation, a protocol, and the verdict on each size
PROTOCOLS = Table[tuple[str, str, Sequence[tuple[int, Verdict]]]](
    "Protocols",
    [
        Column("operation", lambda row: row[0]),
        Column("protocol", lambda row: row[1]),
        Column("sizes", lambda row: _range([size for size, _ in row[2]])),
        Column("ratio", lambda row: _span(verdict for _, verdict in row[2]), "number"),
        *(Column(state, partial(_counted, state), "number") for state in STATES),
    ],
    whole=True,
)
GAINS = Table[tuple[str, Sequence[Row], Sequence[tuple[Point, Verdict]]]](
    "Gains",
    [
        Column("gains", lambda row: row[0]),
        Column("sizes", lambda row: ", ".join(human_bytes(each.size) for each in sorted(row[1]) if each.size)),
        Column("of the default's time", lambda row: _span(verdict for _, verdict in row[2])),
        Column("by", lambda row: _protocols(dict.fromkeys(point.way for point, _ in row[2]))),
    ],
    whole=True,
)
SCORES = Table[Score](
    "Scores",
    [
        Column("settings", lambda score: label(score.configuration)),
        Column("mean ratio", lambda score: f"{score.mean:.3f}", "number"),
        Column("cost", lambda score: f"{score.cost:+.3f}", "number"),
    ],
)


def screen(tuning: Tuning) -> str:
    """The curves of the default, and their findings, the worst last."""
    parts = []
    first = {place.placement: place for place in reversed(tuning.curves)}  # of several numbers of ranks the largest
    for place, curve in tuning.curves.items():
        if place == first[place.placement]:
            parts.append(f"time in us, placement {place.label}, default settings\n{_matrix(curve)}")
        parts.append(_findings(tuning.findings[place], place.label))
    counts = tuning.disturbed.values()
    if disturbed := sum(number for number, _ in counts):
        parts.append(
            f"{disturbed} of {sum(every for _, every in counts)} launches were disturbed: a finding is what every "
            f"launch shows, so the load may hide knees (steps {STEEPER:g} times as steep) and broken guidelines: "
            "measure on a quiet host"
        )
    return "\n\n".join(parts)


def _matrix(curve: Curve) -> str:
    sizes = sizes_of(curve)
    names = [human_bytes(size).replace(" KiB", "K").replace(" MiB", "M").removesuffix(" B") for size in sizes]
    times = {row: f"{value:.3g}" if value < 1000 else f"{value:.0f}" for row, value in curve.items()}
    lines = [(operation, *(times[Row(operation, size)] for size in sizes)) for operation in OPERATIONS]
    lines.append((BARRIER, times[Row(BARRIER, 0)], *[""] * (len(sizes) - 1)))
    return table(("operation", *names), lines, right=names)


def _findings(findings: Sequence[CurveFinding], placement: str) -> str:
    if not findings:
        return f"placement {placement}: no guideline is broken and no knee is seen in all launches"
    more = f", the worst {SHOWN} of them" if len(findings) > SHOWN else ""
    head = f"placement {placement}: {counted(len(findings), 'finding')} seen in every launch{more}"
    return f"{head}\n{FINDINGS.text(findings[:SHOWN][::-1])}"


def race(rungs: Iterable[Sequence[Score]]) -> str:
    """The best of each rung, the infeasible candidates, and the number of losers."""
    parts = []
    for number, scores in enumerate(rungs, 1):
        feasible = ranked(scores)
        more = f", {len(feasible) - RACED} more are worse" if len(feasible) > RACED else ""
        head = f"rung {number}: the best of {counted(len(scores), 'candidate')}{more}"
        parts.append(f"{head}\n{SCORES.text(feasible[:RACED])}")
        parts += _infeasible([score for score in scores if not math.isfinite(score.cost)])
    return "\n".join(parts)


def _infeasible(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each, and none for those that have all settings of a smaller one."""
    left = sorted(scores, key=lambda score: len(score.configuration.settings))
    while left:
        first, *left = left
        with_it = [score for score in left if {*first.configuration.settings} <= {*score.configuration.settings}]
        left = [score for score in left if score not in with_it]
        more = f" (and {counted(len(with_it), 'candidate')} with it)" if with_it else ""
        yield f"infeasible: {label(first.configuration)}{more}: {first.reason}"


def confirmed(result: Confirmed) -> str:
    """Ratios tuned / default of the operations with a GAIN or a FAIL, a line for each protocol; the others counted."""
    if result.of_program:
        return FIGURES.text([(point, verdict) for (_, point), verdict in result.verdicts.items()])
    marked = {row.operation for row in result.rows("GAIN", "FAIL")}
    return "\n\n".join(
        _of_placement(result, placement, marked) for placement in dict.fromkeys(place for place, _ in result.verdicts)
    )


def _of_placement(result: Confirmed, placement: str, marked: Container[str]) -> str:
    points = [(point, verdict) for (place, point), verdict in result.verdicts.items() if place == placement]
    lines = group(
        ((point.row.operation, point.way), (point.row.size, verdict))
        for point, verdict in points
        if point.row.operation in marked
    )
    others = Counter(verdict.state for point, verdict in points if point.row.operation not in marked)
    rows = [(operation, way, verdicts) for (operation, way), verdicts in lines.items()]
    text = (
        f"tuned / default, placement {placement}\n{PROTOCOLS.text(rows)}"
        if rows
        else f"placement {placement}: no row is a GAIN or a FAIL"
    )
    counts = ", ".join(f"{count} {state}" for state, count in others.items())
    return f"{text}\nother operations: {counts}" if others else text


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return human_bytes(low) if low == high else f"{human_bytes(low)} to {human_bytes(high)}"


def closing(tuning: Tuning) -> str:
    """The closing line for people: the gains, or the reason for none."""
    winner = tuning.winner
    if winner is None:
        why = tuning.confirmed[-1].unproven if tuning.confirmed else None
        return f"not proven: {why}; --resume measures more pairs" if why else tuning.idle or NO_GAIN
    if winner.of_program:
        proven = [
            f"{key[1].way}: {key[1].row.operation} {target.improvement(each.verdicts[key])}"
            for each in ([tuning.process] if tuning.process and tuning.process is not winner else []) + [winner]
            for key in each.keys("GAIN")
        ]
        return f"GAIN: {'; '.join(proven)}"
    rows = winner.gaining
    operations = list(dict.fromkeys(row.operation for row in rows))
    subject = ", ".join(operations) if len(operations) <= NAMED else counted(len(operations), "operation")
    if sizes := [row.size for row in rows if row.size]:
        subject += f" of {_range(sizes)}"
    undecided = len(winner.keys("INCONCLUSIVE"))
    open_points = f"; {undecided} of {len(winner.verdicts)} rows are undecided" if undecided else ""
    return (
        f"GAIN: {subject}: {_span(verdict for _, verdict in _points(winner, rows))} of the default's time; "
        f"no row is slower by more than {percent(0.01)} for certain{open_points}"
    )


def gains(winner: Confirmed) -> str:
    """The gains: sizes, ratios and protocols of each operation. No protocol of a gaining row is slower."""
    by_operation = group((row.operation, row) for row in dict.fromkeys(winner.gaining))
    return GAINS.text([(operation, rows, _points(winner, rows)) for operation, rows in by_operation.items()])


def _points(winner: Confirmed, rows: Container[Row]) -> list[tuple[Point, Verdict]]:
    """The verdicts on ``rows`` by every protocol."""
    return [(point, verdict) for (_, point), verdict in winner.verdicts.items() if point.row in rows]


def _span(verdicts: Iterable[Verdict]) -> str:
    """From the least ratio to the largest; empty where none has one."""
    ratios = [verdict.ratio for verdict in verdicts if verdict.ratio is not None]
    return f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""


def _protocols(ways: Iterable[str]) -> str:
    """``start barrier loop, also in place; OSU`` of the single protocols."""
    single = list(ways)
    others = [way for way in single if way in (OSU, IMB)]
    kernel = dict.fromkeys(way.removesuffix(IN_ONE_BUFFER) for way in single if way not in others)
    place = ", also in place" if any(way.endswith(IN_ONE_BUFFER) for way in single) else ""
    return "; ".join(filter(None, (f"{' '.join(kernel)}{place}" if kernel else "", " ".join(others))))


def cost(bench: TuningBench, tuning: Tuning) -> str:
    """How many launches the tuning took, and how long they took together."""
    launches, seconds = bench.cost(name for attempt in tuning.confirmed for name in attempt.sessions)
    return f"cost: {counted(launches, 'launch')} that took {human_seconds(seconds)} together"


def document(bench: TuningBench, tuning: Tuning, where: Fingerprint) -> str:
    """The whole result as JSON: times of the default in us, ratios to it, and the cost in launches and seconds.

    ``tuned`` has the settings that are proven ``where`` it was measured.
    """
    launches, seconds = bench.cost(name for attempt in tuning.confirmed for name in attempt.sessions)
    content = {
        "family": bench.request.family,
        "fingerprint": msgspec.to_builtins(where),
        "tuned": msgspec.to_builtins(process.of_library(tuning.winner.configuration)) if tuning.winner else None,
        "process": process.settings(tuning.process.configuration) if tuning.process else {},
        "asked": msgspec.to_builtins(bench.request),
        "default_us": {
            place.label: {str(row): significant(value, 6) for row, value in curve.items()}
            for place, curve in tuning.curves.items()
        },
        "findings": {
            place.label: [{**vars(finding), "row": str(finding.row)} for finding in each]
            for place, each in tuning.findings.items()
        },
        "race": [
            [
                {
                    "settings": msgspec.to_builtins(score.configuration),
                    "cost": score.cost if math.isfinite(score.cost) else None,
                    "reason": score.reason,
                    "ratios": {str(row): significant(ratio, 4) for row, ratio in score.ratios.items()},
                }
                for score in rung
            ]
            for rung in tuning.raced
        ],
        "confirmed": [
            {
                "settings": msgspec.to_builtins(attempt.configuration),
                "sessions": list(attempt.sessions),
                "verdicts": [
                    {"placement": place, "row": str(point.row), "protocol": point.way, **verdict.to_dict()}
                    for (place, point), verdict in attempt.verdicts.items()
                ],
            }
            for attempt in tuning.confirmed
        ],
        "notes": tuning.notes,
        "cost": {"launches": launches, "seconds": round(seconds, 1)},
        "result": closing(tuning) if tuning.raced or tuning.confirmed or tuning.idle else None,
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
