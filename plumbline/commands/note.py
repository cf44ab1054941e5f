"""``plumb note``: record an event of a site, so that its histories, gates and pages show it."""

from __future__ import annotations

import argparse

import msgspec

from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.records import notes, sources, store
from plumbline.show import notes as shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb note``."""
    parser.add_argument("text", nargs="?", metavar="TEXT", help="what happened (left out: list the notes)")
    options.add(parser, "--site", "where (default: the only one that has records)")
    parser.add_argument("--time", metavar="TIME", help="when, in UTC, such as 2026-11-22T10:30 (default: now)")
    parser.add_argument("--remove", metavar="ID", help="remove the note whose id begins so")
    options.add_json(parser, "print the notes as JSON, a line for each")


def run(args: argparse.Namespace) -> int:
    """Write, remove or list; 1 if a line of the notes is damaged."""
    if args.text and args.remove:
        raise PlumbError("a note and --remove", "plumb note", "do one after the other")
    if args.time and not args.text:
        raise PlumbError("--time goes with a note", "plumb note", "say what happened")
    if not args.text and not args.remove:
        return _list([args.site] if args.site else sources.sites(), args.json)
    if args.json:
        raise PlumbError("--json goes with the list of notes", "plumb note", "leave it out")
    site = args.site or sources.only_site("plumb note")
    if args.remove:
        print(f"removed: {shown.line(notes.remove(site, args.remove))}")
        return 0
    text = " ".join(args.text.split())
    if not text or not text.isprintable():
        raise PlumbError("the text is empty, or has characters that cannot be shown", "plumb note", "say it in a line")
    if len(text) > notes.LONGEST:
        cure = f"say it in {notes.LONGEST}, and where the rest is"
        raise PlumbError(f"the text has {len(text)} characters", "plumb note", cure)
    print(f"noted: {shown.line(notes.add(site, text, notes.moment(args.time) if args.time else store.now()))}")
    return 0


def _list(sites: list[str], as_json: bool) -> int:
    stored_notes, damages = notes.of_sites(sites)
    if as_json:
        options.print_lines(map(msgspec.to_builtins, stored_notes))
    elif stored_notes:
        print(f"{shown.listing(stored_notes)}\n\n{counted(len(stored_notes), 'note')}")
    else:
        print("no notes yet: plumb note TEXT writes one")
    return int(options.report_damage(damages, "note"))
