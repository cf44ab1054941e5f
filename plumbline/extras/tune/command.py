"""``plumb tune``: from the default settings of an MPI library to proven ones, as the stack ``NAME+tuned``."""

from __future__ import annotations

import argparse
import math
import re
import secrets
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

import msgspec

from plumbline import site
from plumbline.base import files, paths, schemas, units
from plumbline.base.errors import PlumbError, require
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, one_of, option
from plumbline.extras.tune import process, race, report, target
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import MINUTES, TUNING, TuningBench, TuningRequest, TuningState
from plumbline.extras.tune.confirm import Confirmed
from plumbline.extras.tune.curves import BARRIER, OPERATIONS, SIZES
from plumbline.gate.variants import of_application
from plumbline.host import binder
from plumbline.launch import profile_files as profiles
from plumbline.measure import session
from plumbline.measure.application import model
from plumbline.measure.application.model import Program
from plumbline.measure.reframe.campaign import first_stack
from plumbline.measure.session import USUAL_LAUNCH_S, Say
from plumbline.mpi.settings import Configuration, Knob, Setting
from plumbline.records import query, store
from plumbline.records.variant import Variant
from plumbline.site import write
from plumbline.stacks import kernels, locked
from plumbline.stacks import manifest as manifests
from plumbline.stacks.manifest import Fingerprint, Manifest, Tuned
from plumbline.stacks.tuned import fingerprint, make, suffix

#: ranks on a node that a list of --rank-counts may have
MOST_RANKS = 10_000


def _sizes(text: str) -> tuple[int, ...]:
    steps = {"K": 1 << 10, "M": 1 << 20}
    sizes = tuple(int(word.rstrip("KM")) * steps.get(word[-1:], 1) for word in text.split(","))
    if list(sizes) != sorted(set(sizes)) or any(size < 4 or size % 4 for size in sizes):
        raise argparse.ArgumentTypeError("give multiples of 4, ascending")
    return sizes


def _rank_counts(text: str) -> tuple[int, ...]:
    try:
        parts = units.cpu_ranges(text)
    except ValueError:
        parts = []
    counts = sorted({number for part in parts for number in part[:MOST_RANKS]})
    if not counts or counts[0] < 2 or counts[-1] > MOST_RANKS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers of ranks from 2, such as 2-8 or 63-65,128")
    return tuple(counts)


@command(
    option("stack", "installed stack", nargs="?", metavar="NAME"),
    flag("--screen", "only measure the defaults and list the settings worth a race"),
    flag("--all", "race all settings (default: those that the screen suggests)", dest="every"),
    option("--knob", "race only this setting; repeatable", action="append", default=[], metavar="NAME"),
    option("--site", "site (default: the site of this host)"),
    option("--partition", "partition (default: the first of the site)"),
    option("--placement", "placement of ranks; repeatable (default: core, on all cores)", action="append"),
    option(
        "--rank-counts",
        "ranks per node, such as 2-8 or 63-65,127,128; each is screened, raced and confirmed (default: all cores)",
        type=_rank_counts,
        default=(),
        metavar="LIST",
    ),
    option(
        "--nodes", "nodes of the ranks; the raced operations then communicate between nodes (default: 1)", default=1
    ),
    option(
        "--minutes",
        f"time limit of each session of pairs (default: {MINUTES:g}, or that of the resumed tuning)",
    ),
    option("--sizes", "message sizes, such as 8,4K,1M (default: 8 to 1M)", type=_sizes, default=SIZES, metavar="A,B"),
    option(
        "--profile-of",
        "weight calls and sizes by the profile in this record (plumb profile)",
        metavar="ID",
    ),
    option(
        "--for",
        "tune for this program of plumb.yaml: its profile selects the race, only its own gain counts",
        metavar="PROGRAM",
        dest="program",
    ),
    option(
        "--from",
        "confirm the settings of another tuning (its --output) first; race only if they gain nothing here",
        type=Path,
        metavar="FILE",
        dest="brought",
    ),
    option("--application", "plumb.yaml of --for (default: the one here or in a folder above)"),
    option("--seed", "seed of all random orders (default: random, recorded)"),
    option("--work", "folder of a new tuning (default: build/tune/STACK-SESSION)"),
    option("--resume", "continue the tuning of this folder"),
    flag("--dry-run", "print the numbers of launches and minutes without measuring"),
    options.as_json("print the results as JSON, progress on standard error"),
    options.output("write the results to a file", ".json"),
    rules=[
        goes_without(
            "profile_of resume nodes rank_counts",
            "program",
            "--for defines the whole tuning",
            "leave out --profile-of, --nodes, --rank-counts and --resume: its own profile counts, and its nodes "
            "and ranks are in plumb.yaml",
        ),
        *one_of(
            "stack program",
            "resume",
            none="give a stack, or --resume DIR",
            several="give a stack, or --resume DIR",
            cure="plumb stack list shows the installed ones",
        ),
        goes_without("brought", "resume", "--from begins a new tuning", "leave out --resume"),
        goes_without("dry_run", "resume", "--dry-run needs a stack", "give its name"),
    ],
)
def run_tune(args: argparse.Namespace) -> int:
    """Tune; returns 0 whether there is a gain or not, or the exit status of the job that it took."""
    if args.program and args.stack is None:
        args.stack = first_stack(model.here(args.application), say)
    if args.dry_run:
        print(plan(args))
        return 0
    return options.in_session(args, TUNING, _begun, _place, _measured, ("screen", "minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    request = TUNING.peek(folder).request
    return site.partition(site.load(request.site), request.partition), request.nodes


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the tuning, which is begun unless it is resumed."""
    named = args.resume or args.work or paths.build() / "tune" / f"{args.stack}-{secrets.token_hex(4)}"
    folder: Path = named.resolve()
    if not args.resume:
        state = TuningState(request(args, say))
        _refuse_outdated(state.request)
        TUNING.begin(folder, state)
    return folder


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print the results and write the tuned stack; returns 0 and the results as JSON."""
    _refuse_outdated(TUNING.peek(folder).request)
    with TUNING.locked(folder):
        bench = TuningBench(folder, TUNING.load(folder), say, args.minutes)
        say(f"folder {folder}: plumb tune --resume {folder} continues after an interruption")
        tuning = tune.screened(bench) if args.screen else tune.tuned(bench)
    shown = [
        report.screen(tuning) if tuning.curves else "",
        report.race(tuning.raced),
        *map(report.confirmed, tuning.confirmed[-1:]),
    ]
    lines = [*(f"\n{part}" for part in shown if part), *tuning.notes, report.cost(bench, tuning)]
    say("\n".join(lines))
    document = report.document(bench, tuning, fingerprint_of(bench))
    options.write("what the tuning found", args.output, {".json": lambda: document})
    if not args.screen:
        if tuning.process:
            chosen = process.settings(tuning.process.configuration)
            say("\n".join(["", "lines for a job script:", *process.lines(chosen)]))
        if tuning.winner and tuning.winner is not tuning.process:
            write_down(bench, tuning.winner, say)
            if not tuning.winner.of_program:
                say(f"\n{report.gains(tuning.winner)}")
        say(f"\ntune: {report.closing(tuning)}")
    return 0, f"{document}\n"


def _refuse_outdated(request: TuningRequest) -> None:
    """The kernels are raced for the MPI library alone."""
    alone = request.program and not any(variant.context.get("mpi") for variant in request.program)
    if not alone and (older := kernels.outdated(manifests.load(request.stack))):
        raise older


def request(args: Namespace, say: Say) -> TuningRequest:
    """The request of a new tuning. Raises :class:`PlumbError` for an impossible one."""
    known, part = site.chosen(args.site, args.partition)
    family = manifests.load(args.stack).family
    race.chosen(race.wanted(family.knobs, (), True, args.nodes), args.knob)
    program = _program(args, f"{known.name}:{part.name}", say)
    return TuningRequest(
        site=known.name,
        partition=part.name,
        stack=args.stack,
        family=family.name,
        placements=tuple(dict.fromkeys(variant.placement for variant in program) or args.placement or ("core",)),
        sizes=args.sizes,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        circumstances=session.circumstances([args.stack], part),
        every=args.every or bool(args.knob),
        knobs=tuple(args.knob),
        minutes=args.minutes or MINUTES,
        counts=_counts(args),
        nodes=program[0].nodes if program else args.nodes,
        program=program,
        rank_counts=args.rank_counts,
        first=_first(args, say),
    )


def plan(args: Namespace) -> str:
    """How many launches at most, stage by stage, and about how many minutes a tuning takes, for people."""
    _counts(args)  # a record that is not there, or a file that is none, is an error now, not after the plan
    _first(args, lambda line: None)
    program = _described_program(args)
    nodes, placements = (program[1].nodes, program[1].placements) if program else (args.nodes, ("core",))
    places = len(args.placement or placements) * max(len(args.rank_counts), 1)
    knobs = race.chosen(race.wanted(manifests.load(args.stack).family.knobs, (), True, nodes), args.knob)
    values = sum(len(values) for _, values in process.TABLE.values()) + len(process.allocators())
    algorithms = [knob for knob in knobs if race.is_algorithm(knob)]
    running = [knob for knob in algorithms if knob.when == "running"]
    bundles = race.bundles([knob for knob in algorithms if knob not in running], race.DEFAULT)
    stages = {"screen": tune.SCREEN}
    if not args.screen:
        stages = {
            **({f"profile of {args.program}": 1} if program else {}),
            **stages,
            **_rungs("race", len(race.alone(knobs)) + len(race.pairs(knobs)) + 1),
            **(_rungs("process", values + math.comb(len(process.TABLE), 2) + 1) if program else {}),
            "algorithms": (len(running) + (len(bundles) + 2 if bundles else 0)) * tune.ALGORITHM_ROUNDS,
        }
    minutes = sum(stages.values()) * places * USUAL_LAUNCH_S / 60
    by = f"by {args.program}" if args.program else "by the kernel, as much by OSU and IMB"
    proof = f"then pairs: {args.minutes or MINUTES:g} min at most {by}, up to {tune.TRIES} times"
    return "\n".join([
        *(f"{name}: {counted(launches * places, 'launch')}" for name, launches in stages.items()),
        f"about {minutes:.0f} min, if a launch takes {USUAL_LAUNCH_S:.0f} s",
        *([] if args.screen else [proof]),
    ])  # fmt: skip


def _rungs(name: str, count: int) -> dict[str, int]:
    """How many launches each rung of a race of ``count`` candidates takes."""
    stages = {}
    for number, rounds in enumerate(race.ROUNDS, 1):
        stages[f"{name} {number}"] = (count + 1) * rounds
        count = max(race.LEAST, math.ceil(count / race.KEPT)) + math.comb(race.LEAST, 2)
    return stages


def _counts(args: Namespace) -> tuple[tuple[str, int, int], ...]:
    """The calls of the profiled program: operation, size in bytes, and how often."""
    if args.profile_of is None:
        return ()
    known = target.counts(profiles.of_record(query.find(args.profile_of)), args.sizes)
    return tuple((row.operation, row.size, count) for row, count in sorted(known.items()))


def _described_program(args: Namespace) -> tuple[str, Program] | None:
    """The tests of the program, as a regular expression, and its description in plumb.yaml."""
    if args.program is None:
        return None
    file = model.here(args.application)
    application = model.load(file)
    return application.tests([args.program], file), application.programs[args.program]


def _first(args: Namespace, say: Say) -> Configuration:
    """The configuration that the brought tuning proved, the default without one."""
    if args.brought is None:
        return race.DEFAULT
    configuration, where = brought(args.brought, manifests.load(args.stack))
    say(where)
    return configuration


def _program(args: Namespace, system: str, say: Say) -> tuple[Variant, ...]:
    """The variants of the program on ``system``, which is built, under the placements that are wanted."""
    program = _described_program(args)
    if program is None:
        return ()
    file, (test, described) = model.here(args.application), program
    for name in args.placement or ():
        require(name, described.placements, f"{args.program} has no placement '{name}'", str(file))
    with session.passing_folder("tune") as folder:
        variants = of_application(file, model.present_code(file), args.stack, test, system, folder, say).of(args.stack)
    return tuple(variant for variant in variants.values() if not args.placement or variant.placement in args.placement)


#: a value of a knob, or an algorithm
_PLAIN = re.compile(r"[A-Za-z0-9_.:,^+-]+")


class TuningDocument(msgspec.Struct, frozen=True):
    """The part of another tuning's document that this one reads: the proven settings, and where."""

    tuned: Configuration | None
    fingerprint: Fingerprint
    family: str


def brought(file: Path, stack: Manifest) -> tuple[Configuration, str]:
    """The settings in the ``file`` that ``plumb tune --output`` wrote, for ``stack``; and where they were proven.

    Raises :class:`PlumbError` for another file, one without proven settings, one of another MPI library, and one
    that no tuning wrote: with settings that are none of the library's knobs, or values that could be paths.
    """
    cure = "give a file of plumb tune --output FILE.json"
    document: TuningDocument = schemas.read_json(
        file, "cannot read what was tuned", "not what plumb tune wrote", cure, kind=TuningDocument
    )
    if document.tuned is None:
        raise PlumbError("that tuning proved no settings", str(file), "see its `result`")
    if document.family != stack.family.name:
        raise PlumbError(
            f"settings of {document.family}, and stack {stack.name} is {stack.family.name}",
            str(file),
            "MPI libraries have no settings in common",
        )
    _refuse_untried(document.tuned, stack.family.knobs, str(file))
    was, same = document.fingerprint, document.fingerprint.library == fingerprint(stack, 1, "core").library
    library = "with this MPI library" if same else f"with another build of the MPI library ({was.library[:12]})"
    return document.tuned, f"{file}: proven on {was.cpu}, {was.ranks} ranks of {was.placement}, {library}"


def _refuse_untried(brought: Configuration, knobs: Iterable[Knob], where: str) -> None:
    known = {name for knob in knobs for name in (knob.name, *knob.at_least, *(need.name for need in knob.needs))}
    settings = [
        *((setting.name, setting.value, known) for setting in brought.settings),
        *((rule.collective, rule.algorithm, {*OPERATIONS, BARRIER}) for rule in brought.rules),
    ]
    for name, value, names in settings:
        if name not in names or not _PLAIN.fullmatch(value):
            raise PlumbError(
                f"not a setting that plumb tune tries: {name}={value}",
                where,
                f"take it out of the file; to try it yourself: plumb gate --candidate setting:{name}=…",
            )


def fingerprint_of(bench: TuningBench) -> Fingerprint:
    """The fingerprint of ``bench``: that of its first placement, with all ranks that it has room for."""
    placement = bench.request.placements[0]
    return fingerprint(
        manifests.load(bench.request.stack),
        len(binder.resolve(placement, threads=1).ranks),
        placement,
        bench.request.nodes,
    )


def emit(
    stack: Manifest, configuration: Configuration, fingerprint: Fingerprint, session: str, directory: Path | None = None
) -> Path:
    """Write the native files of ``configuration`` and the tuned version of ``stack``; the folder of both.

    It is ``NAME+tuned`` (``NAME+tuned-2n`` for two nodes) in ``directory``, the folder of all stacks by default; an
    earlier one is replaced once the new one is whole. Raises :class:`PlumbError` for a stack that is tuned already, a
    configuration that sets nothing, a foreign folder, or a failed write.
    """
    name = stack.name
    if stack.settings:
        raise PlumbError(f"stack {name} has settings already", "its manifest", "tune the stack that it was made from")
    if configuration == Configuration():
        raise PlumbError("the library's default is not a configuration to write", name, "there is nothing to do")
    folder = (directory or paths.stacks()) / (name + suffix(fingerprint.nodes))
    files.refuse_foreign(folder)
    with files.writing(f"stack {folder.name}", folder), locked(folder.name), files.staged(folder) as fresh:
        files.make_anew(fresh)
        # a setting that names a file of ``fresh`` names it in ``folder``
        settings = tuple(
            Setting(item.name, str(folder / Path(item.value).name)) if Path(item.value).parent == fresh else item
            for item in stack.family.settings_of(configuration, fresh)
        )
        read = {str(folder / file.name): files.sha256(file) for file in fresh.iterdir() if file.name != files.MARK}
        for file, text in stack.family.native_files(settings).items():
            (fresh / file).write_text(text, encoding="utf-8")
        tuned = Tuned(name, store.now(), session, fingerprint, configuration)
        manifests.save(make(stack, {item.name: item.value for item in settings}, tuned, read), fresh)
    return folder


def write_down(bench: TuningBench, winner: Confirmed, say: Say) -> None:
    """The settings that were proven, and the tuned stack that has them."""
    for name, value in bench.settings(winner.configuration).items():
        say(f"  {name} = {value}")
    stack = manifests.load(bench.request.stack)
    if stack.settings:
        say(f"no tuned stack is written: {bench.request.stack} has settings of its own, change those")
        return
    folder = emit(stack, winner.configuration, fingerprint_of(bench), winner.sessions[0])
    say(f"stack {folder.name}: {folder}")
    request = write.SiteRequest(name=bench.request.site, partition=bench.request.partition, add_stacks=[folder.name])
    if write.offer_stacks(request):
        say(f"site {bench.request.site}, partition {bench.request.partition}: offers {folder.name}")
