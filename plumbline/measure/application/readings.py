"""The numbers that runs of a program print, with their labels: which vary and have a unit, and which are equal.

Of every number a rule of plumb.yaml is made and tried: it counts only if the rule reads that number from each run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import platform
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from plumbline.base import digits, units
from plumbline.parsers.application import CheckRule, parse, plain_number
from plumbline.parsers.measurement import ParseError

#: not a part of a word, a date, a version or a range; thousands may have commas
_NUMBER = re.compile(
    r"(?<![\w.+-])[-+]?(?:\d{1,3}(?:,\d{3})+(?!,?\d)(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?(?![.:/-]?\d)"
)
#: a quotient that may be a rate
_QUOTIENT = re.compile(r"[\w*^]{1,16}(?:/[\w*^]{1,10}){1,2}")
#: the unit of a number without one, by words beside it
_BY_NAME = {
    r"(?i)\bper s(ec|\b)|\bfom\b|figure of merit|/ [\w ]*time": "1/s",
    r"(?i)time|elapsed|wall|clock|duration|second|latency": "s",
    r"(?i)rate|bandwidth|throughput|performance|speed": "1/s",
}
#: words in the label of a result, and of what is no result of the whole run: how much they count
_WORTH = {
    r"(?i)figure of merit|rating": 6,
    r"(?i)\bfom": 3,
    r"(?i)performance|rate|throughput|bandwidth|total|elapsed|wall|solve|overall|execution|per s": 2,
    r"(?i)set.?up|init|\bmin|max|std|dev|error|overhead|cpu|core|read|write|\bave?\b|avg|average|mean|usage|\bi/?o\b"
    r"|raw": -3,
}
#: words beside the answer of a program, and beside numbers that are none; lines that say that it is right
_ANSWER = r"(?i)energy|sum|residual|norm|error|result|value|iteration|digest|difference|total|mass"
_NO_ANSWER = r"(?i)\bdate|buil[dt]|\bver(sion|\b)|host|node|seed|copyright|cache|\bl[123]\b|cpu|memory|flop"
_RIGHT = re.compile(
    r"(?i)(?:[:=]\s*|\b(?:is|are|was|considered)\s+)(?:pass(?:ed)?|valid|verified|correct|successful)\b"
    r"|\b(?:passed|success(?:ful(?:ly)?)?)\W*$|\b(?:verified|converged|validate[sd])\b"
)
_WRONG = re.compile(r"(?i)\b(?:not|no|fail\w*|invalid|errors?|warnings?)\b")
#: a figure in coarser steps, as a fraction, hardly decides a gate; answers differ less, as sums in another order do
COARSE, ROUNDING = 0.02, 1e-6
#: answers below this are errors of rounding; digits of an answer, at least
_TINY, _DIGITS = 1e-4, 4
#: proposals at most; checks at most
MOST, _CHECKS = 8, 3
#: different lines that are looked at, the last ones; characters before a row in which a table's header may be
_LINES, _NEAR = 400, 4000


class Reading(NamedTuple):
    """A number of each run: ``rule`` says where it is, as in plumb.yaml; the longest run took ``launch_s`` seconds.

    ``table`` is the title of its column, and those of all columns.
    """

    label: str
    rule: Mapping[str, Any]
    tokens: Sequence[str]
    unit: str | None
    place: int
    table: tuple[str, ...] = ()
    launch_s: float = math.inf

    @property
    def values(self) -> list[float]:
        """The number of each run."""
        return [float(plain_number(token) or "nan") for token in self.tokens]

    def fraction(self, part: float) -> float:
        """``part`` as a fraction of the median."""
        return part / (abs(statistics.median(self.values)) or 1.0)

    @property
    def spread(self) -> float:
        """The difference of the largest and the smallest value, as a fraction of the median."""
        return self.fraction(max(self.values) - min(self.values))

    @property
    def step(self) -> float:
        """How finely it is printed, as a fraction of the median."""
        return self.fraction(digits.step_of(plain_number(token) or "" for token in self.tokens))

    @property
    def better(self) -> str:
        """The direction: a time, or a time per work, is better if it is lower."""
        parts = (self.unit or "").split("/")
        times = [units.multiple(part)[1] for part in parts if part in units.TIMES]
        if len(times) > 1:  # ns/day is a rate, hour/ns is not
            return "lower" if times[0] > times[1] else "higher"
        return "lower" if parts[0] in units.TIMES else "higher"

    @property
    def name(self) -> str:
        """A name for plumb.yaml."""
        words = re.findall("[a-z0-9]+", re.sub(r"[\[(].*?[\])]", " ", self.label.split(": ")[0]).lower())
        return re.sub("^[^a-z]+|(_(of|is|in|at|to|s))+$", "", "_".join(words[-4:]))[:36].rstrip("_") or "figure"

    @property
    def worth(self) -> tuple[int, bool, int]:
        """How likely it is the result of the whole run; of equals one of the standard output, and the later one."""
        label = f"{self.label} {self.table[:1]}".replace("_", " ")
        words = sum(worth for pattern, worth in _WORTH.items() if re.search(pattern, label))
        of, factor = units.multiple(self.unit or "")
        rate = (4 if words > 0 else 1) + (self.better == "higher")
        part = 3 * self.values[0] * factor / 1e6 / self.launch_s if of == units.US else rate
        return (
            round(words + part) - ("take" in self.rule) - 4 * (self.step > COARSE),
            not self.rule.get("file"),
            self.place,
        )

    @property
    def figure(self) -> dict[str, Any]:
        """The figure, as plumb.yaml has it."""
        return {**self.rule, "unit": self.unit, "better": self.better}


def readings(texts: Sequence[str], file: str | None, launch_s: float) -> list[Reading]:
    """The numbers with labels in one output of several runs: the standard output, or that of ``file``.

    ``launch_s``: the seconds of the longest run, which no time exceeds.
    """
    for kind in (_of_json, _of_csv, _of_lines):
        with contextlib.suppress(ValueError, LookupError, csv.Error, RecursionError):
            known = [reading for reading in kind(texts) if _reads(reading, texts, launch_s)]
            more = {"file": file} if file else {}
            return [each._replace(rule={**each.rule, **more}, launch_s=launch_s) for each in known]
    return []


def _of_json(texts: Sequence[str]) -> Iterator[Reading]:
    flat = [dict(_members(json.loads(text))) for text in texts]
    for place, path in enumerate(flat[0]):
        tokens = [json.dumps(members[path]) for members in flat]
        yield Reading(re.sub("[.]", " ", path), {"json": path}, tokens, _unit("", path, path), place)


def _members(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _members(item, f"{path}.{key}".lstrip("."))
    elif not path:
        raise ValueError("a value alone")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def _of_csv(texts: Sequence[str]) -> Iterator[Reading]:
    tables = [[row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row] for text in texts]
    if len(tables[0][0]) < 2 or any(len(row) != len(tables[0][0]) for table in tables for row in table):
        raise ValueError("no table")
    for place, name in enumerate(tables[0][0]):
        columns = [[row[place] for row in table[1:]] for table in tables]
        if all(map(plain_number, (cell for column in columns for cell in column))):
            tokens = [repr(statistics.median(map(float, column))) for column in columns]
            yield Reading(name, {"csv": name, "take": "median"}, tokens, _unit("", name, name), place)


def _of_lines(texts: Sequence[str]) -> Iterator[Reading]:
    runs = [_lines(text) for text in texts]
    places = Counter(skeleton for _, skeleton in runs[0])
    for (title, skeleton), first in list(runs[0].items())[-_LINES:]:
        every = [run.get((title, skeleton), []) for run in runs]
        numbers = [[_NUMBER.findall(match[0]) for match in matches] for matches in every]
        line = first[0][0]
        begins = "^" if first[0].start() == 0 or texts[0][first[0].start() - 1] == "\n" else ""
        section = title if places[skeleton] > 1 else ""  # other sections have such a line, too
        within = f"^ *{_before(section)}\\n(?:\\s.*\\n)*?" if section else ""
        several = first[1:] or (places[skeleton] > 1 and not section)
        last = {"take": "last"} if several or not begins else {}  # behind progress that was written over
        titles = _titles(texts[0][max(0, first[0].start() - _NEAR) : first[0].start()], skeleton.count("#"))
        for at, number in enumerate(_NUMBER.finditer(line) if len(set(map(len, every))) == 1 else ()):
            series = [[tokens[at] for tokens in run] for run in numbers]
            before, after = line[: number.start()], line[number.end() :]
            grows = all(run == sorted(run, key=lambda token: float(plain_number(token) or 0)) for run in series)
            label = _label(f"{section.rstrip(':')} {before}")
            if label and grows:  # of several, such as those of each step, the last has all
                joined = "" if after[:1].isspace() or not after else _literal(after.split()[0])
                group = f"([-+.{',' * (',' in number[0])}0-9eEdD]+)" if joined else r"(\S+)"
                rule = {"pattern": f"{within}{begins}{_before(before)}{group}{joined}", **last}
                unit = _unit(after, label, titles[at] if titles else "")
                table = (titles[at], *titles) if titles else ()
                yield Reading(label, rule, [run[-1] for run in series], unit, first[-1].start(), table)


def _lines(text: str) -> dict[tuple[str, str], list[re.Match[str]]]:
    """The lines of ``text`` by the title that they are indented below, and by their words."""
    lines: dict[tuple[str, str], list[re.Match[str]]] = {}
    titles = {-1: ""}  # by their indentation
    for match in re.finditer(r"[^\r\n]+", text):
        depth = len(match[0]) - len(match[0].lstrip())
        titles = {each: title for each, title in titles.items() if each < depth}
        lines.setdefault((titles[max(titles)], " ".join(_NUMBER.sub("#", match[0]).split())), []).append(match)
        if re.fullmatch(r"[^\d:]+:\s*", match[0]):
            titles[depth] = match[0].strip()
    return lines


def _label(before: str) -> str:
    """The words of a line ``before`` a number; those behind its last number alone if they end as a label does."""
    *earlier, last = _NUMBER.split(re.sub(rf"\b{re.escape(platform.node())}\b", "", before))
    if earlier and re.search(r"[a-zA-Z].*[:=]\s*$", last):
        unit, _, rest = last.lstrip(" ,;").partition(" ")
        earlier, last = [], rest if _is_unit(unit.strip(",;")) else last
    return " ".join(" ".join([*earlier, last]).strip(" ,;").split())


def _literal(text: str) -> str:
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _before(text: str) -> str:
    """The expression of what stands before a number: any blanks, and other numbers and another host's name in it."""
    blank = r"\s" if "\t" in text else " "
    parts = [re.sub(r"\s+", lambda _: f"{blank}+", _literal(part.strip())) for part in _NUMBER.split(text)]
    last = "+" if re.search(r"\w\s+\Z", text) else "*"
    begin = f"{blank}*" if text[:1].isspace() else ""
    whole = begin + rf"{blank}*\S+{blank}*".join(parts) + (f"{blank}{last}" if parts[-1] else "")
    return re.sub(rf"(?<!\\)\b{re.escape(_literal(platform.node()))}\b", r"\\S+", whole)


def _titles(before: str, count: int) -> list[str]:
    """The titles of the ``count`` columns of the table whose row stands behind ``before``; empty without."""
    for line in reversed(before.splitlines() if count > 1 else ()):
        titles = re.split(r"\s{2,}|\t+|\s*\|\s*", line.strip())
        if len(titles) in (count, count + 1) and not any(map(_NUMBER.fullmatch, titles)):
            return titles[-count:]
    return []


def _unit(after: str, label: str, title: str) -> str | None:
    """The unit of a number: behind it, in its column's title, or in its label; by its name where none is printed."""
    words = [*re.split(r"[\s\[()\]=,;]+", after.strip("[( "))[:1], *re.split(r"[\[(\])\s_]+", title)]
    words += [*re.findall(r"[\[(]([^\s\])]+)[\])]", label)]
    words += filter(re.compile("/|flops?", re.I).search, re.split(r"[\s_]+", label))
    if printed := next(filter(_is_unit, (word.strip(",.;:=") for word in words)), None):
        return printed
    return next((unit for words, unit in _BY_NAME.items() if re.search(words, f"{label} {title} {after[:12]}")), None)


def _is_unit(word: str) -> bool:
    parts = [word, *(word.split("/") if _QUOTIENT.fullmatch(word) else ())]
    return any(units.multiple(part)[0] in units.TIMES_AND_RATES for part in parts)


def _reads(reading: Reading, texts: Sequence[str], launch_s: float) -> bool:
    """Whether its rule reads its number, and no other one, from each of the ``texts``."""
    context = {"launch_s": launch_s, "wall_s": launch_s, "workers": 1}
    rules = {"figures": {"figure": reading.figure if is_figure(reading) else {**reading.rule, "unit": "1"}}}
    try:
        if min(reading.values) < 0 and reading.rule.keys() == {"pattern"}:  # an answer, and no figure
            for text, value in zip(texts, reading.values, strict=True):
                check = {**reading.rule, "value": value}
                parse(text, {"rules": {"figures": {"time": {"wall": True}}, "checks": [check]}, **context})
            return True
        read = [parse(text, {"rules": rules, **context})[0].value for text in texts]
    except ParseError:
        return False
    return read == reading.values


def is_figure(reading: Reading) -> bool:
    """Whether the runs print different numbers, by more than sums in another order do, in a unit that is measured."""
    varies = reading.spread > ROUNDING and min(reading.values) >= 0
    return varies and reading.unit is not None and units.is_measured(reading.unit, [0.5])


def figures(known: Sequence[Reading]) -> list[list[Reading]]:
    """The proposed figures, the most likely first; those of one column of a table are one proposal."""
    proposals: dict[Any, list[Reading]] = {}
    once = {tuple(each.tokens): each for each in sorted(filter(is_figure, known), key=lambda each: each.worth)}
    for each in sorted(once.values(), key=lambda each: each.worth, reverse=True):
        proposals.setdefault((each.rule.get("file"), each.table or str(each.rule)), []).append(each)
    return [sorted(group, key=lambda each: each.place)[:MOST] for group in list(proposals.values())[:MOST]]


def unknown(known: Sequence[Reading]) -> list[Reading]:
    """The numbers that vary and have no unit: only a person knows whether one is a figure."""
    varying = [each for each in known if each.spread > ROUNDING and each.unit is None and min(each.values) >= 0]
    return sorted(varying, key=lambda each: each.worth, reverse=True)[:MOST]


def checks(known: Sequence[Reading], texts: Mapping[str | None, Sequence[str]]) -> list[CheckRule]:
    """Checks of the answer: lines that say so in each run, and numbers that are equal, those of most digits first."""

    def shown(each: Reading) -> int:
        return len(re.sub(r"[eEdD].*|\D", "", each.tokens[0]).strip("0"))

    def is_answer(each: Reading) -> bool:
        fits = shown(each) >= _DIGITS or "iteration" in each.label.lower()
        return fits and not re.search(_NO_ANSWER, each.label) and abs(each.values[0]) > _TINY

    lines = [
        CheckRule(pattern=f"^{pattern}", file=file)
        for file, every in texts.items()
        for line in filter(_RIGHT.search, every[0].splitlines())
        if not _WRONG.search(line)
        if (pattern := _before(_NUMBER.split(line)[0].rstrip()).rstrip("* "))
        and all(re.search(f"^{pattern}", text, re.MULTILINE) for text in every)
    ]
    once = {(each.label, *each.tokens): each for each in reversed(known)}
    equal = [each for each in once.values() if each.spread <= ROUNDING and is_answer(each)]
    equal = sorted(equal[::-1], key=lambda each: (bool(re.search(_ANSWER, each.label)), shown(each)), reverse=True)
    numbers = [
        CheckRule(
            pattern=each.rule["pattern"],
            value=each.values[0],
            file=each.rule.get("file"),
            **(
                {} if each.tokens[0].isdecimal() else {"tolerance": max(10.0 ** -min(shown(each), 9), 10 * each.spread)}
            ),
        )
        for each in equal
        if "pattern" in each.rule and "take" not in each.rule
    ]
    return [*lines[:1], *numbers[:_CHECKS]]
