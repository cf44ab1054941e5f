"""Promises about measured rates. A program whose rates break one says which, and ends with status 1."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

#: the probability with which errors as rare as promised would come up as often as they must to break a promise
CHANCE = 0.001


def command_line(doc: str | None, full: str) -> argparse.ArgumentParser:
    """What reads the options of a program that ``doc`` describes; ``full`` is what ``--full`` changes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=full)
    return parser


def at_most(count: int, tries: int) -> float:
    """Upper 95 % bound of the probability behind ``count`` of ``tries`` (Clopper-Pearson)."""
    return float(stats.beta.ppf(0.95, count + 1, tries - count)) if count < tries else 1.0


def bounded(count: int, tries: int) -> str:
    """The share of ``count`` of ``tries`` in percent, with the upper 95 % bound."""
    return f"{100 * count / tries:.2f} (≤ {100 * at_most(count, tries):.2f})"


def show(header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table in Markdown, each row as soon as it is there."""
    for cells in (header, ["---"] * len(header)):
        print(f"| {' | '.join(cells)} |")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


class Kept:
    """Finished measurements in a file, a line each: a program that is started again continues with them."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.file = file
        self.lines: list[Any] = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def add(self, line: Any) -> None:
        """Keep another one."""
        self.lines.append(line)
        with self.file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


class Promises:
    """Collects what is broken."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def keep(self, promise: str, *, is_kept: bool) -> None:
        """A promise, and whether the measured rates keep it."""
        if not is_kept:
            self.broken.append(promise)

    def rare(self, event: str, count: int, tries: int, rate: float) -> None:
        """``event`` happened in ``count`` of ``tries``, and is promised to have at most the probability ``rate``.

        Broken where the lower bound of its probability (Clopper-Pearson) is above that.
        """
        lower = float(stats.beta.ppf(CHANCE, count, tries - count + 1)) if count else 0.0
        self.keep(f"{event}: {count} of {tries}, at most {100 * rate:g} % are promised", is_kept=lower <= rate)

    def status(self) -> int:
        """Print what is broken. The exit status of the program."""
        for promise in self.broken:
            print(f"broken: {promise}", file=sys.stderr)
        return int(bool(self.broken))
