"""``plumb knobs``: settings of the MPI library of a stack, and those worth a try."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator

import msgspec

from plumbline.base import group, units
from plumbline.base.errors import PlumbError, suggest
from plumbline.commands import options
from plumbline.commands.options import command, flag, goes_without, option
from plumbline.extras.tune import inventory
from plumbline.extras.tune.inventory import Inventory, Known
from plumbline.mpi.base import Family
from plumbline.mpi.settings import Knob
from plumbline.show.columns import Column, Table
from plumbline.stacks import manifest

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
    listing, family = inventory.of(stack), stack.family
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
    lines = [KNOBS.text([(knob, listing.settings[knob.name]) for knob in listing.knobs])]
    notes = group((_note(knob), knob.name) for knob in listing.knobs)
    lines.append("\n".join(f"{', '.join(names)}: {note}" for note, names in notes.items() if note))
    if listing.lacking:
        lines.append(f"left out, because this version lacks them: {', '.join(listing.lacking)}")
    variable = f"a setting's variable: {family.setting_variable('NAME')}; " if family.setting_prefix else ""
    lines.append(f"{variable}everything that the library says about one: plumb knobs {stack} NAME")
    return "\n\n".join(line for line in lines if line)


def _note(knob: Knob) -> str:
    needs = [f"needs {need.name}={need.value}" for need in knob.needs]
    needs += [f"needs {name} of its size" for name in knob.at_least]
    return "; ".join([*needs, *([knob.note] if knob.note else [])])


def _described(item: Known, listing: Inventory, family: Family) -> str:
    lines = [item.name, f"  variable  {family.setting_variable(item.name)}", f"  type      {item.type}"]
    lines += [f"  default   {item.default or '–'}", f"  now       {item.now or '–'}", f"  when      {_when(item)}"]
    if item.allowed:
        lines.append(f"  values    {item.allowed}")
    for knob in listing.knobs:
        if knob.name == item.name:
            lines.append(f"  curated   {knob.when}, {knob.scope}: {' '.join(knob.values)}")
            if _note(knob):
                lines.append(f"            {_note(knob)}")
    lines += [f"  memory    {cost}" for cost in _memory(item, listing, family)]
    text = " ".join(item.about.replace("$", " ").split())
    lines += textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _memory(item: Known, listing: Inventory, family: Family) -> Iterator[str]:
    """The memory of a node that eager buffers of this setting need: bytes per peer x peers."""
    if family.eager_buffers is None or item.name != family.eager_buffers[0]:
        return
    most = listing.settings.get(family.eager_buffers[1])
    if most is None or not (item.now or "").isdigit() or not (most.now or "").isdigit():
        return
    each, peers = int(item.now or 0), int(most.now or 0)
    rank, node = (units.human_bytes(count * each) for count in (peers, peers * (peers + 1)))
    yield (
        f"{units.human_bytes(each)} for each peer that a rank often sends to, {peers} at most ({most.name}): "
        f"{rank} a rank, {node} for {peers + 1} ranks that all send to all"
    )
