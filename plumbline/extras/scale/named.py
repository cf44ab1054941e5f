"""Programs of a plumb.yaml and tests of the suite as the points of a curve: variants that differ in a number alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.base.errors import PlumbError, pick
from plumbline.base.terminal import say
from plumbline.gate.variants import of_names
from plumbline.measure.reframe.campaign import first_stack
from plumbline.measure.session import passing_folder
from plumbline.records.variant import Variant

#: parameters of a test that the points have
PLACING = {"placement", "memory", "threads", "ranks", "nodes"}


def base(name: str, file: Path | None, stack: str | None, system: str | None) -> Variant:
    """The variant of a program of the plumb.yaml ``file``, or without one of a test, that is to be scaled.

    Raises :class:`PlumbError` where several are left that differ in more than where and on how much they run.
    """
    stack = stack or first_stack(file, say)
    with passing_folder("scale") as folder:
        every = of_names(file, [name], stack, system, folder, say)
    rest = {_rest(variant): variant for variant in reversed(every.values())}
    if len(rest) > 1:
        first, second, *_ = sorted(rest)
        raise PlumbError(
            f"{len(rest)} variants that differ in more than cores, such as {first} and {second}",
            "plumb scale",
            f"name one: --test '{rest[first].name.replace(' %', '%')}'",
        )
    return next(iter(rest.values()))


def _rest(variant: Variant) -> str:
    params = (f"%{key}={value}" for key, value in variant.params.items() if key not in PLACING)
    return " ".join([variant.test, *params])


def points(
    variant: Variant, kind: str, counts: Sequence[int], placement: str, figure: str | None,
    commands: Sequence[list[str]] = (),
) -> list[Variant]:  # fmt: skip
    """``variant`` on each of ``counts`` threads, ranks or nodes; ``figure`` (default: its first) is the curve's.

    The arguments are those of ``commands``, if there are any. A program keeps its other figures, which the table shows.
    Raises :class:`PlumbError` for a figure that it has not.
    """
    figures = {each.name: each for each in variant.figures if not each.optional}
    lacks = f"{variant.test} has no figure '{figure}'"
    wanted = pick(figures, figure or next(iter(figures)), lacks, "plumb scale --figure")

    others = [each for name, each in figures.items() if name != wanted.name and variant.parser == "application"]

    def point(count: int, arguments: list[str]) -> Variant:
        of_kind: dict[str, dict[str, Any]] = {
            "threads": {"placement": placement, "threads": count, "ranks_per_node": 1},
            "ranks": {"placement": placement, "threads": 1, "ranks_per_node": count},
            "nodes": {"nodes": count},
        }
        return structs.replace(
            variant,
            name=f"{_rest(variant)} %{kind}={count}",
            params={**variant.params, kind: count},
            arguments=arguments,
            launches=1,
            figures=[wanted, *others],
            **of_kind[kind],
        )

    every = [words[1:] for words in commands] or [variant.arguments] * len(counts)
    return list(map(point, counts, every))
