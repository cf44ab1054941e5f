"""``plumb run``: the programs of plumb.yaml, over stacks and placements."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec

from plumbline import site
from plumbline.application import build, model, source
from plumbline.application.run import VARIABLE, Runnable
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.reframe import campaign, settings
from plumbline.stacks import manifest as manifests


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb run``."""
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of plumb.yaml (default: all)")
    parser.add_argument("--stack", action="append", default=[], help="repeated (default: all that the site offers)")
    parser.add_argument("--commit", help="a commit of the repository (default: the files as they are now)")
    parser.add_argument("--application", type=Path, metavar="FILE", help="default: the plumb.yaml here, or above")
    parser.add_argument("--launches", type=int, metavar="N", help="of each variant (default: as plumb.yaml says)")
    parser.add_argument("-S", action="append", default=[], metavar="NAME=VALUE", help="variable of the tests, repeated")


def run(args: argparse.Namespace) -> int:
    """Build the application with each stack, measure its programs, print the summary; the status is a campaign's."""
    file = found(args.application)
    application = model.load(file)
    for name in args.programs:
        if name not in application.programs:
            cure = suggest(name, list(application.programs))
            raise PlumbError(f"{file.name} has no program '{name}'", str(file), cure)
    state = source.of_commit(file, args.commit) if args.commit else source.present(file)
    builds = [build.build(file, state, manifests.load(name), terminal.say) for name in args.stack or _offered()]
    runnable = Runnable.of(builds)
    listing = paths.build() / "applications" / runnable.application / "run.json"
    files.replace(listing, msgspec.json.encode(runnable).decode())
    stacks = "|".join(re.escape(settings.environment_name(name)) for name in runnable.stacks)
    tests = "|".join(f"^{re.escape(runnable.test(name))}(%|$)" for name in args.programs or runnable.programs)
    options = ["-p", f"^({stacks})$", "-n", tests, *(["-S", f"launches={args.launches}"] if args.launches else [])]
    options += [word for given in args.S for word in ("-S", given)]
    print(f"{runnable.application}: {state.label}, {file}", flush=True)
    variables = {VARIABLE: str(listing)}
    return campaign.measure(campaign.Tests(_tests(), runnable.application, options, variables))


def found(named: Path | None) -> Path:
    """The plumb.yaml that is ``named``, or that of the present folder; raises :class:`PlumbError` without one."""
    file = named or model.find(Path.cwd())
    if file is None:
        raise PlumbError(f"there is no {model.FILE} here or above", str(Path.cwd()), model.CURE)
    return file.resolve()


def _tests() -> Path:
    """The test file for ReFrame."""
    return Path(campaign.__file__).with_name("applications.py")


def _offered() -> list[str]:
    """The installed stacks that this host's site offers."""
    here = site.claiming(site.load_all())
    if here is None:
        raise PlumbError("no site is configured for this host", str(paths.sites()), "plumb site init makes one")
    offered = dict.fromkeys(name for part in here["partitions"] for name in part["stacks"])
    if not offered:
        raise PlumbError("the site offers no stack", str(paths.sites()), "plumb stack install makes some")
    return list(offered)
