"""The request of a search: two ends, the factors in which they differ, and any mixture of them as a variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, structs

from plumbline.measure.session import Kind
from plumbline.records.variant import Variant
from plumbline.statistics.paired import PairedRule

#: attributes of a variant that are one factor each
ATTRIBUTES = ("placement", "memory", "threads", "ranks_per_node", "arguments")
#: members of a variant that have a factor for each name in them, and what such a factor is called
MAPPINGS = {"settings": "setting", "environment": "variable"}
#: the variable that loads libraries before those that a program names (ld.so(8))
PRELOAD = "LD_PRELOAD"
#: the parts of a variant that are built: each mixture of them has a variant of its own
BASES = ("stack", "code", "build")


class Factor(Struct, frozen=True):
    """A circumstance in which the ends differ, and that can be set here.

    ``kind`` is ``stack``, ``code``, ``build`` (the variables of an application's build), one of :data:`ATTRIBUTES`, a
    value of :data:`MAPPINGS`, ``library`` or ``package`` (of the stacks: the other one's files are preloaded) or
    ``host`` (a setting that only root can change); ``name`` is that of a setting, variable, library or package.
    ``before`` is its value in A, ``after`` in B, for people; None: it is not set. ``preloads`` are the files of a
    library or package in A and in B, preloaded to have its value on the other stack.
    """

    kind: str
    name: str
    before: str | None
    after: str | None
    preloads: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def label(self) -> str:
        """For people: ``setting btl_sm_eager_limit``."""
        names = {"ranks_per_node": "ranks per node", "host": "host setting", "build": "build variables"}
        kind = names.get(self.kind, self.kind)
        return f"{kind} {self.name}".rstrip()


class Fixed(Struct, frozen=True):
    """A circumstance in which the ends differ, and that is not set alone.

    ``why``: root could, it is one of the packages of the stack, or it cannot be set at all.
    """

    key: str
    before: str
    after: str
    why: Literal["no", "root only", "in the stack"]


class Ends(Struct, frozen=True):
    """Both ends, and all between them.

    ``labels`` are A and B for people, ``ids`` their records where they are some. ``bases`` has the variant of each
    mixture of stack, code and build, by how those of :data:`BASES` that are factors are set (``""``, ``"1"``, ``"01"``
    …, one digit for each in their order); ``first`` and ``second`` are A and B as they were.
    """

    labels: tuple[str, str]
    first: Variant
    second: Variant
    factors: list[Factor]
    bases: dict[str, Variant]
    fixed: list[Fixed] = []
    ids: tuple[str, ...] = ()

    def variant(self, configuration: int) -> Variant:
        """A with the factors of ``configuration`` as they are in B."""
        levels = {factor: bool(configuration >> place & 1) for place, factor in enumerate(self.factors)}
        digits = "".join(str(int(levels[factor])) for factor in self.factors if factor.kind in BASES)
        base = self.bases[digits]
        changed: dict[str, Any] = {name: getattr(self.first, name) for name in ATTRIBUTES}
        for name in MAPPINGS:
            both = (getattr(self.first, name), getattr(self.second, name))
            changed[name] = {key: value for key, value in both[0].items() if both[1].get(key) == value}
        for factor, is_after in levels.items():
            end = self.second if is_after else self.first
            if factor.kind in ATTRIBUTES:
                changed[factor.kind] = getattr(end, factor.kind)
            for member, kind in MAPPINGS.items():
                if factor.kind == kind and (value := factor.after if is_after else factor.before) is not None:
                    changed[member][factor.name] = value
        if preloaded := self._preloaded(levels):
            changed["environment"][PRELOAD] = ":".join(
                [*preloaded, *filter(None, [changed["environment"].get(PRELOAD)])]
            )
        return structs.replace(base, **changed, name=f"{self.first.name} {self.mixture(configuration)}".rstrip())

    @staticmethod
    def _preloaded(levels: Mapping[Factor, bool]) -> list[str]:
        """The libraries that come from the other end than the stack does."""
        is_second = any(is_after for factor, is_after in levels.items() if factor.kind == "stack")
        return [
            file for factor, is_after in levels.items() if is_after != is_second for file in factor.preloads[is_after]
        ]

    def mixture(self, configuration: int) -> str:
        """A configuration for people: ``A``, ``B``, ``A with threads``, ``B without threads``."""
        members = [factor.label for place, factor in enumerate(self.factors) if configuration >> place & 1]
        others = [factor.label for place, factor in enumerate(self.factors) if not configuration >> place & 1]
        if not members or not others:
            return "B" if members or not self.factors else "A"
        if len(members) <= len(others):
            return f"A with {', '.join(members)}"
        return f"B without {', '.join(others)}"

    def host(self, configuration: int) -> dict[str, str]:
        """The settings of the host that a launch of ``configuration`` needs."""
        return {
            factor.name: value
            for place, factor in enumerate(self.factors)
            if factor.kind == "host"
            and (value := factor.after if configuration >> place & 1 else factor.before) is not None
        }


class WhyRequest(Struct):
    """A search: its ends, ``figure`` (None: that with the largest difference), margins, seed, where it is measured.

    ``circumstances`` that are None are those of the job that measures. ``noise`` is that of one launch (a log ratio).
    """

    session: str
    ends: Ends
    tolerance: float
    must_detect: float
    seed: int
    circumstances: dict[str, Any]
    figure: str | None = None
    noise: float | None = None

    @property
    def rule(self) -> PairedRule:
        """The margins of every effect."""
        return PairedRule(self.tolerance, self.must_detect, gain=True)


WHY = Kind("search", "why", "why.json", WhyRequest)
