"""A number as programs print it, and whether a pattern takes all of it."""

from __future__ import annotations

import re

#: as C, Fortran (``1.5D+03``) and Python print it, or with commas that cannot be decimal ones (``1,234.5``)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+|,[0-9]{3})"
)
#: the text before a group that begins inside a number, and behind one that ends there
_BEGUN = re.compile(r"(?:[0-9]|[0-9][.:'_]|(?<![0-9.])[0-9]+,|(?<![\w.])\.|[0-9.][eEdD][-+]?|(?<![\w.)\]-])-)\Z")
_CONTINUED = re.compile(r"[0-9]|[.,:'_][0-9]|[eEdD][-+]?[0-9]")
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


def plain(token: str) -> str | None:
    """A printed number as Python reads it; None if the text is no finite number.

    >>> plain(" 1.5D+03"), plain("1,234.5"), plain("1,234"), plain("nan")
    ('1.5e+03', '1234.5', None, None)
    """
    word = token.strip()
    return re.sub("[dD]", "e", word.replace(",", "")) if _NUMBER.fullmatch(word) else None


def cut(match: re.Match[str], group: int | str, *, is_time: bool) -> tuple[str, str] | None:
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
    blanks = r"(?:(?:\\s| )[*+?]?)*"
    return not any(map(str.isdigit, edge)) and bool(re.search(blanks.join(literal), pattern))
