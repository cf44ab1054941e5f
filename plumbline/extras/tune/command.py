"""``plumb tune``: from the default settings of an MPI library to proven ones."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from plumbline import site
from plumbline.base import paths, units
from plumbline.base.schemas.site import Partition
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, one_of, option
from plumbline.extras.tune import emit, report, setup
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import MINUTES, TUNING, TuningBench, TuningState
from plumbline.extras.tune.curves import SIZES
from plumbline.measure.application import model
from plumbline.measure.reframe.campaign import first_stack
from plumbline.stacks import kernels
from plumbline.stacks import manifest as manifests

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
        print(setup.plan(args))
        return 0
    return options.in_session(args, TUNING, _begun, _place, _measured, ("screen", "minutes", "output"))


def _place(folder: Path) -> tuple[Partition, int]:
    request = TUNING.peek(folder).request
    return site.partition(site.load(request.site), request.partition), request.nodes


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the tuning, which is begun unless it is resumed."""
    folder = args.resume or args.work or paths.build() / "tune" / f"{args.stack}-{secrets.token_hex(4)}"
    folder = folder.resolve()
    if not args.resume:
        _refuse_outdated(args.stack)
        TUNING.begin(folder, TuningState(setup.request(args, say)))
    return Path(folder)


def _measured(args: argparse.Namespace, folder: Path) -> tuple[int, str]:
    """Measure, print the results and write the tuned stack; returns 0 and the results as JSON."""
    _refuse_outdated(TUNING.peek(folder).request.stack)
    with TUNING.locked(folder):
        bench = TuningBench(folder, TUNING.load(folder), say, args.minutes)
        say(f"folder {folder}: plumb tune --resume {folder} continues after an interruption")
        tuning = tune.screened(bench) if args.screen else tune.tuned(bench)
    if tuning.curves:
        say(f"\n{report.screen(tuning)}")
    if tuning.raced:
        say(f"\n{report.race(tuning.raced)}")
    if tuning.confirmed:
        say(f"\n{report.confirmed(tuning.confirmed[-1])}")
    for note in tuning.notes:
        say(note)
    say(report.cost(bench, tuning))
    document = report.document(bench, tuning, emit.fingerprint_of(bench))
    options.write("what the tuning found", args.output, {".json": lambda: document})
    if not args.screen:
        if tuning.winner:
            emit.write_down(bench, tuning.winner, say)
            if not tuning.winner.of_program:
                say(f"\n{report.gains(tuning.winner)}")
        say(f"\ntune: {report.closing(tuning)}")
    return 0, f"{document}\n"


def _refuse_outdated(stack: str) -> None:
    if older := kernels.outdated(manifests.load(stack)):
        raise older
