"""The ``plumb`` command: one subcommand per job, each in a module with ``add_arguments`` and ``run``."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from plumbline import __version__
from plumbline.base import files, paths, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.verdicts import EXIT
from plumbline.launch.signals import Interrupted
from plumbline.records import sources

#: subcommand: its module, what it does
COMMANDS = {
    "campaign": ("reframe.campaign", "run all tests of a profile and print the summary"),
    "run": ("commands.run", "measure the programs of plumb.yaml in this repository"),
    "application": ("commands.application", "write or check plumb.yaml, which describes your own programs"),
    "doctor": ("commands.doctor", "what is wrong with this host, or these nodes, for benchmarking"),
    "list": ("views.summary", "the records, oldest first"),
    "show": ("views.show", "one record: figures, launches, rank map, circumstances"),
    "hybrid": ("compare.hybrid", "the best hybrid code against the best pure MPI code, with an interval"),
    "diff": ("commands.diff", "what differs between two records, and between their profiles"),
    "reproduce": ("commands.reproduce", "run the variant of a record again on the same stack"),
    "profile": ("commands.profile", "what a test, or your own program, spends in MPI"),
    "launch": ("commands.launch", "run the launches of variants and write their records (inside a job)"),
    "topology": ("commands.topology", "draw a machine, with a plan's ranks and threads in their places"),
    "stack": ("commands.stack", "list, install, show, check and remove stacks"),
    "knobs": ("commands.knobs", "what can be set in the MPI library of a stack"),
    "site": ("commands.site", "describe this machine as a site, and measure what it reaches"),
    "nodes": ("commands.nodes", "facts of the nodes of a partition, which of them differ, which can be used"),
    "calibrate": ("commands.calibrate", "make references from the records of verified sessions"),
    "lint": ("commands.lint", "check every reference of every site"),
    "gate": ("commands.gate", "PASS, FAIL, INCONCLUSIVE or INVALID for a candidate compared with its baseline"),
    "compare": ("commands.compare", "stacks, systems, campaigns, commits or periods side by side"),
    "tune": ("commands.tune", "settings of an MPI library that are proven to gain, and to harm nothing"),
    "history": ("commands.history", "change points in the records, or in given numbers"),
    "note": ("commands.note", "write down what happened to a site; history, gates and pages show it"),
    "report": ("commands.report", "one campaign and its history as a single HTML file"),
    "publish": ("commands.publish", "static pages over all systems and campaigns, for a web server or a disk"),
    "export": ("exchange.export", "figures as CSV, OpenMetrics, Parquet, or results of ReFrame or JUBE"),
    "import": ("exchange.imported", "figures of other programs, from what ReFrame keeps"),
    "compact": ("commands.compact", "make few Parquet files of many session files"),
    "outliers": ("commands.outliers", "nodes and links that differ from their class"),
    "ci": ("ci.command", "pipelines that gate merge requests and measure every night"),
    "completion": ("commands.completion", "completion of plumb for a shell: commands, options, names"),
}
#: what ``--help`` of each shows as an example
EXAMPLES = {
    "campaign": "plumb campaign --profile full -- -n stream",
    "run": "plumb run heat --stack openmpi",
    "application": "plumb application init",
    "doctor": "plumb doctor",
    "list": "plumb list --test stream --ranked",
    "show": "plumb show last",
    "hybrid": "plumb hybrid --test jacobi",
    "diff": "plumb diff 4f89ff 2cb145",
    "reproduce": "plumb reproduce 4f89ff",
    "profile": "plumb profile --stack mpich --placement core -- ./program",
    "launch": "plumb launch baseline.json candidate.json --records out.jsonl",
    "topology": "plumb topology --placement scatter --threads 2",
    "stack": "plumb stack install openmpi mpich",
    "knobs": "plumb knobs openmpi eager",
    "site": "plumb site measure --partition default",
    "nodes": "plumb nodes states --scheduler local",
    "calibrate": "plumb calibrate --test stream --dry-run",
    "lint": "plumb lint",
    "gate": "plumb gate --baseline main --candidate HEAD --stack openmpi --tests 'stream|osu_pair'",
    "compare": "plumb compare openmpi mpich --test osu",
    "tune": "plumb tune openmpi --dry-run",
    "history": "plumb history --test stream",
    "note": "plumb note 'kernel update' --time 2026-11-22T10:30",
    "report": "plumb report --output report.html",
    "publish": "plumb publish public",
    "export": "plumb export --format csv --test stream",
    "import": "plumb import perflogs/*/*/*.log",
    "compact": "plumb compact --before 2026-11-01",
    "outliers": "plumb outliers --test stream --figure triad",
    "ci": "plumb ci gitlab --tags hpc --stack openmpi",
    "completion": 'eval "$(plumb completion bash)"',
}
#: commands whose exit status is a verdict: whatever goes wrong in them is INVALID, because 1 is a FAIL, and a CI that
#: tolerates INCONCLUSIVE tolerates 2
OF_VERDICTS = ("gate", "history", "outliers")
BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
    """A parser whose ``bad_input`` is the exit status of its errors."""

    bad_input = BAD_INPUT

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.bad_input, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            cure = suggest(str(value), [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"invalid choice: '{value}': {cure}")


def main(argv: list[str] | None = None) -> int:
    """Run ``plumb ARGV``; what goes wrong ends with one line on stderr and status 2, for verdicts that of INVALID.

    Python's development mode (``python -X dev -m plumbline.commands.cli``) shows where an exception comes from.
    """
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        from plumbline.commands import completion

        completion.complete(_parser(os.environ["COMP_LINE"].split()))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character does not end a measurement
    out, err = (cast(TextIO, terminal.Screen(stream, terminal.coloured(stream))) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: Sequence[str]) -> int:
    bad_input = EXIT["INVALID"] if set(OF_VERDICTS) & set(words) else BAD_INPUT  # until the words are understood
    try:
        arguments, unknown = _parser(words).parse_known_args(words)
        parser: _Parser = arguments.parser
        bad_input = parser.bad_input
        if unknown:
            example = EXAMPLES[parser.prog.split()[1]]
            parser.error(f"unrecognized arguments: {' '.join(unknown)}; example: {example}")
        paths.use({name: getattr(arguments, f"{name}_folder") for name in paths.FOLDERS})
        _check_outputs(arguments)
        return int(arguments.run(arguments))
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return bad_input
    except Interrupted as error:
        print(f"plumb: interrupted by {error}: the launches that had finished are recorded", file=sys.stderr)
        return 128 + error.signum
    except BrokenPipeError:  # plumb list | head
        sys.stderr.close()
        return 0 if bad_input == BAD_INPUT else bad_input
    except KeyboardInterrupt:
        print("plumb: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        print(f"plumb: {_unexpected(error)}", file=sys.stderr)
        return bad_input
    finally:
        paths.use({})


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise :class:`PlumbError` where an output would replace records, or a file that is named by another argument."""
    values = [one for value in vars(arguments).values() for one in (value if isinstance(value, list) else [value])]
    named = [value for value in values if isinstance(value, Path)]
    outputs = [value for value in named if isinstance(value, files.Output)]
    files.refuse_inputs(outputs, [value for value in named if not isinstance(value, files.Output)])
    for output in outputs:
        sources.refuse_kept(output)


def _unexpected(error: Exception) -> PlumbError:
    """What an exception that nobody expected is, and where it was raised; the system's own errors say enough."""
    if isinstance(error, OSError) and error.strerror:
        return PlumbError(f"cannot continue: {error.strerror}", str(error.filename or "this host"), files.CURE)
    last = traceback.extract_tb(error.__traceback__)[-1]
    cure = "this is an error in Plumbline, please report it"
    return PlumbError(f"{type(error).__name__}: {error}", f"{last.filename}:{last.lineno}", cure)


def _parser(words: Sequence[str]) -> _Parser:
    """The parser of ``words``. It loads the module of their subcommand only: plumb launch runs beside measurements."""
    parser = _Parser(prog="plumb", description="Benchmarks with proven placement.")
    parser.add_argument("--version", action="version", version=f"plumb {__version__}")
    for name, what in paths.FOLDERS.items():
        text = f"folder of the {what} (default: PLUMB_{name.upper()}, or that of this checkout)"
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", dest=f"{name}_folder", help=text)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example:\n  {EXAMPLES[name]}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in words:
            loaded = importlib.import_module(f"plumbline.{module}")
            loaded.add_arguments(command)
            command.bad_input = EXIT["INVALID"] if name in OF_VERDICTS else BAD_INPUT
            command.set_defaults(run=loaded.run, parser=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
