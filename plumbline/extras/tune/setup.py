"""The request of a new tuning, from the words of ``plumb tune``: where, which settings, for which program."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec import Struct

from plumbline import site
from plumbline.base.errors import PlumbError, suggest
from plumbline.extras.tune import emit, forecast, race, weights
from plumbline.extras.tune.bench import MINUTES, TuningRequest
from plumbline.extras.tune.curves import SIZES
from plumbline.gate.variants import of_application
from plumbline.launch.profiles import read as profiles
from plumbline.measure import jobs, session
from plumbline.measure.application import model, source
from plumbline.measure.application.model import Program
from plumbline.measure.session import Say
from plumbline.mpi.settings import Configuration
from plumbline.records import query
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as manifests


class Words(Struct, frozen=True, kw_only=True):
    """The words of ``plumb tune`` for a new tuning of ``stack``; None or empty: left out.

    ``profile_of`` is the record whose profile counts, ``program`` the one that it is for, of the plumb.yaml
    ``application``; ``brought`` is the file of another tuning, which is confirmed first.
    """

    stack: str
    site: str | None = None
    partition: str | None = None
    placements: tuple[str, ...] = ()
    sizes: tuple[int, ...] = SIZES
    seed: int | None = None
    every: bool = False
    knobs: tuple[str, ...] = ()
    minutes: float = MINUTES
    nodes: int = 1
    rank_counts: tuple[int, ...] = ()
    profile_of: str | None = None
    program: str | None = None
    application: Path | None = None
    brought: Path | None = None

    def described_program(self) -> tuple[str, Program] | None:
        """The tests of the program, as a regular expression, and its description in plumb.yaml."""
        if self.program is None:
            return None
        file = model.here(self.application)
        application = model.load(file)
        return application.tests([self.program], file), application.programs[self.program]

    def counts(self) -> tuple[tuple[str, int, int], ...]:
        """The calls of the profiled program: operation, size in bytes, and how often."""
        if self.profile_of is None:
            return ()
        record = query.find(self.profile_of)
        counted = weights.counts(profiles.load(profiles.file_of(record.site, record.id)), self.sizes)
        return tuple((row.operation, row.size, count) for row, count in sorted(counted.items()))


def request(words: Words, say: Say) -> TuningRequest:
    """The request of a tuning by ``words``. Raises :class:`PlumbError` for an impossible one."""
    under = session.circumstances([words.stack])
    name = words.site or site.here()
    document = site.load(name)
    partition = words.partition or document.partitions[0].name
    if jobs.needed(site.partition(document, partition)):
        under = session.before_a_job(under)
    family = manifests.load(words.stack).family
    race.chosen(race.wanted(family.knobs, (), True, words.nodes), list(words.knobs))
    program = _program(words, f"{name}:{partition}", say)
    return TuningRequest(
        site=name,
        partition=partition,
        stack=words.stack,
        family=family.name,
        placements=tuple(dict.fromkeys(variant.placement for variant in program) or words.placements or ("core",)),
        sizes=words.sizes,
        seed=secrets.randbits(32) if words.seed is None else words.seed,
        circumstances=under,
        every=words.every or bool(words.knobs),
        knobs=words.knobs,
        minutes=words.minutes,
        counts=words.counts(),
        nodes=program[0].nodes if program else words.nodes,
        program=program,
        rank_counts=words.rank_counts,
        first=_first(words, say),
    )


def plan(words: Words, screen: bool) -> str:
    """How many launches and minutes a tuning takes, for people."""
    words.counts()  # a record that is not there, or a file that is none, is an error now, not after the plan
    _first(words, lambda line: None)
    program = words.described_program()
    nodes, placements = (program[1].nodes, program[1].placements) if program else (words.nodes, ("core",))
    places = len(words.placements or placements) * max(len(words.rank_counts), 1)
    return forecast.text(words.stack, places, nodes, screen, words.minutes, words.program)


def _first(words: Words, say: Say) -> Configuration:
    """The configuration that the brought tuning proved, the default without one."""
    if words.brought is None:
        return race.DEFAULT
    configuration, where = emit.brought(words.brought, manifests.load(words.stack))
    say(where)
    return configuration


def _program(words: Words, system: str, say: Say) -> tuple[Variant, ...]:
    """The variants of the program on ``system``, which is built, under the placements that are wanted."""
    program = words.described_program()
    if program is None:
        return ()
    file, (test, described) = model.here(words.application), program
    for name in words.placements:
        if name not in described.placements:
            cure = suggest(name, described.placements)
            raise PlumbError(f"{words.program} has no placement '{name}'", str(file), cure)
    with session.passing_folder("tune") as folder:
        variants = of_application(file, source.present(file), words.stack, test, system, folder, say).of(words.stack)
    return tuple(
        variant for variant in variants.values() if not words.placements or variant.placement in words.placements
    )
