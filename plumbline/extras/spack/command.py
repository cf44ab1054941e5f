"""``plumb stack lock``, ``diff`` and ``push``: actions of Spack stacks only."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import msgspec

from plumbline import stacks
from plumbline.base import files, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.commands.options import Command, command, flag, option
from plumbline.extras import spack
from plumbline.extras.spack import buildcache, environments, sites
from plumbline.extras.spack.lock import Lock, between

#: most packages of a lock whose changes are printed
MOST_LINES = 20


def _of_spack(specs: list[str], action: str) -> list[str]:
    """The environments' names in ``spack:NAME``."""
    pairs = [stacks.origin(spec) for spec in specs]
    foreign = next((spec for spec, (kind, _) in zip(specs, pairs, strict=True) if kind != "spack"), None)
    if foreign:
        raise PlumbError(
            f"'{foreign}' is not a Spack stack", f"plumb stack {action}", f"such as spack:{stacks.split(foreign)[1]}"
        )
    return [name for _, name in pairs]


@command(
    option("stacks", "environments to lock", nargs="+", metavar="spack:NAME"),
    flag("--check", "change nothing; exit with status 1 if a lock would change"),
    help="concretize Spack environments and write the site's locks",
)
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


@command(
    option("stacks", "environment of the site, or a file such as spack.lock", nargs=2, metavar="spack:NAME|LOCK"),
    options.as_json("print JSON, one line per package"),
    help="list the packages that differ between the locks of two Spack stacks",
)
def _diff(args: argparse.Namespace) -> int:
    differences = [*between(*map(_read, args.stacks))]
    if args.json:
        options.print_lines([msgspec.to_builtins(item) for item in differences])
    elif differences:
        rows = [row for item in differences for row in item.rows()]
        print(table(["PACKAGE", "WHAT", *args.stacks], rows, ruled=False))
    else:
        print(f"{', '.join(args.stacks)}: the same packages")
    return 0


def _read(spec: str) -> Lock:
    """The lock of an environment of the site, or of any file whose name ends in ``.lock``."""
    if spec.endswith(".lock"):
        return environments.load(Path(spec))
    (name,) = _of_spack([spec], "diff")
    environments.named(name, "plumb stack diff")
    return environments.load(environments.lock(name))


@command(
    option("stacks", "installed stacks", nargs="+", metavar="spack:NAME"),
    option(
        "--to", "folder of the buildcache, created if missing", type=files.OutputFolder, required=True, metavar="FOLDER"
    ),
    option("--key", "GnuPG secret key for signing (default: unsigned)", metavar="KEY"),
    help="push installed Spack stacks to a buildcache",
)
def _push(args: argparse.Namespace) -> int:
    place = args.to.resolve()
    for name in _of_spack(args.stacks, "push"):
        count = spack.push(name, place, args.key)
        how = f"signed by {args.key}" if args.key else "unsigned"
        print(f"spack:{name}: {units.counted(count, 'package')} in {place}, {how}")
    keys = f" {buildcache.VARIABLE}=FILE" if args.key else ""
    print(f"there: {buildcache.PLACE}={place}{keys} plumb stack install {' '.join(args.stacks)}")
    return 0


def actions() -> Mapping[str, Command]:
    """The actions of ``plumb stack`` that are about Spack."""
    return {"lock": _lock, "diff": _diff, "push": _push}
