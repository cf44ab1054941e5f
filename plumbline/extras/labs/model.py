"""A lab: one experiment of a document, declared in a file of ``declared/``; and what of its needs a machine lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, structs

from plumbline import site
from plumbline.base import paths, schemas
from plumbline.base.errors import PlumbError, pattern_fault, pick
from plumbline.base.schemas.site import Site
from plumbline.base.units import counted
from plumbline.host import devices, machine

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
    ``ranked``: an attribute with the values that the document lets its reader rank, from best to poorest.
    ``nearest``: for a value of rows or columns that the document has not, those that mean the same, nearest first.
    With ``launches: spread`` the table has how far launches are from their median, not what they measured; with
    ``each``, every launch by its number ``launch``. What is ``counted`` or computed is the same in all, so one is
    enough.
    """

    title: Text
    tests: Pattern
    figures: Pattern
    rows: Axis
    columns: Axis
    where: Axis = {}
    labels: dict[str, str] = {}
    curve: str | None = None
    launches: Literal["median", "spread", "each"] = "median"
    counted: bool = False
    published: list[str] = []
    nearest: Axis = {}
    ranked: Axis = {}


class Lesson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A comparison: of figures of the table number ``table``, ``better`` has the better value than ``than``.

    All other parameters are equal in both. A value of a point may be several, ``pair:l3|pair:numa``: the first that was
    measured counts. With ``within``, ``better`` may be worse by this factor. Without ``better``, verified records
    show the lesson, whose programs checked their answers: one for each value of ``variants`` at least, and the answers
    with the same name, which the expression ``answers`` matches, are equal in all.
    """

    says: Text
    table: Annotated[int, Meta(ge=0)] = 0
    better: Point = {}
    than: Point = {}
    within: Annotated[float, Meta(ge=1)] = 1.0
    variants: Axis = {}
    answers: Pattern | None = None


#: the word of a command that stands for the newest record of its lab
RECORD = "RECORD"


class Printed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command of ``plumb`` whose output shows the lesson; RECORD in it is the newest record of the lab.

    ``lines``: what each text of the output proves, by a regular expression that finds it. ``shows``: the parts of the
    output that are shown, all that the expression finds; without it the whole. ``published`` is the output that the
    document has, as it prints it. A command that ``measures`` starts programs; ``--recorded`` leaves it out.
    """

    command: Annotated[list[Text], Meta(min_length=2)]
    shows: Pattern | None = None
    lines: dict[Pattern, Text] = {}
    published: str = ""
    measures: bool = False


class Lab(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An experiment of a document.

    ``origin`` is the document that it is from, unless the letter of its name says it.
    ``tests`` are regular expressions of the tests that it runs, as ReFrame's ``-n`` takes them, with ``options``;
    ``prints`` are commands beside them. ``question``, ``lesson`` and ``elsewhere`` (what the document
    has and this lab has not, and where it is) are whole sentences. ``minutes`` are those of a run on two cores.
    """

    name: Annotated[str, schemas.whole("[A-Za-z][A-Za-z0-9_-]*")]
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
    origin: str = ""

    @property
    def document(self) -> str:
        """The document that it is from."""
        return self.origin or (DOCUMENTS.get(self.name[0], "") if self.name[1:].isdigit() else "")

    @property
    def pattern(self) -> str:
        """Its tests as one regular expression."""
        return "|".join(self.tests)


def folder() -> Path:
    """The folder of a person's labs, beside their configuration."""
    return paths.configuration().with_name("labs")


def _files() -> dict[str, Path]:
    """The file of each lab by its name, those of the documents first and in their order."""
    order = "".join(DOCUMENTS)
    shipped = sorted(FOLDER.glob("*.yaml"), key=lambda file: (order.index(file.stem[0]), int(file.stem[1:])))
    return {file.stem: file for file in (*sorted(folder().glob("*.yaml")), *shipped)}


def every(damaged: Callable[[PlumbError], None] | None = None) -> dict[str, Lab]:
    """All labs by name; one that is not valid raises :class:`PlumbError`, or is given to ``damaged`` and left out."""
    labs = {}
    for name, file in _files().items():
        try:
            labs[name] = _load(file)
        except PlumbError as error:
            if damaged is None or file.parent == FOLDER:
                raise
            damaged(error)
    for file in folder().glob("*.yaml"):
        if damaged and (FOLDER / file.name).exists():
            damaged(PlumbError(f"not used: Plumbline has a lab {file.stem}", str(file), "give it another name"))
    return labs


def named(name: str) -> Lab:
    """The lab with this name, or of this file; raises :class:`PlumbError` where there is none."""
    if name.endswith(".yaml"):
        return _load(Path(name))
    by_name = {each.upper(): file for each, file in _files().items()}
    return _load(
        pick(
            by_name,
            name.upper(),
            f"there is no lab '{name}'",
            "plumb lab",
            "plumb lab lists them, and 'plumb lab all' runs all",
        )
    )


@functools.cache
def _load(file: Path) -> Lab:
    lab = schemas.load("lab", file, Lab, "the lab", "restore the file")
    faults = [("name", f"it is {lab.name} here, and {file.stem} in the file's name")] * (lab.name != file.stem)
    for member, wrong in (*faults, *_faults(lab)):
        raise PlumbError(f"not a valid lab: {member}: {wrong}", str(file), "fix the file")
    return lab


def _faults(lab: Lab) -> Iterator[tuple[str, str]]:
    """The faults that no type can state: member and fault."""
    patterns = [
        *(
            (f"tables[{number}].{member}", getattr(table, member))
            for number, table in enumerate(lab.tables)
            for member in ("tests", "figures")
        ),
        *((f"prints[{number}].shows", command.shows or "") for number, command in enumerate(lab.prints)),
        *((f"prints[{number}].lines", line) for number, command in enumerate(lab.prints) for line in command.lines),
    ]
    for member, pattern in patterns:
        if fault := pattern_fault(pattern):
            yield member, fault
    for number, table in enumerate(lab.tables):
        if table.curve is not None and list(table.columns) != [table.curve]:
            yield f"tables[{number}].curve", f"the columns are by {', '.join(table.columns)}"
    for number, lesson in enumerate(lab.seen):
        if lesson.table >= len(lab.tables):
            yield f"seen[{number}].table", f"there are {len(lab.tables)} tables"
        if set(lesson.better) != set(lesson.than):
            yield f"seen[{number}]", "better and than name different attributes"


#: the words for each resource
WORDS = {
    "cores": "core",
    "packages": "package",
    "numa_nodes": "NUMA node",
    "hardware_threads": "hardware thread",
    "cores_of_l3": "core",
    "gpus": "GPU",
    "nodes": "node",
}
#: ... and where
PLACES = {"hardware_threads": " of a core", "cores_of_l3": " that share an L3 cache"}


def offered(here: Site) -> list[Needs]:
    """The resources of a node of each partition of a site, and the nodes that a test may use."""
    offers = []
    for part in here.partitions:
        topology = site.folder(here.name) / part.topology
        node = machine.load(topology)
        cores = {cpu: core for core in node.cores for cpu in core.cpus}
        offers.append(Needs(
            cores=len(node.cores),
            packages=len(node.packages),
            numa_nodes=len(node.numa_nodes),
            hardware_threads=max(len(core.cpus) for core in node.cores),
            cores_of_l3=max((len({cores[cpu] for cpu in cache.cpus}) for cache in node.l3s), default=1),
            gpus=len(devices.gpus(topology)),
            nodes=part.nodes_offered,
        ))  # fmt: skip
    return offers


def lacking(needs: Needs, offers: list[Needs]) -> str:
    """The lack of the best of the partitions: ``2 NUMA nodes are needed, there is 1``; empty where one has all."""
    missing = [[name for name in WORDS if getattr(needs, name) > getattr(offer, name)] for offer in offers]
    best = min(range(len(offers)), key=lambda number: len(missing[number]))
    return "; ".join(
        f"{counted(getattr(needs, name), WORDS[name])}{PLACES.get(name, '')} needed, here {getattr(offers[best], name)}"
        for name in missing[best]
    )


def words(needs: Needs) -> str:
    """The resources needed beyond one core: ``2 NUMA nodes``; empty where any machine will do."""
    needed = {name: count for name, count in structs.asdict(needs).items() if count != structs.asdict(Needs())[name]}
    return ", ".join(f"{counted(count, WORDS[name])}{PLACES.get(name, '')}" for name, count in needed.items())
