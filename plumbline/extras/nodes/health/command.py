"""``plumb check``: is this node as fast as its kind? It starts ``plumb-check``, which does all of it."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from plumbline import site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.schedulers import names

#: Nagios takes 2 for a node that is bad: bad input is 3, unknown
NAGIOS_UNKNOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb check``."""
    group = parser.add_argument_group("which class")
    options.add(group, "--site", "the site (default: the one that claims this host)")
    options.add(group, "--partition", "the partition whose class is taken (default: the site's first)")
    group.add_argument("--class", type=Path, metavar="FILE", dest="class_file", help="a class file instead")
    options.add(parser, "--seconds", "that the check may take: 10, 25, 55, 120 or 900 (default: 25)", default=25)
    text = "of the result (default: text; nhc is silent unless the node is bad)"
    parser.add_argument("--form", choices=("text", "nhc", "nagios", "json", "openmetrics"), default="text", help=text)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--plan", action="store_true", help="what is measured, and from which slowdown on it is found")
    mode.add_argument("--last", action="store_true", help="the last result at once, with its age")
    mode.add_argument("--detach", action="store_true", help="begin in the background; the last result at once")
    parser.add_argument("--beside-jobs", action="store_true", help="measure although jobs are on the node")
    options.add(parser, "--node", "this node, as the class calls it (default: this host)", action="append", default=[])
    parser.add_argument("--state", type=Path, metavar="FOLDER", help="where the last result is kept")
    text = "write the result to FILE in one step, such as NAME.prom of node_exporter"
    parser.add_argument("--write", type=files.Output, metavar="FILE", help=text)
    parser.add_argument("--measured", type=Path, metavar="FILE", help="measure nothing: take rounds from FILE")


def run(args: argparse.Namespace) -> int:
    """Check; the exit status is plumb-check's: 0 fine or in doubt, 1 bad."""
    try:
        return _run(args)
    except PlumbError as error:
        if args.form != "nagios":
            raise
        print(f"PLUMB UNKNOWN - {error}")
        return NAGIOS_UNKNOWN


def _run(args: argparse.Namespace) -> int:
    words = ["--class", str(_class(args)), "--seconds", f"{args.seconds:g}", "--form", args.form]
    words += [f"--{name}" for name in ("plan", "last", "detach") if getattr(args, name)]
    words += ["--beside-jobs"] if args.beside_jobs else []
    if len(args.node) > 1:
        raise PlumbError(f"{len(args.node)} nodes are named", "--node", "one node is checked: this host")
    named = (("--state", args.state), ("--output", args.write), ("--measured", args.measured))
    words += [word for option, value in named if value for word in (option, str(value))]
    words += ["--node", names.host(args.node[0], "--node")] if args.node else []
    try:
        return subprocess.run([paths.checker(), *words], check=False).returncode
    except FileNotFoundError:
        raise PlumbError("plumb-check is not built", str(paths.checker()), paths.setup()) from None
    except OSError as error:
        reason = f"plumb-check cannot be started: {error.strerror}"
        raise PlumbError(reason, str(paths.checker()), paths.setup()) from None


def _class(args: argparse.Namespace) -> Path:
    """The class file that is named, or that of the partition."""
    from plumbline.extras.nodes.health import collect

    if args.class_file:
        return Path(args.class_file)
    chosen_site = site.load(args.site or site.here())
    part = site.partition(chosen_site, args.partition) if args.partition else chosen_site.partitions[0]
    return collect.made_class(chosen_site.name, part.name)
