"""The files that records are in: session files, and the compressed ones that ``plumb compact`` makes of them."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
from collections.abc import Iterable
from pathlib import Path

from plumbline.base import paths
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.files import Copy

#: the folder of a site's compacted records
COMPACT = "compact"
#: compacted records, and those of earlier versions
PARTS, PARQUET = f"{COMPACT}/*.jsonl.gz", f"{COMPACT}/*.parquet"
#: how often the files are listed again when one vanished while they were read
TRIES = 20
#: files that are kept below the results folder: sessions, compacted ones, notes, profiles, outcomes, and locks
KEPT = ("*.jsonl", PARTS, PARQUET, "notes.ndjson", "profiles/*.json", "*.outcome.json", ".*")
#: members by which the first line of a file elsewhere is known: of a record, a note, a profile
MEMBERS = (
    (b'"session":', b'"variant":', b'"launches":'),
    (b'"made":', b'"site":', b'"text":'),
    (b'"record":', b'"ranks":', b'"places":'),
)


class Vanished(Exception):
    """A file that was listed is no longer there: compacted, or removed by somebody."""


def sites() -> list[str]:
    """The sites that have records."""
    folders, patterns = sorted(paths.results().glob("*/")), ("*.jsonl", PARTS, PARQUET)
    return [folder.name for folder in folders if any(any(folder.rglob(pattern)) for pattern in patterns)]


def none_yet() -> PlumbError:
    """The error for a command that needs records where there are none."""
    return PlumbError("no records yet", str(paths.results()), "make campaign measures some")


def none_of(site: str) -> PlumbError:
    """The error for a command that needs records of ``site`` where there are none."""
    return PlumbError(
        f"no records of site '{site}'", str(paths.results()), suggest(site, sites(), "plumb list shows what there is")
    )


def require_site(site: str) -> None:
    """Raise :class:`PlumbError` if ``site`` has no folder of records."""
    if not (paths.results() / site).is_dir():
        raise none_of(site)


def only_site(command: str) -> str:
    """The only site that has records; raises :class:`PlumbError` if there are none or several.

    The error names the option ``--site`` of ``command``.
    """
    if not (names := sites()):
        raise none_yet()
    if len(names) > 1:
        raise PlumbError("which site?", f"{command} --site", f"with records: {', '.join(names)}")
    return names[0]


def refuse_kept(target: Path) -> None:
    """Raise :class:`PlumbError` for a file to write that holds records, notes or profiles, or will be read as such.

    Links are followed. A file outside the results folder is known by its first line.
    """
    if target.is_relative_to("/dev") or target.is_fifo():
        return
    real, root = (Path(os.path.realpath(path)) for path in (target, paths.results()))
    if real.is_relative_to(root) and any(real.match(pattern) for pattern in KEPT):
        where = f"the folder of the records, {root}"
    elif _is_kept(real) and not (isinstance(target, Copy) and _is_copy(real)):
        where = "this file"
    else:
        return
    raise PlumbError(f"an output may not replace measured data: {where}", str(target), "name another file")


def _is_kept(file: Path) -> bool:
    if not file.is_file() or file.match(PARTS) or file.match(PARQUET):
        return file.is_file()
    with file.open("rb") as stream:
        first = next((line for line in stream if not line.isspace()), b"")
    return first.startswith(b'{"') and any(all(member in first for member in members) for members in MEMBERS)


def _is_copy(file: Path) -> bool:
    """Whether ``file``, which holds records, is what a session file of its name in them is."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError), file.open("rb") as stream:
        first = json.loads(stream.readline())
        return filecmp.cmp(file, paths.results() / first["site"] / f"{first['session']}.jsonl", shallow=False)
    return False


def check_present(files: Iterable[Path]) -> None:
    """Raise :class:`Vanished` if one of ``files`` no longer exists (a broken symbolic link exists)."""
    if gone := [file for file in files if not os.path.lexists(file)]:
        raise Vanished(gone[0])
