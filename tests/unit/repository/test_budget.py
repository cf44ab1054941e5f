"""The size of the house is declared: statements by room, files, commands, words of documentation, useless names.

A commit that raises a number says why.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.base import paths
from plumbline.commands.table import COMMANDS

ROOT = paths.root()
#: statements (without imports and docstrings) of each room, and of each extra. Newest growth: scaling curves beside a
#: neighbour, their printed steps and laws, modules of observed jobs; six rooms lost what was there twice
STATEMENTS = {
    "__init__.py": 1,
    "base": 1158,
    "commands": 1324,
    "extras": 3,
    "extras/accept": 578,
    "extras/advice": 401,
    "extras/ci": 247,
    "extras/exchange": 257,
    "extras/fabric": 424,
    "extras/labs": 530,
    "extras/neighbours": 132,
    "extras/nodes": 828,
    "extras/profiles": 419,
    "extras/publish": 273,
    "extras/scale": 817,
    "extras/search": 1565,
    "extras/spack": 743,
    "extras/tune": 1174,
    "gate": 1315,
    "host": 1388,
    "judge": 2069,
    "launch": 2264,
    "measure": 1885,
    "mpi": 567,
    "parsers": 782,
    "proof": 230,
    "records": 1408,
    "reframe.py": 14,
    "schedulers": 833,
    "show": 1315,
    "site": 660,
    "stacks": 1873,
    "statistics": 576,
}
FILES = 317
WORDS_OF_DOCS = 75_000
COMMANDS_AT_MOST = 41
#: words that do not say what a name holds; and how often names of the package may be such
NO_NAMES = {"found", "one", "own", "other", "what", "told", "said", "asked", "given", "taken", "made"}
USES = 50


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The room, or extra, of each module, and its tree."""
    package = ROOT / "plumbline"
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).parts
        room = "/".join(parts[:2]) if parts[0] == "extras" and len(parts) > 2 else parts[0]
        yield room, ast.parse(file.read_text(encoding="utf-8"))


def statements(tree: ast.Module) -> int:
    """How many there are without imports and docstrings."""
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, ast.Import | ast.ImportFrom)
        and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        for node in ast.walk(tree)
    )


@pytest.fixture(scope="module")
def counted() -> Counter[str]:
    count: Counter[str] = Counter()
    for room, tree in modules():
        count[room] += statements(tree)
    return count


def test_statements_are_counted():
    assert (
        statements(ast.parse('"""Text."""\nimport os\n\ndef f(a):\n    """Text."""\n    if a:\n        return 1\n'))
        == 3
    )


@pytest.mark.parametrize("room", sorted(STATEMENTS))
def test_no_room_grows_unseen(counted, room):
    assert counted[room] <= STATEMENTS[room]


def test_every_room_has_a_budget(counted):
    assert sorted(counted) == sorted(STATEMENTS)


def test_files_commands_and_words_of_docs():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert sum(1 for _ in modules()) <= FILES
    assert len(COMMANDS) <= COMMANDS_AT_MOST
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= WORDS_OF_DOCS


def names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names in a tree, and whether each is one of a parameter, function or class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.Name):
            yield node.id, False
        elif isinstance(node, ast.Attribute):
            yield node.attr, False


def test_names_say_what_they_hold():
    used = [item for _, tree in modules() for item in names(tree) if item[0].lower() in NO_NAMES]
    assert [name for name, declared in used if declared] == []
    assert len(used) <= USES


def test_modules_have_such_names_too():
    stems = {file.stem for file in Path(ROOT / "plumbline").rglob("*.py")}
    assert stems & NO_NAMES == set()


def test_a_name_that_says_nothing_is_seen():
    assert list(names(ast.parse("def f(found): return found.one"))) == [
        ("f", True), ("found", True), ("one", False), ("found", False),
    ]  # fmt: skip
