"""``plumb advice``: where the launches of users' jobs really ran, and the line to write instead."""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from plumbline import schedulers
from plumbline.base import group, paths, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted, percent
from plumbline.commands import options
from plumbline.commands.options import Actions, command, exclusive, flag, option
from plumbline.extras.advice import spool, steps
from plumbline.extras.advice.steps import Group, Step
from plumbline.show import pages
from plumbline.show.columns import Column, Table
from plumbline.show.pages import blocks

#: groups of ranks that are shown
SHOWN = 12
#: days that documents are kept, and that a report is about
KEEP, WEEK = 30.0, 7.0
GROUPS = Table[Group](
    "Ranks that are placed alike",
    [
        Column("ranks", lambda row: row.ranks),
        Column("number", lambda row: str(row.count), "number"),
        Column("hosts", lambda row: row.hosts),
        Column("program", lambda row: row.program, spare=1),
        Column("CPUs", lambda row: row.cpus),
        Column("threads", lambda row: str(row.threads), "number"),
        Column(
            "memory by NUMA node", lambda row: " ".join(f"{node}:{10 * part}%" for node, part in row.memory.items())
        ),
    ],
)


WORK = option("--work", "folder of the documents (default: PLUMB_ADVICE, or plumb-advice in the state folder)")


@command(
    exclusive(
        flag("--words", "print what to write before a program, where no variables are handed on"),
        option("--scheduler", "print the file by which this scheduler observes all jobs", choices=schedulers.TABLE),
    ),
    option("--share", "percentage of jobs that the file observes (default: 100)", type=int, default=100, metavar="N"),
    WORK,
    help="print the variables by which a job is observed, for eval in its script",
)
def _on(args: argparse.Namespace) -> int:
    if not 0 <= args.share <= 100:
        raise PlumbError(f"--share is {args.share}", "plumb advice on", "0 to 100, the percentage of jobs")
    place = spool.folder(args.work)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PlumbError(f"the folder cannot be made: {error.strerror}", str(place), "name a --work folder") from None
    words = ["/bin/sh", str(Path(__file__).with_name("observe.sh")), str(paths.library("witness")), str(place)]
    if not (args.words or args.scheduler):
        os.execv(words[0], [*words, "on"])  # noqa: S606 - whose parent is then the job's shell
    line = " ".join(words)
    if not spool.SAFE.fullmatch(line):
        raise PlumbError("a path has blanks or such", line, "install elsewhere, or name a --work folder")
    if args.words:
        print(f"{line} task --")
        return 0
    observers = {file.name: file for file in Path(__file__).with_name("observers").iterdir()}
    if not (file := observers.get(args.scheduler)):
        raise PlumbError(f"{args.scheduler} observes no jobs", "--scheduler", f"one of {', '.join(sorted(observers))}")
    print(file.read_text(encoding="utf-8").replace("@OBSERVE@", line).replace("@SHARE@", str(args.share)), end="")
    return 0


def _job(args: argparse.Namespace) -> str:
    """The job that is named, or that of this process."""
    job = str(args.job or Path(os.environ.get("PLUMB_WITNESS_DIR", "")).name).replace("\u0192", "f")
    job = re.sub(r"^(\d+)(?:\[(\d+)\])?(?:\..*)?$", lambda of: "_".join(filter(None, of.groups())), job)
    if not spool.JOB.fullmatch(job):
        raise PlumbError(f"{job!r} is no job" if job else "no job is named", "plumb advice", "give its number")
    return job


@command(
    option("job", "number of the job (default: this one)", nargs="?"),
    WORK,
    option("--keep", "days that documents are kept (default: 30)", type=float, default=KEEP, metavar="DAYS"),
    help="at a job's end: keep a small document of each launch, and print one line",
)
def _end(args: argparse.Namespace) -> int:
    place, job = spool.folder(args.work), _job(args)
    every, _ = spool.kept(place, str(os.getuid()))
    launches = [steps.with_history(step, every) for step in spool.keep(place, job, args.keep)]
    print(f"plumb: {_closing(job, launches)}")
    return 0


@command(
    option("job", "number of the job (default: this one)", nargs="?"),
    WORK,
    option(
        "--user", "number of the job's user (id -u NAME; default: you)", type=int, default=os.getuid(), metavar="UID"
    ),
    options.as_json("print the documents of its launches, one a line"),
    help="show where the launches of a job ran, and the line to write instead",
)
def _show(args: argparse.Namespace) -> int:
    job = _job(args)
    place, user = spool.folder(args.work), str(args.user)
    every, _ = spool.kept(place, user)
    launches = [step for step in every if job in (step.job, step.array)] + spool.running(place, user, job)
    known = [steps.with_history(step, every) for step in launches]
    if not known:
        raise PlumbError(
            f"nothing is known of job {job}",
            "plumb advice",
            "was it observed (plumb advice on), by you, and did a process work for 0.1 s?",
        )
    if args.json:
        options.print_lines(map(msgspec.to_builtins, known))
        return 0
    for number, step in enumerate(known, 1):
        more = sum(group.count for group in step.groups[SHOWN:]) + step.left_out
        lines = [
            f"launch {number}, {units.human_seconds(step.wall_s)}, {counted(step.cpus, 'CPU')} of the job:",
            GROUPS.text(step.groups[:SHOWN]),
            *([f"and {counted(more, 'more rank')}"] if more else []),
        ]
        for advice in step.advice:
            hosts = f" (and {counted(advice.hosts - 1, 'more host')})" if advice.hosts > 1 else ""
            lines += [f"wrong: {advice.reason}{hosts}", f"next: {advice.cure}"]
        print("\n".join([*lines, *(f"not known: {doubt}" for doubt in step.doubts), ""]))
    print(f"plumb: {_closing(job, known)}")
    return 0


def _closing(job: str, known: Sequence[Step]) -> str:
    """The one line about a job."""
    kinds = ", ".join(dict.fromkeys(advice.kind for step in known for advice in step.advice))
    wrong, right = (sum(step.verdict == verdict for step in known) for verdict in ("wrong", "right"))
    of = counted(len(known), "launch")
    if not known:
        return f"job {job}: no launch was seen: a process is, once it worked for 0.1 s"
    return (
        f"job {job}: {wrong} of {of} wrong: {kinds}: plumb advice show {job}"
        if wrong
        else f"job {job}: {right} of {of} right"
    )


#: account, partition, kind of fault, launches with it, their core hours, and the share of these there
Share: TypeAlias = tuple[str, str, str, int, float, float]
SHARES = Table[Share](
    "Core hours by fault",
    [
        Column("account", lambda row: row[0] or "–"),
        Column("partition", lambda row: row[1] or "–"),
        Column("fault", lambda row: row[2]),
        Column("launches", lambda row: str(row[3]), "number"),
        Column("core hours", lambda row: f"{row[4]:,.1f}", "number"),
        Column("share", lambda row: percent(row[5]), "number"),
    ],
)


def shares(known: Sequence[Step]) -> list[Share]:
    """The table of a report, the most core hours first; launches with several faults are in each of them."""
    hours = group(((step.account, step.partition), step.core_hours) for step in known)
    launches = group(
        ((step.account, step.partition, kind), step.core_hours)
        for step in known
        for kind in dict.fromkeys([advice.kind for advice in step.advice] or [step.verdict])
    )
    rows = [(*key, len(of), sum(of), sum(of) / (sum(hours[key[:2]]) or 1.0)) for key, of in launches.items()]
    return sorted(rows, key=lambda row: (-row[4], row))


def openmetrics(rows: Iterable[Share]) -> str:
    """The table for Prometheus; a text of JSON is one of OpenMetrics, too."""
    name, quoted = "plumb_advice_core_hours", functools.partial(json.dumps, ensure_ascii=False)
    head = f"# TYPE {name} gauge\n# HELP {name} Core hours of launches, by fault; right: without any.\n"
    lines = (
        f"{name}{{account={quoted(account)},partition={quoted(partition)},kind={quoted(kind)}}} {hours!r}\n"
        for account, partition, kind, _, hours, _ in rows
    )
    return f"{head}{''.join(lines)}# EOF\n"


@command(
    WORK,
    option("--since", "only launches from this time on, in UTC (default: the last 7 days)"),
    options.output("write the report to a file", ".html", ".json", ".md", ".prom"),
    help="show the share of core hours by kind of fault and account: of all users for root, else yours",
)
def _report(args: argparse.Namespace) -> int:
    place = spool.folder(args.work)
    since = units.moment(args.since).timestamp() if args.since else time.time() - WEEK * 86400
    read = [spool.kept(place, user) for user in spool.users(place) if os.geteuid() in (0, int(user))]
    known = [step for launches, _ in read for step in launches if step.began >= since]
    rows = shares(known)
    hours = sum(step.core_hours for step in known)
    wrong = sum(step.core_hours for step in known if step.verdict == "wrong")
    jobs = counted(len({step.job for step in known}), "job")
    closing = f"{wrong:,.1f} of {hours:,.1f} core hours wrong, in {counted(len(known), 'launch')} of {jobs}"
    document: dict[str, Any] = {
        "title": "Where the jobs ran",
        "heading": "Where the jobs ran",
        "head": [blocks.block("paragraph", closing)],
        "sections": [blocks.section("faults", "Faults", "Core hours by kind of fault.", SHARES.block(rows))],
    }
    options.write("the report", args.output, {
        ".html": lambda: pages.render(document),
        ".json": lambda: msgspec.json.encode(rows).decode() + "\n",
        ".md": lambda: SHARES.markdown(rows) + f"\n\n{closing}\n",
        ".prom": lambda: openmetrics(rows),
    })  # fmt: skip
    print(f"{SHARES.text(rows)}\n" if rows else "", end="\n" if rows else "")
    if damaged := sum(faults for _, faults in read):
        terminal.say(f"{counted(damaged, 'file')} left out: not a document of their user")
    print(f"plumb: {closing}")
    return 0


@command(
    option("file", "Markdown page", type=Path, metavar="FILE"),
    flag("--run", "run the launch lines, each with a tiny program in place of its own", dest="runs"),
    WORK,
    help="show what the launch lines of a page do",
)
def _lint(args: argparse.Namespace) -> int:
    from plumbline.extras.advice import lint  # the other actions do not need it

    try:
        every = list(lint.lines(args.file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PlumbError(
            f"the page cannot be read: {getattr(error, 'strerror', error)}", str(args.file), "name a Markdown file"
        ) from None
    verdicts = []
    for line in every:
        print(f"{args.file}:{line.number}: {line.text}")
        try:
            if args.runs and not line.fault:
                proof = lint.run(line, args.work)
                verdicts.append(proof.verdict)
                reasons = [f"{proof.verdict}: {reason}" for reason in proof.reasons]
                print("\n  ".join([f"  {lint.summary(proof)}", *reasons, *(f"next: {cure}" for cure in proof.cures)]))
            else:
                print(
                    f"  not run: {line.fault}"
                    if line.fault
                    else f"  would run: {' '.join([*line.variables, *line.words])} TINY-PROGRAM"
                )
        except PlumbError as error:
            print(f"  {error.message}")
    ran = f"{len(verdicts)} run, {verdicts.count('wrong')} wrong" if args.runs else "none run: --run runs them"
    print(f"plumb: {counted(len(every), 'launch line')} in {args.file}, {ran}")
    return int("wrong" in verdicts)


run_advice = Actions({"on": _on, "end": _end, "show": _show, "report": _report, "lint": _lint})
