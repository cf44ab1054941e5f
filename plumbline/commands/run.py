"""``plumb run``: the programs of plumb.yaml, over stacks and placements, or with the stacks against one another."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

from plumbline.base import paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.gate import fastest
from plumbline.measure.application import model, source
from plumbline.measure.reframe import campaign, settings
from plumbline.measure.reframe.built import offered_stacks, prepared
from plumbline.statistics.paired import PairedRule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb run``."""
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of plumb.yaml (default: all)")
    text = "with this stack, repeated (default: all that the site offers)"
    options.add(parser, "--stack", text, action="append", default=[])
    parser.add_argument("--commit", help="a commit of the repository (default: the files as they are now)")
    options.add(parser, "--application", "default: the plumb.yaml here, or above")
    options.add(parser, "--site", "where (default: the site that claims this host)")
    options.add(parser, "--partition", "default: the partitions of the site that have the stacks")
    parser.add_argument("--launches", type=int, metavar="N", help="of each variant (default: as plumb.yaml says)")
    parser.add_argument("-S", action="append", default=[], metavar="NAME=VALUE", help="variable of the tests, repeated")
    text = "say with which stack the programs are fastest, by gates of the stacks against one another"
    parser.add_argument("--any-mpi", action="store_true", help=text)
    options.add(parser, "--minutes", "with --any-mpi: start no pair after M minutes")


def run(args: argparse.Namespace) -> int:
    """Build the application with each stack, measure its programs, print the summary; the status is a campaign's.

    With ``--any-mpi`` that of gates: 0 where all decided which of two stacks is faster, or that none is.
    """
    file = model.here(args.application)
    if args.any_mpi:
        return _any_mpi(args, file)
    if args.minutes:
        raise PlumbError("--minutes goes with --any-mpi", "plumb run", "--launches N limits the launches")
    application = model.load(file)
    wanted = campaign.named(application.tests(args.programs, file))
    state = source.of_commit(file, args.commit) if args.commit else source.present(file)
    stacks = args.stack or offered_stacks(file)
    folder = paths.build() / "applications" / application.application
    tests = prepared(file, state, stacks, folder, terminal.say)
    environments = "|".join(re.escape(settings.environment_name(name)) for name in stacks)
    variables = [*([f"launches={args.launches}"] if args.launches else []), *args.S]
    chosen = ["-p", f"^({environments})$", *wanted, *(word for value in variables for word in ("-S", value))]
    if system := options.system(args):
        chosen.append(f"--system={system}")
    print(f"{application.application}: {state.label}, {file}", flush=True)
    return campaign.measure(replace(tests, options=chosen))


def _any_mpi(args: argparse.Namespace, file: Path) -> int:
    if args.commit or args.launches or args.S:
        message = "--any-mpi measures the files as they are now, until it is certain"
        raise PlumbError(message, "plumb run", "leave out --commit, --launches and -S")
    stacks = args.stack or offered_stacks(file)
    if len(stacks) < 2:
        raise PlumbError(f"{stacks[0]} alone is nothing to compare", "plumb run --any-mpi", "plumb stack list")
    tests = model.load(file).tests(args.programs, file)
    compare = fastest.gates(file, tests, options.system(args), PairedRule(gain=True), args.minutes, terminal.say)
    places, status = fastest.find(stacks, compare)
    print(f"\n{fastest.text(stacks, places)}")
    return status
