"""What a live gate is begun with: two installed sides, the variants that both can run, their margins, its session."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plumbline import paths, site
from plumbline.errors import PlumbError
from plumbline.gate import rules, session, sides, variants
from plumbline.gate.session import Session
from plumbline.launch.signals import interruptible
from plumbline.measure import jobs
from plumbline.records import store
from plumbline.statistics.sequential import Rule

#: shows a line
Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What was asked for.

    ``repeat`` is the command without seed and folder; ``by_itself`` claims that the candidate disturbs itself.
    """

    baseline: str
    candidate: str
    stack: str | None = None
    tests: str | None = None
    site: str | None = None
    rules: Path | None = None
    rule: Rule = field(default_factory=Rule)
    common: bool = False
    seed: int | None = None
    folder: Path | None = None
    repeat: tuple[str, ...] = ()
    by_itself: bool = False


def prepare(request: Request, say: Say, build: sides.Build | None = None) -> Path:
    """Begin a gate and measure nothing; returns its folder, for ``resume`` or ``in_job`` of :mod:`plumbline.gate.run`.

    Raises :class:`PlumbError` when a side cannot be measured here.
    """
    both = (
        sides.resolve("baseline", request.baseline, request.stack),
        sides.resolve("candidate", request.candidate, request.stack),
    )
    name = store.new_session()
    folder = (request.folder or paths.build() / "gate" / name).resolve()
    with session.locked(folder), interruptible():
        session.refuse_used(folder)
        session.refuse_foreign(folder)
        manifests = [sides.install_side(side, build) for side in both]
        say("variants: a dry run of ReFrame")
        listing = variants.list_variants(
            list(dict.fromkeys(side.stack for side in both)), request.tests, request.site, folder
        )
        couples, notes = pair_up(listing, both, manifests, request.common)
        entries, where = rules.load(request.rules, couples[0][0]["site"])
        couples = [[rules.settle(variant, entries, where, request.rule) for variant in couple] for couple in couples]
        begun = compose(name, both, couples, notes, request)
        if jobs.needed(partition_of(begun)):
            begun = replace(begun, circumstances=session.before_a_job(begun.circumstances))
        session.save(folder, begun)
    return folder


def partition_of(begun: Session) -> dict[str, Any]:
    """The partition of ``site.yaml`` that a gate is measured on."""
    first = begun.couples[0][0]
    return site.partition(site.load(first["site"]), first["partition"])


def compose(
    name: str,
    both: tuple[sides.Side, sides.Side],
    couples: list[list[dict[str, Any]]],
    notes: list[str],
    request: Request,
) -> Session:
    """A new gate of ``couples`` (baseline's and candidate's variant, with margins), under the circumstances of now."""
    measured = [side.measured for side in both]
    return Session(
        name=name,
        site=couples[0][0]["site"],
        seed=secrets.randbits(32) if request.seed is None else request.seed,
        rule=request.rule,
        baseline=measured[0],
        candidate=measured[1],
        couples=couples,
        notes=notes,
        command=list(request.repeat),
        circumstances=session.circumstances(sorted(set(measured))),
        by_itself=request.by_itself,
    )


def pair_up(
    listing: variants.Listing,
    both: tuple[sides.Side, sides.Side],
    manifests: list[dict[str, Any]],
    common: bool,
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The couples of variants that both sides can run, and notes on what is not compared.

    Raises :class:`PlumbError` for variants that the candidate alone cannot run, unless ``common`` accepts that, and
    where no couple is left, or couples of several partitions.
    """
    offered = [
        {
            name: {**variant, "stack": side.measured}
            for name, variant in listing.of(side.stack).items()
            if variant["benchmark"] in manifest["benchmarks"]
        }
        for side, manifest in zip(both, manifests, strict=True)
    ]
    lost = sorted(offered[0].keys() - offered[1].keys())
    if lost and not common:
        skipped = listing.skips.get(both[1].stack, {})
        why = skipped.get(lost[0], f"stack {both[1].measured} has no {offered[0][lost[0]]['benchmark']}")
        what = f"{both[1].measured} cannot run {len(lost)} of the {len(offered[0])} variants of {both[0].measured}"
        cure = "select others with --tests, or add --common to compare what both can run"
        raise PlumbError(f"{what}, such as {lost[0]}", why, cure)
    names = [name for name in offered[0] if name in offered[1]]
    notes = [f"not compared: {name} (only {both[0].measured} can run it)" for name in lost]
    if both[0].stack == both[1].stack and (both[0].commit or both[1].commit):
        same = [name for name in names if _suite(manifests[0], offered[0][name]) != sides.KERNELS]
        names = [name for name in names if name not in same]
        if same:
            notes.append(f"not compared: {len(same)} variants whose program is the stack's on both sides")
    if not names:
        raise PlumbError("0 variants that both sides can run", "plumb gate", "nothing measured is not a PASS")
    parts = sorted({offered[0][name]["partition"] for name in names})
    if len(parts) > 1:
        raise PlumbError(f"variants of partitions {', '.join(parts)}", "plumb gate", "choose: --site SITE:PARTITION")
    new = sorted(offered[1].keys() - offered[0].keys())
    notes += [f"not compared: {name} (only {both[1].measured} can run it)" for name in new]
    neither = {
        name: why
        for name, why in listing.skips.get(both[0].stack, {}).items()
        if name in listing.skips.get(both[1].stack, {})
    }
    notes += [f"skipped {count:>3} x {why}" for why, count in Counter(neither.values()).most_common()]
    return [[offered[0][name], offered[1][name]] for name in names], notes


def _suite(manifest: dict[str, Any], variant: dict[str, Any]) -> str:
    return str(manifest["benchmarks"][variant["benchmark"]]["suite"])
