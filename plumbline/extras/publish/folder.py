"""The folder of published pages: a page whose inputs are the same is kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.base import files, paths
from plumbline.base.errors import PlumbError
from plumbline.show.pages import page
from plumbline.show.pages.page import Shared

#: the folder of shared files, and the file with the inputs of each page
ASSETS, STATE = "assets", "pages.json"
#: a page's data, and its facts for other pages
Made = tuple[dict[str, Any], dict[str, Any]]


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
            way = "../" * path.count("/") + f"{ASSETS}/"
            files.write("a page", self.root / path, self.shared.render(document, way))
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
        self._keep(self.pages)
        for left in self.root.rglob(".*"):  # of killed publications: no other runs in this folder
            written = re.fullmatch(r"\.(.+)\.[0-9]+", left.name)
            if written and left.with_name(written[1]).relative_to(self.root).as_posix() in {*old, *kept, STATE}:
                left.unlink(missing_ok=True)
                self.removed += 1

    def keep(self) -> None:
        """Store the inputs of the pages so far, where publishing ends early."""
        self._keep({**self.known, **self.pages})

    def _keep(self, pages: dict[str, dict[str, Any]]) -> None:
        files.write("the state of the pages", self.root / STATE, json.dumps({"schema": 1, "pages": pages}) + "\n")


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Folder]:
    """The folder ``root`` for pages: new, empty, or one that this function opened before; another publication waits.

    Raises :class:`PlumbError` for any other folder, and for one whose state is damaged.
    """
    shared = page.shared()
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
        cure = "remove it: all pages are then made again"
        raise PlumbError(f"damaged state of the pages: {error!r}", str(file), cure) from None


def _generator(shared: Shared) -> str:
    """A checksum of the program that makes pages: the names of the shared files, and all code of this package."""
    code = (file.read_bytes() for file in sorted(paths.package().rglob("*.py")))
    forms = (file.read_bytes() for file in sorted(page.ASSETS.glob("*.html")))
    return _sum(*sorted(shared.texts), *(hashlib.sha256(text).hexdigest() for text in (*code, *forms)))


def _sum(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
