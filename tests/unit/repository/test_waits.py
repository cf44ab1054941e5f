"""No test asserts that something was quick: on a slow or busy machine it would fail.

It counts, or looks at the cause; what it has to wait for it waits for by ``wait_until`` of ``tests/support``.
"""

import ast
import functools
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import processes
import pytest

TESTS = Path(__file__).resolve().parents[2]
CLOCKS = {f"{name}{unit}" for name in ("monotonic", "perf_counter", "time") for unit in ("", "_ns")}


def quick(text: str) -> Iterator[int]:
    """The lines of assertions that a difference of times is below something, or about it."""
    if not any(f"{name}()" in text for name in CLOCKS):
        return
    tree = ast.parse(text)
    for scope in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] or [tree]:
        clocks = names(scope, reads_clock)
        spans = names(scope, functools.partial(is_span, clocks=clocks))
        for node in (node for line in ast.walk(scope) if isinstance(line, ast.Assert) for node in ast.walk(line.test)):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
                    smaller = {ast.Lt: [left], ast.LtE: [left], ast.Gt: [right], ast.GtE: [right]}
                    if any(is_span(side, clocks, spans) for side in smaller.get(type(sign), [left, right])):
                        yield node.lineno


def names(scope: ast.AST, holds: Callable[[ast.AST], bool]) -> set[str]:
    """The variables of a function that get a value in which ``holds`` is true of something."""
    return {
        target.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.NamedExpr) and any(map(holds, ast.walk(node.value)))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def reads_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in CLOCKS


def is_span(node: ast.AST, clocks: Collection[str], spans: Collection[str] = ()) -> bool:
    """Whether a time is subtracted in ``node``, or it is a variable of which that is so."""
    if isinstance(node, ast.Name) and node.id in spans:
        return True
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Sub)
        and any(reads_clock(end) or (isinstance(end, ast.Name) and end.id in clocks) for end in ast.walk(part))
        for part in ast.walk(node)
    )


@pytest.mark.parametrize("text", [
    "began = time.monotonic()\nassert time.monotonic() - began < 5",
    "began = perf_counter()\nrun()\ntook = perf_counter() - began\nassert 5 > took",
    "began = time.time()\nassert status == 0 and 1 <= time.time() - began <= 5",
    "def test():\n    begin, end = 1, time.monotonic_ns()\n    assert (time.monotonic_ns() - 7) / 1e9 == 2",
    "if (took := time.monotonic() - began) or True:\n    assert took < LIMIT / 2",
])  # fmt: skip
def test_an_assertion_that_something_was_quick_is_noticed(text):
    assert [*quick(text)]


@pytest.mark.parametrize("text", [
    "began = time.monotonic()\nassert time.monotonic() - began > 0.8 * size / rate",
    "deadline = time.monotonic() + 60\nassert time.monotonic() < deadline",
    "assert (path.parent / name).stat().st_mtime < time.time()",
    "assert end - begin < 5",
])  # fmt: skip
def test_a_time_that_a_slow_machine_only_makes_longer_is_allowed(text):
    assert [*quick(text)] == []


def test_no_test_asserts_that_something_was_quick():
    files = [file for file in TESTS.rglob("*.py") if "data" not in file.parts]
    places = [(file, line) for file in files for line in quick(file.read_text(encoding="utf-8"))]
    assert [f"{file.relative_to(TESTS.parent)}:{line}" for file, line in places] == []


#: where the limit is what is looked at, or who waits asks again, or skips
SHORT = {"tests/bed/test_bed.py", "tests/bed/testbed/access.py", "tests/e2e/test_spack.py"}
WAITS = {
    "run",
    "ended",
    "communicate",
    "wait",
    "wait_until",
    "wait_gone",
    "check_output",
    "create_connection",
    "urlopen",
}


def short(text: str) -> Iterator[int]:
    """The lines of waits that end in less than a minute."""
    for node in ast.walk(ast.parse(text)):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in WAITS:
            limits = [key.value for key in node.keywords if key.arg in ("timeout", "seconds")]
            limits += node.args[2:3] if name == "wait_until" else []
            if any(isinstance(limit, ast.Constant) and float(limit.value or 60) < 60 for limit in limits):
                yield node.lineno


def test_no_wait_is_shorter_than_a_slow_machine_may_need():
    assert [*short("done = run(words, timeout=30)\nwait_until(so, 'it', 5)\nrun(words, timeout=60)")] == [1, 2]
    files = {str(file.relative_to(TESTS.parent)): file for file in TESTS.rglob("*.py") if "data" not in file.parts}
    assert {name for name, file in files.items() if [*short(file.read_text(encoding="utf-8"))]} == SHORT


def test_who_waits_in_vain_says_for_what_and_what_the_process_printed():
    command = ["sh", "-c", "echo no room >&2; exit 3"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
        pytest.raises(AssertionError, match=r"^not before the end: a file; exit status 3\nno room\n$"),
    ):
        processes.wait_until(lambda: False, "a file", of=process)
    with pytest.raises(AssertionError, match=r"^not within 0\.01 s: 7$"):
        processes.wait_until(lambda: False, lambda: 7, 1 / 100)
    assert processes.wait_until(lambda: 5, "") == 5
