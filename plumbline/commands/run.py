"""``plumb run``: the programs of plumb.yaml, over stacks and placements."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace

from plumbline.application import model, source
from plumbline.base import paths, terminal
from plumbline.commands import options
from plumbline.reframe import campaign, settings
from plumbline.reframe.built import offered_stacks, prepared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb run``."""
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of plumb.yaml (default: all)")
    text = "with this stack, repeated (default: all that the site offers)"
    options.add(parser, "--stack", text, action="append", default=[])
    parser.add_argument("--commit", help="a commit of the repository (default: the files as they are now)")
    options.add(parser, "--application", "default: the plumb.yaml here, or above")
    parser.add_argument("--launches", type=int, metavar="N", help="of each variant (default: as plumb.yaml says)")
    parser.add_argument("-S", action="append", default=[], metavar="NAME=VALUE", help="variable of the tests, repeated")


def run(args: argparse.Namespace) -> int:
    """Build the application with each stack, measure its programs, print the summary; the status is a campaign's."""
    file = model.here(args.application)
    application = model.load(file)
    wanted = campaign.named(application.tests(args.programs, file))
    state = source.of_commit(file, args.commit) if args.commit else source.present(file)
    stacks = args.stack or offered_stacks()
    folder = paths.build() / "applications" / application.application
    tests = prepared(file, state, stacks, folder, terminal.say)
    environments = "|".join(re.escape(settings.environment_name(name)) for name in stacks)
    given = [*([f"launches={args.launches}"] if args.launches else []), *args.S]
    chosen = ["-p", f"^({environments})$", *wanted, *(word for value in given for word in ("-S", value))]
    print(f"{application.application}: {state.label}, {file}", flush=True)
    return campaign.measure(replace(tests, options=chosen))
