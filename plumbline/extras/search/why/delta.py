"""The smallest group of factors that makes something together: delta debugging with a test that may not know.

Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, IEEE Trans. Softw. Eng. 28 (2002) 183.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

#: whether a group does it; None where that could not be decided
Test = Callable[[tuple[int, ...]], bool | None]


def smallest(group: Sequence[int], test: Test) -> tuple[int, ...]:
    """The smallest part of ``group`` that ``test`` is True of, such that no member can be left out of it.

    ``group`` as a whole does it. What cannot be decided counts as not doing it, so that the answer may be larger than
    it had to be, and is never a group that was not seen to do it. No group is tested twice.
    """
    known: dict[tuple[int, ...], bool] = {}

    def does(part: tuple[int, ...]) -> bool:
        if len(part) < 2:
            return False  # one alone does nothing together
        if part not in known:
            known[part] = test(part) is True
        return known[part]

    current, pieces = tuple(sorted(group)), 2
    while len(current) > 2:
        cuts = [len(current) * place // pieces for place in range(pieces + 1)]
        parts = [current[start:end] for start, end in itertools.pairwise(cuts)]
        rests = [tuple(member for member in current if member not in part) for part in parts]
        smaller = next((part for part in parts if does(part)), None)
        if smaller is not None:
            current, pieces = smaller, 2
            continue
        rest = next((rest for rest in rests if does(rest)), None) if pieces > 2 else None
        if rest is not None:
            current, pieces = rest, max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(2 * pieces, len(current))
        else:
            break
    return current
