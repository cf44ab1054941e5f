"""Promises about measured rates. A program whose rates break one says which, and ends with status 1."""

import argparse
import sys

from scipy import stats

#: the probability with which errors as rare as promised would come up as often as they must to break a promise
CHANCE = 0.001


def command_line(doc: str | None, full: str) -> argparse.ArgumentParser:
    """What reads the options of a program that ``doc`` describes; ``full`` is what ``--full`` changes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=full)
    return parser


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
