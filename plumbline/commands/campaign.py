"""``plumb campaign``: ReFrame over all tests of a profile, then one table of the results."""

from __future__ import annotations

import argparse

from plumbline.commands import options
from plumbline.measure.reframe import campaign


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb campaign``."""
    options.add_profile(parser, "the tests with this tag (default: quick)")
    options.add(parser, "--test", "only those whose name begins with what this regular expression matches")
    where = parser.add_mutually_exclusive_group()
    text = "jobs run on this node, repeated; PARTITION=NODE where several partitions have it"
    options.add(where, "--node", text, action="append", default=[])
    where.add_argument("--turn", metavar="I/K", help="jobs run on the I-th of the first K nodes that can be used")
    parser.add_argument("reframe", nargs="*", metavar="-- REFRAME OPTION", help="passed on to ReFrame")


def run(args: argparse.Namespace) -> int:
    """Run the tests tagged with the profile, with ReFrame's own options as given, and print the summary.

    Returns 0 when every variant that the machine can hold ended verified, 1 when one did not or there was none, 130 if
    interrupted.
    """
    return campaign.run(args.profile, args.test, args.reframe, args.node, args.turn)
