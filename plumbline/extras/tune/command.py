"""``plumb tune``: from the default settings of an MPI library to proven ones."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from plumbline import site
from plumbline.base import paths, units
from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.commands import options
from plumbline.extras.tune import emit, report, setup
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import MINUTES, TUNING, TuningBench, TuningState
from plumbline.extras.tune.curves import SIZES
from plumbline.extras.tune.setup import Words
from plumbline.measure import jobs
from plumbline.measure.application import model
from plumbline.measure.reframe.built import first_stack
from plumbline.stacks import kernels
from plumbline.stacks import manifest as manifests

#: ranks on a node that a list of --rank-counts may have
MOST_RANKS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb tune``."""
    parser.add_argument("stack", nargs="?", metavar="NAME", help="an installed stack")
    parser.add_argument("--screen", action="store_true", help="only measure the default and say what is worth a race")
    text = "race every setting, not only those that the screen suggests"
    parser.add_argument("--all", action="store_true", dest="every", help=text)
    parser.add_argument("--knob", action="append", default=[], metavar="NAME", help="race this one only; repeated")
    options.add(parser, "--site", "where (default: the site that claims this host)")
    options.add(parser, "--partition", "default: the first of the site")
    options.add(parser, "--placement", "repeated (default: core, with all cores busy)", action="append")
    text = (
        "ranks on each node, such as 2-8 or 63-65,127,128: each is screened, raced and confirmed (default: all cores)"
    )
    parser.add_argument("--rank-counts", type=_rank_counts, default=(), metavar="LIST", help=text)
    options.add(parser, "--nodes", "ranks on N nodes: the raced operations move data between them", default=1)
    text = f"of each session of pairs, at most (default: {MINUTES:g}, or what the resumed tuning was begun with)"
    options.add(parser, "--minutes", text)
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=SIZES,
        metavar="A,B",
        help="such as 8,4K,1M (default: 8 to 1M)",
    )
    text = "what counts is what the program of this record of plumb profile does, by calls and sizes"
    parser.add_argument("--profile-of", metavar="ID", help=text)
    text = "a program of plumb.yaml: its profile chooses what is raced, and only its own gain is one"
    parser.add_argument("--for", metavar="PROGRAM", dest="program", help=text)
    text = (
        "settings that another tuning proved (its --output) are confirmed first, and if they gain here nothing is raced"
    )
    parser.add_argument("--from", type=Path, metavar="FILE", dest="brought", help=text)
    options.add(parser, "--application", "where the program of --for is (default: the plumb.yaml here, or above)")
    options.add(parser, "--seed", "of all random orders (default: random, recorded)")
    options.add(parser, "--work", "folder of a new tuning (default: build/tune/STACK-SESSION)")
    options.add(parser, "--resume", "continue the tuning of this folder")
    parser.add_argument("--dry-run", action="store_true", help="how many launches and minutes; nothing is measured")
    options.add_json(parser, "print all that was found as JSON, and the rest on standard error")
    options.add_output(parser, "write all that was found to a file", ".json")


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


def run(args: argparse.Namespace) -> int:
    """Tune; returns 0 whether there is a gain or not, or the exit status of the job that it took."""
    if args.program and (args.profile_of or args.resume or args.nodes != 1 or args.rank_counts):
        cure = (
            "leave out --profile-of, --nodes, --rank-counts and --resume: its own profile counts, "
            "and its nodes and ranks are in plumb.yaml"
        )
        raise PlumbError("--for says all of a new tuning", "plumb tune", cure)
    if args.program and args.stack is None:
        args.stack = first_stack(model.here(args.application), say)
    if (args.stack is None) == (args.resume is None):
        raise PlumbError("give a stack, or --resume DIR", "plumb tune", "plumb stack list shows the installed ones")
    if args.brought and args.resume:
        raise PlumbError("--from begins a new tuning", "plumb tune", "leave out --resume")
    if args.dry_run:
        if args.stack is None:
            raise PlumbError("--dry-run needs a stack", "plumb tune", "give its name")
        print(setup.plan(_words(args), args.screen))
        return 0

    with options.progress(args.json):
        folder = _begun(args)
        request = TUNING.peek(folder).request
        part = site.partition(site.load(request.site), request.partition)
        document = None if jobs.needed(part) else _measured(args, folder)
    if document is None:
        return options.in_job(args, ("screen", "minutes", "output"), TUNING, folder, part, request.nodes)
    if args.json:
        print(document)
    return 0


def _begun(args: argparse.Namespace) -> Path:
    """The folder of the tuning, which is begun unless it is resumed."""
    folder = args.resume or args.work or paths.build() / "tune" / f"{args.stack}-{secrets.token_hex(4)}"
    folder = folder.resolve()
    if not args.resume:
        _refuse_outdated(args.stack)
        TUNING.begin(folder, TuningState(setup.request(_words(args), say)))
    return Path(folder)


def _measured(args: argparse.Namespace, folder: Path) -> str:
    """Measure, print the results and write the tuned stack; returns the results as JSON."""
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
    return document


def _refuse_outdated(stack: str) -> None:
    if older := kernels.outdated(manifests.load(stack)):
        raise older


def _words(args: argparse.Namespace) -> Words:
    return Words(
        stack=args.stack,
        site=args.site,
        partition=args.partition,
        placements=tuple(args.placement or ()),
        sizes=args.sizes,
        seed=args.seed,
        every=args.every,
        knobs=tuple(args.knob),
        minutes=args.minutes or MINUTES,
        nodes=args.nodes,
        rank_counts=args.rank_counts,
        profile_of=args.profile_of,
        program=args.program,
        application=args.application,
        brought=args.brought,
    )
