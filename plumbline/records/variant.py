"""Variants: what ``plumb launch`` is asked to run, as its description and as the member of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from plumbline.base import schemas
from plumbline.base.schemas.site import StackName
from plumbline.parsers.measurement import Number

#: text on one line. ``(?!\n)``: Python's ``$`` passes over a line's end
Line: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
#: how the version of the OSU benchmarks' port to Python begins; the parameter that tells its variants from OSU's own
PORT, PROGRAM = "mpi4py", "program"


class WantedFigure(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A figure that a test asks for: the measurement of ``metric`` whose parameters include ``where``.

    Without ``where`` it is the best value of the curve. An ``optional`` figure is reported on some machines only: where
    no launch has it, the record lacks it and is not invalid for that; the gate leaves it out. ``tolerance`` and
    ``must_detect`` are margins of the gate: slowdowns as fractions of 1.
    """

    name: str
    metric: str
    where: dict[str, Any]
    optional: bool = False
    tolerance: Annotated[float, Meta(ge=0)] | None = None
    must_detect: Annotated[float, Meta(gt=0)] | None = None


class ApplicationState(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The application (``plumb.yaml``) and the state of its code that a launch runs the ``program`` of.

    ``changed``: ``commit`` is of no branch, it has changes that were not committed. ``digest`` is that of the files
    where there is no repository. ``build`` has the variables that the lines of its build were given by a side.
    """

    name: str
    program: str
    commit: str | None = None
    changed: bool = False
    digest: str = ""
    build: dict[str, str] = {}

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """Those of ``build``, as a source of the code has them."""
        return tuple(self.build.items())


class Variant(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A variant as ``plumb launch`` ran it: see ``plumbline/base/schemas/variant.json``."""

    schema: Literal[1]
    test: str
    name: str
    site: str
    partition: str
    stack: str
    benchmark: str
    arguments: list[str]
    placement: str
    memory: str | None
    threads: int | None
    ranks_per_node: int | None
    nodes: int
    parser: str
    context: dict[str, Any]
    figures: list[WantedFigure]
    launches: int
    time_limit_s: Number
    environment: dict[str, str]
    settings: dict[str, str] = {}
    params: dict[str, Any]
    slow_on_purpose: bool = False
    profiled: bool = False
    application: ApplicationState | None = None

    @property
    def selected(self) -> str:
        """The name by which ReFrame selects it: without the mark of mpi4py's port."""
        return self.name.removesuffix(f" %{PROGRAM}={PORT}")

    @property
    def circumstances(self) -> dict[str, list[str]]:
        """Its settings, variables, and those of the build, and the file run in place of the program: those it has.

        Records that differ in these are of different series.
        """
        build = self.application.build if self.application else {}
        by_name = {"settings": self.settings, "variables": self.environment, "build": build}
        shown = {name: [f"{key}={value}" for key, value in sorted(pairs.items())] for name, pairs in by_name.items()}
        return {name: words for name, words in {**shown, "program": self.context.get("replaced", [])}.items() if words}

    @classmethod
    def create(
        cls, *, test: str, name: str, site: str, partition: str, stack: str, benchmark: str, placement: str,
        figures: list[WantedFigure], time_limit_s: float, arguments: Sequence[str] = (), memory: str | None = None,
        threads: int | None = None, ranks_per_node: int | None = None, nodes: int = 1, launches: int = 1,
        parser: str = "kernel", context: dict[str, Any] | None = None, environment: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None, params: dict[str, Any] | None = None,
    ) -> Variant:  # fmt: skip
        """A variant; without ``parser`` and ``context`` ``benchmark`` is one of our kernels, which prints JSON."""
        return cls(
            schema=1, test=test, name=name, site=site, partition=partition, stack=stack, benchmark=benchmark,
            arguments=list(arguments), placement=placement, memory=memory, threads=threads, nodes=nodes,
            ranks_per_node=ranks_per_node, parser=parser, context={"kernel": benchmark} if context is None else context,
            figures=figures, launches=launches, time_limit_s=time_limit_s, environment=dict(environment or {}),
            settings=dict(settings or {}), params=params or {},
        )  # fmt: skip


class VariantRequest(Variant, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A variant that ``plumb launch`` is to run; those in records of imported figures need not be so.

    ``test`` is the class of the ReFrame test, ``name`` the variant as people read it, without the stack, ``benchmark``
    an id in the stack's manifest. ``memory`` null: the placement's default; ``threads`` null: what fills the rank's
    object; ``ranks_per_node`` null: as many as the placement has room for. ``parser`` none: what it prints is not
    read; ``context`` is what the parser must know: benchmark, last_bytes, and so on. ``time_limit_s`` is that of one
    launch. ``settings`` are the MPI library's, by its own names, over those of the stack; ``environment`` has
    variables. By ``params``, the test's parameters, references are found. ``slow_on_purpose``: it shows what is lost,
    such as by far memory, and no limit is expected of it. A ``profiled`` one runs under libplumbprofile.so and gives
    no figure; all others have one figure at least, and a parser.
    """

    test: Line
    name: Line
    site: StackName
    partition: StackName
    stack: StackName
    threads: Count | None
    ranks_per_node: Count | None
    nodes: Count
    parser: Literal["stream", "imb", "osu", "kernel", "application", "none"]
    launches: Annotated[int, Meta(ge=1, le=100_000)]
    time_limit_s: Annotated[float, Meta(gt=0, le=1_000_000)]
    environment: dict[Annotated[str, Meta(pattern=r"^[^=\x00]+$")], str]
    settings: dict[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+$(?!\n)")], Line] = {}

    def __post_init__(self) -> None:
        """Refuse a variant without figures that is not profiled, and what would be outside the folder of a launch."""
        if not self.profiled and (not self.figures or self.parser == "none"):
            raise ValueError("only a profiled variant may have no figures, or the parser none")
        for key in ("inputs", "copy"):
            names = self.context.get(key, {})
            if not isinstance(names, dict) or any(name.startswith("/") or ".." in name.split("/") for name in names):
                raise ValueError(f"a file of {key} is outside the folder of the launch")


def checked(document: Any, where: str) -> Variant:
    """The variant that ``document`` describes. Raises :class:`PlumbError` for one that cannot be launched."""
    schemas.convert("variant", document, VariantRequest, where)
    return msgspec.convert(document, Variant)


def of_program(variant: Variant, version: str) -> Variant:
    """``variant`` as it is with a benchmark of this ``version``: with mpi4py's port it is another one than with OSU.

    So no series, reference or comparison has both, whose times differ by those of Python.
    """
    if not version.startswith(PORT) or PROGRAM in variant.params:
        return variant
    return msgspec.structs.replace(
        variant, name=f"{variant.name} %{PROGRAM}={PORT}", params={**variant.params, PROGRAM: PORT}
    )
