"""Measuring for a contract: a session that lasts until each member has its launches, by campaigns of the tests."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from plumbline import schedulers, site
from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.units import counted
from plumbline.extras.accept import evidence
from plumbline.extras.accept.model import NODE, Clause, Contract
from plumbline.extras.accept.verdict import Judged
from plumbline.gate import variants
from plumbline.measure import session
from plumbline.measure.reframe import campaign, cases, settings
from plumbline.measure.reframe.campaign import INTERRUPTED
from plumbline.measure.session import Kind, Say
from plumbline.records import outcome, store
from plumbline.records.variant import Variant
from plumbline.site.nodes import choice


class AcceptanceState(msgspec.Struct, kw_only=True):
    """The state of an acceptance test: when it was ``begun``, the contract's SHA-256, the variant of each clause.

    ``nodes``: those of the machine, by name; records of before ``begun`` do not count.
    """

    contract: str
    begun: str
    circumstances: dict[str, Any]
    site: str
    partition: str
    nodes: list[str]
    variants: list[Variant]


ACCEPTANCE = Kind("acceptance test", "accept", "accept.json", AcceptanceState)


def folder_of(contract: Path) -> Path:
    """Where the acceptance test of a contract is, if no other folder is named: by its content."""
    return paths.build() / "accept" / files.sha256(contract)[:12]


def state_of(folder: Path) -> AcceptanceState | None:
    """The state of the acceptance test in ``folder``; None where there is none."""
    return ACCEPTANCE.peek(folder) if (folder / ACCEPTANCE.file).is_file() else None


def begin(folder: Path, file: Path, contract: Contract, site_name: str, say: Say) -> None:
    """Begin the acceptance test of a contract in ``folder``, or check that it can go on there.

    Raises :class:`PlumbError` where the site cannot run a clause, or ``folder`` has the test of another contract.
    """
    digest = files.sha256(file)
    if known := state_of(folder):
        if known.contract != digest:
            raise PlumbError("this folder holds the test of another contract", str(folder), "name another with --work")
        ACCEPTANCE.load(folder)
        return
    with ACCEPTANCE.new(folder):
        part = _partition(site_name, contract)
        of_nodes = any(clause.over == NODE for clause in contract.clauses)
        if of_nodes and not schedulers.named(part.scheduler).is_one_host:
            choice.require(part, "measure each node yourself, then plumb accept --recorded")
        say("variants: a dry run of ReFrame")
        stacks = sorted({clause.stack for clause in contract.clauses})
        tests = "|".join(sorted({_pattern(clause) for clause in contract.clauses}))
        listing = variants.list_variants(stacks, tests, f"{site_name}:{part.name}", folder)
        chosen = [_variant(clause, contract, listing) for clause in contract.clauses]
        now = session.circumstances(stacks)
        kept = {name: now[name] for name in ("commit", "stacks")}
        nodes = contract.names
        if not nodes:  # those that can be used before others; fewer if the partition has fewer
            usable_first = sorted(choice.of_partition(part), key=lambda node: not node.usable)
            nodes = sorted(node.name for node in usable_first[: contract.node_count])
        begun = AcceptanceState(
            contract=digest, begun=store.now(), circumstances=kept, site=site_name, partition=part.name, nodes=nodes,
            variants=chosen,
        )  # fmt: skip
        ACCEPTANCE.save(folder, begun)


def _partition(site_name: str, contract: Contract) -> Partition:
    site_facts = site.load(site_name)
    if contract.partition is None and len(site_facts.partitions) > 1:
        known = ", ".join(part.name for part in site_facts.partitions)
        raise PlumbError(
            f"site {site_name} has several partitions", "partition", f"the contract must name one: {known}"
        )
    return site.partition(site_facts, contract.partition or site_facts.partitions[0].name)


def _pattern(clause: Clause) -> str:
    """A regular expression for the variants of a clause's test that have its params, by name."""
    params = (f"(?=.*%{re.escape(f'{name}={value}')}(%|$))" for name, value in sorted(clause.params.items()))
    return "".join([*params, clause.test, "(%|$)"])


def _variant(clause: Clause, contract: Contract, listing: variants.Listing) -> Variant:
    """The one variant that a clause names."""
    nodes = None if clause.over == NODE else contract.node_count
    fitting = [variant for variant in listing.of(clause.stack).values() if evidence.is_asked(clause, variant)]
    matches = [variant for variant in fitting if nodes in (None, variant.nodes)]
    if len(matches) == 1:
        return matches[0]
    where = f"clause {clause.name}"
    if matches:
        raise PlumbError(
            f"{len(matches)} variants: {', '.join(variant.name for variant in matches[:4])}", where, "add params"
        )
    skips = listing.skips.get(clause.stack, {})
    skipped = [why for name, why in skips.items() if re.match(_pattern(clause), name.replace(" ", ""))]
    why = f"; skipped: {skipped[0]}" if skipped and not fitting else ""
    over = f" over {nodes} nodes" if fitting else ""
    raise PlumbError(f"no variant of {clause.test}{over} has these params{why}", where, "plumb campaign has them all")


def measure(
    state: AcceptanceState, contract: Contract, judged: Sequence[Judged], retest: bool, say: Say, minutes: float | None
) -> None:
    """Launch what the clauses lack, each member's launches in one campaign; with ``retest`` what may be tested again.

    Launches that are disturbed are measured when the command is repeated, so that none is begun for its value.
    """
    part = site.partition(site.load(state.site), state.partition)
    scheduler = schedulers.named(part.scheduler)
    until = None if minutes is None else time.monotonic() + 60 * minutes
    for (node, launches, stack), names in _lacking(state, contract, judged, retest).items():
        if until is not None and time.monotonic() > until:
            say("time is up: the same command goes on")
            return
        if scheduler.is_one_host and node not in ("", scheduler.host_name({})):
            say(f"{node}: scheduler {scheduler.name} has jobs on this host alone")
            continue
        on = [] if scheduler.is_one_host or not node else [f"{part.name}={node}"]
        say(f"{', '.join(names)}: {counted(launches, 'launch')} {f'on {node}' if node else 'over all nodes'}")
        pattern = "|".join(re.escape(name.replace(" ", "")) for name in names)
        chosen = [*campaign.named(f"(?:{pattern})$"), "-p", f"^{re.escape(settings.environment_name(stack))}$"]
        chosen += ["--system", f"{state.site}:{part.name}", "-S", f"launches={launches}"]
        try:
            status = campaign.measure(campaign.Tests(cases.files(pattern), "accept", chosen, part=outcome.CHOSEN), on)
        except PlumbError as error:  # such as of a node that is down: the others are measured, and it will be missing
            say(f"not measured: {error}")
            continue
        if status == INTERRUPTED:
            raise KeyboardInterrupt


def _lacking(
    state: AcceptanceState, contract: Contract, judged: Sequence[Judged], retest: bool
) -> dict[tuple[str, int, str], list[str]]:
    """The names of variants by node (empty: all), missing launches and stack."""
    wanted = dict[tuple[str, str, str], int]()
    for variant, verdict in zip(state.variants, judged, strict=True):
        if verdict.state in ("PASS", "INVALID"):
            continue
        full = verdict.clause.launches
        lacking = {part.name: full if retest and part.again else part.lacking for part in verdict.parts}
        if verdict.clause.over == NODE:
            counts = {name: lacking.get(name, full) for name in state.nodes}
        else:
            every = evidence.names_of(verdict.clause, state.nodes)
            counts = {"": max((lacking.get(name, full) for name in every), default=0)}
        for node, count in counts.items():
            key = node, variant.stack, variant.name
            wanted[key] = max(count, wanted.get(key, 0))
    return group(((node, count, stack), name) for (node, stack, name), count in wanted.items() if count)
