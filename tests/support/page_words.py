"""Pages in words: a digest that is short enough to be read as a diff, and the differences of two pages.

``python tests/support/page_words.py OLD NEW`` prints the differences of two pages, or of the pages of two folders.
``tests/golden/pages.py`` makes the pages of the golden commands, of this checkout and of another commit.
"""

import base64
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = Any
#: blocks that have blocks of their own, each with a line in a digest
HOLDERS = ("section", "part", "choice", "toggled")
#: what names a block
NAMES = ("title", "caption", "label", "id")
#: longer texts are cut, followed by their number of characters
LONGEST = 160


def document(html: str) -> Json:
    """The data of a page, or of such data by themselves."""
    if html.startswith("{"):
        return json.loads(html)
    ((kind, data),) = re.findall(r'<script type="([^"]+)" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(gzip.decompress(base64.b64decode(data)) if kind == "application/gzip" else data)


def digest(page: Json) -> list[str]:
    """A line for each section, table, chart and text: title, number of rows, first and last row, a hash of all of it.

    Of the entries of a report the first one is shown whole, each other one as one line.
    """
    texts = {key: value for key, value in page.items() if not isinstance(value, list | dict)}
    lines = [f"{key}: {words(value)}" for key, value in texts.items()]
    for key, value in page.items():
        if key == "entries":
            lines += [f"entries: {len(value)}", *_entries(value)]
        elif key not in texts:
            lines += [f"{key}:", *_lines(value, 1)]
    return lines


def _entries(entries: list[Json]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        yield f"  entry {words(entry['title'])} {words(entry['head'])} {hash_of(entry)}"
        if number == 0:
            yield from _lines(entry["body"], 2)


def _lines(piece: Json, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(piece, list):
        for part in piece:
            yield from _lines(part, depth)
    elif isinstance(piece, dict) and piece.get("is") in HOLDERS:
        others = {key: value for key, value in piece.items() if key != "pieces"}
        yield f"{indent}{piece['is']} {name_of(piece)} {hash_of(others)}"
        yield from _lines(piece.get("pieces", piece.get("options")), depth + 1)
    elif isinstance(piece, dict) and "rows" in piece:
        yield f"{indent}{piece.get('is', 'table')} {name_of(piece)}: {_rows(piece)} {hash_of(piece)}"
    elif piece not in (False, ""):
        kind = piece.get("is", "data") if isinstance(piece, dict) else "text"
        yield f"{indent}{kind}: {words(piece)} {hash_of(piece)}"


def _rows(table: Json) -> str:
    """Columns, number of rows, and the first and the last one."""
    columns, rows = table.get("columns", []), table["rows"]
    named = " | ".join(words(column.get("title", "")) for column in columns)
    ends = "; ".join(" | ".join(map(words, row)) if isinstance(row, list) else words(row) for row in _ends(rows))
    return f"{len(rows)} rows{f' of ({named})' if named else ''}" + (f": {ends}" if ends else "")


def _ends(rows: list[Json]) -> list[Json]:
    return rows if len(rows) < 2 else [rows[0], rows[-1]]


def name_of(block: Json) -> str:
    """The name of a block, or nothing."""
    return next((f"“{words(block[key])}”" for key in NAMES if block.get(key)), "")


def words(piece: Json) -> str:
    """The texts of a piece, cut where they are long."""
    text = " ".join(" ".join(_texts(piece)).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _texts(piece: Json) -> Iterator[str]:
    if isinstance(piece, dict):
        for key in ("title", "caption", "text", "pieces", "rows", "options", "count"):
            yield from _texts(piece.get(key, ""))
    elif isinstance(piece, list):
        for part in piece:
            yield from _texts(part)
    elif piece not in (False, ""):
        yield "–" if piece is None else str(piece)


def hash_of(piece: Json) -> str:
    """Eight digits of the SHA-256 of a piece."""
    return "#" + hashlib.sha256(json.dumps(piece, sort_keys=True).encode()).hexdigest()[:8]


def differences(old: Json, new: Json, where: str = "") -> Iterator[str]:
    """The differences of two pages, one line each: the place, what was there, and what is there now."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        here = f"{where} {name_of(new)}".strip() if name_of(new) else where
        for key in dict.fromkeys((*old, *new)):
            step = here if key in ("pieces", "rows", "sections", "entries", "body") else f"{here} {key}"
            yield from differences(old.get(key), new.get(key), step.strip())
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, where)
    else:
        yield f"{where.strip() or 'page'}: {words(old) or 'nothing'} → {words(new) or 'nothing'}"


def _of_lists(old: list[Json], new: list[Json], where: str) -> Iterator[str]:
    """Cells are compared one by one, other members with those of the same name, whatever stands between them."""
    if len(old) == len(new) and not any(isinstance(member, dict | list) for member in (*old, *new)):
        for before, after in zip(old, new, strict=True):
            yield from differences(before, after, where)
        return
    was, now = _keyed(old), _keyed(new)
    for key in dict.fromkeys((*was, *now)):
        if key not in now:
            yield f"{where}: gone: {words(was[key])}"
        elif key not in was:
            yield f"{where}: new: {words(now[key])}"
        else:
            row = isinstance(now[key], list)
            yield from differences(was[key], now[key], f"{where} [{key.partition('#')[0]}]" if row else where)


def _keyed(members: list[Json]) -> dict[str, Json]:
    """Each member by its name or first cell, or by its number among those of the same name."""
    keyed: dict[str, Json] = {}
    for member in members:
        first = member[0] if isinstance(member, list) and member else ""
        name = name_of(member) or member.get("is", "") if isinstance(member, dict) else words(first)
        number = sum(key.startswith(f"{name}#") for key in keyed)
        keyed[f"{name}#{number}"] = member
    return keyed


def of_folders(old: Path, new: Path) -> Iterator[str]:
    """The differences of the pages of two folders, or of two pages."""
    folders = new.is_dir()
    names = sorted({path.relative_to(folder) for folder in (old, new) for path in folder.rglob("*") if path.is_file()})
    for name in names if folders else [Path()]:
        before, after = old / name, new / name
        if not before.is_file() or not after.is_file():
            yield f"{name}: {'a new page' if after.is_file() else 'the page is gone'}"
            continue
        pages = [document(file.read_text(encoding="utf-8")) for file in (before, after)]
        yield from (f"{name if folders else ''} {line}".strip() for line in differences(*pages))


if __name__ == "__main__":
    print("\n".join(of_folders(*map(Path, sys.argv[1:3]))) or "no difference")
