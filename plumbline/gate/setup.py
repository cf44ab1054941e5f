"""The begin of a live gate: two installed sides, the variants that both can run, their margins, its session."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import structs

from plumbline import site
from plumbline.base import paths
from plumbline.base.errors import PlumbError, require
from plumbline.base.schemas.site import Partition
from plumbline.gate import rules, sides, variants
from plumbline.launch.prepare import settings_of
from plumbline.measure import jobs, session
from plumbline.measure.application import model
from plumbline.measure.session import Kind, Say
from plumbline.records import store
from plumbline.records.variant import Variant
from plumbline.stacks import manifest as installed
from plumbline.stacks.manifest import Manifest
from plumbline.statistics.paired import PairedRule

#: how the launches of a pair are made; ``auto``: by the first ones
Order: TypeAlias = Literal["turns", "duet", "auto"]


@dataclass(frozen=True)
class Terms:
    """The terms of every pair of a gate: margins, seed (drawn), the command that measures the same again, if any.

    ``rule`` is that of every figure without its own margins. ``by_itself`` claims that the candidate disturbs
    itself. ``measure_equal``: the same program on both sides is measured too. ``purpose`` is the command that the gate
    is for. ``grown``: the couples are points of a scaling curve, whose numbers are so many times that of the first; the
    efficiencies over the first are judged too. ``order``: the launches of a pair one after the other, or side by side.
    """

    rule: PairedRule = field(default_factory=PairedRule)
    seed: int = field(default_factory=lambda: secrets.randbits(32))
    command: Sequence[str] = ()
    by_itself: bool = False
    measure_equal: bool = False
    purpose: str = "gate"
    grown: Sequence[float] = ()
    order: Order = "turns"


@dataclass(frozen=True)
class Session:
    """The constants of a gate while it is measured; ``baseline`` and ``candidate`` are stacks.

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
        """Where it is measured; empty for two commands, which need none."""
        return self.couples[0][0].site


#: where two commands are measured
HERE = Partition(name="here", scheduler="local", topology="", stacks=[])
GATE = Kind("gate", "gate", "state.json", Session)


@dataclass(frozen=True)
class GateRequest:
    """A gate to begin: two sides, in which tests of which system; ``common``: those that both can run will do.

    ``application`` is the plumb.yaml whose programs are measured; without it the suite's tests are. ``variant`` and
    ``figure``: only the variant, and the figures, of this name. ``imposed``: the rule of ``terms`` holds for all
    figures, whatever margins of their own they have.
    """

    both: tuple[sides.Side, sides.Side]
    terms: Terms = field(default_factory=Terms)
    test: str | None = None
    system: str | None = None
    rules: Path | None = None
    common: bool = False
    folder: Path | None = None
    application: Path | None = None
    variant: str | None = None
    figure: str | None = None
    imposed: bool = False


def prepare(request: GateRequest, say: Say, build: sides.Build | None = None) -> Path:
    """Begin a gate and measure nothing; returns its folder, for :func:`plumbline.gate.run.resume`, here or in a job.

    Raises :class:`PlumbError` when a side cannot be measured here, :class:`sides.Unusable` where that is its own fault.
    """
    name = store.new_session()
    folder = (request.folder or paths.build() / "gate" / name).resolve()
    with GATE.new(folder):
        offered = offers(request.both, request, folder, say, build)
        couples, notes = pair_up(offered[0], offered[1], request.common, request.variant)
        couples = _with_figure(request.figure, couples) if request.figure else couples
        for variant in (variant for couple in couples for variant in couple if variant.settings):
            settings_of(variant, installed.load(variant.stack))  # raises where no MPI library takes them
        rule = request.terms.rule
        entries, where = rules.imposed(rule) if request.imposed else rules.load(request.rules, couples[0][0].site)
        couples = [[rules.settle(variant, entries, where, rule) for variant in couple] for couple in couples]
        under = session.circumstances(sorted({side.measured for side in request.both}))
        old, new = (side.label for side in request.both)
        begun = Session(name, old, new, couples, request.terms, under, notes)
        if jobs.needed(partition_of(begun)):
            begun = replace(begun, circumstances=session.before_a_job(begun.circumstances))
        GATE.save(folder, begun)
    return folder


def begun_for(
    folder: Path, name: str, labels: tuple[str, str], couples: Sequence[Sequence[Variant]], terms: Terms, under: Any
) -> Session:
    """The gate of ``couples`` in ``folder``, begun ``under`` its circumstances unless it was before.

    ``labels`` are those of baseline and candidate; the margins of all figures are those of ``terms``.
    """
    if not (folder / GATE.file).exists():
        settled = [[rules.settle(variant, [], "", terms.rule) for variant in couple] for couple in couples]
        GATE.begin(folder, Session(name, *labels, settled, terms, under))
    return GATE.peek(folder)


def offers(
    every: Sequence[sides.Side], request: GateRequest, folder: Path, say: Say, build: sides.Build | None = None
) -> list[Offer]:
    """The offer of each of ``every`` side for the tests of ``request``; sides are built where needed.

    Raises :class:`sides.Unusable` for a side that cannot be built, or whose application has no such test.
    """
    where = (request.test, request.system, folder)
    manifests: list[Manifest] = []
    listings: list[variants.Listing] = []
    for side in every:
        try:
            manifests.append(sides.install_side(side, build))
            if file := request.application:
                state = side.code or model.present_code(file)
                pairs = zip(every, listings, strict=False)
                same = (known for each, known in pairs if (each.code, each.stack) == (side.code, side.stack))
                listing = next(same, None) or variants.of_application(file, state, side.stack, *where, say)
                listings.append(listing)
        except PlumbError as error:
            raise sides.Unusable(side, error.message, error.where, error.cure) from None
    if request.application:
        every_offer = zip(every, listings, strict=True)
        return [Offer(side, listing.of(side.stack), listing.skips.get(side.stack, {})) for side, listing in every_offer]
    say("variants: a dry run of ReFrame")
    listing = variants.list_variants(list(dict.fromkeys(side.stack for side in every)), *where)
    return [offer_of(listing, side, manifest) for side, manifest in zip(every, manifests, strict=True)]


def _with_figure(name: str, couples: list[list[Variant]]) -> list[list[Variant]]:
    """The couples with the figure that is asked for alone; raises :class:`PlumbError` where there is none."""
    names = {figure.name for couple in couples for figure in couple[0].figures if not figure.optional}
    require(name, sorted(names), f"no figure '{name}'", "--figure")
    kept = [
        [
            structs.replace(variant, figures=[figure for figure in variant.figures if figure.name == name])
            for variant in couple
        ]
        for couple in couples
    ]
    return [couple for couple in kept if all(variant.figures for variant in couple)]


@dataclass(frozen=True)
class Offer:
    """The variants that a ``side`` can run, by name, and the reasons why it cannot run others.

    ``stacks_own`` are the benchmarks whose program is the stack's, whatever the commit of the side is.
    """

    side: sides.Side
    variants: Mapping[str, Variant]
    skips: Mapping[str, str]
    stacks_own: Collection[str] = ()

    def changed(self, differing: set[str]) -> dict[str, Variant]:
        """The variants with the side's changes, by names without the parameters in which sides are ``differing``.

        Of variants that differ in such a parameter alone it is the first.
        """
        by_name: dict[str, Variant] = {}
        for variant in self.variants.values():
            rest = (f"%{key}={value}" for key, value in variant.params.items() if key not in differing)
            name = " ".join([variant.test, *rest]) if differing else variant.name
            by_name.setdefault(name, structs.replace(self.side.changes.of(variant), name=name))
        return by_name


def partition_of(begun: Session) -> Partition:
    """The partition that a gate is measured on."""
    first = begun.couples[0][0]
    return site.partition(site.load(first.site), first.partition) if begun.site else HERE


def offer_of(listing: variants.Listing, side: sides.Side, manifest: Manifest) -> Offer:
    """The offer of ``side``, whose stack has this manifest, for the suite's tests."""
    runnable = {
        name: structs.replace(variant, stack=side.measured)
        for name, variant in listing.of(side.stack).items()
        if variant.benchmark in manifest.benchmarks
    }
    stacks_own = {name for name, benchmark in manifest.benchmarks.items() if benchmark.suite != sides.KERNELS}
    return Offer(side, runnable, listing.skips.get(side.stack, {}), stacks_own)


def pair_up(
    baseline: Offer, candidate: Offer, common: bool, variant: str | None = None
) -> tuple[list[list[Variant]], list[str]]:
    """As :func:`couple`, without the variants that run the same program of the stack on both sides."""
    both, same = (baseline, candidate), set[str]()
    if baseline.side.stack == candidate.side.stack and any(offer.side.commit for offer in both):
        names = baseline.variants.keys() & candidate.variants.keys()
        same = {name for name in names if baseline.variants[name].benchmark in baseline.stacks_own}
    baseline, candidate = (
        replace(offer, variants={name: item for name, item in offer.variants.items() if name not in same})
        for offer in both
    )
    remarks = [f"not compared: {len(same)} variants whose program is the stack's on both sides"] if same else []
    return couple(baseline, candidate, common, remarks, variant)


def couple(
    baseline: Offer, candidate: Offer, common: bool, remarks: Sequence[str] = (), variant: str | None = None
) -> tuple[list[list[Variant]], list[str]]:
    """The couples of variants that both sides can run, and ``remarks`` with notes on the others.

    ``variant`` is the only one that is compared. Raises :class:`sides.Unusable` for a side that cannot run it, and for
    a candidate that cannot run some of the baseline's unless ``common`` accepts that; :class:`PlumbError` where no
    couple is left, or couples of several partitions.
    """
    differing = baseline.side.changes.params | candidate.side.changes.params
    offered = [offer.changed(differing) for offer in (baseline, candidate)]
    labels = [offer.side.measured for offer in (baseline, candidate)]
    if variant:
        for offer, runnable in zip((baseline, candidate), offered, strict=True):
            if variant not in runnable:
                raise sides.Unusable(offer.side, f"it cannot run {variant}", offer.skips.get(variant))
        offered = [{variant: runnable[variant]} for runnable in offered]
    lost = sorted(offered[0].keys() - offered[1].keys())
    if lost and not common:
        why = candidate.skips.get(lost[0], f"stack {labels[1]} has no {offered[0][lost[0]].benchmark}")
        message = f"{labels[1]} cannot run {len(lost)} of the {len(offered[0])} variants of {labels[0]}"
        raise sides.Unusable(
            candidate.side,
            f"{message}, such as {lost[0]}",
            why,
            "select others with --test, or add --common to compare what both can run",
        )
    names = [name for name in offered[0] if name in offered[1]]
    notes = [f"not compared: {name} (only {labels[0]} can run it)" for name in lost] + list(remarks)
    if not names:
        raise PlumbError("0 variants that both sides can run", "plumb gate", "nothing measured is not a PASS")
    parts = sorted({offered[0][name].partition for name in names})
    if len(parts) > 1:
        raise PlumbError(f"variants of partitions {', '.join(parts)}", "plumb gate", "choose: --partition NAME")
    new = sorted(offered[1].keys() - offered[0].keys())
    notes += [f"not compared: {name} (only {labels[1]} can run it)" for name in new]
    neither = [why for name, why in baseline.skips.items() if name in candidate.skips]
    notes += [f"skipped {count:>3} x {why}" for why, count in Counter(neither).most_common()]
    return [[offered[0][name], offered[1][name]] for name in names], notes
