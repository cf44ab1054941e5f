"""A job on ReFrame's own host is waited for without polling; one elsewhere is noted for an interrupt."""

from __future__ import annotations

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after

from plumbline import schedulers
from plumbline.launch import process
from plumbline.measure import jobs


class AsleepTest(rfm.RunOnlyRegressionTest, special=True):  # type: ignore[call-arg]
    """ReFrame sleeps while a job of its own host runs.

    Otherwise it would poll the job ten times a second, and prepare its next cases on the CPUs that are measured.
    """

    def run(self) -> None:
        """Submit the job; on this host, wait for its end, else note it for an interrupted campaign."""
        super().run()
        if self.job.jobid is None:
            return
        if self.is_local():
            process.sleep_until_end(int(self.job.jobid), self.job.time_limit)
            return
        scheduler = self.current_partition.extras["scheduler"]
        if schedulers.named(scheduler).has_jobs:
            jobs.note(Path(self.stagedir), scheduler, str(self.job.jobid))

    @run_after("run")
    def forget_job(self) -> None:
        """Remove the note of the job, which has ended."""
        jobs.noted(Path(self.stagedir)).unlink(missing_ok=True)


# For each test ReFrame reads the sources of all callers, to place a warning about this deprecated name that it then
# suppresses: nearly half of the time that loading the suite took.
del AsleepTest.var_space.vars["variables"]
