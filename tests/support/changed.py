"""The tests that a change can break: ``make check CHANGED=yes``, or ``CHANGED=COMMIT`` for all since a commit.

A change of a Python module affects all modules that import it, directly or through others, by the graph that the import
linter builds too. A test file is chosen if it, or a file of ``tests/support`` that it imports, imports an affected
module, or calls ``plumb`` with a command whose module is affected. C follows the dependencies that CMake wrote: a test
is chosen if its code names a target that contains a changed file. All other files have declared owners. A slow file
(:mod:`slow`) is chosen if it uses the changed file itself: ``make test`` runs it after any change.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp
import slow

from plumbline.commands.table import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
#: what `make check` runs
TESTED = ("tests/unit", "tests/attacks", "tests/golden")
#: start of a path -> start of the paths of its tests, or a module that it is data of; the first that fits counts
OWNERS = (
    ("docs/labs.md", ("tests/unit/extras/labs", "tests/unit/repository")),
    ("docs/examples/", ("tests/unit/measure/application", "tests/unit/repository")),
    ("docs/", ("tests/unit/repository",)),
    (
        "reframe-tests/",
        ("tests/golden", "tests/unit/measure/reframe", "tests/unit/extras/labs", "tests/unit/judge/references"),
    ),
    ("site-configs/", ("tests/golden", "tests/unit/site", "tests/unit/judge/references", "tests/unit/measure/reframe")),
    ("spack-env/", ("tests/unit/extras/spack",)),
    (
        "playbooks/",
        ("tests/unit/repository", "tests/unit/extras/ci", "tests/unit/extras/nodes/health", "tests/unit/site/nodes"),
    ),
    ("tests/golden/commands", ("tests/golden/test_commands.py",)),
    ("tests/golden/", ("tests/golden",)),
    ("tests/rates/", ("tests/unit",)),
    ("tests/bench/", ("tests/unit/repository", "tests/unit/gate")),
    *((f"tests/{folder}/", ()) for folder in ("bed", "e2e", "kernels", "playbooks", "pictures", "scale", "vm")),
    (".ci/", ("tests/unit/repository",)),
    ("results/", ()),
)
#: a change of these can break any test
EVERYTHING = (
    "pyproject.toml", "requirements", "tests/conftest.py", "tests/support/parallel.py", "tests/support/durations.py",
)  # fmt: skip


def changes(since: str) -> list[str]:
    """Paths that differ from a commit, also those that git does not track yet.

    ``yes`` is the last commit; where nothing has changed since, the one before it.
    """
    commits = ("HEAD", "HEAD~1") if since == "yes" else (since,)
    for commit in commits:
        paths = _git("diff", "--name-only", "--no-renames", commit) + _git("ls-files", "--others", "--exclude-standard")
        if paths:
            return sorted(paths)
    return []


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


class Selection:
    """Test files by what they use."""

    def __init__(self) -> None:
        self.graph = grimp.build_graph("plumbline", cache_dir=None)
        self.files = {
            str(path.relative_to(ROOT)): Source(path)
            for folder in (*TESTED, "tests/support")
            for path in sorted((ROOT / folder).rglob("*.py"))
        }
        self.support = {Path(name).stem: name for name in self.files if "test_" not in Path(name).name}

    def tests(self, paths: Iterable[str], every: bool = False) -> list[str]:
        """The test files for changes of these paths, with ``every`` slow one."""
        chosen: set[str] = set()
        modules: set[str] = set()
        themselves: set[str] = set()
        names: set[str] = set()
        for path in paths:
            if path.startswith(EVERYTHING):
                return list(TESTED)
            if path.startswith("plumbline/"):
                themselves.add(self.module(path))
                modules |= self.affected_by(self.module(path))
            elif path.startswith("custom-kernels/"):
                names |= {name for program in programs(path) for name in (program, *functions(program))}
                chosen |= {"tests/unit/repository"}
            elif path.startswith(("tests/data/", "tests/support/programs/")):
                names.add(self.mentioned(path))
            elif path in self.files:
                chosen |= {path} if path.startswith(TESTED) else set()
                modules.add(Path(path).stem)
                themselves.add(Path(path).stem)
            else:
                chosen |= set(owners(path))
        modules |= {
            importer
            for module in self.graph.modules - {"plumbline.base.paths"}
            if names & Source.of_module(module).strings
            for importer in self.affected_by(module)
        }
        for name, source in self.files.items():
            if not name.startswith(TESTED) or not Path(name).name.startswith("test_"):
                continue
            distant = name in slow.FILES and not every
            broken, used = (themselves, source.imports) if distant else (modules, self.uses(name))
            called = COMMANDS.keys() & (COMMANDS.keys() if source.every else source.first)
            calls = "plumbline.commands.cli" in used and any(COMMANDS[command].module in broken for command in called)
            if used & broken or calls or source.strings & names:
                chosen.add(name)
        return sorted(
            path for path in chosen if not any(path != folder and path.startswith(folder) for folder in chosen)
        )

    def mentioned(self, path: str) -> str:
        """The name by which tests read a file of theirs: its own, or that of the nearest folder."""
        place = Path(path)
        names = [place.stem, *reversed(place.parts[2:-1])]
        strings = {name for file, source in self.files.items() if file.startswith("tests") for name in source.strings}
        return next((name for name in names if name in strings), names[0])

    def module(self, path: str) -> str:
        """The module of a path, or the package whose data it is."""
        place = Path(path)
        parts = [*place.parts[:-1], place.stem] if place.suffix == ".py" else list(place.parts[:-1])
        name = ".".join(part for part in parts if part != "__init__")
        while name not in self.graph.modules and "." in name:
            name = name.rpartition(".")[0]
        return name

    def affected_by(self, module: str) -> set[str]:
        """A module and all that import it, directly or through others; a module that is gone has its package's."""
        return {module, *self.graph.find_downstream_modules(module)}

    @functools.cache  # noqa: B019 - one selection a process
    def uses(self, name: str) -> frozenset[str]:
        """Modules that a test file imports, and those of the files of ``tests/support`` that it imports."""
        used: set[str] = set()
        queue = [name]
        while queue:
            for module in self.files[queue.pop()].imports - used:
                used.add(module)
                if module in self.support:
                    queue.append(self.support[module])
        return frozenset(used)


class Source:
    """What a file imports, and the texts in it."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        #: whether it goes through the table of all commands
        self.every = "COMMANDS" in text
        try:
            tree = ast.parse(text)
        except SyntaxError:  # pytest says so if it is to run it
            tree = ast.parse("")
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        self.imports: set[str] = set()
        self.strings: set[str] = set()
        #: the first word of each text: a command, where it is a command line
        self.first: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.imports |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imports |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "paths":
                self.strings.add(f"paths.{node.attr}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                self.strings |= set(words := re.findall(r"[\w-]+", node.value))
                self.first |= set(words[:1])

    @classmethod
    @functools.cache
    def of_module(cls, module: str) -> Source:
        """That of a module of the package."""
        path = ROOT / Path(*module.split("."))
        return cls(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def programs(path: str) -> set[str]:
    """Names of programs and libraries for whose tests a file below ``custom-kernels`` counts.

    Those that CMake links it into, directly or by a static library; of a kernel, which each stack builds, its own name;
    else all.
    """
    build = ROOT / "build" / "cmake"
    holders = {target(file) for file in build.rglob("*.d") if path in file.read_text(encoding="utf-8")}
    links = {target(file): file.read_text(encoding="utf-8") for file in build.rglob("link.txt")}
    linked = {name: text for name, text in links.items() if f"lib{name}.a" not in text.split()[2:3]}
    if holders:
        static = [f"lib{name}.a" for name in holders]
        return {name for name, text in linked.items() if name in holders or any(library in text for library in static)}
    return {Path(path).stem} if path.startswith("custom-kernels/kernels/") and path.endswith(".c") else set(linked)


def functions(program: str) -> list[str]:
    """The functions of ``base.paths`` that say where a program is, as others call them."""
    tree = ast.parse((ROOT / "plumbline/base/paths.py").read_text(encoding="utf-8"))
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [f"paths.{node.name}" for node in defined if program in ast.unparse(node)]


def target(file: Path) -> str:
    """The target of a file that CMake keeps for it."""
    return re.findall(r"CMakeFiles/([^/]+)\.dir/", str(file))[0]


def owners(path: str) -> tuple[str, ...]:
    """The tests of a file that is neither Python nor C: those declared, else those of the repository."""
    return next((tests for start, tests in OWNERS if path.startswith(start)), ("tests/unit/repository",))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    paths = changes(sys.argv[1])
    selected = Selection().tests(paths)
    print(f"{len(paths)} changed files: {len(selected)} of the test files or folders", file=sys.stderr)
    print(*selected, sep="\n")
