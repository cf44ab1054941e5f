"""``plumb gate``: PASS, FAIL, INCONCLUSIVE or INVALID for a candidate held against its baseline."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.gate import judge, pairs_file, records_source, report
from plumbline.gate.sequential import Rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb gate``."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("records", nargs="?", type=Path, metavar="SESSION.jsonl", help="what plumb launch A B recorded")
    source.add_argument("--pairs", type=Path, metavar="FILE.csv", help="columns series,baseline,candidate")
    parser.add_argument("--better", choices=("lower", "higher"), help="which values are better (with --pairs)")
    parser.add_argument("--baseline", metavar="ID", help="the record to hold the other against (default: the first)")
    parser.add_argument("--tolerance", type=float, default=0.01, help="slowdown that may pass (default 0.01: 1 %%)")
    parser.add_argument("--must-detect", type=float, default=0.05, help="slowdown that must not (default 0.05: 5 %%)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts as one JSON document")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a table for a merge request's comment")


def run(args: argparse.Namespace) -> int:
    """Print a JSON line per series and a closing line; 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 INVALID (and bad input).

    Bad input does not end with the 2 of other subcommands: a CI that tolerates INCONCLUSIVE must not tolerate it.
    """
    try:
        rule = Rule(args.tolerance, args.must_detect)
        if args.pairs:
            if not args.better:
                raise PlumbError("--pairs without a direction", "plumb gate", "add --better lower or --better higher")
            series = pairs_file.read(args.pairs, args.better)
        else:
            series = records_source.read(args.records, args.baseline)
        verdicts = judge.judge(series, rule)
        for target, form in (
            (args.json, report.document),
            (args.junit, report.junit),
            (args.markdown, report.markdown),
        ):
            if target:
                _write(target, form(verdicts, rule))
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return judge.EXIT["INVALID"]
    print("\n".join(json.dumps(item.to_dict(), ensure_ascii=False, allow_nan=False) for item in verdicts), flush=True)
    print(closing(verdicts), file=sys.stderr)
    return judge.EXIT[judge.worst(verdicts)]


def closing(verdicts: list[judge.Verdict]) -> str:
    """The one line for people: the worst verdict, how many of each, and the first reason."""
    state = judge.worst(verdicts)
    counts = Counter(item.verdict for item in verdicts)
    line = f"gate: {state}: " + ", ".join(f"{counts[name]} {name}" for name in judge.EXIT if counts[name])
    if state == "PASS":
        blind = max(item.detectable or 0.0 for item in verdicts)
        return f"{line}; slowdowns of {judge.percent(blind)} and more are ruled out in every series"
    first = next(item for item in verdicts if item.verdict == state)
    return f"{line}; {first.series}: {first.reason}"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlumbError(f"cannot write: {error.strerror}", str(file), "name a file that can be written") from error
