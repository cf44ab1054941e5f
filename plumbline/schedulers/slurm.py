"""Slurm: sbatch(1), salloc(1), srun(1), sinfo(1), scancel(1). https://slurm.schedmd.com/

ReFrame knows it by two names: ``slurm`` asks the accounting database how a job ended, ``squeue`` does without one.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from plumbline.base.errors import PlumbError
from plumbline.schedulers import names
from plumbline.schedulers.base import (
    WHERE_STATES,
    Job,
    Node,
    RankVariables,
    Scheduler,
    Step,
    Words,
    clock_seconds,
    joined,
    three_columns,
)
from plumbline.schedulers.program import answer, run

WHERE_LIMIT = "sinfo -o %l"
USABLE = {"idle", "mixed", "allocated", "completing", "planned"}
#: states of nodes that are kept for the jobs of a reservation
RESERVED = {"reserved", "maint"}
#: signs of nodes that take jobs; power saving (``~``, ``#``) wakes them. Other signs (reboot …) keep jobs away.
WAKES = {"~", "#", "-", "+"}
#: the meanings of two other signs
SIGNS = {"$": "in a maintenance reservation", "*": "does not respond"}
#: where distributions and sites put Slurm's libraries; beside srun's own prefix
LIBRARY_FOLDERS = (
    "usr/lib64", "usr/lib/{machine}-linux-gnu", "usr/lib64/slurm", "usr/lib/{machine}-linux-gnu/slurm",
    "usr/lib/{machine}-linux-gnu/slurm-wlm", "usr/lib", "usr/local/lib64", "usr/local/lib", "opt/slurm/lib64",
    "opt/slurm/lib", "opt/slurm/current/lib",
)  # fmt: skip
#: the library by which a program speaks a PMI
PMI_LIBRARIES = {"pmi2": ("libpmi2.so", "libpmi2.so.0")}
STEP_COLUMNS = "JobID,State,NNodes,Start,ConsumedEnergyRaw"
#: states of a step that has not ended
GOING = ("RUNNING", "PENDING", "SUSPENDED", "COMPLETING")
#: from this number on, Slurm means that there is no value (NO_VAL, INFINITE)
NO_VALUE = 0xFFFFFFFE
#: seconds that ``srun --mpi=list``, sacct or scontrol may take
PATIENCE_S = 30.0


class Srun:
    """srun(1) and https://slurm.schedmd.com/mpi_guide.html."""

    name = "srun"
    error = "srun: error: "

    def command(
        self,
        nodes: int,
        ranks_per_node: int,
        hosts: Sequence[str],
        *,
        round_robin: bool,
        bound: bool,
        plugin: str | None,
    ) -> list[str]:
        """There is no ``--cpus-per-task``: with it a step gets just as many CPUs of its job, without it all of them.

        Without ``plugin``, ``--mpi`` comes from SLURM_MPI_TYPE in the stack's environment.
        """
        # a rank that fails ends the others, as with every mpirun
        words = ["srun", *([f"--mpi={plugin}", "--kill-on-bad-exit=1"] if plugin is not None else [])]
        words += [f"--nodes={nodes}", f"--ntasks={nodes * ranks_per_node}", f"--ntasks-per-node={ranks_per_node}"]
        words += ["--distribution=cyclic"] if round_robin else []
        words += ["--cpu-bind=none"] if bound else []
        return words + ([f"--nodelist={','.join(hosts)}"] if hosts else [])

    @functools.cache  # noqa: B019 - there is one object of this class
    def plugins(self) -> tuple[str, ...]:
        """The names in the answer of ``srun --mpi=list``.

        Lines are ``MPI plugin types are...``, then a name each, and ``specific pmix plugin versions available:
        pmix_v4``; before Slurm 21.08 ``srun: MPI types are...`` and ``srun: pmi2``.
        """
        try:
            done = subprocess.run(
                ["srun", "--mpi=list"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
            )
        except OSError as error:
            cure = "set launcher: mpirun in site.yaml, or put srun into PATH"
            raise PlumbError(f"srun cannot be started: {error.strerror}", "launcher: srun", cure) from error
        except subprocess.TimeoutExpired as error:
            message = f"srun --mpi=list does not answer within {PATIENCE_S:g} s"
            raise PlumbError(message, "launcher: srun", "is Slurm up?") from error
        text = f"{done.stdout}\n{done.stderr}"
        plugins = re.findall(r"^(?:srun:)?[ \t]*([a-z][a-z0-9_]*)[ \t]*$", text, re.MULTILINE)
        versions = " ".join(re.findall(r"versions available:(.*)", text))
        return tuple(dict.fromkeys((*plugins, *re.findall(r"[a-z][a-z0-9_]*", versions))))

    def library(self, plugin: str, root: Path = Path("/")) -> Path | None:
        """Slurm's own library for ``plugin`` in srun's prefix or a usual folder."""
        folders = [root / folder.format(machine=os.uname().machine) for folder in LIBRARY_FOLDERS]
        srun = shutil.which("srun")
        if srun is not None:
            prefix = Path(srun).resolve().parent.parent
            folders = [prefix / "lib64", prefix / "lib", prefix / "lib" / "slurm", *folders]
        files = (folder / name for folder in folders for name in PMI_LIBRARIES.get(plugin, ()))
        return next((file for file in files if file.is_file()), None)


class Slurm(Scheduler):
    """Slurm, under one of its two names."""

    can_pin = True
    health = "slurm"
    queue_options = ("--partition", "-p")
    #: set in the shell of an allocation too
    job_variable = "SLURM_JOB_ID"
    job_variables = ("SLURM_", "SLURMD_", "SRUN_")
    step_settings = ("SLURM_CPU_FREQ_REQ", "SLURM_HINT", "SLURM_MEM_BIND", "SLURM_NETWORK", "SLURM_THREADS_PER_CORE")
    #: ``4711``, or ``4711;cluster`` of a federation
    id_line = r"^(\d+(?:;[\w.-]+)?)$"
    no_restart = ("--no-requeue",)
    rank_launcher = Srun()
    words = MappingProxyType(
        {
            "srun": Words(
                "srun --export=ALL",
                "srun --cpus-per-task=THREADS --cpu-bind=cores",
                "srun --cpus-per-task=THREADS --distribution=block:cyclic --cpu-bind=cores",
            )
        }
    )
    failures = (r"^(?:srun|slurmstepd)(?:-[^:]*)?: error: ",)
    rank_variables = (
        RankVariables("SLURM_PROCID", "SLURM_LOCALID", None, "SLURM_STEP_NUM_TASKS"),
        RankVariables("SLURM_PROCID", "SLURM_LOCALID", None, "SLURM_NTASKS"),
    )
    #: variables of a job script that would give a step fewer CPUs, fewer variables or another order of ranks
    #: than its command line says: https://slurm.schedmd.com/srun.html#SECTION_INPUT-ENVIRONMENT-VARIABLES
    hidden_variables = (
        "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_TRES_PER_TASK",
        "SLURM_DISTRIBUTION", "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV",
    )  # fmt: skip
    open_mpi = ("slurm",)
    unbound_steps = MappingProxyType({"SLURM_CPU_BIND": "none"})
    steps_without_pmi = MappingProxyType({"SLURM_MPI_TYPE": "none"})

    def __init__(self, name: str, status_program: str) -> None:
        self.name = name
        self.programs = ("sbatch", "salloc", "srun", "sinfo", "scontrol", status_program)

    def hosts(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """From SLURM_JOB_NODELIST, such as ``node[1-3,7]``."""
        folded = environment.get("SLURM_JOB_NODELIST")
        return tuple(names.expand(folded, "SLURM_JOB_NODELIST")) if folded else ()

    def host_name(self, environment: Mapping[str, str]) -> str:
        """NodeName of slurm.conf, which need not be the host's own name."""
        return environment.get("SLURMD_NODENAME") or socket.gethostname()

    def may_fork_proxy(self, environment: Mapping[str, str]) -> bool:
        """A step costs Slurm's daemons a few percent of a short launch's CPU time, which would count as disturbance.

        SLURMD_NODENAME is set on the nodes of a job only, not in a shell of salloc on a login host.
        """
        return "SLURMD_NODENAME" in environment

    def energy_source(self) -> str | None:
        """Slurm's accounting with the plugin that ``AcctGatherEnergyType`` of slurm.conf names, if it names one."""
        return _energy_source() if shutil.which("sacct") and shutil.which("scontrol") else None

    def steps(self, environment: Mapping[str, str]) -> Mapping[str, Step]:
        """By sacct, which knows a step some time after its end; none where no energy is counted."""
        job = environment.get(self.job_variable)
        if job is None or self.energy_source() is None:
            return {}
        command = ["sacct", "-n", "-P", "-j", job, "-o", STEP_COLUMNS]
        return read_steps(answer(command, "sacct", PATIENCE_S, {**environment, "SLURM_TIME_FORMAT": "%s"}))

    def submit(self, job: Job, script: Path) -> list[str]:
        """``--wait`` ends with the job's exit status, ``--parsable`` prints the job's number only."""
        shape = [f"--job-name={job.name}", f"--nodes={job.nodes}", "--ntasks-per-node=1", "--exclusive"]
        options = [*shape, *self.no_restart, f"--output={job.log}", *job.access, *_on(job.hosts)]
        return ["sbatch", "--wait", "--parsable", *options, str(script)]

    def cancel(self, job_id: str) -> list[str]:
        """scancel(1); a job of another cluster is named with it."""
        number, _, cluster = job_id.partition(";")
        return ["scancel", *([f"--clusters={cluster}"] if cluster else []), number]

    def on_every_node(self, job: Job, command: Sequence[str]) -> list[list[str]]:
        """A step of its own job: srun alone would give each task one CPU of the whole node that it asked for."""
        shape = [f"--nodes={job.nodes}", f"--ntasks={job.nodes}", "--ntasks-per-node=1"]
        ask = ["salloc", "--quiet", *shape, "--exclusive", f"--time={job.minutes}", f"--job-name={job.name}"]
        ask += [*_on(job.hosts), *self.in_queue(job.queue)]
        return [[*ask, *joined(job.access), "srun", *shape, "--cpu-bind=none", "--mpi=none", *command]]

    def on_one_node(self, access: Sequence[str], hosts: Sequence[str], command: Sequence[str]) -> list[str]:
        """By srun, which cancels its job at an interrupt."""
        shape = ["--job-name=plumb-preflight", "--chdir=/", "--nodes=1", "--ntasks=1", "--time=1"]
        return ["srun", "--quiet", *shape, *access, *command]

    def nodes(self, queue: str | None, hosts: Sequence[str] = (), access: Sequence[str] = ()) -> list[Node]:
        """By sinfo; where the options name a reservation, the nodes of it: others take no job with these options."""
        text = answer(["sinfo", "-N", "-h", "-o", "%N|%T|%E", *self.in_queue(queue)], WHERE_STATES)
        named = re.findall(r"(?:^| )--reservation[= ](\S+)", " ".join(access))
        if not named:
            return read_nodes(text)
        shown = answer(["scontrol", "--oneliner", "show", "reservation"], WHERE_STATES)
        # one of licences alone has Nodes=(null)
        known = re.findall(r"^ReservationName=(\S+) .* Nodes=([^\s(]+)", shown, re.MULTILINE)
        folded = [nodes for name, nodes in known if name in named[-1].split(",")]
        nodes = read_nodes(text, [name for word in folded for name in names.expand(word, WHERE_STATES)])
        if not nodes:
            fault = f"reservation {named[-1]} has no node of {queue or 'the cluster'}"
            raise PlumbError(fault, WHERE_STATES, "scontrol show reservation lists all")
        return nodes

    def longest_job(self, queue: str | None) -> int | None:
        """The least time limit of the partition, by sinfo; None without one, and on a host that has no sinfo."""
        if shutil.which("sinfo") is None:
            return None
        limits = map(seconds, _lines(answer(["sinfo", "-h", "-o", "%l", *self.in_queue(queue)], WHERE_LIMIT)))
        return min((limit for limit in limits if limit is not None), default=None)

    def pin(self, node: str) -> list[str]:
        """A node list that is shorter than the job is filled up with other nodes."""
        return [f"--nodelist={node}"]


@functools.cache
def _energy_source() -> str | None:
    """From ``scontrol show config``: ``AcctGatherEnergyType = acct_gather_energy/rapl``; .../none and (null): none."""
    done = run(["scontrol", "show", "config"], PATIENCE_S)
    match = re.search(r"^AcctGatherEnergyType\s*=\s*(?:acct_gather_energy/)?(\w+)\s*$", done.stdout, re.MULTILINE)
    return f"Slurm's accounting ({match[1]})" if match and match[1] != "none" else None


def read_steps(text: str) -> dict[str, Step]:
    r"""``sacct -n -P -o`` :data:`STEP_COLUMNS`: steps that have ended, not the script's nor the job.

    0 J is not a count: the step ended before the plugin looked a second time.

    >>> read_steps("7|RUNNING|2|50|\n7.batch|RUNNING|1|50|\n7.0|COMPLETED|2|51|913\n7.1|FAILED|1|60|0\n")
    {'7.0': Step(start=51.0, nodes=2, joules=913.0), '7.1': Step(start=60.0, nodes=1, joules=None)}
    """
    steps = {}
    for line in filter(str.strip, text.splitlines()):
        name, state, nodes, start, joules = (line.split("|") + [""] * 5)[:5]
        if re.search(r"\.\d+$", name) and state not in GOING:
            known = joules.isdecimal() and 0 < int(joules) < NO_VALUE
            steps[name] = Step(float(start), int(nodes), float(joules) if known else None)
    return steps


def _on(hosts: Sequence[str]) -> list[str]:
    return [f"--nodelist={names.fold(hosts)}"] if hosts else []


def read_nodes(text: str, reservation: Sequence[str] | None = None) -> list[Node]:
    """``sinfo -N -h -o '%N|%T|%E'``: a line per node (and partition): name, state in full, reason (``none``).

    The state may end in signs: ``*`` does not respond, ``~`` ``#`` powered off or booting, ``%`` ``!`` powering off,
    ``$`` in maintenance, ``@`` ``^`` rebooting, ``-`` planned for a job, ``+`` a job is completing. Of the nodes of a
    ``reservation``, those that are kept for it can be used by jobs that name it; None: jobs name no reservation.
    """
    inside = set(reservation or ())
    states, signs = (USABLE | RESERVED, WAKES | {"$"}) if inside else (USABLE, WAKES)
    nodes: dict[str, Node] = {}
    for line in _lines(text):
        name, state, reason = three_columns(line, "sinfo")
        base = state.rstrip("*~#!%$@^-+")
        usable = base in states and set(state[len(base) :]) <= signs
        why = [text for sign, text in SIGNS.items() if sign in state]
        why += [] if reason.lower() in ("none", "n/a") else [reason]
        node = Node(names.host(name, "sinfo"), state, usable, "; ".join(why))
        nodes.setdefault(node.name, node)
    return [node for node in nodes.values() if reservation is None or node.name in inside]


def _lines(text: str) -> list[str]:
    """The lines of an answer, without the headings ``CLUSTER: name`` where SLURM_CLUSTERS or ``-M`` names clusters."""
    return [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"CLUSTER: \S+\s*$", line)]


def seconds(text: str) -> int | None:
    """Seconds of Slurm's time limit ``[days-][[hours:]minutes:]seconds``; None for ``infinite`` and ``n/a``.

    >>> seconds("1:00:00"), seconds("2-00:00:30"), seconds("30:00"), seconds("infinite")
    (3600, 172830, 1800, None)
    """
    return None if text in ("infinite", "n/a") else clock_seconds(text, WHERE_LIMIT, "sinfo")
