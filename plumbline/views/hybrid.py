"""``plumb hybrid``: the best hybrid code against the best pure MPI code on the same nodes.

"You have to compare apples to apples, i.e. the best hybrid code to the best pure MPI code" (RRZE 2010).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline import paths, units
from plumbline.errors import PlumbError
from plumbline.records import query, sources
from plumbline.records.model import AnyRecord, Figure
from plumbline.statistics import bests, unpaired
from plumbline.views import summary
from plumbline.views.table import table

#: the parameter that names the mode of a code, and its value without threads
MODE, PURE = "operation", "pure"
#: parameters in which the codes that are compared may differ: how they fill the nodes
FREE = (MODE, "placement", "memory", "threads")
HYBRID, MPI, NONE, FEW = "hybrid wins", "pure MPI wins", "no difference seen", "too few launches"
MEANING = "ratio of speeds: above 1 the hybrid code is faster; the interval allows for the choice of both"
APART = (
    "the interval knows nothing of how sessions differ: of codes measured in sessions of their own, a winner is named "
    f"where the ratio exceeds {1 + unpaired.ALLOWANCE:g} too"
)
NOTHING = (
    "no pure MPI code beside hybrid ones in the records: reframe -c reframe-tests -r -S profile=full -n jacobi_modes"
)


@dataclass(frozen=True)
class Verdict:
    """The best code of each kind, and the ratio of their speeds (hybrid to pure) with its interval.

    ``launches`` is how many launches of each variant an interval with both bounds needs; ``records`` are all that the
    two were chosen from.
    """

    hybrid: AnyRecord
    pure: AnyRecord
    ratio: float
    interval: bests.Interval
    launches: int
    records: Sequence[AnyRecord]

    @property
    def apart(self) -> bool:
        """Whether the records are of several sessions."""
        return len({record.session for record in self.records}) > 1

    @property
    def text(self) -> str:
        """Which wins, as far as the interval says it."""
        enough = not self.apart or unpaired.exceeds_sessions(self.ratio)
        if enough and self.interval.low > 1 < self.ratio:
            return HYBRID
        if enough and self.interval.high < 1 > self.ratio:
            return MPI
        return NONE if self.interval.low > 0 and self.interval.high < math.inf else FEW

    @property
    def said(self) -> str:
        """What the table shows: :attr:`text`, with the cure where there are too few launches."""
        return f"{FEW}: -S launches={self.launches}" if self.text == FEW else self.text

    @property
    def bounds(self) -> str:
        """The interval; a dash where it has no bound."""
        low, high = self.interval
        shown = (f"{low:.3f}" if low > 0 else "–", f"{high:.3f}" if high < math.inf else "–")
        return f"[{shown[0]}, {shown[1]}]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb hybrid``."""
    parser.add_argument("--site")
    parser.add_argument("--campaign", help="default: the newest that has both")
    parser.add_argument("--test", help="only tests whose name begins so")


def run(args: argparse.Namespace) -> int:
    """Print the verdicts; 1 if some records are damaged."""
    records, damages = query.records(
        query.Selection(site=args.site, campaign=args.campaign, test=args.test, valid=True)
    )
    if args.site:
        sources.require_site(args.site)
    if args.test and not records:
        query.require_test(args.test)
    if args.campaign and not records:
        what = f"no valid record of campaign '{args.campaign}'"
        raise PlumbError(what, str(paths.results()), "give the whole id: plumb show ID has it")
    newest: dict[str | None, str] = {}
    for record in records:
        newest[record.campaign] = record.time
    found: list[Verdict] = []
    for campaign in sorted(newest, key=lambda name: newest[name], reverse=True):
        found = found or verdicts([record for record in records if record.campaign == campaign])
    print(text(found))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    return 1 if damages else 0


def verdicts(records: Sequence[AnyRecord]) -> list[Verdict]:
    """A verdict for each test, partition, stack, number of nodes and problem with valid ``records`` of both kinds."""
    groups: dict[str, dict[str, AnyRecord]] = {}
    for record in sorted(records, key=lambda item: item.time):
        if MODE in record.variant.params and record.is_valid and record.figures:
            groups.setdefault(_group(record), {})[record.variant.name] = record  # the newest of each variant
    found = []
    for _, group in sorted(groups.items()):
        pure = [record for record in group.values() if _is_pure(record)]
        hybrid = [record for record in group.values() if not _is_pure(record)]
        if hybrid and any(record.variant.params[MODE] == PURE for record in pure):
            found.append(_verdict(hybrid, pure))
    return found


def text(found: Sequence[Verdict]) -> str:
    """The table with its notes and a closing line."""
    if not found:
        return NOTHING
    header = ("test", "stack", "best hybrid", "", "best pure MPI", "", "ratio", "95 % interval", "verdict")
    rows = [
        (problem(one.pure), one.pure.stack.name, *_cells(one.hybrid), *_cells(one.pure), *_outcome(one))
        for one in found
    ]
    counted = Counter(one.text for one in found)
    closing = ", ".join(f"{counted[word]} {word}" for word in (HYBRID, MPI, NONE, FEW) if counted[word])
    return "\n".join([table(header, rows, right=("ratio",)), *notes(found), "", closing])


def notes(found: Sequence[Verdict]) -> list[str]:
    """What a reader of the verdicts must know."""
    records = [record for one in found for record in one.records]
    said = [MEANING]
    if any(one.apart for one in found):
        said.append(APART)
    disturbed = sum(record.disturbed_count for record in records)
    if disturbed:
        launches = sum(record.launch_count for record in records)
        said.append(
            f"{disturbed} of {units.counted(launches, 'launch')} were disturbed, which makes the interval wider"
        )
    return said


def _is_pure(record: AnyRecord) -> bool:
    """Whether no rank had two threads at work."""
    return record.variant.params[MODE] == PURE or record.placement.threads == 1


def _group(record: AnyRecord) -> str:
    fixed = {key: value for key, value in record.variant.params.items() if key not in FREE}
    first = record.figures[0].name
    machine = (record.site, record.partition, record.placement.nodes)
    return repr((record.variant.test, machine, fixed, first, record.stack.name))


def _verdict(hybrid: Sequence[AnyRecord], pure: Sequence[AnyRecord]) -> Verdict:
    best = [max(records, key=lambda item: _speed(item.figures[0])) for records in (hybrid, pure)]
    first, second = ([_speeds(record.figures[0]) for record in records] for records in (hybrid, pure))
    return Verdict(
        hybrid=best[0],
        pure=best[1],
        ratio=_speed(best[0].figures[0]) / _speed(best[1].figures[0]),
        interval=bests.ratio(first, second),
        launches=bests.values_needed(len(hybrid), len(pure)),
        records=[*hybrid, *pure],
    )


def _speed(figure: Figure) -> float:
    return figure.value if figure.better == "higher" else 1 / figure.value


def _speeds(figure: Figure) -> list[float]:
    return [value if figure.better == "higher" else 1 / value for value in figure.samples]


def problem(record: AnyRecord) -> str:
    """The test and the parameters that both kinds share."""
    shared = [f"{key}={value}" for key, value in record.variant.params.items() if key not in FREE]
    return " ".join([record.variant.test, *shared])


def how(record: AnyRecord) -> str:
    """Mode and placement."""
    return f"{record.variant.params[MODE]} {summary.placement(record.placement)}"


def _cells(record: AnyRecord) -> tuple[str, str]:
    figure = record.figures[0]
    return how(record), " ".join(units.human(figure.value, figure.unit))


def _outcome(one: Verdict) -> tuple[str, str, str]:
    return f"{one.ratio:.3f}", one.bounds, one.said
