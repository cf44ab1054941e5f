"""``plumb campaign``, ``run``, ``reproduce`` and ``application``: tests, programs and records are measured."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from plumbline.base import files, paths, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.table import table
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import Actions, command, exclusive, flag, goes_without, only_with, option, repeated
from plumbline.gate import fastest
from plumbline.judge.decide import too_coarse
from plumbline.judge.pairs import measured
from plumbline.launch.prepare import APPLICATION, OWN, entry_of, variant_again
from plumbline.measure import driver
from plumbline.measure.application import init, model
from plumbline.measure.reframe import campaign, settings
from plumbline.measure.reframe.campaign import offered_stacks, prepared
from plumbline.measure.session import passing_folder
from plumbline.records import outcome, query
from plumbline.show import diff
from plumbline.stacks import manifest as manifests
from plumbline.statistics.paired import PairedRule


@command(
    options.profile("run the tests with this tag (default: quick)"),
    option("--test", "only tests whose names match this regular expression from the start"),
    exclusive(
        repeated("--node", "run all jobs on this node; PARTITION=NODE for one partition; repeatable"),
        option("--turn", "run all jobs on the I-th of the first K usable nodes", metavar="I/K"),
    ),
    option("reframe", "options for ReFrame", nargs="*", metavar="-- REFRAME OPTION"),
)
def run_campaign(args: argparse.Namespace) -> int:
    """Run the tests tagged with the profile, with ReFrame's own options as given, and print the summary.

    Returns 0 when every variant that the machine can hold ended verified, 1 when one did not or there was none, 130 if
    interrupted.
    """
    return campaign.run(args.profile, args.test, args.reframe, args.node, args.turn)


@command(
    option("programs", "programs of plumb.yaml (default: all)", nargs="*", metavar="PROGRAM"),
    repeated("--stack", "build and run with this stack; repeatable (default: all stacks of the site)"),
    option("--commit", "commit to measure (default: the working tree)"),
    option("--application", "plumb.yaml to use (default: the one here or in a folder above)"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site with the stacks)"),
    option("--launches", "launches per variant (default: as in plumb.yaml)", type=int, metavar="N"),
    repeated("-S", "set a variable of the tests; repeatable", metavar="NAME=VALUE"),
    flag("--any-mpi", "find the fastest stack for the programs, by gates between the stacks"),
    option("--minutes", "with --any-mpi: start no pair after M minutes"),
    rules=[
        only_with("minutes", "any_mpi", "--minutes goes with --any-mpi", "--launches N limits the launches"),
        goes_without(
            "any_mpi",
            "commit launches S",
            "--any-mpi measures the files as they are now, until it is certain",
            "leave out --commit, --launches and -S",
        ),
    ],
)
def run_run(args: argparse.Namespace) -> int:
    """Build the application with each stack, measure its programs, print the summary; the status is a campaign's.

    With ``--any-mpi`` that of gates: 0 where all decided which of two stacks is faster, or that none is.
    """
    file = model.here(args.application)
    if args.any_mpi:
        return _any_mpi(args, file)
    application = model.load(file)
    wanted = campaign.named(application.tests(args.programs, file))
    state = model.code_of_commit(file, args.commit) if args.commit else model.present_code(file)
    stacks = args.stack or offered_stacks(file)
    tests = prepared(file, state, stacks, paths.build() / "applications" / application.application, terminal.say)
    environments = "|".join(re.escape(settings.environment_name(name)) for name in stacks)
    variables = [*([f"launches={args.launches}"] if args.launches else []), *args.S]
    system = options.system(args)
    chosen = [
        *("-p", f"^({environments})$", *wanted),
        *(word for value in variables for word in ("-S", value)),
        *([f"--system={system}"] if system else []),
    ]
    print(f"{application.application}: {state.label}, {file}", flush=True)
    return campaign.measure(replace(tests, options=chosen, part=outcome.CHOSEN if args.programs else None))


def _any_mpi(args: argparse.Namespace, file: Path) -> int:
    stacks = args.stack or offered_stacks(file)
    if len(stacks) < 2:
        raise PlumbError(f"{stacks[0]} alone is nothing to compare", "plumb run --any-mpi", "plumb stack list")
    tests = model.load(file).tests(args.programs, file)
    builds, unbuilt = campaign.built(file, model.present_code(file), stacks, terminal.say)
    if len(stacks := [each.stack for each in builds]) < 2:
        raise PlumbError(f"{stacks[0]} alone is nothing to compare: {unbuilt[0]}", "plumb run --any-mpi")
    compare = fastest.gates(file, tests, options.system(args), PairedRule(gain=True), args.minutes, terminal.say)
    places, status = fastest.find(stacks, compare)
    print("\n".join(["", fastest.text(stacks, places), *unbuilt]))
    return max(status, EXIT["INVALID"]) if unbuilt else status


@command(option("id", "id of the record, or a prefix of it"), options.TRUST)
def run_reproduce(args: argparse.Namespace) -> int:
    """Run it and print the differences and both sets of figures; 1 if the new record is not verified.

    A program that has changed is only reported. Raises :class:`PlumbError` for an imported record, for one that names
    code to run unless it is trusted, and when the stack is not installed any more or lacks the benchmark.
    """
    old = query.find(args.id)
    if old.is_imported:
        raise PlumbError("an imported record", old.id, "run it with the program that measured it")
    variant = variant_again(old, args.trust)
    stack = manifests.load(variant.stack)
    if variant.benchmark not in (APPLICATION, OWN, *stack.benchmarks):
        raise PlumbError(f"stack {variant.stack} no longer has {variant.benchmark}", "its manifest", "install it again")
    digest, before = entry_of(variant, stack).sha256, old.benchmark.sha256
    if digest != before:
        terminal.say(f"note: {variant.benchmark} is another program now: sha256 {digest[:12]}, then {before[:12]}")
    with passing_folder("reproduce") as folder:
        _, (new,) = driver.run(
            [variant],
            folder,
            seed=old.seed or int(old.environment.get("PLUMB_SEED", "0")),
            say=terminal.say,
            experiment=old.row().experiment,
        )
    print(f"\n{diff.text(old, new)}")
    print(f"\n{'verified' if new.verified else 'NOT VERIFIED'}: plumb show {new.id}")
    return 0 if new.verified else 1


def _example() -> int:
    folder = paths.suite() / "docs" / "examples" / "heat"
    known = sorted(file for file in folder.iterdir() if file.is_file())  # pip compiles what is Python in a wheel
    for file in known:
        if (Path.cwd() / file.name).exists():
            raise PlumbError(f"there is a {file.name} already", str(Path.cwd()), "begin in an empty folder")
    for file in known:
        shutil.copyfile(file, file.name)
    print(f"written: {', '.join(file.name for file in known)}; the next step: git init, commit, plumb run")
    return 0


@command(
    option(
        "command", "a command that runs the program: it is run three times, and read", nargs="*", metavar="-- COMMAND"
    ),
    option("--name", "name of the application (default: that of the folder)"),
    option("--application", "write this file, best outside the repository (default: plumb.yaml in this folder)"),
    flag("--yes", "take the first choice of each question"),
    flag("--example", "write an example: a small C and a small Python program with their plumb.yaml"),
    help="write a plumb.yaml for a command, or a commented one",
    rules=[
        goes_without(
            "example", "name application command", "--example goes alone", "leave out one of the two", where="--example"
        ),
        only_with("yes", "command", "--yes answers questions about a command", "add -- COMMAND"),
    ],
)
def _application_init(args: argparse.Namespace) -> int:
    if args.example:
        return _example()
    folder, file = Path.cwd().resolve(), (args.application or Path(model.FILE)).resolve()
    if file.exists():
        raise PlumbError(f"there is a {file.name} already", str(file), "plumb application check reads it")
    known = args.name or init.identifier(folder.name)
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", known):
        raise PlumbError(f"'{known}' cannot name an application", "--name", "small letters, digits and _ only")
    code = None if file.parent == folder else str(folder)
    if args.command:
        return _described(args, file, known, code)
    text = (Path(model.__file__).with_name("starter.yaml")).read_text(encoding="utf-8").replace("NAME", known)
    files.write(model.FILE, file, text.replace("\n\n", f"\ncode: {json.dumps(code)}\n\n", 1) if code else text)
    print(f"{file}: now write what your program is called and what it prints; then plumb application check")
    return 0


def _described(args: argparse.Namespace, file: Path, name: str, code: str | None) -> int:
    """Write the plumb.yaml ``file`` for the command of ``args``, run three times in this folder."""
    folder, runs = Path.cwd().resolve(), []
    for number in range(1, init.RUNS + 1):
        runs.append(init.run(args.command, folder))
        print(f"run {number} of {init.RUNS}: {units.human_seconds(runs[-1].wall_s)}", flush=True)
    draft = init.draft(args.command, runs, folder)
    ranks, threads = units.counted(draft.keys.get("ranks", 1), "rank"), units.counted(draft.keys["threads"], "thread")
    print(f"{ranks} with {threads} {'each' if 'ranks' in draft.keys else 'and no MPI'}")
    if not runs[0].ranks:
        terminal.say("no process left an account, as of a static program: then no launch of it can be proven")
    rows = [
        (
            str(number), each.name, each.tokens[0], each.unit or "?", each.better, units.percent(each.spread),
            units.percent(each.step), each.rule.get("file") or "output",
        )
        for number, proposal in enumerate(draft.figures, start=1)
        for each in proposal
    ]  # fmt: skip
    columns = ("", "figure", "value", "unit", "better", "spread", "step", "in")
    print(f"\n{table(columns, rows, right=('value', 'spread', 'step'), spare=('in', 'step'))}\n" if rows else "")
    least, most = int(bool(rows) and draft.figures[0][0].unit is not None), len(draft.figures)
    numbers = _answer(
        f"figures, such as {most} or 1,{most}; 0: the time of the program", least, f"[0-{most}](,[1-{most}])*", args
    )
    chosen = [each for number in numbers.split(",") if number != "0" for each in draft.figures[int(number) - 1]]
    if chosen and not least:
        unit = _answer("their unit, such as s or GB/s", "1/s", r"\S{1,24}", args)
        chosen = [each._replace(unit=unit) for each in chosen]
    for number, lines in enumerate(draft.builds, start=1):
        print(f"{number}  {'; '.join(lines)}")
    answer = _answer("build: a number, or a line", int(bool(draft.builds)), f"[0-{len(draft.builds)}]|.*\\D.*", args)
    build = [answer] if not answer.isdecimal() else draft.builds[int(answer) - 1] if answer != "0" else []
    files.write(file.name, file, text := draft.text(name, code, build, chosen))
    print(f"\n{text}")
    args.application = file
    status = _application_check.run(args)
    used = {rank.mpi_library for rank in runs[0].ranks}
    stacks = [known.name for known in manifests.load_all() if known.loads and known.loads.library in used]
    on = f" --stack {stacks[0]}" if stacks and not build else ""  # what is not built is linked to one library
    print(f"next: plumb run{'' if file == folder / model.FILE else f' --application {file}'}{on}")
    return status


def _answer(question: str, first: object, form: str, args: argparse.Namespace) -> str:
    """The answer, of this ``form``; the ``first`` choice with --yes, and where no terminal can answer."""
    with contextlib.suppress(EOFError):
        while not args.yes and sys.stdin.isatty():
            if re.fullmatch(form, answer := input(f"{question} [{first}]: ").strip() or str(first)):
                return answer
    return str(first)


@command(
    option("--application", "plumb.yaml to use (default: the one here or in a folder above)"),
    help="report the faults of plumb.yaml, one per line",
)
def _application_check(args: argparse.Namespace) -> int:
    """Print a line for each fault; returns 1 if there is one."""
    file = model.here(args.application)
    application, faults = model.checked(file)
    for fault in faults:
        print(f"{file}: {fault}")
    if application and not faults:
        for name, program in application.programs.items():
            figures = ", ".join(f"{figure} ({rule.unit})" for figure, rule in program.figures.items())
            print(f"{name}: {' '.join(program.words)}; placements {', '.join(program.placements)}; {figures}")
        for test in (model.test_name(application.application, name) for name in application.programs):
            rows, _ = query.records(query.Selection(test=f"{re.escape(test)}(%|$)", valid=True), newest=1)
            records, _ = query.of_rows(rows)
            for line in (line for record in records for line in too_coarse(measured(record), PairedRule())):
                print(line)
        print(f"{file}: in order")
    return 1 if faults else 0


run_application = Actions({"init": _application_init, "check": _application_check})
