"""The request of a new tuning, from the options of ``plumb tune``: where, which settings, for which program."""

from __future__ import annotations

import math
import secrets
from argparse import Namespace

from plumbline import site
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.units import counted
from plumbline.extras.tune import emit, race, target
from plumbline.extras.tune import stages as tune
from plumbline.extras.tune.bench import MINUTES, TuningRequest
from plumbline.gate.variants import of_application
from plumbline.launch.profiles import read as profiles
from plumbline.measure import jobs, session
from plumbline.measure.application import model, source
from plumbline.measure.application.model import Program
from plumbline.measure.session import USUAL_LAUNCH_S, Say
from plumbline.mpi.settings import Configuration
from plumbline.records import query
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests


def request(args: Namespace, say: Say) -> TuningRequest:
    """The request of a new tuning. Raises :class:`PlumbError` for an impossible one."""
    under = session.circumstances([args.stack])
    name = args.site or site.here()
    document = site.load(name)
    partition = args.partition or document.partitions[0].name
    if jobs.needed(site.partition(document, partition)):
        under = session.before_a_job(under)
    family = manifests.load(args.stack).family
    race.chosen(race.wanted(family.knobs, (), True, args.nodes), args.knob)
    program = _program(args, f"{name}:{partition}", say)
    return TuningRequest(
        site=name,
        partition=partition,
        stack=args.stack,
        family=family.name,
        placements=tuple(dict.fromkeys(variant.placement for variant in program) or args.placement or ("core",)),
        sizes=args.sizes,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        circumstances=under,
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
    knobs = race.wanted(manifests.load(args.stack).family.knobs, (), True, nodes)
    stages = {f"profile of {args.program}": 1} if args.program else {}
    stages["screen"] = tune.SCREEN
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
    minutes = sum(stages.values()) * places * USUAL_LAUNCH_S / 60
    lines.append(f"about {minutes:.0f} min, if a launch takes {USUAL_LAUNCH_S:.0f} s")
    if not args.screen:
        by = f"by {args.program}" if args.program else "by the kernel, as much by OSU and IMB"
        lines.append(f"then pairs: {args.minutes or MINUTES:g} min at most {by}, up to {tune.TRIES} times")
    return "\n".join(lines)


def _counts(args: Namespace) -> tuple[tuple[str, int, int], ...]:
    """The calls of the profiled program: operation, size in bytes, and how often."""
    if args.profile_of is None:
        return ()
    record = query.find(args.profile_of)
    known = target.counts(profiles.load(profiles.file_of(record.site, record.id)), args.sizes)
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
    configuration, where = emit.brought(args.brought, manifests.load(args.stack))
    say(where)
    return configuration


def _program(args: Namespace, system: str, say: Say) -> tuple[Variant, ...]:
    """The variants of the program on ``system``, which is built, under the placements that are wanted."""
    program = _described_program(args)
    if program is None:
        return ()
    file, (test, described) = model.here(args.application), program
    for name in args.placement or ():
        if name not in described.placements:
            cure = suggest(name, described.placements)
            raise PlumbError(f"{args.program} has no placement '{name}'", str(file), cure)
    with session.passing_folder("tune") as folder:
        variants = of_application(file, source.present(file), args.stack, test, system, folder, say).of(args.stack)
    return tuple(variant for variant in variants.values() if not args.placement or variant.placement in args.placement)
