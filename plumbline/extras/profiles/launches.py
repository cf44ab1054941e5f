"""Launches under the profile of MPI calls: of the run of a record, of tests, and of a person's own program."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from plumbline import site
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.launch.prepare import OWN, variant_again
from plumbline.measure import driver, jobs
from plumbline.records.model import Record
from plumbline.records.variant import Variant


def measure(variants: Sequence[Variant], folder: Path) -> list[Record]:
    """The records of one launch of each of ``variants`` under the profile."""
    wanted = [replace(variant, profiled=True, launches=1) for variant in variants]
    return driver.run(wanted, folder, say=lambda line: print(line, file=sys.stderr, flush=True))[1]


def again(record: Record, trusted: bool = False) -> Variant:
    """The variant of a record, which may be ``trusted``; raises :class:`PlumbError` where that cannot be run here."""
    if record.is_imported:
        raise PlumbError("an imported record", record.id, "profile it with the program that measured it")
    variant = variant_again(record, trusted)
    refuse_other_nodes(site.partition(site.load(variant.site), variant.partition), variant.stack)
    return variant


def refuse_other_nodes(partition: Partition, stack: str) -> None:
    """Raise :class:`PlumbError` for a partition whose nodes are not this host."""
    if jobs.needed(partition):
        cure = f"run it inside a job: {stack} is started on this host"
        raise PlumbError(f"partition {partition.name} is reached by jobs only", "plumb profile", cure)


def program(words: Sequence[str], settings: dict[str, Any]) -> Variant:
    """The variant of a person's own program with its arguments, which runs in the present folder with ``settings``."""
    name, *arguments = words
    file = shutil.which(name)
    if file is None:
        raise PlumbError(f"there is no such program: {name}", "plumb profile", "give its path after --")
    absolute = str(Path(file).absolute())
    return Variant.create(
        test="profile", name=f"profile {Path(name).name}", benchmark=OWN, arguments=arguments, figures=[],
        parser="none", context={"program": absolute, "command": ["env", "-C", str(Path.cwd()), absolute]}, **settings,
    )  # fmt: skip
