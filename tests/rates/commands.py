"""What programs that measure real searches do with a repository: commands of git, and of plumb as a user has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PLUMB = Path(sys.executable).parent / "plumb"


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


def summed(said: Counter[str]) -> str:
    """How often each answer came, the most frequent first: ``9 right, 1 open``."""
    return ", ".join(f"{many} {answer}" for answer, many in said.most_common())
