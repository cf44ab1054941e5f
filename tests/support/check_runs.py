"""plumb-check with a class and rounds that a test gives it."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumbline.base import paths

#: this host's first CPU that may be used
CPU = min(os.sched_getaffinity(0))
#: limits of memory in GB/s (more is better) and of handover in ns
LIMITS = ("limit 25 memory 90 80 95 0.1", "limit 25 handover 110 130 105 0.1")
FINE = {"memory": 100.0, "handover": 100.0}


def class_file(folder: Path, *lines: str, limits: Sequence[str] = LIMITS, budgets: Sequence[str] = ("25 5",)) -> Path:
    """A class of this host with five rounds in 25 seconds, and ``lines``."""
    file = folder / "node.class"
    own = ["name test", "made 2026-11-25", "rate 1e-05", "tolerance 0.05", f"cpu {CPU} 0", "member here"]
    own += [f"budget {text}" for text in budgets]
    file.write_text("\n".join(["plumb-class 1", *own, *limits, *lines, "end"]) + "\n")
    return file


def rounds(folder: Path, *given: dict[str, float]) -> Path:
    """A file of rounds; what a round does not say is as in :data:`FINE`."""
    file = folder / "rounds"
    lines = (" ".join(f"{name} {value}" for name, value in {**FINE, **one}.items()) for one in given)
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def run(
    *words: object, status: int | None = None, program: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """The program, or a copy of it, with these words, which ends with ``status``."""
    assert paths.checker().is_file(), "plumb-check is not built: make setup"
    command = [str(program or paths.checker()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **more)
    assert status is None or done.returncode == status, done
    return done


def judged(
    folder: Path, *given: dict[str, float], node: str = "here", lines: Sequence[str] = (), more: Sequence[str] = (),
    program: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What is said of rounds, as JSON, by a copy of the program; the exit status is that of the state."""
    words = ["--class", class_file(folder, *lines), "--measured", rounds(folder, *given), "--node", node]
    done = run(*words, "--form", "json", "--state", folder / "state", *more, program=program)
    found = json.loads(done.stdout)
    assert done.returncode == (found["state"] == "bad"), done
    return dict(found)
