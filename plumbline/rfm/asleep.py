"""A job on ReFrame's own host is waited for without polling."""

from __future__ import annotations

import reframe as rfm

from plumbline.launch import process


class AsleepTest(rfm.RunOnlyRegressionTest, special=True):  # type: ignore[call-arg]
    """ReFrame sleeps while a job of its own host runs.

    It would poll the job ten times a second and prepare its next cases on the CPUs that are measured.
    """

    def run(self) -> None:
        """Submit the job; on this host, wait for its end."""
        super().run()
        if self.is_local() and self.job.jobid is not None:
            process.sleep_until_end(int(self.job.jobid), self.job.time_limit)
