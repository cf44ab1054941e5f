"""``plumb campaign``, ``run``, ``reproduce`` and ``application``: tests, programs and records are measured."""

from __future__ import annotations

import argparse
import re
import shutil
from dataclasses import replace
from pathlib import Path

from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.commands.options import Actions, command, exclusive, flag, goes_without, only_with, option
from plumbline.gate import fastest
from plumbline.launch.prepare import APPLICATION, OWN, entry_of, variant_again
from plumbline.measure import driver
from plumbline.measure.application import model
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
        option(
            "--node",
            "run all jobs on this node; PARTITION=NODE for one partition; repeatable",
            action="append",
            default=[],
        ),
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
    option(
        "--stack",
        "build and run with this stack; repeatable (default: all stacks of the site)",
        action="append",
        default=[],
    ),
    option("--commit", "commit to measure (default: the working tree)"),
    option("--application", "plumb.yaml to use (default: the one here or in a folder above)"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: all partitions of the site with the stacks)"),
    option("--launches", "launches per variant (default: as in plumb.yaml)", type=int, metavar="N"),
    option("-S", "set a variable of the tests; repeatable", action="append", default=[], metavar="NAME=VALUE"),
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
    chosen = ["-p", f"^({environments})$", *wanted, *(word for value in variables for word in ("-S", value))]
    if system := options.system(args):
        chosen.append(f"--system={system}")
    print(f"{application.application}: {state.label}, {file}", flush=True)
    return campaign.measure(replace(tests, options=chosen, part=outcome.CHOSEN if args.programs else None))


def _any_mpi(args: argparse.Namespace, file: Path) -> int:
    stacks = args.stack or offered_stacks(file)
    if len(stacks) < 2:
        raise PlumbError(f"{stacks[0]} alone is nothing to compare", "plumb run --any-mpi", "plumb stack list")
    tests = model.load(file).tests(args.programs, file)
    compare = fastest.gates(file, tests, options.system(args), PairedRule(gain=True), args.minutes, terminal.say)
    places, status = fastest.find(stacks, compare)
    print(f"\n{fastest.text(stacks, places)}")
    return status


@command(option("id", "id of the record, or a prefix of it"), options.trust())
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
        seed = old.seed or int(old.environment.get("PLUMB_SEED", "0"))
        _, (new,) = driver.run([variant], folder, seed=seed, say=terminal.say, experiment=old.row().experiment)
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
    option("--name", "name of the application (default: that of the folder)"),
    flag("--example", "write an example: a small C and a small Python program with their plumb.yaml"),
    help="write a commented plumb.yaml",
    rules=[
        goes_without("example", "name", "--example does not take --name", "leave out one of the two", where="--example")
    ],
)
def _application_init(args: argparse.Namespace) -> int:
    if args.example:
        return _example()
    file = Path.cwd() / model.FILE
    if file.exists():
        raise PlumbError(f"there is a {model.FILE} already", str(file), "plumb application check reads it")
    known = args.name or re.sub("[^a-z0-9_]", "_", file.parent.name.lower()).lstrip("_0123456789") or "application"
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", known):
        raise PlumbError(f"'{known}' cannot name an application", "--name", "small letters, digits and _ only")
    text = (Path(model.__file__).with_name("starter.yaml")).read_text(encoding="utf-8")
    files.write(model.FILE, file, text.replace("NAME", known))
    print(f"{file}: now write what your program is called and what it prints; then plumb application check")
    return 0


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
        print(f"{file}: in order")
    return 1 if faults else 0


run_application = Actions({"init": _application_init, "check": _application_check})
