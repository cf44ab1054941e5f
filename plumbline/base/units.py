"""Units of figures of merit and how people read them. MB and GB are powers of ten, as STREAM, IMB and OSU use them.

Also lists of CPU and node numbers as people and the kernel write them.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from plumbline.base import group

Better = Literal["higher", "lower"]

US = "us"
MB_S = "MB/s"
MSG_S = "msg/s"
PERCENT = "%"
NS = "ns"
CYCLES = "cycles"
GFLOP_S = "GFlop/s"
MLUP_S = "MLUP/s"
BYTES = "bytes"
RATIO = "1"

#: every unit a measurement may have
UNITS = (US, MB_S, MSG_S, PERCENT, NS, CYCLES, GFLOP_S, MLUP_S, BYTES, RATIO)

#: those of times and rates, which no two launches measure alike
TIMES_AND_RATES = (US, MB_S, MSG_S, NS, CYCLES, GFLOP_S, MLUP_S)
#: units of amounts, which launches repeat
_AMOUNT = re.compile(r"1|[kKMGTP]?i?(?:B|[bB]ytes?)")

#: factors of prefixes that are before a unit, decimal and binary
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
#: unit of other programs -> our unit and the factor to it
_MULTIPLES = {
    **{f"{prefix}B/s": (MB_S, factor / 1e6) for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}Flop/s": (GFLOP_S, factor / 1e9) for prefix, factor in _PREFIXES.items() if "i" not in prefix},
    **{f"{prefix}msg/s": (MSG_S, factor) for prefix, factor in _PREFIXES.items() if "i" not in prefix},
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (US, 1e6)),
    **dict.fromkeys(("ms", "msec", "milliseconds"), (US, 1e3)),
    **dict.fromkeys(("µs", "μs", "usec", "microseconds"), (US, 1.0)),
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), (US, 1e-3)),
    **dict.fromkeys(("min", "minutes"), (US, 6e7)),
    **dict.fromkeys(("h", "hours"), (US, 3.6e9)),
    **dict.fromkeys(("d", "day", "days"), (US, 8.64e10)),
}
#: how other programs spell floating-point operations per second
_FLOPS = re.compile(r"([kKMGT]?)(?:flops?(?:/s(?:ec)?)?)", re.IGNORECASE)
#: units of time in seconds
SECONDS = {US: 1e-6, **{unit: factor * 1e-6 for unit, (known, factor) in _MULTIPLES.items() if known == US}}
#: units in which less is better
TIMES = (CYCLES, *SECONDS)


def multiple(unit: str) -> tuple[str, float]:
    """The unit that ``unit`` is a multiple of, and the factor to it; an unknown unit is its own.

    >>> multiple("GB/s"), multiple("ns"), multiple("widgets")
    (('MB/s', 1000.0), ('us', 0.001), ('widgets', 1.0))
    """
    flops = _FLOPS.fullmatch(unit)
    return _MULTIPLES.get(f"{flops[1].upper()}Flop/s" if flops else unit, (unit, 1.0))


def is_measured(unit: str, values: Iterable[float]) -> bool:
    """Whether ``values`` are measured, and not counted: times, rates, and all but whole numbers of a unit not known.

    >>> is_measured("timesteps/s", [100]), is_measured("widgets", [12.5]), is_measured("widgets", [12])
    (True, True, False)
    >>> is_measured("MiB", [12.5])
    False
    """
    if _AMOUNT.fullmatch(unit):
        return False
    parts = (unit, *unit.split("/"))
    return any(multiple(part)[0] in TIMES_AND_RATES for part in parts) or any(value % 1 for value in values)


def moment(text: str) -> datetime.datetime:
    """A time in the form of ISO 8601, whose ``Z`` Python 3.10 does not know; raises ValueError for another text."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def utc(text: str) -> str:
    """A time in the form of ISO 8601 (without a zone: UTC) as records have it; raises ValueError for another text.

    Nobody measured before 1970, and a year after 2199 is a typing error: neither is a time.
    """
    known = moment(text)
    zoned = known if known.tzinfo else known.replace(tzinfo=datetime.timezone.utc)
    whole = zoned.astimezone(datetime.timezone.utc)
    if not 1970 <= whole.year < 2200:
        raise ValueError(f"the year {whole.year}")
    return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def human(value: float, unit: str, step: float = 0.0) -> tuple[str, str]:
    """``value``, known in ``step``, by :func:`digits`, and the unit to print beside it.

    That is GB/s from 1000 MB/s on, Mmsg/s from 1e6 msg/s. Bytes are counted:

    >>> human(0.0, "bytes"), human(2.5, "us")
    (('0', 'bytes'), ('2.500', 'us'))
    """
    if unit == BYTES and float(value).is_integer():
        return f"{value:.0f}", unit
    factor, unit = scale(value, unit)
    return digits(value / factor, step / factor), unit


def scale(value: float, unit: str) -> tuple[float, str]:
    """The divisor for values as large as ``value``, and the unit of the quotient."""
    if unit == MB_S and abs(value) >= 1000:
        return 1000.0, "GB/s"
    if unit == MSG_S and abs(value) >= 1e6:
        return 1e6, "Mmsg/s"
    return 1.0, unit


def digits(value: float, step: float = 0.0) -> str:
    """``value`` with 3 decimals below 10, 2 below 100, 1 below 1000, none above; 3 significant digits below 0.1.

    >>> digits(0.00842122), digits(0.126), digits(2.5e-7), digits(1646.2)
    ('0.00842', '0.126', '2.5e-07', '1646')

    Of a value that is known in ``step`` (0: nobody can say) no finer digit is shown, and the first one always:

    >>> digits(1.5, 0.1), digits(0.05, 0.01), digits(12.3456, 0.01), digits(0.3, 2.0), digits(2, 1)
    ('1.5', '0.05', '12.35', '0.3', '2')
    """
    magnitude = abs(value)
    first = math.floor(math.log10(magnitude)) if 0 < magnitude < math.inf else 0
    known = max(math.ceil(-math.log10(step) - 1e-9), -first) if step > 0 else sys.maxsize
    if 0 < magnitude < 1e-4:
        return f"{value:.{min(3, known + first + 1)}g}"
    places = 0 if magnitude >= 1000 else 1 if magnitude >= 100 else 2 if magnitude >= 10 else 3
    shown = f"{value:#.3g}" if 0 < magnitude < 0.1 else f"{value:.{places}f}"
    if len(shown.partition(".")[2]) <= known:
        return shown
    return f"{value:.{known}f}" if known >= 0 else f"{round(value, known):.0f}"


def counted(number: int, noun: str) -> str:
    """``number`` with its noun, in the plural unless it is 1: ``1 launch``, ``2 launches``."""
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def percent(value: float) -> str:
    """A fraction in percent, with one decimal below 9.95 %, else none: ``5.1 %``, ``12 %``."""
    number = 100 * float(value)
    return f"{number:.0f} %" if abs(number) >= 9.95 else f"{number:.1f} %"


def signed(fraction: float) -> str:
    """A change in percent with its sign and one decimal: ``+5.1 %``, ``−12.0 %``.

    >>> signed(-0.12), signed(-0.0004)
    ('−12.0 %', '+0.0 %')
    """
    return f"{round(fraction, 3) + 0.0:+.1%}".replace("-", "−").replace("%", " %")  # + 0.0: no -0


def dashed(value: object) -> str:
    """``value`` as text; a dash for None: nobody knows it."""
    return "–" if value is None else str(value)


def ratio(value: float | None) -> str:
    """A ratio, by :func:`digits`: to 3 decimals below 10; a dash where there is none.

    >>> ratio(1.02349), ratio(12.3456), ratio(None), ratio(math.inf)
    ('1.023', '12.35', '–', '–')
    """
    return dashed(digits(value) if value is not None and math.isfinite(value) else None)


def interval(ends: Sequence[float | None] | None) -> str | None:
    """Both ends of an interval of ratios, a dash where it has no bound (0 is none); None where there is no interval.

    >>> interval((0.9871, 1.0123)), interval((0.0, math.inf)), interval(None)
    ('0.987 to 1.012', '– to –', None)
    """
    return None if ends is None else " to ".join(ratio(end or None) for end in ends)


def second(text: str) -> str:
    """A record's time to the second: ``2026-01-05 06:00:00 UTC``."""
    return f"{text[:10]} {text[11:19]} UTC"


def minute(text: str) -> str:
    """A record's time to the minute, which is enough to tell campaigns apart."""
    return text[:16].replace("T", " ")


def some(names: Sequence[str], most: int = 6) -> str:
    """The first ``names``, and how many more than ``most`` there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def significant(value: float, digits: int) -> float:
    """``value`` rounded to this many significant digits."""
    return float(f"{value:.{digits}g}")


def human_bytes(count: int) -> str:
    """A number of bytes for people: ``8 B``, ``1.5 MiB``."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step:
            return f"{count / step:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count} B"


def human_seconds(seconds: float) -> str:
    """A time in seconds for people: ``45 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def time_left(done: Iterable[tuple[str, float]], waiting: Mapping[str, float], usual: Mapping[str, float]) -> float:
    """Seconds that so many ``waiting`` steps of each kind take, after the steps that are ``done``.

    A step takes the median of those of its kind that are done and of its ``usual`` time, at the pace of what is done;
    without both the mean of what is done. Here all takes twice as long as usual:

    >>> time_left([("a", 2.0), ("a", 2.0), ("b", 8.0)], {"a": 1, "c": 2}, {"a": 1.0, "b": 4.0, "c": 10.0})
    42.0
    >>> time_left([("a", 2.0)], {"b": 3}, {}), time_left([], {"b": 3}, {"b": 1.0}), time_left([], {"b": 3}, {})
    (6.0, 3.0, 0.0)
    """
    steps = list(done)
    known = [(seconds, usual[kind]) for kind, seconds in steps if kind in usual]
    pace = sum(seconds for seconds, _ in known) / sum(expected for _, expected in known) if known else 1.0
    mean = statistics.fmean(seconds for _, seconds in steps) if steps else 0.0
    seen = group([*steps, *((kind, seconds * pace) for kind, seconds in usual.items())])
    return sum(number * statistics.median(seen.get(kind, [mean])) for kind, number in waiting.items())


def cpu_list(cpus: Iterable[int]) -> str:
    """CPU numbers as the kernel writes them, ``0-3,8``; ``none`` when there are none."""
    places = itertools.groupby(enumerate(sorted(set(cpus))), lambda pair: pair[1] - pair[0])
    runs = ([cpu for _, cpu in run] for _, run in places)
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "none"


def cpu_ranges(text: str) -> list[range]:
    """The ranges of a list that the kernel wrote; raises ValueError for anything else.

    >>> cpu_ranges("0-3,8")
    [range(0, 4), range(8, 9)]
    """
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part, re.ASCII) for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{text!r} is not a list of CPUs")
    return [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part]


def numbered(noun: str, numbers: Iterable[int]) -> str:
    """``CPU 3`` or ``CPUs 0-3``: the noun in its number, and the list."""
    distinct = set(numbers)
    return f"{noun}{'' if len(distinct) == 1 else 's'} {cpu_list(distinct)}"
