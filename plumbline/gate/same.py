"""Whether both sides of a gate are the same program, which needs no measuring.

They are where their circumstances are equal, and every file that a launch looks at. A launch of each side under
``plumb-trace`` shows these, also those of children, static programs and calls past the C library. What may look at
files that are not shown is never the same. Files of a side's build count by their content, all others by their path.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import msgspec

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.launch import pipeline
from plumbline.launch.prepare import Prepared
from plumbline.records.model import Record

#: folders whose files say nothing of a program
_PASSING = (("proc",), ("sys",), ("dev",))
_DATE = re.compile(rb"\b\d\d:\d\d:\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{4}\b")
#: begin of an ELF file of 64 bits, low bytes first; of its sections: name, type, flags, address, place, size
_ELF, _SECTION = b"\x7fELF\x02\x01", "<IIQQQQ"


class Unseen(PlumbError):
    """Not every file that a launch looks at can be seen."""


def compare(first: Prepared, second: Prepared, folder: Path) -> tuple[bool, list[str]]:
    """Whether both are the same program, and a note where they nearly are; traced launches run in ``folder``."""
    if circumstances(first) != circumstances(second):
        return False, []
    if first.record.benchmark.sha256 != second.record.benchmark.sha256:
        return False, built_otherwise(first.record, second.record)
    try:
        seen = [looked_at(job, folder) for job in (first, second)]
    except Unseen as error:
        return False, [f"the same program file on both sides, but measured: {error}"]
    names = sorted(name for name in seen[0].keys() | seen[1].keys() if seen[0].get(name) != seen[1].get(name))
    return not names, [f"the same program file on both sides, but launches read another {name}" for name in names[:1]]


def circumstances(job: Prepared) -> str:
    """All that a launch of ``job`` is started with, without the names of what was built for it alone."""
    variant = msgspec.structs.replace(job.variant, application=None, stack="")
    text = json.dumps(msgspec.to_builtins([variant, job.plan, job.record.command, job.ranks.environment]))
    for root in roots(job.record):
        text = text.replace(root.name, "")
    return text


def roots(record: Record) -> list[Path]:
    """The folders that were built for the program of ``record``: of an application, or of a commit of the kernels."""
    builds, program = paths.build().resolve() / "applications", Path(record.benchmark.file).resolve()
    parts = program.relative_to(builds).parts if program.is_relative_to(builds) else ()
    stack = record.variant.stack
    return [*([builds.joinpath(*parts[:2])] if parts else []), *([paths.stacks().resolve() / stack] * ("@" in stack))]


def looked_at(job: Prepared, folder: Path) -> dict[str, str]:
    """The content, or kind, of all that a launch of ``job`` in ``folder`` looks at; raises :class:`Unseen`."""
    where, record, listed = job.variant.name, copy.copy(job.record), folder.with_name(f"{folder.name}.files")
    if job.manifest.container or job.variant.nodes > 1:
        raise Unseen("launches in containers or over several nodes are not traced", where)
    record.command = [str(paths.tools() / "bin" / "plumb-trace"), str(listed), "--", *record.command]
    record.launches, record.loaded = [], []
    try:
        launch = pipeline.launch(replace(job, record=record), 0, 0, folder)
        entries = sorted(set(listed.read_bytes().split(b"\0")[:-1]))
    except OSError as error:
        raise Unseen(f"a launch cannot be traced: {error}", where) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        listed.unlink(missing_ok=True)
    copies = (file for path in job.variant.context.get("copy", {}).values() for file in files.below(Path(path)))
    entries += [b"F" + os.fsencode(file.resolve()) for file in copies]  # made by the driver, which is not traced
    if not launch.verified:
        raise Unseen(f"the traced launch is not verified: {launch.reasons[0]}", where)
    built, seen = roots(record), dict[str, str]()
    for kind, text in ((chr(entry[0]), os.fsdecode(entry[1:])) for entry in entries):
        path = Path(text)
        root = next((root for root in built if path.is_relative_to(root)), None)
        if kind == "X":
            raise Unseen(f"it may read files that are not seen: {text}", where)
        if root:
            seen[f"{kind}{path.relative_to(root)}"] = _content(path, kind, where)
        elif kind == "F" and path.parts[1:2] not in _PASSING and path.is_file():
            seen[text] = ""  # the folder of the launch is gone
    if b"F" + os.fsencode(Path(record.benchmark.file).resolve()) not in entries:
        raise Unseen("its ranks start where they are not traced", where)
    return seen


def _content(path: Path, kind: str, where: str) -> str:
    """Of a file of a build its SHA-256 and whether it may be run, of a folder that was listed its names."""
    try:
        if path.is_dir():
            return repr(sorted(entry.name for entry in path.iterdir())) if kind == "L" else ""
        return f"{files.sha256(path)} {path.stat().st_mode & 0o111}"
    except OSError as error:
        raise Unseen(f"it reads a file of the build that is gone afterwards: {path}", where) from error


def built_otherwise(first: Record, second: Record) -> list[str]:
    """A note on two programs that differ in a date or a path of their builds, and not in their instructions."""
    both = [_sections(Path(record.benchmark.file)) for record in (first, second)]
    names = sorted(name for name in both[0].keys() | both[1].keys() if both[0].get(name) != both[1].get(name))
    parts = [(name, both[0].get(name, b""), both[1].get(name, b"")) for name in names]
    notes = [
        f"{name} has a date ({date.decode()}): set SOURCE_DATE_EPOCH"
        for name, before, after in parts
        for date in _DATE.findall(before)[:1]
        if date not in after
    ]
    folders = [root.name.encode() for root in roots(first)]
    notes += [
        f"{name} has the path of the build: -ffile-prefix-map=$PWD=."
        for name, before, _ in parts
        if any(folder in before for folder in folders)
    ]
    if ".text" in names or not notes:
        return []
    return [f"the programs differ in what their build leaves in them: {'; '.join(notes)}"]


def _sections(file: Path) -> dict[str, bytes]:
    """The content of each section of an ELF file; any other is one section."""
    data = file.read_bytes()
    if not data.startswith(_ELF):
        return {file.name: data}
    (start,), (size, number, naming) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from(_SECTION, data, start + size * place) for place in range(number)]
    names = heads[naming][4] if heads else 0
    return {
        data[names + head[0] : data.index(b"\0", names + head[0])].decode(): data[head[4] : head[4] + head[5]]
        for head in heads
        if head[1] != 8  # of no content
    }
