"""``plumb lint``: checks that every reference of every site is one that a record can be compared with."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from plumbline.base.errors import PlumbError
from plumbline.commands import options
from plumbline.judge.references import match
from plumbline.judge.references.faults import faults, is_own
from plumbline.judge.references.model import Document
from plumbline.measure.application import model
from plumbline.site import tests as suite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb lint``."""
    parser.add_argument("sites", nargs="*", metavar="SITE", help="default: all")
    options.add_json(parser, "print JSON: a line for each fault")


def run(args: argparse.Namespace) -> int:
    """Print a line per fault; 1 if there is one."""
    names, tests = options.sites_of(args), suite.expected()
    file = model.find(Path.cwd())
    application = model.load(file) if file else None
    programs = [application.test(name) for name in application.programs] if application else []
    by_site = {name: faults(name, tests, programs) for name in names}
    if args.json:
        options.print_lines({"site": name, "fault": fault} for name in names for fault in by_site[name])
    else:
        entries = [(document.test, entry) for document in _documents(names) for entry in document.references]
        application_tests = list(
            dict.fromkeys(entry.test for family, entry in entries if is_own(entry, family, tests, programs))
        )
        total = sum(map(len, by_site.values()))
        print("".join(f"FAULT {fault}\n" for name in names for fault in by_site[name]), end="")
        if application_tests:
            listed = ", ".join(application_tests)
            print(f"not tests of the suite, but of applications, whose plumb.yaml has them: {listed}")
        print(f"{len(names)} sites, {len(entries)} references, {total} faults")
    return 1 if any(by_site.values()) else 0


def _documents(names: Iterable[str]) -> Iterator[Document]:
    """The reference files of some sites that can be read."""
    for file in (file for name in names for file in match.files(name)):
        with contextlib.suppress(PlumbError):
            yield match.read(file)
