"""Faults put into lines of the package that a fixed seed draws: which of them does no test find?

``python tests/mutants.py [--seed 1] [--count 20] [--group NAME]`` works in a copy of the checkout, in build/mutants.
The test files that import the line's module judge first; a fault that they do not find meets all tests that a change of
its file runs (``tests/support/changed.py``). The last lines are the survivors: rules that no test has, or lines that
change nothing.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
from changed import Selection  # noqa: E402

COPY = ROOT / "build" / "mutants"
#: rules of judges, of proof and launch, and all else
GROUPS = {"judges": ("judge", "statistics", "gate"), "proof": ("proof", "launch"), "others": ()}
#: what takes the place of an operator
OTHERS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
}  # fmt: skip
#: the share that may survive: lines that change nothing but time, a choice between equals, or words
MOST = 0.1
#: seconds after which a fault that makes a program hang counts as found
PATIENCE_S = 900


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, its text, the text with a fault) for each place in functions where one can be put in."""
    lines = text.split("\n")
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            place = node.test if isinstance(node, ast.If) else node
            if not isinstance(node, ast.If | ast.Compare | ast.BoolOp | ast.BinOp) or place.lineno != place.end_lineno:
                continue
            after = fault(node, ast.get_source_segment(text, place) or "")
            if not after:
                continue
            line = lines[place.lineno - 1]
            begin, end = (len(line.encode()[:at].decode()) for at in (place.col_offset, place.end_col_offset))
            yield place.lineno, line, f"{line[:begin]}({after}){line[end:]}"


def fault(node: ast.AST, before: str) -> str | None:
    """The expression ``before`` of a node with a fault, None where none is known."""
    if isinstance(node, ast.If):
        return f"not ({before})"
    changed: Any = ast.parse(before, mode="eval").body
    operators = changed.ops if isinstance(changed, ast.Compare) else [changed.op]
    if type(operators[0]) not in OTHERS:
        return None
    made = OTHERS[type(operators[0])]()
    if isinstance(changed, ast.Compare):
        changed.ops[0] = made
    else:
        changed.op = made
    return ast.unparse(changed)


def drawn(seed: int, count: int, rooms: tuple[str, ...]) -> list[tuple[Path, int, str, str]]:
    """Faults in some rooms, in all but those of the groups if none is named; the same for the same seed and sources."""
    named = {room for group in GROUPS.values() for room in group}
    files = sorted((ROOT / "plumbline").rglob("*.py"))
    room = {file: file.relative_to(ROOT / "plumbline").parts[0] for file in files}
    wanted = [file for file in files if (room[file] in rooms if rooms else room[file] not in named)]
    every = [(file.relative_to(ROOT), *place) for file in wanted for place in faults(file.read_text())]
    return random.Random(seed).sample(every, count)  # noqa: S311 - a draw, no secret


def passes(paths: tuple[str, ...]) -> bool:
    """Whether these tests pass in the copy; raises RuntimeError with what pytest says if they cannot be run."""
    options = ["-q", "-x", "-n", str(os.cpu_count()), "-m", "not long", "-p", "no:cacheprovider", "--timeout", "300"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    environment = {**os.environ, "PYTHONPATH": str(COPY)}
    try:
        done = subprocess.run(
            command, cwd=COPY, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: the first failure ended several processes, or a module cannot be loaded
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.returncode == 0


@functools.cache
def sound(paths: tuple[str, ...]) -> bool:
    """Whether these tests pass without a fault: only then do they find one."""
    return passes(paths)


def survives(file: Path, text: str, selection: Selection) -> bool:
    """Whether all tests pass with this ``text`` of a file."""
    source = (COPY / file).read_text()
    module = ".".join(part for part in file.with_suffix("").parts if part != "__init__")
    near = tuple(name for name, test in selection.files.items() if "/test_" in name and module in test.imports)
    for paths in (near, tuple(selection.tests([str(file)], every=True))):
        (COPY / file).write_text(text)
        try:
            fails = bool(paths) and not passes(paths)
        finally:
            (COPY / file).write_text(source)
        if fails:
            if not sound(paths):
                raise RuntimeError(f"these fail without a fault: {' '.join(paths)}")
            return False
    return True


def main() -> int:
    """Print what became of each fault; 1 if more than :data:`MOST` of them survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="faults in each group (default: 20)")
    parser.add_argument("--group", choices=GROUPS, action="append")
    given = parser.parse_args()
    shutil.rmtree(COPY, ignore_errors=True)
    (COPY / "build").mkdir(parents=True)
    for place in ROOT.iterdir():
        if place.name in (".venv", ".git", "stacks", "results"):
            (COPY / place.name).symlink_to(place)
        elif place.is_file():
            shutil.copy2(place, COPY)
        elif place.name != "build":
            shutil.copytree(place, COPY / place.name, symlinks=True)
    for name in ("tools", "cmake"):
        (COPY / "build" / name).symlink_to(ROOT / "build" / name)
    selection, left = Selection(), []
    for group in given.group or GROUPS:
        for file, number, line, faulty in drawn(given.seed, given.count, GROUPS[group]):
            lines = (ROOT / file).read_text().split("\n")
            lines[number - 1] = faulty
            stays = survives(file, "\n".join(lines), selection)
            said = f"{file}:{number}: {line.strip()} -> {faulty.strip()}"
            print("SURVIVES" if stays else "found", said, flush=True)
            left += [said] * stays
    print(f"{len(left)} survive{''.join(f'{chr(10)}  {said}' for said in left)}")
    return len(left) > MOST * given.count * len(given.group or GROUPS)


if __name__ == "__main__":
    sys.exit(main())
