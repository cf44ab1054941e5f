"""Raising ceilings: what a later launch reached counts where it is better than what was measured before."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import asdict, replace

from plumbline.base import units
from plumbline.host.limits.ceilings import Bound, Ceiling, Measured, Quantity, Raise, Taken, of

#: a figure raises its ceiling if it is above it by more percent than this
LEAST_PERCENT = 1.0
#: how many times its first value a ceiling may become: a disturbed measurement does not explain more
MOST = 1.5


@dataclass(frozen=True)
class Reached:
    """A figure's ``value``, which is better if it is higher or lower, of a record that was made at ``time``."""

    value: float
    better: units.Better
    time: str
    record: str

    def is_above(self, bound: Bound) -> bool:
        """Whether it is clearly better than ``bound``."""
        ratio = self.value / bound.value if self.better == "higher" else bound.value / self.value
        return ratio > 1 + LEAST_PERCENT / 100


def raised(measured: Measured, figure: Quantity, used: Taken, reached: Reached) -> Measured:
    """``measured`` with the ceilings of ``figure`` raised to what was ``reached``.

    Of a ceiling made of several, each is raised by the same factor: if two cores reached more than twice what one core
    did, one of them did too. The result is ``measured`` itself if the figure is not above its ceiling, or too far.
    """
    changed = measured
    while (bound := of(figure, used, changed)) is not None and reached.is_above(bound):
        factor = reached.value / bound.value
        parts = {id(part): _became(part, factor * part.best, reached) for part in bound.parts}
        if not all(1 / MOST <= part.best / part.raised[0].before <= MOST for part in parts.values()):
            return measured
        known = {name: [parts.get(id(each), each) for each in ceilings] for name, ceilings in _lists(changed).items()}
        changed = replace(changed, **known)
    return changed


def best_of(measured: Measured, again: Measured) -> Measured:
    """The measurement ``again`` on the machine of ``measured``, with the better one of each ceiling."""
    before = _lists(measured)
    chosen: dict[str, list[Ceiling]] = {}
    for name, ceilings in _lists(again).items():
        known = {_where(ceiling): ceiling for ceiling in before[name]}
        better = min if name.endswith("_ns") else max
        chosen[name] = []
        for ceiling in ceilings:
            old = known.pop(_where(ceiling), ceiling)
            kept = old
            if old is not ceiling and better(old.best, ceiling.best) != old.best:
                step = Raise(before=old.best, after=ceiling.best, time=again.measured, record=ceiling.record)
                kept = replace(ceiling, raised=[*old.raised, step])
            total = {name: getattr(old, name) + getattr(ceiling, name) for name in ("launches", "disturbed_launches")}
            chosen[name].append(kept if old is ceiling else replace(kept, **total))
        chosen[name] += known.values()
    return replace(again, **chosen, seconds=round(measured.seconds + again.seconds, 1))


def _became(ceiling: Ceiling, best: float, reached: Reached) -> Ceiling:
    best = units.significant(best, 5)
    step = Raise(before=ceiling.best, after=best, time=reached.time, record=reached.record)
    return replace(ceiling, best=best, raised=[*ceiling.raised, step])


def _lists(measured: Measured) -> dict[str, list[Ceiling]]:
    return {name: value for name, value in asdict(measured).items() if isinstance(value, list) and name != "left_out"}


def _where(ceiling: Ceiling) -> tuple[object, ...]:
    """The members that tell it from the others of its list."""
    return ceiling.cores, ceiling.numa_node, ceiling.level, ceiling.pair
