"""How much each row counts for a program: how often its profile has the call, times the time of one call."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from plumbline.base.errors import PlumbError
from plumbline.extras.tune.curves import BARRIER, MESSAGES, OPERATIONS, Curve, Row
from plumbline.launch.profiles import sums
from plumbline.launch.profiles.model import Profile

#: calls that send a message to one rank; its receive is part of the same row
SENDS = {"send", "ssend", "rsend", "bsend"}


def counts(profile: Profile, sizes: Sequence[int]) -> dict[Row, int]:
    """How often the program makes the call of a row, at the nearest of ``sizes`` (on a logarithmic scale).

    Non-blocking and persistent forms count like the blocking one; calls that no row measures, and those of no bytes,
    are left out. Raises :class:`PlumbError` if nothing is left.
    """
    counted: Counter[Row] = Counter()
    for (call, _), total in sums.by_size(profile).items():
        name = _operation(call)
        if name == BARRIER:
            counted[Row(BARRIER, 0)] += total.count
        elif name in OPERATIONS and total.bytes:
            mean = total.bytes / total.count
            size = min(sizes, key=lambda size: abs(math.log(size / mean)))
            counted[Row(name, size)] += total.count
    if not counted:
        known = ", ".join(sorted({call for call, _ in sums.by_size(profile)})) or "no call at all"
        raise PlumbError("the profile has no call that the tuner measures", profile.record, f"it has {known}")
    return dict(counted)


def _operation(call: str) -> str:
    """``Iallreduce``, ``Allreduce_init`` -> ``allreduce``; a call that sends one message is half of a ping-pong."""
    name = re.sub(r"_init$", "", call.lower())
    if name not in OPERATIONS and name[:1] == "i" and (name[1:] in OPERATIONS or name[1:] in {*SENDS, BARRIER}):
        name = name[1:]
    if name in SENDS:
        return MESSAGES[0]
    return MESSAGES[1] if name.startswith("sendrecv") else name


def of(counted: Mapping[Row, int], curve: Curve) -> dict[Row, float]:
    """The share of each row in the time of all that was ``counted``, with the times of ``curve``; the sum is 1."""
    times = {row: count * curve[row] for row, count in counted.items() if row in curve}
    whole = sum(times.values())
    return {row: time / whole for row, time in times.items()}


def used(counted: Mapping[Row, int]) -> set[str]:
    """The operations that the program makes, as knobs name them."""
    return {"p2p" if row.operation in MESSAGES else row.operation for row in counted}
