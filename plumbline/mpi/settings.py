"""Settings of MPI libraries: what a person or the tuner may set, and what the libraries do not say about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct


class Setting(Struct, frozen=True):
    """A named value that an MPI library takes; ``name`` is the library's own (``btl_sm_eager_limit``)."""

    name: str
    value: str


class Rule(Struct, frozen=True, omit_defaults=True):
    """An algorithm for one collective in a range of message sizes, bytes; ``to_bytes`` is exclusive, None without end.

    Sizes are of what one rank gives one other, or of the vector of bcast, reduce, allreduce and scan. A library may
    count them over all ranks: only with ``ranks`` they are right there. With ``ranks`` a rule holds for communicators
    of so many ranks. ``algorithm`` is as the library takes it: a number or a name.
    """

    collective: str
    algorithm: str
    from_bytes: int
    to_bytes: int | None = None
    ranks: int | None = None


class Configuration(Struct, frozen=True, omit_defaults=True):
    """A candidate of the tuner, and what a tuned stack has. Without anything it is the library's default."""

    settings: tuple[Setting, ...] = ()
    rules: tuple[Rule, ...] = ()


class Knob(Struct, frozen=True, omit_defaults=True):
    """A setting that is worth a try, with what the library does not say.

    ``values`` to try; ``operations`` that it may move (``p2p``: point-to-point), all of them without. What it needs:
    each of ``at_least`` must have a value of its own size or more, ``needs`` must have those values. ``sizes`` of an
    algorithm of a collective: it can be given for ``some``, and elsewhere the library chooses as ever; it must be given
    for ``each``, because the library then chooses otherwise where none is given; or it is one for ``all``.
    """

    name: str
    values: tuple[str, ...]
    when: Literal["start", "running"]
    scope: Literal["intra", "inter", "both"]
    operations: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    needs: tuple[Setting, ...] = ()
    note: str = ""
    sizes: Literal["some", "each", "all"] = "some"


def complete(settings: Iterable[Setting], knobs: Iterable[Knob]) -> tuple[Setting, ...]:
    """``settings`` with what the knobs among them need beside them; of two for one name the later one counts.

    A value that is there and too small stays as it is asked: whoever asks for both wants to see what happens.
    """
    asked = {setting.name: setting.value for setting in settings}
    found = dict(asked)
    for knob in knobs:
        value = asked.get(knob.name)
        if value is None:
            continue
        for other in knob.at_least:
            if other not in asked:
                found[other] = str(max(int(value), int(found.get(other, value))))
        for need in knob.needs:
            found.setdefault(need.name, need.value)
    return tuple(Setting(name, value) for name, value in found.items())
