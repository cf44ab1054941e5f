"""``plumb hybrid``: the best hybrid code against the best pure MPI code on the same nodes."""

from __future__ import annotations

import argparse

from plumbline.base import group, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.judge.hybrid import verdicts
from plumbline.measure.application import model
from plumbline.show.compare import hybrid


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb hybrid``."""
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of plumb.yaml, which must be there")
    options.add(parser, "--application", "where the programs are (default: the plumb.yaml here, or above)")
    options.add_records(parser, campaign="only campaigns whose id begins so (default: the newest that has both)")


def run(args: argparse.Namespace) -> int:
    """Print the verdicts; 1 if some records are damaged."""
    if args.programs:
        file = model.here(args.application)
        args.test = model.load(file).tests(args.programs, file)
    records, damages = options.rows(args, valid=True)
    if args.campaign and not records:
        message = f"no valid record of campaign '{args.campaign}'"
        raise PlumbError(message, str(paths.results()), "plumb show ID says of which campaign a record is")
    campaigns = group((record.campaign, record) for record in records).values()
    newest_first = sorted(campaigns, key=lambda members: members[-1].time, reverse=True)
    campaign_verdicts = next(filter(None, map(verdicts, newest_first)), [])
    if args.programs and not campaign_verdicts:
        cure = f"{args.programs[0]}: threads: [1, 2] in plumb.yaml, then plumb run"
        print(f"no campaign has valid records with one thread a rank and with several: {cure}")
    else:
        print(hybrid.text(campaign_verdicts))
    return int(options.report_damage(damages))
