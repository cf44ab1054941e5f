"""A lab: one experiment of a document, declared in a file of ``declared/``."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from plumbline.base import schemas
from plumbline.base.errors import PlumbError, suggest

#: the documents by the letter that the names of their labs begin with
DOCUMENTS = {
    "T": "S. Lantz, Lab: Hybrid Programming and NUMA Control, TACC 2012",
    "R": "M. Wittmann, G. Wellein, G. Hager, M. Meier, J. Treibig, H. Stengel: MPI+OpenMP hybrid computing, RRZE 2010",
    "U": "R. Khadka, Multicore-Multinode, Trieste 2018",
    "S": "Tuning Your MPI Application Without Writing Code, SciNet 2012",
    "D": "M. Tatineni, Parallel Computing Using MPI & OpenMP, SDSC 2019",
}
FOLDER = Path(__file__).parent / "declared"
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Pattern: TypeAlias = Annotated[str, Meta(min_length=1)]
#: attribute -> values in their order; none: all that were measured
Axis: TypeAlias = dict[str, list[str]]
#: attribute -> its value
Point: TypeAlias = dict[str, str]


class Needs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a machine must have for the lesson to show: at least so many on a node, and so many nodes.

    ``hardware_threads`` are those of a core, ``cores_of_l3`` the cores that share an L3 cache.
    """

    cores: int = 1
    packages: int = 1
    numa_nodes: int = 1
    hardware_threads: int = 1
    cores_of_l3: int = 1
    gpus: int = 0
    nodes: int = 1


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table or a curve of the document: figures by what they were measured under.

    ``tests`` and ``figures`` are regular expressions that names of tests and of figures match as a whole; groups of
    ``figures`` are attributes of what is shown, such as ``(?P<kind>.+)_cycles``. ``where`` has attributes with
    the values that count. ``labels`` are the document's words for values. ``curve`` names the attribute of the columns
    that the page draws a curve over. ``published`` names partitions, ``SITE:PARTITION``, whose references are shown.
    With ``spread`` the table has how far launches are from their median, not what they measured. What is ``counted``
    or computed is the same in all launches, so one is enough.
    """

    title: Text
    tests: Pattern
    figures: Pattern
    rows: Axis
    columns: Axis
    where: Axis = {}
    labels: dict[str, str] = {}
    curve: str | None = None
    spread: bool = False
    counted: bool = False
    published: list[str] = []


class Lesson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What counts as seen: of figures of the table number ``table``, ``better`` has the better value than ``than``.

    All else that was asked for is equal in both. Without ``better``, records that are verified show it: their program
    checked its answer.
    """

    says: Text
    table: Annotated[int, Meta(ge=0)] = 0
    better: Point = {}
    than: Point = {}


#: the word of a command that stands for the newest record of its lab
RECORD = "RECORD"


class Printed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command of ``plumb`` whose output shows the lesson; RECORD in it is the newest record of the lab.

    ``lines``: what each text of the output proves, by a regular expression that finds it. ``shows``: the parts of the
    output that are shown, all that the expression finds; without it the whole. A command that ``measures`` starts
    programs; ``--recorded`` leaves it out.
    """

    command: Annotated[list[Text], Meta(min_length=2)]
    shows: Pattern | None = None
    lines: dict[Pattern, Text] = {}
    measures: bool = False


class Lab(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An experiment of a document.

    ``tests`` are regular expressions of the tests that it runs, as ReFrame's ``-n`` takes them, with ``options``;
    ``prints`` are commands beside them. ``question``, ``lesson`` and ``elsewhere`` (what the document
    has and this lab has not, and where it is) are whole sentences. ``minutes`` are those of a run on two cores.
    """

    name: Annotated[str, schemas.whole("[TRUSD][1-9]")]
    title: Text
    question: Text
    minutes: Annotated[float, Meta(gt=0)]
    needs: Needs = Needs()
    tests: list[Pattern] = []
    options: list[str] = []
    prints: list[Printed] = []
    tables: list[Table] = []
    lesson: Text
    seen: list[Lesson] = []
    elsewhere: str = ""

    @property
    def document(self) -> str:
        """The document that it is from."""
        return DOCUMENTS[self.name[0]]

    @property
    def pattern(self) -> str:
        """Its tests as one regular expression."""
        return "|".join(self.tests)


@functools.cache
def every() -> dict[str, Lab]:
    """All labs by name, in the order of the documents."""
    order = list(DOCUMENTS)
    names = sorted((file.stem for file in FOLDER.glob("*.yaml")), key=lambda name: (order.index(name[0]), name))
    return {name: _load(FOLDER / f"{name}.yaml") for name in names}


def named(name: str) -> Lab:
    """The lab with this name; raises :class:`PlumbError` where there is none."""
    labs = every()
    if name.upper() not in labs:
        raise PlumbError(f"there is no lab '{name}'", "plumb lab", suggest(name.upper(), labs, "plumb lab lists them"))
    return labs[name.upper()]


def _load(file: Path) -> Lab:
    lab = schemas.convert("lab", schemas.read_yaml(file, "the lab", "restore the file"), Lab, str(file))
    for member, wrong in _faults(lab):
        raise PlumbError(f"not a valid lab: {member}: {wrong}", str(file), "fix the file")
    return lab


def _faults(lab: Lab) -> list[tuple[str, str]]:
    """The faults that no type can state: member and fault."""
    faults = []
    for number, table in enumerate(lab.tables):
        for member in ("tests", "figures"):
            try:
                re.compile(getattr(table, member))
            except re.error as error:
                faults.append((f"tables[{number}].{member}", str(error)))
        columns = list(table.columns)
        if table.curve is not None and columns != [table.curve]:
            faults.append((f"tables[{number}].curve", f"the columns are by {', '.join(columns)}"))
    for number, command in enumerate(lab.prints):
        for member, pattern in (("shows", command.shows or ""), *(("lines", line) for line in command.lines)):
            try:
                re.compile(pattern)
            except re.error as error:
                faults.append((f"prints[{number}].{member}", str(error)))
    for number, lesson in enumerate(lab.seen):
        if lesson.table >= len(lab.tables):
            faults.append((f"seen[{number}].table", f"there are {len(lab.tables)} tables"))
        if set(lesson.better) != set(lesson.than):
            faults.append((f"seen[{number}]", "better and than name different attributes"))
    return faults
