"""The base classes of tests: from the variables of a test to its job, the variant that it launches, and its figures."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError, ReframeError

from plumbline import mpi, schedulers, site
from plumbline.base import paths, units
from plumbline.base.errors import PlumbError
from plumbline.host import binder, devices
from plumbline.host.binder import Plan
from plumbline.launch.prepare import APPLICATION
from plumbline.measure.reframe.settings import EXTRAS, FEATURE
from plumbline.measure.reframe.stage import RecordShown, WaitingTest, first_case
from plumbline.records.model import document
from plumbline.records.outcome import PROFILES
from plumbline.records.variant import ApplicationState, Variant, WantedFigure
from plumbline.site.nodes import choice

#: plumb as a word of a job script
PLUMB = shlex.quote(paths.suite_program("plumb"))
#: the Python of the suite, which ReFrame may not run in
_PYTHON = paths.python() if paths.is_installed() else [paths.suite_program("python"), "-I"]
#: parameters that only say where ranks, threads and pages are: the plan has their effect
PLACING = ("placement", "memory", "threads")
#: members in which two variants with the same job may differ
MAY_DIFFER = ("name", "ranks_per_node", "params", "slow_on_purpose", *PLACING)

#: the parameters of the variant of each job that came first in this run of ReFrame
_first_of_job: dict[bytes, dict[str, Any]] = {}


def equal_to(variant: Variant, plan: Plan) -> str:
    """The parameters in which an earlier variant with the same job differs, ``NAME=VALUE …``; empty if there is none.

    ``plan``: the variant's, on the machine that it would run on. The first variant of a job is remembered.
    """
    first = _first_of_job.setdefault(_job(variant, plan), variant.params)
    return " ".join(f"{name}={value}" for name, value in first.items() if variant.params[name] != value)


def _job(variant: Variant, plan: Plan) -> bytes:
    compared = {key: value for key, value in document(variant).items() if key not in MAY_DIFFER}
    others = {key: value for key, value in variant.params.items() if key not in PLACING}
    where = [plan.bound, plan.threads, plan.ranks, plan.map if variant.nodes > 1 else None]
    return msgspec.json.encode([compared, others, where], order="sorted")


def _refused(message: str, where: str, cure: str) -> ReframeError:
    """A fault that ReFrame shows without a traceback."""
    return ReframeError(str(PlumbError(message, where, cure)))


class PlumbTest(RecordShown, WaitingTest):
    """A benchmark of a stack under a placement.

    A test says, as its own parameters or variables, ``placement`` (a name of docs/placements.md) and, if it wants
    to, ``memory`` (a policy; default: the placement's) and ``threads`` (of each rank; default: what fills its object).
    """

    #: id of the benchmark in the stack manifest
    benchmark = variable(str)
    #: arguments of the benchmark program
    arguments = variable(list, value=[])
    #: parser of its output: ``stream``, ``imb``, ``osu`` or ``kernel``
    parser = variable(str, loggable=False)
    #: what the parser must know besides the output
    context = variable(dict, value={}, loggable=False)
    #: figures of merit: (name, metric, parameters of the measurement); no parameters: the best of the curve
    figures = variable(list, loggable=False)
    #: names of the figures that the benchmark reports on some machines only: absent elsewhere, and never gated
    optional_figures = variable(tuple, value=(), loggable=False)
    #: margins of the gate by figure: ``{"tolerance": 0.01, "must_detect": 0.05}``; none: the gate's own
    margins = variable(dict, value={}, loggable=False)
    #: what ``-S threads=N`` asks for
    threads_asked = variable(int, value=0, loggable=False)
    #: ranks on each node; 0: as many as the placement has room for
    ranks_per_node = variable(int, value=0)
    #: nodes of the job, at least what the placement needs; a test with a parameter ``node_count`` takes that many
    nodes = variable(int, value=1)
    #: nodes that a job may have (``-S max_nodes=2`` or ``-S max_nodes=PARTITION=2,…``): fewer than the site says
    max_nodes = variable(str, value="", loggable=False)
    #: ranks that the benchmark needs at least
    min_ranks = variable(int, value=1, loggable=False)
    #: placements under which the test belongs to the quick campaign
    quick_placements = variable(tuple, value=("core",), loggable=False)
    #: operations that belong to the quick campaign; none: all of the test's
    quick_operations = variable(tuple, value=(), loggable=False)
    #: one of ``PROFILES`` (``-S profile=full``): launches of a variant, and whether of every stack
    profile = variable(str, value="quick", loggable=False)
    #: launches of the variant (``-S launches=N``); 0: the profile's
    launches = variable(int, value=0)
    #: campaign that the records belong to; ``plumb campaign`` gives it
    campaign = variable(str, value="")
    #: experiment that the records are for, such as a lab
    experiment = variable(str, value="")
    #: seconds after which one launch is ended
    launch_time_limit = variable(float, value=60.0, loggable=False)
    #: whether the MPI library affects the figures; if not, the quick campaign runs the first stack's build only
    mpi_matters = variable(bool, value=True, loggable=False)
    #: whether its messages are in GPU memory, which needs a stack whose manifest has an ``accelerator``
    on_devices = variable(bool, value=False, loggable=False)
    #: settings of the MPI library by its own names; a launch that does not have them is not verified
    library_settings = variable(dict, value={})
    #: whether the variant shows what is lost, such as by far memory: then no limit is expected of it
    slow_on_purpose = variable(bool, value=False)
    #: further variables of the benchmark's environment
    benchmark_environment = variable(dict, value={})

    valid_systems = ["*"]
    valid_prog_environs = [f"+{FEATURE}"]
    executable = PLUMB
    local = False
    build_locally = False

    @classmethod
    def setvar(cls, name: str, value: Any) -> bool:
        """Called by ReFrame for ``-S NAME=VALUE``; it would ignore ``threads``, which is not a variable of a test."""
        metaclass: Any = type(cls)
        return bool(metaclass.setvar(cls, "threads_asked" if name == "threads" else name, value))

    @run_after("init")
    def take_threads(self) -> None:
        """Set the number of threads asked for, before a test's own hooks read it."""
        if self.threads_asked and "threads" not in type(self).param_space.params:
            self.threads = self.threads_asked

    @run_after("init")
    def join_quick(self) -> None:
        """Join the quick campaign; what cannot run is skipped after setup, as a test dropped here is not reported."""
        self.descr = (type(self).__doc__ or "").strip().partition("\n")[0]
        self.nodes = self.optional("node_count") or self.nodes
        chosen = not self.quick_operations or self.optional("operation") in self.quick_operations
        if chosen and self.optional("placement") in self.quick_placements:
            self.tags |= {"quick"}

    @run_after("setup")
    def choose_launches(self) -> None:
        """Set the number of launches: the profile's, unless the command line gives one."""
        if self.profile not in PROFILES:
            raise _refused(f"unknown profile '{self.profile}'", "-S profile", f"one of {', '.join(PROFILES)}")
        self.launches = self.launches or PROFILES[self.profile]

    @run_after("setup")
    def keep_threads(self) -> None:
        """Of a test with the parameter ``threads``, skip the variants with another number than that asked for."""
        requested, parameter = self.threads_asked, type(self).param_space.params.get("threads")
        if not (requested and parameter):
            return
        if requested not in parameter.values:
            known = ", ".join(str(count) for count in parameter.values)
            raise _refused(
                f"{type(self).__name__} has no variant of {requested} threads", "-S threads", f"one of {known}"
            )
        self.skip_if(self.threads != requested, f"-S threads={requested}")

    @run_after("setup")
    def require_benchmark(self) -> None:
        """Skip what this site or this stack cannot run, with the reason."""
        self.skip_if(
            EXTRAS not in self.current_partition.extras,
            f"no site has facts of partition {self.current_partition.name}: plumb site init, plumbline.reframe.extend",
        )
        self.skip_if(
            self.facts["archived"] and not self.is_dry_run(),
            f"site {self.facts['site']} is archived: --dry-run makes its job scripts",
        )
        stack, offered = (self.stack_facts[name] for name in ("stack", "benchmarks"))
        if offered is None:  # a stack of another site: what it has is not known here, and a dry run need not know
            self.skip_if(not self.is_dry_run(), f"stack {stack} is not installed in this checkout")
        else:
            missing = self.benchmark != APPLICATION and self.benchmark not in offered
            self.skip_if(missing, f"stack {stack} has no {self.benchmark}")
            self.skip_if(
                self.on_devices and self.accelerator is None,
                f"stack {stack} has no accelerator: its MPI library is not known to take GPU memory",
            )
        self.suit_stack()

    def suit_stack(self) -> None:
        """Called when the stack is known to be able to run the test; does nothing unless a test overrides it."""

    @run_after("setup")
    def resolve_placement(self) -> None:
        """Ask for the nodes, CPUs and time that the job needs. Skip, with the shortage named, what is too large."""
        try:
            resolved = binder.resolve(
                self.placement,
                threads=self.optional("threads"),
                memory=self.optional("memory"),
                ranks=self.ranks_per_node or None,
                topology=self.facts["topology"],
                machine=f"partition {self.facts['partition']}",
            )
        except PlumbError as error:
            self.skip(str(error))
        self.plan = resolved
        self.nodes = max(self.nodes, resolved.nodes or 1)
        self.ask_for_nodes()
        ranks = self.nodes * len(resolved.ranks)
        self.skip_if(
            ranks < self.min_ranks, f"{self.placement}: {units.counted(ranks, 'rank')}, {self.min_ranks} needed"
        )
        self.num_tasks = self.nodes
        self.num_tasks_per_node = 1  # plumb launch, which starts the ranks
        self.num_cpus_per_task = sum(len(rank.cpus) for rank in resolved.ranks)
        # one launch more, for a launcher that reaches its time limit before it starts a rank
        wanted = int((self.launches + 1) * self.launch_time_limit) + 120
        self.time_limit = f"{min(wanted, self.facts['max_job_s'] or wanted)}s"

    def ask_for_nodes(self) -> None:
        """Skip what needs more nodes than there are, and limit how long a job may wait for its nodes."""
        offered = self.facts["nodes"]
        available = choice.limit(self.facts["partition"], offered, self.max_nodes)
        lowered = "" if available == offered else f" ({choice.MAX_NODES})"
        self.skip_if(self.nodes > available, f"{self.nodes} nodes asked, the partition offers {available}{lowered}")
        if self.optional("max_pending_time") is None:
            self.max_pending_time = f"{self.facts['max_pending_s']}s"
        if self.nodes > 1:  # shared nodes may give other CPUs on each, and carry others' traffic
            self.exclusive_access = True

    @run_after("setup")
    def run_once_in_quick(self) -> None:
        """But in the full campaign, skip all stacks but the first where the MPI library does not affect the figures."""
        known = ((item.name, item.extras.get(EXTRAS, {})) for item in self.current_partition.environs)
        offering = [name for name, facts in known if self.benchmark in (facts.get("benchmarks") or ())]
        again = offering and self.current_environ.name != offering[0]
        self.skip_if(
            not self.mpi_matters and self.profile != "full" and again,
            f"{self.benchmark} bound by plumb-bind is the same on every stack: {self.profile} takes one",
        )

    @run_after("setup")
    def require_references(self) -> None:
        """Fail before measuring if the family has no reference file, because nothing says what is expected."""
        if self.benchmark == APPLICATION or self.is_dry_run():  # of an application plumb calibrate makes one
            return
        if missing := site.references_missing(self.facts["site"], type(self).__name__):
            raise PerformanceError(missing)

    @run_after("setup")
    def run_once(self) -> None:
        """Skip a variant that is the same job as an earlier one; the last check, as only what runs is remembered."""
        equal = equal_to(self.variant(), self.plan)
        self.skip_if(bool(equal), f"equal to {equal} here")

    @run_before("run")
    def pass_options(self) -> None:
        """Add what the partition of the configuration leaves out of the job script; plumb launch starts the ranks."""
        self.job.launcher = getlauncher("local")()
        self.prerun_cmds = [line for line in self.facts["prepare"] if line not in self.current_partition.prepare_cmds]
        missing = self.scheduler.reframe_options(self.current_partition.access, self.nodes)
        self.job.options = [*missing, *self.job.options]

    @run_before("run")
    def write_variant(self) -> None:
        """Write the description that ``plumb launch`` reads into the stage folder, and set the command's options.

        The job may start without the variables of this process, and in its own folder.
        """
        stage = Path(self.stagedir)
        (stage / "variant.json").write_text(json.dumps(document(self.variant()), indent=1), encoding="utf-8")
        words = [
            *(*paths.options(), "launch", str(stage / "variant.json"), "--records", str(stage / "records.jsonl")),
            *("--work", str(stage)),
            *(["--campaign", self.campaign] if self.campaign else []),
            *(["--experiment", self.experiment] if self.experiment else []),
        ]
        self.executable_opts = [shlex.quote(word) for word in words]

    def variant(self) -> Variant:
        """The description of what is to be launched."""
        optional = self.optional_figures
        figures = [
            WantedFigure(name=name, metric=metric, where=where, optional=name in optional, **self.margins.get(name, {}))
            for name, metric, where in self.figures
        ]
        return Variant(
            schema=1, test=self.display_name.split(" ")[0], name=self.display_name, site=self.facts["site"],
            partition=self.facts["partition"], stack=self.stack_facts["stack"], benchmark=self.benchmark,
            arguments=[str(argument) for argument in self.arguments], placement=self.placement,
            memory=self.optional("memory"), threads=self.optional("threads"), nodes=self.nodes,
            ranks_per_node=self.ranks_per_node or None, parser=self.parser, context=self.context, figures=figures,
            launches=self.launches, time_limit_s=self.launch_time_limit, environment=self.benchmark_environment,
            settings=self.library_settings, slow_on_purpose=self.slow_on_purpose,
            params={name: getattr(self, name) for name in sorted(type(self).param_space.params)},
            application=self.application_state(),
        )  # fmt: skip

    def application_state(self) -> ApplicationState | None:
        """The application that the test measures; None for a benchmark of the suite."""
        return None

    @property
    def accelerator(self) -> str | None:
        """What the stack's programs for GPUs were built with; of a stack that is not installed here, would be."""
        known = self.stack_facts
        planned = known["benchmarks"] is None
        return devices.built_with(self.facts["topology"]) if planned else known["accelerator"]

    def require_family(self, has: str) -> mpi.Family:
        """The line of the stack's MPI library; skip a stack where nothing is known of it under the name ``has``."""
        family = self.stack_facts["family"]
        known = family and getattr(mpi.TABLE[family], has)
        self.skip_if(not known, f"stack {self.current_environ.name}: {has.replace('_', ' ')} of its library not known")
        return mpi.TABLE[family]

    @property
    def scheduler(self) -> schedulers.Scheduler:
        """The scheduler of the partition."""
        return schedulers.named(self.facts["scheduler"])

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the partition."""
        return dict(self.current_partition.extras[EXTRAS])

    @property
    def stack_facts(self) -> dict[str, Any]:
        """The facts of the environment's stack."""
        return dict(self.current_environ.extras[EXTRAS])

    def optional(self, name: str) -> Any:
        """The test's value of ``name``, or None if it has none."""
        return getattr(self, name, None) or None


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
        """Set the benchmark's id in the manifest: the kernel's name, with ``-abi`` for the ABI build."""
        self.benchmark = f"{self.kernel}-abi" if self.optional("build") == "abi" else self.kernel
        self.context = {"kernel": self.kernel}

    def variant(self) -> Variant:
        """The description of what is to be launched; its parser reads JSON."""
        variant = super().variant()
        return variant if "--json" in variant.arguments else replace(variant, arguments=[*variant.arguments, "--json"])


class SuiteTest(WaitingTest):
    """A check of the suite itself: a Python module run once where ReFrame runs."""

    #: module to run with the site's name as its argument
    module = variable(str)

    valid_systems = ["*"]
    valid_prog_environs = [f"+{FEATURE}"]
    local = True
    executable = _PYTHON[0]

    @run_after("setup")
    def run_once(self) -> None:
        """Once per site: the first partition's first environment with a stack."""
        case = (self.current_partition.fullname, self.current_environ.name)
        self.skip_if(case != first_case(), "once per site is enough")
        self.executable_opts = [*_PYTHON[1:], "-m", self.module, self.current_partition.extras[EXTRAS]["site"]]

    def first_fault(self) -> str:
        """The first FAULT line of the output, for the failure message."""
        lines = (Path(self.stagedir) / self.job.stdout).read_text(encoding="utf-8").splitlines()
        return next((line for line in lines if line.startswith("FAULT ")), "the check did not end; see the job output")
