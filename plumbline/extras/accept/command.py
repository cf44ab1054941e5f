"""``plumb accept``: does a machine reach what its contract promises, on every node?

It measures in a session that lasts until each member has its launches, by campaigns of the tests.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from plumbline import schedulers, site
from plumbline.base import files, group, paths, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Partition
from plumbline.base.units import counted
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import command, exclusive, flag, needs, only_with, option
from plumbline.extras.accept import forms, model, verdict
from plumbline.extras.accept.model import NODE, Clause, Contract
from plumbline.extras.accept.verdict import Judged
from plumbline.gate import variants
from plumbline.judge.statement import overall
from plumbline.measure import session
from plumbline.measure.reframe import campaign, cases, settings
from plumbline.measure.reframe.campaign import INTERRUPTED
from plumbline.measure.session import Kind, Say
from plumbline.records import outcome, query, store
from plumbline.records.query import Selection
from plumbline.records.variant import Variant
from plumbline.show.pages import render
from plumbline.site.nodes import choice


@command(
    option("contract", "YAML file of the contract", nargs="?", type=Path, metavar="CONTRACT"),
    exclusive(
        flag("--init", "write a commented contract"),
        flag("--check", "report the faults of the contract, one per line"),
        flag("--plan", "print the measurements, the criterion of each clause and the probability of detection"),
        flag("--recorded", "judge existing records without measuring"),
        flag("--retest", "also retest the members that missed a limit, as far as the contract allows"),
        option("--verify", "verify an archive and judge its records again", type=Path, metavar="ARCHIVE"),
    ),
    option("--sha256", "expected SHA-256 of the archive", metavar="HEX"),
    option(
        "--offered",
        "compare with this archive of the same contract, measured for the offer",
        type=Path,
        metavar="ARCHIVE",
    ),
    option(
        "--archive",
        "write contract, records, verdict and page with their SHA-256 to one archive",
        type=files.Output,
        metavar="FILE",
    ),
    option("--minutes", "start no launches after M minutes; the same command continues"),
    option("--work", "folder of the test (default: build/accept/CONTRACT, with a hash of its content)"),
    options.records("site", "since", "until", since="only records from this time on (default: start of the test)"),
    options.as_json("print the results as JSON, progress on standard error"),
    options.output("write the results to a file", ".html", ".json", ".txt"),
    description="Measure the promises of a contract on every node and judge each clause: pass, fail or unknown.",
    rules=[
        only_with("sha256", "verify", "--sha256 goes with --verify", "name the archive"),
        needs("contract", "no contract is named", "plumb accept CONTRACT.yaml; --init writes one", unless="verify"),
    ],
)
def run_accept(args: argparse.Namespace) -> int:
    """Measure and judge; returns 0 for pass, 1 for fail, 2 for unknown, 3 where nothing can be judged."""
    if args.verify:
        return _verify(args)
    if args.init:
        return _init(args.contract)
    if args.check:
        return _check(args.contract)
    contract = model.load(args.contract)
    folder = (args.work or folder_of(args.contract)).resolve()
    if args.plan:
        records, damages = verdict.find(contract, options.selection(args))
        options.report_damage(damages)
        print(forms.plan(contract, [verdict.of_clause(clause, contract, records) for clause in contract.clauses]))
        return 0
    with options.progress(args.json):
        if not args.recorded:
            _measure(args, contract, folder)
        status, document = _judged(args, contract, folder)
    if args.json:
        print(document, end="")
    return status


def _init(file: Path) -> int:
    if file.exists():
        raise PlumbError("there is a file of this name already", str(file), "plumb accept --check reads it")
    files.write("the contract", file, Path(model.__file__).with_name("starter.yaml").read_text(encoding="utf-8"))
    print(f"{file}: now write what was promised; then plumb accept {file} --check")
    return 0


def _check(file: Path) -> int:
    contract = model.read(file)
    faults = [*model.faults(contract)] or [*verdict.contradictions(contract, query.records()[0])]
    in_order = [
        f"{clause.name}: {clause.promise}, {clause.over}, {counted(clause.launches, 'launch')} of each"
        for clause in contract.clauses
    ]
    print("\n".join(f"{file}: {fault}" for fault in faults) or "\n".join([*in_order, f"{file}: in order"]))
    return EXIT["INVALID"] if faults else 0


def _verify(args: argparse.Namespace) -> int:
    archived = forms.read(args.verify, args.sha256)
    print(forms.text(archived.contract, archived.judged))
    many = counted(len(archived.records), "record")
    print(f"{args.verify}: the verdict is that of its {many}; SHA-256 {files.sha256(args.verify)}")
    return EXIT[overall(archived.judged)]


def _where(args: argparse.Namespace, folder: Path) -> tuple[Selection, list[str]]:
    """The records that count, and the nodes of the machine, as far as they are known: those of the test, if any."""
    state, where = state_of(folder), options.selection(args)
    if state is None:
        return where, []
    if where.since or where.until:
        raise PlumbError(
            "--since and --until are for records without an acceptance test",
            str(folder),
            f"leave both out: what was measured since {state.begun} counts",
        )
    return replace(where, site=where.site or state.site, since=where.since or state.begun), state.nodes


def _measure(args: argparse.Namespace, contract: Contract, folder: Path) -> None:
    begin(folder, args.contract, contract, args.site or site.here(), terminal.say)
    with ACCEPTANCE.locked(folder):
        state = ACCEPTANCE.load(folder)
        terminal.say(f"folder {folder}: the same command continues after an interruption")
        where, nodes = _where(args, folder)
        judged = verdict.judge(contract, verdict.find(contract, where)[0], nodes)
        measure(state, contract, judged, args.retest, terminal.say, args.minutes)


def _judged(args: argparse.Namespace, contract: Contract, folder: Path) -> tuple[int, str]:
    """The exit status, and the results as JSON, after they were printed and written to files."""
    where, nodes = _where(args, folder)
    records, damages = verdict.find(contract, where)
    options.report_damage(damages)
    judged, digest = verdict.judge(contract, records, nodes), files.sha256(args.contract)
    if args.offered:
        offered = forms.read(args.offered)
        if offered.digest != digest:
            raise PlumbError(
                "the offer was measured for another contract", str(args.offered), "give the contract of the offer"
            )
        print(f"{forms.beside(offered.judged, judged)}\n")
    print(forms.text(contract, judged))
    options.write("the verdict", args.output, {
        ".html": lambda: render(forms.page(contract, judged, digest)),
        ".json": lambda: forms.as_json(contract, judged, digest),
        ".txt": lambda: f"{forms.text(contract, judged)}\n",
    })  # fmt: skip
    if args.archive:
        sha256 = forms.write(args.archive, args.contract, contract, records, judged, nodes)
        print(f"{args.archive}: SHA-256 {sha256}: plumb accept --verify {args.archive} --sha256 {sha256}")
    return EXIT[overall(judged)], forms.as_json(contract, judged, digest)


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
        if any(clause.over == NODE for clause in contract.clauses) and not schedulers.named(part.scheduler).is_one_host:
            choice.require(part, "measure each node yourself, then plumb accept --recorded")
        say("variants: a dry run of ReFrame")
        stacks = sorted({clause.stack for clause in contract.clauses})
        tests = "|".join(sorted({_pattern(clause) for clause in contract.clauses}))
        listing = variants.list_variants(stacks, tests, f"{site_name}:{part.name}", folder)
        now = session.circumstances(stacks)
        nodes = contract.names
        if not nodes:  # those that can be used before others; fewer if the partition has fewer
            usable_first = sorted(choice.of_partition(part), key=lambda node: not node.usable)
            nodes = sorted(node.name for node in usable_first[: contract.node_count])
        ACCEPTANCE.save(folder, AcceptanceState(
            contract=digest, begun=store.now(), circumstances={name: now[name] for name in ("commit", "stacks")},
            site=site_name, partition=part.name, nodes=nodes,
            variants=[_variant(clause, contract, listing) for clause in contract.clauses],
        ))  # fmt: skip


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
    fitting = [variant for variant in listing.of(clause.stack).values() if verdict.is_asked(clause, variant)]
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
        chosen = [
            *campaign.named(f"(?:{pattern})$"),
            *("-p", f"^{re.escape(settings.environment_name(stack))}$"),
            *("--system", f"{state.site}:{part.name}"),
            *("-S", f"launches={launches}"),
        ]
        try:
            tests = campaign.Tests(cases.files(pattern), "accept", chosen, part=outcome.CHOSEN)
            if campaign.measure(tests, on) == INTERRUPTED:
                raise KeyboardInterrupt
        except PlumbError as error:  # such as of a node that is down: the others are measured, and it will be missing
            say(f"not measured: {error}")


def _lacking(
    state: AcceptanceState, contract: Contract, judged: Sequence[Judged], retest: bool
) -> dict[tuple[str, int, str], list[str]]:
    """The variants, as ReFrame selects them, by node (empty: all), missing launches and stack."""
    wanted = dict[tuple[str, str, str], int]()
    for variant, clause in zip(state.variants, judged, strict=True):
        if clause.state in ("PASS", "INVALID"):
            continue
        full = clause.clause.launches
        lacking = {part.name: full if retest and part.again else part.lacking for part in clause.parts}
        if clause.clause.over == NODE:
            counts = {name: lacking.get(name, full) for name in state.nodes}
        else:
            every = verdict.names_of(clause.clause, state.nodes)
            counts = {"": max((lacking.get(name, full) for name in every), default=0)}
        for node, count in counts.items():
            key = node, variant.stack, variant.selected
            wanted[key] = max(count, wanted.get(key, 0))
    return group(((node, count, stack), name) for (node, stack, name), count in wanted.items() if count)
