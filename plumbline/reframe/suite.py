"""Tests of the suite itself."""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import run_after, variable
from reframe.core.runtime import runtime

from plumbline.base import paths
from plumbline.reframe.local_jobs import AsleepTest
from plumbline.reframe.system import UNCONFIGURED, configured


class SuiteTest(AsleepTest):
    """A check of the suite itself: a Python module run once where ReFrame runs."""

    #: module to run with the site's name as its argument
    module = variable(str)

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    local = True
    executable = str(paths.root() / ".venv" / "bin" / "python")

    @run_after("setup")
    def run_once(self) -> None:
        """Once per site: the first partition's first environment."""
        self.skip_if(not configured(), UNCONFIGURED)
        partition = runtime().system.partitions[0]
        first = (
            self.current_partition.name == partition.name and self.current_environ.name == partition.environs[0].name
        )
        self.skip_if(not first, "once per site is enough")
        self.executable_opts = ["-m", self.module, self.current_system.name]

    def first_fault(self) -> str:
        """The first FAULT line of the output, for the failure message."""
        lines = (Path(self.stagedir) / self.job.stdout).read_text(encoding="utf-8").splitlines()
        return next((line for line in lines if line.startswith("FAULT ")), "the check did not end; see the job output")
