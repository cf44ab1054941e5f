"""``plumb publish``: static pages over all systems and campaigns of a results folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from plumbline.base import files
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.commands.options import command, option
from plumbline.extras.publish import documents, folder, system
from plumbline.records import sources


@command(
    option(
        "folder", "output folder: new, empty, or of an earlier plumb publish", type=files.OutputFolder, metavar="DIR"
    ),
    options.experiments(),
)
def run_publish(args: argparse.Namespace) -> int:
    """Make the pages whose inputs changed; returns 1 if something could not be read or made, which is named, else 0."""
    names = sources.sites()
    if not names:
        raise sources.none_yet()
    with folder.opened(args.folder) as pages:
        return _publish(names, pages, args.experiments)


def _publish(names: Sequence[str], pages: folder.Folder, experiments: bool) -> int:
    lines, problems = [], list[str]()
    newest: dict[str, list[system.Known]] = {}
    try:
        for name in names:
            machine = system.System(name, pages, experiments)
            line = machine.publish()
            lines += [line] if line else []
            problems += machine.problems
            if machine.newest:
                newest[name] = machine.newest
    except BaseException:  # keep the finished pages, whatever the error
        pages.keep()
        raise
    together = system.side_by_side(newest, pages) if len(newest) > 1 else None
    pages.show("index.html", documents.systems(lines, together))
    pages.finish()
    for problem in problems:
        print(f"plumb: {problem}", file=sys.stderr)
    total = sum(file.stat().st_size for file in pages.root.rglob("*") if file.is_file())
    kept = len(pages.pages) - pages.rendered
    print(f"{counted(len(lines), 'system')}, {counted(sum(line['campaigns'] for line in lines), 'campaign')}")
    print(f"{counted(pages.rendered, 'page')} rendered, {kept} unchanged, {counted(pages.removed, 'file')} removed")
    print(f"published: {pages.root / 'index.html'} ({total / 1e6:.1f} MB in all)")
    return 1 if problems else 0
