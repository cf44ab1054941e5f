"""The search from the difference of two ends to the factors that make it; numbers only.

First each factor alone is put into A and taken out of B, or all are varied at once by a two-level design, whichever
takes fewer launches, and then those that act are put in and taken out alone. Where putting in and taking out disagree,
the factor acts together with others: delta debugging finds the smallest group, which then counts as one factor.

In a round every wanted configuration is launched once, in random order, until each contrast is decided. A
:class:`Launcher` starts them; simulations put another one in its place. All that is random comes from the seed and from
the number of the round, so a search that is repeated on what was kept takes the same way.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from msgspec import UNSET, UnsetType

from plumbline.base.units import Better
from plumbline.extras.search.why import designs
from plumbline.extras.search.why.designs import Contrast, Effect, Weights
from plumbline.gate.live import FigureState, figure_state
from plumbline.judge import decide
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.parsers.measurement import Number, step_of
from plumbline.statistics.paired import CAP, LOOKS, PairedRule

#: states of a verdict that say that a factor acts: it makes B worse, or better
ACTS = ("FAIL", "GAIN")
#: groups of factors that act together are searched in so many factors at most
MOST_TOGETHER = 6


class Seen(NamedTuple):
    """The figure of a launch, whether something disturbed it, and its step as a measurement declares it."""

    value: float
    disturbed: bool = False
    step: Number | UnsetType = UNSET


class Launcher(Protocol):
    """Starts launches."""

    def launch(self, configuration: int, number: int) -> Seen | None:
        """One launch of a configuration in round ``number``; None if it has no figure: it failed."""

    def stop(self) -> str | None:
        """Why no further round may begin, or None."""


class Stopped(Exception):
    """Time is up."""


#: called after each round with its number, how the contrasts stand and how many launches it took
AfterRound = Callable[[int, dict[str, FigureState], int], None]


@dataclass
class Rounds:
    """The launches so far: by configuration and number of the round.

    ``better`` is chosen such that B is worse than A; ``rule`` asks for gains too. ``broken`` are the configurations
    that failed: none is tried again.
    """

    launcher: Launcher
    better: Better
    rule: PairedRule
    seed: int
    after: AfterRound = lambda number, states, launches: None
    seen: dict[int, dict[int, Seen]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    number: int = 0

    def usable(self, contrast: Contrast) -> bool:
        """Whether none of its configurations failed."""
        return not contrast.configurations & self.broken

    def pairs(self, name: str, contrast: Contrast) -> Pairs:
        """The rounds in which all of its configurations were launched, as pairs."""
        held = [self.seen.get(configuration, {}) for configuration in sorted(contrast.configurations)]
        common = sorted(set(held[0]).intersection(*held[1:])) if held else []
        step = step_of([seen[number] for seen in held for number in common])
        sides = (contrast.low, contrast.high)
        low, high = (Column([self._mean(side, number) for number in common], step) for side in sides)
        flags = [
            tuple(any(self.seen[place][number].disturbed for place, _ in side) for side in sides) for number in common
        ]
        disturbed = Disturbed(
            len(flags),
            (sum(is_low for is_low, _ in flags), sum(is_high for _, is_high in flags)),
            (flags.count((True, False)), flags.count((False, True))),
            len(flags),
            sum(map(any, flags)),
        )
        return Pairs(name, low, high, self.better, rule=contrast.rule(self.rule), disturbed=disturbed)

    def _mean(self, side: Weights, number: int) -> float:
        return math.exp(
            sum(weight * math.log(self.seen[configuration][number].value) for configuration, weight in side)
        )

    def state(self, name: str, contrast: Contrast, total: int) -> FigureState:
        """How a contrast stands among ``total``."""
        pairs = self.pairs(name, contrast)
        if not pairs.baseline.values:
            return FigureState(name, "open", 0)
        loss, gain = (figure_state(direction, self.rule, total) for direction in (pairs, _turned(pairs)))
        return loss if loss.state != "PASS" or gain.state != "open" else replace(loss, state="open")

    def run(self, contrasts: dict[str, Contrast]) -> None:
        """Launch until each of ``contrasts`` is decided, or has a configuration that fails.

        A configuration that no undecided contrast needs is left out of later rounds. Raises :class:`Stopped`.
        """
        states = {
            name: self.state(name, contrast, len(contrasts))
            for name, contrast in contrasts.items()
            if self.usable(contrast)
        }
        while wanted := {
            name: contrasts[name] for name, state in states.items() if not state.decided and state.count < CAP
        }:
            if self.launcher.stop():
                raise Stopped
            started = self._round(sorted(set().union(*(contrast.configurations for contrast in wanted.values()))))
            for name, contrast in wanted.items():
                if not self.usable(contrast):
                    del states[name]
                else:
                    states[name] = self.state(name, contrast, len(contrasts))
            self.after(self.number - 1, states, started)

    def _round(self, configurations: Sequence[int]) -> int:
        order = [configuration for configuration in configurations if configuration not in self.broken]
        random.Random(f"{self.seed}/{self.number}").shuffle(order)  # noqa: S311 - an experimental design, not a secret
        for configuration in order:
            seen = self.launcher.launch(configuration, self.number)
            if seen is None or not math.isfinite(seen.value) or seen.value <= 0:
                self.broken.add(configuration)
            else:
                self.seen.setdefault(configuration, {})[self.number] = seen
        self.number += 1
        return len(order)

    def judge(self, contrasts: dict[str, Contrast]) -> dict[str, Verdict]:
        """The verdicts of ``contrasts``, those that could not be measured apart, decided as one search (Holm)."""
        measured = {name: self.pairs(name, contrast) for name, contrast in contrasts.items() if self.usable(contrast)}
        ready = [pairs for pairs in measured.values() if len(pairs.baseline.values) >= LOOKS[0]]
        both = [decide.decide(direction, self.rule) if ready else [] for direction in (ready, [*map(_turned, ready)])]
        verdicts = [_both_ways(*couple) for couple in zip(*both, strict=True)]
        return {verdict.subject: _as_effect(verdict, contrasts[verdict.subject].scale) for verdict in verdicts}


def _turned(pairs: Pairs) -> Pairs:
    """The same pairs with the other direction: an effect is ruled out only if it is neither a loss nor a gain."""
    return replace(pairs, better="higher" if pairs.better == "lower" else "lower")


def _both_ways(loss: Verdict, gain: Verdict) -> Verdict:
    """A PASS only where nothing that matters is possible either way."""
    if loss.state != "PASS":
        return loss
    if gain.state != "PASS":
        return replace(loss, state="INCONCLUSIVE", reason=f"it may make it faster: {gain.explanation or 'undecided'}")
    return replace(loss, detectable=max(loss.detectable or 0.0, gain.detectable or 0.0))


def _as_effect(verdict: Verdict, scale: float) -> Verdict:
    """The verdict with the ratios of the effect, where the contrast measures a part of it."""
    if scale == 1 or verdict.ratio is None or verdict.interval is None:
        return verdict
    return replace(verdict, ratio=verdict.ratio**scale, interval=tuple(end**scale for end in verdict.interval))


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
    factors were varied. ``stopped``: time was up before all was decided.
    """

    whole: Verdict | None
    named: list[Named]
    design: str
    alone: tuple[int, ...] = ()
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
        terms = (self.factors, self.noise, self.rounds.rule)
        is_crossed = 4 <= self.factors <= designs.MOST_CROSSED
        is_crossed = is_crossed and designs.launches_crossed(*terms) < designs.launches_alone(*terms)
        acting = self._cross() if is_crossed else None
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
        kinds = ("share", "put_in", "taken_out")
        usable = itertools.chain.from_iterable(self._contrasts(kind, [effect]).items() for kind in kinds)
        return next(usable, ("", None))

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
        return {"FAIL": True, "GAIN": True, "PASS": False}.get(self.rounds.judge({name: contrast})[name].state)

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

    @functools.cache
    def does(part: tuple[int, ...]) -> bool:
        return len(part) > 1 and test(part) is True  # one alone does nothing together

    current, pieces = tuple(sorted(group)), 2
    while len(current) > 2:
        cuts = [len(current) * place // pieces for place in range(pieces + 1)]
        parts = [current[start:end] for start, end in itertools.pairwise(cuts)]
        rests = [tuple(member for member in current if member not in part) for part in parts]
        if (smaller := next((part for part in parts if does(part)), None)) is not None:
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
