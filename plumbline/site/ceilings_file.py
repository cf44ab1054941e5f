"""``ceilings.yaml`` of a site: what the machines of its partitions reached where they were measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import yaml

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.host.ceilings import Document, Measured, best_of
from plumbline.site import folder

FILE = "ceilings.yaml"
CURE = "remove it: plumb site measure writes it again"
HEADER = """\
# What this site's machines reached where they were measured: ceilings, not limits. `plumb site measure` writes this.
# best: the best launch; spread_percent: how far the worst one is from it; record: plumb --results build/ceilings show
# raised: the history: by a verified record that reached more (plumb show ID), or by a second measurement
# level: of the cache that held the data, 0 for memory; pair: distance class of the two cores
# idle_W: power of the node's processors, by the counters of `energy_j` in records, before anything was started
# Bandwidths are of bytes read and written together, as STREAM counts; those of copies of bytes copied.
"""


def ceilings_file(name: str) -> Path:
    """Where the ceilings of site ``name`` are."""
    return folder(name) / FILE


def read(name: str) -> list[Measured]:
    """The ceilings of the partitions of site ``name`` that were measured; none where there is no file.

    Raises :class:`PlumbError` for a file that is not valid.
    """
    file = ceilings_file(name)
    if not file.exists():
        return []
    try:
        document = schemas.read_yaml(file, "ceilings", CURE)
        return schemas.convert("ceilings", document, Document, str(file)).partitions
    except PlumbError as error:  # nobody writes this file by hand
        raise PlumbError(error.message, error.where, CURE) from None


def ceilings_of(name: str, partition: str, machine: str) -> Measured | None:
    """The ceilings of ``partition``; None where none were measured, or on another kind of machine than ``machine``."""
    matches = (measured for measured in read(name) if measured.partition == partition and measured.machine == machine)
    return next(matches, None)


def save(name: str, measured: Measured, add: bool = False) -> Path:
    """Replace the ceilings of one partition in the file of site ``name``, in one step; returns the file.

    ``add``: those that were measured on such a machine before stay where they are better.
    """
    with _locked(name) as file:
        known = ceilings_of(name, measured.partition, measured.machine) if add else None
        _write(name, best_of(known, measured) if known else measured)
    return file


def change(name: str, partition: str, machine: str, how: Callable[[Measured], Measured]) -> Measured | None:
    """Make of a partition's ceilings what ``how`` returns, and return it; None where :func:`ceilings_of` has none.

    ``how`` gets what is in the file at that moment; the file stays as it is if the same object comes back.
    """
    with _locked(name):
        known = ceilings_of(name, partition, machine)
        changed = how(known) if known else None
        if changed is not None and changed is not known:
            _write(name, changed)
    return changed


@contextlib.contextmanager
def _locked(name: str) -> Iterator[Path]:
    file = ceilings_file(name)
    with files.writing("the ceilings", file), files.lock(paths.build() / "ceilings" / f"{name}.lock"):
        yield file


def _write(name: str, measured: Measured) -> None:
    others = [entry for entry in read(name) if entry.partition != measured.partition]
    document = Document(schema=1, partitions=sorted([*others, measured], key=lambda entry: entry.partition))
    text = yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True, width=120)
    files.replace(ceilings_file(name), HEADER + text)
