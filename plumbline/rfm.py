"""The base class of all ReFrame tests: it turns a variant into a ``plumb launch`` job and shows the record's figures.

ReFrame selects, submits and shows. It does not decide which CPU anything runs on (plumb-bind does), nor whether a
figure is good (the gate does).
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.core.runtime import runtime

from plumbline import paths, site
from plumbline.errors import PlumbError
from plumbline.nodes import usable
from plumbline.records import store
from plumbline.references.match import thresholds
from plumbline.rfm_settings import FEATURE, nodes_offered
from plumbline.topology import machine, plan
from plumbline.topology.machine import Machine

UNCONFIGURED = "no site is configured for this host: run 'make setup', then '. ./activate'"
#: distances of two ranks, near to far; a machine has some of them
PAIRS = ["pair:smt", "pair:l3", "pair:numa", "pair:socket", "pair:xsocket", "pair:node"]
#: those of the quick campaign: all but hardware threads of one core
QUICK_PAIRS = tuple(PAIRS[1:])
#: one rank per object, and the two orders; ``none`` is the control
GROUPS = ["none", "core", "l3", "numa", "socket", "scatter"]
#: launches of one variant by profile; PLUMB_PROFILE chooses, and -S launches=N overrides
LAUNCHES = {"quick": 3, "full": 5}


def profile() -> str:
    """``quick`` (default) or ``full``, from PLUMB_PROFILE."""
    name = os.environ.get("PLUMB_PROFILE", "quick")
    if name not in LAUNCHES:
        raise PlumbError(f"unknown profile '{name}'", "PLUMB_PROFILE", f"one of {', '.join(LAUNCHES)}")
    return name


def configured() -> bool:
    """Whether ReFrame runs on our settings and they found a site for this host."""
    environments = [e for p in runtime().system.partitions for e in p.environs]
    return any(FEATURE in environment.features for environment in environments)


def partitions() -> list[dict[str, Any]]:
    """The partitions of the configured site, as site.yaml has them; none if there is no site."""
    if not configured():
        return []
    return site.load(runtime().system.name)["partitions"]


def node_counts() -> list[int]:
    """Counts of nodes for tests over several: powers of two up to what the largest partition offers, and all of it.

    Where no partition offers two nodes it is ``[2]``, so that such tests end as skipped, with the reason.
    """
    most = max((nodes_offered(part) for part in partitions()), default=1)
    powers = {1 << power for power in range(1, most.bit_length()) if 1 << power <= most}
    return sorted(powers | ({most} - {1})) or [2]


@functools.cache
def machines() -> tuple[Machine, ...]:
    """The machine of every partition, for parameters that depend on it; none if there is no site."""
    return tuple(machine.load(paths.sites() / runtime().system.name / part["topology"]) for part in partitions())


class PlumbTest(rfm.RunOnlyRegressionTest):
    """A benchmark of a stack under a placement.

    A test says, as parameters or variables of its own, ``placement`` (a name of docs/placements.md) and, if it wants
    to, ``memory`` (a policy; default: the placement's) and ``threads`` (of each rank; default: what fills its object).
    """

    #: id of the benchmark in the stack manifest
    benchmark = variable(str)
    #: arguments of the benchmark program
    arguments = variable(list, value=[])
    #: parser of its output: ``stream``, ``imb``, ``osu`` or ``kernel``
    parser = variable(str)
    #: what the parser must know besides the output
    context = variable(dict, value={})
    #: figures of merit: (name, metric, parameters of the measurement); no parameters: the best of the curve
    figures = variable(list)
    #: names of those that the benchmark reports on some machines only: absent there, and never gated
    optional_figures = variable(tuple, value=())
    #: margins of the gate by figure: ``{"tolerance": 0.01, "must_detect": 0.05}``; none: the gate's own
    margins = variable(dict, value={})
    #: ranks on each node; 0: as many as the placement has room for
    ranks_per_node = variable(int, value=0)
    #: nodes of the job; ``pair:node`` takes two, and a test with a parameter ``node_count`` that many
    nodes = variable(int, value=1)
    #: ranks that the benchmark needs at least
    min_ranks = variable(int, value=1)
    #: placements under which the test belongs to the quick campaign
    quick_placements = variable(tuple, value=("core",))
    #: and operations; none: all of the test's
    quick_operations = variable(tuple, value=())
    #: launches of the variant
    launches = variable(int, value=LAUNCHES[profile()])
    #: seconds after which one launch is ended
    launch_time_limit = variable(float, value=60.0)
    #: whether the MPI library has a say in the figures; where not, the quick campaign runs the first stack's build only
    mpi_matters = variable(bool, value=True)
    #: further variables of the benchmark's environment
    benchmark_environment = variable(dict, value={})

    valid_systems = ["*"]
    executable = str(paths.root() / ".venv" / "bin" / "plumb")
    local = False
    build_locally = False

    @run_after("init")
    def choose_environments(self) -> None:
        """Every stack. What cannot run is skipped after setup, visibly: a test that is dropped here leaves no trace."""
        self.valid_prog_environs = [f"+{FEATURE}"] if configured() else ["*"]
        self.descr = (type(self).__doc__ or "").strip().partition("\n")[0]
        if self.optional("placement") == "pair:node":
            self.nodes = 2
        self.nodes = self.optional("node_count") or self.nodes
        operation = self.optional("operation")
        chosen = not self.quick_operations or operation in self.quick_operations
        if chosen and self.optional("placement") in self.quick_placements:
            self.tags |= {"quick"}

    @run_after("setup")
    def resolve_placement(self) -> None:
        """Skip, with the shortage named, what this stack or this machine cannot hold."""
        self.skip_if(not configured(), UNCONFIGURED)
        archived = self.current_partition.extras["archived"] and not self.is_dry_run()
        self.skip_if(archived, f"site {self.current_system.name} is archived: --dry-run makes its job scripts")
        extras = self.current_environ.extras
        offered = extras["benchmarks"]
        if offered is None:  # a stack of another site: what it has is not known here, and a dry run need not know
            self.skip_if(not self.is_dry_run(), f"stack {extras['stack']} is not installed in this checkout")
        else:
            self.skip_if(self.benchmark not in offered, f"stack {extras['stack']} has no {self.benchmark}")
        self.ask_for_nodes()
        try:
            resolved = plan.resolve(
                self.placement,
                threads=self.optional("threads"),
                memory=self.optional("memory"),
                ranks=self.ranks_per_node or None,
                topology=self.current_partition.extras["topology"],
            )
        except PlumbError as error:
            self.skip(
                str(error).replace(
                    self.current_partition.extras["topology"], f"partition {self.current_partition.name}"
                )
            )
        ranks = self.nodes * len(resolved["ranks"])
        self.skip_if(ranks < self.min_ranks, f"{self.placement}: {ranks} rank, {self.min_ranks} needed")
        self.num_tasks = self.nodes
        self.num_tasks_per_node = 1  # plumb launch, which starts the ranks
        self.num_cpus_per_task = sum(len(rank["cpus"]) for rank in resolved["ranks"])
        wanted = int(self.launches * self.launch_time_limit) + 60
        self.time_limit = f"{min(wanted, self.current_partition.extras['max_job_s'] or wanted)}s"

    def ask_for_nodes(self) -> None:
        """Skip what needs more nodes than there are, and let no job wait for them for ever."""
        extras = self.current_partition.extras
        available = usable.limit(self.current_partition.name, extras["nodes"])
        lowered = "" if available == extras["nodes"] else f" ({usable.VARIABLE})"
        self.skip_if(self.nodes > available, f"{self.nodes} nodes asked, the partition offers {available}{lowered}")
        flux = self.current_partition.scheduler.registered_name == "flux"
        self.skip_if(flux and self.nodes > 1, f"{self.nodes} nodes asked: ReFrame's jobs for Flux have one")
        if self.optional("max_pending_time") is None:
            self.max_pending_time = f"{extras['max_pending_s']}s"
        if self.nodes > 1:  # part of each node would be other CPUs on each, and others' traffic on their links
            self.exclusive_access = True

    @run_after("setup")
    def run_once_in_quick(self) -> None:
        """Five minutes are for what can differ."""
        offering = [e.name for e in self.current_partition.environs if self.benchmark in (e.extras["benchmarks"] or ())]
        again = offering and self.current_environ.name != offering[0]
        self.skip_if(
            not self.mpi_matters and profile() == "quick" and again,
            f"{self.benchmark} bound by plumb-bind is the same on every stack: quick takes one",
        )

    @run_after("setup")
    def require_references(self) -> None:
        """A family without a reference file ends before it is measured: nobody said what is expected of it."""
        file = site.references_file(self.current_system.name, type(self).__name__)
        if not self.is_dry_run() and not file.is_file():
            raise PerformanceError(f"reference file is missing: {file}: 'plumb site init' writes an empty one")

    @run_before("run")
    def pass_access_options(self) -> None:
        """ReFrame's backend for Grid Engine leaves the partition's access options out of the job script."""
        if self.current_partition.scheduler.registered_name == "sge":
            self.job.options = [*self.current_partition.access, *self.job.options]

    @run_before("run")
    def write_variant(self) -> None:
        """The description that ``plumb launch`` works from, in the stage folder."""
        variant = {
            "schema": 1,
            "test": self.display_name.split(" ")[0],
            "name": self.display_name,
            "site": self.current_system.name,
            "partition": self.current_partition.name,
            "stack": self.current_environ.extras["stack"],
            "benchmark": self.benchmark,
            "arguments": [str(argument) for argument in self.arguments],
            "placement": self.placement,
            "memory": self.optional("memory"),
            "threads": self.optional("threads"),
            "ranks_per_node": self.ranks_per_node or None,
            "nodes": self.nodes,
            "parser": self.parser,
            "context": self.context,
            "figures": [
                {
                    "name": name,
                    "metric": metric,
                    "where": where,
                    **({"optional": True} if name in self.optional_figures else {}),
                    **self.margins.get(name, {}),
                }
                for name, metric, where in self.figures
            ],
            "launches": self.launches,
            "time_limit_s": self.launch_time_limit,
            "environment": self.benchmark_environment,
            "params": {name: getattr(self, name) for name in sorted(type(self).param_space.params)},
        }
        (Path(self.stagedir) / "variant.json").write_text(json.dumps(variant, indent=1), encoding="utf-8")
        self.executable_opts = ["launch", "variant.json", "--records", "records.jsonl"]
        if self.current_partition.scheduler.registered_name == "ssh":
            # ReFrame starts the job in a folder of that node alone, and brings it back only if the job ends with 0
            stage = Path(self.stagedir)
            self.executable_opts = ["launch", str(stage / "variant.json"), "--records", str(stage / "records.jsonl")]
            self.executable_opts += ["--work", str(stage)]

    @sanity_function
    def verified(self) -> Any:
        """The record says that every launch ran where the plan put it and left a correct result."""
        record = self.record()
        ids = f"plumb show {record['id']}"
        return sn.assert_true(not record["reasons"], f"{'; '.join(record['reasons'][:3])} [{ids}]")

    @run_before("performance")
    def show_figures(self) -> None:
        """The record's figures, as ReFrame's performance variables, with the references that its verdict came from."""
        if self.is_dry_run():
            return
        expected = {}
        for figure in self.record()["figures"]:
            self.perf_variables[figure["name"]] = sn.make_performance_function(
                sn.defer(figure["value"]), figure["unit"]
            )
            if figure["reference"]:
                expected[figure["name"]] = thresholds(figure["reference"], figure["value"])
        self.reference = {self.current_partition.fullname: expected} if expected else {}

    def optional(self, name: str) -> Any:
        """What the test says of ``name``, or None where it says nothing."""
        return getattr(self, name, None) or None

    def record(self) -> dict[str, Any]:
        """The record that ``plumb launch`` left in the stage folder."""
        items = list(store.read_file(Path(self.stagedir) / "records.jsonl"))
        if len(items) != 1 or isinstance(items[0], store.Damage):
            raise SanityError(f"no record was written: {items[0] if items else self.why_nothing()}")
        return items[0]

    def why_nothing(self) -> str:
        """The last line of the job's errors; a job without that file never started."""
        try:
            lines = (Path(self.stagedir) / self.job.stderr).read_text(encoding="utf-8").strip().splitlines()
        except FileNotFoundError:
            limit = self.current_partition.extras["max_pending_s"]
            return f"the job never started; one that waits {limit} s for its nodes is cancelled (max_pending_s)"
        return lines[-1] if lines else "see the job output"


class KernelTest(PlumbTest):
    """One of our own kernels, as built for the stack.

    A test may have a parameter ``build`` of ``stack`` and ``abi``: the build for the stack, and the one that every
    library with the standard MPI ABI runs.
    """

    #: program name; a test's ``arguments`` need not say ``--json``
    kernel = variable(str)

    parser = "kernel"
    tags = {"kernels", "full"}

    @run_after("init")
    def name_kernel(self) -> None:
        """The manifest has the kernels under their own names, the ABI build with ``-abi``."""
        self.benchmark = f"{self.kernel}-abi" if self.optional("build") == "abi" else self.kernel
        self.context = {"kernel": self.kernel}

    @run_after("setup")
    def ask_for_json(self) -> None:
        """What the parser reads."""
        if "--json" not in self.arguments:
            self.arguments = [*self.arguments, "--json"]


class SuiteTest(rfm.RunOnlyRegressionTest):
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
