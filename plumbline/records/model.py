"""What a record is: the one definition, as types that decode JSON and check it.

A record that decodes is complete and valid in form; nothing else has to be checked. Members that a type does not name
are an error in :class:`Record`, :class:`Launch` and :class:`Figure`, whose members the suite alone decides; elsewhere
they are ignored, so that files written by other versions stay readable. ``plumbline/schemas/record.json`` is made from
these types (``tests/support/schema_files.py``), for readers that are not Python.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plumbline import schemas
from plumbline.base.errors import PlumbError
from plumbline.base.units import Better, human
from plumbline.limits.peaks import Limit
from plumbline.parsers.measurement import Measurement, Number, Work
from plumbline.records import seal
from plumbline.records.variant import Variant, WantedFigure
from plumbline.topology.plan import Plan
from plumbline.witness.model import LoadedFile
from plumbline.witness.scheduling import Scheduling

#: members of ``host`` that change from minute to minute and say nothing about the machine
FLEETING = ("load",)

#: a ceiling is suspect if a figure exceeds it by more than this, or than the spread of its launches if that is larger,
#: and did not raise it
CEILING_MARGIN_PERCENT = 5

#: UTC, ISO 8601; the month is in the names of compacted files
Time: TypeAlias = Annotated[str, Meta(pattern="^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}T[0-9:.]+Z$")]
Position: TypeAlias = Annotated[int, Meta(ge=0)]
State: TypeAlias = Literal["running", "complete", "interrupted"]
Side: TypeAlias = Literal["baseline", "candidate"]
Verdict: TypeAlias = Literal["invalid", "unreferenced", "within", "below", "above"]
Provenance: TypeAlias = Literal["measured", "imported"]


class Disturbance(Struct, frozen=True, gc=False, kw_only=True):
    """What disturbed a launch, and the figures by which it was found (:mod:`plumbline.witness.disturbance`)."""

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


class ThreadSeen(Struct, frozen=True, gc=False):
    """A thread at the end of its rank: its name, the CPUs that it was bound to, the one that it ran on last."""

    name: str
    affinity: list[int]
    last_cpu: int


class OthersSeen(Struct, frozen=True, gc=False, kw_only=True):
    """Processes of a rank other than the one that did the work: program, number, CPU time of all in seconds."""

    program: str
    processes: int
    cpu_s: Number


class RankSeen(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What the witness saw of one rank; ``memory`` and ``usage`` are as ``plumbline/schemas/witness.json`` says.

    All members but ``others`` describe the process that did the work. ``program`` and ``mpi`` (it called MPI_Init) are
    None in early records. ``device_variables`` are the environment variables that select GPUs; ``gpu_address`` is the
    PCI address of the GPU that the thread calling MPI_Finalize used, by the CUDA driver; None if it used none.
    ``mpi_library`` is the file of its MPI library, ``world`` the number of ranks in MPI_COMM_WORLD, None where it was
    not asked. ``scheduling`` is that at its begin, None in records of earlier versions.
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

    asked: dict[str, str]
    seen: dict[str, str]


class Idle(Struct, frozen=True, gc=False, kw_only=True):
    """Power in W that node ``host`` used while nothing was measured, by the counters of the launches' energy."""

    power_w: Number
    host: str
    measured: Time


class Launch(Struct, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One start of the benchmark.

    ``index`` counts the launches of the variant, ``order`` those of the session; ``start`` is UTC, ISO 8601. A launch
    that is ``superseded`` was measured again together with its pair, and counts in no figure. ``start_errors``: why it
    was started again before anything was measured. ``shm_free_bytes``: bytes free in /dev/shm of the driver's node
    before it. ``transports`` are those that the ranks had open (:func:`plumbline.witness.model.transports_between`).
    ``remarks`` are what the program printed beyond its figures. ``energy_j``: energy of the node's
    processors during the launch in J, by counter (:mod:`plumbline.host.energy`); on several nodes by the scheduler's
    accounting alone; None where nothing could be read: ``host`` says why. ``gpu_energy_j``: energy of the node's GPUs
    during the launch in J, by PCI address. ``work`` is None where the program has no model of it.
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

    def last_lines(self) -> list[str]:
        """The last ten lines that say something of what a launch printed that did not end well; else none."""
        told = [] if self.status == "ok" else (self.output_tail or "").splitlines()
        return [line.rstrip() for line in told if re.search(r"\w", line)][-10:]

    def find(self, wanted: WantedFigure) -> Measurement | None:
        """The measurement that ``wanted`` names; None if the launch failed, or printed no such line."""
        needed = wanted.where.items()
        found = [
            item
            for item in self.measurements
            if item.metric == wanted.metric and all(item.params.get(key) == value for key, value in needed)
        ]
        if not found:
            return None
        return (max if found[0].better == "higher" else min)(found, key=lambda item: item.value)

    def measurement(self, wanted: WantedFigure) -> Measurement:
        """The measurement that ``wanted`` names. Raises :class:`PlumbError` if the launch has none."""
        found = self.find(wanted)
        if found is None:
            where = ", ".join(f"{key}={value}" for key, value in wanted.where.items()) or "any size"
            what = f"figure {wanted.name} is absent: no {wanted.metric} at {where}"
            raise PlumbError(what, f"launch {self.order}")
        return found


class Ceiling(Struct, frozen=True, gc=False, kw_only=True):
    """What the machine reached when it was measured, at the time ``measured``, by ``method``; it is not a limit.

    Without a time it is what the benchmark's own model gives for the launches of the figure. ``spread_percent`` is the
    spread of the launches that gave it, ``percent`` the percentage of it that the figure reached. ``raised_from`` is
    its value before the figure's record raised it; None if the record did not.
    """

    value: Number
    unit: str
    method: str
    spread_percent: Number
    percent: Number
    measured: Time | None
    raised_from: Number | None = None

    @property
    def name(self) -> str:
        """Its name in "percent of NAME"."""
        return self.method if self.measured is None else f"ceiling {self.method}"

    @property
    def mark(self) -> str:
        """The letter behind its percentage in tables."""
        return "m" if self.measured is None else "c"

    @property
    def raising(self) -> str:
        """From what to what the figure's record raised it; empty if it did not."""
        if self.raised_from is None:
            return ""
        before, after = (" ".join(human(value, self.unit)) for value in (self.raised_from, self.value))
        return f"{self.name} raised from {before} to {after}"

    @property
    def suspect(self) -> bool:
        """Whether the figure exceeds it so clearly that the ceiling must be wrong; always false for a model."""
        return self.measured is not None and self.percent > 100 + max(self.spread_percent, CEILING_MARGIN_PERCENT)


class Reference(Struct, frozen=True, gc=False, kw_only=True):
    """The reference of a figure; ``lower`` and ``upper`` are bounds as fractions of ``value``, None for no bound."""

    value: Number
    unit: str
    method: str
    lower: Number | None = None
    upper: Number | None = None
    file: str


class Reached(NamedTuple):
    """How many ``percent`` of ``bound`` a figure reached; ``mark`` is the letter behind it in tables, or empty."""

    percent: float
    bound: str
    mark: str

    def __str__(self) -> str:
        return f"{self.percent:.1f} % of {self.bound}"


class Figure(Struct, gc=False, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A figure of merit of a record: the median of ``samples``, one for each launch that counts, in their order.

    ``limit`` is None where the site's facts give none; ``ceiling`` is None where there is a limit, or neither a
    measurement nor a model; ``reference`` is None where the site has none.
    """

    name: str
    value: Number
    unit: str
    better: Better
    launches: int
    samples: Annotated[list[Number], Meta(min_length=1)]
    limit: Limit | None
    reference: Reference | None
    ceiling: Ceiling | None = None

    @property
    def reached(self) -> Reached | None:
        """What all views show as its percentage: of the limit, or else of the ceiling; None with neither."""
        if self.limit is not None:
            percent = 100 * self.value / self.limit.value if self.limit.percent is None else self.limit.percent
            return Reached(percent, self.limit.method, "")
        return Reached(self.ceiling.percent, self.ceiling.name, self.ceiling.mark) if self.ceiling else None

    @classmethod
    def of(cls, name: str, chosen: list[Measurement]) -> Figure:
        """The figure ``name`` that the ``chosen`` measurements give, one of each launch that counts."""
        samples = [item.value for item in chosen]
        return cls(
            name=name,
            value=statistics.median(samples),
            unit=chosen[0].unit,
            better=chosen[0].better,
            launches=len(samples),
            samples=samples,
            limit=None,
            reference=None,
        )


class Suite(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The state of the suite that made a record.

    ``commit`` and ``dirty`` are None outside a git checkout, and where git failed; then ``unknown`` says why.
    """

    version: str
    commit: str | None
    dirty: bool | None
    unknown: str | None = None


class Mpi(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An MPI library: its family, its version, and the family whose binaries it runs."""

    family: str
    version: str
    abi: str | None = None


class Image(Struct, frozen=True, gc=False, kw_only=True):
    """The image of a stack, with its SHA-256; ``mode``: its own MPI library is used, or the host's."""

    engine: str
    mode: str
    image: str
    sha256: str


class Stack(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The stack of a record, from its manifest, whose SHA-256 is ``sha256``."""

    name: str
    provider: str
    mpi: Mpi
    compiler: dict[str, Any]
    sources: list[Any]
    sha256: str
    container: Image | None = None

    @property
    def origin(self) -> str:
        """The provider, and of an image what runs it."""
        image = self.container
        more = f", {image.engine}, image {image.sha256[:12]}, MPI library: {image.mode}" if image else ""
        return f"provider {self.provider}{more}"


class Benchmark(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The benchmark as the stack's manifest has it: ``sha256`` is that of ``file``, which carries it."""

    suite: str
    version: str
    command: list[str]
    file: str
    sha256: str
    built: str
    facts: dict[str, Any] = {}


class Placement(Struct, frozen=True, gc=False, kw_only=True):
    """Where ranks and threads ran, as far as a name and numbers say it; ``Record.plan`` has every CPU."""

    name: str
    memory: str
    threads: int
    ranks_per_node: int
    nodes: int


class _Common(Struct, gc=False, kw_only=True):
    """What a record and its row have in common: what was measured where, and what came of it.

    ``time`` is the start of the session (UTC, ISO 8601). ``campaign`` is the same for all records of one ``plumb
    campaign`` or ReFrame run. ``provenance``: figures that are ``imported`` come from another program, and nothing
    about them was witnessed; such a record is never verified. ``reasons`` say why a record is not verified or not
    valid. ``host`` has the facts of the node that ran the driver.
    """

    schema: Literal[1] = 1
    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    session: str
    campaign: str | None
    time: Time
    state: State
    site: str
    partition: str
    nodes: list[str]
    suite: Suite
    stack: Stack
    variant: Variant
    placement: Placement
    host: dict[str, Any]
    verified: bool
    reasons: list[str]
    verdict: Verdict
    figures: list[Figure]
    provenance: Provenance = "measured"

    @property
    def is_imported(self) -> bool:
        """Whether its figures come from another program."""
        return self.provenance == "imported"

    @property
    def is_comparable(self) -> bool:
        """Whether its figures may be compared with others: it is valid, or imported without faults."""
        return self.is_valid or (self.is_imported and not self.faults)

    @property
    def is_verified(self) -> bool:
        """Whether every launch ran where the plan put it."""
        return self.verified

    @property
    def is_valid(self) -> bool:
        """Whether the figures may be used: complete, verified and not invalid."""
        return self.is_verified and not self.faults and self.verdict != "invalid"

    @property
    def is_profiled(self) -> bool:
        """Whether its launches were profiled: their times include the cost of that, and are not measurements."""
        return self.variant.profiled

    @property
    def faults(self) -> list[str]:
        """Why the figures may not be used: what is incomplete, then ``reasons``."""
        state = [] if self.state == "complete" else [f"it is {self.state}, not complete"]
        return state + ["it was profiled: no measurement"] * self.is_profiled + self.reasons

    @property
    def final_verdict(self) -> Verdict:
        """``verdict`` once the record is complete; ``invalid`` before, and for a profiled record."""
        return self.verdict if self.state == "complete" and not self.is_profiled else "invalid"

    def figure(self, name: str) -> Figure | None:
        """The figure of that name, None if there is none."""
        return next((figure for figure in self.figures if figure.name == name), None)


class Row(_Common, kw_only=True):
    """A record without what its launches measured, saw and cost: what lists, histories and references are made of.

    A record is some ten to thirty kilobytes, its row a few hundred bytes. ``launch_count`` and ``disturbed_count`` are
    about the launches that count, ``host`` is without ``FLEETING``. Rows share equal objects: do not change them.
    """

    launch_count: int
    disturbed_count: int


class Record(_Common, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything about one test variant in one session.

    ``verified``: every launch is verified, and there is one at least. ``seed`` is that of the order of launches
    (early records have it in ``environment``, as ``PLUMB_SEED``).
    ``environment`` has the variables that the launches were given, without those that every launch keeps;
    ``removed_variables`` names inherited ones that would have changed figures and were not handed on.
    ``loaded`` names the files that ranks loaded, at the end of their programs (early records lack it).
    ``hosts``, of a variant on several nodes, has the provenance of each, or why it is missing.
    ``side`` is that of a live gate, which measures until it knows; else the number of launches was fixed beforehand.
    ``idle`` is None where no energy could be read when the ceilings were measured.
    ``seal`` is that of its line (``plumbline.records.seal``), None in records of earlier versions.
    """

    schema: Literal[1]
    benchmark: Benchmark
    plan: Plan
    launches: list[Launch]
    command: list[str]
    seed: int | None = None
    environment: dict[str, str] = {}
    removed_variables: list[str] = []
    loaded: list[LoadedFile] = []
    hosts: list[dict[str, Any]] | None = None
    side: Side | None = None
    idle: Idle | None = None
    seal: str | None = None

    def counting(self) -> list[Launch]:
        """The launches that count in the figures, in order: all but those that were measured again."""
        return [launch for launch in self.launches if not launch.superseded]

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the MPI library that its launches asked for: the value that was seen, or that none was."""
        found = next((launch.settings for launch in self.launches if launch.settings), None)
        if found is None:
            return {}
        return {name: found.seen.get(name, f"asked for {value}, not seen") for name, value in found.asked.items()}

    @property
    def is_verified(self) -> bool:
        """Whether the record and each of its launches say so."""
        return self.verified and all(launch.verified for launch in self.launches)

    @property
    def launch_count(self) -> int:
        """How many launches count."""
        return len(self.counting())

    @property
    def disturbed_count(self) -> int:
        """How many of the launches that count were disturbed."""
        return sum(launch.disturbed for launch in self.counting())

    @property
    def transports(self) -> list[str]:
        """Those that the ranks had open in any launch that counts."""
        return sorted({word for launch in self.counting() for word in launch.transports})

    @property
    def is_slow_on_purpose(self) -> bool:
        """Whether it shows what is lost, so that no limit is expected of it: its test says so, or nothing is bound."""
        return self.variant.slow_on_purpose or self.plan.bound is False

    def contradiction(self) -> str | None:
        """How the figures contradict themselves or the number of launches that count; None if they do not.

        Only of a record that is valid: an interruption may come between a launch and the figures.
        """
        if self.is_profiled and (self.figures or any(launch.measurements for launch in self.launches)):
            return "it was profiled, and has figures or measurements"
        if not self.is_valid:
            return None
        counting = self.launch_count
        for figure in self.figures:
            samples = figure.samples
            if not samples or not len(samples) == figure.launches == counting:
                return f"figure {figure.name} has {len(samples)} samples of {counting} launches that count"
            if not all(0 <= sample < math.inf for sample in samples):
                return f"figure {figure.name} has a sample that is negative or not finite"
            if figure.value != statistics.median(samples):
                return f"figure {figure.name} is {figure.value:g}, not the median of its samples"
        return None

    def unlike_launches(self) -> str | None:
        """The first figure of a valid record whose samples are not what its launches measured; None if there is none.

        What has a seal needs no such search, which takes half as long as decoding.
        """
        counting = self.counting()
        wanted = {one.name: one for one in self.variant.figures}
        for figure in self.figures if self.is_valid else []:
            known = wanted.get(figure.name)
            found = [known and launch.find(known) for launch in counting]
            if [one and one.value for one in found] != figure.samples:
                return f"the samples of figure {figure.name} are not what the launches measured"
        return None

    def row(self) -> Row:
        """What lists and histories need of it."""
        common = {name: getattr(self, name) for name in _Common.__struct_fields__}
        common["host"] = {name: value for name, value in self.host.items() if name not in FLEETING}
        common["verified"] = self.is_verified
        return Row(**common, launch_count=self.launch_count, disturbed_count=self.disturbed_count)


#: a record, or its row: what views and references take
AnyRecord: TypeAlias = Record | Row

_DECODER = msgspec.json.Decoder(Record)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(line: bytes) -> Record:
    """The record that a line of JSON is. Raises ValueError, with the path of the first member that is wrong."""
    try:
        return _writable(_DECODER.decode(line), line)
    except msgspec.ValidationError as error:
        raise ValueError(schemas.fault("record", error)) from None
    except msgspec.DecodeError:  # perhaps what only Python's reader takes: NaN, a byte order mark
        return _writable(convert(_loads(line)), line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _writable(record: Record, line: bytes) -> Record:
    """``record``, unless a text in it cannot be written: half of a surrogate pair."""
    if _SURROGATE.search(line):
        try:
            msgspec.json.encode(record)
        except UnicodeEncodeError:
            raise ValueError("not a valid record: a text holds half of a character") from None
    return record


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def convert(document: Any) -> Record:
    """The record that a JSON document is. Raises ValueError, with the path of the first member that is wrong."""
    try:
        return msgspec.convert(document, Record)
    except msgspec.ValidationError as error:
        raise ValueError(schemas.fault("record", error)) from None


def encode(records: Iterable[Record]) -> str:
    """The text of a session file: a sealed line of JSON for each record.

    Raises ValueError for a number that is not finite.
    """
    return "".join(map(_line, records))


def _line(record: Record) -> str:
    whole = document(record)
    whole.pop(seal.MEMBER, None)
    return seal.seal(json.dumps(whole, separators=(",", ":"), allow_nan=False)) + "\n"


def document(item: Struct) -> dict[str, Any]:
    """The JSON document that a record, or a part of it, is."""
    found: dict[str, Any] = msgspec.to_builtins(item)
    return found
