"""The shared libraries that a program gets, from what ``ldd`` prints."""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.errors import PlumbError

_LINE = re.compile(r"(\S+) => (.*?)(?: \(0x|$)", re.MULTILINE)


def found(text: str, ident: str, program: Path) -> dict[str, Path]:
    """Library name to its file, links resolved; :class:`PlumbError` names those that ``ident`` lacks."""
    files = {name: file.strip() for name, file in _LINE.findall(text)}
    missing = [name for name, file in files.items() if file == "not found"]
    if missing:
        raise PlumbError(f"{ident} lacks {', '.join(missing)}", str(program), "install the package that has it")
    return {name: Path(file).resolve() for name, file in files.items()}
