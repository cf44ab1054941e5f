"""What a live gate is begun with: two installed sides, the variants that both can run, their margins, its session."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError
from plumbline.gate import rules, sides, variants
from plumbline.measure import jobs, session
from plumbline.measure.session import Kind, Say
from plumbline.records import store
from plumbline.records.variant import Variant
from plumbline.schemas.site import Partition
from plumbline.stacks.manifest import Manifest
from plumbline.statistics.paired import Rule


@dataclass(frozen=True)
class Terms:
    """What holds for every pair of a gate: margins, seed (drawn), the command that measures the same again.

    ``rule`` is that of every figure without its own margins. ``by_itself`` claims that the candidate disturbs
    itself.
    """

    rule: Rule = field(default_factory=Rule)
    seed: int = field(default_factory=lambda: secrets.randbits(32))
    command: Sequence[str] = ()
    by_itself: bool = False


@dataclass(frozen=True)
class Session:
    """What does not change while a gate is measured; ``baseline`` and ``candidate`` are stacks.

    ``couples``: of each variant the baseline's description and the candidate's, with their margins; ``notes``: what is
    not compared, and why.
    """

    name: str
    baseline: str
    candidate: str
    couples: list[list[Variant]]
    terms: Terms
    circumstances: dict[str, Any]
    notes: Sequence[str] = ()

    @property
    def site(self) -> str:
        """Where it is measured."""
        return self.couples[0][0].site


GATE = Kind("gate", "gate", "state.json", Session)


@dataclass(frozen=True)
class Request:
    """What was asked for: two sides, in which tests of which system; ``common``: those that both can run will do."""

    both: tuple[sides.Side, sides.Side]
    terms: Terms = field(default_factory=Terms)
    test: str | None = None
    system: str | None = None
    rules: Path | None = None
    common: bool = False
    folder: Path | None = None


def prepare(request: Request, say: Say, build: sides.Build | None = None) -> Path:
    """Begin a gate and measure nothing; returns its folder, for :func:`plumbline.gate.run.resume`, here or in a job.

    Raises :class:`PlumbError` when a side cannot be measured here.
    """
    name = store.new_session()
    folder = (request.folder or paths.build() / "gate" / name).resolve()
    with GATE.new(folder):
        manifests = [sides.install_side(side, build) for side in request.both]
        say("variants: a dry run of ReFrame")
        stacks = list(dict.fromkeys(side.stack for side in request.both))
        listing = variants.list_variants(stacks, request.test, request.system, folder)
        couples, notes = pair_up(listing, request.both, manifests, request.common)
        entries, where = rules.load(request.rules, couples[0][0].site)
        couples = [
            [rules.settle(variant, entries, where, request.terms.rule) for variant in couple] for couple in couples
        ]
        old, new = (side.measured for side in request.both)
        under = session.circumstances(sorted({old, new}))
        begun = Session(name, old, new, couples, request.terms, under, notes)
        if jobs.needed(partition_of(begun)):
            begun = replace(begun, circumstances=session.before_a_job(begun.circumstances))
        GATE.save(folder, begun)
    return folder


def partition_of(begun: Session) -> Partition:
    """The partition that a gate is measured on."""
    first = begun.couples[0][0]
    return site.partition(site.load(first.site), first.partition)


def pair_up(
    listing: variants.Listing,
    both: tuple[sides.Side, sides.Side],
    manifests: list[Manifest],
    common: bool,
) -> tuple[list[list[Variant]], list[str]]:
    """The couples of variants that both sides can run, and notes on what is not compared.

    Raises :class:`PlumbError` for variants that the candidate alone cannot run, unless ``common`` accepts that, and
    where no couple is left, or couples of several partitions.
    """
    offered = [
        {
            name: structs.replace(variant, stack=side.measured)
            for name, variant in listing.of(side.stack).items()
            if variant.benchmark in manifest.benchmarks
        }
        for side, manifest in zip(both, manifests, strict=True)
    ]
    lost = sorted(offered[0].keys() - offered[1].keys())
    if lost and not common:
        skipped = listing.skips.get(both[1].stack, {})
        why = skipped.get(lost[0], f"stack {both[1].measured} has no {offered[0][lost[0]].benchmark}")
        what = f"{both[1].measured} cannot run {len(lost)} of the {len(offered[0])} variants of {both[0].measured}"
        cure = "select others with --test, or add --common to compare what both can run"
        raise PlumbError(f"{what}, such as {lost[0]}", why, cure)
    names = [name for name in offered[0] if name in offered[1]]
    notes = [f"not compared: {name} (only {both[0].measured} can run it)" for name in lost]
    if both[0].stack == both[1].stack and (both[0].commit or both[1].commit):
        same = [name for name in names if manifests[0].benchmarks[offered[0][name].benchmark].suite != sides.KERNELS]
        names = [name for name in names if name not in same]
        if same:
            notes.append(f"not compared: {len(same)} variants whose program is the stack's on both sides")
    if not names:
        raise PlumbError("0 variants that both sides can run", "plumb gate", "nothing measured is not a PASS")
    parts = sorted({offered[0][name].partition for name in names})
    if len(parts) > 1:
        raise PlumbError(f"variants of partitions {', '.join(parts)}", "plumb gate", "choose: --partition NAME")
    new = sorted(offered[1].keys() - offered[0].keys())
    notes += [f"not compared: {name} (only {both[1].measured} can run it)" for name in new]
    neither = {
        name: why
        for name, why in listing.skips.get(both[0].stack, {}).items()
        if name in listing.skips.get(both[1].stack, {})
    }
    notes += [f"skipped {count:>3} x {why}" for why, count in Counter(neither.values()).most_common()]
    return [[offered[0][name], offered[1][name]] for name in names], notes
