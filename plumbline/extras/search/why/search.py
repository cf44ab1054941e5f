"""The search from the difference of two ends to the factors that make it; numbers only.

First each factor alone is put into A and taken out of B, or all are varied at once by a two-level design, whichever
takes fewer launches, and then those that act are put in and taken out alone. Where putting in and taking out disagree,
the factor acts together with others: delta debugging finds the smallest group, which then counts as one factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plumbline.extras.search.why import delta, designs
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
        return self.share is not None and self.share.state in ACTS

    @property
    def measured(self) -> bool:
        """Whether there is any figure of it."""
        return self.share is not None


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
        try:
            self._stages()
        except Stopped:
            return self._attribution(stopped=True)
        return self._attribution()

    def _stages(self) -> None:
        singles = self._effects((factor,) for factor in range(self.factors))
        if self._is_crossed():
            acting = self._cross()
            if acting is not None:
                singles = self._effects((factor,) for factor in acting)
        self.say(f"effects: {self._design}, {len(self._configurations(singles))} configurations")
        self._measure(singles)
        suspects = self._disagreeing(singles)
        if len(suspects) > 1:
            self._groups = self._together(suspects)
            self._without_group = tuple(
                factor for factor in suspects if not any(factor in group for group in self._groups)
            )
            self._measure(self._effects(self._groups))
        else:
            self._without_group = suspects

    def _effects(self, groups: Iterable[tuple[int, ...]]) -> list[Effect]:
        return [Effect(members, self.factors) for members in groups]

    @staticmethod
    def _configurations(effects: Sequence[Effect]) -> set[int]:
        return set().union(*(effect.share.configurations for effect in effects))

    def _is_crossed(self) -> bool:
        if not 4 <= self.factors <= designs.MOST_CROSSED:
            return False
        rule = self.rounds.rule
        return designs.launches_crossed(self.factors, self.noise, rule) < designs.launches_alone(
            self.factors, self.noise, rule
        )

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
        contrasts = {_name("share", effect): effect.share for effect in effects}
        self.rounds.run(contrasts)
        rest: dict[str, Contrast] = {}
        for effect in effects:
            if not self.rounds.usable(effect.share):
                name, contrast = self._usable(effect)
                rest |= {name: contrast} if contrast else {}
        if rest:
            self.rounds.run(rest)

    def _usable(self, effect: Effect) -> tuple[str, Contrast | None]:
        """The share of an effect, or else the part of it that does not fail."""
        ways = (("share", effect.share), ("in", effect.put_in), ("out", effect.taken_out))
        way = next(((kind, contrast) for kind, contrast in ways if self.rounds.usable(contrast)), None)
        return (_name(way[0], effect), way[1]) if way else ("", None)

    def _disagreeing(self, effects: Sequence[Effect]) -> tuple[int, ...]:
        """Factors that certainly make another difference in A than in B; of those that act that is decided first."""
        both = {
            _name("differ", effect): effect.disagreement
            for effect in effects
            if self.rounds.usable(effect.disagreement)
        }
        shares = self.rounds.judge(
            {_name("share", effect): effect.share for effect in effects if self.rounds.usable(effect.share)}
        )
        acting = [
            effect for effect in effects if (verdict := shares.get(_name("share", effect))) and verdict.state in ACTS
        ]
        self.rounds.run({name: both[name] for effect in acting if (name := _name("differ", effect)) in both})
        verdicts = self.rounds.judge(both)
        return tuple(
            effect.members[0]
            for effect in effects
            if (verdict := verdicts.get(_name("differ", effect))) and verdict.state in ACTS
        )

    def _together(self, suspects: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Groups of ``suspects`` that act together."""
        left, groups = suspects[:MOST_TOGETHER], list[tuple[int, ...]]()
        group: tuple[int, ...]
        while len(left) > 1:
            if self._acts_together(left):
                group = delta.smallest(left, self._acts_together)
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

    def _attribution(self, stopped: bool = False) -> Attribution:
        grouped = {factor for group in self._groups for factor in group}
        members = [*self._groups, *((factor,) for factor in range(self.factors) if factor not in grouped)]
        effects = self._effects(members)
        chosen = {effect.members: self._usable(effect) for effect in effects}
        shares = self.rounds.judge({name: contrast for name, contrast in chosen.values() if contrast})
        parts = {}
        for effect in effects:
            for kind, contrast in (("in", effect.put_in), ("out", effect.taken_out)):
                if self.rounds.usable(contrast):
                    parts[_name(kind, effect)] = contrast
        ends = self.rounds.judge(parts)
        named = [
            Named(
                effect.members,
                shares.get(chosen[effect.members][0]) or self._crossed.get(f"crossed {effect.members[0]}"),
                ends.get(_name("in", effect)),
                ends.get(_name("out", effect)),
            )
            for effect in effects
        ]
        whole = designs.whole(self.factors)
        return Attribution(
            self.rounds.judge({"whole": whole}).get("whole") if self.rounds.usable(whole) else None,
            named,
            self._design,
            self._without_group,
            frozenset(self.rounds.broken),
            stopped,
        )


def _name(kind: str, effect: Effect) -> str:
    return f"{kind} {' '.join(map(str, effect.members))}"
