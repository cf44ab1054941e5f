"""Spellings of options that have ended: each is answered by the present one."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.base.errors import PlumbError
from plumbline.commands.table import COMMANDS

_OUTPUT = "--output FILE, whose ending says the form"
#: command -> old option -> present spelling
ENDED = {
    "ci": {"--tests": "--test", "--output": "--checkout"},
    "compact": {"--before": "--until", "--remove": "--remove-sessions"},
    "compare": {"--format": f"--json, or {_OUTPUT}"},
    "doctor": {"--nodes": "--facts"},
    "gate": {"--tests": "--test", "--junit": _OUTPUT, "--markdown": _OUTPUT, "--html": _OUTPUT},
    "history": {"--min-effect": "--tolerance"},
    "nodes": {"--limit": "--time-limit", "--output": "plumb nodes facts FOLDER"},
    "outliers": {"--min-effect": "--tolerance", "--nodes": "--members"},
    "site": {"--name": "--site", "--add-stacks": "--offer-also"},
    "site init": {"--stacks": "--offer"},  # elsewhere it names the folder of the stacks
    "tune": {"--profile": "--profile-of"},
}


def refuse(words: Sequence[str]) -> None:
    """Raise :class:`PlumbError`, which names the present spelling, for an option that has ended."""
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
            raise PlumbError(f"{option} of plumb {command} has ended", None, f"write {now}")
