"""Whether both sides of a gate are the same program, which needs no measuring.

They are where their circumstances are equal, and every file that a launch looks at. Launches of each side under
``plumb-trace`` show these, also those of children, static programs and calls past the C library. What may look at
files that are not shown, or looks at others in each launch, is never the same. Files of a side's build count by their
names, links and content, all others by their path.
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
from plumbline.measure.application.build import MARK
from plumbline.records.model import Record

#: folders whose files say nothing of a program, but for the shared memory in them
_PASSING, _SHARED = (("proc",), ("sys",), ("dev",)), Path("/dev/shm")  # noqa: S108 - no file of ours
#: sockets of daemons that only look up names, or write a log
_HARMLESS = re.compile(
    r"(/var)?/run/(nscd|munge|nvidia-persistenced|systemd/(userdb|journal|resolve))/|/var/lib/sss/pipes/|/dev/log$"
)
#: traced launches of a side: what only some launches look at, or not the first, is seen more likely
LAUNCHES = 2
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
    return not names, [
        f"the same program file on both sides, but launches read another {name[1:]}" for name in names[:1]
    ]


def circumstances(job: Prepared) -> str:
    """All that a launch of ``job`` is started with, without the names of what was built for it alone."""
    variant = msgspec.structs.replace(job.variant, application=None, stack="")
    text = json.dumps(msgspec.to_builtins([variant, job.plan, job.record.command, job.ranks.environment]))
    for root in roots(job.record):
        text = text.replace(root.name, "")
    return text


def roots(record: Record) -> list[Path]:
    """The folders that were built for the program of ``record``: of an application, or of a commit of the kernels."""
    stack, mark = record.variant.stack, record.variant.context.get("built")
    application = [Path(mark).parent.resolve()] if mark else []
    return [*application, *([paths.stacks().resolve() / stack] * ("@" in stack))]


def looked_at(job: Prepared, folder: Path) -> dict[str, str]:
    """The content, or kind, of all that launches of ``job`` in ``folder`` look at; raises :class:`Unseen`."""
    first, *others = (_launched(job, folder) for _ in range(LAUNCHES))
    for seen in others:
        for name in sorted(name for name in first.keys() | seen.keys() if first.get(name) != seen.get(name))[:1]:
            raise Unseen(f"not each of its launches looks at {name[1:]}, or it changes", job.variant.name)
    return first


def _launched(job: Prepared, folder: Path) -> dict[str, str]:
    where, record, listed = job.variant.name, copy.copy(job.record), folder.with_name(f"{folder.name}.files")
    if job.manifest.container or job.variant.nodes > 1:
        raise Unseen("launches in containers or over several nodes are not traced", where)
    trace = str(paths.tools() / "bin" / "plumb-trace")
    record.command = ["/usr/bin/env", "PYTHONDONTWRITEBYTECODE=1", trace, str(listed), "--", *record.command]
    record.launches, record.loaded = [], []
    try:
        launch = pipeline.launch(replace(job, record=record), 0, 0, folder)
        texts = listed.read_bytes().split(b"\0")
    except OSError as error:
        raise Unseen(f"a launch cannot be traced: {error}", where) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        listed.unlink(missing_ok=True)
    if not launch.verified:
        raise Unseen(f"the traced launch is not verified: {launch.reasons[0]}", where)
    entries = {
        (chr(text[0]), os.fsdecode(text[1:]), os.fsdecode(name))
        for text, name in zip(texts[::2], texts[1::2], strict=False)
    }
    if ("F", str(Path(record.benchmark.file).resolve())) not in {entry[:2] for entry in entries}:
        raise Unseen("its ranks start where they are not traced", where)
    copies = (file for path in job.variant.context.get("copy", {}).values() for file in files.below(Path(path)))
    entries |= {("F", str(file.resolve()), str(file)) for file in copies}  # made by the driver, which is not traced
    built, seen = roots(record), dict[str, str]()
    for kind, text, name in sorted(entries):
        path = _source(Path(text), built)
        names = Path(name) if path == Path(text) else path
        if kind == "X":
            raise Unseen(f"it may read files that are not seen: {text}", where)
        is_passing = path.parts[1:2] in _PASSING and not path.is_relative_to(_SHARED)
        inside, named = _inside(path, built), _inside(names, built)
        if kind == "S" and os.path.lexists(text) and not _HARMLESS.match(text):
            raise Unseen(f"another program may read files for it, at the socket {text}", where)
        if inside or named:
            key = inside if names.parts[1:2] in _PASSING else named or str(names)
            seen[f"{kind}{key}"] = f"{inside} {_content(path, kind, where)}" if inside else text
        elif not is_passing and os.path.lexists(text):  # the folder of the launch is gone
            seen[kind + text] = ""
    return seen


def _source(path: Path, built: list[Path]) -> Path:
    """``path``, or the source of a module that Python compiled in a launch; what the build compiled counts itself."""
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        source = path.parent.with_name(f"{path.name.partition('.')[0]}.py")
        marks = [mark for root in built if path.is_relative_to(root) and (mark := root / MARK).exists()]
        if source.is_file() and any(path.stat().st_mtime_ns > mark.stat().st_mtime_ns for mark in marks):
            return source
    return path


def _inside(path: Path, built: list[Path]) -> str | None:
    """``path`` from the folder on that was ``built`` and has it; None elsewhere."""
    for root in built:
        for top in (path, *path.parents):
            if top.name == root.name and top.resolve() == root:
                return str(path.relative_to(top))
    return None


def _content(path: Path, kind: str, where: str) -> str:
    """Of a file of a build its SHA-256 and its mode, of a folder that was listed its names."""
    try:
        mode = f"{path.stat().st_mode:o}"
        if path.is_dir():
            names = {entry.name for entry in path.iterdir()} - {"__pycache__"} if kind == "L" else ()
            return repr([mode, *sorted(names)])
        with files.opened(path) as stream:
            return f"{files.sha256_of(stream)} {mode}"
    except OSError as error:
        raise Unseen(f"it reads a file of the build that cannot be read afterwards: {path}", where) from error


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
