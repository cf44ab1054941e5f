"""``plumb advice``: where the launches of users' jobs really ran, and the line to write instead."""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from plumbline import schedulers
from plumbline.base import files, group, paths, terminal, units
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
#: in one of so many reports any partition or module is named where all are wrong alike
REPORTS = 100
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


WORK = option(
    "--work", "folder of the documents (default: PLUMB_ADVICE, that of this job, or plumb-advice in the state folder)"
)


@command(
    exclusive(
        flag("--words", "print what to write before a program, where no variables are handed on",
             action="store_const", const="words", dest="observer"),
        flag("--module", "print a modulefile: jobs that load it are observed",
             action="store_const", const="module", dest="observer"),
        option("--scheduler", "print the file by which this scheduler observes all jobs",
               choices=schedulers.TABLE, dest="observer"),
    ),
    option("--share", "percentage of jobs that the file observes (default: 100)", type=int, default=100, metavar="N"),
    WORK,
    help="print the variables by which a job is observed, for eval in its script",
)  # fmt: skip
def _on(args: argparse.Namespace) -> int:
    if not 0 <= args.share <= 100:
        raise PlumbError(f"--share is {args.share}", "plumb advice on", "0 to 100, the percentage of jobs")
    place = spool.folder(args.work)
    with files.writing("documents of jobs", place):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = ["/bin/sh", str(Path(__file__).with_name("observe.sh")), str(paths.library("witness")), str(place)]
    if not args.observer:
        os.execv(words[0], [*words, "on"])  # noqa: S606 - whose parent is then the job's shell
    line = " ".join(words)
    if not spool.SAFE.fullmatch(line):
        raise PlumbError("a path has blanks or such", line, "install elsewhere, or name a --work folder")
    observers = {file.name: file for file in Path(__file__).with_name("observers").iterdir()}
    if not (file := observers.get(args.observer)):
        known = ", ".join(sorted(schedulers.TABLE.keys() & observers))
        raise PlumbError(f"{args.observer} observes no jobs", "--scheduler", f"one of {known}")
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
    kept = (step for step in every if job in (step.job, step.array))
    known = [steps.with_history(step, every) for step in (*kept, *spool.running(place, user, job))]
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
            f"launch {number}, {units.human_seconds(step.wall_s)}, "
            f"{counted(step.cpus, 'CPU') if step.cpus else 'unknown CPUs'} of the job:",
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
    if not known:
        return f"job {job}: no launch was seen: a process is, once it worked for 0.1 s"
    kinds = ", ".join(dict.fromkeys(advice.kind for step in known for advice in step.advice))
    verdict = "wrong" if kinds else "right"
    number = f"{sum(step.verdict == verdict for step in known)} of {counted(len(known), 'launch')}"
    return f"job {job}: {number} {verdict}{f': {kinds}: plumb advice show {job}' if kinds else ''}"


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


#: partition and modules, their users, those who are wrong, the share of wrong core hours with them, and elsewhere
Suspect: TypeAlias = tuple[str, int, int, float, float]
SUSPECTS = Table[Suspect](
    "Wrong beyond chance",
    [
        Column("wrong beyond chance", lambda row: row[0], spare=1),
        Column("users", lambda row: str(row[1]), "number"),
        Column("wrong", lambda row: str(row[2]), "number"),
        Column("core hours", lambda row: percent(row[3]), "number"),
        Column("elsewhere", lambda row: percent(row[4]), "number"),
    ],
)


def suspects(known: Iterable[tuple[str, Step]]) -> list[Suspect]:
    """Partitions and modules that are wrong for more users than all others are, beyond chance; the worst first.

    ``known``: users and their launches. The largest launch of each user counts, with the module and without it. Those
    of the same launches are one row. The test is Fisher's exact one (J. R. Stat. Soc. 98 (1935) 39).
    """
    launches = sorted(
        (step.core_hours, user, step.verdict == "wrong", [f"partition {step.partition or '–'}", *step.modules])
        for user, step in known
        if step.verdict != "not known"
    )
    having = group((mark, number) for number, (*_, marks) in enumerate(launches) for mark in marks)
    alike = group((frozenset(numbers), mark) for mark, numbers in having.items())
    rows = []
    for numbers, marks in alike.items():
        sides = (
            [each for number, each in enumerate(launches) if (number in numbers) is side] for side in (True, False)
        )
        (size, wrong, share), (others, bad, rate) = map(_wrong, sides)
        ways = (
            math.comb(size, count) * math.comb(others, wrong + bad - count)
            for count in range(wrong, min(size, wrong + bad) + 1)
        )
        if share > rate and REPORTS * len(alike) * sum(ways) <= math.comb(size + others, wrong + bad):
            rows.append((", ".join(sorted(marks)), size, wrong, share, rate))
    return sorted(rows, key=lambda row: -row[3])


def _wrong(launches: Sequence[tuple[float, str, bool, list[str]]]) -> tuple[int, int, float]:
    """The number of users, of those whose largest launch, the last, is wrong, and the share of wrong core hours."""
    users = {user: wrong for _, user, wrong, _ in launches}
    share = sum(hours for hours, _, wrong, _ in launches if wrong) / (sum(each[0] for each in launches) or 1.0)
    return len(users), sum(users.values()), share


def openmetrics(rows: Iterable[Share]) -> str:
    """The table for Prometheus; a text of JSON is one of OpenMetrics, too."""
    name, quoted = "plumb_advice_core_hours", functools.partial(json.dumps, ensure_ascii=False)
    lines = (
        f"{name}{{account={quoted(account)},partition={quoted(partition)},kind={quoted(kind)}}} {hours!r}\n"
        for account, partition, kind, _, hours, _ in rows
    )
    about = f"# HELP {name} Core hours of launches, by fault; right: without any."
    return "".join([f"# TYPE {name} gauge\n{about}\n", *lines, "# EOF\n"])


@command(
    WORK,
    option("--since", "only launches from this time on, in UTC (default: the last 7 days)"),
    options.output("write the report to a file", ".html", ".json", ".md", ".prom"),
    help="show the share of core hours by kind of fault and account: of all users for root, else yours",
)
def _report(args: argparse.Namespace) -> int:
    place = spool.folder(args.work)
    since = units.moment(args.since).timestamp() if args.since else time.time() - WEEK * 86400
    read = {user: spool.kept(place, user) for user in spool.users(place) if os.geteuid() in (0, int(user))}
    each = [(user, step) for user, (launches, _) in read.items() for step in launches if step.began >= since]
    known = [step for _, step in each]
    rows, odd = shares(known), suspects(each)
    hours = sum(step.core_hours for step in known)
    wrong = sum(step.core_hours for step in known if step.verdict == "wrong")
    closing = f"{wrong:,.1f} of {hours:,.1f} core hours wrong, in {counted(len(known), 'launch')} of "
    closing += counted(len({step.job for step in known}), "job")
    options.write("the report", args.output, {
        ".html": lambda: pages.render({
            "title": "Where the jobs ran",
            "heading": "Where the jobs ran",
            "head": [blocks.block("paragraph", closing)],
            "sections": [
                blocks.section("faults", "Faults", "Core hours by kind of fault.", SHARES.block(rows)),
                blocks.section("suspects", "Partitions and modules", "By the largest launch of each user.",
                               SUSPECTS.block(odd, empty="None is wrong beyond chance.")),
            ],
        }),
        ".json": lambda: msgspec.json.encode({"faults": rows, "suspects": odd}).decode() + "\n",
        ".md": lambda: "\n\n".join([SHARES.markdown(rows), SUSPECTS.markdown(odd), closing, ""]),
        ".prom": lambda: openmetrics(rows),
    })  # fmt: skip
    print(f"{SHARES.text(rows)}\n\n" if rows else "", f"{SUSPECTS.text(odd)}\n\n" if odd else "", sep="", end="")
    if damaged := sum(faults for _, faults in read.values()):
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
