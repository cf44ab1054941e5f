"""The output of a live gate: a line per pair while it measures, then the table of verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plumbline.base import terminal
from plumbline.base.table import table
from plumbline.base.units import counted, human_seconds, percent
from plumbline.gate.live import Contest, FigureState, Stop
from plumbline.judge.decide import Verdict
from plumbline.records import naming
from plumbline.statistics.paired import CAP

HEADER = ("variant", "figure", "verdict", "ratio", "interval", "pairs", "again", "ruled out from", "margins")
#: characters of a variant's name on a line of progress
WIDTH = 44
#: pairs that tell how long the others take
SOME = 5
#: begin of the line that says that --minutes will not do
TOO_SHORT = "time is too short"


def short_names(contests: Sequence[Contest]) -> list[str]:
    """Test, parameters and placement of each; the full name where these are not unique."""
    records = [item.records[0] for item in contests]
    names = [f"{naming.name(record.variant)} {record.placement.name}" for record in records]
    return [name if names.count(name) == 1 else item.name for name, item in zip(names, contests, strict=True)]


class Progress:
    """Makes the lines; columns are as wide as the widest of this gate. ``stop``: when it stops measuring."""

    def __init__(self, contests: Sequence[Contest], stop: Stop) -> None:
        self.contests, self.stop = contests, stop
        self.most_s = math.inf if stop.minutes is None else 60 * stop.minutes
        self.names = dict(zip((item.position for item in contests), short_names(contests), strict=True))
        self.width = min(WIDTH, max(map(len, self.names.values()), default=0))
        names = [figure.name for item in contests for figure in item.records[0].variant.figures]
        self.figure_width = max(map(len, names), default=0)
        self.figures = len(names)
        self.decided = {item.position: _decided(item.figure_states()) for item in contests}
        self.pairs, self.seconds = 0, 0.0
        self.is_warned = False

    def line(self, contest: Contest, figures: list[FigureState], done: int, repeated: bool, seconds: float) -> str:
        """The line of one pair, which took ``seconds``: number, time left, variant, state of each figure."""
        self.decided[contest.position] = _decided(figures)
        self.pairs += 1
        self.seconds += seconds
        cells = "  ".join(self._figure(figure) for figure in figures)
        name = naming.shorten(self.names[contest.position], self.width)
        decided = f"{sum(self.decided.values()):>{len(str(self.figures))}}/{self.figures} decided"
        line = f"pair {done:>4}  {decided}  {self._left():<15}  {name:<{self.width}}  {cells}"
        return f"{line.rstrip()}{self._again(contest) if repeated else ''}"

    def warning(self) -> str:
        """Once, when some pairs tell how long they take: that the time is too short for a verdict of every figure."""
        short = [max(0, self.stop.least - item.kept) for item in self.contests if self._is_open(item)]
        need = sum(short) * self.seconds / max(self.pairs, 1)
        if self.is_warned or self.pairs < min(SOME, len(self.contests)) or need <= self.most_s - self.seconds:
            return ""
        self.is_warned = True
        return (
            f"{TOO_SHORT}: {self.stop.least} pairs of each of {counted(len(self.contests), 'variant')} take about "
            f"{human_seconds(self.seconds + need)} in all, --minutes gives {human_seconds(self.most_s)}; "
            f"{self.stop.cure}"
        )

    def show(self) -> None:
        """The number of decided figures, and the time left, on the bar."""
        terminal.progress(sum(self.decided.values()), self.figures, f"figures decided, {self._left() or 'none'} left")

    def _figure(self, figure: FigureState) -> str:
        ratio = "–" if figure.ratio is None else f"{figure.ratio:.4f}"
        low_high = "" if figure.interval is None else f"({figure.interval[0]:.4f} to {figure.interval[1]:.4f})"
        state = f"{figure.state}: {figure.reason}" if figure.reason else figure.state
        return f"{figure.subject:<{self.figure_width}} {ratio:>7} {low_high:<18} {figure.count:>2} {state:<12}"

    def _left(self) -> str:
        pairs = sum(CAP - item.kept for item in self.contests if self._is_open(item))
        left = min(pairs * self.seconds / self.pairs, max(self.most_s - self.seconds, 0.0))
        return f"≤ {human_seconds(left)}" if pairs else ""

    def _is_open(self, contest: Contest) -> bool:
        return self.decided[contest.position] < len(contest.records[0].variant.figures)

    def _again(self, contest: Contest) -> str:
        """That the last pair is measured again, and whose launch was disturbed; the record has the cause."""
        sides = zip(("baseline", "candidate"), contest.launches[-1], strict=True)
        return f"; again: {' and '.join(side for side, launch in sides if launch.disturbed)} disturbed"


def _decided(figures: Sequence[FigureState]) -> int:
    return sum(figure.decided for figure in figures)


def verdicts(contests: Sequence[Contest], judged: Sequence[tuple[Contest, Verdict]]) -> str:
    """The aligned table, and how often pairs were measured again."""
    names = dict(zip((item.position for item in contests), short_names(contests), strict=True))
    rows = [_row(names[contest.position], verdict, contest) for contest, verdict in judged]
    lines = [table(HEADER, rows, right=("ratio", "pairs", "again", "ruled out from")), ""]
    pairs = [pair for contest in contests for pair in contest.launches]
    flagged = [sum(pair[side].disturbed for pair in pairs) for side in (0, 1)]
    replaced = sum(contest.replaced for contest in contests)
    lines.append(
        f"{len(pairs)} pairs, {replaced} of them measured again; disturbed launches: {flagged[0]} of the baseline, "
        f"{flagged[1]} of the candidate"
    )
    return "\n".join(lines)


def _row(name: str, verdict: Verdict, contest: Contest) -> tuple[str, ...]:
    figure = verdict.subject.rpartition(": ")[2]
    interval = "–" if verdict.interval is None else f"{verdict.interval[0]:.4f} to {verdict.interval[1]:.4f}"
    ratio = "–" if verdict.ratio is None or not math.isfinite(verdict.ratio) else f"{verdict.ratio:.4f}"
    rule = verdict.pairs.rule
    margins = f"{percent(rule.tolerance)}, {percent(rule.must_detect)}" if rule else "–"
    counts = str(verdict.count), str(contest.replaced)
    return name, figure, verdict.state, ratio, interval, *counts, verdict.ruled_out or "–", margins
