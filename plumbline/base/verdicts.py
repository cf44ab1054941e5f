"""GAIN, PASS, FAIL, INCONCLUSIVE and INVALID: their order, their exit statuses and how they are counted for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

VerdictState = Literal["GAIN", "PASS", "FAIL", "INCONCLUSIVE", "INVALID"]

#: exit status of each verdict, the verdicts from best to worst. INVALID is worse than FAIL: where one series shows
#: that the measurement is broken, the others of the same session prove nothing. GAIN is given where it was asked for
EXIT: dict[str, int] = {"GAIN": 0, "PASS": 0, "INCONCLUSIVE": 2, "FAIL": 1, "INVALID": 3}
#: exit statuses for ``git bisect run``: good, bad, and that a commit cannot be tested
FOR_GIT: dict[str, int] = {"GAIN": 0, "PASS": 0, "INCONCLUSIVE": 125, "FAIL": 1, "INVALID": 125}
#: the exit status that ends ``git bisect run``, which calls a commit bad for anything below it
GIT_ENDS = 128


def severity(state: str) -> int:
    """The rank of a verdict from best to worst: 0 for GAIN, then PASS, INCONCLUSIVE, FAIL, INVALID."""
    return list(EXIT).index(state)


def worst(states: Sequence[str]) -> str:
    """The verdict on all of ``states``; INVALID for none at all: nothing measured is not a PASS."""
    return max(states, key=severity, default="INVALID")


def counts(states: Sequence[str]) -> str:
    """How many there are of each verdict, from best to worst: ``3 PASS, 1 FAIL``."""
    counter = Counter(states)
    return ", ".join(f"{counter[state]} {state}" for state in EXIT if counter[state])
