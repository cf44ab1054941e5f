"""A stack with our kernels, and how a test runs one of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import paths
from plumbline.stacks import manifest

#: Reads the result of a kernel that was run with ``--json``.
JsonOf = Callable[[subprocess.CompletedProcess[str]], dict[str, Any]]


@dataclass(frozen=True)
class KernelStack:
    """An installed stack with our kernels."""

    name: str
    document: dict[str, Any]

    @property
    def programs(self) -> Path:
        """Where the kernels are."""
        return paths.stacks() / self.name / "kernels" / "bin"

    def mpirun(
        self, ranks: int, program: str, *arguments: str, env: dict[str, str] | None = None, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a kernel (a name, or the path of another build) on ``ranks`` ranks, oversubscribed if need be."""
        launcher = self.document["launcher"]
        command = [launcher["command"], "-n", str(ranks)]
        if launcher["family"] == "prrte":
            command += ["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        environment = {**os.environ, **manifest.environment(self.document, os.environ), **(env or {})}
        environment.setdefault("OMP_NUM_THREADS", "1")
        return subprocess.run(
            [*command, str(self.programs / program), *arguments],
            capture_output=True, text=True, check=False, env=environment, timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip
