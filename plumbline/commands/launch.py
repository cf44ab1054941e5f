"""``plumb launch`` and ``prove``: launches of variants inside a job, and the proof of where any command ran."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plumbline.base import files, schemas, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, cpu_list
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import command, flag, only_with, option
from plumbline.records.variant import Variant, checked

if TYPE_CHECKING:
    from plumbline.proof import Proof

#: ranks that the report of ``plumb prove`` on stderr shows
SHOWN = 64
#: exit status of each verdict, with --verdict
_STATUS = {"right": EXIT["PASS"], "wrong": EXIT["FAIL"], "not known": EXIT["INVALID"]}


@command(
    option(
        "variant",
        "JSON description of a variant; the launches of several variants alternate in random order",
        nargs="+",
        type=Path,
        metavar="FILE",
    ),
    option("--records", "also copy the session's records to this file", type=files.Copy, metavar="FILE"),
    option("--seed", "seed of the launch order (default: random, recorded)"),
    option("--campaign", "campaign of the records"),
    option("--experiment", "experiment of the records, which excludes them from history", metavar="NAME"),
    option("--work", "working folder of the launches (default: the current folder)", default=Path()),
)
def run_launch(args: argparse.Namespace) -> int:
    """Run the launches; returns 0 if all records are valid, 1 if one is not."""
    from plumbline.launch import process  # imported here: other commands do not need what they load
    from plumbline.measure import driver

    if args.campaign:
        process.leave_group()
    file, records = driver.run(
        [read(file) for file in args.variant],
        args.work.resolve(),
        args.seed,
        terminal.say,
        campaign=args.campaign,
        experiment=args.experiment,
    )
    if args.records:
        shutil.copyfile(file, args.records)
    bad = [record for record in records if record.reasons]
    for record in bad:
        print(f"plumb: {record.variant.name} is invalid: {record.reasons[0]}", file=sys.stderr)
    print(f"records: {file}")
    return 1 if bad else 0


def read(file: Path) -> Variant:
    """The variant that ``file`` describes. Raises :class:`PlumbError` for a file that is unreadable or no variant."""
    cures = ("give the path of its JSON description", "regenerate it")
    return checked(schemas.read_json(file, "cannot read the variant", "not JSON", *cures), str(file))


@command(
    option("command", "the command, as it is without plumb", nargs="+", metavar="-- COMMAND"),
    option("--placement", "compare with the plan of this placement (default: find what is wrong under any plan)"),
    option("--threads", "threads per rank of the plan (default: as many as fill its object)"),
    option("--memory", "memory policy of the plan (default: that of the placement)"),
    option("--work", "folder that every node sees, for the witness (default: in a job the present one, else TMPDIR)"),
    flag("--verdict", "exit with 0 if the placement is right, 1 if it is wrong, 3 if it is not known"),
    options.as_json("print JSON after the command's output"),
    options.output("also write the proof to this file", ".json"),
    rules=[only_with("threads memory", "placement", "{} belongs to a plan", "name the --placement")],
    usage="plumb prove [OPTIONS] -- COMMAND",
)
def run_prove(args: argparse.Namespace) -> int:
    """Run the command and report on stderr; the exit status is its own, or that of the verdict."""
    from plumbline import proof  # imported here: other commands do not need what it loads

    try:
        done = proof.run(args.command, args.placement, threads=args.threads, memory=args.memory, work=args.work)
    except PlumbError as error:
        if args.verdict or not isinstance(error.__cause__, OSError):
            raise
        print(f"plumb: {error}", file=sys.stderr)
        return 127 if isinstance(error.__cause__, FileNotFoundError) else 126  # as env(1) and shells do
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
    from plumbline.proof.judged import ending
    from plumbline.show.record import RANKS, placed  # not above: a launch shows nothing

    planned = {rank.local_rank: cpu_list(rank.cpus) for rank in done.plan.ranks} if done.plan else {}
    rows = [placed(rank, planned.get(rank.local_rank)) for rank in done.ranks[:SHOWN]]
    more = len(done.ranks) - len(rows)
    lines = [
        *([RANKS.text(rows), *([f"and {counted(more, 'more rank')}: --json"] if more else []), ""] if rows else []),
        *(f"{done.verdict}: {reason}" for reason in done.reasons),
        *(f"next: {cure}" for cure in done.cures),
    ]
    programs = ", ".join(sorted({Path(rank.program or "").name for rank in done.ranks}))
    hosts = counted(len({rank.host for rank in done.ranks}), "host")
    noun = "rank" if any(rank.rank >= 0 for rank in done.ranks) else "process"
    facts = [
        *([f"{counted(len(done.ranks), noun)} of {programs} on {hosts}"] if done.ranks else []),
        *filter(None, [ending(done.status)]),
    ]
    about = f" ({', '.join(facts)})" if facts else ""
    return "\n".join([*lines, f"plumb: {' '.join(filter(None, ('placement', done.placement)))}: {done.verdict}{about}"])


def _end_by(number: int) -> None:
    """End by the signal that ended the command, without a second dump of memory."""
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:  # which nobody handles
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
