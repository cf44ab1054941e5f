"""The system that ReFrame runs on, and a test's job there: how its end is waited for, and the record that it leaves."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from plumbline import schedulers, site
from plumbline.base import paths, units
from plumbline.base.errors import PlumbError, suggest
from plumbline.host import machine
from plumbline.host.machine import Machine
from plumbline.judge.references.match import thresholds
from plumbline.launch import process
from plumbline.measure import jobs
from plumbline.measure.reframe import settings
from plumbline.measure.reframe.settings import EXTRAS, FEATURE
from plumbline.records import store
from plumbline.records.model import Record


def require_stacks() -> None:
    """Raise :class:`PlumbError` where ReFrame's system cannot run the suite: skipping all of it would be a success."""
    if first_case():
        return
    system = runtime().system.name
    if system == "generic":  # ReFrame's own, for hosts that no configuration claims
        cure = f"run '{paths.setup()}'" + ("" if paths.is_installed() else ", then '. ./activate'")
        raise PlumbError("no site is configured for this host", str(paths.sites()), cure)
    if partitions():  # the environments of its partitions are those that -p leaves
        patterns = runtime().get_option("general/0/valid_env_names")
        names = sorted({name for part in runtime().get_option("systems/0/partitions") for name in part["environs"]})
        cure = suggest(patterns[-1], names) if names else "plumb stack install makes stacks"
        fault = f"no environment of ReFrame's system '{system}' with a stack matches"
        raise PlumbError(fault, f"-p {' -p '.join(patterns)}", cure)
    here = site.claiming([item for item in site.load_all() if any(part.stacks for part in item.partitions)])
    ours = f"-C {settings.file()} --system {here.name if here else 'SITE'}"
    cure = f"add plumbline.reframe.extend to its configuration, or run with {ours}"
    raise PlumbError(f"no environment of ReFrame's system '{system}' has a stack", "docs/inside-reframe.md", cure)


def first_case() -> tuple[str, str] | None:
    """The first partition and environment that the suite can run in; None if there is none."""
    parts = (part for part in runtime().system.partitions if EXTRAS in part.extras)
    cases = ((part.fullname, environment) for part in parts for environment in part.environs)
    return next(((part, environment.name) for part, environment in cases if FEATURE in environment.features), None)


def partitions() -> list[dict[str, Any]]:
    """The facts of the partitions of ReFrame's system that have some."""
    return [part.extras[EXTRAS] for part in runtime().system.partitions if EXTRAS in part.extras]


def node_counts() -> list[int]:
    """Counts of nodes for tests over several: powers of two up to the size of the largest partition, and all of it.

    Where no partition offers two nodes it is ``[2]``, so that such tests end as skipped, with the reason.
    """
    most = max((facts["nodes"] for facts in partitions()), default=1)
    return sorted({1 << power for power in range(1, most.bit_length())} | ({most} - {1})) or [2]


@functools.cache
def machines() -> tuple[Machine, ...]:
    """The machine of every partition, for parameters that depend on it."""
    return tuple(machine.load(facts["topology"]) for facts in partitions())


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
        scheduler = self.current_partition.extras[EXTRAS]["scheduler"]
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
    """A test whose job leaves its record, of ``campaign``, in ``records.jsonl`` of the stage folder.

    The variables are for performance logs and ReFrame's database, beside the figures: there ReFrame's names begin with
    ``check_``. ``record_plan`` has the CPUs of each rank of a node, ``record_figures`` by figure the lowest and highest
    launch and the reference.
    """

    record_id = variable(str, value="")
    record_verified = variable(bool, value=False)
    #: launches that something else on the node disturbed
    record_disturbed = variable(int, value=0)
    record_verdict = variable(str, value="")
    record_plan = variable(str, value="")
    record_figures = variable(dict, value={})

    @sanity_function
    def verified(self) -> Any:
        """Check that the record is in the results, and that every launch ran as planned with a correct result."""
        record = self.record()
        self.record_id, self.record_verified, self.record_verdict = record.id, record.is_verified, record.final_verdict
        self.record_disturbed = record.disturbed_count
        self.record_plan = "; ".join(units.cpu_list(rank.cpus) for rank in record.plan.ranks)
        self.record_figures = {
            figure.name: {
                "interval": [min(figure.samples), max(figure.samples)],
                "reference": figure.reference and figure.reference.value,
            }
            for figure in record.figures
        }
        file = store.session_file(record.site, record.session)
        if not any(item.id == record.id for item in store.read(file) if not isinstance(item, store.Damage)):
            raise SanityError(f"record {record.id} is not in {file}: does the job's node see another folder there?")
        if record.campaign != (self.campaign or None):
            raise SanityError(f"record {record.id} belongs to campaign {record.campaign}, not {self.campaign}")
        return sn.assert_true(not record.reasons, f"{'; '.join(record.reasons[:3])} [plumb show {record.id}]")

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
            limit = self.current_partition.extras[EXTRAS]["max_pending_s"]
            return f"the job never started; one that waits {limit} s for its nodes is cancelled (max_pending_s)"
        ours = [line for line in lines if line.startswith("plumb: ")]
        ended = f"the job ended before its launches, without a word; its time limit is {self.job.time_limit} s"
        return (ours or lines or [ended])[-1]
