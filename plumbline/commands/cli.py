"""The ``plumb`` command: finds the subcommand by the table, reads its arguments, runs it, and ends with its status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from plumbline import site
from plumbline.base import files, git, paths, surroundings, terminal
from plumbline.base.errors import PlumbError, suggest
from plumbline.base.programs import Interrupted
from plumbline.commands import options
from plumbline.commands.table import COMMANDS, ENDED, GONE, HEADINGS, JOBS, QUESTIONS
from plumbline.records import sources

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
        about = [
            f"wheel in {paths.package()}" if paths.is_installed() else f"checkout {paths.root()}",
            state["commit"] and f"commit {state['commit'][:12]}",
            state["dirty"] and "with changes",
            state.get("unknown"),
        ]
        print(f"plumb {state['version']} ({', '.join(filter(None, about))})")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser whose ``bad_input`` is the exit status of its errors."""

    bad_input = BAD_INPUT

    def error(self, message: str) -> NoReturn:
        example = COMMANDS[self.prog.split()[1]].example if " " in self.prog else ""
        if "arguments" in message.partition(":")[0] and example.startswith(self.prog):
            message += f"; example: {example}"
        self.print_usage(sys.stderr)
        self.exit(self.bad_input, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            all_commands = "plumb help --all lists them" if action.metavar == "COMMAND" else None
            cure = suggest(str(value), [str(choice) for choice in action.choices], all_commands)
            raise argparse.ArgumentError(action, f"invalid choice: '{value}': {cure}")


class _FirstScreen(_Parser):
    """The parser of ``plumb`` itself, whose help is a few questions with the command that answers each."""

    def format_help(self) -> str:
        """Usage, questions with examples, and where all the rest is."""
        known = {question: COMMANDS[name].example for question, name in QUESTIONS.items() if name in COMMANDS}
        answers = "".join(f"  {question}\n    {example}\n" for question, example in known.items())
        return f"{self.format_usage()}\n{self.description}\n\n{answers}\n{self.epilog}\n"


def main(argv: list[str] | None = None) -> int:
    """Run ``plumb ARGV``; an error ends with one line on stderr and status 2, for verdicts that of INVALID.

    Python's development mode (``python -X dev -m plumbline.commands.cli``) shows where an exception comes from.
    """
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        from plumbline.commands import completion

        completion.complete(_parser(os.environ["COMP_LINE"].split()))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it is closed: plumb list >&-
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=terminal.PLAIN)  # a terminal that lacks a character does not end a measurement
    out, err = (cast(TextIO, terminal.Screen(stream, terminal.coloured(stream))) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), surroundings.isolated():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: Sequence[str]) -> int:
    bad_input = _bad_input(words, words)  # until the words are understood
    try:
        with contextlib.ExitStack() as at_end:  # also of an exit: at the end of Python a full disk goes unseen
            at_end.callback(sys.stdout.flush)
            _restore_host()
            _refuse_ended(words)
            folders, words = _take_folders(words, bad_input)
            shows_all = words == ["help", "--all"]
            if not words:
                print(_parser(words, _FirstScreen).format_help(), file=sys.stderr)
                return BAD_INPUT
            if words[:1] == ["help"]:
                words = ["--help"] if shows_all else [*words[1:], "--help"]
            arguments, unknown = _parser(words, _Parser if shows_all else _FirstScreen).parse_known_args(words, folders)
            parser: _Parser = arguments.parser
            bad_input = parser.bad_input
            if unknown:
                meant = suggest(unknown[0], parser._option_string_actions, " ") if unknown[0][:1] == "-" else ""
                parser.error(f"unrecognized arguments: {' '.join(unknown)}{f' ({meant})' if meant.strip() else ''}")
            paths.use({name: getattr(arguments, f"{name}_folder") for name in paths.FOLDERS})
            site.use_options(arguments.scheduler_option)
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
        site.use_options([])
        try:
            sys.stdout.flush()
        except OSError:  # Python, which tries again at its end, would print a second message
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _restore_host() -> None:
    """Set back what a search that was killed had changed on this host, and say so."""
    if paths.HOST_SETTINGS.exists():
        from plumbline.host import change  # only then: all commands come here

        for file in change.restore_left():
            print(f"plumb: set back after a search that was killed: {file}", file=sys.stderr)


def _bad_input(commands: Iterable[str], words: Sequence[str]) -> int:
    """The exit status of an error in one of ``commands``, called with ``words``."""
    errors = [error for name in commands if name in COMMANDS for error in COMMANDS[name].errors.items()]
    statuses = [status for beginning, status in errors if any(word.startswith(beginning) for word in words)]
    return max(statuses, default=BAD_INPUT)


def _refuse_ended(words: Sequence[str]) -> None:
    """Raise :class:`PlumbError`, which names the present spelling, for a command or an option that was renamed."""
    if words[:1] and words[0] in GONE:
        raise PlumbError(f"plumb {words[0]} is now {GONE[words[0]]}")
    plumb_words = words[: words.index("--")] if "--" in words else words
    command = next((word for word in plumb_words if word in COMMANDS), "")
    after = plumb_words[plumb_words.index(command) :] if command else ()
    old = {**ENDED.get(command, {}), **ENDED.get(" ".join(after[:2]), {})}
    for place, word in enumerate(after):
        option = word.partition("=")[0]
        now = old.get(option)
        if option == "--json" and command in ("gate", "tune"):  # it named a file
            file = word.partition("=")[2] or next(iter(after[place + 1 :]), "")
            now = f"--output {file}" if file.endswith(".json") else None
        if now:
            raise PlumbError(f"{option} of plumb {command} is now {now}")


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Raise :class:`PlumbError` where an output cannot be made, or would replace records or another argument's file."""
    values = [
        value for option in vars(arguments).values() for value in (option if isinstance(option, list) else [option])
    ]
    named = [value for value in values if isinstance(value, Path)]
    outputs = [value for value in named if isinstance(value, files.Output)]
    files.refuse_inputs(outputs, [value for value in named if not isinstance(value, files.Output)])
    for output in outputs:
        sources.refuse_kept(output)
        files.refuse_unwritable(output)


def _unexpected(error: Exception) -> PlumbError:
    """Type, text and place of an unexpected exception; for an error of the system, its text and file."""
    if isinstance(error, OSError) and error.strerror:
        place = str(error.filename or "this host")
        cure = "end some processes, or raise ulimit -u" if error.errno == errno.EAGAIN else files.remedy(Path(place))
        return PlumbError(f"cannot continue: {error.strerror}", place, cure)
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("plumbline"):
        return PlumbError(f"the Python package {error.name} is not installed", sys.executable, paths.CAMPAIGN)
    last = traceback.extract_tb(error.__traceback__)[-1]
    cure = "this is an error in Plumbline, please report it"
    return PlumbError(f"{type(error).__name__}: {error}", f"{last.filename}:{last.lineno}", cure)


def _take_folders(words: Sequence[str], bad_input: int) -> tuple[argparse.Namespace, list[str]]:
    """The folders that are named anywhere before ``--``, and the other words."""
    parser = _Parser(prog="plumb", add_help=False, allow_abbrev=False)
    parser.bad_input = bad_input
    options.add_folders(parser)
    options.add_jobs(parser, [])
    end = words.index("--") if "--" in words else len(words)
    folders, others = parser.parse_known_args(words[:end])
    return folders, [*others, *words[end:]]


def _parser(words: Sequence[str], kind: type[_Parser] = _FirstScreen) -> _Parser:
    """The parser of ``words``, of their subcommand only where it comes first.

    The modules of other subcommands are not loaded: plumb launch runs beside measurements.
    """
    parser = kind(
        prog="plumb",
        description="Benchmarks with proven placement.",
        epilog="plumb help COMMAND: its options and an example. "
        + ("plumb help --all: all commands." if kind is _FirstScreen else "Folders may be named before or after it."),
        formatter_class=_Help,
    )
    parser.bad_input = _bad_input(words, words)
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    options.add_folders(parser)
    options.add_jobs(parser, [])
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in words[:1] if COMMANDS.keys() & words[:1] else COMMANDS:
        entry = COMMANDS[name]
        command = commands.add_parser(
            name,
            help=entry.purpose,
            description=entry.purpose,
            epilog=f"example:\n  {entry.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in words:
            command.bad_input = _bad_input([name], words)
            getattr(importlib.import_module(entry.module), f"run_{name}").add_to(command)
            if name in JOBS:
                options.add_jobs(command)
            command.set_defaults(parser=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
