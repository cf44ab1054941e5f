"""A gate of two curves: the times of a candidate and of a baseline at each point, and the efficiencies over the first.

The pairs, the statistics and the folder are those of ``plumb gate``, which measures the points in turn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.gate import as_forms
from plumbline.extras.scale import points
from plumbline.gate import commands, run
from plumbline.gate.live import EFFICIENCY, Stop
from plumbline.gate.rules import of_options
from plumbline.gate.setup import Terms
from plumbline.host import machine
from plumbline.judge import decide, statement
from plumbline.judge.decide import Verdict
from plumbline.parsers.application import FigureRule

NOT_DECIDED = "not decided: {}, and {} of the candidate"


def sides(args: argparse.Namespace, kind: str, counts: list[int]) -> dict[str, tuple[str, str]]:
    """Baseline and candidate at each of ``counts``, by its name: ``%threads=4``. A side may name its placement."""
    values = options.names_of(args.values)

    def spelled(side: str) -> list[str]:
        placed = "" if ",placement:" in side else f",placement:{args.placement or 'compact'}"
        texts = [text for (text,) in points.commands([side], kind, counts, values, args.weak)]
        if kind != "threads":
            return texts
        return [f"{text}{placed},threads:{count}" for text, count in zip(texts, counts, strict=True)]

    both = zip(spelled(args.baseline), spelled(args.candidate), strict=True)
    return {f"%{kind}={count}": pair for count, pair in zip(counts, both, strict=True)}


def begin(args: argparse.Namespace, rule: FigureRule) -> Path:
    """Begin a gate of two commands whose points are those of ``args``, and measure nothing; returns its folder."""
    both = args.baseline, args.candidate
    for role, side in zip(run.SIDES, both, strict=True):
        if not side.startswith(f"{commands.KIND}:"):
            raise PlumbError(f"'{side}' is no command", f"{points.WHERE} --{role}", f"--{role} command:'PROGRAM ARG …'")
    kind = points.kind(both)
    if kind == "nodes":
        raise PlumbError("a gate of curves has threads or ranks", points.WHERE, "write {ranks} in place of {nodes}")
    counts = points.numbers(args.counts or points.LADDER, machine.load(), kind)
    grown = [1.0 if args.weak and rule.wall else count / counts[0] for count in counts]
    terms = Terms(of_options(args), measure_equal=both[0] != both[1], grown=grown)
    return commands.begin(both, terms, args.work, rule, sides(args, kind, counts), f"{points.WHERE} --{{}}")


def measured(args: argparse.Namespace, folder: Path) -> int:
    """Measure pairs until all series are decided, and say how the efficiencies changed; the status is the gate's."""
    with options.progress(args.json):
        outcome = run.resume(folder, Stop(args.minutes), say, command=f"plumb scale --resume {folder}")
        lines = [sentence(each) for each in outcome.verdicts if each.subject.endswith(f": {EFFICIENCY}") and each.ratio]
        facts = [*outcome.facts, *((EFFICIENCY, line) for line in lines)]
        forms = as_forms(outcome.verdicts, outcome.rule, facts)
        options.write("the verdicts", args.output, forms)
        print("", *lines, *[""][: len(lines)], decide.closing(outcome.verdicts), sep="\n", flush=True)
    if args.json:
        print(forms[".json"](), end="")
    return EXIT[statement.overall(outcome.verdicts)]


def sentence(verdict: Verdict) -> str:
    """How an efficiency changed: ``efficiency at 8 threads: fell from 0.84 to 0.78 (0.76 to 0.80)``."""
    kind, _, count = verdict.subject.rpartition(": ")[0].rpartition("%")[2].partition("=")
    old, _ = verdict.pairs.counting
    before = float(np.median(old[: verdict.count]))
    ratio, (low, high) = verdict.ratio or 1.0, verdict.interval or (1.0, 1.0)
    how = {"FAIL": "fell from {} to {}", "PASS": "{}, and {} of the candidate"}.get(verdict.state, NOT_DECIDED)
    now = f"{before * ratio:.2f} ({before * low:.2f} to {before * high:.2f})"
    return f"efficiency at {count} {kind}: {how.format(f'{before:.2f}', now)}"
