"""What a tuning found, as text for a terminal and as a JSON document."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from plumbline.tune.bench import Bench
from plumbline.tune.confirm import Confirmed
from plumbline.tune.curves import BARRIER, OPERATIONS, Curve, Row, sizes_of
from plumbline.tune.race import Score, label
from plumbline.tune.screen import Finding
from plumbline.tune.tune import Tuning
from plumbline.units import counted, human_bytes, human_seconds, percent, significant
from plumbline.views.table import table

#: findings on a terminal; the JSON document has all
SHOWN = 20
#: candidates of a rung on a terminal
RACED = 5
_MARKS = {"GAIN": "+", "FAIL": "!", "INVALID": "?", "INCONCLUSIVE": "~"}
NO_GAIN = "no significant gain: the settings that this stack has now stay"


def screen(tuning: Tuning) -> str:
    """The curves of the default, and what they show, the worst last."""
    parts = []
    for placement, curve in tuning.curves.items():
        parts.append(
            f"time in us, placement {placement}, default settings\n{_matrix(curve, functools.partial(_time, curve))}"
        )
        parts.append(_findings(tuning.findings[placement], placement))
    return "\n\n".join(parts)


def _matrix(rows: Iterable[Row], cell: Callable[[Row], str]) -> str:
    sizes = sizes_of(rows)
    names = [human_bytes(size).replace(" KiB", "K").replace(" MiB", "M").removesuffix(" B") for size in sizes]
    lines = [(operation, *(cell(Row(operation, size)) for size in sizes)) for operation in OPERATIONS]
    lines.append((BARRIER, cell(Row(BARRIER, 0)), *[""] * (len(sizes) - 1)))
    return table(("operation", *names), lines, right=names)


def _time(curve: Curve, row: Row) -> str:
    value = curve[row]
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _findings(found: Sequence[Finding], placement: str) -> str:
    if not found:
        return f"placement {placement}: no guideline is broken and no knee is seen in all launches"
    rows = [
        (str(one.row), one.kind, one.what, f"{one.factor:.2f}", f"{one.low:.2f} to {one.high:.2f}")
        for one in reversed(found[:SHOWN])
    ]
    more = f", the worst {SHOWN} of them" if len(found) > SHOWN else ""
    head = f"placement {placement}: {counted(len(found), 'finding')} seen in every launch{more}"
    return f"{head}\n{table(('row', 'kind', 'against', 'times', 'over launches'), rows, right=('times',))}"


def race(rungs: Iterable[Sequence[Score]]) -> str:
    """The best of each rung, what was infeasible, and how many lost."""
    parts = []
    for number, scores in enumerate(rungs, 1):
        feasible = sorted((one for one in scores if math.isfinite(one.cost)), key=lambda one: one.cost)
        rows = [(label(one.configuration), f"{one.mean:.3f}", f"{one.cost:+.3f}") for one in feasible[:RACED]]
        lost = len(feasible) - len(rows)
        more = f", {lost} more are worse" if lost else ""
        head = f"rung {number}: the best of {counted(len(scores), 'candidate')}{more}"
        parts.append(f"{head}\n{table(('settings', 'mean ratio', 'cost'), rows, right=('mean ratio', 'cost'))}")
        parts += _infeasible([one for one in scores if not math.isfinite(one.cost)])
    return "\n".join(parts)


def _infeasible(scores: Sequence[Score]) -> list[str]:
    """A line for each, and none for those that have all settings of a smaller one."""
    found = []
    left = sorted(scores, key=lambda one: len(one.configuration.settings))
    while left:
        first = left.pop(0)
        its = set(first.configuration.settings)
        with_it = [one for one in left if its <= set(one.configuration.settings)]
        left = [one for one in left if one not in with_it]
        more = f" (and {counted(len(with_it), 'candidate')} with it)" if with_it else ""
        found.append(f"infeasible: {label(first.configuration)}{more}: {first.reason}")
    return found


def confirmed(result: Confirmed) -> str:
    """Ratios tuned / default by operation and size."""
    parts = []
    for placement in dict.fromkeys(place for place, _ in result.verdicts):

        def cell(row: Row, placement: str = placement) -> str:
            verdict = result.verdicts[placement, row]
            ratio = "" if verdict.ratio is None else f"{verdict.ratio:.2f}"
            return f"{ratio}{_MARKS.get(verdict.verdict, ' ')}"

        ratios = _matrix((row for _, row in result.verdicts), cell)
        head = f"tuned / default, placement {placement} (+ GAIN, ! FAIL, ~ undecided, ? INVALID)"
        parts.append(f"{head}\n{ratios}")
    return "\n\n".join(parts)


def closing(tuning: Tuning) -> str:
    """The last line for people: the gain, or why there is none."""
    winner = tuning.winner
    if winner is None:
        why = tuning.confirmed[-1].unproven if tuning.confirmed else None
        return f"not proven: {why}; --resume measures more pairs" if why else NO_GAIN
    gains = [winner.verdicts[key] for key in winner.rows("GAIN")]
    best_key = min(winner.rows("GAIN"), key=lambda key: winner.verdicts[key].ratio or math.inf)
    best = winner.verdicts[best_key]
    mean = float(np.exp(np.mean([np.log(one.ratio) for one in gains if one.ratio])))
    undecided = len(winner.rows("INCONCLUSIVE"))
    open_rows = f", {undecided} undecided" if undecided else ""
    interval = f" ({best.interval[0]:.3f} to {best.interval[1]:.3f})" if best.interval else ""
    return (
        f"GAIN: {len(gains)} of {len(winner.verdicts)} rows are faster, {mean:.2f} of the default's time "
        f"(geometric mean), none is slower by more than {percent(0.01)} for certain{open_rows}; "
        f"best: {best_key[1]} {best.ratio:.3f}{interval}"
    )


def cost(bench: Bench, tuning: Tuning) -> str:
    """How many launches the tuning took, and how long they took together."""
    launches, seconds = bench.cost(one.session for one in tuning.confirmed)
    return f"cost: {counted(launches, 'launch')} that took {human_seconds(seconds)} together"


def document(bench: Bench, tuning: Tuning) -> str:
    """All that was found, as JSON: times of the default in us, ratios to it, and the cost in launches and seconds."""
    launches, seconds = bench.cost(one.session for one in tuning.confirmed)
    found = {
        "asked": msgspec.to_builtins(bench.asked),
        "default_us": {
            place: {str(row): significant(value, 6) for row, value in curve.items()}
            for place, curve in tuning.curves.items()
        },
        "findings": {place: [_finding(one) for one in each] for place, each in tuning.findings.items()},
        "race": [[_score(one) for one in rung] for rung in tuning.raced],
        "confirmed": [_confirmed(one) for one in tuning.confirmed],
        "notes": tuning.notes,
        "cost": {"launches": launches, "seconds": round(seconds, 1)},
        "result": closing(tuning) if tuning.raced or tuning.confirmed else None,
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "row": str(one.row),
        "against": one.what,
        "factor": one.factor,
        "low": one.low,
        "high": one.high,
    }


def _score(one: Score) -> dict[str, Any]:
    cost = one.cost if math.isfinite(one.cost) else None
    ratios = {str(row): significant(ratio, 4) for row, ratio in one.ratios.items()}
    return {"settings": msgspec.to_builtins(one.configuration), "cost": cost, "reason": one.reason, "ratios": ratios}


def _confirmed(one: Confirmed) -> dict[str, Any]:
    verdicts = [
        {"placement": place, "row": str(row), **verdict.to_dict()} for (place, row), verdict in one.verdicts.items()
    ]
    return {"settings": msgspec.to_builtins(one.configuration), "session": one.session, "verdicts": verdicts}
