"""One line per variant of a campaign."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plumbline.base import units
from plumbline.records import sources
from plumbline.records.figure import Ceiling, Figure
from plumbline.records.model import AnyRecord, Placement, Suite
from plumbline.records.variant import ApplicationState, Variant
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
#: columns that a narrow terminal leaves out, in this order; plumb show has all of them
SPARE = ("also", "state", "disturbed", "% limit", "verified", "figure")


#: parts of arguments that depend on the stack or the machine: the device of buffers, the folder of a file
_OF_STACK = re.compile(r"cuda|rocm")
_FOLDER = re.compile(r"(^|(?<==))/(.*/)?")
#: a figure, its ceiling and its record
Held = tuple[Figure, Ceiling, AnyRecord]
#: letter after a percentage -> its meaning
MARKS = {
    "c": "c: percent of what this machine reached when its ceilings were measured; no limit is declared",
    "m": "m: percent of what the benchmark's own model gives, with what the same launches measured",
}


def ordered(records: Sequence[AnyRecord], ranked: bool) -> list[AnyRecord]:
    """By variant and stack; ``ranked``: by test and stack, the best figure first, records without a valid one last."""
    return sorted(records, key=_rank if ranked else lambda row: (row.variant.name, row.stack.name, row.time))


def lines(records: Sequence[AnyRecord], ranked: bool = False) -> str:
    """A line per record: its first figure, a second one if there are two, or why it has none."""
    rows = ordered(records, ranked)
    call = naming(row.variant for row in rows)
    return table(HEADER, [_cells(row, call) for row in rows], right=("value", "% limit"), spare=SPARE)


def closing(records: Sequence[AnyRecord]) -> str:
    """The important line: how many records, verified, disturbed, invalid."""
    verdicts = Counter(record.final_verdict for record in records)
    parts = [
        units.counted(len(records), "variant"),
        f"{sum(record.is_verified for record in records)} verified",
        *([f"{imported} imported"] if (imported := sum(record.is_imported for record in records)) else []),
        units.counted(sum(record.launch_count for record in records), "launch")
        + f" ({sum(record.disturbed_count for record in records)} disturbed)",
        *(f"{count} {name}" for name, count in sorted(verdicts.items())),
    ]
    return ", ".join(parts)


def listing(records: Sequence[AnyRecord], ranked: bool = False) -> str:
    """The records of ``plumb list`` with the closing line, or a hint where there is none."""
    if not records:
        return str(sources.none_yet())
    return "\n".join([lines(records, ranked), *legend(records), "", closing(records)])


def legend(records: Sequence[AnyRecord]) -> list[str]:
    """The lines below :func:`lines`: letters behind percentages, ceilings raised or suspect."""
    marks = {record.figures[0].ceiling.mark for record in records if record.figures and record.figures[0].ceiling}
    entries = [text for mark, text in MARKS.items() if mark in marks]
    held = [
        (figure, figure.ceiling, record)
        for record in records
        for figure in record.figures
        if figure.ceiling is not None
    ]
    for (figure, ceiling, record), more in _first([item for item in held if item[1].raising]):
        entries.append(f"{ceiling.raising}: {figure.name} of {record.id}{more} reached more than at set-up")
    for (figure, _, record), more in _first([item for item in held if item[1].suspect]):
        entries.append(f"suspect: {figure.reached}, {figure.name} of {record.id}{more}: plumb site measure")
    return entries


def _first(items: list[Held]) -> list[tuple[Held, str]]:
    """The first of ``items``, if there is one, and how many more there are."""
    return [(items[0], f" and {len(items) - 1} more" if len(items) > 1 else "")] if items else []


def _rank(record: AnyRecord) -> tuple[Any, ...]:
    start = (record.variant.test, record.stack.name)
    if not record.figures or record.faults:
        return (*start, True)
    figure = record.figures[0]
    return (*start, False, figure.name, -figure.value if figure.better == "higher" else figure.value)


def _cells(record: AnyRecord, call: Callable[[Variant], str]) -> tuple[str, ...]:
    start = (record.id, call(record.variant), record.stack.name, placement(record.placement))
    verified = "yes" if record.is_verified else record.provenance if record.is_imported else "NO"
    disturbed = f"{record.disturbed_count} of {record.launch_count}" if record.disturbed_count else ""
    if not record.figures or record.faults:
        verdict = f"{record.final_verdict}: {shorten((record.faults or ['no figure'])[0], 90)}"
        return (*start, "–", "–", "–", "–", "", disturbed, record.state, verified, verdict)
    first, *others = record.figures
    value, unit = first.shown
    shown = others if len(others) == 1 or record.variant.application else []
    also = ", ".join(f"{figure.name} {' '.join(figure.shown)}" for figure in shown[:2])
    more = f", {len(shown) - 2} more" if len(shown) > 2 else ""
    return (
        *(*start, first.name, value, unit, percent(first)),
        *(f"{also}{more}", disturbed, record.state, verified, record.verdict),
    )


def name(variant: Variant) -> str:
    """The test of a variant and those of its parameters that the placement column does not show already."""
    shown = {"placement", "memory", "threads", "cpu_node", "memory_node"}
    return " ".join([variant.test, *(str(value) for key, value in variant.params.items() if key not in shown)])


def naming(variants: Iterable[Variant]) -> Callable[[Variant], str]:
    """A function that gives each variant its :func:`name`, with arguments that tell ``variants`` of a name apart."""
    known: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for variant in variants:
        known[name(variant)].add(_arguments(variant))

    def call(variant: Variant) -> str:
        arguments, every = _arguments(variant), known[name(variant)]
        if len(every) < 2:
            return name(variant)
        first = _alike(every)
        first -= first > 0 and arguments[first - 1].startswith("-")  # the option that the value is of
        last = _alike([words[first:][::-1] for words in every])
        return " ".join([name(variant), *arguments[first : len(arguments) - last]])

    return call


def _alike(every: Iterable[tuple[str, ...]]) -> int:
    """The number of leading words that all share."""
    return sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, zip(*every, strict=False)))


def _arguments(variant: Variant) -> tuple[str, ...]:
    """The arguments of the benchmark that are the same with all stacks."""
    return tuple(_FOLDER.sub("", word) for word in variant.arguments if not _OF_STACK.fullmatch(word))


def placement(placed: Placement) -> str:
    """Placement, ranks x threads, memory: ``numa 2x8 local``."""
    nodes = f"{placed.nodes} nodes " if placed.nodes > 1 else ""
    return f"{placed.name} {nodes}{placed.ranks_per_node}x{placed.threads} {placed.memory}"


def application(state: ApplicationState) -> str:
    """A program of an application and the state of its code, for people."""
    changed = " with changes that were not committed" if state.changed else ""
    build = "".join(f", {name}={value}" for name, value in state.build.items())
    return f"{state.program} of {state.name}, {(state.commit or state.digest)[:12]}{changed}{build}"


def suite(known: Suite) -> str:
    """The state of the suite that made a record: version, commit, and whether there were changes."""
    dirty = " with uncommitted changes" if known.dirty else ""
    return f"plumbline {known.version}, commit {(known.commit or 'unknown')[:12]}{dirty}"


def percent(figure: Figure) -> str:
    """Percent of the physical limit; else of the measured ceiling or of the model, with its letter; else a dash."""
    return f"{figure.reached.percent:.1f}{figure.reached.mark}" if figure.reached else "–"


def span(figure: Figure) -> str:
    """The least and the largest of its launches: ``20.1 GB/s … 20.5 GB/s``."""
    return " … ".join(" ".join(units.human(end(figure.samples), figure.unit, figure.resolution)) for end in (min, max))


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
