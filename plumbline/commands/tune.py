"""``plumb tune``: from the default settings of an MPI library to proven ones."""

from __future__ import annotations

import argparse
import math
import secrets
from pathlib import Path

from plumbline import site
from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.base.terminal import say
from plumbline.base.units import counted
from plumbline.measure import jobs, session
from plumbline.measure.session import Say
from plumbline.profiles import read as profiles
from plumbline.records import query
from plumbline.schemas.site import Partition
from plumbline.site import write
from plumbline.stacks import kernels, tuned
from plumbline.stacks import manifest as manifests
from plumbline.topology import plan
from plumbline.tune import emit, race, report, weights
from plumbline.tune import stages as tune
from plumbline.tune.bench import MINUTES, TUNING, Asked, Bench, State
from plumbline.tune.confirm import Confirmed
from plumbline.tune.curves import SIZES

#: seconds that one launch may be expected to take, for --dry-run
LAUNCH_S = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb tune``."""
    parser.add_argument("stack", nargs="?", help="installed stack")
    parser.add_argument("--screen", action="store_true", help="only measure the default and say what is worth a race")
    text = "race every setting, not only those that the screen suggests"
    parser.add_argument("--all", action="store_true", dest="every", help=text)
    parser.add_argument("--knob", action="append", default=[], metavar="NAME", help="race this one only; repeated")
    parser.add_argument("--site", metavar="SITE[:PARTITION]", help="default: the site that claims this host, its first")
    parser.add_argument(
        "--placement", action="append", metavar="NAME", help="repeated; default: core, with all cores busy"
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=1,
        metavar="N",
        help="ranks on N nodes: the raced operations move data between them",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help=f"of each session of pairs, at most (default: {MINUTES:g}, or what the resumed tuning was begun with)",
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=SIZES,
        metavar="A,B",
        help="such as 8,4K,1M (default: 8 to 1M)",
    )
    parser.add_argument(
        "--profile", metavar="ID", help="what counts is what this record of plumb profile does, by calls and sizes"
    )
    parser.add_argument("--seed", type=int, help="of all random orders (default: random, recorded)")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="folder of a new tuning (default: build/tune/STACK-SESSION)"
    )
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue the tuning of this folder")
    parser.add_argument("--dry-run", action="store_true", help="how many launches and minutes; nothing is measured")
    parser.add_argument("--json", type=files.Output, metavar="FILE", help="write all that was found")


def _sizes(text: str) -> tuple[int, ...]:
    steps = {"K": 1 << 10, "M": 1 << 20}
    found = tuple(int(word.rstrip("KM")) * steps.get(word[-1:], 1) for word in text.split(","))
    if list(found) != sorted(set(found)) or any(size < 4 or size % 4 for size in found):
        raise argparse.ArgumentTypeError("give multiples of 4, ascending")
    return found


def run(args: argparse.Namespace) -> int:
    """Tune; returns 0 whether there is a gain or not, or the exit status of the job that it took."""
    if (args.stack is None) == (args.resume is None):
        raise PlumbError("give a stack, or --resume DIR", "plumb tune", "plumb stack list shows the installed ones")
    if args.minutes is not None and not args.minutes > 0:
        raise PlumbError(f"--minutes is {args.minutes:g}", "plumb tune", "give a positive number")
    if args.nodes < 1:
        raise PlumbError(f"--nodes is {args.nodes}", "plumb tune", "give a positive number")
    if args.dry_run:
        _counts(args)  # a record that is not there is an error now, not after the plan
        print(_plan(args))
        return 0

    folder = args.resume or args.work or paths.build() / "tune" / f"{args.stack}-{secrets.token_hex(4)}"
    folder = folder.resolve()
    if not args.resume:
        _refuse_outdated(args.stack)
        TUNING.begin(folder, State(_asked(args)))
    asked = TUNING.peek(folder).asked
    if jobs.needed(part := _partition(asked)):
        return TUNING.in_job(folder, part, asked.nodes, jobs.options(args, "screen", "minutes", "json"), say)
    _refuse_outdated(asked.stack)
    with TUNING.locked(folder):
        bench = Bench(folder, TUNING.load(folder), say, args.minutes)
        say(f"folder {folder}: plumb tune --resume {folder} continues after an interruption")
        found = tune.screened(bench) if args.screen else tune.tuned(bench)
    say(f"\n{report.screen(found)}")
    if found.raced:
        say(f"\n{report.race(found.raced)}")
    if found.confirmed:
        say(f"\n{report.confirmed(found.confirmed[-1])}")
    for note in found.notes:
        say(note)
    say(report.cost(bench, found))
    if args.json:
        files.write("what the tuning found", args.json, report.document(bench, found))
    if not args.screen:
        if found.winner:
            _write_down(bench, found.winner, say)
        say(f"\ntune: {report.closing(found)}")
    return 0


def _partition(asked: Asked) -> Partition:
    return site.partition(site.load(asked.site), asked.partition)


def _refuse_outdated(stack: str) -> None:
    if older := kernels.outdated(manifests.load(stack)):
        raise older


def _write_down(bench: Bench, winner: Confirmed, say: Say) -> None:
    """The settings that were proven, and the tuned stack that has them."""
    for name, value in bench.settings(winner.configuration).items():
        say(f"  {name} = {value}")
    stack = manifests.load(bench.asked.stack)
    if stack.settings:
        say(f"no tuned stack is written: {bench.asked.stack} has settings of its own, change those")
        return
    placement = bench.asked.placements[0]
    ranks = len(plan.resolve(placement, threads=1).ranks)
    where = tuned.fingerprint(stack, ranks, placement, bench.asked.nodes)
    folder = emit.emit(stack, winner.configuration, where, winner.sessions[0])
    say(f"stack {folder.name}: {folder}")
    request = write.Request(name=bench.asked.site, partition=bench.asked.partition, add_stacks=[folder.name])
    if write.offer_stacks(request):
        say(f"site {bench.asked.site}, partition {bench.asked.partition}: offers {folder.name}")


def _asked(args: argparse.Namespace) -> Asked:
    under = session.circumstances([args.stack])
    name, _, partition = (args.site or site.here()).partition(":")
    document = site.load(name)
    partition = partition or document.partitions[0].name
    if jobs.needed(site.partition(document, partition)):
        under = session.before_a_job(under)
    family = manifests.load(args.stack).family
    race.chosen(race.wanted(family.knobs, (), True, args.nodes), args.knob)
    return Asked(
        site=name,
        partition=partition,
        stack=args.stack,
        family=family.name,
        placements=tuple(args.placement or ("core",)),
        sizes=args.sizes,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        circumstances=under,
        every=args.every or bool(args.knob),
        knobs=tuple(args.knob),
        minutes=args.minutes or MINUTES,
        counts=_counts(args),
        nodes=args.nodes,
    )


def _counts(args: argparse.Namespace) -> tuple[tuple[str, int, int], ...]:
    """What the program of ``--profile`` does."""
    if args.profile is None:
        return ()
    record = query.find(args.profile)
    counted = weights.counts(profiles.load(profiles.file_of(record.site, record.id)), args.sizes)
    return tuple((row.operation, row.size, count) for row, count in sorted(counted.items()))


def _plan(args: argparse.Namespace) -> str:
    """How many launches at most, stage by stage, and about how long they take."""
    if args.stack is None:
        raise PlumbError("--dry-run needs a stack", "plumb tune", "give its name")
    knobs = race.wanted(manifests.load(args.stack).family.knobs, (), True, args.nodes)
    places = len(args.placement or ("core",))
    stages = {"screen": tune.SCREEN}
    count = len(race.alone(knobs)) + len(race.pairs(knobs)) + 1
    for number, rounds in enumerate(race.ROUNDS, 1):
        stages[f"race {number}"] = (count + 1) * rounds
        count = max(race.LEAST, math.ceil(count / race.KEPT)) + math.comb(race.LEAST, 2)
    algorithms = [knob for knob in knobs if race.is_algorithm(knob)]
    running = [knob for knob in algorithms if knob.when == "running"]
    bundles = race.bundles([knob for knob in algorithms if knob not in running], race.DEFAULT)
    stages["algorithms"] = (len(running) + (len(bundles) + 2 if bundles else 0)) * tune.ALGORITHM_ROUNDS
    if args.screen:
        stages = {"screen": tune.SCREEN}
    lines = [f"{name}: {counted(launches * places, 'launch')}" for name, launches in stages.items()]
    minutes = sum(stages.values()) * places * LAUNCH_S / 60
    lines.append(f"about {minutes:.0f} min, if a launch takes {LAUNCH_S:.0f} s")
    if not args.screen:
        most = args.minutes or MINUTES
        lines.append(
            f"then pairs: {most:g} min at most by the kernel, as much by OSU and IMB, up to {tune.TRIES} times"
        )
    return "\n".join(lines)
