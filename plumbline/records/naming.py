"""Names of variants, placements, programs and suites for people."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable

from plumbline.base import group
from plumbline.records.model import Placement, Suite
from plumbline.records.variant import PROGRAM, ApplicationState, Variant

#: parts of arguments that depend on the stack or the machine: the device of buffers, the folder of a file
_OF_STACK = re.compile(r"cuda|rocm")
_FOLDER = re.compile(r"(^|(?<==))/(.*/)?")


def name(variant: Variant) -> str:
    """The test of a variant and those of its parameters that the placement column does not show already."""
    shown = {"placement", "memory", "threads", "cpu_node", "memory_node"}
    params = ((key, value) for key, value in variant.params.items() if key not in shown)
    return " ".join([variant.test, *(f"({value})" if key == PROGRAM else str(value) for key, value in params)])


def naming(variants: Iterable[Variant]) -> Callable[[Variant], str]:
    """A function that gives each variant its :func:`name`, with arguments that tell ``variants`` of a name apart."""
    known = group(dict.fromkeys((name(variant), _arguments(variant)) for variant in variants))

    def call(variant: Variant) -> str:
        arguments, every = _arguments(variant), set(known.get(name(variant), ()))
        if len(every) < 2:
            return name(variant)
        first = _alike(every)
        first -= first > 0 and arguments[first - 1].startswith("-")  # the option that the value is of
        last = _alike([words[first:][::-1] for words in every])
        return " ".join([name(variant), *arguments[first : len(arguments) - last]])

    return call


def _alike(every: Iterable[tuple[str, ...]]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, zip(*every, strict=False)))


def _arguments(variant: Variant) -> tuple[str, ...]:
    """The arguments of the benchmark that are the same with all stacks."""
    return tuple(_FOLDER.sub("", word) for word in variant.arguments if not _OF_STACK.fullmatch(word))


def placement(placed: Placement) -> str:
    """Placement, ranks x threads, memory: ``numa 2x8 local``."""
    nodes = f"{placed.nodes} nodes " if placed.nodes > 1 else ""
    return f"{placed.name} {nodes}{placed.ranks_per_node}x{placed.threads} {placed.memory}"


def application(state: ApplicationState) -> str:
    """A program of an application and the state of its code, for people."""
    changed = " with changes that were not committed" if state.changed else ""
    build = "".join(f", {name}={value}" for name, value in state.build.items())
    return f"{state.program} of {state.name}, {(state.commit or state.digest)[:12]}{changed}{build}"


def suite(known: Suite) -> str:
    """The state of the suite that made a record: version, commit, and whether there were changes."""
    dirty = " with uncommitted changes" if known.dirty else ""
    return f"plumbline {known.version}, commit {(known.commit or 'unknown')[:12]}{dirty}"


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
