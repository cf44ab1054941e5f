"""The definition of a record, as types that decode JSON and check it.

A record that decodes is complete and valid in form; nothing else has to be checked. Members that a type does not name
are an error in :class:`Record`, :class:`Launch` and :class:`Figure`, whose members the suite alone decides; elsewhere
they are ignored, so that files written by other versions stay readable. ``plumbline/base/schemas/record.json`` is
made from these types (``tests/support/schema_files.py``), for readers that are not Python.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import group, schemas
from plumbline.host.binder import Plan
from plumbline.parsers.measurement import Number
from plumbline.records.figure import Figure, Time
from plumbline.records.launch import Launch, LoadedFile, SettingsSeen
from plumbline.records.variant import Variant, of_program

#: the end of a line: the SHA-256 of what is before it, by which every later change of the line shows. Early records
#: have none. It is not a signature: whoever changes a record on purpose can write a new seal, or remove it.
_SEAL, _SEALED = b',"seal":"', b'"}'
#: members of ``host`` that change from minute to minute and say nothing about the machine
FLEETING = ("load",)

State: TypeAlias = Literal["running", "complete", "interrupted"]
Side: TypeAlias = Literal["baseline", "candidate"]
Verdict: TypeAlias = Literal["invalid", "unreferenced", "within", "below", "above"]
Provenance: TypeAlias = Literal["measured", "imported"]


class Idle(Struct, frozen=True, gc=False, kw_only=True):
    """Power in W that node ``host`` used while nothing was measured, by the counters of the launches' energy."""

    power_w: Number
    host: str
    measured: Time


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
    """The members that a record and its row have in common: subject, place and verdict of the measurement.

    ``time`` is the start of the session (UTC, ISO 8601). ``campaign`` is the same for all records of one ``plumb
    campaign`` or ReFrame run. ``provenance``: figures that are ``imported`` come from another program, and nothing
    about them was witnessed; such a record is never verified. ``reasons`` say why a record is not verified or not
    valid. ``host`` has the facts of the node that ran the driver. ``experiment`` is the command that measured it to
    compare or to show something (gate, bisect, why, tune, history, run, lab); None for campaigns and runs, whose
    figures are history.
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
    experiment: str | None = None

    @property
    def is_experiment(self) -> bool:
        """Whether an experiment measured it, whose figures are no history of the machine."""
        return self.experiment is not None

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
    answers: dict[str, str] = {}


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
    ``seal`` is that of its line (``plumbline.records.model.seal``), None in records of earlier versions.
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

    def __post_init__(self) -> None:
        """Name the variant by its program, which early records do not."""
        self.variant = of_program(self.variant, self.benchmark.version)

    def counting(self) -> list[Launch]:
        """The launches that count in the figures, in order: all but those that were measured again."""
        return [launch for launch in self.launches if not launch.superseded]

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the MPI library that its launches asked for: the value that was seen, or that none was."""
        settings = next((launch.settings for launch in self.launches if launch.settings), SettingsSeen({}, {}))
        requested, seen = settings.requested, settings.seen
        return {name: seen.get(name, f"asked for {value}, not seen") for name, value in requested.items()}

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
    def answers(self) -> dict[str, str]:
        """The answers of the launches that count, by name; several, with ``or`` between, where launches differ."""
        by_name = group(item for launch in self.counting() for item in launch.answers.items())
        return {name: " or ".join(dict.fromkeys(values)) for name, values in by_name.items()}

    @property
    def transports(self) -> list[str]:
        """Those that the ranks had open in any launch that counts."""
        return sorted({word for launch in self.counting() for word in launch.transports})

    @property
    def scheduling(self) -> str:
        """How the ranks of the launches that count began, in words; empty in records of early versions."""
        return "; ".join(
            sorted({str(rank.scheduling) for launch in self.counting() for rank in launch.ranks if rank.scheduling})
        )

    @property
    def is_experiment(self) -> bool:
        """Whether an experiment measured it; early records say it by their ``side`` alone."""
        return self.experiment is not None or self.side is not None

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
        wanted = {figure.name: figure for figure in self.variant.figures}
        for figure in self.figures if self.is_valid else []:
            known = wanted.get(figure.name)
            measurements = [known and launch.find(known) for launch in counting]
            if [item and item.value for item in measurements] != figure.samples:
                return f"the samples of figure {figure.name} are not what the launches measured"
        return None

    def row(self) -> Row:
        """The row of this record, for lists and histories."""
        common = {name: getattr(self, name) for name in _Common.__struct_fields__}
        common["host"] = {name: value for name, value in self.host.items() if name not in FLEETING}
        common["verified"] = self.is_verified
        common["experiment"] = self.experiment or ("gate" if self.side else None)
        launches, disturbed = self.launch_count, self.disturbed_count
        return Row(**common, launch_count=launches, disturbed_count=disturbed, answers=self.answers)


#: a record, or its row: views and references take both
AnyRecord: TypeAlias = Record | Row

_DECODER = msgspec.json.Decoder(Record)
#: what no row needs stays text, which saves half of the time of decoding
_LAUNCH: Any = msgspec.defstruct(
    "_LAUNCH", [(name, msgspec.Raw) for name in ("disturbance", "measurements", "ranks")], bases=(Launch,), kw_only=True
)
_RAW = [(name, msgspec.Raw, msgspec.Raw()) for name in ("plan", "environment", "loaded", "hosts")]
_BRIEF: Any = msgspec.json.Decoder(
    msgspec.defstruct("_BRIEF", [("launches", list[_LAUNCH]), *_RAW], bases=(Record,), kw_only=True)
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(line: bytes, brief: bool = False) -> Record:
    """The record that a line of JSON is. Raises ValueError, with the path of the first member that is wrong.

    The launches of a ``brief`` one have no more than a row needs: ranks, measurements and disturbances are not decoded.
    """
    # of a bad text, half of a surrogate pair; looking for more than a backslash takes a tenth of the time of decoding
    doubtful = b"\\" in line and _SURROGATE.search(line) is not None
    try:
        try:
            record: Record = (_BRIEF if brief and not doubtful else _DECODER).decode(line)
        except msgspec.ValidationError as error:
            raise ValueError(schemas.fault("record", error)) from None
        except msgspec.DecodeError:  # perhaps only Python's reader takes it: NaN, a byte order mark
            record = convert(json.loads(line))
        if doubtful:
            msgspec.json.encode(record)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("not a valid record: a text holds half of a character") from None
    return record


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
    plain = ({name: value for name, value in document(record).items() if name != "seal"} for record in records)
    return "".join(seal(json.dumps(each, separators=(",", ":"), allow_nan=False)) + "\n" for each in plain)


def document(item: Struct) -> dict[str, Any]:
    """The JSON document that a record, or a part of it, is."""
    members: dict[str, Any] = msgspec.to_builtins(item)
    return members


def seal(line: str) -> str:
    """``line``, a JSON object with at least one member, with its seal.

    >>> seal('{"a":1}')
    '{"a":1,"seal":"8b0f0d75aabe01bbfba9341752c2cf7626f154e676aa791427b31aebfabc2592"}'
    """
    body = line.removesuffix("}")
    return f"{body}{_SEAL.decode()}{hashlib.sha256(body.encode()).hexdigest()}{_SEALED.decode()}"


def is_sealed(line: bytes) -> bool:
    """Whether ``line`` ends with a seal. Raises ValueError if it is not that of the line."""
    line = line.rstrip()
    start = len(line) - len(_SEAL) - 64 - len(_SEALED)
    if start < 0 or not line.startswith(_SEAL, start) or not line.endswith(_SEALED):
        return False
    if line[start + len(_SEAL) : -len(_SEALED)] != hashlib.sha256(memoryview(line)[:start]).hexdigest().encode():
        raise ValueError("changed since it was measured: its seal is not that of its text")
    return True
