"""``plumb application``: write and check plumb.yaml."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.measure.application import model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb application``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="write a plumb.yaml that explains itself")
    init.add_argument("--name", help="of the application (default: that of the folder)")
    text = "write a small code in C and one in Python with their plumb.yaml, to try all this with"
    init.add_argument("--example", action="store_true", help=text)
    check = actions.add_parser("check", help="say what is wrong in plumb.yaml, one line each")
    options.add(check, "--application", "default: the plumb.yaml here, or above")


def run(args: argparse.Namespace) -> int:
    """Write the file, or print a line for each fault; returns 1 if there is one."""
    if args.action == "check":
        return _check(model.here(args.application))
    if args.example and args.name:
        raise PlumbError("--name is that of a file of your own", "--example", "leave out one of the two")
    return _example() if args.example else _init(args.name)


def _example() -> int:
    folder = paths.suite() / "docs" / "examples" / "heat"
    known = sorted(file for file in folder.iterdir() if file.is_file())  # pip compiles what is Python in a wheel
    for file in known:
        if (Path.cwd() / file.name).exists():
            raise PlumbError(f"there is a {file.name} already", str(Path.cwd()), "begin in an empty folder")
    for file in known:
        shutil.copyfile(file, file.name)
    print(f"written: {', '.join(file.name for file in known)}; the next step: git init, commit, plumb run")
    return 0


def _init(name: str | None) -> int:
    file = Path.cwd() / model.FILE
    if file.exists():
        raise PlumbError(f"there is a {model.FILE} already", str(file), "plumb application check reads it")
    known = name or re.sub("[^a-z0-9_]", "_", file.parent.name.lower()).lstrip("_0123456789") or "application"
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", known):
        raise PlumbError(f"'{known}' cannot name an application", "--name", "small letters, digits and _ only")
    text = (Path(model.__file__).with_name("starter.yaml")).read_text(encoding="utf-8")
    files.write(model.FILE, file, text.replace("NAME", known))
    print(f"{file}: now write what your program is called and what it prints; then plumb application check")
    return 0


def _check(file: Path) -> int:
    application, faults = model.checked(file)
    for fault in faults:
        print(f"{file}: {fault}")
    if application and not faults:
        for name, program in application.programs.items():
            figures = ", ".join(f"{figure} ({rule.unit})" for figure, rule in program.figures.items())
            print(f"{name}: {' '.join(program.words)}; placements {', '.join(program.placements)}; {figures}")
        print(f"{file}: in order")
    return 1 if faults else 0
