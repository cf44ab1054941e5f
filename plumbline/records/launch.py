"""One launch of a variant in its record: its end, its measurements and the observations of the witness."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plumbline.base.errors import PlumbError
from plumbline.parsers.measurement import Measurement, Number, Work
from plumbline.records.variant import WantedFigure

Position: TypeAlias = Annotated[int, Meta(ge=0)]
#: words of a cause -> its kind, without numbers and names
KINDS = {
    "(steal)": "the hypervisor took CPU time",
    "other processes used": "other processes on the planned CPUs",
    "other processes kept": "other processes beside the planned CPUs",
    "(memory pressure)": "memory pressure",
    "throttled": "a CPU too hot",
    "waited for its CPU": "waits for a CPU",
    "was stopped": "ranks that were stopped",
    "(major faults)": "pages from disk",
    "/dev/shm": "little room in /dev/shm",  # noqa: S108 - the words of a cause
}


#: how the remark begins on a launch of a command that nobody could look into
UNPROVEN = "without proof of placement"


class LoadedFile(Struct, frozen=True, gc=False):
    """A program or shared library as a process loaded it; ``build_id`` is empty if it has none."""

    path: str
    build_id: str
    bytes: int
    modified_ns: int


class Scheduling(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Policy (sched(7)), nice value and personality (personality(2)) of a process, and other ``inherited`` settings."""

    policy: str
    nice: int
    personality: int
    inherited: str = ""

    def __str__(self) -> str:
        more = f", {self.inherited}" if self.inherited else ""
        return f"{self.policy}, nice {self.nice}, personality {self.personality:#x}{more}"


class Disturbance(Struct, frozen=True, gc=False, kw_only=True):
    """The disturbances of a launch, and the figures that show them (:mod:`plumbline.launch.witness.disturbance`)."""

    disturbed: bool = False
    causes: list[str] = []
    figures: dict[str, Any] = {}
    #: processes and [kernel threads] that used most CPU time on the driver's node meanwhile, with that time
    beside: list[str] | UnsetType = UNSET

    def short(self) -> str:
        """The first cause in few words, and what ran most meanwhile; empty for an undisturbed launch."""
        if not self.causes:
            return ""
        words = self.causes[0].removeprefix("a thread of ").removesuffix(" of the time").partition(" busy on ")[0]
        more = f" (and {len(self.causes) - 1} more)" if len(self.causes) > 1 else ""
        return words + more + (f"; {self.beside[0]}" if self.beside else "")

    def tasks(self) -> list[str]:
        """The names of what ran meanwhile, without times (``process 12 ms``, ``the hypervisor 2.0 % (steal)``)."""
        return [re.sub(r" [\d.]+ (ms|% \(steal\))$", "", task) for task in self.beside or []]


class ThreadSeen(Struct, frozen=True, gc=False, omit_defaults=True):
    """A thread at the end of its rank: its name, the CPUs that it was bound to, the one that it ran on last.

    ``cpu_s`` is its CPU time, None in records of earlier versions; ``away_s`` that on CPUs that are not its rank's.
    """

    name: str
    affinity: list[int]
    last_cpu: int
    cpu_s: Number | None = None
    away_s: Number = 0.0


class OthersSeen(Struct, frozen=True, gc=False, kw_only=True):
    """Processes of a rank other than the one that did the work: program, number, CPU time of all in seconds."""

    program: str
    processes: int
    cpu_s: Number


class RankSeen(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The witness's observations of one rank.

    ``memory`` and ``usage`` are as in ``plumbline/base/schemas/witness.json``. All members but ``others`` describe the
    process that did the work. ``program`` and ``mpi`` (it called MPI_Init) are None in early records.
    ``device_variables`` are the environment variables that select GPUs; ``gpu_address`` is the PCI address of the GPU
    that the thread calling MPI_Finalize used, by the CUDA driver; None if it used none. ``mpi_library`` is the file of
    its MPI library, ``world`` the number of ranks in MPI_COMM_WORLD, None where it was not asked. ``scheduling`` is
    that at its begin, None in records of earlier versions.
    """

    program: str | None = None
    mpi: bool | None = None
    mpi_library: str | None = None
    world: int | None = None
    scheduling: Scheduling | None = None
    device_variables: dict[str, str] = {}
    gpu_address: str | None = None
    others: list[OthersSeen] = []
    host: str
    rank: int
    local_rank: int
    threads: list[ThreadSeen]
    memory: dict[str, Any]
    usage: dict[str, Any]


class SettingsSeen(Struct, frozen=True, gc=False):
    """Settings of the MPI library: those that a launch asked for, and what the measured processes had of them."""

    requested: dict[str, str] = msgspec.field(name="asked")
    seen: dict[str, str]


class Half(Struct, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The CPUs that a launch of a duet had, and begin and end of its window, in s of the kernel's monotonic clock.

    ``overlap``: the part of the shorter of both sides' windows in which both ran; None: it ran alone.
    """

    cpus: list[int]
    window: tuple[Number, Number]
    overlap: Number | None = None


class Launch(Struct, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One start of the benchmark.

    ``index`` counts the launches of the variant, ``order`` those of the session; ``start`` is UTC, ISO 8601. A launch
    that is ``superseded`` was measured again together with its pair, and counts in no figure. ``start_errors``: why it
    was started again before anything was measured. ``shm_free_bytes``: bytes free in /dev/shm of the driver's node
    before it. ``transports`` are those that the ranks had open
    (:func:`plumbline.launch.witness.model.transports_between`).
    ``remarks`` are what the program printed beyond its figures. ``energy_j``: energy of the node's
    processors during the launch in J, by counter (:mod:`plumbline.host.energy`); on several nodes by the scheduler's
    accounting alone; None where nothing could be read: ``host`` says why. ``gpu_energy_j``: energy of the node's GPUs
    during the launch in J, by PCI address. ``work`` is None where the program has no model of it.
    ``parts``: the launches of a round of a duet, of whose first two this one has the means; ``half``: of such a part.
    """

    index: Position
    order: Position
    start: str
    wall_s: Number
    status: Literal["ok", "failed", "timeout"]
    exit_code: int | None = None
    verified: bool
    reasons: list[str]
    disturbed: bool
    superseded: bool = False
    shm_free_bytes: int | None = None
    energy_j: dict[str, Number] | None = None
    gpu_energy_j: dict[str, Number] | None = None
    work: Work | None = None
    transports: list[str] = []
    disturbance: Disturbance
    measurements: list[Measurement]
    remarks: list[str] = []
    settings: SettingsSeen | None = None
    ranks: list[RankSeen]
    output_tail: str | None = None
    waiting: list[str] | None = None
    start_errors: list[str] = []
    half: Half | None = None
    parts: list[Launch] = []

    @property
    def answers(self) -> dict[str, str]:
        """The values that the program printed as its answer, by name: its remarks of the form NAME = VALUE."""
        return {name: value for name, is_answer, value in (line.partition(" = ") for line in self.remarks) if is_answer}

    @property
    def unproven(self) -> str:
        """The remark that there is no proof of where it ran; empty where there is one."""
        return next((remark for remark in self.remarks if remark.startswith(UNPROVEN)), "")

    def last_lines(self) -> list[str]:
        """The last ten lines that say something of what a launch printed that did not end well; else none."""
        lines = [] if self.status == "ok" else (self.output_tail or "").splitlines()
        return [line.rstrip() for line in lines if re.search(r"\w", line)][-10:]

    def find(self, wanted: WantedFigure) -> Measurement | None:
        """The measurement that ``wanted`` names; None if the launch failed, or printed no such line."""
        measurements = [
            item
            for item in self.measurements
            if item.metric == wanted.metric
            and all(item.params.get(key) == value for key, value in wanted.where.items())
        ]
        if not measurements:
            return None
        return (max if measurements[0].better == "higher" else min)(measurements, key=lambda item: item.value)

    def measurement(self, wanted: WantedFigure) -> Measurement:
        """The measurement that ``wanted`` names. Raises :class:`PlumbError` if the launch has none."""
        if (measurement := self.find(wanted)) is None:
            where = ", ".join(f"{key}={value}" for key, value in wanted.where.items()) or "any size"
            raise PlumbError(f"figure {wanted.name} is absent: no {wanted.metric} at {where}", f"launch {self.order}")
        return measurement


def kind(cause: str) -> str:
    """The kind of a cause, from :data:`KINDS`; a cause in words of an earlier version is returned as it is."""
    return next((name for words, name in KINDS.items() if words in cause), cause)
