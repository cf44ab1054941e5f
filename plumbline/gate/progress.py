"""The output of a live gate: a line per pair while it measures, then the table of verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plumbline.base import terminal, units
from plumbline.base.units import counted, human_seconds
from plumbline.gate.live import Contest, FigureState, Stop
from plumbline.judge.decide import Verdict
from plumbline.records import naming
from plumbline.show.verdicts import Row, text
from plumbline.statistics.paired import CAP

#: characters of a variant's name on a line of progress
WIDTH = 44
#: pairs that tell how long the others take
SOME = 5


def short_names(contests: Sequence[Contest]) -> list[str]:
    """Test, parameters and placement of each; the full name where these are not unique."""
    records = [item.records[0] for item in contests]
    names = [f"{naming.name(record.variant)} {record.placement.name}".strip() for record in records]
    return [name if names.count(name) == 1 else item.name for name, item in zip(names, contests, strict=True)]


class Progress:
    """Makes the lines; columns are as wide as the widest of this gate. ``stop``: when it stops measuring."""

    def __init__(self, contests: Sequence[Contest], stop: Stop) -> None:
        self.contests, self.stop = contests, stop
        self.most_s = math.inf if stop.minutes is None else 60 * stop.minutes
        self.names = dict(zip((item.position for item in contests), short_names(contests), strict=True))
        self.width = min(WIDTH, max(map(len, self.names.values()), default=0))
        names = [name for item in contests for name in item.series]
        self.figure_width = max(map(len, names), default=0)
        self.figures = len(names)
        self.decided = {item.position: _decided(item.figure_states()) for item in contests}
        self.took: list[tuple[str, float]] = []
        self.is_warned = False

    @property
    def seconds(self) -> float:
        """The time of all pairs so far."""
        return sum(seconds for _, seconds in self.took)

    def line(
        self, contest: Contest, figures: list[FigureState], done: int, repeated: bool, seconds: float
    ) -> tuple[str, str]:
        """The line of one pair, which took ``seconds``: number and time left; and with variant and state of figures."""
        self.decided[contest.position] = _decided(figures)
        self.took.append((str(contest.position), seconds))
        *cells, last = [self._figure(figure) for figure in figures]
        cells.append(f"{last.rstrip()}{self._again(contest) if repeated else ''}")
        name = naming.shorten(self.names[contest.position], self.width)
        decided = f"{sum(self.decided.values()):>{len(str(self.figures))}}/{self.figures} decided"
        start = f"pair {done:>4}  {decided}  {self._left():<15}"
        line = "  ".join([start, f"{name:<{self.width}}", *cells])
        room = terminal.width() or len(line)
        if len(line) > room:  # each figure has its own line below
            head = f"{start}  {naming.shorten(name, max(room - len(start) - 2, 8))}"
            line = "\n".join([head, *(naming.shorten(f"           {cell.rstrip()}", room) for cell in cells)])
        return start.rstrip(), line

    def warning(self) -> str:
        """Once, when some pairs tell how long they take: that the time is too short for a verdict of every figure."""
        short = sum(max(0, self.stop.least - item.kept) for item in self.contests if self._is_open(item))
        need = short * self.seconds / max(len(self.took), 1)
        if self.is_warned or len(self.took) < min(SOME, len(self.contests)) or need <= self.most_s - self.seconds:
            return ""
        self.is_warned = True
        return (
            f"time is too short: {self.stop.least} pairs of each of {counted(len(self.contests), 'variant')} take "
            f"about {human_seconds(self.seconds + need)} in all, --minutes gives {human_seconds(self.most_s)}; "
            f"{self.stop.cure}"
        )

    def show(self) -> None:
        """The number of decided figures, and the time left, on the bar."""
        terminal.progress(sum(self.decided.values()), self.figures, f"figures decided, {self._left() or 'none'} left")

    def _figure(self, figure: FigureState) -> str:
        low_high = f"({units.interval(figure.interval)})" if figure.interval else ""
        state = f"{figure.state}: {figure.reason}" if figure.reason else figure.state
        numbers = f"{units.ratio(figure.ratio):>6} {low_high:<16} {figure.count:>2}"
        return f"{figure.subject:<{self.figure_width}} {numbers} {state:<12}"

    def _left(self) -> str:
        pairs = {str(item.position): CAP - item.kept for item in self.contests if self._is_open(item)}
        left = min(units.time_left(self.took, pairs, {}), max(self.most_s - self.seconds, 0.0))
        return f"≤ {human_seconds(left)}" if any(pairs.values()) else ""

    def _is_open(self, contest: Contest) -> bool:
        return self.decided[contest.position] < len(contest.series)

    def _again(self, contest: Contest) -> str:
        """That the last pair is measured again, and whose launch was disturbed; the record has the cause."""
        sides = zip(("baseline", "candidate"), contest.launches[-1], strict=True)
        return f"; again: {' and '.join(side for side, launch in sides if launch.disturbed)} disturbed"


def _decided(figures: Sequence[FigureState]) -> int:
    return sum(figure.decided for figure in figures)


def verdicts(contests: Sequence[Contest], judged: Sequence[tuple[Contest, Verdict]]) -> str:
    """The aligned table, and how often pairs were measured again."""
    names = dict(zip((item.position for item in contests), short_names(contests), strict=True))
    figures = [verdict.subject.rpartition(": ")[2] for _, verdict in judged]
    rows = [
        Row(f"{names[contest.position]} {figure}", verdict)
        for (contest, verdict), figure in zip(judged, figures, strict=True)
    ]
    pairs = [pair for contest in contests for pair in contest.launches]
    flagged = [sum(pair[side].disturbed for pair in pairs) for side in (0, 1)]
    replaced = sum(contest.replaced for contest in contests)
    return (
        f"{text(rows)}\n\n{counted(len(pairs), 'pair')}, {replaced} of them measured again; disturbed launches: "
        f"{flagged[0]} of the baseline, {flagged[1]} of the candidate"
    )
