"""The ``plumb`` command: one subcommand per job, each in a module of its own."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumbline import __version__
from plumbline.errors import PlumbError
from plumbline.launch.process import Interrupted


def main(argv: list[str] | None = None) -> int:
    """Run ``plumb ARGV``; bad input ends with one line on stderr and exit status 2."""
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    except Interrupted as error:
        print(f"plumb: interrupted by {error}: the launches that had finished are recorded", file=sys.stderr)
        return 128 + error.signum
    except BrokenPipeError:  # plumb list | head
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("plumb: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    # Each subcommand imports what it needs when it runs: plumb launch starts inside a job, before measurements.
    from plumbline.ci import command as ci_command
    from plumbline.gate import command as gate_command
    from plumbline.history import command as history_command
    from plumbline.nodes import command as nodes_command
    from plumbline.outliers import command as outliers_command
    from plumbline.records import command as records_command
    from plumbline.references import command as references_command
    from plumbline.references import lint as lint_command
    from plumbline.report import command as report_command
    from plumbline.site import command as site_command
    from plumbline.stacks import command as stack_command
    from plumbline.topology import command as topology_command

    parser = argparse.ArgumentParser(prog="plumb", description="Benchmarks with proven placement.")
    parser.add_argument("--version", action="version", version=f"plumb {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    campaign = add("campaign", "run all tests of a profile and print the summary", _campaign)
    campaign.add_argument("--profile", choices=("quick", "full"), default="quick")
    where = campaign.add_mutually_exclusive_group()
    where.add_argument(
        "--node", action="append", default=[], metavar="[PARTITION=]NODE", help="jobs run on this node, repeated"
    )
    where.add_argument("--turn", metavar="I/K", help="jobs run on the I-th of the first K nodes that can be used")
    campaign.add_argument("reframe", nargs="*", metavar="-- REFRAME OPTION", help="passed on to ReFrame")
    doctor = add("doctor", "what is wrong with this host, or these nodes, for benchmarking", _doctor)
    doctor.add_argument("--nodes", type=Path, metavar="DIR", help="all nodes whose facts plumb nodes facts put there")
    listing = add("list", "the records, oldest first", _list)
    listing.add_argument("--site")
    listing.add_argument("--test", help="only tests whose name begins so")
    show = add("show", "one record: figures, launches, rank map, circumstances", _show)
    show.add_argument("id", nargs="?", default="last", help="beginning of a record's id (default: the newest record)")
    show.add_argument("--json", action="store_true")
    diff = add("diff", "what differs between the circumstances of two records", _diff)
    diff.add_argument("first")
    diff.add_argument("second")
    again = add("reproduce", "run the variant of a record again on the same stack", _reproduce)
    again.add_argument("id")
    launch = add("launch", "run the launches of variants and write their records (inside a job)", _launch)
    launch.add_argument(
        "variant", nargs="+", type=Path, help="descriptions (JSON); several are alternated in random order"
    )
    launch.add_argument("--records", type=Path, help="also copy the session's records to this file")
    launch.add_argument("--seed", type=int, help="of the order of launches (default: random, recorded)")
    launch.add_argument("--work", type=Path, default=Path(), help="folder for outputs of the launches (default: here)")
    for name, module, text in (
        ("topology", topology_command, "draw a machine, with a plan's ranks and threads in their places"),
        ("stack", stack_command, "list, install, show, check and remove stacks"),
        ("site", site_command, "describe this machine as a site"),
        ("nodes", nodes_command, "facts of the nodes of a partition, which of them differ, which can be used"),
        ("calibrate", references_command, "make references from the records of verified sessions"),
        ("lint", lint_command, "check every reference of every site"),
        ("gate", gate_command, "PASS, FAIL, INCONCLUSIVE or INVALID for a candidate held against its baseline"),
        ("history", history_command, "change points in the records, or in given numbers"),
        ("report", report_command, "one campaign and its history as a single HTML file"),
        ("compact", records_command, "make few Parquet files of many session files"),
        ("outliers", outliers_command, "nodes and links that differ from their class"),
        ("ci", ci_command, "pipelines that gate merge requests and measure every night"),
    ):
        module.add_arguments(add(name, text, module.run))
    return parser


def _campaign(arguments: argparse.Namespace) -> int:
    from plumbline import campaign

    return campaign.run(arguments.profile, arguments.reframe, arguments.node, arguments.turn)


def _doctor(arguments: argparse.Namespace) -> int:
    from plumbline import doctor, provenance

    if arguments.nodes is not None:
        return doctor.run_nodes(arguments.nodes)
    findings = doctor.examine(provenance.collect())
    print(doctor.report(findings))
    return 1 if any(finding.bad for finding in findings) else 0


def _list(arguments: argparse.Namespace) -> int:
    from plumbline.records import query
    from plumbline.views import summary

    records, damages = query.records(query.Selection(site=arguments.site, test=arguments.test))
    print(summary.listing(records))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    return 1 if damages else 0


def _show(arguments: argparse.Namespace) -> int:
    from plumbline.records import store
    from plumbline.views import show

    record = store.find(arguments.id)
    print(json.dumps(record, indent=1) if arguments.json else show.text(record))
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    from plumbline.records import store
    from plumbline.views import diff

    print(diff.text(store.find(arguments.first), store.find(arguments.second)))
    return 0


def _reproduce(arguments: argparse.Namespace) -> int:
    from plumbline import reproduce

    old, new = reproduce.run(arguments.id, say=lambda line: print(line, flush=True))
    print()
    print(reproduce.text(old, new))
    print(f"\n{'verified' if new['verified'] else 'NOT VERIFIED'}: plumb show {new['id']}")
    return 0 if new["verified"] else 1


def _launch(arguments: argparse.Namespace) -> int:
    from plumbline.launch import driver

    variants = [_read(file) for file in arguments.variant]
    work = arguments.work.resolve()
    file, records = driver.run(variants, work, arguments.seed, say=lambda line: print(line, flush=True))
    if arguments.records:
        shutil.copyfile(file, arguments.records)
    bad = [record for record in records if record["reasons"]]
    for record in bad:
        print(f"plumb: {record['variant']['name']} is invalid: {record['reasons'][0]}", file=sys.stderr)
    print(f"records: {file}")
    return 1 if bad else 0


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlumbError(
            f"cannot read the variant: {error.strerror}", str(file), "give the path of its JSON description"
        ) from error
    except ValueError as error:
        raise PlumbError(f"not JSON: {error}", str(file), "regenerate it") from error


if __name__ == "__main__":
    sys.exit(main())
