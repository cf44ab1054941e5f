"""``plumb stack lock``, ``diff``, ``push`` and ``externals``: actions of Spack stacks only."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from plumbline import stacks
from plumbline.base import files, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.extras import spack
from plumbline.extras.spack import buildcache, difference, environments, sites
from plumbline.extras.spack.lock import Lock

#: most packages of a lock whose changes are printed
MOST_LINES = 20


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The actions of ``plumb stack`` that are about Spack."""
    lock = actions.add_parser("lock", help="concretize Spack environments and write the site's locks")
    lock.add_argument("stacks", nargs="+", metavar="spack:NAME", help="the environments")
    lock.add_argument("--check", action="store_true", help="change nothing; status 1 if a lock would change")
    diff = actions.add_parser("diff", help="the packages in which the locks of two Spack stacks differ")
    diff.add_argument(
        "stacks", nargs=2, metavar="spack:NAME|LOCK", help="an environment of the site, or any file NAME.lock"
    )
    options.add_json(diff, "print JSON: a line for each package")
    push = actions.add_parser("push", help="put installed Spack stacks into a buildcache that others install from")
    push.add_argument("stacks", nargs="+", metavar="spack:NAME", help="installed stacks")
    where = push.add_mutually_exclusive_group(required=True)
    text = "the buildcache, made where it is not there"
    where.add_argument("--to", type=files.OutputFolder, metavar="FOLDER", help=text)
    text = "a registry of container images, in place of a folder"
    where.add_argument("--registry", type=_registry, metavar="oci://HOST/NAME", help=text)
    push.add_argument("--key", metavar="KEY", help="sign with this secret key of your GnuPG; default: unsigned")
    externals = actions.add_parser("externals", help="give the MPI of installed stacks to Spack")
    externals.add_argument("stacks", nargs="+", metavar="NAME", help="installed stacks")
    options.add(externals, "--site", "the Spack site to write (default: local)", default="local")
    for action, do in ((lock, _lock), (diff, _diff), (push, _push), (externals, _externals)):
        action.set_defaults(do=do)


def _registry(text: str) -> str:
    """The address of a registry."""
    if not buildcache.is_registry(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not the address of a registry, such as oci://HOST/NAME")
    return text


def _of_spack(specs: list[str], action: str) -> list[str]:
    """The environments' names in ``spack:NAME``."""
    pairs = [stacks.origin(spec) for spec in specs]
    foreign = next((spec for spec, (kind, _) in zip(specs, pairs, strict=True) if kind != "spack"), None)
    if foreign:
        raise PlumbError(
            f"'{foreign}' is not a Spack stack", f"plumb stack {action}", f"such as spack:{stacks.split(foreign)[1]}"
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


def _diff(args: argparse.Namespace) -> int:
    differences = difference.between(*map(_read, args.stacks))
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


def _push(args: argparse.Namespace) -> int:
    place = args.registry or args.to.resolve()
    for name in _of_spack(args.stacks, "push"):
        count = spack.push(name, place, args.key)
        how = f"signed by {args.key}" if args.key else "unsigned"
        print(f"spack:{name}: {units.counted(count, 'package')} in {place}, {how}")
    keys = f" {buildcache.VARIABLE}=FILE" if args.key else ""
    print(f"there: {buildcache.PLACE}={place}{keys} plumb stack install {' '.join(args.stacks)}")
    return 0


def _externals(args: argparse.Namespace) -> int:
    file = sites.write_externals(args.stacks, args.site)
    print(f"{file}: then PLUMB_SPACK_SITE={args.site} plumb stack lock spack:NAME")
    return 0
