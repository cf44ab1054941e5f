"""Figures of a program that ``plumb.yaml`` describes: each is found in one of the ways of :data:`KINDS`.

A new way is one function and its line in the table. A number is one as programs print it, and a pattern has to take all
of it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import signal
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from plumbline.base import digits, schemas, units
from plumbline.base.units import Better
from plumbline.parsers.measurement import Measurement, ParseError, step_of
from plumbline.parsers.text import quote

#: a unit as the program prints it: no blanks, at most 24 characters
Unit: TypeAlias = Annotated[str, schemas.whole(r"[^\s\x00-\x1f\x7f]{1,24}")]
#: how one value is made of several that were found; ``only``: more than one is an error
Take: TypeAlias = Literal["only", "first", "last", "sum", "lowest", "highest", "median"]

_TAKE: dict[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": math.fsum,
    "lowest": min,
    "highest": max,
    "median": statistics.median,
}
#: clocks differ by a smaller fraction
CLOCKS = 0.01
#: the unit of ``wall``
SECONDS = "s"
#: declared work -> the name of its rate behind that of the figure, its unit, and how much of it makes one a second
RATES = {"flops": ("flop_rate", units.GFLOP_S, 1e9), "bytes": ("bandwidth", units.MB_S, 1e6)}
#: seconds of CPU time that reading an output takes at most: a pattern may have more ways to try than a day has time for
MOST_S = 20.0
#: as C, Fortran (``1.5D+03``) and Python print it, or with commas that cannot be decimal ones (``1,234.5``)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+|,[0-9]{3})"
)
#: the text before a group that begins inside a number, and behind one that ends there
_BEGUN = re.compile(r"(?:[0-9]|[0-9][.:'_]|(?<![0-9.])[0-9]+,|(?<![\w.])\.|[0-9.][eEdD][-+]?|(?<![\w.)\]-])-)\Z")
#: (Fortran leaves out the letter of an exponent of three digits: ``1.5-103``)
_CONTINUED = re.compile(r"[0-9]|[.,:'_][0-9]|[eEdD][-+]?[0-9]|[-+][0-9]{3}(?![.\w])")
#: the same of a time such as ``1h 2m`` or ``1m12.34s``
_PART = "(?:d|days?|h|hours?|m|minutes?)"
_BEGUN_TIME, _CONTINUED_TIME = re.compile(rf"\b[0-9]+ ?{_PART} ?\Z"), re.compile(rf" ?{_PART} ?[0-9][0-9.]* ?[ms]")
#: characters before and behind a group that are looked at: numbers are shorter
_NEAR = 60
#: the cure, by the character beside the group
_WHOLE = "write the group as ([-+.0-9eEdD]+)"
_CURES = {
    ",": "write the group as ([0-9.,]+) if this is one number, or the comma beside the group if it separates two",
    **dict.fromkeys(":'_", "write the character beside the group if it separates two numbers, or print a plain number"),
    "m": "let the program print the time in one unit",
}


class FigureRule(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A figure of merit of a program, and how it is found: exactly one of ``pattern``, ``json``, ``csv`` and ``wall``.

    ``pattern`` is a regular expression (Python's) whose first group, or the group ``value``, is the number; a group
    ``unit`` must be equal to ``unit``. ``json`` is the path of a number in a JSON document, its members and positions
    joined by dots. ``csv`` is the name of a column. ``wall`` is the time between MPI_Init and MPI_Finalize of the rank
    that took longest, or of the whole program if it does not use MPI. ``file`` is the file that the program writes,
    from the folder where it runs, or a pattern of one; without it the standard output is read. ``take`` says what is
    made of several values. ``flops`` and ``bytes`` (to and from memory) are what a run does in this time: their rates
    are figures too, compared with what the machine reached. ``tolerance`` and ``must_detect`` are margins of the gate:
    slowdowns as fractions of 1.
    """

    pattern: str | None = None
    json: str | None = None
    csv: str | None = None
    wall: bool = False
    file: str | None = None
    take: Take = "only"
    unit: Unit = SECONDS
    better: Better = "lower"
    flops: Annotated[float, Meta(gt=0, le=1e30)] | None = None
    bytes: Annotated[float, Meta(gt=0, le=1e30)] | None = None
    tolerance: Annotated[float, Meta(ge=0, lt=1)] | None = None
    must_detect: Annotated[float, Meta(gt=0, lt=1)] | None = None

    @property
    def kinds(self) -> list[str]:
        """The ways that it names; exactly one if it is sound."""
        return [kind for kind in KINDS if getattr(self, kind)]

    @property
    def rates(self) -> list[str]:
        """The kinds of work that it declares for its time, by the keys of :data:`RATES`."""
        return [name for name in RATES if getattr(self, name)]


class CheckRule(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A condition on the output of a correct run.

    ``pattern`` must be found; with ``value`` its first group is a number that may differ from ``value`` by the fraction
    ``tolerance`` of it (of 1 where ``value`` is 0). ``file`` is as in :class:`FigureRule`.
    """

    pattern: str
    value: float | None = None
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    file: str | None = None


class Rules(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The rules for a program's output: the figures by name, and the checks."""

    figures: dict[str, FigureRule]
    checks: list[CheckRule] = []

    @property
    def files(self) -> set[str]:
        """The files that are read beside the standard output."""
        named = [*(rule.file for rule in self.figures.values()), *(check.file for check in self.checks)]
        return {name for name in named if name}


class Source(Struct, frozen=True, gc=False):
    """A text in which figures are looked for: ``name`` is how errors call it."""

    name: str
    text: str
    wall_s: float | None = None


def by_pattern(rule: FigureRule, source: Source) -> list[str]:
    """The group ``value``, or the first, of each match."""
    matches = list(re.finditer(rule.pattern or "", source.text, re.MULTILINE))
    for match in matches:
        if (printed := match.groupdict().get("unit", rule.unit)) != rule.unit:
            raise ParseError(
                f"the program printed the unit {quote(str(printed))}, {rule.unit} was declared", source.name
            )
    return [_group(match, source, is_time=_is_time(rule)) for match in matches]


def _is_time(rule: FigureRule) -> bool:
    return units.multiple(rule.unit)[0] == units.US


def _group(match: re.Match[str], source: Source, *, is_time: bool = False) -> str:
    """The number's group of ``match``; raises :class:`ParseError` where it is only a part of a number."""
    group = "value" if "value" in match.re.groupindex else 1
    if part := _cut(match, group, is_time=is_time):
        whole, cure = part
        raise ParseError(f"the group takes {quote(match[group])} of {quote(whole)}", source.name, cure)
    return match[group] or ""


def by_json(rule: FigureRule, source: Source) -> list[str]:
    """The member of the JSON document that the text is."""
    try:
        value: Any = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"it is not one JSON document: {error}", source.name) from None
    for step in (rule.json or "").split("."):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError):
            return []
    return [repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else json.dumps(value)]


def by_csv(rule: FigureRule, source: Source) -> list[str]:
    """Each row of the column."""
    try:
        rows = list(csv.reader(io.StringIO(source.text, newline=""), skipinitialspace=True))
    except csv.Error as error:
        raise ParseError(f"it is not a table with commas: {error}", source.name) from None
    columns, *body = [row for row in rows if row] or [[]]
    if rule.csv not in columns:
        raise ParseError(f"there is no column {rule.csv}", source.name, f"its columns: {', '.join(columns)[:200]}")
    place = columns.index(rule.csv)
    return [row[place] if place < len(row) else "" for row in body]


#: how a figure may be found: member of :class:`FigureRule` -> the function that returns all that it found, as text
KINDS: dict[str, Callable[[FigureRule, Source], list[str]]] = {
    "pattern": by_pattern,
    "json": by_json,
    "csv": by_csv,
    "wall": lambda _, source: [] if source.wall_s is None else [repr(source.wall_s)],
}


def parse(text: str, context: Mapping[str, Any]) -> list[Measurement]:
    """The figures that ``context["rules"]`` (:class:`Rules`, as JSON has it) finds in a launch's output.

    ``context["files"]`` has the texts of the files that the rules read, by name; ``context["wall_s"]`` the seconds that
    the witness saw, ``context["launch_s"]`` those of the launch by the driver's clock, ``context["workers"]`` its
    threads. Raises :class:`ParseError` for a figure that is absent, ambiguous, not a number, or a time longer than the
    launch, and for an answer that a check says is wrong.
    """
    rules = msgspec.convert(context["rules"], Rules)
    output = Source("the standard output", text, context.get("wall_s"))
    files = {name: Source(name, content) for name, content in context.get("files", {}).items()}
    sources = [rule.file for rule in rules.figures.values() if not rule.wall] + [check.file for check in rules.checks]
    if None in sources and not text.strip():
        raise ParseError("the program printed nothing", output.name)
    with _bounded():
        for check in rules.checks:
            _check(check, _source(check.file, output, files))
        figures = {name: _figure(name, rule, _source(rule.file, output, files)) for name, rule in rules.figures.items()}
    for name, rule in rules.figures.items():
        _check_time(rule, figures[name], context)
    return [*figures.values(), *(rate for name, rule in rules.figures.items() for rate in _rates(rule, figures[name]))]


def rate_name(figure: str, work: str) -> str:
    """The name of the rate of declared ``work`` in the time ``figure``."""
    return f"{figure}_{RATES[work][0]}"


def _rates(rule: FigureRule, time: Measurement) -> Iterator[Measurement]:
    """The rates of the declared work; ``work`` in their parameters says of what kind they are."""
    for work in rule.rates:
        if not time.value:
            raise ParseError(f"figure {time.metric}: no time passed, and {work} are declared")
        _, unit, scale = RATES[work]
        value = getattr(rule, work) / (time.value * units.multiple(rule.unit)[1] / 1e6) / scale
        step = value / time.value * step_of([time])
        yield Measurement(rate_name(time.metric, work), value, unit, "higher", {"work": work}, step=step)


def _check_time(rule: FigureRule, time: Measurement, context: Mapping[str, Any]) -> None:
    """Raise :class:`ParseError` for a time longer than the launch; a sum may be of the times of all its threads."""
    if (launch_s := context.get("launch_s")) is None or not _is_time(rule):
        return
    most = launch_s * (1 + CLOCKS) * (context["workers"] if rule.take == "sum" else 1)
    if (time.value - step_of([time])) * units.multiple(rule.unit)[1] / 1e6 > most:
        raise ParseError(
            f"figure {time.metric}: {time.value:g} {rule.unit} is more than the launch took, {launch_s:g} s",
            rule.file or "the standard output",
            "declare the unit that the program prints; for a time of several CPUs one of its own, such as core-s",
        )


def _source(name: str | None, output: Source, files: Mapping[str, Source]) -> Source:
    if name is None:
        return output
    if name not in files:
        raise ParseError(f"the program did not write the file {name}", "the folder where it ran")
    return files[name]


def _figure(name: str, rule: FigureRule, source: Source) -> Measurement:
    (kind,) = rule.kinds
    wanted = "its wall time" if rule.wall else f"{kind} {quote(str(getattr(rule, kind)))}"
    try:
        tokens = KINDS[kind](rule, source)
        values = [_number(token) for token in tokens]
    except ParseError as error:
        raise ParseError(f"figure {name}: {error.message}", error.where or source.name, error.cure) from None
    if not values:
        raise ParseError(
            f"figure {name}: {wanted} is not there", source.name, "compare it with what the program printed"
        )
    if len(values) > 1 and rule.take == "only":
        raise ParseError(
            f"figure {name}: {wanted} is there {len(values)} times",
            source.name,
            f"let it find one only, or say which: take: {', '.join(_TAKE)}",
        )
    value = values[0] if len(values) == 1 else _TAKE[rule.take](values)
    measurement = Measurement(name, value, rule.unit, rule.better, {})
    # each of them may be off by half a step, and all in one direction
    step = (len(values) if rule.take == "sum" else 1) * digits.step_of(plain_number(token) or "" for token in tokens)
    return replace(measurement, step=step) if step != step_of([measurement]) else measurement


def _number(token: str) -> float:
    if (word := plain_number(token)) is None:
        raise ParseError(f"{quote(token)} is not a finite number")
    value = float(word)
    if not math.isfinite(value) or value < 0:
        raise ParseError(f"{quote(token)} is not a finite, non-negative number")
    return int(word) if word.isdigit() else value


def _check(check: CheckRule, source: Source) -> None:
    if (match := re.search(check.pattern, source.text, re.MULTILINE)) is None:
        raise ParseError(f"wrong answer: pattern {quote(check.pattern)} is not there", source.name)
    if check.value is None:
        return
    token = _group(match, source).strip()
    if (printed := plain_number(token)) is None:
        raise ParseError(f"wrong answer: {quote(token)} is not a finite number, {check.value:g} expected", source.name)
    allowed = check.tolerance * (abs(check.value) or 1.0)
    if abs(float(printed) - check.value) > allowed:
        within = f" within {allowed:.3g}" if allowed else ""
        raise ParseError(f"wrong answer: {token}, {check.value!r} expected{within}", source.name)


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Raise :class:`ParseError` in the block once it has used :data:`MOST_S` seconds of CPU time.

    Python's patterns look for signals while they try. Only the main thread gets them: in another there is no bound.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise ParseError(
            f"reading the output takes more than {MOST_S:g} s of CPU time",
            "the patterns of plumb.yaml",
            "repeat no group that repeats itself, as (a+)+ does",
        )

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def plain_number(token: str) -> str | None:
    """A printed number as Python reads it; None if the text is no finite number.

    >>> plain_number(" 1.5D+03"), plain_number("1,234.5"), plain_number("1,234"), plain_number("nan")
    ('1.5e+03', '1234.5', None, None)
    """
    word = token.strip()
    return re.sub("[dD]", "e", word.replace(",", "")) if _NUMBER.fullmatch(word) else None


def _cut(match: re.Match[str], group: int | str, *, is_time: bool) -> tuple[str, str] | None:
    """The number of which the ``group`` of ``match`` is only a part, and what to do; None where it is a whole one.

    A character that the pattern itself has beside the group separates numbers. ``is_time``: it may have several parts.
    """
    token, pattern = match[group] or "", match.re.pattern
    number = token.strip()
    if not re.fullmatch(r"[-+.0-9](?:.*[.0-9])?", number):
        return None
    start = match.start(group) + token.index(number)
    end = start + len(number)
    before = match.string[max(0, start - _NEAR) : start].rpartition("\n")[2]
    after = match.string[end : end + _NEAR].partition("\n")[0]
    mark = ""
    if number[0] not in "-+" and _BEGUN.search(before) and not _names(pattern, before[-1] + "("):
        mark = before[-1]
    elif _CONTINUED.match(after) and not _names(pattern, ")" + after[0]):
        # no number has a comma behind its decimals, but for German ones
        column = after[0] == "," and "." in number and not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{3})+", number)
        mark = "" if column else after[0]
    elif is_time and _BEGUN_TIME.search(before) and re.match(" ?[ms]", after):
        mark = "" if re.search(rf"0 ?{_PART} ?\(", pattern) else "m"
    elif is_time and _CONTINUED_TIME.match(after) and not _names(pattern, ")" + after.strip()[0]):
        mark = "m"
    if not mark:
        return None
    head, tail = re.search(r"(?:[0-9]\S* )?\Z|\S*\Z", before), re.match(r" ?\S*", after)
    whole = (head[0] if head else "") + number + (tail[0].rstrip() if tail and mark == "m" else after.split(" ")[0])
    return whole, _CURES.get(mark, _WHOLE)


def _names(pattern: str, edge: str) -> bool:
    """Whether ``pattern`` has the ``edge`` of a group, a bracket and the character beside it, blanks between them."""
    literal = [
        rf"\\{re.escape(character)}" if character == "." else rf"\\?{re.escape(character)}" for character in edge
    ]
    return not any(map(str.isdigit, edge)) and bool(re.search(r"(?:(?:\\s| )[*+?]?)*".join(literal), pattern))
