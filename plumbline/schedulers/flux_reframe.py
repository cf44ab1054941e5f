"""Jobs of ReFrame under Flux, by ``flux batch``.

ReFrame's own backend makes a job before a test says what it needs: one core of one node, without the partition's
options and without an end to its waiting. It also wants Flux's Python package, built for the Python of this checkout.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from reframe.core.backends import register_scheduler
from reframe.core.exceptions import JobError, JobSchedulerError
from reframe.core.schedulers.pbs import PbsJobScheduler
from reframe.utility import osext

from plumbline.schedulers.base import Scheduler

#: its name in ReFrame's configuration
NAME = "flux-batch"
#: seconds before its time limit at which a job is asked to end: at the limit Flux sends SIGALRM, which nothing expects
ENDING_S = 20
#: the columns of a job; ``exception.note`` says why Flux ended it: "unsatisfiable request: need 9 node(s) …"
COLUMNS = "{id.f58plain}|{state}|{returncode}|{exception.note}"
PENDING = ("DEPEND", "PRIORITY", "SCHED")


@register_scheduler(NAME)
class FluxBatch(PbsJobScheduler):  # type: ignore[misc] # ReFrame has no types
    """Jobs on whole nodes, because a plan is made for whole nodes. Waiting for the end is that of ReFrame's PBS."""

    #: set by :func:`register`
    flux: Scheduler

    def __init__(self) -> None:
        self._submit_timeout = self.get_option("job_submit_timeout")

    def emit_preamble(self, job: Any) -> list[str]:
        """The options of the job."""
        stage = Path(job.workdir).absolute()
        options = [f"--job-name={job.name}", f"--nodes={job.num_tasks // job.num_tasks_per_node}", "--exclusive"]
        options += [f"--cwd={stage}", f"--output={stage / job.stdout}", f"--error={stage / job.stderr}"]
        if job.time_limit is not None:
            ending = min(ENDING_S, job.time_limit / 2)
            options += [f"--time-limit={job.time_limit:.0f}s", f"--signal=SIGTERM@{ending:g}s"]
        lines = [*map(shlex.quote, options), *job.sched_access, *job.options, *job.cli_options]
        return [f"#flux: {line}" for line in lines]

    def submit(self, job: Any) -> None:
        """``flux batch`` prints the id."""
        done = osext.run_command(["flux", "batch", job.script_filename], check=True, timeout=self._submit_timeout)
        job_id = self.flux.job_id(done.stdout)
        if job_id is None:
            raise JobSchedulerError(f"flux batch printed no job id: {done.stdout!r}")
        job._jobid = job_id.replace("ƒ", "f")
        job._submit_time = time.time()

    def cancel(self, job: Any) -> None:
        """The exit status is ignored: a job that has ended cannot be cancelled."""
        osext.run_command(self.flux.cancel(job.jobid), timeout=self._submit_timeout)
        job._cancelled = True

    def poll(self, *jobs: Any) -> None:
        """One query for all jobs. A job that Flux does not know has ended; one that Flux ended has failed."""
        polled = [job for job in jobs if job is not None]
        if not polled:
            return
        done = osext.run_command(["flux", "jobs", "-n", "-o", COLUMNS, *(job.jobid for job in polled)], check=True)
        rows = [line.split("|", 3) for line in done.stdout.splitlines() if line.count("|") >= 3]
        answers = {job_id: rest for job_id, *rest in rows}
        for job in polled:
            state, status, why = answers.get(job.jobid, ("INACTIVE", "", ""))
            job._state = state
            if state == "INACTIVE":
                job._exitcode = int(status) if status.lstrip("-").isdecimal() else None
                job._completed = True
                if why and job.exception is None:
                    job._exception = JobError(why, job.jobid)
            elif state in PENDING and 0 < (job.max_pending_time or 0) <= time.time() - job.submit_time:
                self.cancel(job)
                job._exception = JobError("maximum pending time exceeded", job.jobid)


def register(flux: Scheduler) -> str:
    """The name of the backend, which ReFrame knows from now on."""
    FluxBatch.flux = flux
    return NAME
