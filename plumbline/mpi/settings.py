"""Settings of MPI libraries: what a person or the tuner may set, and what the libraries do not say about it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from plumbline.base.errors import PlumbError


class Setting(Struct, frozen=True):
    """A named value that an MPI library takes; ``name`` is the library's own (``btl_sm_eager_limit``)."""

    name: str
    value: str


class Rule(Struct, frozen=True, omit_defaults=True):
    """An algorithm for one collective in a range of message sizes, bytes; ``to_bytes`` is exclusive, None without end.

    A size is what one rank gives one other; for bcast, reduce, allreduce and scan it is that of the vector. A library
    may count sizes over all ranks: there they are right only with ``ranks``. With ``ranks``, the rule holds for
    communicators of that many ranks. ``algorithm`` is as the library takes it: a number or a name.
    """

    collective: str
    algorithm: str
    from_bytes: int
    to_bytes: int | None = None
    ranks: int | None = None


def refuse_overlaps(rules: Iterable[Rule]) -> None:
    """Raises :class:`PlumbError` where two rules are for the same collective, number of ranks and size."""
    ends: dict[tuple[str, int | None], float] = {}
    for rule in sorted(rules, key=lambda rule: rule.from_bytes):
        key = (rule.collective, rule.ranks)
        if rule.from_bytes < ends.get(key, 0):
            raise PlumbError(f"two rules for {rule.collective} of {rule.from_bytes} bytes", "rules", "keep one")
        ends[key] = math.inf if rule.to_bytes is None else rule.to_bytes


class Configuration(Struct, frozen=True, omit_defaults=True):
    """A candidate of the tuner, or the settings of a tuned stack. Without anything it is the library's default."""

    settings: tuple[Setting, ...] = ()
    rules: tuple[Rule, ...] = ()


class Knob(Struct, frozen=True, omit_defaults=True):
    """A setting that is worth a try, with what the library does not say.

    ``values``: those to try. ``operations``: those that it may affect (``p2p``: point-to-point); empty: all. The
    settings in ``at_least`` must have at least the value of this one, those in ``needs`` the values given there.
    ``sizes``, for an algorithm of a collective: ``some``: it can be given for some sizes, and for the others the
    library chooses as usual; ``each``: it must be given for each size, because the library chooses differently where
    none is given; ``all``: there is one algorithm for all sizes.
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
    """``settings`` with the other settings that the knobs among them need; of two for one name, the later one counts.

    A value that was asked for stays even if it is too small: whoever asks for both wants to see what happens.
    """
    requested = {setting.name: setting.value for setting in settings}
    completed = dict(requested)
    for knob in (knob for knob in knobs if knob.name in requested):
        value = requested[knob.name]
        for name in (name for name in knob.at_least if name not in requested):
            completed[name] = str(max(int(value), int(completed.get(name, value))))
        for need in knob.needs:
            completed.setdefault(need.name, need.value)
    return tuple(Setting(name, value) for name, value in completed.items())


def of_files(files: Iterable[Path]) -> Iterator[tuple[str, str, Path]]:
    """Each ``NAME = VALUE`` of settings files of MPI libraries, with its file; only a ``.conf`` has such lines.

    A file that cannot be read is left out: the library does not read it either.
    """
    for file in (file for file in files if file.suffix == ".conf" and file.is_file()):
        with contextlib.suppress(OSError):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                name, equals, value = line.partition("#")[0].partition("=")
                if equals:
                    yield name.strip(), value.strip(), file
