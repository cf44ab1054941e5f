"""``plumb completion``: the shell's completion of ``plumb``, by argcomplete (https://kislyuk.github.io/argcomplete)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from plumbline import site
from plumbline.commands import options
from plumbline.commands.options import command, option
from plumbline.stacks import manifest


@command(option("shell", "shell of the completion code", choices=("bash", "zsh", "fish")))
def run_completion(args: argparse.Namespace) -> int:
    """Print the code for the shell to run; returns 0."""
    import argcomplete  # here and below: the other commands do not need it

    print(argcomplete.shellcode(["plumb"], shell=args.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, which asks by ``COMP_LINE`` and other variables, and end this process."""
    import argcomplete

    known = {"stack": manifest.names, "stacks": manifest.names, "site": site.names, "sites": site.names}
    for action in [*_actions(parser)]:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                options.add_folders(below)
        if action.dest in known and action.choices is None:
            action.completer = lambda names=known[action.dest], **_: list(names())  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of ``parser`` and of all below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
