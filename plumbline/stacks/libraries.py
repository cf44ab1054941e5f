"""The shared libraries that a program gets, as ``ldd`` says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from plumbline.errors import PlumbError
from plumbline.stacks import fetch

_LINE = re.compile(r"(\S+) => (.*?)(?: \(0x|$)", re.MULTILINE)


def of(program: Path, ident: str, owner: str, environment: Mapping[str, str]) -> dict[str, Path]:
    """Library name to its file, links resolved; :class:`PlumbError` names those that benchmark ``ident`` lacks.

    ``owner`` is the stack that the program is of, ``environment`` the variables that it is run with.
    """
    text = fetch.call(["ldd", str(program)], f"cannot look into {program.name}", owner, environment)
    files = {name: file.strip() for name, file in _LINE.findall(text)}
    missing = [name for name, file in files.items() if file == "not found"]
    if missing:
        raise PlumbError(f"{ident} lacks {', '.join(missing)}", str(program), "install the package that has it")
    return {name: Path(file).resolve() for name, file in files.items()}
