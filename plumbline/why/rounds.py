"""Rounds of launches: each starts every wanted configuration once, in random order, until each contrast is decided.

What starts them is a :class:`Bench`; simulations put another one in its place. All that is random comes from the seed
and from the number of the round, so a search that is repeated on what was kept takes the same way.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from plumbline.base.digits import step_of
from plumbline.base.units import Better
from plumbline.gate.live import FigureState, figure_state
from plumbline.judge import decide
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.statistics.paired import CAP, LOOKS, Rule
from plumbline.why.designs import Contrast, Weights


class Seen(NamedTuple):
    """The figure of a launch, and whether something disturbed it."""

    value: float
    disturbed: bool = False


class Bench(Protocol):
    """What starts launches."""

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

    ``better`` is chosen such that B is worse than A. ``broken`` are the configurations that failed: none is tried
    again.
    """

    bench: Bench
    better: Better
    rule: Rule
    seed: int
    after: AfterRound = lambda number, states, launches: None
    seen: dict[int, dict[int, Seen]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    number: int = 0
    launches: int = 0

    def __post_init__(self) -> None:
        """Effects in both directions are asked for."""
        self.rule = replace(self.rule, gain=True)

    def usable(self, contrast: Contrast) -> bool:
        """Whether none of its configurations failed."""
        return not contrast.configurations & self.broken

    def pairs(self, name: str, contrast: Contrast) -> Pairs:
        """The rounds in which all of its configurations were launched, as pairs."""
        held = [self.seen.get(one, {}) for one in sorted(contrast.configurations)]
        common = sorted(set(held[0]).intersection(*held[1:])) if held else []
        written = [json.dumps(seen[number].value) for seen in held for number in common]
        step = step_of(written) if written else 0.0
        low, high = (
            Column([self._mean(side, number) for number in common], step) for side in (contrast.low, contrast.high)
        )
        flags = [tuple(self._is_disturbed(side, number) for side in (contrast.low, contrast.high)) for number in common]
        disturbed = Disturbed(
            len(flags),
            (sum(one for one, _ in flags), sum(two for _, two in flags)),
            (flags.count((True, False)), flags.count((False, True))),
            len(flags),
            sum(map(any, flags)),
        )
        return Pairs(name, low, high, self.better, rule=contrast.rule(self.rule), disturbed=disturbed)

    def _is_disturbed(self, side: Weights, number: int) -> bool:
        return any(self.seen[one][number].disturbed for one, _ in side)

    def _mean(self, side: Weights, number: int) -> float:
        return math.exp(sum(weight * math.log(self.seen[one][number].value) for one, weight in side))

    def state(self, name: str, contrast: Contrast, total: int) -> FigureState:
        """How a contrast stands among ``total``."""
        pairs = self.pairs(name, contrast)
        if not pairs.baseline.values:
            return FigureState(name, "open", 0)
        said, other = (figure_state(one, self.rule, len(one.baseline.values), total) for one in (pairs, _turned(pairs)))
        return said if said.state != "PASS" or other.state != "open" else replace(said, state="open")

    def run(self, contrasts: dict[str, Contrast]) -> None:
        """Launch until each of ``contrasts`` is decided, or has a configuration that fails.

        A configuration that no undecided contrast needs is left out of later rounds. Raises :class:`Stopped`.
        """
        states = {name: self.state(name, one, len(contrasts)) for name, one in contrasts.items() if self.usable(one)}
        while wanted := {name: contrasts[name] for name, state in states.items() if not self._done(state)}:
            if self.bench.stop():
                raise Stopped
            started = self._round(sorted(set().union(*(one.configurations for one in wanted.values()))))
            for name, contrast in wanted.items():
                if not self.usable(contrast):
                    del states[name]
                else:
                    states[name] = self.state(name, contrast, len(contrasts))
            self.after(self.number - 1, states, started)

    def _done(self, state: FigureState) -> bool:
        return state.decided or state.count >= CAP

    def _round(self, configurations: Sequence[int]) -> int:
        order = [one for one in configurations if one not in self.broken]
        random.Random(f"{self.seed}/{self.number}").shuffle(order)  # noqa: S311 - an experimental design, not a secret
        for configuration in order:
            seen = self.bench.launch(configuration, self.number)
            if seen is None or not math.isfinite(seen.value) or seen.value <= 0:
                self.broken.add(configuration)
            else:
                self.seen.setdefault(configuration, {})[self.number] = seen
        self.number += 1
        self.launches += len(order)
        return len(order)

    def judge(self, contrasts: dict[str, Contrast]) -> dict[str, Verdict]:
        """The verdicts of ``contrasts``, those that could not be measured apart, decided as one search (Holm)."""
        measured = {name: self.pairs(name, one) for name, one in contrasts.items() if self.usable(one)}
        ready = [pairs for pairs in measured.values() if len(pairs.baseline.values) >= LOOKS[0]]
        both = [decide.decide(one, self.rule) if ready else [] for one in (ready, [*map(_turned, ready)])]
        found = [_both_ways(*one) for one in zip(*both, strict=True)]
        return {item.subject: _as_effect(item, contrasts[item.subject].scale) for item in found}


def _turned(pairs: Pairs) -> Pairs:
    """The same pairs with the other direction: an effect is ruled out only if it is neither a loss nor a gain."""
    return replace(pairs, better="higher" if pairs.better == "lower" else "lower")


def _both_ways(said: Verdict, other: Verdict) -> Verdict:
    """A PASS only where nothing that matters is possible either way."""
    if said.state != "PASS":
        return said
    if other.state != "PASS":
        return replace(said, state="INCONCLUSIVE", reason=f"it may make it faster: {other.said or 'undecided'}")
    return replace(said, detectable=max(said.detectable or 0.0, other.detectable or 0.0))


def _as_effect(verdict: Verdict, scale: float) -> Verdict:
    """The verdict with the ratios of the effect, where the contrast measures a part of it."""
    if scale == 1 or verdict.ratio is None or verdict.interval is None:
        return verdict
    low, high = (end**scale for end in verdict.interval)
    return replace(verdict, ratio=verdict.ratio**scale, interval=(low, high))
