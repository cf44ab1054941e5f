"""What plumb-check measured on a node for a class: a line of JSON for each check (custom-kernels/check/outcome.c)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from plumbline import schemas
from plumbline.base.errors import PlumbError
from plumbline.statistics import Floats

#: more CPUs in use by others than this: the round is not of the node alone (MOST_OTHERS of plumb-check)
MOST_OTHERS = 0.25


class Figure(Struct, frozen=True, kw_only=True):
    """The values of one figure in the rounds of a check; null where a round has none."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9.]+$(?!\n)")]
    unit: Annotated[str, Meta(pattern=r"^\S+$(?!\n)")]
    better: Literal["higher", "lower"]
    rounds: list[float | None]

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
    time: float
    seconds: float
    figures: list[Figure]
    others: list[float]
    facts: dict[str, str]
    bad: list[str]
    doubts: list[str]

    def logs(self, figure: str) -> Floats:
        """The logarithms of a figure in the rounds that no other work disturbed."""
        for own in self.figures:
            if own.name == figure:
                both = zip(own.rounds, self.others, strict=True)
                return np.array([own.log(value) for value, other in both if value and other <= MOST_OTHERS])
        return np.array([], dtype=np.float64)

    @property
    def undisturbed(self) -> int:
        """Rounds beside which no other work ran."""
        return sum(other <= MOST_OTHERS for other in self.others)


def read(files: Iterable[Path]) -> list[Check]:
    """The checks in ``files``, oldest first, each once; raises :class:`PlumbError` for a line that is none."""
    found: dict[tuple[str, float], Check] = {}
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise PlumbError(f"cannot read the checks: {error}", str(file), "correct its permissions") from None
        for number, line in enumerate(lines, 1):
            try:
                check = msgspec.json.decode(line, type=Check)
            except (msgspec.DecodeError, ValueError) as error:
                what = schemas.fault("check", error) if isinstance(error, msgspec.ValidationError) else str(error)
                raise PlumbError(what, f"{file}, line {number}", "remove the line") from None
            found[check.node, check.time] = check
    return sorted(found.values(), key=lambda check: (check.time, check.node))
