"""Rounds of launches: each starts every wanted configuration once, in random order, until each contrast is decided.

A :class:`Launcher` starts them; simulations put another one in its place. All that is random comes from the seed and
from the number of the round, so a search that is repeated on what was kept takes the same way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from msgspec import UNSET, UnsetType

from plumbline.base.units import Better
from plumbline.extras.search.why.designs import Contrast, Weights
from plumbline.gate.live import FigureState, figure_state
from plumbline.judge import decide
from plumbline.judge.decide import Verdict
from plumbline.judge.disturbed import Disturbed
from plumbline.judge.pairs import Column, Pairs
from plumbline.parsers.measurement import Number, step_of
from plumbline.statistics.paired import CAP, LOOKS, PairedRule


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

    ``better`` is chosen such that B is worse than A. ``broken`` are the configurations that failed: none is tried
    again.
    """

    launcher: Launcher
    better: Better
    rule: PairedRule
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
        held = [self.seen.get(configuration, {}) for configuration in sorted(contrast.configurations)]
        common = sorted(set(held[0]).intersection(*held[1:])) if held else []
        step = step_of([seen[number] for seen in held for number in common])
        low, high = (
            Column([self._mean(side, number) for number in common], step) for side in (contrast.low, contrast.high)
        )
        flags = [tuple(self._is_disturbed(side, number) for side in (contrast.low, contrast.high)) for number in common]
        disturbed = Disturbed(
            len(flags),
            (sum(is_low for is_low, _ in flags), sum(is_high for _, is_high in flags)),
            (flags.count((True, False)), flags.count((False, True))),
            len(flags),
            sum(map(any, flags)),
        )
        return Pairs(name, low, high, self.better, rule=contrast.rule(self.rule), disturbed=disturbed)

    def _is_disturbed(self, side: Weights, number: int) -> bool:
        return any(self.seen[configuration][number].disturbed for configuration, _ in side)

    def _mean(self, side: Weights, number: int) -> float:
        return math.exp(
            sum(weight * math.log(self.seen[configuration][number].value) for configuration, weight in side)
        )

    def state(self, name: str, contrast: Contrast, total: int) -> FigureState:
        """How a contrast stands among ``total``."""
        pairs = self.pairs(name, contrast)
        if not pairs.baseline.values:
            return FigureState(name, "open", 0)
        loss, gain = (
            figure_state(direction, self.rule, len(direction.baseline.values), total)
            for direction in (pairs, _turned(pairs))
        )
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
        self.launches += len(order)
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
    low, high = (end**scale for end in verdict.interval)
    return replace(verdict, ratio=verdict.ratio**scale, interval=(low, high))
