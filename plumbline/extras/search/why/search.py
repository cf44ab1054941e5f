"""The search from the difference of two ends to the factors that make it; numbers only.

First each factor alone is put into A and taken out of B, or all are varied at once by a two-level design, whichever
takes fewer launches, and then those that act are put in and taken out alone. Where putting in and taking out disagree,
the factor acts together with others: delta debugging finds the smallest group, which then counts as one factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plumbline.extras.search.why import designs
from plumbline.extras.search.why.designs import Contrast, Effect
from plumbline.extras.search.why.rounds import Rounds, Stopped
from plumbline.judge.decide import Verdict

#: states of a verdict that say that a factor acts: it makes B worse, or better
ACTS = ("FAIL", "GAIN")
#: groups of factors that act together are searched in so many factors at most
MOST_TOGETHER = 6


@dataclass(frozen=True)
class Named:
    """The verdicts of one factor, or of ``members`` that act together.

    ``share``: the mean of what it makes, ``put_in`` to A and ``taken_out`` of B; None where that could not be measured.
    """

    members: tuple[int, ...]
    share: Verdict | None
    put_in: Verdict | None = None
    taken_out: Verdict | None = None

    @property
    def acts(self) -> bool:
        """Whether it certainly makes a difference."""
        return _acts(self.share)


@dataclass(frozen=True)
class Attribution:
    """The result of a search: the ``whole`` difference, and each factor or group.

    ``alone`` are factors whose effects in A and in B differ, and that no group was found for. ``design`` says how the
    factors were varied. ``broken`` are configurations that failed. ``stopped``: time was up before all was decided.
    """

    whole: Verdict | None
    named: list[Named]
    design: str
    alone: tuple[int, ...] = ()
    broken: frozenset[int] = frozenset()
    stopped: bool = False


class Search:
    """A search among ``factors`` factors by ``rounds``; ``noise`` is that of one launch (a log ratio)."""

    def __init__(self, factors: int, rounds: Rounds, noise: float, say: Callable[[str], None]) -> None:
        self.factors, self.rounds, self.noise, self.say = factors, rounds, noise, say
        self._design = "each factor alone"
        self._groups: list[tuple[int, ...]] = []
        self._without_group: tuple[int, ...] = ()
        self._crossed: dict[str, Verdict] = {}

    def run(self) -> Attribution:
        """All stages; what was found before time was up counts."""
        is_stopped = False
        try:
            self._stages()
        except Stopped:
            is_stopped = True
        return self._attribution(is_stopped)

    def _stages(self) -> None:
        singles = self._effects((factor,) for factor in range(self.factors))
        acting = self._cross() if self._is_crossed() else None
        if acting is not None:
            singles = self._effects((factor,) for factor in acting)
        configurations = set().union(*(effect.share.configurations for effect in singles))
        self.say(f"effects: {self._design}, {len(configurations)} configurations")
        self._measure(singles)
        suspects = self._disagreeing(singles)
        self._groups = self._together(suspects)
        grouped = set().union(*self._groups)
        self._without_group = tuple(factor for factor in suspects if factor not in grouped)
        self._measure(self._effects(self._groups))

    def _effects(self, groups: Iterable[tuple[int, ...]]) -> list[Effect]:
        return [designs.effect_of(members, self.factors) for members in groups]

    def _is_crossed(self) -> bool:
        if not 4 <= self.factors <= designs.MOST_CROSSED:
            return False
        terms = (self.factors, self.noise, self.rounds.rule)
        return designs.launches_crossed(*terms) < designs.launches_alone(*terms)

    def _cross(self) -> list[int] | None:
        """The factors that a two-level design does not clear; None where one of its configurations fails."""
        configurations, contrasts = designs.crossed(self.factors)
        self.say(f"effects: a two-level design of {len(configurations)} configurations")
        named = {f"crossed {factor}": contrast for factor, contrast in enumerate(contrasts)}
        self.rounds.run(named)
        if self.rounds.broken & set(configurations):
            self.say("a configuration of the two-level design fails: each factor alone")
            return None
        self._design = "a two-level design, then those that act alone"
        self._crossed = self.rounds.judge(named)
        return [place for place, name in enumerate(named) if self._crossed[name].state != "PASS"]

    def _measure(self, effects: Sequence[Effect]) -> None:
        """Until each share is decided; a factor that fails in A or in B is measured in the other alone."""
        self.rounds.run({_name("share", effect): effect.share for effect in effects})
        rest = dict(self._usable(effect) for effect in effects if not self.rounds.usable(effect.share))
        self.rounds.run({name: contrast for name, contrast in rest.items() if contrast})

    def _usable(self, effect: Effect) -> tuple[str, Contrast | None]:
        """The share of an effect, or else the part of it that does not fail."""
        for kind in ("share", "put_in", "taken_out"):
            for name, contrast in self._contrasts(kind, [effect]).items():
                return name, contrast
        return "", None

    def _contrasts(self, kind: str, effects: Iterable[Effect]) -> dict[str, Contrast]:
        """The contrasts of ``effects`` of one kind, an attribute of theirs, none of whose configurations failed."""
        every: dict[str, Contrast] = {_name(kind, effect): getattr(effect, kind) for effect in effects}
        return {name: contrast for name, contrast in every.items() if self.rounds.usable(contrast)}

    def _disagreeing(self, effects: Sequence[Effect]) -> tuple[int, ...]:
        """Factors that certainly make another difference in A than in B; of those that act that is decided first."""
        both = self._contrasts("disagreement", effects)
        shares = self.rounds.judge(self._contrasts("share", effects))
        names = [_name("disagreement", effect) for effect in effects if _acts(shares.get(_name("share", effect)))]
        self.rounds.run({name: both[name] for name in names if name in both})
        verdicts = self.rounds.judge(both)
        return tuple(effect.members[0] for effect in effects if _acts(verdicts.get(_name("disagreement", effect))))

    def _together(self, suspects: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Groups of ``suspects`` that act together."""
        left, groups = suspects[:MOST_TOGETHER], list[tuple[int, ...]]()
        group: tuple[int, ...]
        while len(left) > 1:
            if self._acts_together(left):
                group = smallest(left, self._acts_together)
            else:  # what two pairs make together may cancel
                group = next((pair for pair in itertools.combinations(left, 2) if self._acts_together(pair)), ())
            if not group:
                break
            groups.append(group)
            left = tuple(factor for factor in left if factor not in group)
        return groups

    def _acts_together(self, group: tuple[int, ...]) -> bool | None:
        """Whether ``group`` makes more, or less, in A than its members do there alone; None: not decided."""
        name, contrast = f"together {group}", designs.excess(group)
        if not self.rounds.usable(contrast):
            return None
        self.say(f"do they act together: factors {', '.join(str(factor + 1) for factor in group)}")
        self.rounds.run({name: contrast})
        if not self.rounds.usable(contrast):
            return None
        verdict = self.rounds.judge({name: contrast})[name]
        return {"FAIL": True, "GAIN": True, "PASS": False}.get(verdict.state)

    def _attribution(self, stopped: bool) -> Attribution:
        grouped = {factor for group in self._groups for factor in group}
        members = [*self._groups, *((factor,) for factor in range(self.factors) if factor not in grouped)]
        effects = self._effects(members)
        chosen = {effect.members: self._usable(effect) for effect in effects}
        shares = self.rounds.judge({name: contrast for name, contrast in chosen.values() if contrast})
        ends = self.rounds.judge(self._contrasts("put_in", effects) | self._contrasts("taken_out", effects))
        named = [
            Named(
                effect.members,
                shares.get(chosen[effect.members][0]) or self._crossed.get(f"crossed {effect.members[0]}"),
                ends.get(_name("put_in", effect)),
                ends.get(_name("taken_out", effect)),
            )
            for effect in effects
        ]
        return Attribution(
            self.rounds.judge({"whole": designs.whole(self.factors)}).get("whole"),
            named,
            self._design,
            self._without_group,
            frozenset(self.rounds.broken),
            stopped,
        )


def _name(kind: str, effect: Effect) -> str:
    return f"{kind} {' '.join(map(str, effect.members))}"


def _acts(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.state in ACTS


def smallest(group: Sequence[int], test: Callable[[tuple[int, ...]], bool | None]) -> tuple[int, ...]:
    """The smallest part of ``group`` that ``test`` is True of, such that no member can be left out of it.

    ``group`` as a whole does it. What cannot be decided counts as not doing it, so that the answer may be larger than
    it had to be, and is never a group that was not seen to do it. No group is tested twice. (Delta debugging: Zeller,
    Hildebrandt, Simplifying and isolating failure-inducing input, IEEE Trans. Softw. Eng. 28 (2002) 183.)
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
