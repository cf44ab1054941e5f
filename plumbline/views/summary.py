"""One line per variant: what the campaign found."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from plumbline import paths, units
from plumbline.errors import PlumbError
from plumbline.records import query
from plumbline.records.model import AnyRecord, Figure, Placement, Variant
from plumbline.views.table import table

HEADER = (
    "id",
    "test",
    "stack",
    "placement",
    "figure",
    "value",
    "unit",
    "% limit",
    "also",
    "disturbed",
    "state",
    "verified",
    "verdict",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb list``."""
    parser.add_argument("--site")
    parser.add_argument("--test", help="only tests whose name begins so")


def run(args: argparse.Namespace) -> int:
    """Print the records; 1 if some are damaged."""
    records, damages = query.records(query.Selection(site=args.site, test=args.test))
    if args.site and not (paths.results() / args.site).is_dir():
        raise PlumbError(f"no records of site '{args.site}'", str(paths.results()), "plumb list shows what there is")
    print(listing(records))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    return 1 if damages else 0


def lines(records: Sequence[AnyRecord]) -> str:
    """A line per record, by test and stack: its first figure, a second one if there are two, or why it has none."""
    rows = sorted(records, key=lambda row: (row.variant.name, row.stack.name, row.time))
    return table(HEADER, [_cells(row) for row in rows], right=("value", "% limit"))


def closing(records: Sequence[AnyRecord]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    verdicts = Counter(record.final_verdict for record in records)
    parts = [
        units.counted(len(records), "variant"),
        f"{sum(record.is_verified for record in records)} verified",
        units.counted(sum(record.launch_count for record in records), "launch")
        + f" ({sum(record.disturbed_count for record in records)} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items())),
    ]
    return ", ".join(parts)


def listing(records: Sequence[AnyRecord]) -> str:
    """The records of ``plumb list`` with the closing line, or what to do when there is none."""
    return f"{lines(records)}\n\n{closing(records)}" if records else "no records yet: make campaign"


def _cells(record: AnyRecord) -> tuple[str, ...]:
    start = (record.id, name(record.variant), record.stack.name, placement(record.placement))
    verified = "yes" if record.is_verified else "NO"
    disturbed = f"{record.disturbed_count} of {record.launch_count}" if record.disturbed_count else ""
    if not record.figures or record.faults:
        verdict = f"{record.final_verdict}: {shorten((record.faults or ['no figure'])[0], 90)}"
        return (*start, "–", "–", "–", "–", "", disturbed, record.state, verified, verdict)
    first, *others = record.figures
    value, unit = units.human(first.value, first.unit)
    also = f"{others[0].name} {' '.join(units.human(others[0].value, others[0].unit))}" if len(others) == 1 else ""
    return (*start, first.name, value, unit, percent(first), also, disturbed, record.state, verified, record.verdict)


def name(variant: Variant) -> str:
    """The test of a variant and those of its parameters that the placement column does not show already."""
    shown = {"placement", "memory", "threads", "cpu_node", "memory_node"}
    return " ".join([variant.test, *(str(value) for key, value in variant.params.items() if key not in shown)])


def placement(placed: Placement) -> str:
    """Placement, ranks x threads, memory: ``numa 2x8 local``."""
    nodes = f"{placed.nodes} nodes " if placed.nodes > 1 else ""
    return f"{placed.name} {nodes}{placed.ranks_per_node}x{placed.threads} {placed.memory}"


def percent(figure: Figure) -> str:
    """Percent of the physical limit, or a dash where the site's facts give none."""
    return f"{figure.percent_of_limit:.1f}" if figure.limit else "–"


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
