"""``plumb accept``: does a machine reach what its contract promises, on every node?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from plumbline import site
from plumbline.base import files, terminal
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.base.verdicts import EXIT
from plumbline.commands import options
from plumbline.commands.options import command, exclusive, flag, needs, only_with, option
from plumbline.extras.accept import archive, bench, evidence, forms, model, verdict
from plumbline.extras.accept.bench import ACCEPTANCE
from plumbline.extras.accept.model import Contract
from plumbline.extras.accept.verdict import Judged
from plumbline.judge.statement import overall
from plumbline.records import query
from plumbline.records.query import Selection
from plumbline.show.pages.page import render


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
    folder = (args.work or bench.folder_of(args.contract)).resolve()
    if args.plan:
        records, damages = evidence.find(contract, options.selection(args))
        options.report_damage(damages)
        clause_evidence = [evidence.of_clause(clause, contract, records) for clause in contract.clauses]
        print(forms.plan(contract, clause_evidence))
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
    text = Path(model.__file__).with_name("starter.yaml").read_text(encoding="utf-8")
    files.write("the contract", file, text)
    print(f"{file}: now write what was promised; then plumb accept {file} --check")
    return 0


def _check(file: Path) -> int:
    contract = model.read(file)
    faults = list(model.faults(contract))
    if not faults:
        faults = list(evidence.contradictions(contract, query.records()[0]))
    for fault in faults:
        print(f"{file}: {fault}")
    if not faults:
        for clause in contract.clauses:
            print(f"{clause.name}: {clause.promise}, {clause.over}, {counted(clause.launches, 'launch')} of each")
        print(f"{file}: in order")
    return EXIT["INVALID"] if faults else 0


def _verify(args: argparse.Namespace) -> int:
    archived = archive.read(args.verify, args.sha256)
    print(forms.text(archived.contract, archived.judged))
    many = counted(len(archived.records), "record")
    print(f"{args.verify}: the verdict is that of its {many}; SHA-256 {files.sha256(args.verify)}")
    return EXIT[overall(archived.judged)]


def _where(args: argparse.Namespace, folder: Path) -> tuple[Selection, list[str]]:
    """The records that count, and the nodes of the machine, as far as they are known: those of the test, if any."""
    state, where = bench.state_of(folder), options.selection(args)
    if state is None:
        return where, []
    if where.since or where.until:
        cure = f"leave both out: what was measured since {state.begun} counts"
        raise PlumbError("--since and --until are for records without an acceptance test", str(folder), cure)
    return replace(where, site=where.site or state.site, since=where.since or state.begun), state.nodes


def _measure(args: argparse.Namespace, contract: Contract, folder: Path) -> None:
    bench.begin(folder, args.contract, contract, args.site or site.here(), terminal.say)
    with ACCEPTANCE.locked(folder):
        state = ACCEPTANCE.load(folder)
        terminal.say(f"folder {folder}: the same command continues after an interruption")
        where, nodes = _where(args, folder)
        judged = verdict.judge(contract, evidence.find(contract, where)[0], nodes)
        bench.measure(state, contract, judged, args.retest, terminal.say, args.minutes)


def _judged(args: argparse.Namespace, contract: Contract, folder: Path) -> tuple[int, str]:
    """The exit status, and the results as JSON, after they were printed and written to files."""
    where, nodes = _where(args, folder)
    records, damages = evidence.find(contract, where)
    options.report_damage(damages)
    judged, digest = verdict.judge(contract, records, nodes), files.sha256(args.contract)
    if args.offered:
        _beside(args.offered, judged, digest)
    print(forms.text(contract, judged))
    options.write("the verdict", args.output, {
        ".html": lambda: render(forms.page(contract, judged, digest)),
        ".json": lambda: forms.as_json(contract, judged, digest),
        ".txt": lambda: f"{forms.text(contract, judged)}\n",
    })  # fmt: skip
    if args.archive:
        sha256 = archive.write(args.archive, args.contract, contract, records, judged, nodes)
        print(f"{args.archive}: SHA-256 {sha256}: plumb accept --verify {args.archive} --sha256 {sha256}")
    return EXIT[overall(judged)], forms.as_json(contract, judged, digest)


def _beside(offer: Path, judged: list[Judged], digest: str) -> None:
    offered = archive.read(offer)
    if offered.digest != digest:
        raise PlumbError("the offer was measured for another contract", str(offer), "give the contract of the offer")
    print(f"{forms.beside(offered.judged, judged)}\n")
