"""The system that ReFrame runs on, and a test's job there: how its end is waited for, and the record that it leaves."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from plumbline import schedulers, site
from plumbline.base import paths
from plumbline.base.schemas.site import Partition
from plumbline.host import machine
from plumbline.host.machine import Machine
from plumbline.judge.references.match import thresholds
from plumbline.launch import process
from plumbline.measure import jobs
from plumbline.measure.reframe.settings import FEATURE
from plumbline.records import store
from plumbline.records.model import Record


def configured() -> bool:
    """Whether ReFrame runs on our settings and they found a site for this host."""
    environments = [e for p in runtime().system.partitions for e in p.environs]
    return any(FEATURE in environment.features for environment in environments)


def partitions() -> list[Partition]:
    """The partitions of the configured site; none if there is no site."""
    if not configured():
        return []
    return site.load(runtime().system.name).partitions


def node_counts() -> list[int]:
    """Counts of nodes for tests over several: powers of two up to the size of the largest partition, and all of it.

    Where no partition offers two nodes it is ``[2]``, so that such tests end as skipped, with the reason.
    """
    most = max((part.nodes_offered for part in partitions()), default=1)
    powers = {1 << power for power in range(1, most.bit_length()) if 1 << power <= most}
    return sorted(powers | ({most} - {1})) or [2]


@functools.cache
def machines() -> tuple[Machine, ...]:
    """The machine of every partition, for parameters that depend on it; none if there is no site."""
    return tuple(machine.load(paths.sites() / runtime().system.name / part.topology) for part in partitions())


class WaitingTest(rfm.RunOnlyRegressionTest, special=True):  # type: ignore[call-arg]
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
del WaitingTest.var_space.vars["variables"]


class RecordShown(rfm.RegressionTestPlugin):
    """A test whose job leaves its record, of ``campaign``, in ``records.jsonl`` of the stage folder."""

    @sanity_function
    def verified(self) -> Any:
        """Check that the record is in the results, and that every launch ran as planned with a correct result."""
        record = self.record()
        file = store.session_file(record.site, record.session)
        if not any(item.id == record.id for item in store.read(file) if not isinstance(item, store.Damage)):
            raise SanityError(f"record {record.id} is not in {file}: does the job's node see another folder there?")
        if record.campaign != (self.campaign or None):
            raise SanityError(f"record {record.id} belongs to campaign {record.campaign}, not {self.campaign}")
        ids = f"plumb show {record.id}"
        return sn.assert_true(not record.reasons, f"{'; '.join(record.reasons[:3])} [{ids}]")

    @run_before("performance")
    def show_figures(self) -> None:
        """The record's figures, as ReFrame's performance variables, with the references that its verdict came from."""
        if self.is_dry_run():
            return
        expected = {}
        for figure in self.record().figures:
            self.perf_variables[figure.name] = sn.make_performance_function(sn.defer(figure.value), figure.unit)
            if figure.reference:
                expected[figure.name] = thresholds(figure.reference, figure.value)
        self.reference = {self.current_partition.fullname: expected} if expected else {}

    def record(self) -> Record:
        """The record that ``plumb launch`` left in the stage folder."""
        file = Path(self.stagedir) / "records.jsonl"
        items = list(store.read(file)) if file.exists() else []
        if len(items) != 1 or isinstance(items[0], store.Damage):
            raise SanityError(str(items[0]) if items else self.why_nothing())
        return items[0]

    def why_nothing(self) -> str:
        """Why there is no record: plumb's last error, else the last line of the job's errors, else how it ended."""
        try:
            lines = (Path(self.stagedir) / self.job.stderr).read_text(encoding="utf-8").strip().splitlines()
        except FileNotFoundError:
            limit = self.current_partition.extras["max_pending_s"]
            return f"the job never started; one that waits {limit} s for its nodes is cancelled (max_pending_s)"
        ours = [line for line in lines if line.startswith("plumb: ")]
        ended = f"the job ended before its launches, without a word; its time limit is {self.job.time_limit} s"
        return (ours or lines or [ended])[-1]
