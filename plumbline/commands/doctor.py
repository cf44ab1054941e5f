"""``plumb doctor``: faults of this host for benchmarking, their effect on figures, and the cure."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from plumbline.base import group
from plumbline.base.extensions import Extension
from plumbline.base.table import table
from plumbline.commands import options
from plumbline.host import links, provenance
from plumbline.schedulers import names
from plumbline.site.nodes import compare, findings, read
from plumbline.site.nodes.findings import ORDER, NodeFinding

#: findings about the MPI libraries of the installed stacks
LIBRARIES: Extension[[], list[NodeFinding]] = Extension("doctor.libraries")
#: how a finding is shown
MARKS = {True: "!!", None: "??", False: "ok"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb doctor``."""
    parser.add_argument("--mpi", action="store_true", help="also measure the MPI libraries of the installed stacks")
    options.add(parser, "--facts", "of all nodes whose facts plumb nodes facts put into this folder")
    options.add_json(parser, "print JSON: a line for each finding")


def run(args: argparse.Namespace) -> int:
    """Print the findings on this host, or on all nodes; 1 if anything is wrong, else 0."""
    if args.facts is not None:
        return _run_nodes(args.facts, args.json)
    libraries = [finding for findings_of_one in LIBRARIES() for finding in findings_of_one] if args.mpi else []
    host_findings = findings.examine(provenance.collect()) + findings.examine_links(links.read().values())
    host_findings = findings.by_badness([*host_findings, *findings.own_checkout(), *libraries])
    if args.json:
        options.print_lines(map(asdict, host_findings))
    else:
        print(report(host_findings))
    return 1 if any(finding.bad for finding in host_findings) else 0


def _run_nodes(folder: Path, as_json: bool) -> int:
    """Print the faults of all nodes whose facts are in ``folder``; 1 if anything is wrong on any, else 0."""
    facts = read.folder(folder)
    by_node = {name: findings.examine_node(node) for name, node in facts.nodes.items()}
    absent = [item.line() for item in compare.compare(facts).differences if not item.quantity]
    with options.progress(as_json):
        print("".join(f"{line}\n" for line in absent), end="")
    if as_json:
        options.print_lines(
            {"node": name, **asdict(item)} for name, node_findings in by_node.items() for item in node_findings
        )
    else:
        print(nodes_report(by_node))
    return 1 if absent or any(item.bad for node_findings in by_node.values() for item in node_findings) else 0


def nodes_report(nodes: dict[str, list[NodeFinding]]) -> str:
    """A row per property and outcome with its nodes: faults first, rare outcomes before common ones."""
    cases = group(
        ((item.name, item.bad), (node, item)) for node, node_findings in nodes.items() for item in node_findings
    )
    rows = []
    for (name, bad), members in sorted(cases.items(), key=lambda case: (ORDER[case[0][1]], len(case[1]), case[0][0])):
        first = members[0][1]
        seen = sorted({item.seen for _, item in members})
        rows.append((
            MARKS[bad], name, "; ".join(seen[:3]) + ("; …" if len(seen) > 3 else ""), str(len(members)),
            names.fold(node for node, _ in members), f"{first.effect}; {first.cure}" if bad else "",
        ))  # fmt: skip
    wrong = {node for node, node_findings in nodes.items() if any(item.bad for item in node_findings)}
    last = f"{len(wrong)} of {len(nodes)} nodes have something to fix"
    header = ("", "property", "seen", "nodes", "which", "effect; cure")
    return table(header, rows, right=("nodes",)) + "\n\n" + last


def report(host_findings: list[NodeFinding]) -> str:
    """One screen: a row per finding, the count of faults last."""
    rows = [
        (MARKS[item.bad], item.name, item.seen, f"{item.effect}; {item.cure}" if item.bad else "")
        for item in host_findings
    ]
    wrong = sum(item.bad is True for item in host_findings)
    unknown = sum(item.bad is None for item in host_findings)
    last = f"{wrong} to fix, {unknown} not readable, {len(host_findings) - wrong - unknown} fine"
    return table(("", "property", "seen", "effect; cure"), rows) + "\n\n" + last
