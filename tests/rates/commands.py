"""What programs that measure real searches do with a repository: commands of git, and of plumb as a user has it."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PLUMB = Path(sys.executable).parent / "plumb"
#: a program that computes, waits for memory or calls the system for so many turns
LOOPS = Path(__file__).with_name("loops.c")


def git(folder: Path, *words: str) -> str:
    """What git prints in ``folder``."""
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def found(folder: Path, *words: str) -> dict[str, Any]:
    """What a command finds of the code in ``folder``; one that could not measure ends this program."""
    file = folder.parent / "found.json"
    command = [str(PLUMB), *words, "--output", str(file)]
    around = {**os.environ, "PLUMB_RESULTS": str(folder.parent / "results")}
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        sys.exit(done.stderr + done.stdout[-2000:])
    return dict(json.loads(file.read_text(encoding="utf-8")))


def timed(folder: Path, *words: str) -> tuple[dict[str, Any], float]:
    """What a command finds, and the minutes that it took."""
    begin = time.monotonic()
    document = found(folder, *words)
    return document, (time.monotonic() - begin) / 60


def show(kind: str, counts: Sequence[str], rows: Iterable[tuple[str, dict[str, Any], float, str]], what: str) -> None:
    """Print a line for each of ``rows`` as soon as it is there: name, ``counts`` of the document, minutes, answer.

    Then how often each answer came: an answer is a word, or one with a colon and what was named.
    """
    said = Counter[str]()
    print(f"{kind:30} {' '.join(f'{name:>8}' for name in counts)} {'minutes':>8}  answer", flush=True)
    for name, document, minutes, answer in rows:
        said[answer.partition(":")[0]] += 1
        numbers = " ".join(f"{document[one]:8}" for one in counts)
        print(f"{name:30} {numbers} {minutes:8.1f}  {answer}", flush=True)
    print(f"{sum(said.values())} {what}: {summed(said)}")


def summed(said: Counter[str]) -> str:
    """How often each answer came, the most frequent first: ``9 right, 1 open``."""
    return ", ".join(f"{many} {answer}" for answer, many in said.most_common())
