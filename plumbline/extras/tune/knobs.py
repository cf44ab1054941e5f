"""``plumb knobs``: settings of the MPI library of a stack, and those worth a try.

The library reports them by MPI_T, in a program of the stack that needs no launcher.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.base import group, units
from plumbline.base.errors import PlumbError, suggest
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, option
from plumbline.launch.environment import at_home, inherit
from plumbline.mpi.base import Family
from plumbline.mpi.settings import Knob
from plumbline.show.columns import Column, Table
from plumbline.stacks import instructions, manifest
from plumbline.stacks.manifest import Manifest

PROGRAM = "list_settings"
TIME_LIMIT_S = 60


class ReportedSetting(Struct, frozen=True):
    """A setting as MPI_T reports it, with the value that it had; ``words`` are the library's for its numbers.

    ``running``: the library says that it may be changed while it runs.
    """

    name: str
    type: str
    value: str
    running: bool
    about: str
    words: dict[str, str] = {}


class _Document(Struct, frozen=True):
    library: str
    settings: list[ReportedSetting]


class Known(Struct, frozen=True):
    """A setting under its own name, with its value by default and in the stack.

    ``allowed`` are the values that the library names: words, numbers with their words, or a range; empty where it
    names none. A number that stands for a word is shown as the word; ``words`` are in the order of their numbers.
    """

    name: str
    type: str
    default: str
    now: str
    running: bool
    allowed: str
    about: str
    words: tuple[str, ...] = ()

    def number(self, value: str) -> str | None:
        """The number that MPI_T has for ``value``, a number or a word; None for a word that the library lacks."""
        return value if value.isdigit() else str(self.words.index(value)) if value in self.words else None


class Inventory(Struct, frozen=True):
    """All settings of a stack's MPI library, by name, and the curated ones that it has and lacks."""

    library: str
    settings: dict[str, Known]
    knobs: tuple[Knob, ...]
    lacking: tuple[str, ...]


def inventory(stack: Manifest) -> Inventory:
    """The settings of ``stack``; its own ``settings`` are in force for ``now``.

    Raises :class:`PlumbError` if its library cannot be asked.
    """
    family = stack.family
    default = _ask(replace(stack, settings={}, tuned=None))
    now = {setting.name: setting for setting in _ask(stack).settings} if stack.settings else {}
    settings = {}
    for setting in default.settings:
        name = family.setting_name(setting.name, setting.about)
        # Intel MPI does not report values that are texts
        value = now.get(setting.name, setting).value or stack.settings.get(name, "")
        words = family.words(setting.about) if setting.type == "int" else []
        numbered = ", ".join(f"{number} {word}" for number, word in setting.words.items())
        allowed = ", ".join(words) or numbered or family.range_of(setting.about)
        default_shown, now_shown = (
            words[int(text)] if text.isdigit() and int(text) < len(words) else text for text in (setting.value, value)
        )
        settings[name] = Known(
            name, setting.type, default_shown, now_shown, setting.running, allowed, setting.about, tuple(words)
        )
    return Inventory(
        " ".join(default.library.splitlines()[0].partition(",")[0].split()),
        settings,
        tuple(knob for knob in family.knobs if knob.name in settings),
        tuple(knob.name for knob in family.knobs if knob.name not in settings),
    )


def _ask(stack: Manifest) -> _Document:
    program = _program(stack)
    variables = {**inherit(os.environ).kept, **manifest.environment(stack, os.environ)}
    cure = "plumb stack check"
    try:
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [program], env=at_home(variables, Path(home)), capture_output=True, timeout=TIME_LIMIT_S, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlumbError(f"the MPI library cannot be asked for its settings: {error}", str(program), cure) from None
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise PlumbError(f"{PROGRAM} ended with {done.returncode}: {last}", str(program), cure)
    try:
        return msgspec.json.decode(done.stdout, type=_Document)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PlumbError(f"{PROGRAM} printed no list of settings: {error}", str(program), "report this") from None


def _program(stack: Manifest) -> Path:
    """The program beside the kernels of the library's own ABI, which a tuned stack shares with its original."""
    for name, entry in stack.benchmarks.items():
        file = Path(entry.file).parents[1] / "libexec" / PROGRAM
        if entry.suite == "kernels" and "-abi" not in name and file.is_file():
            instructions.refuse(entry.facts, PROGRAM, stack.made_of)
            return file
    raise PlumbError(
        f"stack {stack.name} has no program {PROGRAM}", "its kernels", f"plumb stack install {stack.made_of}"
    )


#: characters of a cell that may be long
WIDE = 40


def _when(item: Known) -> str:
    return "running" if item.running else "start"


def _cut(text: str) -> str:
    return text if len(text) <= WIDE else text[: WIDE - 1] + "…"


KNOBS = Table[tuple[Knob, Known]](
    "Settings worth a try",
    [
        Column("setting", lambda row: row[0].name),
        Column("default", lambda row: row[1].default or "–", "number"),
        Column("now", lambda row: row[1].now or "–", "number"),
        Column("worth a try", lambda row: _cut(" ".join(row[0].values))),
        Column("when", lambda row: row[0].when),
        Column("ranks", lambda row: row[0].scope),
        Column("moves", lambda row: " ".join(row[0].operations) or "all"),
    ],
)
SETTINGS = Table[Known](
    "Settings",
    [
        Column("setting", lambda item: item.name),
        Column("type", lambda item: item.type),
        Column("default", lambda item: _cut(item.default or "–")),
        Column("now", lambda item: _cut(item.now or "–")),
        Column("when", _when),
        Column("values", lambda item: _cut(item.allowed)),
    ],
)


@command(
    option("stack", "installed stack", metavar="NAME"),
    option("names", "settings to describe in full, by name or part of it", nargs="*", metavar="SETTING"),
    flag("--all", "list every setting of the library"),
    options.as_json("print all settings as JSON"),
    rules=[goes_without("json", "names all", "--json has every setting in full", "leave out --all and the names")],
)
def run_knobs(args: argparse.Namespace) -> int:
    """Print the settings; returns 0. Raises :class:`PlumbError` for a name that no setting has in its own."""
    stack = manifest.load(args.stack)
    listing, family = inventory(stack), stack.family
    if args.json:
        print(json.dumps(msgspec.to_builtins(listing), indent=2))
        return 0
    if args.names:
        for part in args.names:
            if not any(part in name for name in listing.settings):
                cure = suggest(part, listing.settings, f"plumb knobs {args.stack} --all lists them")
                raise PlumbError(f"no setting has '{part}' in its name", f"plumb knobs {args.stack}", cure)
        chosen = [item for item in listing.settings.values() if any(part in item.name for part in args.names)]
        print("\n\n".join(_described(item, listing, family) for item in chosen))
        return 0
    print(f"{args.stack}: {listing.library}, {len(listing.settings)} settings\n")
    print(SETTINGS.text(list(listing.settings.values())) if args.all else _curated(args.stack, listing, family))
    return 0


def _curated(stack: str, listing: Inventory, family: Family) -> str:
    notes = group((_note(knob), knob.name) for knob in listing.knobs)
    variable = f"a setting's variable: {family.setting_variable('NAME')}; " if family.setting_prefix else ""
    lines = [
        KNOBS.text([(knob, listing.settings[knob.name]) for knob in listing.knobs]),
        "\n".join(f"{', '.join(names)}: {note}" for note, names in notes.items() if note),
        f"left out, because this version lacks them: {', '.join(listing.lacking)}" if listing.lacking else "",
        f"{variable}everything that the library says about one: plumb knobs {stack} NAME",
    ]
    return "\n\n".join(line for line in lines if line)


def _note(knob: Knob) -> str:
    needs = [
        *(f"needs {need.name}={need.value}" for need in knob.needs),
        *(f"needs {name} of its size" for name in knob.at_least),
    ]
    return "; ".join([*needs, *([knob.note] if knob.note else [])])


def _described(item: Known, listing: Inventory, family: Family) -> str:
    about = " ".join(item.about.replace("$", " ").split())
    lines = [
        item.name,
        f"  variable  {family.setting_variable(item.name)}",
        f"  type      {item.type}",
        f"  default   {item.default or '–'}",
        f"  now       {item.now or '–'}",
        f"  when      {_when(item)}",
        *([f"  values    {item.allowed}"] if item.allowed else []),
        *(
            f"  curated   {knob.when}, {knob.scope}: {' '.join(knob.values)}"
            + (f"\n            {_note(knob)}" if _note(knob) else "")
            for knob in listing.knobs
            if knob.name == item.name
        ),
        *(f"  memory    {cost}" for cost in _memory(item, listing, family)),
        *textwrap.wrap(about, 100, initial_indent="  ", subsequent_indent="  "),
    ]
    return "\n".join(lines)


def _memory(item: Known, listing: Inventory, family: Family) -> Iterator[str]:
    """The memory of a node that eager buffers of this setting need: bytes per peer x peers."""
    each_name, most_name = family.eager_buffers or ("", "")
    most = listing.settings.get(most_name)
    if item.name != each_name or most is None or not ((item.now or "").isdigit() and (most.now or "").isdigit()):
        return
    each, peers = int(item.now or 0), int(most.now or 0)
    rank, node = (units.human_bytes(count * each) for count in (peers, peers * (peers + 1)))
    yield (
        f"{units.human_bytes(each)} for each peer that a rank often sends to, {peers} at most ({most.name}): "
        f"{rank} a rank, {node} for {peers + 1} ranks that all send to all"
    )
