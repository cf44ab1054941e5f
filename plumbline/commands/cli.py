"""The ``plumb`` command: one subcommand per job, each in a module with ``add_arguments`` and ``run``."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from plumbline.base import files, git, paths, surroundings, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.verdicts import EXIT, GIT_ENDS
from plumbline.commands import ended, options
from plumbline.commands.table import COMMANDS, HEADINGS
from plumbline.launch.signals import Interrupted
from plumbline.records import sources

#: commands whose exit status is a verdict: whatever goes wrong in them is INVALID, because 1 is a FAIL, and a CI that
#: tolerates INCONCLUSIVE tolerates 2
OF_VERDICTS = ("accept", "bisect", "gate", "history", "outliers", "why")
#: prefix of ``--any-mpi`` of ``plumb run`` and its abbreviations: the exit status is that of gates
ANY_MPI = "--an"
#: prefix of ``--for-git-bisect`` of the gate and its abbreviations
FOR_GIT = "--fo"
BAD_INPUT = 2


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with a heading above each group of commands."""

    def _format_action(self, action: argparse.Action) -> str:
        heading = HEADINGS.get(action.dest) if type(action).__name__ == "_ChoicesPseudoAction" else None
        return (f"\n  {heading}:\n" if heading else "") + super()._format_action(action)


class _Version(argparse.Action):
    """Print the version and where it is; git is asked only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print it and exit."""
        state = git.suite_state()
        of = [f"wheel in {paths.package()}" if paths.is_installed() else f"checkout {paths.root()}"]
        of += [f"commit {state['commit'][:12]}"] if state["commit"] else []
        of += ["with changes"] if state["dirty"] else []
        print(f"plumb {state['version']} ({', '.join([*of, *([state['unknown']] if 'unknown' in state else [])])})")
        parser.exit()


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
    """Run ``plumb ARGV``; an error ends with one line on stderr and status 2, for verdicts that of INVALID.

    Python's development mode (``python -X dev -m plumbline.commands.cli``) shows where an exception comes from.
    """
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        from plumbline.commands import completion

        completion.complete(_parser(os.environ["COMP_LINE"].split()))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=terminal.PLAIN)  # a terminal that lacks a character does not end a measurement
    out, err = (cast(TextIO, terminal.Screen(stream, terminal.coloured(stream))) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), surroundings.isolated():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: Sequence[str]) -> int:
    bad_input = _bad_input(words, words)  # until the words are understood
    try:
        _restore_host()
        ended.refuse(words)
        folders, words = _take_folders(words, bad_input)
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        arguments, unknown = _parser(words).parse_known_args(words, folders)
        parser: _Parser = arguments.parser
        bad_input = parser.bad_input
        if unknown:
            example = COMMANDS[parser.prog.split()[1]].example
            parser.error(f"unrecognized arguments: {' '.join(unknown)}; example: {example}")
        paths.use({name: getattr(arguments, f"{name}_folder") for name in paths.FOLDERS})
        _check_outputs(arguments)
        options.check_endings(arguments)
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


def _restore_host() -> None:
    """Set back what a search that was killed had changed on this host, and say so."""
    if paths.HOST_SETTINGS.exists():
        from plumbline.host import change  # only then: all commands come here

        for file in change.restore_left():
            print(f"plumb: set back after a search that was killed: {file}", file=sys.stderr)


def _bad_input(commands: Sequence[str], words: Sequence[str]) -> int:
    """The exit status of an error in one of ``commands``, called with ``words``."""
    if "check" in commands and {"nagios", "--form=nagios"} & set(words):
        return EXIT["INVALID"]  # Nagios takes 2 for a node that is bad, 3 for unknown
    gates = "run" in commands and any(word.startswith(ANY_MPI) for word in words)
    if not gates and not set(OF_VERDICTS) & set(commands):
        return BAD_INPUT
    return GIT_ENDS if any(word.startswith(FOR_GIT) for word in words) else EXIT["INVALID"]


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise :class:`PlumbError` where an output cannot be made, or would replace records or another argument's file."""
    values = [
        value for option in vars(arguments).values() for value in (option if isinstance(option, list) else [option])
    ]
    named = [value for value in values if isinstance(value, Path)]
    outputs = [value for value in named if isinstance(value, files.Output)]
    files.refuse_inputs(outputs, [value for value in named if not isinstance(value, files.Output)])
    for output in outputs:
        if not output.name and not isinstance(output, files.OutputFolder):
            raise PlumbError("no file is named", str(output), "name a file")
        sources.refuse_kept(output)
        files.refuse_unwritable(output)


def _unexpected(error: Exception) -> PlumbError:
    """Type, text and place of an unexpected exception; for an error of the system, its text and file."""
    if isinstance(error, OSError) and error.strerror:
        place = str(error.filename or "this host")
        cure = "end some processes, or raise ulimit -u" if error.errno == errno.EAGAIN else files.remedy(Path(place))
        return PlumbError(f"cannot continue: {error.strerror}", place, cure)
    last = traceback.extract_tb(error.__traceback__)[-1]
    cure = "this is an error in Plumbline, please report it"
    return PlumbError(f"{type(error).__name__}: {error}", f"{last.filename}:{last.lineno}", cure)


def _take_folders(words: Sequence[str], bad_input: int) -> tuple[argparse.Namespace, list[str]]:
    """The folders that are named anywhere before ``--``, and the other words."""
    parser = _Parser(prog="plumb", add_help=False, allow_abbrev=False)
    parser.bad_input = bad_input
    options.add_folders(parser)
    end = words.index("--") if "--" in words else len(words)
    folders, others = parser.parse_known_args(words[:end])
    return folders, [*others, *words[end:]]


def _parser(words: Sequence[str]) -> _Parser:
    """The parser of ``words``, of their subcommand only where it comes first.

    The modules of other subcommands are not loaded: plumb launch runs beside measurements.
    """
    parser = _Parser(
        prog="plumb",
        description="Benchmarks with proven placement.",
        epilog="plumb help COMMAND: its options and an example. Folders may be named before or after the command.",
        formatter_class=_Help,
    )
    parser.bad_input = _bad_input(words, words)
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    options.add_folders(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in words[:1] if COMMANDS.keys() & words[:1] else COMMANDS:
        text, example, module = COMMANDS[name]
        command = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in words:
            loaded = importlib.import_module(module)
            loaded.add_arguments(command)
            command.bad_input = _bad_input([name], words)
            command.set_defaults(run=loaded.run, parser=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
