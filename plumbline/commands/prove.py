"""``plumb prove``: where any command's ranks, threads and pages were."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plumbline.base.units import counted, cpu_list
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.show.record import RANKS, placed

if TYPE_CHECKING:
    from plumbline.proof import Proof

#: ranks that the report on stderr shows
SHOWN = 64
#: exit status of each verdict, with --verdict
_STATUS = {"right": EXIT["PASS"], "wrong": EXIT["FAIL"], "not known": EXIT["INVALID"]}


@command(
    option("command", "the command, as it is without plumb", nargs="+", metavar="-- COMMAND"),
    option("--placement", "compare with the plan of this placement (default: find what is wrong under any plan)"),
    option("--threads", "threads per rank of the plan (default: as many as fill its object)"),
    option("--memory", "memory policy of the plan (default: that of the placement)"),
    option("--work", "folder that every node sees, for the witness (default: in a job the present one, else TMPDIR)"),
    flag("--verdict", "exit with 0 if the placement is right, 1 if it is wrong, 3 if it is not known"),
    options.as_json("print JSON after the command's output"),
    options.output("also write the proof to this file", ".json"),
    rules=[
        options.only_with("threads memory", "placement", "{} belongs to a plan", "name the --placement"),
    ],
    usage="plumb prove [OPTIONS] -- COMMAND",
)
def run_prove(args: argparse.Namespace) -> int:
    """Run the command and report on stderr; the exit status is its own, or that of the verdict."""
    from plumbline import proof  # imported here: other commands do not need what it loads

    done = proof.run(args.command, args.placement, threads=args.threads, memory=args.memory, work=args.work)
    document = msgspec.json.encode(done, order="deterministic").decode()
    options.write("the proof", args.output, {".json": lambda: f"{document}\n"})
    if args.json:
        print(document)
    else:
        print(_report(done), file=sys.stderr)
    if args.verdict:
        return _STATUS[done.verdict]
    if done.status < 0:
        _end_by(-done.status)
    return done.status


def _report(done: Proof) -> str:
    planned = {rank.local_rank: cpu_list(rank.cpus) for rank in done.plan.ranks} if done.plan else {}
    rows = [placed(rank, planned.get(rank.local_rank)) for rank in done.ranks[:SHOWN]]
    more = len(done.ranks) - len(rows)
    lines = [RANKS.text(rows), *([f"and {counted(more, 'more rank')}: --json"] if more else []), ""] if rows else []
    lines += [f"{done.verdict}: {reason}" for reason in done.reasons]
    lines += [f"next: {cure}" for cure in done.cures]
    programs = ", ".join(sorted({Path(rank.program or "").name for rank in done.ranks}))
    hosts = counted(len({rank.host for rank in done.ranks}), "host")
    noun = "rank" if any(rank.rank >= 0 for rank in done.ranks) else "process"
    facts = [f"{counted(len(done.ranks), noun)} of {programs} on {hosts}"] if done.ranks else []
    facts += [f"exit status {done.status}"] if done.status > 0 else []
    facts += [f"ended by signal {-done.status}: {signal.strsignal(-done.status)}"] if done.status < 0 else []
    about = f" ({', '.join(facts)})" if facts else ""
    return "\n".join([*lines, f"plumb: {' '.join(filter(None, ('placement', done.placement)))}: {done.verdict}{about}"])


def _end_by(number: int) -> None:
    """End by the signal that ended the command, without a second dump of memory."""
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
