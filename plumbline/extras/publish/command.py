"""``plumb publish``: static pages over all systems and campaigns of a results folder.

A system has a page that leads to its campaigns, its tests over time and its machine. A page whose inputs are the same
is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.base import files, group, paths
from plumbline.base.errors import PlumbError
from plumbline.base.units import counted
from plumbline.commands import options
from plumbline.commands.options import command, flag, option
from plumbline.extras.publish import documents
from plumbline.extras.publish.documents import slug
from plumbline.records import notes, outcome, query, sources
from plumbline.records.model import Row
from plumbline.records.notes import Note
from plumbline.show import pages as page_files
from plumbline.show.pages import Shared
from plumbline.show.report.data import compose, without_odd
from plumbline.show.report.overview import other_measurements

#: the folder of shared files, and the file with the inputs of each page
ASSETS, STATE = "assets", "pages.json"
#: a page's data, and its facts for other pages
Made = tuple[dict[str, Any], dict[str, Any]]
#: a record's row, and its seal or the SHA-256 of its content
Known = tuple[Row, str]
TOP = "All systems"
#: so many campaigns of a system, whole ones and others, get a page, unless more are wanted
NEWEST = 30


@dataclass
class Folder:
    """``known`` are the pages of the folder before, ``pages`` those now: ``{path: {"inputs", "facts"}}``."""

    root: Path
    shared: Shared
    generator: str
    known: dict[str, dict[str, Any]]
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    rendered: int = 0
    removed: int = 0

    def put(self, path: str, inputs: Any, make: Callable[[], Made]) -> dict[str, Any]:
        """Make the page ``path`` by ``make`` unless it is there and was made of the same ``inputs``; returns its facts.

        ``inputs`` is anything that JSON can hold.
        """
        now = _sum(self.generator, json.dumps(inputs))
        old = self.known.get(path)
        if old is None or old["inputs"] != now or not (self.root / path).is_file():
            document, facts = make()
            files.write(
                "a page", self.root / path, self.shared.render(document, "../" * path.count("/") + f"{ASSETS}/")
            )
            self.rendered += 1
            old = {"inputs": now, "facts": facts}
        self.pages[path] = old
        return dict(old["facts"])

    def show(self, path: str, document: dict[str, Any]) -> None:
        """Make the page ``path`` that shows ``document``, unless it is there and shows the same."""
        self.put(path, document, lambda: (document, {}))

    def finish(self) -> None:
        """Remove pages and shared files that are not used any more, and store the inputs of the pages."""
        kept = {*self.pages, *(f"{ASSETS}/{name}" for name in self.shared.texts)}
        old = {*self.known, *(f"{ASSETS}/{file.name}" for file in (self.root / ASSETS).iterdir())}
        for path in sorted(old - kept):
            (self.root / path).unlink(missing_ok=True)
            self.removed += 1
        self.keep(self.pages)
        for left in self.root.rglob(".*"):  # of killed publications: no other runs in this folder
            written = re.fullmatch(r"\.(.+)\.[0-9]+", left.name)
            if written and left.with_name(written[1]).relative_to(self.root).as_posix() in {*old, *kept, STATE}:
                left.unlink(missing_ok=True)
                self.removed += 1

    def keep(self, pages: dict[str, dict[str, Any]]) -> None:
        """Store the inputs of ``pages``."""
        files.write("the state of the pages", self.root / STATE, json.dumps({"schema": 1, "pages": pages}) + "\n")


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Folder]:
    """The folder ``root`` for pages: new, empty, or one that this function opened before; another publication waits.

    Raises :class:`PlumbError` for any other folder, and for one whose state is damaged.
    """
    shared = page_files.shared()
    with files.writing("the pages", root):
        if not root.is_dir() or any(root.iterdir()):
            files.refuse_foreign(root)
        root.mkdir(parents=True, exist_ok=True)
        (root / files.MARK).touch()
        held = files.lock(root / files.MARK)
    with held:
        with files.writing("the pages", root):
            for name, text in shared.texts.items():
                if not (root / ASSETS / name).is_file():
                    files.write("a page's script or style", root / ASSETS / name, text)
        yield Folder(root, shared, _generator(shared), _known(root / STATE))


def _known(file: Path) -> dict[str, dict[str, Any]]:
    """The stored state of the pages; empty without a file, an error if it is damaged."""
    try:
        return {
            str(path): {"inputs": str(entry["inputs"]), "facts": dict(entry["facts"])}
            for path, entry in json.loads(file.read_text(encoding="utf-8"))["pages"].items()
            if ".." not in Path(path).parts and not Path(path).is_absolute()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlumbError(
            f"damaged state of the pages: {error!r}", str(file), "remove it: all pages are then made again"
        ) from None


def _generator(shared: Shared) -> str:
    """A checksum of the program that makes pages: the names of the shared files, and all code of this package."""
    code = (file.read_bytes() for file in sorted(paths.package().rglob("*.py")))
    forms = (file.read_bytes() for file in sorted(page_files.ASSETS.glob("*.html")))
    return _sum(*sorted(shared.texts), *(hashlib.sha256(text).hexdigest() for text in (*code, *forms)))


def _sum(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass
class System:
    """A site whose pages are made.

    ``problems`` are unreadable records and failed pages, in words; ``newest`` are the records of its newest campaign
    whose figures may be compared. ``experiments``: their records are history too. ``every``: each campaign gets a page,
    not only the newest and those that have one; ``with_page`` are those that have one now,
    ``without`` counts the others.
    """

    name: str
    folder: Folder
    experiments: bool = False
    every: bool = False
    with_page: set[str] = field(default_factory=set)
    without: int = 0
    problems: list[str] = field(default_factory=list)
    newest: list[Known] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The folder of its pages."""
        return f"systems/{slug(self.name)}"

    def publish(self) -> dict[str, Any] | None:
        """Make the pages whose inputs changed; returns its line on the page of all systems, None without records."""
        known, damages = query.with_sums(query.Selection(site=self.name))
        noted, spoilt = notes.read(self.name)
        self.problems += [f"damaged record: {damage}" for damage in damages]
        self.problems += [f"damaged note: {damage}" for damage in spoilt]
        if not known:
            return None
        lines = self._campaigns(known)
        campaigns, parts = ([line for line in lines if (line["rank"] > 1) == part] for part in (False, True))
        tests = self._tests([item for item in known if self.experiments or not item[0].is_experiment], noted)
        rows = [row for row, _ in known]
        try:
            machine, odd = without_odd(lambda some, _: documents.machine(self.name, some, self._trail("")), rows)
            self._name(odd)
        except PlumbError as error:
            machine = documents.machine(self.name, [], self._trail(""))
            self._name([error])
        self.folder.show(f"{self.path}/machine.html", machine)
        if newest := min(lines, key=lambda line: line["rank"], default=None):
            self.newest = [(row, total) for row, total in known if row.campaign == newest["name"] and row.is_comparable]
        changes = sorted((change for test in tests for change in test.pop("changes")), key=_when, reverse=True)
        facts = {
            "records": len(rows),
            "begin": rows[0].time,
            "end": rows[-1].time,
            "processors": sorted({str(row.host["cpu"]) for row in rows if row.host.get("cpu")}),
            "nodes": sorted({node for row in rows for node in row.nodes}),
            "worse": sum(test["worse"] for test in tests),
            "better": sum(test["better"] for test in tests),
        }
        alone = [row for row in rows if not row.campaign]
        sections = [
            documents.changes(changes[: documents.MOST_CHANGES]),
            documents.tests(tests),
            documents.campaigns(campaigns),
            *([documents.campaigns(parts, *documents.PARTS)] if parts else []),
            *([other_measurements(self.name, alone)] if alone else []),
            *([documents.noted(noted)] if noted else []),
        ]
        self.folder.show(
            f"{self.path}/index.html",
            {**documents.system(self.name, facts, sections, campaigns, newest), "trail": [[TOP, "../../index.html"]]},
        )
        line = {
            "name": self.name,
            "href": f"{self.path}/index.html",
            "campaigns": len(campaigns),
            "without": self.without,
            **facts,
        }
        if newest:
            line["newest"] = {**newest, "href": newest["href"] and f"{self.path}/{newest['href']}"}
        return line

    def _campaigns(self, known: list[Known]) -> list[dict[str, Any]]:
        """A page for campaigns; the lines of all, the newest first."""
        lines = []
        by_name = group((name, item) for item in known if (name := item[0].campaign))
        kinds = {name: outcome.standing(self.name, name) for name in by_name}
        of_kind = group((kind.rank > 1, name) for name, kind in kinds.items())
        newest = {name for names in of_kind.values() for name in names[-NEWEST:]}
        for name, records in by_name.items():
            rows = [row for row, _ in records]
            path = f"campaigns/{slug(name)}.html"
            facts = None
            if self.every or name in newest or f"{self.path}/{path}" in self.folder.known:
                facts = self._made(path, *self._campaign(name, records))
            else:
                self.without += 1
            if facts:
                self.with_page.add(name)
            lines.append(
                {
                    "name": name,
                    "href": path if facts else None,
                    "answer": facts and facts["answer"],
                    "time": rows[0].time,
                    "stacks": sorted({row.stack.name for row in rows}),
                    "rank": kinds[name].rank,
                    "kind": str(kinds[name]),
                    **documents.counts(rows),
                }
            )
        return sorted(lines, key=_when, reverse=True)

    def _campaign(self, name: str, records: list[Known]) -> tuple[Any, Callable[[], Made]]:
        """The inputs of a campaign's page, and the function that makes it."""
        try:
            ended = outcome.read(self.name, name)
        except PlumbError as error:
            self.problems.append(str(error))
            ended = None

        def make() -> Made:
            report = compose(self.name, name, [row for row, _ in records], ended)
            facts = {"answer": report.document["answer"], "odd": [str(item) for item in report.odd]}
            return {**report.document, "trail": self._trail("../")}, facts

        return [sorted(total for _, total in records), ended], make

    def _tests(self, known: list[Known], noted: list[Note]) -> list[dict[str, Any]]:
        """A page for each test with a figure; their lines, by name."""
        lines = []
        for name, records in sorted(group((item[0].variant.test, item) for item in known).items()):
            path = f"tests/{slug(name)}.html"
            rows = [row for row, _ in records]
            with_page = sorted(self.with_page.intersection(row.campaign for row in rows if row.campaign))
            inputs = [[total for _, total in records], documents.notes_json(noted), with_page]
            facts = self._made(path, inputs, functools.partial(self._series, name, rows, noted))
            line = {"name": name, "href": None if facts is None else path, "records": len(rows), "time": rows[-1].time}
            summary = facts or {"series": 0, "worse": 0, "better": 0, "changes": [], "newest": None}
            lines.append({**line, **summary, "changes": [{**change, "href": path} for change in summary["changes"]]})
        return lines

    def _series(self, name: str, rows: list[Row], noted: list[Note]) -> Made:
        trail, with_page = self._trail("../"), self.with_page
        composed, odd = without_odd(lambda some, _: documents.series(name, some, noted, trail, with_page), rows)
        return composed[0], {**composed[1], "odd": [str(item) for item in odd]}

    def _name(self, odd: Iterable[Any]) -> None:
        """Add left-out records to ``problems``, each once."""
        self.problems += [text for text in map(str, odd) if text not in self.problems]

    def _made(self, path: str, inputs: Any, make: Callable[[], Made]) -> dict[str, Any] | None:
        """The facts of a page; None where it cannot be made: that becomes one of ``problems``, and the rest goes on."""
        try:
            facts = self.folder.put(f"{self.path}/{path}", [self.name, inputs], make)
        except PlumbError as error:
            self.problems.append(f"no page {path}: {error}")
            return None
        self._name(facts.pop("odd", ()))
        return facts

    def _trail(self, up: str) -> list[list[str]]:
        return [[TOP, f"../../{up}index.html"], [self.name, f"{up}index.html"]]


def side_by_side(newest: dict[str, list[Known]], pages: Folder) -> dict[str, str]:
    """Make the page of the ``newest`` campaigns of systems in one table; returns its path and its summary line."""
    path = "compare.html"
    rows = {name: [row for row, _ in known] for name, known in newest.items()}
    sums = {name: [total for _, total in known] for name, known in newest.items()}
    return {"href": path, **pages.put(path, sums, lambda: documents.side_by_side(rows, [[TOP, "index.html"]]))}


def _when(line: dict[str, Any]) -> str:
    return str(line["time"])


@command(
    option(
        "folder", "output folder: new, empty, or of an earlier plumb publish", type=files.OutputFolder, metavar="DIR"
    ),
    options.option("--site", "only this site, in a folder of its own (default: all)"),
    flag(
        "--all",
        f"a page for every campaign (default: the newest {NEWEST} whole ones, {NEWEST} others, those that have one)",
    ),
    options.EXPERIMENTS,
)
def run_publish(args: argparse.Namespace) -> int:
    """Make the pages whose inputs changed; returns 1 if something could not be read or made, which is named, else 0."""
    if args.site:
        sources.require_site(args.site)
    if not (names := [args.site] if args.site else sources.sites()):
        raise sources.none_yet()
    lines, problems = [], list[str]()
    newest: dict[str, list[Known]] = {}
    with opened(args.folder) as pages:
        try:
            for name in names:
                machine = System(name, pages, args.experiments, args.all)
                if line := machine.publish():
                    lines.append(line)
                problems += machine.problems
                if machine.newest:
                    newest[name] = machine.newest
        except BaseException:  # keep the finished pages, whatever the error
            pages.keep({**pages.known, **pages.pages})
            raise
        pages.show("index.html", documents.systems(lines, side_by_side(newest, pages) if len(newest) > 1 else None))
        pages.finish()
    for problem in problems:
        print(f"plumb: {problem}", file=sys.stderr)
    total = sum(file.stat().st_size for file in pages.root.rglob("*") if file.is_file())
    kept = len(pages.pages) - pages.rendered
    print(f"{counted(len(lines), 'system')}, {counted(sum(line['campaigns'] for line in lines), 'campaign')}")
    print(f"{counted(pages.rendered, 'page')} rendered, {kept} unchanged, {counted(pages.removed, 'file')} removed")
    if without := sum(line["without"] for line in lines):
        print(f"{counted(without, 'earlier campaign')} without a page: --all makes it")
    print(f"published: {pages.root / 'index.html'} ({total / 1e6:.1f} MB in all)")
    return 1 if problems else 0
