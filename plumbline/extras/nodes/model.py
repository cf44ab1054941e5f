"""Measurements of plumb-check on a node for a class: a line of JSON for each check (custom-kernels/check/outcome.c)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from plumbline.base import files as fs
from plumbline.base import schemas
from plumbline.base.errors import PlumbError
from plumbline.statistics import Floats

#: more CPUs in use by others than this: the round is not of the node alone (MOST_OTHERS of plumb-check)
MOST_OTHERS = 0.25

#: a value of a round; 0: none was measured
Value: TypeAlias = Annotated[float, Meta(ge=0, le=1e300)]
#: Unix, until the year 2100
Time: TypeAlias = Annotated[float, Meta(ge=0, le=4102444800)]


def short(name: str) -> str:
    """A node as plumb-check calls it: its name up to the first dot."""
    return name.split(".", 1)[0]


class Figure(Struct, frozen=True, kw_only=True):
    """The values of one figure in the rounds of a check; null where a round has none."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9.]+$(?!\n)")]
    unit: Annotated[str, Meta(pattern=r"^\S+$(?!\n)")]
    better: Literal["higher", "lower"]
    rounds: list[Value | None]

    def log(self, value: float) -> float:
        """The logarithm of a value, larger where worse."""
        return math.log(value) * (1 if self.better == "lower" else -1)

    def value(self, log: float) -> float:
        """The value of such a logarithm."""
        return math.exp(log if self.better == "lower" else -log)


class Check(Struct, frozen=True, kw_only=True):
    """One check of one node. ``others``: CPUs that other processes used in each round; ``time``: Unix."""

    schema: Literal[1]
    node: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
    time: Time
    seconds: Value
    figures: list[Figure]
    others: list[Value]
    facts: dict[str, str]
    bad: list[str]
    doubts: list[str]

    def __post_init__(self) -> None:
        """Refuse a figure that has not one value for each round."""
        for figure in self.figures:
            if len(figure.rounds) != len(self.others):
                raise ValueError(f"{figure.name} has {len(figure.rounds)} values of {len(self.others)} rounds")

    def logs(self, figure: str) -> Floats:
        """The logarithms of a figure in the rounds that no other work disturbed."""
        for measured in self.figures:
            if measured.name == figure:
                both = zip(measured.rounds, self.others, strict=True)
                return np.array([measured.log(value) for value, load in both if value and load <= MOST_OTHERS])
        return np.array([], dtype=np.float64)

    @property
    def undisturbed(self) -> int:
        """Rounds beside which no other work ran."""
        return sum(load <= MOST_OTHERS for load in self.others)


class Result(Check, frozen=True, kw_only=True, rename={"of": "class"}):
    """The result of plumb-check on a node in production, by the class ``of``, in ``budget`` seconds at most."""

    state: Literal["ok", "busy", "doubt", "bad"]
    line: str
    of: str
    budget: Value


def history(file: Path) -> list[Result]:
    """The results in a history, as :func:`read` reads checks; none without the file.

    A last line without an end was cut off by a kill: :func:`append` writes it again.
    """
    return read([file], Result, cut=True) if file.exists() else []


def append(file: Path, results: Iterable[Result]) -> None:
    """Add ``results`` to the end of a history: whole lines, whatever was cut off before, on the disk at the end."""
    added = b"".join(msgspec.json.encode(result) + b"\n" for result in results)
    with fs.writing("the history", file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
            stream.write(added)
            stream.flush()
            os.fsync(stream.fileno())


def read(files: Iterable[Path], kind: type[Any] = Check, cut: bool = False) -> list[Any]:
    """The checks in ``files``, oldest first, each once; raises :class:`PlumbError` for a line that is none.

    ``cut``: what follows the last line end of a file is left out.
    """
    checks: dict[tuple[str, float], Any] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlumbError(f"cannot read the checks: {error}", str(file), "name a file of checks") from None
        for number, line in enumerate((text[: text.rfind("\n") + 1] if cut else text).splitlines(), 1):
            try:
                check = msgspec.json.decode(line, type=kind)
            except (msgspec.DecodeError, ValueError) as error:
                message = schemas.fault("check", error) if isinstance(error, msgspec.ValidationError) else str(error)
                raise PlumbError(message, f"{file}, line {number}", "remove the line") from None
            checks[check.node, check.time] = check
    return sorted(checks.values(), key=lambda check: (check.time, check.node))
