"""``ceilings.yaml`` of a site: what the machines of its partitions reached where they were measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.host.ceilings import Document, Measured
from plumbline.site import folder

FILE = "ceilings.yaml"
CURE = "remove it: plumb site measure writes it again"
HEADER = """\
# What this site's machines reached where they were measured: ceilings, not limits. `plumb site measure` writes this.
# median: of the undisturbed launches, spread_percent apart; record: plumb --results build/ceilings show
# level: of the cache that held the data, 0 for memory; kernel: its loads and stores; pair: distance class of two cores
# idle_W: power of the node's processors, by the counters of `energy_j` in records, before anything was started
# Bandwidths are of bytes read and written together, as STREAM counts; those of copies of bytes copied.
"""


def ceilings_file(name: str) -> Path:
    """Where the ceilings of site ``name`` are."""
    return folder(name) / FILE


def read(name: str) -> list[Measured]:
    """The ceilings of the partitions of site ``name`` that were measured; none without a file of this version.

    Raises :class:`PlumbError` for a file that is not valid.
    """
    file = ceilings_file(name)
    if not file.exists():
        return []
    try:
        document = schemas.read_yaml(file, "ceilings", CURE)
        if isinstance(document, dict) and document.get("schema") == 1:
            return []
        return schemas.convert("ceilings", document, Document, str(file)).partitions
    except PlumbError as error:  # nobody writes this file by hand
        raise PlumbError(error.message, error.where, CURE) from None


def ceilings_of(name: str, partition: str, machine: str) -> Measured | None:
    """The ceilings of ``partition``; None where none were measured, or on another kind of machine than ``machine``."""
    matches = (measured for measured in read(name) if measured.partition == partition and measured.machine == machine)
    return next(matches, None)


def save(name: str, measured: Measured) -> Path:
    """Replace the ceilings of one partition in the file of site ``name``, in one step; returns the file."""
    file = ceilings_file(name)
    with files.writing("the ceilings", file), files.lock(paths.build() / "ceilings" / f"{name}.lock"):
        others = [entry for entry in read(name) if entry.partition != measured.partition]
        document = Document(schema=2, partitions=sorted([*others, measured], key=lambda entry: entry.partition))
        text = yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True, width=120)
        files.replace(file, HEADER + text)
    return file
