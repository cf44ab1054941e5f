"""``plumb check``: is this node as fast as its kind? It starts ``plumb-check``, which does all of it."""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

from plumbline import site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.commands.options import command, exclusive, flag, group, option
from plumbline.schedulers import names

#: Nagios takes 2 for a node that is bad: bad input is 3, unknown
NAGIOS_UNKNOWN = 3


@command(
    group(
        "node class",
        option("--site", "site (default: the site of this host)"),
        option("--partition", "partition of the node class (default: the first of the site)"),
        option("--class", "class file to use instead", type=Path, metavar="FILE", dest="class_file"),
    ),
    option("--seconds", "time budget of the check in seconds: 10, 25, 55, 120 or 900 (default: 25)", default=25),
    option(
        "--form",
        "output format (default: text; nhc is silent unless the node is bad)",
        choices=("text", "nhc", "nagios", "json", "openmetrics"),
        default="text",
    ),
    exclusive(
        flag("--plan", "print the measurements and the smallest detectable slowdown of each"),
        flag("--last", "print the last result and its age without measuring"),
        flag("--detach", "start the check in the background and print the last result"),
    ),
    flag("--held", "show what holds the memory of this idle node, without measuring"),
    option("--tolerance", "share of the class's memory that may be in use (default: 0.05, 5 %%)", default=0.05),
    flag("--beside-jobs", "measure even with jobs on the node"),
    option("--node", "name of this node in the class (default: host name)", action="append", default=[]),
    option("--state", "folder of the last result", type=Path, metavar="FOLDER"),
    option(
        "--write",
        "write the result to FILE atomically, such as NAME.prom for node_exporter",
        type=files.Output,
        metavar="FILE",
    ),
    option("--measured", "judge the rounds in FILE without measuring", type=Path, metavar="FILE"),
)
def run_check(args: argparse.Namespace) -> int:
    """Check; the exit status is plumb-check's: 0 fine or in doubt, 1 bad."""
    try:
        return _run(args)
    except PlumbError as error:
        if args.form != "nagios":
            raise
        print(f"PLUMB UNKNOWN - {error}")
        return NAGIOS_UNKNOWN


def _run(args: argparse.Namespace) -> int:
    if args.held:
        from plumbline.extras.nodes import held  # a measurement does not need it

        text = _class(args).read_text(encoding="utf-8", errors="replace")
        usual = re.search(r"^fact memory\.mib (\d+)$", text, re.MULTILINE)
        return held.run(int(usual[1]) if usual else None, args.tolerance)
    words = ["--class", str(_class(args)), "--seconds", f"{args.seconds:g}", "--form", args.form]
    words += [f"--{name}" for name in ("plan", "last", "detach") if getattr(args, name)]
    words += ["--beside-jobs"] if args.beside_jobs else []
    if len(args.node) > 1:
        raise PlumbError(f"{len(args.node)} nodes are named", "--node", "one node is checked: this host")
    named = (("--state", args.state), ("--output", args.write), ("--measured", args.measured))
    words += [word for option, value in named if value for word in (option, str(value))]
    words += ["--node", names.host(args.node[0], "--node")] if args.node else []
    try:
        status = subprocess.run([paths.checker(), *words], check=False).returncode
        return status if status >= 0 else 128 - status  # as a shell says that a signal ended it
    except FileNotFoundError:
        raise PlumbError("plumb-check is not built", str(paths.checker()), paths.setup()) from None
    except OSError as error:
        reason = f"plumb-check cannot be started: {error.strerror}"
        raise PlumbError(reason, str(paths.checker()), paths.setup()) from None


def _class(args: argparse.Namespace) -> Path:
    """The class file that is named, or that of the partition."""
    from plumbline.extras.nodes import checks

    if args.class_file:
        return Path(args.class_file)
    known, part = site.chosen(args.site, args.partition)
    return checks.made_class(known.name, part)
