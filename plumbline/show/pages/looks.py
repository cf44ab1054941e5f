"""Colours, marks and dashes of lines and points, by their number or name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: colours of the page's style for stacks: Okabe and Ito's palette
COLOURS = 8
#: marks and dashes of placements, in the chart library's words; the style has a picture of each mark
MARKS = ("circle", "triangle", "rect", "diamond", "pin", "arrow", "emptyCircle", "emptyRect")
DASHES = ("solid", [6, 4], [2, 3], [10, 3, 2, 3], [1, 4], [12, 4], [4, 2], [8, 2, 2, 2, 2, 2])


def colour(number: int) -> str:
    """The name of a colour of the style."""
    return f"stack-{number % COLOURS}"


def palette(names: Iterable[str]) -> dict[str, str]:
    """The colour of each stack, in the order of their names."""
    return {name: colour(number) for number, name in enumerate(sorted(set(names)))}


def line(number: int, **parts: Any) -> dict[str, Any]:
    """The look of a line with mark and dash of that number."""
    dash = {"type": DASHES[number % len(DASHES)], "width": 1.6}
    shown = {"symbol": MARKS[number % len(MARKS)], "lineStyle": dash, "emphasis": {"focus": "series"}}
    return {"type": "line", **shown, **parts}
