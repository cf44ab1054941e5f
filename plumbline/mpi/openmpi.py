"""Open MPI: https://docs.open-mpi.org/; its launcher is PRRTE from version 5 on, ORTE before."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from plumbline.base.errors import PlumbError, require
from plumbline.mpi import ways
from plumbline.mpi.base import Command, Family, LaunchRequest, Layout
from plumbline.mpi.settings import Knob, Rule, Setting, of_files
from plumbline.schedulers import SSH_OPTIONS, RankLauncher, RankVariables, Scheduler, Words
from plumbline.schedulers.program import answer, run

#: the components for messages between two processes
BTL = "OMPI_MCA_btl"
SSH = " ".join(("ssh", *SSH_OPTIONS))
#: the settings by which the component ``tuned`` takes algorithms from settings and files
DYNAMIC = Setting("coll_tuned_use_dynamic_rules", "1")
RULES_SETTING = "coll_tuned_dynamic_rules_filename"
RULES_FILE = "collectives.rules"
#: the numbers of collectives in files of rules: the order of ``ompi/mca/coll/base/coll_base_functions.h``
COLLECTIVES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast", "exscan",
    "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv",
)  # fmt: skip


def prrte(request: LaunchRequest) -> Command:
    """PRRTE: https://docs.open-mpi.org/en/v5.0.x/launching-apps/; ssh is what plm_ssh_agent says.

    OVERSUBSCRIBE switches its default binding off, so on one node the control has it only where nothing starts without.
    """
    layout, arguments = request.layout, []
    if layout.nodes > 1:
        arguments += ["--map-by", f"{_mapping(layout)}:OVERSUBSCRIBE"]
    elif request.bound or layout.crowded:
        arguments += ["--map-by", "slot:OVERSUBSCRIBE"]
    if layout.ssh:
        arguments += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", SSH]
    command = _command(request, arguments)
    return dataclasses.replace(command, environment={**command.environment, **_without_sleep(request)})


def _without_sleep(request: LaunchRequest) -> dict[str, str]:
    """On one node the component of BTL for libfabric is left out, unless somebody chose components.

    It carries no messages there, and closing it takes a second, for which ``mca_btl_ofi_component_close`` sleeps.
    """
    program = Path(request.program).resolve()
    if request.layout.nodes > 1 or BTL in request.environment or not program.is_file():  # it may be in an image
        return {}
    files = OpenMpi().settings_files(program.parent.parent, request.environment)
    return {} if any(name == "btl" for name, *_ in of_files(files)) else {BTL: "^ofi"}


def orte(request: LaunchRequest) -> Command:
    """ORTE: mpirun(1); its ssh component is called rsh (``ompi_info --param plm rsh``)."""
    layout, arguments = request.layout, ["--oversubscribe"]
    if layout.nodes > 1:
        arguments += ["--map-by", _mapping(layout)]
    if layout.ssh:
        arguments += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", SSH]
    return _command(request, arguments)


def _mapping(layout: Layout) -> str:
    return "node" if layout.round_robin else f"ppr:{layout.ranks_per_node}:node"


def _command(request: LaunchRequest, more: list[str]) -> Command:
    """The arguments common to both generations: number of ranks, binding, hosts, variables for ranks on other hosts."""
    layout = request.layout
    arguments = [request.program, "-n", str(layout.ranks), *more]
    if request.bound:
        arguments += ["--bind-to", "none"]
    if layout.hosts:
        arguments += ["--host", ",".join(f"{host}:{layout.ranks_per_node}" for host in layout.hosts)]
    if layout.nodes > 1:
        for name in request.exported:
            arguments += ["-x", name]
    # the launcher refuses to start as root, which is who a container runs as, unless both of these are set
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    return Command(tuple(arguments), as_root if os.geteuid() == 0 else {})


def _algorithm(collective: str, *numbers: int) -> Knob:
    """A collective's algorithm for all sizes; 0 is the library's own choice.

    ``two_proc`` is left out: it ends the program on any other number of ranks, and is the library's choice for two.
    """
    values = tuple(map(str, numbers))
    return Knob(f"coll_tuned_{collective}_algorithm", values, "running", "both", (collective,), needs=(DYNAMIC,))


#: collectives whose sizes the file counts over all ranks; a :class:`Rule` has what one rank gives one other
OF_ALL_RANKS = ("allgather", "alltoall", "gather", "reduce_scatter", "reduce_scatter_block", "scatter")


KNOBS = (
    Knob("btl_sm_eager_limit", ("8192", "16384", "32768", "65536"), "start", "intra", note="with its header, bytes"),
    Knob("btl_sm_max_send_size", ("16384", "65536", "131072"), "start", "intra", note="a fragment of a large message"),
    Knob("btl_sm_fbox_size", ("8192", "16384", "32768"), "start", "intra", note="per peer; small messages go there"),
    Knob("smsc", ("^cma",), "start", "intra", note="no single copy by CMA; alltoall may lose by it"),
    Knob("coll_han_priority", ("0",), "start", "both", note="0: no hierarchical collectives"),
    Knob("btl_tcp_eager_limit", ("16384", "262144"), "start", "inter", note="not tried"),
    Knob("pml", ("ob1", "ucx"), "start", "both", note="ucx: where it has a transport; aborts elsewhere"),
    _algorithm("allreduce", *range(1, 7)),
    _algorithm("alltoall", 1, 2, 3, 4),
    _algorithm("alltoallv", 1, 2),
    _algorithm("bcast", *range(1, 10)),
    _algorithm("allgather", 1, 2, 3, 4, 5, 7),
    _algorithm("allgatherv", 1, 2, 3, 4, 6),
    _algorithm("gather", 1, 2, 3),
    _algorithm("scatter", 1, 2, 3),
    _algorithm("reduce", *range(1, 8)),
    _algorithm("reduce_scatter", 1, 2, 3, 4),
    _algorithm("reduce_scatter_block", 1, 2, 3, 4),
    _algorithm("scan", 1, 2),
    _algorithm("barrier", 1, 2, 3, 4, 6),
)


def rules_text(rules: tuple[Rule, ...]) -> str:
    """A file of rules, version 2. Sizes of :data:`OF_ALL_RANKS` are a rule's times its ``ranks``, if it has them.

    A collective has a block for each number of ranks from which on it holds; one from 0 ranks on must be there, and a
    block begins at 0 bytes. Algorithm 0 leaves the choice to the library. Raises :class:`PlumbError` for a collective
    or an algorithm that the file cannot name, or for ranges that overlap.
    """
    lines = ["rule-file-version-2", str(len({rule.collective for rule in rules}))]
    for collective in sorted({rule.collective for rule in rules}):
        require(collective, COLLECTIVES, f"Open MPI has no rules for {collective}", "rules")
        mine = [_counted(rule) for rule in rules if rule.collective == collective]
        starts = {0} | {start for rule in mine if rule.ranks is not None for start in (rule.ranks, rule.ranks + 1)}
        lines += [f"{COLLECTIVES.index(collective)} # {collective}", str(len(starts))]
        for start in sorted(starts):
            sizes = _sizes([rule for rule in mine if rule.ranks in (None, start)])
            lines += [str(start), str(len(sizes)), *(f"{size} {number} 0 0" for size, number in sizes.items())]
    return "\n".join(lines) + "\n"


def _counted(rule: Rule) -> Rule:
    """``rule`` with its sizes as the library counts them (``coll_tuned_decision_dynamic.c``)."""
    factor = (rule.ranks or 1) if rule.collective in OF_ALL_RANKS else 1
    end = None if rule.to_bytes is None else rule.to_bytes * factor
    return replace(rule, from_bytes=rule.from_bytes * factor, to_bytes=end)


def _sizes(rules: list[Rule]) -> dict[int, int]:
    """The size from which on an algorithm holds -> its number."""
    numbers = {0: 0}
    for rule in sorted(rules, key=lambda rule: rule.from_bytes):
        if not rule.algorithm.isdigit():
            fault = f"'{rule.algorithm}' is not an algorithm of {rule.collective}"
            raise PlumbError(fault, "rules", "Open MPI needs its number")
        numbers[rule.from_bytes] = int(rule.algorithm)
        if rule.to_bytes is not None:
            numbers[rule.to_bytes] = 0
    return numbers


class OpenMpi(Family):
    """Open MPI."""

    name = "openmpi"
    abi = "openmpi"
    libraries = ("libmpi.so.40",)
    identity = r"Open MPI\)? v?(\d[\w.]*)"
    launchers = MappingProxyType({"prrte": prrte, "orte": orte})
    launcher_options = MappingProxyType(
        dict.fromkeys(
            ("prterun", "orterun"),
            Words(
                "mpirun -x NAME",
                "mpirun --map-by slot:PE=THREADS --bind-to core",
                "mpirun --map-by numa:PE=THREADS --bind-to core",
            ),
        )
    )
    launcher_programs = ("bin/mpirun",)
    rank_variables = (
        RankVariables(
            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"
        ),
    )
    failures = (
        r"^(?:prterun|mpirun|mpiexec|prte) (?:noticed|detected|was unable|has exited|has lost)",
        r"^(?:PRTE|ORTE) has lost communication",
        r"^MPI_ABORT was invoked on rank",
        r"^.*\*\*\* Process received signal \*\*\*",
    )
    shared_files = ("vader_segment.*", "sm_segment.*")
    degraded = (r"^It appears as if there is not enough space for .*",)
    #: it looks whether there is room for one rank's segment (btl_sm_segment_size), which is then filled as needed
    shared_memory = (16 << 20, 128 << 10)
    pmi = "pmix"
    setting_prefix = "OMPI_MCA_"
    knobs = KNOBS
    eager_limit = "btl_sm_eager_limit"
    eager_buffers = ("btl_sm_fbox_size", "btl_sm_fbox_max")
    switches = (*ways.OPEN_MPI, *ways.SWITCHES)
    reports = MappingProxyType({
        **Family.reports,
        **dict.fromkeys(("OMPI_MCA_btl_base_verbose", "OMPI_MCA_mtl_base_verbose", "OMPI_MCA_smsc_base_verbose"), "1"),
    })  # fmt: skip
    needs_threads_of_ucx = True
    interface = "OMPI_MCA_btl_tcp_if_include"
    linear_and_tree = MappingProxyType({"bcast": ("1", "6"), "reduce": ("1", "5")})
    parts = ("openmpi*/**/*.so*", "pmix*/**/*.so*", "prte*/**/*.so*")
    host_settings = ("etc/openmpi*/*mca-params*.conf", "etc/pmix*/*mca-params*.conf", "etc/prte*/*mca-params*.conf")
    settings = ("etc/*mca-params*.conf", "share/pmix/*mca-params*.conf")
    variables = ("OMPI_", "OPAL_", "ORTE_", "PMIX_", "PRTE_")

    def binary_interface(self, version: str) -> str:
        """Libraries of one major version run the same programs."""
        return f"{self.abi} {version.split('.')[0]}"

    def launcher_kind(self, version: str) -> str:
        """``prrte`` from version 5 on, ``orte`` before."""
        return "orte" if int(version.split(".")[0]) < 5 else "prrte"

    def reaches(self, scheduler: Scheduler, program: str) -> bool:
        """Whether it was built with a component for ``scheduler``; ``prte_info`` (or ``ompi_info``) lists them.

        The launcher in the wheels knows Slurm and PBS. Where neither program is there, the answer is yes.
        """
        tools = (Path(program).with_name(name) for name in ("prte_info", "ompi_info"))
        tool = next((tool for tool in tools if tool.exists()), None)
        if tool is None or not scheduler.open_mpi:
            return True
        components = answer([str(tool)], "Open MPI's components")
        return any(re.search(rf"^ *MCA ras: {name} ", components, re.MULTILINE) for name in scheduler.open_mpi)

    def settings_files(self, prefix: Path, environment: Mapping[str, str], root: Path = Path("/")) -> list[Path]:
        """Without those of another installation, such as Debian's: ``ompi_info`` says which folder is this one's."""
        files = super().settings_files(prefix, environment, root)
        tool = prefix / "bin" / "ompi_info"
        answer = run([str(tool), "--path", "sysconfdir", "--parsable"], 60, environment) if tool.is_file() else None
        if answer is None or answer.status != 0:
            return files
        mine = answer.stdout.strip().rpartition(":")[2]
        others = {file for pattern in self.host_settings for file in root.glob(pattern)}
        return [file for file in files if file not in others or str(file.parent) == mine]

    def step_variables(
        self, launcher: RankLauncher, plugin: str, environment: Mapping[str, str], where: str
    ) -> dict[str, str]:
        """A scheduler's PMIx may name munge, for which the library's own has no plugin: "psec munge not found"."""
        return {"PMIX_MCA_psec": "native"} if plugin.startswith("pmix") else {}

    def native_files(self, settings: tuple[Setting, ...]) -> dict[str, str]:
        """Also the text for ``~/.openmpi/mca-params.conf``, or below an installation's ``etc``."""
        lines = [f"{setting.name} = {setting.value}" for setting in settings]
        return {**super().native_files(settings), "mca-params.conf": "\n".join(lines) + "\n"}

    def rule_settings(self, rules: tuple[Rule, ...], folder: Path) -> tuple[Setting, ...]:
        """The settings by which the component ``tuned`` reads ``rules`` from a file, which is written to ``folder``."""
        if not rules:
            return ()
        file = folder / RULES_FILE
        file.write_text(rules_text(rules), encoding="utf-8")
        return (DYNAMIC, Setting(RULES_SETTING, str(file)))
