"""Sites: partitions, scheduler, stacks and hardware facts (``site-configs/NAME/site.yaml``).

These types are at the bottom of the package because jobs, launchers and limits all take a partition; which words
schedulers and MPI libraries have for it, their own rooms know (:func:`plumbline.site.check`).
What a file does not say has the value that stands here; 0 and an empty text are never written.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

#: ``(?!\n)``: Python's ``$`` passes over a line's end
Name: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$(?!\n)")]
StackName: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@+-]*$(?!\n)")]
Host: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
Variable: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")]
Rate: TypeAlias = Annotated[float, Meta(gt=0, le=1_000_000)]
Seconds: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Width: TypeAlias = Annotated[int, Meta(ge=1, le=65536)]

#: the launcher of a stack itself
MPIRUN = "mpirun"


class Facts(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Hardware facts for physical limits. Unknown facts are left out, never guessed.

    ``memory_mts``: mega-transfers per second per channel; ``core_ghz``: the highest clock that a core runs at;
    ``flops_per_cycle``: double precision, per core, else from ``fma_units`` (of a core) of ``simd_bits`` (width of a
    vector register) each; ``cache_bytes_per_cycle``: what a core loads and stores from its first-level cache.
    """

    memory_channels_per_package: Annotated[int, Meta(ge=1, le=1024)] = 0
    memory_mts: Rate = 0
    memory_bytes_per_transfer: Annotated[int, Meta(ge=1, le=4096)] = 8
    core_ghz: Annotated[float, Meta(gt=0, le=100)] = 0
    flops_per_cycle: Annotated[int, Meta(ge=1, le=1_000_000)] = 0
    fma_units: Annotated[int, Meta(ge=1, le=1024)] = 0
    simd_bits: Annotated[int, Meta(ge=64, le=65536, multiple_of=64)] = 0
    cache_bytes_per_cycle: Width = 0
    link_gbit: Rate = 0


class Partition(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A partition.

    ``launcher``: how ranks are started inside a job; mpirun is the stack's own. ``srun_mpi``: srun --mpi= by MPI
    family, where it is not pmix (openmpi) or pmi2 (the others). ``environment``: variables of every launch, also of
    ranks on other nodes; they go before the stack's own. ``hosts``: the nodes by name, where no scheduler gives them
    (schedulers local and ssh). A job that waits longer than ``max_pending_s`` for its nodes is cancelled and fails;
    ``max_job_s`` is the longest job that the partition takes (no default: no limit). ``nodes``: how many one test may
    use. ``topology``: hwloc XML below the site folder. ``prepare``: shell lines at the start of each job; variables
    that change figures reach launches by ``environment`` only.
    """

    name: Name
    description: str = ""
    scheduler: str
    access: list[str] = []
    launcher: str = MPIRUN
    srun_mpi: dict[str, Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$(?!\n)")]] = {}
    environment: dict[Variable, str] = {}
    hosts: Annotated[list[Host], Meta(min_length=1)] = []
    max_pending_s: Seconds = 3600
    max_job_s: Annotated[int, Meta(ge=60, le=100_000_000)] = 0
    nodes: Annotated[int, Meta(ge=1, le=1_000_000)] = 0
    topology: str
    stacks: list[StackName]
    prepare: list[str] = []
    facts: Facts = Facts()

    @property
    def nodes_offered(self) -> int:
        """How many nodes one test may use: ``nodes``, else one, or all hosts that it names."""
        return self.nodes or max(1, len(self.hosts))


class Site(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A site: its partitions, the stacks that they offer, and the hardware facts that physical limits are made of.

    ``hostnames`` are regular expressions of the login hosts. An ``archived`` one is a machine of the past: job scripts
    can be made for it, nothing runs.
    """

    schema: Literal[1]
    name: Name
    description: str
    hostnames: Annotated[list[str], Meta(min_length=1)]
    archived: bool = False
    modules_system: Literal["nomod", "envmod", "tmod4", "lmod"] = "nomod"
    partitions: Annotated[list[Partition], Meta(min_length=1)]
